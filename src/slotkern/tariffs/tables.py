"""Tables of prices by time: their columns as breakpoints and factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.files.atomic import AnyPath, as_path, open_atomic
from slotkern.files.slots import format_of
from slotkern.foundation.checks import column_label, meant, number, quote, row_label
from slotkern.machine.calendar import Moments
from slotkern.machine.clock import Clock
from slotkern.machine.files import TABLE_FORMATS, read_columns
from slotkern.machine.frames import FileColumns, columns_of, source_name
from slotkern.machine.nodes import numbers_of, tariff_names

__all__ = [
    "changes_of_spans",
    "factors_of_columns",
    "read_tariffs",
    "tariff_of_table",
    "tariffs_of_table",
    "write_tariffs",
]

_INFINITY = float("inf")
_EVER = (-_INFINITY, _INFINITY)
#: The names of the column of factors.
_VALUES = ("factor", "price")

Changes = tuple[NDArray[np.float64], NDArray[np.float64]]


def read_tariffs(path: AnyPath) -> FileColumns:
    """Return the columns of a file of tariffs; names of tariffs remain text."""
    return read_columns(path, texts=("tariff",))


def write_tariffs(path: AnyPath, table: NDArray[np.void]) -> None:
    """Write a table of tariffs, without an existing file being changed by errors."""
    path = as_path(path)
    if path.suffix.lower() not in TABLE_FORMATS:
        raise ValueError(
            f"{path}: the suffix {path.suffix!r} is not one of "
            f"{', '.join(TABLE_FORMATS)}"
        )
    data = format_of(path).encode(table)
    with open_atomic(path) as file:
        file.write(data)


def tariff_of_table(
    table: Any,
    what: str,
    clock: Any,
    outside: float | None,
    span: tuple[float, float] = _EVER,
) -> Changes:
    """Return the breakpoints and factors of a table; see `Tariff.of_prices`.

    A table that has no price for a time within `span` is refused unless `outside` is
    given. Before and after the span the first and the last factor go on.
    """
    what = source_name(table, what)
    columns = columns_of(table, what)
    spans = _sorted_spans(*_spans(columns, what, clock), what)
    return changes_of_spans(*spans, what, clock, outside, span)


def tariffs_of_table(
    table: Any,
    what: str,
    clock: Any,
    outside: float | None,
    span: tuple[float, float] = _EVER,
) -> dict[str, Changes]:
    """Return breakpoints and factors by name; see `tariff_of_table`."""
    what = source_name(table, what)
    columns = columns_of(table, what)
    if "tariff" not in columns:
        raise _missing("tariff", columns, what)
    rows, start, end, value = _spans(columns, what, clock)
    names = tariff_names(np.atleast_1d(columns["tariff"]), what)
    if (names == "").any():
        row = int((names == "").argmax())
        raise ValueError(
            f"{what}, {row_label(what, row)}: tariff is empty, which means no tariff"
        )
    names = np.broadcast_to(names, len(rows))
    unique, first, code = np.unique(names, return_index=True, return_inverse=True)
    groups = np.split(np.argsort(code, kind="stable"), np.bincount(code).cumsum())
    found = {}
    for k in np.argsort(first).tolist():
        mine, name = groups[k], str(unique[k])
        ends = None if end is None else end[mine]
        spans = _sorted_spans(mine, start[mine], ends, value[mine], what)
        label = f"{what}, tariff {quote(name)}"
        found[name] = changes_of_spans(*spans, label, clock, outside, span)
    return found


def _spans(
    columns: dict[str, Any], what: str, clock: Any
) -> tuple[
    NDArray[np.intp],
    NDArray[np.float64],
    NDArray[np.float64] | None,
    NDArray[np.float64],
]:
    """Return row numbers, starts, ends (None without the column) and factors."""
    if clock is not None and not isinstance(clock, Clock):
        raise TypeError(f"clock must be a Clock, got {quote(clock)}")
    value = factors_of_columns(columns, what)
    if "start" not in columns:
        raise _missing("start", columns, what)
    start = _times(columns["start"], clock, column_label(what, "start"), -_INFINITY)
    end = None
    if "end" in columns:
        end = _times(columns["end"], clock, column_label(what, "end"), _INFINITY)
    names = columns.get("tariff", ())
    size = max(len(value), len(start), len(names) if np.ndim(names) else 0)
    size = max(size, 0 if end is None else len(end))
    value, start = np.broadcast_to(value, size), np.broadcast_to(start, size)
    end = None if end is None else np.broadcast_to(end, size)
    return np.arange(size), start, end, value


def factors_of_columns(columns: dict[str, Any], what: str) -> NDArray[np.float64]:
    """Return the column ``factor`` or ``price``, of finite numbers of at least 0."""
    given = [name for name in _VALUES if name in columns]
    if len(given) != 1:
        if given:
            raise ValueError(f"{what} has both a column 'price' and 'factor'")
        raise _missing("price", columns, what)
    value = numbers_of(np.atleast_1d(columns[given[0]]), what, given[0])
    if (value < 0).any():
        row = int((value < 0).argmax())
        raise ValueError(
            f"{what}, {row_label(what, row)}: {given[0]} {value[row]:g} is below 0; "
            "add the fees to each price"
        )
    return value


def _times(
    values: Any, clock: Clock | None, name: str, missing: float
) -> NDArray[np.float64]:
    """Convert a column of dates or numbers; missing ones become `missing`."""
    if not isinstance(values, Moments) and values.dtype.kind in "iuf":
        found = np.atleast_1d(values).astype(np.float64)
        return np.where(np.isnan(found), missing, found)
    if clock is None:
        raise ValueError(
            f"{name} holds dates; give the clock that converts them, clock="
        )
    if not isinstance(values, Moments):
        values = np.atleast_1d(values)
        if values.dtype.kind == "U":  # the first start of a tariff in a text file
            values = np.where(np.isin(values, ("-inf", "inf")), "", values)
    return clock.times(values, name, missing=missing)


def _sorted_spans(
    rows: NDArray[np.intp],
    start: NDArray[np.float64],
    end: NDArray[np.float64] | None,
    value: NDArray[np.float64],
    what: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return starts, ends and factors of disjoint spans in the order of time.

    Without ends each span ends when the next one starts. Empty spans are omitted;
    spans that overlap are refused.
    """
    order = np.argsort(start, kind="stable")
    rows, start, value = rows[order], start[order], value[order]
    same = np.flatnonzero(start[1:] == start[:-1])
    if same.size and end is None:
        one, other = sorted(rows[same[0] : same[0] + 2].tolist())
        raise ValueError(
            f"{what}, {row_label(what, other)}: starts when {row_label(what, one)} "
            "starts"
        )
    ends = np.append(start[1:], _INFINITY) if end is None else end[order]
    wrong = ends < start
    if wrong.any():
        row = int(rows[wrong][0])
        raise ValueError(
            f"{what}, {row_label(what, row)}: the span ends before it starts"
        )
    some = np.flatnonzero(ends > start)
    rows, start, ends, value = rows[some], start[some], ends[some], value[some]
    clash = np.flatnonzero(ends[:-1] > start[1:])
    if clash.size:
        one, other = sorted(rows[clash[0] : clash[0] + 2].tolist())
        raise ValueError(
            f"{what}, {row_label(what, other)}: overlaps the span of "
            f"{row_label(what, one)}"
        )
    return start, ends, value


