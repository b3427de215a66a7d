"""Tests that mypy accepts valid calls and rejects misspelled values."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import slotkern as sk
import slotkern.typing as words

pytest.importorskip("mypy")

GOOD = """
import numpy as np
import slotkern as sk
from slotkern.typing import Field

environment = sk.generate_environment("square")
slots, pool, job = environment.slots, sk.SlotPool(environment), sk.Request(2, 9)

@sk.criterion
def energy(slot: object, length: float) -> float:
    return length

for place in (slots, pool, environment):
    sk.find_window(place, job)
    sk.find_window(place, job, "cost", shape="ragged", method="published")
sk.find_window(slots, job, Field("q"), method="lite", placement="any")
sk.find_window(slots, job, slots["q"], gap=0.1)
sk.find_window(slots, job, sk.minimize("q"))
sk.find_window(slots, job, sk.minimize(energy))
sk.find_window(slots, job, energy)
sk.find_window(slots, job, "dependable", span="group")
sk.find_windows(pool, [job], "start", threads=2)
sk.find_alternatives(environment, job, "processor_time", limit=2).best("cost")
sk.find_alternatives(slots, job).pareto("cost", "finish")
sk.explain(environment, job, shape="ragged")
sk.step_values(slots, job, "coordinated", method="lite")
pool.find(job, "runtime")
pool.schedule([job], "start")
pool.add_slots(environment)
sk.choose([1], [2], 1, 3, method="table")
"""

BAD = [
    'sk.find_window(slots, job, "finsh")',
    'sk.find_window(slots, job, "finish", shape="sqare")',
    'sk.find_window(slots, job, "finish", method="lit")',
    'sk.find_window(slots, job, "coordinated", placement="every")',
    'sk.find_window(slots, job, "coordinated", span="groups")',
    'sk.find_window(slots, job, "finish", span="group")',
    "sk.find_window([1, 2], job)",
    'sk.find_windows(slots, [job], "finsh")',
    'sk.find_alternatives(slots, job, "fist")',
    'sk.find_alternatives(slots, job).best("costs")',
    'sk.find_alternatives(slots, job).pareto("cost", "price")',
    'sk.explain(slots, job, shape="round")',
    'sk.step_values(slots, job, "finish")',
    'sk.SlotPool(slots).find(job, "finsh")',
    'sk.SlotPool(slots).schedule([job], "soon")',
    'sk.choose([1], [2], 1, 3, method="tabel")',
    "sk.Request(1, 2, 3)",
]


def test_literal_types_equal_accepted_values() -> None:
    assert set(get_args(words.BuiltIn)) == set(sk.CRITERIA)
    slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)
    job = sk.Request(1, 1)
    for name in ("shape", "method", "placement", "span"):
        allowed = get_args(getattr(words, name.capitalize()))
        with pytest.raises(ValueError, match="must be") as refused:
            sk.find_window(slots, job, "processor_time", **{name: "?"})
        for word in allowed:
            assert word in str(refused.value)
    for criterion in get_args(words.BuiltIn):
        assert sk.find_alternatives(slots, job).best(criterion) is not None


def test_mypy_reports_exactly_the_misspelled_calls(tmp_path: Path) -> None:
    file = tmp_path / "use.py"
    file.write_text("\n".join([GOOD, *BAD]), encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"),
            *("--config-file", "", "--cache-dir", tmp_path / "cache", file),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    errors = {int(line) for line in re.findall(r":(\d+): error", done.stdout)}
    first = len(GOOD.split("\n")) + 1
    assert errors == set(range(first, first + len(BAD))), done.stdout + done.stderr
