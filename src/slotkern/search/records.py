"""Results of searches as columns of tables and as objects of JSON.

The command line and the service use the same field names: those of docs/json.md.
Missing values are None; times of a clock get a further column with dates
(`DateColumn`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import REQUEST_FIELDS, Request
from slotkern._kernels.windows import Window, json_from_window
from slotkern.files.arrow import pyarrow
from slotkern.foundation.hostlists import quoted
from slotkern.machine.clock import Clock

__all__ = [
    "SURROGATE",
    "Columns",
    "DateColumn",
    "JsonText",
    "arrow_table",
    "cells",
    "date_columns",
    "hostlist",
    "list_text",
    "listing_columns",
    "object_text",
    "part_columns",
    "request_record",
    "strict_json",
    "strict_text",
    "window_record",
    "window_text",
]


#: Half of a character: Python's texts may have it, those of UTF-8 may not.
SURROGATE = re.compile("[\ud800-\udfff]")


class DateColumn(NamedTuple):
    """A column of times: dates as text in csv and json, timestamps in parquet.

    `times` are numbers of `clock`; NaN is a missing value.
    """

    clock: Clock
    times: NDArray[np.float64]


class JsonText:
    """A value as JSON, which `object_text` inserts as it is."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


Columns = Mapping[str, DateColumn | NDArray[Any] | Sequence[Any]]


def part_columns(
    free: Any, slots: NDArray[Any], windows: Sequence[Any]
) -> dict[str, Any]:
    """Return the columns of a file with one row per part of the windows.

    Parameters
    ----------
    free : structured array or SlotPool
        The slots that were searched; its machine and clock, if any, add the columns
        name, start_time and end_time.
    slots : structured array
        The slots to which the parts' row numbers refer; its other columns are added.
    windows : sequence of Window
    """
    none = np.empty(0, [("row", "i8"), ("node", "i4"), *_SPAN])
    parts = np.concatenate([window.slots for window in windows]) if windows else none
    sizes = [len(window) for window in windows]
    columns: dict[str, Any] = {
        "window": np.repeat(np.arange(1, len(windows) + 1), sizes),
        "node": parts["node"],
    }
    machine, clock = getattr(free, "machine", None), getattr(free, "clock", None)
    if machine is not None:
        columns["name"] = machine.names[parts["node"]]
    columns |= {name: parts[name] for name, _ in _SPAN}
    if clock is not None:
        columns |= date_columns(clock, {name: parts[name] for name in ("start", "end")})
    columns |= {"length": parts["end"] - parts["start"], "row": parts["row"]}
    if "count" in (parts.dtype.names or ()):  # parts that take shares of nodes
        columns |= {"count": parts["count"]} | _share_columns(windows)
    chosen = slots[parts["row"]]
    more = {name: chosen[name] for name in slots.dtype.names or ()}
    return columns | {name: c for name, c in more.items() if name not in columns}


def _share_columns(windows: Sequence[Any]) -> dict[str, Any]:
    """Return what each part takes of its node, one column for each resource."""
    names = dict.fromkeys(name for window in windows for name in window.share or ())
    return {
        f"share.{name}": np.concatenate(
            [np.full(len(w), (w.share or {}).get(name, 0)) for w in windows]
        )
        for name in names
    }


def window_record(free: Any, slots: NDArray[Any], window: Any) -> dict[str, Any]:
    """Return a window for JSON: its totals and one object per part.

    The parts have the columns of `part_columns` except the number of the window.
    """
    columns = part_columns(free, slots, [window])
    first = [name for name in _FIRST if name in columns]
    others = [name for name in columns if name not in (*first, "window")]
    lists = {name: cells(columns[name]) for name in (*first, *others)}
    rows = zip(*lists.values(), strict=True)
    names = ("start", "finish", "runtime", "cost", "processor_time")
    whole = {name: getattr(window, name) for name in (*names, *_PROOF)}
    whole |= _more_of(window)
    return whole | {"slots": [dict(zip(lists, row, strict=True)) for row in rows]}


def _more_of(window: Any) -> dict[str, Any]:
    """Return the members of a window between its totals and its parts."""
    used = {"uses": window.uses, "account": window.account}
    found = {name: value for name, value in used.items() if value is not None}
    if window.clock is not None:
        for name in ("start", "finish"):
            dates_of = window.clock.text([getattr(window, name)])
            found[f"{name}_time"] = dates_of[0].item()
    if getattr(window, "share", None):
        found["share"] = dict(window.share)
    return found


