"""Tests of the checks of bodies: the quick test accepts what the check accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fuzz import VALUES
from slotkern.service.inputs import Schema, _test_of, check, checker, object_schema
from slotkern.service.operations import OPERATIONS

SCHEMAS = [object_schema(each.fields, each.required) for each in OPERATIONS]


@st.composite
def values(draw: Any, schema: Schema) -> Any:
    """Draw a value that mostly is of a schema."""
    if not draw(st.integers(0, 15)):
        return draw(VALUES)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    names = schema["type"]
    name = draw(st.sampled_from(names if isinstance(names, list) else [names]))
    if name == "object" and "properties" in schema:
        fields = schema["properties"]
        chosen = (
            draw(st.lists(st.sampled_from([*fields]), max_size=4)) if fields else []
        )
        chosen += schema["required"] if draw(st.integers(0, 9)) else []
        return {field: draw(values(fields[field])) for field in chosen}
    if name == "array":
        return draw(st.lists(values(schema["items"]), max_size=4))
    if name == "string":
        return draw(st.text(max_size=3) | st.sampled_from(["a" * 256, "a" * 5000]))
    kinds = {"integer": st.integers(-2, 3), "number": st.floats(), "null": st.none()}
    return draw(kinds.get(name, VALUES))


@given(st.sampled_from(SCHEMAS).flatmap(lambda s: st.tuples(st.just(s), values(s))))
def test_the_quick_test_agrees_with_the_check(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    expected = _error_of(check, "body", value, schema)
    assert _test_of(schema)(value) == (expected is None)
    assert _error_of(checker("body", schema), value) == expected


def _error_of(function: Callable[..., None], *arguments: Any) -> str | None:
    """Return the message of the error of a call, or None."""
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
    return None
