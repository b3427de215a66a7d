"""Reservations that a rule repeats: all dates or none, in each kind of pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dateutil")

import slotkern as sk

SPAN = ("2026-10-20 08:00", "2026-10-20 10:00")
WEEKS = "FREQ=WEEKLY;COUNT=4"


def free(**columns: Any) -> sk.FreeSlots:
    machine = sk.Machine(
        {"name": [f"n{k}" for k in range(4)], "cores": [8] * 4}, **columns
    )
    span = {"start": "2026-10-01", "end": "2026-12-01", "zone": "Europe/Berlin"}
    return sk.free_slots(machine, **span)


@pytest.fixture(params=["pool", "ledger", "hosts"])
def pool(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "hosts":
        return sk.HostPool(free(capacity=["cores"]))
    pool = sk.SlotPool(free())
    return pool if request.param == "pool" else pool.share(tmp_path / "site.db")


def test_each_date_is_reserved_at_the_same_local_time(pool: Any) -> None:
    one = pool.copy() if hasattr(pool, "resources") else sk.SlotPool(free())
    pool.reserve("n[0-1]", *SPAN, owner="course", rule=WEEKS)
    for day in ("2026-10-20", "2026-10-27", "2026-11-03", "2026-11-10"):
        one.reserve("n[0-1]", f"{day} 08:00", f"{day} 10:00", owner="course")
    assert np.array_equal(pool.slots, one.slots)


def test_the_dates_that_do_not_fit_are_named_and_nothing_is_reserved(pool: Any) -> None:
    pool.reserve("n1", "2026-10-27 09:00", "2026-10-27 09:30", owner="a")
    pool.reserve("n0", "2026-11-10 09:59", "2026-11-11", owner="a")
    before = pool.slots
    with pytest.raises(
        ValueError, match="2 of 4 dates of the rule do not fit"
    ) as error:
        pool.reserve("n[0-1]", *SPAN, owner="course", rule=WEEKS)
    text = str(error.value)
    assert "2026-10-27 08:00:00+01:00, 2026-11-10 08:00:00+01:00;" in text
    assert "at the first of them, node n1 " in text
    assert np.array_equal(pool.slots, before)


def test_an_error_lists_the_first_dates_of_many(pool: Any) -> None:
    with pytest.raises(ValueError, match="158 of 200 dates") as error:
        pool.reserve("n0", *SPAN, owner="course", rule="FREQ=DAILY;COUNT=200")
    text = str(error.value)
    assert text.count("08:00:00+01:00, ") == 10
    assert "2026-12-10 08:00:00+01:00, and 148 more; at the first of them, " in text


def test_partly_takes_what_is_free_and_the_rest_later(pool: Any) -> None:
    pool.reserve("n1", "2026-10-27 09:00", "2026-10-27 09:30", owner="a")
    pool.reserve("n[0-1]", *SPAN, owner="course", rule=WEEKS, partly=True)
    pool.release("a")
    request = sk.Request(
        4, walltime="1:00:00", earliest="2026-10-27 08:00", deadline="2026-10-27 10:00"
    )
    assert pool.find(request) is None
    pool.release("course")
    assert pool.find(request) is not None


def test_partly_takes_the_same_as_one_call_a_date(pool: Any) -> None:
    one = pool.copy() if hasattr(pool, "resources") else sk.SlotPool(free())
    for each in (pool, one):
        random = np.random.default_rng(5)
        for day in random.choice(np.arange(1, 30), 12, replace=False).tolist():
            hour, node = random.integers(1, 20), random.integers(4)
            start = f"2026-10-{day:02} {hour:02}:00"
            end = f"2026-10-{day:02} {hour + 4:02}:00"
            each.reserve(f"n{node}", start, end, owner="a")
    days = [f"2026-10-{day:02}" for day in range(1, 25)]
    rule = "FREQ=DAILY;COUNT=24"
    span = [f"{days[0]} {hour}" for hour in ("07:30", "12:00")]
    pool.reserve("n[0-3]", *span, owner="course", partly=True, rule=rule)
    for day in days:
        span = [f"{day} {hour}" for hour in ("07:30", "12:00")]
        one.reserve("n[0-3]", *span, owner="course", partly=True)
    assert np.array_equal(pool.slots, one.slots)


def test_a_rule_without_an_end_is_refused(pool: Any) -> None:
    with pytest.raises(ValueError, match="FREQ=WEEKLY has no end: add COUNT or UNTIL"):
        pool.reserve("n0", *SPAN, owner="course", rule="FREQ=WEEKLY")
    with pytest.raises(TypeError, match="rule must be text, got 3"):
        pool.reserve("n0", *SPAN, owner="course", rule=3)


def test_dates_past_the_time_of_the_pool_do_not_fit(pool: Any) -> None:
    with pytest.raises(ValueError, match="1 of 7 dates of the rule do not fit"):
        pool.reserve("n0", *SPAN, owner="course", rule="FREQ=WEEKLY;COUNT=7")
    pool.advance("2026-10-21")
    if not hasattr(pool, "resources"):
        with pytest.raises(ValueError, match=r"start 2026-10-20 .* is past"):
            pool.reserve("n0", *SPAN, owner="course", rule=WEEKS)
