"""The study of batches: cycles divide as one likes; its report says what it finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slotkern.studies.vo import EXPERIMENTS, JOBS, Setting, check, draw, gather, run
from slotkern.studies.vo_report import reproduce_vo


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "figure5"])
def test_any_division_of_the_cycles_gives_the_same(name):
    whole = run(name, 0, 4)
    first, last = run(name, 0, 1), run(name, 1, 4)
    for title, values in whole.items():
        parts = np.concatenate([first[title], last[title]])
        assert np.array_equal(values, parts, equal_nan=True)
    gathered = gather(name, 4)
    assert all(
        np.array_equal(gathered[title], whole[title], equal_nan=True) for title in whole
    )


def test_a_cycle_is_drawn_from_its_setting():
    setting = replace(EXPERIMENTS["table2"].setting, owner=6.0)
    slots, batch, lengths = draw(setting, 3)
    own = slots[slots["node"] == 0]
    assert own[["start", "end", "performance", "price"]].tolist() == [(0, 600, 6.5, 6)]
    assert len(np.unique(slots["node"])) == 24
    assert len(batch) == JOBS
    assert ((lengths >= 0.2) & (lengths <= 1)).all()
    for job in batch.requests:
        assert 2 <= job.nodes <= 6
        assert 0.85 <= job.budget / (job.nodes * job.volume) <= 1.6
    again = draw(setting, 3)
    assert (again[0] == slots).all()
    assert again[1] == batch


def test_settings_are_checked():
    for wrong in (Setting(load=2), Setting(nodes=(3, 2)), Setting(budget=(0, 1))):
        with pytest.raises(ValueError, match=r"load|nodes|budget"):
            check(wrong)


def test_the_report_stands_beside_the_paper(tmp_path):
    shown = []
    files = reproduce_vo(3, 1, 1, tmp_path, shown.append, ["table3", "figure5"])
    names = {path.name for path in files}
    assert names == {"table3.csv", "figure5.csv", "figure5.png"}
    lines = (tmp_path / "table3.csv").read_text().splitlines()
    assert lines[0] == "quantity,mean,standard_error,cycles"
    cells = dict(line.split(",", 1) for line in lines[1:])
    mean, error, count = cells["css/runtime_scheduled"].split(",")
    columns = run("table3", 0, 3)
    assert float(mean) == columns["css/runtime_scheduled"].mean()
    assert float(error) > 0
    assert int(count) == 3
    words = [text for text in shown if isinstance(text, str)]
    assert sum(text.startswith(("yes", "NO")) for text in words) == 7
    assert any("contradicts itself" in text for text in words)
