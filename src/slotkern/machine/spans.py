"""Free slots of a machine: the complement of its busy spans within a horizon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.foundation.checks import (
    column_label,
    hint_keywords,
    meant,
    number,
    row_label,
    shown,
)
from slotkern.foundation.logger import log
from slotkern.slots import make_slots, row_order

from .clock import Clock, is_number
from .frames import columns_of, source_name
from .moments import Moments
from .nodes import Machine, numbers_of

__all__ = ["FreeSlots", "free_slots", "gaps"]


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
    """

    slots: NDArray[Any]
    machine: Machine
    clock: Clock | None
    busy: NDArray[Any] = field(default_factory=lambda: np.empty(0, BUSY))

    def __len__(self) -> int:
        return len(self.slots)

    def _as_table(self) -> Table:
        """Return the free slots as a table."""
        terms = self.clock, self.machine
        return Table.from_array(
            repr(self), self.slots, terms=terms, times=("start", "end")
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
    clock: Clock | None = None,
    zone: Any = None,
    unit: str = "s",
    prices: Any = None,
) -> FreeSlots:
    """Return the free slots of a machine: the complement of its busy spans.

    Parameters
    ----------
    machine : Machine
    busy : table, optional
        A table, as for `Machine`, with the columns ``node`` (names, hostlists such as
        ``n[001-004]``, or ids), ``start`` and ``end``. Spans may be in any order,
        overlap, and exceed the horizon. A missing end (or ``Unknown``, as in sacct)
        means busy forever. Other columns are kept in `FreeSlots.busy`; pages and
        pictures colour busy spans by ``reason`` and name their ``owner``.
    start, end : str, datetime, date or number
        The horizon [start, end); the number inf for an unlimited one.
    clock : Clock, optional
        The clock of numbers; by default, time 0 is `start` if that is a date.
    zone, unit : str
        The zone and unit of the default clock.
    prices : table, optional
        Prices by time: ``start``, ``end``, ``price``, and ``node`` if not for all
        nodes. At other times a node has its price in the machine. A slot has one price,
        so free time is split into slots at each change of price.

    Returns
    -------
    FreeSlots
        The slots with machine and clock, which a `SlotPool` made of it takes over.

    Raises
    ------
    ValueError, TypeError
        For unknown nodes, spans that end before they start, dates mixed with numbers,
        dates without a zone, and prices that overlap or split the free time into more
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
    if clock is None and not is_number(start):
        clock = Clock._from(start, "start", unit, zone)
    elif zone is not None:
        raise ValueError("zone is for a clock that is made here; this one has its own")
    dated = not is_number(start)
    if dated == is_number(end) and end != np.inf:
        raise TypeError(
            f"start and end must both be dates or both numbers; got {shown(start)} and "
            f"{shown(end)}"
        )
    first = _time(clock, start, "start")
    last = _time(clock, end, "end")
    if not first < last:
        raise ValueError(f"end {end} does not lie after start {start}")
    what = source_name(busy, "busy")
    node, begins, ends, rows = _spans(machine, busy, clock, dated, what)
    spans = _busy(busy, what, node, begins, ends, rows, first, last)
    outside = int(((ends <= first) | (begins >= last)).sum())
    for count, what in (
        (outside, "lie outside the horizon"),
        (int(np.isinf(ends).sum()), "have no end: busy for ever"),
    ):
        if count:
            log.info("%d of %d busy spans %s", count, len(node), what)
    node, free_from, free_to = gaps(len(machine), node, begins, ends, first, last)
    price = machine.price[node]
    if prices is not None:
        segments = _prices(machine, prices, clock, dated, first, last)
        node, free_from, free_to, price = _cut(node, free_from, free_to, *segments)
    slots = make_slots(
        node=node,
        start=free_from,
        end=free_to,
        performance=machine.performance[node],
        price=price,
        **{name: column[node] for name, column in machine.columns.items()},
    )
    return FreeSlots(slots, machine, clock, spans)


def _busy(
    table: Any,
    what: str,
    node: NDArray[Any],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    rows: NDArray[np.int64],
    first: float,
    last: float,
) -> NDArray[Any]:
    """Return the busy spans within the horizon with the further columns of a table."""
    within = np.flatnonzero((start < end) & (start < last) & (end > first))
    columns = {} if table is None else columns_of(table, what)
    further: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
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


def _time(clock: Clock | None, value: Any, name: str) -> float:
    if clock is None:
        return number(name, value, finite=name == "start")
    return clock.time(value, name)


#: The most slots into which prices may split free time: about 1.2 GiB of memory.
MAX_SLOTS = 2**23

Spans = tuple[
    NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]
]
_NO_SPANS: Spans = (
    np.empty(0, np.int32),
    np.empty(0),
    np.empty(0),
    np.empty(0, np.int64),
)


def _spans(
    machine: Machine, table: Any, clock: Clock | None, dated: bool, what: str
) -> Spans:
    """Return nodes, starts, ends and rows of a table of spans."""
    if table is None:
        return _NO_SPANS
    columns = columns_of(table, what)
    if not columns:  # an empty list has no columns
        return _NO_SPANS
    for name in ("node", "start", "end"):
        if name not in columns:
            there = ", ".join(columns) or "none"
            raise ValueError(
                f"{what} has no column {name!r}; it has {there}{meant(name, columns)}"
            )
    columns["end"] = _known_ends(columns["end"], dated)
    rows = max(
        (len(c[0]) if isinstance(c, Moments) else len(c))
        if isinstance(c, Moments) or c.ndim
        else 1
        for c in columns.values()
    )
    if rows == 0:
        return _NO_SPANS
    node, row_of_node = machine._ids_and_rows(
        columns["node"], column_label(what, "node")
    )
    start, end = (
        _column(columns[name], clock, dated, column_label(what, name), name == "end")
        for name in ("start", "end")
    )
    _one_kind(columns["start"], columns["end"], what)
    start, end = np.broadcast_to(start, rows), np.broadcast_to(end, rows)
    if row_of_node is None:
        node = np.broadcast_to(node, rows)
    wrong = end < start
    if wrong.any():
        row = int(wrong.argmax())
        last, first = _format_time(clock, end[row]), _format_time(clock, start[row])
        raise ValueError(
            f"{what}, {row_label(what, row)}: the span ends at {last}, before it "
            f"starts at {first}"
        )
    if row_of_node is None:
        return node, start, end, np.arange(rows)
    if np.ndim(columns["node"]) == 0:  # one hostlist for all rows
        row_of_node = np.repeat(np.arange(rows), len(node))
        node = np.tile(node, rows)
    return node, start[row_of_node], end[row_of_node], row_of_node


def _column(
    values: Any, clock: Clock | None, dated: bool, name: str, endless: bool
) -> NDArray[np.float64]:
    numeric = not isinstance(values, Moments) and values.dtype.kind in "iuf"
    if numeric == dated:
        if dated:
            raise TypeError(
                f"{name} holds numbers, but start and end of the horizon are dates; "
                "write all as dates, or all as numbers of the clock's units"
            )
        raise TypeError(
            f"{name} holds dates, but start and end of the horizon are numbers; write "
            "start= and end= as dates"
        )
    if not numeric:
        assert clock is not None
        return clock.times(values, name, missing=np.inf if endless else None)
    found = np.asarray(values, np.float64)
    wrong = np.isnan(found) & (not endless)
    if wrong.any():
        place = row_label(name, int(wrong.argmax()))
        raise ValueError(f"{name}, {place}: a time is missing")
    return np.where(np.isnan(found), np.inf, found)


#: Words of accounting systems for an end that is not known yet, in lower case.
_UNKNOWN = ("unknown", "none", "n/a", "nat", "nan")


def _known_ends(values: Any, dated: bool) -> Any:
    """Replace words for an unknown end, such as those of `sacct`, by missing values."""
    if isinstance(values, Moments) or values.dtype.kind != "U":
        return values
    texts = np.char.strip(np.char.lower(values))
    unknown = np.isin(texts, _UNKNOWN)
    if not unknown.any():
        return values
    kept = np.where(unknown, "" if dated else "nan", values)
    if dated:
        return kept
    try:
        return kept.astype(np.float64)
    except ValueError:
        return values


def _one_kind(start: Any, end: Any, what: str) -> None:
    """Refuse starts with a zone beside ends without one, and vice versa."""
    from .moments import moments_of

    kinds = []
    for values in (start, end):
        if not isinstance(values, Moments) and values.dtype.kind in "iuf":
            return
        moments = moments_of(values, what)
        there = not np.isnat(moments.values).all()
        kinds.append(moments.aware if there else None)
    if set(kinds) >= {True, False}:
        names = ("start", "end") if kinds[0] else ("end", "start")
        raise ValueError(
            f"{what}: the times of {names[0]} have a zone, those of {names[1]} have "
            "none"
        )


def _format_time(clock: Clock | None, time: float) -> str:
    when = None if clock is None else clock.datetime(time)
    return f"{time:g}" if when is None else str(when)


def gaps(
    nodes: int,
    node: NDArray[Any],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    first: float,
    last: float,
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
    """Return the complement of busy spans in [first, last): node, start and end.

    Spans may overlap, touch, be empty or lie outside.
    """
    within = (start < end) & (start < last) & (end > first)
    every = np.arange(nodes, dtype=np.int32)
    node = np.concatenate((every, node[within].astype(np.int32)))
    from_, to = np.full(nodes, first), np.full(nodes, last)
    # Starts and ends are sorted independently. There is a gap between the k-th end and
    # the next start if that end is earlier: then all k spans that started have ended.
    start = np.concatenate((to, start[within].clip(min=first)))
    end = np.concatenate((from_, end[within].clip(max=last)))
    by_start, by_end = row_order(start, node), row_order(end, node)
    node, start, end = node[by_start], start[by_start], end[by_end]
    gap = np.flatnonzero(end < start)
    return node[gap], end[gap], start[gap]


Segments = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]


def _prices(
    machine: Machine,
    table: Any,
    clock: Clock | None,
    dated: bool,
    first: float,
    last: float,
) -> Segments:
    """Return node, start and price of segments that cover each node's horizon."""
    columns = columns_of(table, "prices")
    if "price" not in columns:
        raise ValueError(f"prices has no column 'price'; it has {', '.join(columns)}")
    price = numbers_of(np.atleast_1d(columns["price"]), "prices", "price")
    if (price < 0).any():
        row = int((price < 0).argmax())
        raise ValueError(f"prices, row {row}: price {price[row]} is not at least 0")
    everywhere = "node" not in columns
    if everywhere:
        columns["node"] = np.zeros(len(price), np.int64)
    node, start, end, given = _spans(machine, columns, clock, dated, "prices")
    price = price[given] if len(price) > 1 else np.broadcast_to(price, len(start))
    rows = np.lexsort((start, node))
    rows = rows[end[rows] > start[rows]]  # an empty span overlaps nothing
    node, start, end = node[rows], start[rows], end[rows]
    clash = (node[1:] == node[:-1]) & (end[:-1] > start[1:])
    if clash.any():
        k = int(clash.argmax())
        one, other = sorted(given[rows[k : k + 2]].tolist())
        raise ValueError(f"prices, row {other}: overlaps the span of row {one}")
    if everywhere:
        size = len(machine)
        within = (start < last) & (end > first)
        start, end, rows = start[within], end[within], rows[within]
        _check_size(size * (len(start) + 1), "price segments of all nodes")
        node = np.repeat(np.arange(size, dtype=np.int32), len(start))
        start, end, rows = np.tile(start, size), np.tile(end, size), np.tile(rows, size)
    price = price[rows]
    # Time that the table does not cover has the price of the machine.
    rest, rest_start, _ = gaps(len(machine), node, start, end, first, last)
    seen = (start < last) & (end > first) & (start < end)
    node = np.concatenate((node[seen], rest))
    begin = np.concatenate((start[seen].clip(min=first), rest_start))
    price = np.concatenate((price[seen], machine.price[rest]))
    order = np.lexsort((begin, node))
    node, begin, price = node[order], begin[order], price[order]
    new = np.ones(len(node), np.bool_)  # merge neighbours of equal price
    new[1:] = (node[1:] != node[:-1]) | (price[1:] != price[:-1])
    return node[new], begin[new], price[new]


