"""The free slots that a workload trace leaves on its machine.

All jobs are placed on processors at their recorded starts by a first-fit replay; the
complement of their spans within a horizon are the free slots.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.replay import replay
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.environment import Price, Uniform
from slotkern.files.atomic import AnyPath, as_path
from slotkern.foundation.checks import hint_keywords, integer
from slotkern.foundation.context import SlotContext
from slotkern.foundation.logger import log
from slotkern.machine.calendar import duration_of
from slotkern.machine.clock import Clock
from slotkern.machine.gaps import gaps
from slotkern.slots import make_slots
from slotkern.traces.clean import width_of
from slotkern.traces.read import MAX_BYTES, read_trace
from slotkern.traces.trace import Trace

if TYPE_CHECKING:
    from slotkern.typing import Duration, Time

__all__ = [
    "PlacedTrace",
    "TraceSlots",
    "most_at_once",
    "node_laws",
    "place_trace",
    "ranges",
    "slots_from_trace",
]

#: The most processors of a machine; each one is a node with slots.
_MAX_PROCESSORS = 2**20


@dataclass(frozen=True, repr=False)
class TraceSlots(HasPlot):
    """The free slots that a trace leaves on its machine, and counts of its jobs.

    Attributes
    ----------
    slots : structured array
        The slots, as `make_slots` returns them; each node is a processor.
    jobs : int
        The number of jobs of the whole trace that were placed.
    delayed : int
        The number of placed jobs that start later than recorded.
    skipped : int
        The number of jobs left out: run time or processors not positive, or start
        unknown.
    processors : int
        The number of processors of the machine.
    clock : Clock or None
        The clock of the trace, if its header contains the begin.
    start, end : float
        The horizon, in seconds of the trace.
    """

    slots: NDArray[Any]
    jobs: int
    delayed: int
    skipped: int
    processors: int
    clock: Clock | None
    start: float
    end: float

    def _as_table(self) -> Table:
        """Return the free slots as a table."""
        context = None if self.clock is None else SlotContext(self.clock)
        return Table.from_array(
            repr(self), self.slots, context=context, times=("start", "end")
        )

    def __repr__(self) -> str:
        when = "" if self.clock is None else f", {self.clock}"
        return (
            f"TraceSlots({len(self.slots)} slots, jobs={self.jobs}, "
            f"delayed={self.delayed}, skipped={self.skipped}, "
            f"processors={self.processors}{when})"
        )


@hint_keywords
def slots_from_trace(
    path: AnyPath,
    at: Time,
    horizon: Duration,
    *,
    processors: int | None = None,
    performance: float | str | Uniform = 1.0,
    price: float | str | Price | Uniform = 0.0,
    seed: int = 0,
    max_bytes: int = MAX_BYTES,
) -> TraceSlots:
    """Return the free slots of the machine of a trace in [at, at + horizon).

    Every job of the trace is placed at its recorded start (submit + wait), in the
    order of starts and of the file, on the lowest-numbered free processors. Real logs
    overcommit: a job that does not fit at its recorded start is delayed until it fits.
    It starts before delayed jobs whose recorded start is later, but does not delay jobs
    that fit.

    Parameters
    ----------
    path : path
        A trace, as `read_trace` reads it.
    at : float, date or str
        The start of the horizon in seconds of the trace, or a date if the header
        contains the start of the trace.
    horizon : float, timedelta or str
        The length of the horizon in seconds, or as in ``"12h"``.
    processors : int, optional
        The number of processors of the machine; by default ``MaxProcs`` of the header,
        or else the most processors that the jobs use at the same time.
    performance : float, str or Uniform
        The performance of the processors: a number for all, by default 1, or a
        distribution from which they are drawn. ``"uniform:2:10"`` draws integers from 2
        to 10, ``"uniform:2.0:10.0"`` real numbers.
    price : float, str, Price or Uniform
        The price of a processor per time unit: likewise, by default 0, or
        ``"market:LEVEL[:EXPONENT[:DEVIATION]]"``, which is level *
        performance**exponent * (1 + deviation * N(0, 1)), by default with exponent 1
        and deviation 0.2.
    seed : int
        The seed of the distributions; performances do not depend on that of prices.
    max_bytes : int
        The largest allowed size of the decompressed trace, in bytes.

    Returns
    -------
    TraceSlots
        The slots in seconds of the trace (not relative to `at`), with nodes numbered
        from 0; the numbers of placed, delayed and skipped jobs are of the whole trace.

    Raises
    ------
    ValueError
        For a malformed trace (the message contains file and line), a trace without jobs
        that can be placed, a job wider than the machine, a machine of more than 2**20
        processors, a horizon that is not finite and positive or begins after the end of
        the last job, and an invalid distribution.
    OSError
        If the file cannot be opened.

    Notes
    -----
    The processors of a job are field 5 (allocated), or else field 8 (requested). Jobs
    with a run time <= 0, no known processors or no known start are skipped. A
    processor is free from the end of its job.

    The placement is a replay of the recorded starts with policy "first-fit". Time
    O(n (processors / 64 + log n + waiting)), memory O(n + processors + slots).

    Examples
    --------
    >>> import slotkern as sk
    >>> day = sk.slots_from_trace("trace.swf", 86400, 3600)  # doctest: +SKIP
    """
    laws = node_laws(performance, price)
    if processors is not None:
        processors = integer("processors", processors)
    whole = read_trace(as_path(path), max_bytes=max_bytes)
    span = _span(whole, at, horizon)
    placed = place_trace(whole, processors)
    return placed.slots(*span, *laws, integer("seed", seed, least=0))


@dataclass(frozen=True, repr=False)
class PlacedTrace:
    """The jobs of a trace placed on processors, from which free slots are computed.

    Attributes
    ----------
    source : str
        The file of the trace.
    clock : Clock or None
        The clock of the trace, if its header contains the begin.
    recorded, begin, run_time : ndarray of float64
        The recorded start, the actual start and the run time of each job, in seconds.
    first, count, spans : ndarray
        The spans of processors of each job, as the replay returns them.
    skipped, processors : int
        As in `TraceSlots`.
    """

    source: str
    clock: Clock | None
    recorded: NDArray[np.float64]
    begin: NDArray[np.float64]
    run_time: NDArray[np.float64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    spans: NDArray[np.int32]
    skipped: int
    processors: int

    def busy(
        self, at: float, until: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return node, start and end of each part that overlaps [at, until)."""
        begin, end = self.begin, self.begin + self.run_time
        seen = np.flatnonzero((begin < until) & (end > at) & (begin < end))
        job = np.repeat(seen, self.count[seen])
        span = self.spans[ranges(self.first[seen], self.count[seen])].astype(np.int64)
        job = np.repeat(job, span[:, 1])
        return ranges(span[:, 0], span[:, 1]), begin[job], end[job]

    def machine(
        self, performance: Uniform, price: Price | Uniform, seed: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the performance and the price of each processor."""
        streams = np.random.SeedSequence(seed).spawn(2)
        rng, price_rng = (np.random.Generator(np.random.PCG64(s)) for s in streams)
        speed = performance.draw(rng, self.processors)
        if isinstance(price, Price):
            return speed, price.draw(price_rng, speed)
        return speed, price.draw(price_rng, self.processors)

    def slots(
        self,
        at: float,
        horizon: float,
        performance: Uniform,
        price: Price | Uniform,
        seed: int,
    ) -> TraceSlots:
        """Return the free slots in [at, at + horizon); see `slots_from_trace`."""
        last = float((self.begin + self.run_time).max())
        if at >= last:
            reason = f"at {at:.17g} is not before the end of its last job, {last:.17g}"
            raise ValueError(f"{self.source}: {reason}")
        size, until = self.processors, at + horizon
        node, free_from, free_to = gaps(size, *self.busy(at, until), at, until)
        node_performance, node_price = self.machine(performance, price, seed)
        slots = make_slots(
            node=node,
            start=free_from,
            end=free_to,
            performance=node_performance[node],
            price=node_price[node],
        )
        delayed = int((self.begin > self.recorded).sum())
        placed = self.begin.size, delayed, self.skipped, size
        return TraceSlots(slots, *placed, self.clock, at, until)


def place_trace(whole: Trace, processors: int | None = None) -> PlacedTrace:
    """Place all jobs of a trace; see `slots_from_trace`.

    Raises
    ------
    ValueError
        If no job can be placed, or the machine is too small or too large.
    """
    trace = whole.jobs
    width = width_of(trace)
    known = (trace["run_time"] > 0) & (width > 0)
    known &= (trace["submit"] >= 0) & (trace["wait"] >= 0)
    if not known.any():
        missing = [
            name for name in ("submit", "wait", "run_time") if (trace[name] < 0).all()
        ] + ["processors"] * bool((width <= 0).all())
        reason = (
            f"no job has a known {' and '.join(missing)}"
            if missing
            else "each lacks one"
        )
        raise ValueError(
            f"{whole.source}: none of {len(trace)} jobs can be placed: that takes "
            f"submit, wait, run_time and processors; {reason}"
        )
    start = trace["submit"] + trace["wait"]
    order = np.flatnonzero(known)[np.argsort(start[known], kind="stable")]
    start, run_time, width = start[order], trace["run_time"][order], width[order]

    size = processors if processors is not None else whole.processors
    if size is None:
        size = most_at_once(start, start + run_time, width)
        reason = "no MaxProcs: the machine has the %d processors that jobs use at once"
        log.info(f"%s: {reason}", whole.source, size)
    if not 1 <= size <= _MAX_PROCESSORS:
        reason = f"{size} processors are not between 1 and {_MAX_PROCESSORS}"
        raise ValueError(f"{whole.source}: {reason}; processors= sets another number")
    if (wide := width > size).any():
        row = int(wide.argmax())
        reason = f"job {trace['job'][order[row]]} runs on {width[row]} processors"
        raise ValueError(f"{whole.source}: {reason}, but the machine has {size}")

    nothing = np.empty(0)
    begin, first, count, spans, _ = replay(
        start,
        run_time,
        run_time,
        width.astype(np.int32),
        size,
        nothing,
        nothing,
        nothing.astype(np.int32),
        "first-fit",
    )
    skipped = trace.size - start.size
    if skipped:
        reason = "%d of %d jobs have no known start, run time or processors"
        log.warning(f"%s: {reason}", whole.source, skipped, trace.size)
    if delayed := int((begin > start).sum()):
        log.info("%s: %d jobs start later than recorded", whole.source, delayed)
    return PlacedTrace(
        source=whole.source,
        clock=whole.clock,
        recorded=start,
        begin=begin,
        run_time=run_time,
        first=first,
        count=count,
        spans=spans,
        skipped=skipped,
        processors=size,
    )


def _span(trace: Trace, at: Any, horizon: Any) -> tuple[float, float]:
    """Convert the horizon to seconds of the trace, and check it."""
    if is_textual_date(at):
        at = seconds_since_origin(trace, at, "at")
    if is_textual_date(horizon):
        horizon = duration_of(horizon, "horizon").ns / 1e9
    at, horizon = _number("at", at), _number("horizon", horizon)
    if horizon <= 0 or at + horizon <= at or not math.isfinite(at + horizon):
        raise ValueError(f"horizon {horizon} does not lead from {at} to a later time")
    return at, horizon


def seconds_since_origin(trace: Trace, date: Any, name: str) -> float:
    """Convert a date to seconds since the start of a trace."""
    if trace.clock is None:
        raise ValueError(
            f"{name}: {date!r} is not a finite number, and the header of "
            f"{trace.source or 'the trace'} does not contain the start of the trace "
            "(UnixStartTime)"
        )
    return trace.clock.time(date, name)


def is_textual_date(value: Any) -> bool:
    """Return whether a time is a date or duration, rather than a number or its text."""
    if not isinstance(value, str):
        return isinstance(value, (dt.date, dt.timedelta, np.datetime64, np.timedelta64))
    try:
        float(value)
    except ValueError:
        return True
    return False


def ranges(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the integers [first, first + count) of all pairs."""
    before = np.cumsum(count) - count
    found: NDArray[np.int64] = np.arange(count.sum()) + np.repeat(first - before, count)
    return found


def most_at_once(
    start: NDArray[np.float64], end: NDArray[np.float64], width: NDArray[np.int64]
) -> int:
    """Return the largest number of processors in use at the same time."""
    change = np.concatenate((-width, width))
    order = np.lexsort((change, np.concatenate((end, start))))  # ends precede starts
    return int(change[order].cumsum().max(initial=0))


# --- performance and price ------------------------------------------------------------


def node_laws(performance: Any, price: Any) -> tuple[Uniform, Price | Uniform]:
    """Parse and check the distributions of performances and prices of nodes."""
    performance_law = parse_law("performance", performance)
    assert isinstance(performance_law, Uniform)
    return performance_law, parse_law("price", price)


def parse_law(name: str, given: Any) -> Uniform | Price:
    """Convert a number or a text such as "uniform:2:10" to a distribution, checked."""
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
