"""Tests that a search that spends its work is undecided, never "no window"."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import slotkern as sk
from slotkern.commands.main import app

AMOUNT = "2.5000001 <= sum(gb) <= 2.50000010001"


def crowd() -> np.ndarray:
    """Return slots with more sets of 11 nodes than a search can enumerate."""
    rng = np.random.default_rng(1)
    return sk.make_slots(
        node=np.arange(70),
        start=0,
        end=np.where(np.arange(70) < 40, 12, 100),
        performance=1,
        price=1,
        gb=rng.random(70),
    )


EASY = sk.Request(2, 10, name="easy")
HARD = sk.Request(11, 10, limits=AMOUNT, deadline=30, name="hard")


def test_schedule_continues_after_undecided_job():
    pool = sk.SlotPool(crowd())
    done = pool.schedule([EASY, HARD, EASY.replace(nodes=80), EASY])
    assert done.reasons == ["booked", "undecided", "nodes", "booked"]
    assert [window is None for window in done] == [False, True, True, False]
    again = sk.SlotPool(crowd())
    again.schedule([EASY, EASY.replace(nodes=80), EASY])
    assert (pool.slots == again.slots).all()


@pytest.mark.parametrize(
    "policy",
    [sk.CSS, sk.Backfilling("conservative"), sk.Backfilling("easy")],
)
def test_batch_reports_undecided_job(policy):
    schedule = sk.schedule_batch(crowd(), [HARD, EASY], policy, limit=1e9)
    assert schedule.reasons == ["undecided", "scheduled"]
    run = schedule.execute(lengths=[1.0, 0.5])
    assert run.reason.tolist() == [7, 0]


def test_alternatives_error_reports_windows_found():
    slots = crowd()
    with pytest.raises(sk.UndecidedError, match=r"^nothing was found within max_work"):
        sk.find_alternatives(slots, HARD, max_work=10)
    cheap = np.arange(len(slots)) < 11
    slots["price"][cheap] = 0.1
    slots["gb"][cheap] = 2.5000001 / 11 + 1e-13
    found = sk.find_alternatives(slots, HARD, limit=1, max_work=10)
    assert found[0].nodes == tuple(range(11))
    for criterion in ("first", "cost"):
        with pytest.raises(
            sk.UndecidedError, match=r"^after one alternative: .*; limit=1 returns"
        ):
            sk.find_alternatives(slots, HARD, criterion, max_work=10)


def test_find_windows_error_names_undecided_request():
    for slots in (crowd(), sk.SlotPool(crowd())):
        for criterion in ("start", "gb"):
            with pytest.raises(sk.UndecidedError, match=r"^requests\[1\] \('hard'\): "):
                sk.find_windows(slots, [EASY, HARD, EASY], criterion, max_work=10)


def test_requests_after_undecided_one_are_decided():
    slots = crowd()
    with pytest.raises(sk.UndecidedError):
        sk.find_window(slots, HARD, "start", max_work=10)
    many = HARD.replace(nodes=71)
    assert sk.find_window(slots, many, "start", max_work=10) is None


def test_explain_reports_undecided(monkeypatch):
    from slotkern.search import relaxations

    def little(*args: Any, **options: Any) -> Any:
        return sk.find_window(*args, max_work=10, **options)

    monkeypatch.setattr(relaxations, "find_window", little)
    why = sk.explain(crowd(), HARD)
    assert (why.undecided, why.complete, why.fits) == (True, False, False)
    assert not why.beyond
    assert str(why).startswith("It is not decided whether a window fits")
    assert "No window" not in str(why)
    assert "is known to make it fit" in str(why) or "it fits " in str(why)
    sure = sk.explain(crowd(), EASY)
    assert (sure.undecided, sure.complete) == (False, True)


def test_max_work_limits_all_searches_of_an_explanation(monkeypatch):
    from slotkern.search import relaxations

    given: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        request = args[1]
        assert ("max_work" in options) == bool(request.limits)
        given.append(options.get("max_work", 0))
        return sk.find_window(*args, **options)

    monkeypatch.setattr(relaxations, "find_window", counted)
    for most in (0, 1, 5_000, 200_000):
        given.clear()
        why = sk.explain(crowd(), HARD, max_work=most)
        assert (why.undecided, why.complete, why.fits) == (True, False, False)
        assert sum(given) == most
        rest = [work for work in given if work]
        assert len(rest) <= 1 + 1000
    limited = EASY.replace(limits="sum(gb) >= 1.99999")
    sure = sk.explain(crowd(), limited, max_work=10**9)
    assert sure.complete
    monkeypatch.undo()
    assert sure.to_dict() == sk.explain(crowd(), limited).to_dict()
    with pytest.raises(ValueError, match="max_work limits explanations of a Request"):
        sk.explain(crowd(), sk.AnyOf([EASY, HARD]), max_work=5)


def test_an_explanation_of_capacities_keeps_its_limit():
    pool = sk.SlotPool(crowd(), caps={"licences": 2})
    for uses in ({"licences": 3}, {"licences": 1}):
        why = sk.explain(pool, HARD.replace(uses=uses), max_work=1_000)
        assert (why.fits, why.complete) == (False, False)
    why = sk.explain(pool, EASY.replace(uses={"licences": 3}), max_work=10**6)
    assert why.capacities is not None


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def free(tmp_path: Path) -> Path:
    sk.write_slots(tmp_path / "free.csv", crowd())
    return tmp_path / "free.csv"


def test_search_commands_report_undecided(free):
    job = ("--nodes", 11, "--volume", 10, "--deadline", 30, "--limit", AMOUNT)
    for command in ("find", "alternatives"):
        done = run(command, free, *job, "--max-work", 10)
        assert done.exit_code == 2, done.output
        assert "not proven that nothing fits" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["schedule", "batch"])
def test_schedule_commands_report_undecided(free, tmp_path, command):
    jobs = tmp_path / "jobs.csv"
    with jobs.open("w", newline="") as out:
        csv.writer(out).writerows(
            [
                ["name", "nodes", "volume", "deadline", "limits"],
                ["hard", 11, 10, 30, AMOUNT],
                ["easy", 2, 10, 30, ""],
            ]
        )
    done = run(command, free, jobs)
    assert done.exit_code == 0, done.output
    assert "undecided" in done.stdout
