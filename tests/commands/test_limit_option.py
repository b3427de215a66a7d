"""``--limit``: limits on sums on the command line."""

from __future__ import annotations

import json

from typer.testing import CliRunner

import slotkern as sk
from slotkern.commands import main as cli

LIMITS = ("sum(storage) >= 50", "sum(power * length) <= 12")


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def test_limits_on_the_command_line(tmp_path):
    slots = sk.make_slots(
        node=[0, 1, 2],
        start=0,
        end=9,
        performance=1,
        price=[1, 2, 3],
        storage=[10, 20, 40],
        power=[1, 1, 2],
    )
    path = tmp_path / "slots.csv"
    sk.write_slots(path, slots)
    asked = [path, "--nodes", 2, "--volume", 4, "--criterion", "cost", "--json"]
    for limit in LIMITS:
        asked += ["--limit", limit]
    answer = run("find", *asked)
    assert answer.exit_code == 0
    found = json.loads(answer.stdout)
    job = sk.Request(2, 4, limits=LIMITS)
    assert found["window"]["cost"] == sk.find_window(slots, job, "cost").cost == 16
    assert found["request"]["limits"] == [limit.text for limit in job.limits]
    wrong = run("find", *asked, "--limit", "sum(disk) <= 3")
    assert wrong.exit_code == 2
    assert "no column 'disk'" in wrong.stderr
    none = run("find", *asked[:-4], "--limit", "sum(storage) >= 90")
    assert none.exit_code == 1