def window_text(free: Any, slots: NDArray[Any], window: Any) -> JsonText:
    """Return the JSON of `window_record`, without an object for each part.

    A service spends more time on the record of a window than on its search.
    """
    if type(window) is not Window or not len(window):
        return JsonText(strict_text(window_record(free, slots, window)))
    machine, clock = getattr(free, "machine", None), getattr(free, "clock", None)
    rows, nodes, lengths, _ = zip(*window._state()[-1], strict=True)
    columns: dict[str, Any] = {"row": None, "node": None}
    if machine is not None:
        columns["name"] = _texts(machine.names[[*nodes]].tolist())
    columns |= {"start": None, "end": None}
    if clock is not None:
        start = window.start
        times = {"start": [start], "end": [start + length for length in lengths]}
        for name, column in date_columns(clock, times).items():
            columns[name] = _texts(cells(column))
        columns["start_time"] *= len(rows)
    columns |= {"length": None, "cost": None}
    for name in slots.dtype.names or ():
        if name not in columns and name != "window":
            found = slots[name]
            is_float = found.dtype == np.float64 and found.ndim == 1
            columns[name] = found if is_float else _texts(cells(found[[*rows]]))
    order = [name for name in _FIRST if name in columns]
    order += [name for name in columns if name not in order]
    more = b""
    if window.special is not None or window.clock is not None:
        more = strict_text(_more_of(window)).encode()[1:-1]
        more = more and b"," + more
    named = {_quoted(name): columns[name] for name in order}
    return JsonText(json_from_window(window, more, named))


@lru_cache(256)
def _quoted(name: str) -> bytes:
    return strict_text(name).encode()


def _texts(values: Sequence[Any]) -> list[bytes]:
    return [strict_text(value).encode() for value in values]


_PROOF = ("value", "proven", "proven_over", "bound")
_FIRST = (
    *("row", "node", "name", "start", "end", "start_time", "end_time"),
    *("length", "cost"),
)


_SPAN = (("start", "f8"), ("end", "f8"), ("cost", "f8"))


def date_columns(clock: Clock, columns: Columns) -> dict[str, DateColumn]:
    """Return a column of dates ``NAME_time`` for each column of times."""
    return {
        f"{name}_time": DateColumn(clock, np.asarray(values, np.float64))
        for name, values in columns.items()
    }


def hostlist(names: Iterable[str]) -> str:
    """Return the names of nodes as one cell of a file, as in a listing of bookings."""
    return ",".join(map(quoted, names))


def listing_columns(table: NDArray[Any], clock: Clock | None) -> dict[str, Any]:
    """Return the columns of a listing of windows, with columns of dates."""
    columns: dict[str, Any] = {name: table[name] for name in table.dtype.names or ()}
    if clock is not None:
        columns |= date_columns(
            clock, {name: table[name] for name in ("start", "finish")}
        )
    return columns


def arrow_table(columns: Columns) -> Any:
    """Return columns as a pyarrow.Table; missing values are null."""
    pa = pyarrow()
    arrays = {}
    for name, column in columns.items():
        if isinstance(column, DateColumn):
            utc = column.clock.utc(column.times)
            zone = column.clock.zone or "UTC"
            kind = pa.timestamp(np.datetime_data(utc.dtype)[0], zone)
            arrays[name] = pa.array(utc).cast(kind)
        elif not isinstance(column, np.ndarray) or column.ndim > 1:
            arrays[name] = pa.array(cells(column))
        elif column.dtype.kind != "f":
            arrays[name] = pa.array(column)
        else:
            # A column of floats also if all values are missing.
            arrays[name] = pa.array(cells(column)).cast(pa.float64())
    return pa.table(arrays)


def cells(column: Any) -> list[Any]:
    """Return a column as Python values; None for missing values."""
    if isinstance(column, DateColumn):
        column = column.clock.text(column.times)
        return [text or None for text in column.tolist()]
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuU":
        return values  # of types without NaN
    return [None if value != value else value for value in values]


_fields_of = attrgetter(*REQUEST_FIELDS)


def request_record(request: Request) -> dict[str, Any]:
    """Return the fields of a request for JSON as given; None for an infinite limit."""
    values = [
        None if type(value) is float and not math.isfinite(value) else value
        for value in _fields_of(request)
    ]
    fields = dict(zip(REQUEST_FIELDS, values, strict=True))
    fields["limits"] = [limit.text for limit in request.limits]
    fields |= request.special or {}
    if request.walltime is not None:
        fields["walltime"] = request.walltime
    return fields


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def object_text(found: Mapping[str, Any]) -> JsonText:
    """Return an object as `strict_text` does, with its members of `JsonText`."""
    pieces, plain = [], {}
    for name, value in found.items():
        if type(value) is not JsonText:
            plain[name] = value
            continue
        if plain:
            pieces.append(strict_text(plain)[1:-1])
            plain = {}
        pieces.append(f"{_encode(name)}:{value.text}")
    if plain:
        pieces.append(strict_text(plain)[1:-1])
    return JsonText(f"{{{','.join(pieces)}}}")


def list_text(items: Iterable[JsonText]) -> JsonText:
    """Return a list of values that are JSON."""
    return JsonText(f"[{','.join([item.text for item in items])}]")


def strict_text(value: Any) -> str:
    """Return the shortest text of `strict_json`; without a copy if none is needed.

    Lone surrogates, which UTF-8 does not have, are escaped.
    """
    try:
        text = _encode(value)
    except (TypeError, ValueError):  # a type, or a number, that JSON does not have
        text = _encode(strict_json(value))
    return text if text.isascii() else SURROGATE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):x}"


def strict_json(value: Any) -> Any:
    """Return a value in the types of strict JSON; NaN and infinities become null."""
    match value:
        case JsonText():
            return json.loads(value.text)
        case dict():
            return {str(key): strict_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [strict_json(inner) for inner in value]
        case np.ndarray() | np.generic():
            return strict_json(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)
