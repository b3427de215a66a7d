"""Short runs of the fuzzer of searches; `make fuzz-searches` runs it longer."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "fuzz" / "tariffs.py"
SPEC = importlib.util.spec_from_file_location("tariffs", FILE)
assert SPEC is not None
assert SPEC.loader is not None
fuzzer = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzzer)


def test_searches_are_those_of_the_definition() -> None:
    rounds = fuzzer.CHANGES + 1
    searches = rounds * len(fuzzer.SHAPES) * len(fuzzer.CRITERIA)
    for number in range(60):
        assert fuzzer.compare(number, seed=1) == (searches, "")


def test_another_definition_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = fuzzer.Parts.starts
    monkeypatch.setattr(fuzzer.Parts, "starts", lambda *given: starts(*given)[::2])
    assert any(fuzzer.compare(number, seed=1)[1] for number in range(20))
