"""The data of a page: a JSON description, and columns packed into one text.

`viewer/source/data.ts` is the reader of both.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import visible
from slotkern.machine.clock import Clock
from slotkern.machine.nodes import Machine
from slotkern.machine.zones import segments
from slotkern.plotting.heights import stack_parts
from slotkern.plotting.layout import time_range
from slotkern.plotting.prices import price_ranges
from slotkern.viewer.scene import Background, Groups, Items

__all__ = ["describe_scene", "pack_columns", "to_script_json"]

#: Milliseconds of each unit of a clock.
_UNITS = {
    "ns": 1e-6,
    "us": 1e-3,
    "ms": 1.0,
    "s": 1e3,
    "min": 6e4,
    "h": 3.6e6,
    "d": 8.64e7,
}


def _all_visible(texts: list[str]) -> list[str]:
    """Return the texts with invisible characters escaped (see `visible`)."""
    return texts if "".join(texts).isprintable() else [visible(each) for each in texts]


def describe_scene(
    title: str, background: Background, items: Items, horizon: float | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description of a page (JSON data) and its columns by name."""
    clock: Clock | None = background.clock or items.clock
    machine = background.machine if background.machine is not None else items.machine
    ids = np.union1d(background.nodes, items.parts["node"]).astype(np.int32)
    speed = np.full(len(ids), np.nan, np.float32)
    speed[np.searchsorted(ids, background.nodes)] = background.performance
    spans = [background.free, background.busy, items.parts]
    if background.booked is not None:
        spans.append(background.booked)
    first, last = time_range(spans, horizon if horizon is not None else background.last)
    columns: dict[str, NDArray[Any]] = {"node_id": ids, "node_performance": speed}
    for name, rows in (("free", background.free), ("busy", background.busy)):
        row, order = _sort_by_row(ids, rows)
        columns[f"{name}_row"] = row
        for side in ("start", "end", "price"):
            columns[f"{name}_{side}"] = rows[side][order]
    reasons: list[str] = []
    if background.disabled is not None and len(background.disabled):
        row, order = _sort_by_row(ids, background.disabled)
        names_of, of = np.unique(background.disabled["owner"], return_inverse=True)
        reasons = _all_visible(names_of.tolist())
        columns["disabled_row"] = row
        for side in ("start", "end"):
            columns[f"disabled_{side}"] = background.disabled[side][order]
        columns["disabled_reason"] = of[order].astype(np.int32)
    columns["part_row"], order = _sort_by_row(ids, items.parts)
    for side in ("count", "start", "end", "cost", "item"):
        columns[f"part_{side}"] = items.parts[side][order]
    _add_heights(columns, items.parts["height"][order])
    groups = items.groups
    columns["item_start"], columns["item_finish"] = items.start, items.finish
    columns["item_chosen"] = items.chosen.view(np.uint8)
    of = np.arange(len(items)) if groups is None else groups.of
    columns["item_group"] = of.astype(np.int32)
    fields = []
    for k, each in enumerate(items.fields):
        columns[f"field_{k}"] = each.values.astype(np.float64)
        fields.append({"name": each.name, "kind": each.kind, "column": f"field_{k}"})
    numbered = isinstance(items.names, np.ndarray)
    if numbered:
        columns["item_number"] = np.asarray(items.names).astype(np.float64)
    names = None if numbered else _all_visible([str(name) for name in items.names])
    known_names = machine is not None and len(ids) and int(ids[-1]) < len(machine)
    about = {
        "title": visible(title),
        "rest": background.rest,
        "first": first,
        "last": last,
        "clock": None if clock is None else _describe_clock(clock, first, last),
        "seconds": background.seconds,
        "nodes": {
            "noun": background.noun,
            "count": len(ids),
            "names": _row_names(machine, ids) if known_names else None,
        },
        "items": {
            "noun": items.noun,
            "count": len(items),
            "names": names,
            "fields": fields,
        },
        "groups": _describe_groups(groups, names),
        "reasons": reasons,
        "prices": _add_prices(columns, background, clock, first, last),
        "marks": [{"time": at, "text": visible(text)} for at, text in items.marks],
        "columns": {
            name: {"kind": _type_code(each), "length": len(each)}
            for name, each in columns.items()
        },
    }
    return about, columns


