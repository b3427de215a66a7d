"""JSON Schemas of what commands print, and the command ``slotkern schema``.

`SCHEMAS` maps each command with ``--json``, and ``ledger follow``, to the schema of its
object (draft 2020-12). The fields of a request come from the tables of its fields; the
others are listed here. docs/json.md gives their meanings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import slotkern as sk
from slotkern._kernels.request import FIELDS
from slotkern.foundation.checks import one_of
from slotkern.foundation.extras import extra
from slotkern.foundation.special_fields import SPECIAL_FIELDS
from slotkern.ledger.codec import Entry
from slotkern.search.group_facts import GroupFacts
from slotkern.search.price_facts import PriceFacts
from slotkern.service.inputs import described, object_schema

from .completion import complete_from
from .terminal import show, write

with extra():
    import typer

__all__ = ["SCHEMAS", "register", "schema_of"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = Mapping[str, Any]


def _type(*names: str) -> dict[str, Any]:
    return {"type": names[0] if len(names) == 1 else [*names]}


def _array(items: Schema) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _fields(schema: Schema, *names: str) -> dict[str, Any]:
    return dict.fromkeys(names, schema)


def _object(needed: Mapping[str, Schema], **optional: Schema) -> dict[str, Any]:
    """Return the schema of an object with needed and with optional fields."""
    return object_schema({**needed, **optional}, tuple(needed))


_TEXT, _NUMBER, _COUNT, _FLAG = map(_type, ("string", "number", "integer", "boolean"))
_LIMIT = _type("number", "null")
_AMOUNTS = {"type": "object", "additionalProperties": _NUMBER}
_DATES = {"type": "object", "additionalProperties": _TEXT}


def _request() -> dict[str, Any]:
    # Times and durations of a pool with a clock are text, as they were given.
    needed = {"nodes": _COUNT, "volume": _LIMIT}
    for name, field in FIELDS.items():
        form = _LIMIT if field.kind == "number" else _type("number", "string", "null")
        needed.setdefault(name, described(form, field.text))
    needed |= {"where": _type("string", "null"), "limits": _array(_TEXT)}
    kinds = {"text": _TEXT, "integer": _COUNT, "amounts": {"type": "object"}}
    optional = {
        name: described(kinds[field.kind], field.text)
        for name, field in SPECIAL_FIELDS.items()
    }
    return _object(needed, **optional, walltime=_type("string", "number"))


_REQUEST = _request()
# A part also has the further columns of the file.
_PART = {
    "type": "object",
    "properties": {
        **_fields(_COUNT, "row", "node", "count"),
        **_fields(_TEXT, "name", "start_time", "end_time", "tariff"),
        **_fields(_NUMBER, "start", "end", "length", "cost", "performance", "price"),
    },
    "required": ["row", "node", "start", "end", "length", "cost"],
}
_TOTALS = _fields(_NUMBER, "start", "finish", "runtime", "cost", "processor_time")
_PROOF = {"value": _NUMBER, "proven": _FLAG, "proven_over": _TEXT, "bound": _LIMIT}
_USED = {"uses": _AMOUNTS, "account": _TEXT, "share": _AMOUNTS}
_USED |= _fields(_TEXT, "start_time", "finish_time")
_WINDOW = _object(_TOTALS | _PROOF | {"slots": _array(_PART)}, **_USED)
_POINT = _object(
    _TOTALS | _PROOF | {"slots": _array(_PART), "values": _array(_NUMBER)}, **_USED
)
# The window of a cycle is `Window.to_dict()`: it also names the search.
_JOB_WINDOW = _object(
    _TOTALS
    | _PROOF
    | _fields(_TEXT, "criterion", "shape")
    | {"slots": _array(_PART | {"required": ["row", "node", "start", "end", "cost"]})},
    name=_TEXT,
    **_USED,
)
_EXPLANATION = {
    "type": ["object", "null"],
    "properties": {
        **_fields(_FLAG, "fits", "undecided", "complete"),
        **_fields(_COUNT, "nodes_total", "nodes_fast", "nodes_proper"),
        **_fields(_COUNT, "slots_total", "slots_long", "together"),
        **_fields(_COUNT, "most_nodes", "nearest_nodes"),
        **_fields(_LIMIT, "cheapest", "earliest_finish", "earliest_start"),
        "shortest_runtime": _LIMIT,
        "without": _array(_TEXT),
        **_fields(_TEXT, "shape", "text"),
        "groups": _type("integer", "null"),
        **_fields(_AMOUNTS, "sums", "beyond"),
        "words": {"type": "object", "additionalProperties": _array(_TEXT)},
        "capacities": _array({"type": "object"}),
        **_fields(_COUNT, "stack", "machine_nodes", "holders"),
        **_fields(_AMOUNTS, "share", "most", "without_resource", "amounts", "levels"),
        **{name: {} for name in (*PriceFacts._fields, *GroupFacts._fields)},
    },
    "required": ["fits", "text"],
    "additionalProperties": False,
}


def _or_null(schema: Schema) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def _answer(**more: Schema) -> dict[str, Any]:
    """Return the schema of what `print_answer` prints."""
    heading = _fields(_TEXT, "slotkern", "file", "criterion", "shape", "method")
    return _object(heading | {"request": _REQUEST, "explanation": _EXPLANATION} | more)


_PLACE = _fields(_TEXT, "slotkern", "file")
_SPAN = _object(_fields(_NUMBER, "first", "last"))
_SPAN["properties"] |= _fields(_TEXT, "first_time", "last_time")
_HOLE = _object({"nodes": _COUNT, "length": _LIMIT, "end": _LIMIT}, end_time=_TEXT)
_BETWEEN = _array({"type": ["array", "null"], "items": _LIMIT})
_CYCLE = _object(
    {"time": _NUMBER, "jobs": _array(_TEXT), **_fields(_COUNT, "scheduled", "failures")}
)
_JOB = _object(
    _fields(_TEXT, "name", "reason")
    | _fields(_LIMIT, "start", "finish", "wait")
    | {"cycle": _type("integer", "null"), "window": _or_null(_JOB_WINDOW)}
)


def _entry() -> dict[str, Any]:
    """Return the schema of `entry_record`: version, kind, and what an entry has."""
    kinds: dict[str, Any] = {"of": _COUNT, "nodes": _COUNT, "expires": _COUNT}
    kinds |= _fields(_LIMIT, "start", "finish", "cost")
    optional = {
        name: kinds.get(name, _TEXT)
        for name in Entry._fields
        if name not in ("version", "kind", "body")
    }
    return _object({"version": _COUNT, "kind": _TEXT}, **optional)


SCHEMAS: dict[str, dict[str, Any]] = {
    "find": _answer(window=_or_null(_WINDOW)),
    "front": _answer(windows=_array(_POINT), complete=_FLAG, between=_BETWEEN),
    "alternatives": _answer(windows=_array(_WINDOW)),
    "starts": _answer(starts=_array(_SPAN)),
    "explain": _answer(),
    "holes": _object(
        _PLACE | {"start": _NUMBER, "holes": _array(_HOLE)},
        start_time=_TEXT,
        best_length=_LIMIT,
    ),
    "when": _object(
        _PLACE
        | {"policy": _TEXT, "starts": _AMOUNTS}
        | _fields(_COUNT, "runs", "running", "waiting")
        | _fields(_NUMBER, "now", "promise"),
        now_time=_TEXT,
        promise_time=_TEXT,
        starts_time=_DATES,
    ),
    "cycles": _object(
        _PLACE
        | _fields(_TEXT, "jobs_file", "policy")
        | {"cycles": _array(_CYCLE), "jobs": _array(_JOB)}
    ),
    "ledger follow": _entry(),
}


def schema_of(command: str) -> dict[str, Any]:
    """Return the schema of a command, with its dialect and title."""
    one_of("the command", command, SCHEMAS)
    title = f"slotkern {command}, {sk.__version__}"
    return {"$schema": _DIALECT, "title": title} | SCHEMAS[command]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(schema)


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=complete_from(SCHEMAS),
            help="Command whose JSON is described; without it, list all.",
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with --json."""
    if not command:
        show("\n".join(SCHEMAS))
        return
    write(json.dumps(schema_of(" ".join(command)), indent=2) + "\n")
