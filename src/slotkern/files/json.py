"""JSON files with an array of objects, and JSON lines with one object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import (
    FIELDS,
    Columns,
    Format,
    InputError,
    MemoryLimit,
    column_names,
    of_text,
    plain_columns,
    utf8,
)

#: JSON lacks these numbers; files contain strings instead.
NOT_FINITE = {"Infinity": np.inf, "-Infinity": -np.inf, "NaN": np.nan}


def _decode_json(data: bytes, memory: MemoryLimit) -> Columns:
    records = _load_json(utf8(data))
    if not isinstance(records, list):
        raise InputError("not an array of objects")
    return _json_columns(records, memory)


def _decode_jsonl(data: bytes, memory: MemoryLimit) -> Columns:
    text = utf8(data)
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    try:
        records = _load_json(f"[{','.join(lines)}]")
        if len(records) == len(lines):
            return _json_columns(records, memory)
    except InputError as fault:
        if isinstance(fault.at, int):
            raise
    for number, line in enumerate(text.split("\n"), 1):  # locate the line
        if line and not line.isspace():
            try:
                _load_json(line)
            except InputError as fault:
                raise InputError(fault.reason, f"line {number}") from None
    raise InputError("not one JSON object a line")


def _load_json(text: str) -> Any:
    doubled: list[tuple[str, dict[str, Any]]] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) != len(pairs):
            keys = [key for key, _ in pairs]
            doubled.append((max(keys, key=keys.count), record))
        return record

    try:
        loaded = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}"
        reason = f"not JSON: {error.msg} at character {error.colno}"
        raise InputError(reason, place) from None
    except RecursionError:
        raise InputError("not JSON for slots: nested too deeply") from None
    except ValueError as error:  # an integer with too many digits
        raise InputError(f"not JSON for slots: {error}") from None
    for key, record in doubled:
        records = loaded if isinstance(loaded, list) else []
        row = next((i for i, other in enumerate(records) if other is record), None)
        raise InputError(f"column {key!r} occurs twice", row)
    return loaded


def _json_columns(records: list[Any], memory: MemoryLimit) -> Columns:
    if not records:
        return {name: np.zeros(0) for name in FIELDS}
    if set(map(type, records)) != {dict}:
        row = next(i for i, record in enumerate(records) if type(record) is not dict)
        raise InputError("not an object", row)
    try:
        names = column_names(records[0])
    except InputError as fault:
        raise InputError(fault.reason, 0) from None
    keys = records[0].keys()
    if any(map(keys.__ne__, map(dict.keys, records))):
        row = next(i for i, record in enumerate(records) if record.keys() != keys)
        odd = min(keys ^ records[row].keys())
        which = "no column" if odd in keys else "the first record has no column"
        raise InputError(f"{which} {odd!r}", row)
    return {
        n: _json_column(n, list(map(itemgetter(n), records)), memory) for n in names
    }


def _json_column(name: str, cells: list[Any], memory: MemoryLimit) -> NDArray[Any]:
    """Convert cells to a column; all must be numbers, all bools, or all text."""
    kinds = set(map(type, cells))
    if name not in FIELDS:
        if kinds == {bool}:
            return np.array(cells)
        if kinds == {str} and not set(cells) <= NOT_FINITE.keys():
            return of_text(name, np.array(cells, object), memory)
        if kinds == {int} and min(cells) >= -(2**63) and max(cells) < 2**64:
            if max(cells) < 2**63:
                return np.array(cells, np.int64)
            if min(cells) >= 0:
                return np.array(cells, np.uint64)
    if str in kinds:
        cells = [
            NOT_FINITE.get(cell, cell) if type(cell) is str else cell for cell in cells
        ]
        kinds = set(map(type, cells))
    if kinds <= {int, float}:
        try:
            return np.array(cells, np.float64)
        except OverflowError:
            largest = int(np.finfo(np.float64).max)
            row = next(
                i
                for i, cell in enumerate(cells)
                if type(cell) is int and abs(cell) > largest
            )
            raise InputError(
                f"{name} is an integer too large for a number", row
            ) from None
    first: type = float if name in FIELDS else type(cells[0])
    kinds_of: dict[type, tuple[str, set[type]]] = {
        bool: ("true or false", {bool}),
        str: ("a string", {str}),
        int: ("a number", {int, float}),
        float: ("a number", {int, float}),
    }
    any_kind: tuple[str, set[type]] = ("a number, a string, true or false", set())
    wanted, usual = kinds_of.get(first, any_kind)
    row = next(i for i, cell in enumerate(cells) if type(cell) not in usual)
    raise InputError(f"{name} {json.dumps(cells[row])[:80]} is not {wanted}", row)


def _encode_json(slots: NDArray[Any]) -> bytes:
    return b"[\n" + b",\n".join(_json_lines(slots)) + b"\n]\n"


def _encode_jsonl(slots: NDArray[Any]) -> bytes:
    return b"\n".join(_json_lines(slots)) + b"\n"


def _json_lines(slots: NDArray[Any]) -> Iterator[bytes]:
    columns = plain_columns(slots, "json", text=True)
    values = []
    for column in columns.values():
        listed = column.tolist()
        if column.dtype.kind == "f":
            for row in np.flatnonzero(~np.isfinite(column)).tolist():
                listed[row] = json.dumps(listed[row])  # such as "Infinity"
        values.append(listed)
    encode = json.JSONEncoder(allow_nan=False).encode
    for cells in zip(*values, strict=True):
        yield encode(dict(zip(columns, cells, strict=True))).encode()


def _place_in_json(data: bytes, record: int) -> str:
    text = utf8(data)
    decoder = json.JSONDecoder()
    blanks = re.compile(r"[ \t\r\n]*")
    end = text.index("[")
    for _ in range(record + 1):
        after = blanks.match(text, end + 1)  # the bracket or the comma
        assert after
        start = after.end()
        _, end = decoder.raw_decode(text, start)
        end = text.find(",", end)
    return f"line {text.count(chr(10), 0, start) + 1}"


def _place_in_jsonl(data: bytes, record: int) -> str:
    lines = enumerate(utf8(data).split("\n"), 1)
    numbers = (number for number, line in lines if line and not line.isspace())
    return f"line {next(n for i, n in enumerate(numbers) if i == record)}"


JSON: Format = Format(_decode_json, _encode_json, _place_in_json)
JSON_LINES: Format = Format(_decode_jsonl, _encode_jsonl, _place_in_jsonl)
