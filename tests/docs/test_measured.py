"""Tests that the figures on the pages are those of benchmarks/measured.json."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measured", ROOT / "ci/measured.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measured = load()
FIGURES = json.loads(measured.MEASURED.read_text(encoding="utf-8"))


def test_pages_and_pictures_are_up_to_date() -> None:
    for path, text in measured.pages(FIGURES):
        assert path.read_text(encoding="utf-8") == text, "run python ci/measured.py"


def test_readme_contains_measured_figures() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    joined = " ".join(text.split())
    row = measured.shown(FIGURES)[0]
    early = FIGURES["ratios"]["rows"][1]
    assert early["what"].endswith("the first 20 jobs")
    assert f"**{measured.duration(row['own'])}**" in text
    assert f"{row['rival'] / row['own']:,.0f} times as long" in joined
    assert f"the factor is {early['rival'] / early['own']:,.0f}." in joined
    assert FIGURES["ratios"]["date"] in text
    outside = re.sub(r"<!-- measured.*?<!-- end -->", "", text, flags=re.S)
    assert not re.findall(r"\d+\s(?:µs|us|ms)\b|\d+ times", outside)


def test_every_benchmark_has_machine_and_date() -> None:
    for part in FIGURES.values():
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", part["date"])
        for word in ("processor", "cores", "python", "slotkern", "load"):
            assert word in part["machine"]
        for row in part["rows"]:
            others = row["without"].values() if "without" in row else [row["rival"]]
            assert row["own"] > 0
            assert others
            assert min(others) > 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(6.785e-6, "6.79 µs"), (1.0914e-3, "1.09 ms"), (1.17, "1.17 s"), (31.2, "31.2 s")],
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert measured.duration(seconds).replace("\N{NO-BREAK SPACE}", " ") == text
