"""Bodies of requests: JSON that is checked against the schema that is published.

`Fields` maps the names of a body to fragments of JSON Schema. `check` understands
those keywords that the fragments use; the functions of the library check the values
further, and convert dates and durations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

from slotkern._kernels.request import FIELDS, MAX_LIMITS, Request
from slotkern.foundation.checks import meant, quote
from slotkern.foundation.special_fields import SPECIAL_FIELDS
from slotkern.search.records import SURROGATE

__all__ = [
    "DURATION",
    "INTEGER",
    "MOST_NESTED",
    "MOST_TEXT",
    "NODES",
    "NUMBER",
    "QUEUE",
    "REQUEST",
    "SHAPE",
    "TEXT",
    "TIME",
    "Fields",
    "Schema",
    "build_request",
    "check",
    "checker",
    "described",
    "fields_of_query",
    "integer_of",
    "object_schema",
    "parse",
    "queue_of",
    "refuse_unknown",
    "version_of",
]

Schema = Mapping[str, Any]
Fields = Mapping[str, Schema]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
#: Characters of a text, such as a filter; longer ones are mistakes.
MOST_TEXT = 4096
#: Levels of arrays and objects of a body; no schema needs more than five.
MOST_NESTED = 50
_TOO_DEEP = f"the body is nested too deeply: at most {MOST_NESTED} levels are allowed"
#: Every version is a number of 64 bits.
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def _schema(*types: str, **more: Any) -> dict[str, Any]:
    if "string" in types and "enum" not in more:
        more = {"maxLength": MOST_TEXT} | more
    return {"type": [*types] if len(types) > 1 else types[0]} | more


TEXT = _schema("string", minLength=1, maxLength=256)
TIME = _schema("number", "string", "null")
DURATION = TIME  # numbers in the unit of the clock, or text, as dates are
INTEGER = _schema("integer", minimum=0)
NUMBER = _schema("integer")  # of a booking: negative for those before the ledger
SHAPE = _schema("string", enum=["square", "ragged"])
NODES = _schema("array", "string", items=_schema("integer", "string"))


def described(schema: Schema, text: str) -> dict[str, Any]:
    """Return a schema with a description."""
    return {**schema, "description": text}


def object_schema(fields: Fields, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the schema of an object that has no other fields."""
    schema = {"type": "object", "properties": dict(fields)}
    return schema | {"required": [*required], "additionalProperties": False}


def _request_schema() -> dict[str, Any]:
    limits = _schema("array", items=_schema("string"), maxItems=MAX_LIMITS)
    number = _schema("number", "null")
    fields = {
        "nodes": described(_schema("integer", minimum=1), "Nodes at the same time."),
        "volume": described(number, FIELDS["volume"].text),
        "walltime": described(DURATION, "Length of each part, in place of volume: 2h."),
        "where": described(_schema("string", "null"), "Filter: performance >= 2."),
        "limits": described(limits, "Limits of sums over the parts: sum(price) <= 5."),
    }
    for name, field in FIELDS.items():
        form = number if field.kind == "number" else TIME
        fields.setdefault(name, described(form, field.text))
    amounts = _schema("string", "object", "null")
    forms = {"text": _schema("string", "null"), "integer": INTEGER, "amounts": amounts}
    for name, special in SPECIAL_FIELDS.items():
        fields[name] = described(forms[special.kind], special.text)
    return object_schema(fields, ("nodes",))


REQUEST = _request_schema()

_JOB = object_schema(
    {
        "nodes": _schema("integer", minimum=1),
        "walltime": DURATION,
        "volume": _schema("number", "null"),
        "start": described(TIME, "The start of a running job."),
        "name": _schema("string", "null"),
        "user": _schema("string", "null"),
    },
    ("nodes",),
)
QUEUE = described(
    _schema("array", items=_JOB, maxItems=10_000), "The jobs before this one, in order."
)