def _check_size(slots: int, what: str) -> None:
    """Raise an error for too many slots, before they are allocated."""
    if slots > MAX_SLOTS:
        raise ValueError(
            f"prices: {slots:,} {what} are more than {MAX_SLOTS:,}; take a shorter "
            "horizon, fewer changes of price, or fewer nodes at a time"
        )


def _cut(
    node: NDArray[Any],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    at: NDArray[Any],
    begin: NDArray[np.float64],
    price: NDArray[np.float64],
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Split free spans at the times at which the price of their node changes."""
    times: NDArray[np.float64] = np.unique(np.concatenate((start, end, begin)))

    def key(node: NDArray[Any], time: NDArray[np.float64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = node.astype(np.int64) * len(times)
        return found + np.searchsorted(times, time)

    keys = key(at, begin)
    first = np.searchsorted(keys, key(node, start), "right") - 1
    count = np.searchsorted(keys, key(node, end), "left") - first
    _check_size(int(count.sum()), "free slots, cut where prices change,")
    span = np.repeat(np.arange(len(node)), count)
    before = np.cumsum(count) - count
    piece = np.arange(len(span)) + np.repeat(first - before, count)
    after = np.append(begin[1:], np.inf)
    after[:-1][at[1:] != at[:-1]] = np.inf
    return (
        node[span],
        np.maximum(start[span], begin[piece]),
        np.minimum(end[span], after[piece]),
        price[piece],
    )
