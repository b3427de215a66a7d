"""Short runs of the fuzzers of readers; `make fuzz-readers` runs them longer."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "fuzz" / "readers.py"
SPEC = importlib.util.spec_from_file_location("readers", FILE)
assert SPEC is not None
assert SPEC.loader is not None
readers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(readers)


@pytest.mark.parametrize("name", readers.TARGETS)
def test_every_input_is_valid_or_gives_one_error(name: str, tmp_path: Path) -> None:
    report = readers.run(name, executions=400, seed=1, found=tmp_path)
    assert report.startswith(f"{name}: 400 executions")
    assert " 0 valid" not in report
    assert " 0 refused" not in report
