"""Free slots of a machine: the complement of its busy spans within a horizon.

Time in which nodes are not available counts as busy. `free_slots` goes one way: tables
are read as columns, a clock converts these to numbers, the gaps are computed, and the
result is made of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.files.atomic import as_path
from slotkern.foundation.checks import hint_keywords, number, quote
from slotkern.foundation.context import SlotContext
from slotkern.foundation.hostlists import fold
from slotkern.foundation.logger import log
from slotkern.slots import make_slots
from slotkern.tariffs.mapping import Tariffs

from .calendar import Moments
from .clock import Clock, is_number
from .files import read_columns
from .frames import source_name
from .gaps import cut_at_prices, gaps
from .nodes import Machine
from .shared_time import free_amounts, taken_amounts
from .span_tables import (
    NO_SPANS,
    Horizon,
    Spans,
    SpanTable,
    numbers_of_spans,
    read_spans,
)

__all__ = ["FreeSlots", "free_slots", "why_busy"]


#: The first fields of a busy span; further columns of the user's table follow.
BUSY = np.dtype([("node", "i4"), ("start", "f8"), ("end", "f8")])


@dataclass(frozen=True, repr=False)
class FreeSlots(HasPlot):
    """The free slots of a machine; all functions that take slots accept it.

    Attributes
    ----------
    slots : structured array
        As `make_slots` returns them, with the machine's further columns; a node's id is
        its row in the machine.
    machine : Machine
    clock : Clock or None
        The clock of the times; None if they were given as numbers without a clock.
    busy : structured array
        The busy spans within the horizon, cut to it: node, start, end, and the further
        columns of the table that was given. Pages and pictures colour and label spans
        by ``reason`` and ``owner``.
    tariffs : Tariffs or None
        The tariffs that the column ``tariff`` of the slots names.
    amounts : structured array or None
        For a machine with capacity, the free amounts by time: node, start, end, and a
        field for each resource. One row for each span in which they are constant, by
        (node, start). The slots are then the time in which a whole node is free.
    """

    slots: NDArray[Any]
    machine: Machine
    clock: Clock | None
    busy: NDArray[Any] = field(default_factory=lambda: np.empty(0, BUSY))
    tariffs: Tariffs | None = None
    amounts: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.slots)

    def _as_table(self) -> Table:
        """Return the free slots as a table."""
        context = SlotContext(self.clock, self.machine, self.tariffs)
        return Table.from_array(
            repr(self), self.slots, context=context, times=("start", "end")
        )

    def __repr__(self) -> str:
        when = "" if self.clock is None else f", {self.clock}"
        return f"FreeSlots({len(self):,} slots of {len(self.machine):,} nodes{when})"


@hint_keywords
def free_slots(
    machine: Machine,
    busy: Any = None,
    *,
    start: Any,
    end: Any,
    available: Any = None,
    clock: Clock | None = None,
    zone: Any = None,
    unit: str = "s",
    prices: Any = None,
    tariffs: Any = None,
    outside: float | None = None,
    cut: bool = False,
) -> FreeSlots:
    """Return the free slots of a machine: the complement of its busy spans.

    Parameters
    ----------
    machine : Machine
    busy : table or path, optional
        A table, as for `Machine`, or the path of one (.csv, .json or .parquet), with
        the columns ``node`` (names, hostlists such as ``n[001-004]``, or ids),
        ``start`` and ``end``. Spans may be in any order, overlap, and exceed the
        horizon. A missing end (or ``Unknown``, as in sacct) means busy forever. Columns
        with the names of the machine's capacity are what a span takes of its node, such
        as ``cores``; a span without any takes all of it. The path of a calendar, .ics,
        is read by `read_ics`; an event without LOCATION takes all nodes. Other columns
        are kept in `FreeSlots.busy`; pages and pictures colour busy spans by ``reason``
        and name their ``owner``.
    start, end : str, datetime, date or number
        The horizon [start, end); the number inf for an unlimited one.
    available : table or path, optional
        The spans in which nodes can be used at all, such as nights or opening hours, as
        for `busy`. Nodes are busy at all other times; a node without a span has no free
        slots. By default nodes are always available.
    clock : Clock, optional
        The clock of numbers; by default, time 0 is `start` if that is a date.
    zone, unit : str
        The zone and unit of the default clock.
    prices : table, optional
        Prices by time: ``start``, ``end``, ``price``, and ``node`` if not for all
        nodes. Each of these nodes has the base price 1 and a tariff of its prices; at
        other times it has its price in the machine.
    tariffs : mapping of str to Tariff, table or mapping, optional
        Tariffs by name, which multiply the price of a node in the machine: a `Tariff`,
        a table as for `Tariff.of_prices` that covers the horizon or the path of its
        file, or factors by times of day such as ``{"06:00": 1, "22:00": 0.5}``. The
        machine's column ``tariff`` names the tariff of each node (empty: none); without
        this column, all nodes have the only tariff. A data frame as for
        `Tariffs.from_table` has all of them.
    outside : float, optional
        The factor at times within the horizon for which a table of `tariffs` has none,
        such as those after the last day-ahead price. Without it such a table is
        refused.
    cut : bool
        False: slots are whole spans with a base price and the column ``tariff``; a part
        costs the integral of its price over its own time. True: split free time at each
        change of price, so that a slot has one price and no tariff; then no part goes
        on beyond a change, and long jobs find no window.

    Returns
    -------
    FreeSlots
        The slots with machine and clock, which a `SlotPool` made of it takes over.

    Raises
    ------
    ValueError, TypeError
        For unknown nodes, spans that end before they start, dates mixed with numbers,
        dates without a zone, prices that overlap, tariffs that lack a price within the
        horizon, names without a tariff, and prices that split the free time into more
        than 2**23 slots (hourly prices of 2,000 nodes for half a year); the message
        contains the table, the row and the value.

    Notes
    -----
    O(k log k) for k spans and nodes, vectorized; a million spans on 20,000 nodes take
    about a second.

    Examples
    --------
    >>> import slotkern as sk
    >>> machine = sk.Machine.homogeneous(2, price=0.5)
    >>> busy = {"node": ["n0"], "start": ["2026-10-25 01:00"],
    ...         "end": ["2026-10-25 04:00"]}
    >>> free = sk.free_slots(machine, busy, start="2026-10-25", end="2026-10-26",
    ...                      zone="Europe/Berlin")
    >>> free.slots[["node", "start", "end"]].tolist()
    [(0, 0.0, 3600.0), (1, 0.0, 90000.0), (0, 18000.0, 90000.0)]
    """
    if not isinstance(machine, Machine):
        raise TypeError(f"machine must be a Machine, got {type(machine).__name__}")
    horizon = _horizon(start, end, clock, unit, zone)
    # tables
    busy_table = _span_table(busy, "busy", machine, horizon)
    price_table = (
        None if prices is None else read_spans(prices, source_name(prices, "prices"))
    )
    # calendar
    spans = numbers_of_spans(busy_table, machine, horizon)
    # numbers
    _log_unusual(spans, horizon)
    closed = _closed(available, machine, horizon)
    amounts, taking, limits = None, spans, (horizon.first, horizon.last)
    if machine.capacity is not None:
        taken = taken_amounts(machine.capacity, busy_table, spans)
        taking = spans.take(np.flatnonzero(taken.any(axis=1)))
        taken = np.concatenate((taken, machine.capacity.amounts[closed.node]))
        amounts = free_amounts(machine.capacity, spans.join(closed), taken, *limits)
    node, begin, until = gaps(len(machine), *taking.join(closed)[:3], *limits)
    from .prices import node_prices, price_segments  # tariffs import this package

    priced = node_prices(machine, horizon, price_table, tariffs, outside)
    price, further = priced.price[node], dict(machine.columns)
    if priced.tariffs is not None and cut:
        segments = price_segments(priced, horizon)
        node, begin, until, price = cut_at_prices(node, begin, until, *segments)
        further.pop("tariff", None)
        priced = priced._replace(tariffs=None)
    elif priced.tariffs is not None:
        further["tariff"] = priced.names()
    # result
    slots = make_slots(
        node=node,
        start=begin,
        end=until,
        performance=machine.performance[node],
        price=price,
        **{name: column[node] for name, column in further.items()},
    )
    kept = _busy(busy_table, spans, horizon)
    return FreeSlots(slots, machine, horizon.clock, kept, priced.tariffs, amounts)


def _horizon(
    start: Any, end: Any, clock: Clock | None, unit: str, zone: Any
) -> Horizon:
    """Convert the start and end of free slots, and make their default clock."""
    dated = not is_number(start)
    if clock is None and dated:
        clock = Clock._from(start, "start", unit, zone)
    elif zone is not None:
        raise ValueError("zone is for a clock that is made here; this one has its own")
    if dated == is_number(end) and end != np.inf:
        raise TypeError(
            f"start and end must both be dates or both numbers; got {quote(start)} and "
            f"{quote(end)}"
        )
    if clock is None:
        first = number("start", start)
        last = number("end", end, finite=False)
    else:
        first, last = clock.time(start, "start"), clock.time(end, "end")
    if not first < last:
        raise ValueError(f"end {end} does not lie after start {start}")
    return Horizon(clock, dated, first, last)


def _span_table(table: Any, what: str, machine: Machine, horizon: Horizon) -> SpanTable:
    """Read spans from a table, its file, or a calendar with events on all nodes."""
    if isinstance(table, (str, bytes, os.PathLike)):
        if as_path(table).suffix.lower() == ".ics":
            from slotkern.calendars.read import read_busy  # it imports this package

            everywhere = fold(machine.names.tolist())
            table = read_busy(table, horizon.clock, *horizon[2:], everywhere=everywhere)
        else:
            texts = ("node", "start", "end") if horizon.dated else ("node",)
            table = read_columns(table, texts)
    return read_spans(table, source_name(table, what))


def _closed(available: Any, machine: Machine, horizon: Horizon) -> Spans:
    """Return the spans in which nodes are not available; none for None."""
    if available is None:
        return NO_SPANS
    table = _span_table(available, "available", machine, horizon)
    node, start, end, _ = numbers_of_spans(table, machine, horizon)
    limits = horizon.first, horizon.last
    never = len(machine) - len(np.unique(node))
    if never:
        log.info("%d of %d nodes have no available time", never, len(machine))
    node, start, end = gaps(len(machine), node, start, end, *limits)
    return Spans(node, start, end, np.full(len(node), -1))


def _log_unusual(spans: Spans, horizon: Horizon) -> None:
    outside = (spans.end <= horizon.first) | (spans.start >= horizon.last)
    for count, what in (
        (int(outside.sum()), "lie outside the horizon"),
        (int(np.isinf(spans.end).sum()), "have no end: busy for ever"),
    ):
        if count:
            log.info("%d of %d busy spans %s", count, len(spans.node), what)


def _busy(table: SpanTable, spans: Spans, horizon: Horizon) -> NDArray[Any]:
    """Return the busy spans within the horizon with the further columns of a table."""
    node, start, end, rows = spans
    first, last = horizon.first, horizon.last
    within = np.flatnonzero((start < end) & (start < last) & (end > first))
    further: dict[str, NDArray[Any]] = {}
    for name, values in table.columns.items():
        if name not in (BUSY.names or ()):
            plain = values.values if isinstance(values, Moments) else np.asarray(values)
            further[name] = plain[rows[within]] if plain.ndim else plain
    kinds = [(name, values.dtype) for name, values in further.items()]
    found = np.empty(len(within), [*BUSY.descr, *kinds])
    found["node"] = node[within]
    found["start"] = start[within].clip(min=first)
    found["end"] = end[within].clip(max=last)
    for name, values in further.items():
        found[name] = values
    return found


def why_busy(free: FreeSlots) -> tuple[NDArray[Any], list[str], list[str]]:
    """Return the busy spans with a reason or an owner, and both as lists.

    The owner replaces a missing reason; a missing owner is an empty text.
    """
    texts = [
        free.busy[name].astype(np.str_).tolist()
        if name in (free.busy.dtype.names or ())
        else [""] * len(free.busy)
        for name in ("reason", "owner")
    ]
    pairs = [(reason or owner, owner) for reason, owner in zip(*texts, strict=True)]
    there = np.flatnonzero([bool(reason) for reason, _ in pairs])
    reasons = [pairs[row][0] for row in there.tolist()]
    return free.busy[there], reasons, [pairs[row][1] for row in there.tolist()]
