"""Workload traces: reading them, and the free slots they leave on their machine."""

from __future__ import annotations

import gzip
import heapq
import math
import operator
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from slotkern.environment import Price, Uniform, checked_integer
from slotkern.extras import extra
from slotkern.slots import make_slots

__all__ = ["SWF", "TraceSlots", "read_swf", "slots_from_trace"]

#: The fields of the Standard Workload Format, in its order. Times are in seconds, sizes
#: in kilobytes; -1 is "unknown".
SWF = np.dtype(
    [
        ("job", "i8"),
        ("submit", "f8"),
        ("wait", "f8"),
        ("run_time", "f8"),
        ("allocated", "i8"),
        ("cpu_time", "f8"),
        ("memory", "f8"),
        ("requested", "i8"),
        ("requested_time", "f8"),
        ("requested_memory", "f8"),
        ("status", "i8"),
        ("user", "i8"),
        ("group", "i8"),
        ("executable", "i8"),
        ("queue", "i8"),
        ("partition", "i8"),
        ("preceding", "i8"),
        ("think_time", "f8"),
    ]
)
_NAMES = SWF.names or ()
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_MAX_PROCESSORS = 2**24


@dataclass(frozen=True, repr=False)
class TraceSlots:
    """The free slots that a trace leaves on its machine, and how it was placed.

    Attributes
    ----------
    slots : structured array
        The slots, as `make_slots` returns them; a node is a processor.
    jobs : int
        How many jobs of the whole trace were placed.
    delayed : int
        How many of them started later than the trace records.
    skipped : int
        How many were left out: run time or processors not positive, start unknown.
    processors : int
        The size of the machine.
    """

    slots: NDArray[Any]
    jobs: int
    delayed: int
    skipped: int
    processors: int

    def __repr__(self) -> str:
        return (
            f"TraceSlots({len(self.slots)} slots, jobs={self.jobs}, "
            f"delayed={self.delayed}, skipped={self.skipped}, "
            f"processors={self.processors})"
        )