def parse(body: bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    ValueError
        For NaN, lone surrogates, NUL, and more than `MOST_NESTED` levels, so that
        recursive functions can take the value.
    """
    try:
        value = _decode(body.decode())
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the body is not UTF-8: {error}") from None
    if body.count(b"[") + body.count(b"{") > MOST_NESTED:
        _refuse_nested(value)
    if b"\\u" in body:
        text = json.dumps(value, ensure_ascii=False)
        # Without escaped backslashes, a NUL alone is written in this way.
        if "\\u0000" in text.replace("\\\\", "") or SURROGATE.search(text):
            raise ValueError("the body has a NUL or half of a character in a text")
    return value


def _refuse_nested(value: Any) -> None:
    """Raise ValueError for more than `MOST_NESTED` levels of arrays and objects."""
    level = [value]
    for _ in range(MOST_NESTED + 1):
        outer = [each.values() if type(each) is dict else each for each in level]
        level = [
            each for items in outer for each in items if type(each) in (dict, list)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON: omit a field that has no limit, or use null")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def check(where: str, value: Any, schema: Schema) -> None:
    """Raise ValueError, with the name of the field, for a value outside a schema."""
    names = schema["type"]
    types = names if isinstance(names, list) else [names]
    for name in types:
        if type(value) in _TYPES[name]:  # a bool is an int to isinstance
            break
    else:
        raise ValueError(f"{where} must be {' or '.join(types)}, got {quote(value)}")
    if "enum" in schema and value not in schema["enum"]:
        words = schema["enum"]
        raise ValueError(
            f"{where} must be one of {', '.join(words)}; got {quote(value)}"
            f"{meant(value, words)}"
        )
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        raise ValueError(
            f"{where} must be at least {schema['minimum']}, got {quote(value)}"
        )
    if isinstance(value, str):
        least, most = schema.get("minLength", 0), schema.get("maxLength", MOST_TEXT)
        if not least <= len(value) <= most:
            raise ValueError(f"{where} must have {least} to {most} characters")
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            raise ValueError(f"{where} must have at most {schema['maxItems']} items")
        for i, item in enumerate(value):
            check(f"{where}[{i}]", item, schema["items"])
    elif isinstance(value, dict) and "properties" in schema:
        _check_object(where, value, schema)


def _check_object(where: str, value: dict[str, Any], schema: Schema) -> None:
    fields = schema["properties"]
    refuse_unknown(where, value, fields)
    for name, inner in value.items():
        check(f"{where}.{name}", inner, fields[name])
    for name in schema["required"]:
        if name not in value:
            raise ValueError(f"{where} needs the field {name}")


def checker(where: str, schema: Schema) -> Callable[[Any], None]:
    """Return `check` for one place and schema; it is quick for valid values."""
    fits = _test_of(schema)

    def check_value(value: Any) -> None:
        if not fits(value):
            check(where, value, schema)

    return check_value


def _test_of(schema: Schema) -> Callable[[Any], bool]:
    """Return a function that is True only for values that `check` accepts."""
    names = schema["type"]
    names = names if isinstance(names, list) else [names]
    types = frozenset(kind for name in names for kind in _TYPES[name])
    words, least = schema.get("enum"), schema.get("minimum", -inf)
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", MOST_TEXT)
    most = schema.get("maxItems", inf)
    item = _test_of(schema["items"]) if "items" in schema else None
    given = schema.get("properties")
    fields = {name: _test_of(inner) for name, inner in (given or {}).items()}
    required = schema.get("required", ())

    def fits(value: Any) -> bool:
        kind = type(value)
        if kind not in types or (words is not None and value not in words):
            return False
        if kind is str:
            return bool(shortest <= len(value) <= longest)
        if kind is int or kind is float:
            return bool(value >= least)
        if kind is dict and given is not None:
            for name, inner in value.items():
                test = fields.get(name)
                if test is None or not test(inner):
                    return False
            return all([name in value for name in required])
        if kind is list:
            assert item is not None
            return len(value) <= most and all(map(item, value))
        return True

    return fits


def refuse_unknown(where: str, value: Iterable[str], fields: Mapping[str, Any]) -> None:
    """Raise ValueError for a name that is not among those of the fields."""
    for name in value:
        if name not in fields:
            allowed = f"allowed are {', '.join(fields)}" if fields else "it has none"
            raise ValueError(
                f"{where} has no field {quote(name)}; {allowed}{meant(name, fields)}"
            )


def integer_of(text: str) -> int | None:
    """Return the integer of a text in a path or a query; None for other texts."""
    return int(text) if _INTEGER.fullmatch(text) else None


def fields_of_query(query: Mapping[str, str], fields: Fields) -> dict[str, Any]:
    """Return fields that are in a query, because the body is a table."""
    found: dict[str, Any] = {}
    for name, text in query.items():
        if "\0" in text:
            raise ValueError(f"the query has a NUL in the field {quote(name)}")
        number = None
        if name in fields and fields[name]["type"] == "integer":
            number = integer_of(text)
        found[name] = text if number is None else number
    check("the query", found, object_schema(fields))
    return found


def version_of(text: str) -> int:
    """Return the version of a text; ValueError for other texts."""
    number = integer_of(text)
    if number is None or number < 0:
        raise ValueError(f"since must be a version, got {quote(text)}")
    return number


def build_request(fields: Mapping[str, Any], name: str | None = None) -> Request:
    """Return the request of checked fields; null sets no limit, as an absent field."""
    given = {key: value for key, value in fields.items() if value is not None}
    return Request(**given, name=name)


def queue_of(jobs: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of the checked jobs of a queue."""
    needed = {"nodes", "walltime"}  # also of an empty queue
    titles = needed.union(*jobs)
    return {title: [job.get(title) for job in jobs] for title in titles}
