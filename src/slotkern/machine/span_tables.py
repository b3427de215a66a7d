"""Tables of spans of nodes: read as columns, then converted to numbers by a clock."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import column_label, meant, row_label

from .calendar import Moments, moments_of
from .clock import Clock
from .frames import columns_of
from .nodes import Machine

__all__ = [
    "NO_SPANS",
    "Horizon",
    "SpanTable",
    "Spans",
    "numbers_of_spans",
    "read_spans",
]


class Horizon(NamedTuple):
    """The time [first, last) of free slots in numbers of a clock.

    `dated` is True if it was given as dates: then all other times must be dates too.
    """

    clock: Clock | None
    dated: bool
    first: float
    last: float


class SpanTable(NamedTuple):
    """The columns of a table as given; `what` is the name of the table in errors."""

    what: str
    columns: dict[str, Any]


class Spans(NamedTuple):
    """Spans in numbers: node ids, starts, ends, and the row of the table of each."""

    node: NDArray[np.int32]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    row: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Spans:
        """Return the spans that an array of bool or of indices selects."""
        node, start, end, row = self
        return Spans(node[rows], start[rows], end[rows], row[rows])

    def join(self, other: Spans) -> Spans:
        """Return these spans followed by others."""
        return Spans(
            np.concatenate((self.node, other.node)),
            np.concatenate((self.start, other.start)),
            np.concatenate((self.end, other.end)),
            np.concatenate((self.row, other.row)),
        )


#: No spans.
NO_SPANS = Spans(np.empty(0, np.int32), np.empty(0), np.empty(0), np.empty(0, np.int64))


def read_spans(table: Any, what: str) -> SpanTable:
    """Return the columns of a table of spans; none for None."""
    return SpanTable(what, {} if table is None else columns_of(table, what))


def numbers_of_spans(table: SpanTable, machine: Machine, horizon: Horizon) -> Spans:
    """Convert a table of spans to node ids and numbers of the clock.

    Raises
    ------
    ValueError, TypeError
        If a column is missing, a node is unknown, a time has another kind than those of
        the horizon, or a span ends before it starts; the message contains the row.
    """
    what, columns = table
    if not columns:  # None, or an empty list
        return NO_SPANS
    for name in ("node", "start", "end"):
        if name not in columns:
            there = ", ".join(columns) or "none"
            raise ValueError(
                f"{what} has no column {name!r}; it has {there}{meant(name, columns)}"
            )
    columns = columns | {"end": _known_ends(columns["end"], horizon.dated)}
    rows = max(
        (len(c[0]) if isinstance(c, Moments) else len(c))
        if isinstance(c, Moments) or c.ndim
        else 1
        for c in columns.values()
    )
    if rows == 0:
        return NO_SPANS
    node, row_of_node = machine._ids_and_rows(
        columns["node"], column_label(what, "node")
    )
    start, end = (
        _numbers(columns[name], horizon, column_label(what, name), name == "end")
        for name in ("start", "end")
    )
    _one_kind(columns["start"], columns["end"], what)
    start, end = np.broadcast_to(start, rows), np.broadcast_to(end, rows)
    if row_of_node is None:
        node = np.broadcast_to(node, rows)
    wrong = end < start
    if wrong.any():
        row = int(wrong.argmax())
        last, first = (
            _format_time(horizon.clock, end[row]),
            _format_time(horizon.clock, start[row]),
        )
        raise ValueError(
            f"{what}, {row_label(what, row)}: the span ends at {last}, before it "
            f"starts at {first}"
        )
    if row_of_node is None:
        return Spans(node, start, end, np.arange(rows))
    if np.ndim(columns["node"]) == 0:  # one hostlist for all rows
        row_of_node = np.repeat(np.arange(rows), len(node))
        node = np.tile(node, rows)
    return Spans(node, start[row_of_node], end[row_of_node], row_of_node)


def _numbers(
    values: Any, horizon: Horizon, name: str, endless: bool
) -> NDArray[np.float64]:
    numeric = not isinstance(values, Moments) and values.dtype.kind in "iuf"
    if numeric == horizon.dated:
        if horizon.dated:
            raise TypeError(
                f"{name} holds numbers, but start and end of the horizon are dates; "
                "write all as dates, or all as numbers of the clock's units"
            )
        raise TypeError(
            f"{name} holds dates, but start and end of the horizon are numbers; write "
            "start= and end= as dates"
        )
    if not numeric:
        assert horizon.clock is not None
        return horizon.clock.times(values, name, missing=np.inf if endless else None)
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
    """Refuse starts with a zone if ends have none, and vice versa."""
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
