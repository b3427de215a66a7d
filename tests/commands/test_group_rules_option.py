"""``--within`` and group rules in ``--limit``."""

from __future__ import annotations

import json

import pytest
from command_line import refused, run

import slotkern as sk


@pytest.fixture
def path(tmp_path):
    slots = sk.make_slots(
        node=range(5), start=0, end=9, performance=1, price=[1, 2, 3, 4, 5],
        rack=["a", "b", "a", "b", "b"],
    )  # fmt: skip
    path = tmp_path / "slots.csv"
    sk.write_slots(path, slots)
    return path


def test_rules_on_the_command_line(path):
    asked = [path, "--nodes", 2, "--volume", 4, "--criterion", "cost", "--json"]
    answer = json.loads(run("find", *asked, "--within", "rack").stdout)
    assert [part["node"] for part in answer["window"]["slots"]] == [0, 2]
    assert answer["request"]["within"] == "rack"
    limit = "distinct(rack) >= 2"
    answer = json.loads(run("find", *asked, "--limit", limit).stdout)
    assert [part["node"] for part in answer["window"]["slots"]] == [0, 1]
    assert answer["request"]["limits"] == [limit]
    assert "within" not in answer["request"]
    found = run("alternatives", *asked[:5], "--within", "rack", "--json")
    assert len(json.loads(found.stdout)["windows"]) == 4
    explained = run("explain", path, "--nodes", 4, "--volume", 4, "--within", "rack")
    assert "in one rack at most 3 are free together (b; 0)" in explained.stdout
    assert "it fits with distinct(rack) <= 2" in explained.stdout


def test_wrong_rules_are_refused(path):
    asked = ["find", path, "--nodes", 2, "--volume", 4]
    refused(run(*asked, "--within", "rakc"), "no column 'rakc'", "'rack'")
    refused(run(*asked, "--limit", "most(rack) >= 2"), "most(rack) <= 2")


def test_levels_of_a_machine_are_checked(tmp_path):
    table = tmp_path / "machine.csv"
    table.write_text("name,rack,site\nn1,a,x\nn2,a,y\n")
    pool = tmp_path / "pool.npz"
    dates = ["--start", "2026-10-24", "--end", "2026-10-25", "--zone", "UTC"]
    asked = ["free", table, *dates, "--output", pool]
    refused(run(*asked, "--levels", "rack,site"), "line 2", "line 3", "rack 'a'")
    assert run(*asked, "--levels", "rack").exit_code == 0
    assert sk.SlotPool.load(pool).machine.levels == ("rack",)
