"""The table of a request's fields, and the texts that are written from it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "ci"))

import fields  # noqa: E402

from slotkern._kernels.request import FIELDS  # noqa: E402


@pytest.mark.parametrize("path", fields.paths())
def test_texts_list_the_fields(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert text == fields.updated(path), "run python ci/fields.py"


def test_bindings_have_the_fields_of_the_table() -> None:
    table, _ = fields.read()
    assert [field.name for field in table] == list(FIELDS)
    for field in table:
        bound = FIELDS[field.name]
        assert (field.kind, float(field.default)) == (bound.kind, bound.default)
        assert (field.unit, field.text) == (bound.unit, bound.text)