def changes_of_spans(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    value: NDArray[np.float64],
    what: str,
    clock: Clock | None,
    outside: float | None,
    span: tuple[float, float],
) -> Changes:
    """Return the changes within `span` of disjoint spans in the order of time.

    The time between them has the factor `outside`.
    """
    before, after = np.append(span[0], end), np.append(start, span[1])
    gap = before < after
    if outside is None:
        within = gap & (before < span[1]) & (after > span[0])
        if within.any():
            k = int(within.argmax())
            raise ValueError(
                f"{what}: there is no price {_when(before[k], after[k], clock)}; add "
                "it, choose an earlier end, or give the price at other times, outside= "
                "(slotkern free --outside)"
            )
        if not len(start):
            raise ValueError(f"{what} has no rows")
        rest = value  # the price goes on outside the span
    else:
        rest = np.full(len(start), number("outside", outside, least=0))
    if not len(start):
        return np.empty(0), np.array([outside], np.float64)
    # Each span is followed by the time after it, which is empty without a gap.
    at = np.column_stack((start, end)).ravel()
    factors = np.column_stack((value, rest)).ravel()
    kept = np.isfinite(at) & (np.append(at[1:], _INFINITY) > at)
    kept[-1] = np.isfinite(at[-1])
    first = rest[0] if np.isfinite(start[0]) else value[0]
    at, factors = at[kept], np.append(first, factors[kept])
    begin, stop = np.searchsorted(at, span[0], "right"), np.searchsorted(at, span[1])
    return at[begin:stop], factors[begin : stop + 1]


def _when(before: float, after: float, clock: Clock | None) -> str:
    def shown(time: float) -> str:
        return f"{time:g}" if clock is None else str(clock.datetime(time))

    if before == -_INFINITY:
        return f"before {shown(after)}"
    if after == _INFINITY:
        return f"from {shown(before)} on"
    return f"from {shown(before)} to {shown(after)}"


def _missing(name: str, columns: dict[str, Any], what: str) -> ValueError:
    there = ", ".join(columns) or "none"
    return ValueError(
        f"{what} has no column {name!r}; it has {there}{meant(name, columns)}"
    )
