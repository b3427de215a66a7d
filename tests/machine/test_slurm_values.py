"""Tables that Slurm's commands print: the line of headings."""

from __future__ import annotations

import math

import pytest

from slotkern.machine.slurm_values import epoch_clock, table

CLOCK = epoch_clock("UTC")
DATE = "Tue Dec 01 18:00:00 2026\n"


@pytest.mark.parametrize("before", ["", "\n", DATE, f"\n\n\n{DATE}", f"{DATE}\n\n\n\n"])
def test_a_date_and_blank_lines_precede_the_headings(before: str) -> None:
    text = f"{before}NODELIST STATE\nn1 idle\n"
    (row,), printed = table(text, "nodes.txt", ["NODELIST"], CLOCK)
    assert row.cells == {"NODELIST": "n1", "STATE": "idle"}
    assert row.line == before.count("\n") + 2
    dated = CLOCK.time("2026-12-01T18:00:00", "date")
    assert printed == dated if before.strip() else math.isnan(printed)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1: ''"),
        ("n1 idle\n", "line 1: 'n1 idle'"),
        (f"{DATE}\nn1 idle\nNODELIST STATE\n", "line 3: 'n1 idle'"),
        (DATE, "line 2: ''"),
    ],
)
def test_a_table_without_headings_is_refused(text: str, place: str) -> None:
    with pytest.raises(ValueError, match=f"nodes.txt, {place} is no line of headings"):
        table(text, "nodes.txt", ["NODELIST"], CLOCK)