def read_swf(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the jobs of a trace in the Standard Workload Format.

    Parameters
    ----------
    path : path
        A text file; if its name ends in ``.gz``, a gzip one. Lines that begin with a
        semicolon are comments.

    Returns
    -------
    structured array of dtype `SWF`, in the file's order

    Raises
    ------
    ValueError
        Naming the file, the line and the field: a line without exactly 18 numbers, a
        fraction where an integer belongs, a file that is not text or not gzip.
    OSError
        When the file cannot be opened.

    Notes
    -----
    O(n); the memory of three copies of the (unpacked) file.

    References
    ----------
    S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job
    schedulers", JSSPP 1999; D. Feitelson, "The Standard Workload Format".

    Examples
    --------
    >>> from slotkern.trace import read_swf
    >>> jobs = read_swf("trace.swf.gz")  # doctest: +SKIP
    """
    return _jobs(_text(path), str(path))


def slots_from_trace(
    path: str | os.PathLike[str],
    at: float,
    horizon: float,
    *,
    processors: int | None = None,
    performance: float | str | Uniform = 1.0,
    price: float | str | Price | Uniform = 0.0,
    seed: int = 0,
) -> TraceSlots:
    """Return the free slots of a trace's machine in [at, at + horizon).

    Every job of the trace is placed at its recorded start (submit + wait), in the
    order of starts and of the file, on the lowest-numbered free processors. Real logs
    overcommit: a job that does not fit then starts as soon as it does, before any job
    whose recorded start is later; it does not hold back jobs that fit.

    Parameters
    ----------
    path : path
        A trace in the Standard Workload Format, ``.swf`` or ``.swf.gz``.
    at, horizon : float
        The span to look at, in the trace's seconds.
    processors : int, optional
        The size of the machine; by default the trace's ``MaxProcs``, and without one
        the most processors that the jobs use at any time.
    performance : float, str or Uniform
        The performance of the processors, of which a trace says nothing: a number for
        all, or a law to draw them from at random. ``"uniform:2:10"`` draws integers
        from 2 to 10, ``"uniform:2.0:10.0"`` real numbers.
    price : float, str, Price or Uniform
        The price of a processor per time unit: likewise, or
        ``"market:LEVEL[:EXPONENT[:DEVIATION]]"``, which is level *
        performance**exponent * (1 + deviation * N(0, 1)), by default with exponent 1
        and deviation 0.2.
    seed : int
        Seed of the laws; performances do not depend on the law of prices.

    Returns
    -------
    TraceSlots
        ``.slots`` in trace seconds as they stand (not counted from `at`), the nodes
        numbered from 0; and how many jobs were placed, delayed and skipped in the
        whole trace, whatever `at` and `horizon` are.

    Raises
    ------
    ValueError
        For a malformed trace (naming file and line), a job wider than the machine, a
        span that is not finite or not positive, a law that makes no sense.
    OSError
        When the file cannot be opened.
    ModuleNotFoundError
        Without numba, which compiles the placement.

    Notes
    -----
    The processors of a job are field 5 (allocated), or else field 8 (requested). Jobs
    with a run time <= 0, no known processors or no known start are skipped. A
    processor is free again from the moment its job ends.

    Time O(sum of job widths + n (processors / 64 + log n)), memory O(n + processors
    + slots).

    Examples
    --------
    >>> import slotkern as sk
    >>> day = sk.slots_from_trace("trace.swf", 86400, 3600)  # doctest: +SKIP
    """
    at, horizon = _number("at", at), _number("horizon", horizon)
    if horizon <= 0 or at + horizon <= at or not math.isfinite(at + horizon):
        raise ValueError(f"horizon {horizon} does not lead from {at} to a later time")
    performance_law, price_law = _law("performance", performance), _law("price", price)
    assert isinstance(performance_law, Uniform)
    if processors is not None:
        if isinstance(processors, bool) or not isinstance(processors, SupportsIndex):
            raise TypeError(f"processors must be an integer, got {processors!r}")
        processors = operator.index(processors)
    text = _text(path)
    trace = _jobs(text, str(path))

    width = np.where(trace["allocated"] > 0, trace["allocated"], trace["requested"])
    known = (trace["run_time"] > 0) & (width > 0)
    known &= (trace["submit"] >= 0) & (trace["wait"] >= 0)
    start = trace["submit"] + trace["wait"]
    order = np.flatnonzero(known)[np.argsort(start[known], kind="stable")]
    start, run_time, width = start[order], trace["run_time"][order], width[order]

    size = processors if processors is not None else _max_procs(text)
    if size is None:
        size = _peak(start, start + run_time, width)
    if not 1 <= size <= _MAX_PROCESSORS:
        reason = f"{size} processors are not between 1 and {_MAX_PROCESSORS}"
        raise ValueError(f"{path}: {reason}")
    if (wide := width > size).any():
        row = int(wide.argmax())
        reason = f"job {trace['job'][order[row]]} runs on {width[row]} processors"
        raise ValueError(f"{path}: {reason}, but the machine has {size}")

    until = at + horizon
    begin, delayed, job, node = _compiled()(start, run_time, width, size, at, until)
    node, free_from, free_to = _gaps(
        size, node, begin[job], begin[job] + run_time[job], at, until
    )
    streams = np.random.SeedSequence(checked_integer("seed", seed, 0)).spawn(2)
    rng, price_rng = (np.random.Generator(np.random.PCG64(each)) for each in streams)
    node_performance = performance_law.draw(rng, size)
    if isinstance(price_law, Price):
        node_price = price_law.draw(price_rng, node_performance)
    else:
        node_price = price_law.draw(price_rng, size)
    slots = make_slots(
        node=node,
        start=free_from,
        end=free_to,
        performance=node_performance[node],
        price=node_price[node],
    )
    skipped = trace.size - start.size
    return TraceSlots(slots, start.size, int(delayed), skipped, size)


# --- reading --------------------------------------------------------------------------


def _text(path: str | os.PathLike[str]) -> str:
    data = Path(path).read_bytes()
    if not data:
        raise ValueError(f"{path}: the file is empty")
    if str(path).lower().endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: not a sound gzip file: {error}") from None
    return data.decode("latin-1")  # comments may be in any encoding


def _jobs(text: str, source: str) -> NDArray[Any]:
    lines = [line for _, line in _job_lines(text)]
    jobs = np.zeros(len(lines), SWF)
    if not lines:
        return jobs
    try:
        table = np.loadtxt(lines, ndmin=2)
        if table.shape[1] != len(_NAMES):
            raise ValueError(f"{table.shape[1]} fields")
    except ValueError as error:
        for number, line in _job_lines(text):
            cells = line.split()
            if len(cells) != len(_NAMES):
                reason = f"{len(cells)} fields, not {len(_NAMES)}"
                raise ValueError(f"{source}, line {number}: {reason}") from None
            for name, cell in zip(_NAMES, cells, strict=True):
                if not re.fullmatch(_NUMBER, cell):
                    reason = f"{name} {cell!r:.80} is not a number"
                    raise ValueError(f"{source}, line {number}: {reason}") from None
        raise ValueError(f"{source}: {error}") from None
    for name, column in zip(_NAMES, table.T, strict=True):
        wrong = ~(np.abs(column) <= 2.0**53)  # up to there float64 is exact
        if SWF[name].kind == "i":
            wrong |= column != np.floor(column)
        if wrong.any():
            row = int(wrong.argmax())
            number, line = next(islice(_job_lines(text), row, None))
            what = "an integer" if SWF[name].kind == "i" else "a number"
            cell = line.split()[_NAMES.index(name)]
            reason = f"{name} {cell!r:.80} is not {what} within 2**53"
            raise ValueError(f"{source}, line {number}: {reason}")
        jobs[name] = column
    return jobs


def _job_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that holds a job, with its number."""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.partition(";")[0]
        if line and not line.isspace():
            yield number, line


def _max_procs(text: str) -> int | None:
    """Return what the header says about the size of the machine, if it does."""
    found = re.search(r"^;\s*MaxProcs:[ \t]*([0-9]{1,18})\b", text, re.MULTILINE)
    return int(found[1]) if found and int(found[1]) > 0 else None


# --- placing --------------------------------------------------------------------------


def _place(
    start: NDArray[np.float64],
    run_time: NDArray[np.float64],
    width: NDArray[np.int64],
    processors: int,
    at: float,
    until: float,
) -> tuple[NDArray[np.float64], int, NDArray[np.int64], NDArray[np.int64]]:
    """Place jobs, sorted by recorded start, on the lowest-numbered free processors.

    Returns when each job begins and how many begin late; then job and processor of
    every part that runs within [at, until). numba compiles it; it runs as it stands.
    """
    jobs = start.size
    begin = np.empty(jobs)
    delayed = 0
    part_job = [0 for _ in range(0)]
    part_processor = [0 for _ in range(0)]

    free = np.ones(processors, np.bool_)
    left = processors  # how many are free, in all and in each block
    block = 64
    left_in = np.zeros((processors + block - 1) // block, np.int64)
    for p in range(processors):
        left_in[p // block] += 1

    # The processors that a job holds are a chain from its last one down to its first.
    last_held = np.empty(jobs, np.int64)
    held_before = np.empty(processors, np.int64)
    running = [(0.0, 0) for _ in range(0)]  # a heap of (end, job)

    # A tree over the jobs in their order: the least width among those that wait.
    leaves = 1
    while leaves < jobs:
        leaves *= 2
    nobody = processors + 1
    least = np.full(2 * leaves, nobody, np.int64)

    def set_leaf(leaf: int, value: int) -> None:
        least[leaf] = value
        while leaf > 1:
            leaf //= 2
            least[leaf] = min(least[2 * leaf], least[2 * leaf + 1])

    now = 0.0
    coming = 0
    while coming < jobs or least[1] < nobody:
        if least[1] <= left:  # the first waiting job that fits
            leaf = 1
            while leaf < leaves:
                leaf *= 2
                if least[leaf] > left:
                    leaf += 1
            job = leaf - leaves
            set_leaf(leaf, nobody)
        elif running and (coming == jobs or running[0][0] <= start[coming]):
            now = running[0][0]
            while running and running[0][0] == now:
                p = last_held[heapq.heappop(running)[1]]
                while p >= 0:
                    free[p] = True
                    left += 1
                    left_in[p // block] += 1
                    p = held_before[p]
            continue
        else:
            job = coming
            coming += 1
            now = start[job]
            if width[job] > left:
                set_leaf(leaves + job, width[job])
                delayed += 1
                continue

        end = now + run_time[job]
        seen = now < end and now < until and end > at
        begin[job] = now
        needed = width[job]
        left -= needed
        held = -1
        b = 0
        while needed:
            if left_in[b]:
                for p in range(b * block, min((b + 1) * block, processors)):
                    if needed and free[p]:
                        free[p] = False
                        left_in[b] -= 1
                        needed -= 1
                        held_before[p] = held
                        held = p
                        if seen:
                            part_job.append(job)
                            part_processor.append(p)
            b += 1
        last_held[job] = held
        heapq.heappush(running, (end, job))
    return begin, delayed, np.array(part_job), np.array(part_processor)


@cache
def _compiled() -> Callable[..., Any]:
    with extra():
        from numba import njit
    compiled: Callable[..., Any] = njit(cache=True)(_place)
    return compiled


def _peak(
    start: NDArray[np.float64], end: NDArray[np.float64], width: NDArray[np.int64]
) -> int:
    """Return the most processors in use at any time."""
    change = np.concatenate((-width, width))
    order = np.lexsort((change, np.concatenate((end, start))))  # ends before starts
    return int(change[order].cumsum().max(initial=0))


def _gaps(
    processors: int,
    node: NDArray[np.int64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    at: float,
    until: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return what busy spans leave free in [at, until): node, start and end."""
    every = np.arange(processors)
    edge = np.ones(processors)
    node = np.concatenate((every, node, every))
    start = np.concatenate((at * edge, start.clip(min=at), until * edge))
    end = np.concatenate((at * edge, end.clip(max=until), until * edge))
    order = np.lexsort((end, start, node))
    node, start, end = node[order], start[order], end[order]
    gap = np.flatnonzero((node[1:] == node[:-1]) & (end[:-1] < start[1:]))
    return node[gap], end[gap], start[gap + 1]


# --- performance and price ------------------------------------------------------------


def _law(name: str, given: Any) -> Uniform | Price:
    """Return the checked law that a number, a text or a law stands for."""
    law: Uniform | Price
    kind, *texts = given.split(":") if isinstance(given, str) else [""]
    if isinstance(given, Uniform | Price):
        law = given
    elif kind == "market" and 1 <= len(texts) <= 3:
        law = Price(*(_number(name, text) for text in texts))
    elif kind == "uniform" and len(texts) == 2:
        low, high = (_number(name, text) for text in texts)
        law = Uniform(low, high, all(re.fullmatch("[0-9]+", text) for text in texts))
    elif texts:
        known = "'uniform:LOW:HIGH' or 'market:LEVEL'"
        raise ValueError(f"{name}: {given!r} is not a law such as {known}")
    else:
        number = _number(name, given)
        law = Uniform(number, number)

    if isinstance(law, Uniform):
        law.check(name, positive=name == "performance")
        if law.low < 0:
            raise ValueError(f"{name} must not be negative, but its low is {law.low}")
    elif name == "performance":
        raise ValueError("performance: a market law is for prices")
    else:
        law.check(name)
    return law


def _number(name: str, value: Any) -> float:
    try:
        number = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name}: {value!r} is not a finite number")
    return number