def _row_names(machine: Machine, ids: NDArray[np.int32]) -> list[str]:
    """Return the names of the nodes, with the group of the finest level of each."""
    names = machine.names[ids].tolist()
    if machine.levels:
        groups = machine.columns[machine.levels[0]][ids].tolist()
        names = [f"{name} ({group})" for name, group in zip(names, groups, strict=True)]
    return _all_visible(names)


def _sort_by_row(
    ids: NDArray[np.int32], rows: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the rows of the spans, sorted by (row, start), and that order."""
    row = np.searchsorted(ids, rows["node"])
    order = np.lexsort((rows["start"], row))
    return row[order].astype(np.int32), order


def _add_heights(columns: dict[str, NDArray[Any]], height: NDArray[Any]) -> None:
    """Add the lanes of parts with heights, which are fractions; see `stack_parts`."""
    if not (height < 1).any():
        return
    top, part = stack_parts(
        columns["part_row"].astype(np.intp),
        columns["part_start"],
        columns["part_end"],
        height.astype(np.float64),
    )
    columns["part_lane"] = (top / part).astype(np.float32)
    columns["part_lanes"] = (1 / part).astype(np.float32)


def _add_prices(
    columns: dict[str, NDArray[Any]],
    background: Background,
    clock: Clock | None,
    first: float,
    last: float,
) -> list[dict[str, str]]:
    """Add the prices over time to the columns; return their names and columns."""
    if background.priced is None or not first < last:
        return []
    unit = "" if clock is None else f", per {clock.unit}"
    found = []
    for k, each in enumerate(price_ranges(*background.priced, first, last)):
        found.append({"name": visible(each.name) + unit, "column": f"price_{k}"})
        columns[f"price_{k}_edge"] = each.edges.astype(np.float64)
        columns[f"price_{k}_low"] = each.low.astype(np.float32)
        columns[f"price_{k}_high"] = each.high.astype(np.float32)
    return found


def _describe_groups(groups: Groups | None, names: list[str] | None) -> Any:
    """Return the groups as JSON; up to six named items are a group each."""
    if groups is not None:
        return {"noun": groups.noun, "names": _all_visible([*groups.names])}
    return {"noun": "window", "names": names} if names and len(names) <= 6 else None


def _describe_clock(clock: Clock, first: float, last: float) -> dict[str, Any]:
    """Return a clock as JSON: origin (ms since 1970), unit (ms), zone and offsets.

    Each offset is a pair (time in ms since 1970 from which it holds, seconds that the
    zone adds to UTC).
    """
    zone = clock.origin.tzinfo
    edges = [clock.datetime(first), clock.datetime(last)]
    years = [edge.year for edge in edges if edge is not None]
    assert zone is not None
    changes: list[list[float]] = []
    for year in range(min(years), max(years) + 1):
        known = segments(zone, year)
        for second, offset in zip(
            known.at.tolist(), known.offsets.tolist(), strict=True
        ):
            if not changes:  # the offset before the first change
                changes.append([-8.64e15, offset])
            elif second * 1000 > changes[-1][0] and offset != changes[-1][1]:
                changes.append([second * 1000, offset])
    ticks = clock.utc([0.0])
    tick = _UNITS[np.datetime_data(ticks.dtype)[0]]
    return {
        "origin": int(ticks.astype(np.int64)[0]) * tick,
        "unit": _UNITS[clock.unit],
        "zone": clock.zone or "UTC",
        "offsets": changes,
    }


def _type_code(column: NDArray[Any]) -> str:
    """Return the kind and the size of a column's numbers, such as ``f8``."""
    return f"{column.dtype.kind}{column.dtype.itemsize}"


def pack_columns(columns: dict[str, NDArray[Any]]) -> str:
    """Return columns as one text: shuffled, compressed by zlib, in base64.

    For each column, the first bytes of all numbers come first, then the second bytes,
    and so on: similar bytes are then adjacent, which compresses better and faster.
    """
    shuffled = []
    for column in columns.values():
        small = column.astype(column.dtype.newbyteorder("<"), copy=False)
        raw = np.ascontiguousarray(small).view(np.uint8).reshape(-1, small.itemsize)
        shuffled.append(raw.T.tobytes())
    return base64.b64encode(zlib.compress(b"".join(shuffled), 1)).decode("ascii")


def to_script_json(about: dict[str, Any]) -> str:
    """Return a description as JSON that is safe in a script element: no <, > or &."""
    text = json.dumps(about, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
