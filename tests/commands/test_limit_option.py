"""``--limit``: bounds on sums over the parts."""

from __future__ import annotations

import json

import typer
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


def test_alternatives_keep_limits_and_may_be_few(tmp_path):
    slots = sk.make_slots(
        node=range(6), start=0, end=9, performance=1, price=1, storage=[1, 2, 3] * 2
    )
    path = tmp_path / "slots.npz"
    sk.write_slots(path, slots)
    asked = [path, "--nodes", 2, "--volume", 4, "--json"]
    for least, most in ((4, 1), (5, 2), (7, 1)):
        limit = f"sum(storage) >= {least}"
        answer = run("alternatives", *asked, "--limit", limit, "--most", most)
        found = sk.find_alternatives(slots, sk.Request(2, 4, limits=limit), limit=most)
        windows = json.loads(answer.stdout)["windows"]
        assert answer.exit_code == (0 if found else 1)
        assert [window["start"] for window in windows] == found.start.tolist()
        sums = [sum(slots["storage"][w.slots["row"]]) for w in found]
        assert len(sums) == (0 if least == 7 else most)
        assert all(total >= least for total in sums)


def test_no_command_has_two_options_of_one_name():
    def commands(group):
        for command in group.commands.values():
            yield from commands(command) if hasattr(command, "commands") else [command]

    seen = 0
    for command in commands(typer.main.get_command(cli.app)):
        names = [name for option in command.params for name in option.opts]
        assert len(names) == len(set(names)), command.name
        seen += "--limit" in names
    assert seen >= 2
