"""The free slots that a workload trace leaves on its machine."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._replay import replay
from slotkern.checks import hint_keywords, integer
from slotkern.display import HasPlot
from slotkern.display_table import Table
from slotkern.environment import Price, Uniform
from slotkern.files.atomic import AnyPath, as_path
from slotkern.logger import log
from slotkern.machine.clock import Clock
from slotkern.machine.durations import duration_of
from slotkern.machine.spans import gaps
from slotkern.slots import make_slots
from slotkern.traces.clean import width_of
from slotkern.traces.read import MAX_BYTES, Trace, read_trace

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

#: Every processor is a node with slots of its own: more of them are refused.
_MAX_PROCESSORS = 2**20


@dataclass(frozen=True, repr=False)
class TraceSlots(HasPlot):
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
    clock : Clock or None
        When the trace begins, if its header says it.
    start, end : float
        What was looked at, in the trace's seconds.
    """

    slots: NDArray[Any]
    jobs: int
    delayed: int
    skipped: int
    processors: int
    clock: Clock | None
    start: float
    end: float

    def _shown(self) -> Table:
        """The free slots."""
        terms = None if self.clock is None else (self.clock, None)
        return Table.from_array(
            repr(self), self.slots, terms=terms, times=("start", "end")
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
    """Return the free slots of a trace's machine in [at, at + horizon).

    Every job of the trace is placed at its recorded start (submit + wait), in the
    order of starts and of the file, on the lowest-numbered free processors. Real logs
    overcommit: a job that does not fit then starts as soon as it does, before any job
    whose recorded start is later; it does not hold back jobs that fit.

    Parameters
    ----------
    path : path
        A trace, as `read_trace` reads it.
    at : float, date or str
        When to look, in the trace's seconds; or a date, where the header says when the
        trace begins.
    horizon : float, timedelta or str
        How long from there, in seconds; or as in ``"12h"``.
    processors : int, optional
        The size of the machine; by default the trace's ``MaxProcs``, and without one
        the most processors that the jobs use at any time.
    performance : float, str or Uniform
        The performance of the processors: a number for all, by default 1, or a law to
        draw them from. ``"uniform:2:10"`` draws integers from 2 to 10,
        ``"uniform:2.0:10.0"`` real numbers.
    price : float, str, Price or Uniform
        The price of a processor per time unit: likewise, by default 0, or
        ``"market:LEVEL[:EXPONENT[:DEVIATION]]"``, which is level *
        performance**exponent * (1 + deviation * N(0, 1)), by default with exponent 1
        and deviation 0.2.
    seed : int
        Seed of the laws; performances do not depend on the law of prices.
    max_bytes : int
        The most bytes that the trace may have when unpacked.

    Returns
    -------
    TraceSlots
        ``.slots`` in trace seconds as they stand (not counted from `at`), the nodes
        numbered from 0; and how many jobs were placed, delayed and skipped in the
        whole trace, whatever `at` and `horizon` are.

    Raises
    ------
    ValueError
        For a malformed trace (naming file and line), one without a job that can be
        placed, a job wider than the machine, a machine of more than 2**20 processors, a
        span that is not finite, not positive, or after the last job has ended, a law
        that makes no sense.
    OSError
        When the file cannot be opened.

    Notes
    -----
    The processors of a job are field 5 (allocated), or else field 8 (requested). Jobs
    with a run time <= 0, no known processors or no known start are skipped. A
    processor is free again from the moment its job ends.

    It is the replay "first-fit" of the recorded starts. Time O(n (processors / 64 +
    log n + waiting)), memory O(n + processors + slots).

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
    """The jobs of a trace, each on its processors: what free slots are looked up in.

    Attributes
    ----------
    source : str
        The trace's file.
    clock : Clock or None
        When the trace begins, if its header says it.
    recorded, begin, run_time : ndarray of float64
        When each job started in the trace, when it starts here, and for how long.
    first, count, spans : ndarray
        Its spans of processors, as the replay returns them.
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
        """Return node, start and end of every part that runs within [at, until)."""
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
        """Return what `slots_from_trace` returns."""
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
    """Place every job of a trace as `slots_from_trace` does.

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
        told = (
            f"no job says its {' and '.join(missing)}" if missing else "each lacks one"
        )
        raise ValueError(
            f"{whole.source}: none of {len(trace)} jobs can be placed: that takes "
            f"submit, wait, run_time and processors; {told}"
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
    """Check the span of time to look at, in seconds of the trace."""
    if is_textual_date(at):
        at = seconds_since_origin(trace, at, "at")
    if is_textual_date(horizon):
        horizon = duration_of(horizon, "horizon").ns / 1e9
    at, horizon = _number("at", at), _number("horizon", horizon)
    if horizon <= 0 or at + horizon <= at or not math.isfinite(at + horizon):
        raise ValueError(f"horizon {horizon} does not lead from {at} to a later time")
    return at, horizon


def seconds_since_origin(trace: Trace, date: Any, name: str) -> float:
    """Return a date as the second of a trace that it is."""
    if trace.clock is None:
        raise ValueError(
            f"{name}: {date!r} is not a finite number, and the header of "
            f"{trace.source or 'the trace'} does not say when the trace begins "
            "(UnixStartTime)"
        )
    return trace.clock.time(date, name)


def is_textual_date(value: Any) -> bool:
    """Whether a time is said in words, and not as a number or the text of one."""
    if not isinstance(value, str):
        return isinstance(value, (dt.date, dt.timedelta, np.datetime64, np.timedelta64))
    try:
        float(value)
    except ValueError:
        return True
    return False


def ranges(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers [first, first + count) of every pair, one after another."""
    before = np.cumsum(count) - count
    found: NDArray[np.int64] = np.arange(count.sum()) + np.repeat(first - before, count)
    return found


def most_at_once(
    start: NDArray[np.float64], end: NDArray[np.float64], width: NDArray[np.int64]
) -> int:
    """Return the most processors in use at any time."""
    change = np.concatenate((-width, width))
    order = np.lexsort((change, np.concatenate((end, start))))  # ends before starts
    return int(change[order].cumsum().max(initial=0))


# --- performance and price ------------------------------------------------------------


def node_laws(performance: Any, price: Any) -> tuple[Uniform, Price | Uniform]:
    """Return the laws that `slots_from_trace` takes, checked."""
    performance_law = parse_law("performance", performance)
    assert isinstance(performance_law, Uniform)
    return performance_law, parse_law("price", price)


def parse_law(name: str, given: Any) -> Uniform | Price:
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
