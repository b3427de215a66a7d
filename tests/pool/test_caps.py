"""Capacities and quotas of pools against an exhaustive search by unit times."""

from __future__ import annotations

import math
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from caps_model import (
    CRITERIA,
    HALVES,
    HORIZON,
    Booking,
    CapsModel,
    Rule,
    halves,
    random_request,
    random_slots,
    searched,
    value_of,
)
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk

CLOCK = sk.Clock("2026-10-23", unit="h", zone="Europe/Berlin")  # a Friday


def pool_of(nodes: int = 3, end: float = 100, **options: Any) -> sk.SlotPool:
    slots = sk.make_slots(node=range(nodes), start=0, end=end, performance=1, price=1)
    return sk.SlotPool(slots, **options)


class World:
    """A pool and its model under the same random changes."""

    def __init__(self, pick: Any) -> None:
        self.pick, self.model = pick, CapsModel()
        self.pool = sk.SlotPool(random_slots(pick))
        self.booked: list[tuple[sk.Window, Booking]] = []
        for name in ("a", "b"):
            amount = pick((2, 3, 5))
            self.pool.set_cap(name, amount)
            rule = Rule(name, None, False, [float(amount)] * HALVES)
            self.model.rules.append(rule)
            for _ in range(pick((0, 1, 3))):
                self.set_cap(rule)

    def set_cap(self, rule: Rule) -> None:
        start = self.pick(range(HORIZON))
        end = self.pick(range(start + 1, HORIZON + 1))
        amount = self.pick((0, 1, 2, 4))
        if start >= self.pool.now:
            self.pool.set_cap(rule.what, amount, start, end)
            for half in halves(start, end):
                rule.amounts[half] = amount

    def quota(self) -> None:
        what, account = self.pick(("nodes", "a")), self.pick(("*", "*", "x"))
        each, amount = account == "*" and self.pick((True, False)), self.pick((1, 2))
        self.pool.quota(what, amount, account=account, each=each)
        kept = [r for r in self.model.rules if r[:3] != (what, account, each)]
        self.model.rules = [*kept, Rule(what, account, each, [amount] * HALVES)]

    def release(self) -> None:
        if self.booked:
            window, booking = self.booked.pop(self.pick(range(len(self.booked))))
            if window.finish > self.pool.now:
                self.pool.release(window)
                self.model.bookings.remove(booking)

    def search(self, book: bool) -> None:
        request, criterion = random_request(self.pick), self.pick(CRITERIA)
        shape = self.pick(("square", "ragged"))
        window = self.pool.find(request, searched(criterion), shape=shape)
        best = self.model.best(self.pool, request, criterion, shape)
        assert value_of(window, criterion) == best
        if book and window is not None:
            if criterion in sk.CRITERIA and self.pick((True, False)):
                (found,) = self.pool.schedule([request], criterion, shape=shape)
                assert found == window
            else:
                self.pool.book(window)
            uses = dict(window.uses or {})
            booking = Booking(
                *(window.start, window.finish, len(window), uses, window.account)
            )
            self.model.bookings.append(booking)
            self.booked.append((window, booking))

    def step(self, tmp_path: Path) -> None:
        match self.pick(("find", "find", "book", "book", "book", *"rcqaks")):
            case "find" | "book" as what:
                self.search(what == "book")
            case "r":
                self.release()
            case "c":
                self.set_cap(self.pick([r for r in self.model.rules if not r.account]))
            case "q":
                self.quota()
            case "a":
                self.pool.advance(max(self.pool.now, 0) + self.pick((0.5, 1, 2)))
            case "k":
                self.pool = pickle.loads(pickle.dumps(self.pool.copy()))
            case "s":
                self.pool.save(tmp_path / "pool.npz", overwrite=True)
                self.pool = sk.SlotPool.load(tmp_path / "pool.npz")


@given(st.randoms(use_true_random=False))
def test_sequences_of_changes_against_the_model(
    tmp_path_factory: Any, random: Any
) -> None:
    world = World(random.choice)
    folder = tmp_path_factory.mktemp("caps")
    for _ in range(6):
        world.step(folder)
    rules = {(r.what, r.account, r.each): r for r in world.model.rules}
    for row in world.pool.caps:
        if row["each"] or row["end"] <= 0:
            continue
        rule = rules.get((row["name"], row["account"] or None, False))
        for half in halves(max(row["start"], world.pool.now, 0), row["end"]):
            if rule is not None:
                assert row["amount"] - row["used"] == world.model.free(rule, None)[half]


@given(st.randoms(use_true_random=False), st.sampled_from(CRITERIA))
def test_a_large_constant_capacity_changes_no_window(
    random: Any, criterion: str
) -> None:
    slots, request = random_slots(random.choice), random_request(random.choice)
    plain = request.replace(uses=None, account=None)
    free = sk.SlotPool(slots).find(plain, searched(criterion))
    pool = sk.SlotPool(slots, caps={"a": 99, "b": 99})
    pool.quota("nodes", 9, each=True)
    assert pool.find(request, searched(criterion)) == free
    pool.set_cap("a", 0)
    pool.set_cap("b", 0)
    if request.uses is not None and request.uses != {"a": "watts"}:
        assert pool.find(request, searched(criterion)) is None
        reason = pool.schedule([request]).reasons
        assert reason == (["cap"] if free is not None else reason)
    pool.quota("nodes", 0, each=True)
    assert pool.find(request.replace(uses=None), searched(criterion)) is None


@given(st.randoms(use_true_random=False))
def test_releasing_all_restores_the_free_amounts(random: Any) -> None:
    world = World(random.choice)
    before = world.pool.caps
    for _ in range(4):
        world.search(book=True)
    while world.booked:
        world.release()
    after = world.pool.caps
    assert after.tolist() == before.tolist()


@given(st.randoms(use_true_random=False), st.sampled_from(("start", "finish", "cost")))
def test_schedule_equals_find_and_book(random: Any, criterion: Any) -> None:
    slots = random_slots(random.choice)
    jobs = [random_request(random.choice) for _ in range(5)]
    pools = [sk.SlotPool(slots, caps={"a": 2, "b": 3}) for _ in range(2)]
    for pool in pools:
        pool.quota("nodes", 2, account="x")
    done = pools[0].schedule(jobs, criterion, owner="all")
    for job, window in zip(jobs, done, strict=True):
        found = pools[1].find(job, criterion)
        assert window == found
        if found is not None:
            assert (window.uses, window.account) == (found.uses, job.account)
            pools[1].book(found, "all")
    assert pools[0].caps.tolist() == pools[1].caps.tolist()
    assert pools[0].slots.tolist() == pools[1].slots.tolist()
    assert pools[0].bookings().tolist() == pools[1].bookings().tolist()


def test_reasons_name_a_capacity_or_a_quota() -> None:
    pool = pool_of(caps={"matlab": 1})
    pool.quota("nodes", 1, account="ann")
    jobs = [
        sk.Request(1, 5, uses={"matlab": 2}),
        sk.Request(2, 5, account="ann"),
        sk.Request(9, 5, account="ann"),
        sk.Request(1, 1000, uses={"matlab": 1}),
        sk.Request(1, 5, account="ann"),
    ]
    assert pool.schedule(jobs).reasons == ["cap", "quota", "nodes", "time", "booked"]


def test_each_account_has_the_quota_by_itself() -> None:
    pool = pool_of(6)
    pool.quota("nodes", 2, each=True)
    jobs = [sk.Request(2, 5, account=a) for a in ("ann", "ann", "bob", None, None)]
    done = [pool.find(job, "start") for job in jobs[:1]]
    starts = []
    for job in jobs:
        window = pool.find(job, "start")
        pool.book(window)
        starts.append(window.start)
    assert starts == [0, 5, 0, 0, 5]
    assert done[0].account == "ann"
    assert pool.owners == ["ann", "bob"]  # the account is the owner by default
    pool.release("ann")
    assert pool.find(jobs[0], "start").start == 0


def test_quotas_hold_at_hours_of_the_week_across_a_change_of_the_offset() -> None:
    pool = pool_of(4, 24 * 5, clock=CLOCK)  # Friday to Tuesday; Sunday has 25 hours
    pool.quota("nodes", 1, when="Mon-Fri 08:00-18:00")
    table = pool.caps
    spans = table[np.isfinite(table["amount"])]
    assert spans["start_time"].tolist() == [
        "2026-10-23T08:00:00+02:00",
        "2026-10-26T08:00:00+01:00",
        "2026-10-27T08:00:00+01:00",
    ]
    assert (spans["end"] - spans["start"]).tolist() == [10, 10, 10]
    job = sk.Request(2, 9)
    assert pool.find(job, "start").start == 18
    pool.book(pool.find(sk.Request(1, 9, earliest=8), "start"))
    assert pool.find(sk.Request(1, 8), "start").start == 0
    assert pool.find(sk.Request(1, 9), "start").start == 17
    pool.quota("nodes", None, when="Mon-Fri 08:00-18:00")
    assert pool.find(job, "start").start == 0


def test_hours_of_the_week_go_on_in_slots_that_are_added() -> None:
    pool = pool_of(2, 24, clock=CLOCK)
    pool.quota("nodes", 0, when="Sat")
    more = sk.make_slots(node=[7], start=24, end=72, performance=1, price=1)
    pool.add_slots(more)
    assert pool.find(sk.Request(1, 10, earliest=24), "start").start == 48


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.set_cap("a", 1.5), "amount of a is 1.5, but amounts are whole"),
        (lambda p: p.set_cap("a", -1), "amount of a must not be negative, got -1"),
        (lambda p: p.set_cap("nodes", 1), "quota limits nodes"),
        (lambda p: p.set_cap("a", 1, 5, 5), "end 5 does not lie after start 5"),
        (lambda p: p.quota("matlb", 1), "got 'matlb'; did you mean 'matlab'"),
        (lambda p: p.quota("nodes", 1, when="Mon-Fr"), "when must be days, hours"),
        (lambda p: p.quota("nodes", 1, when="Mon"), "needs the zone of a clock"),
        (lambda p: p.quota("nodes", 1, account="x", each=True), "for account='\\*'"),
        (lambda p: p.quota("nodes", None), "the pool has no such quota"),
        (lambda p: p.find(sk.Request(1, 1, uses={"x": 1})), "no capacity 'x'"),
        (
            lambda p: p.set_cap("a", {"start": [0, 1], "end": [2, 3], "amount": 1}),
            "row 1: overlaps row 0",
        ),
        (
            lambda p: p.set_cap("a", {"start": [0], "end": [2], "amnount": [1]}),
            "no column 'amount'; it has start, end, amnount; did you mean 'amnount'",
        ),
        (lambda p: p.find_alternatives(sk.Request(1, 1, uses={"matlab": 1})), "keep"),
        (
            lambda p: p.find(sk.Request(1, 1, uses={"matlab": 1}), method="lite"),
            "method 'lite' does not keep",
        ),
        (lambda p: p.handle(), "compiled code does not keep"),
    ],
)
def test_errors_name_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(pool_of(caps={"matlab": 2}))


def test_a_table_of_amounts_has_none_at_other_times() -> None:
    table = {"start": [10, 20], "end": [20, 30], "amount": [1, 2]}
    pool = pool_of(caps={"matlab": table})
    rows = pool.caps[["start", "end", "amount"]].tolist()
    assert rows == [(-math.inf, 10, 0), (10, 20, 1), (20, 30, 2), (30, math.inf, 0)]
    assert pool.find(sk.Request(1, 5, uses={"matlab": 2}), "start").start == 20
    assert pool.find(sk.Request(1, 20, uses={"matlab": 1}), "start").start == 10
    assert pool.find(sk.Request(1, 21, uses={"matlab": 1}), "start") is None


def test_a_booking_that_breaks_a_rule_changes_nothing() -> None:
    pool = pool_of(caps={"matlab": 2})
    window = pool.find(sk.Request(1, 5, uses={"matlab": 2}), "start")
    pool.book(window, "ann")
    other = pool.find(sk.Request(1, 5, uses={"matlab": 1}, earliest=5), "start")
    pool.set_cap("matlab", 0, 5, 10)
    before = pool.slots.tolist(), pool.caps.tolist()
    with pytest.raises(
        ValueError, match="matlab: 0 in all, none is taken from 5 to 10"
    ):
        pool.book([other])
    assert (pool.slots.tolist(), pool.caps.tolist()) == before
    with pytest.raises(ValueError, match="is not free"):
        pool.book(pool_of().find(sk.Request(3, 5), "start"))
    assert (pool.slots.tolist(), pool.caps.tolist()) == before


def test_rules_that_come_later_count_what_is_booked() -> None:
    pool = pool_of()
    pool.book(pool.find(sk.Request(2, 5, account="ann"), "start"))
    pool.reserve([2], 50, 60, owner="maintenance")
    pool.quota("nodes", 2)
    assert pool.find(sk.Request(1, 5), "start").start == 5
    assert pool.caps["used"].max() == 2  # reservations use none
    bare = pool_of()
    bare.book(bare.find(sk.Request(1, 5), "start"))
    with pytest.raises(ValueError, match="booked without an owner"):
        bare.quota("nodes", 2)


@pytest.mark.parametrize("owner", [None, "ann"])
def test_a_later_quota_counts_what_schedule_has_booked(owner: str | None) -> None:
    jobs = [sk.Request(2, 5), sk.Request(1, 3, account="x"), sk.Request(9, 1)]
    scheduled, booked, before = (pool_of(caps={"lic": 3}) for _ in range(3))
    done = scheduled.schedule(jobs, owner=owner)
    for job in jobs:
        if (found := booked.find(job, "start")) is not None:
            booked.book(found, owner)
    assert_equal_counts(scheduled, booked)
    for pool in (scheduled, booked, before):
        pool.quota("nodes", 3)
        pool.quota("nodes", 2, each=True)
    before.schedule(jobs, owner=owner)
    assert booked.caps["used"].max() == 3
    for pool in (scheduled, before):
        assert_equal_counts(pool, booked)
    for window in (each for each in done if each is not None):
        scheduled.release(window)
    assert scheduled.caps["used"].max() == 0


def assert_equal_counts(one: sk.SlotPool, other: sk.SlotPool) -> None:
    assert one.caps.tolist() == other.caps.tolist()
    charges = [dict(pool._capacities.charged()) for pool in (one, other)]  # type: ignore[union-attr]
    assert charges[0] == charges[1]


def test_lowering_a_capacity_below_its_use_releases_nothing() -> None:
    pool = pool_of(caps={"matlab": 2})
    window = pool.find(sk.Request(1, 5, uses={"matlab": 2}), "start")
    pool.book(window)
    pool.set_cap("matlab", 1)
    assert pool.caps[["amount", "used"]].tolist() == [(1, 0), (1, 2), (1, 0)]
    job = sk.Request(1, 5, uses={"matlab": 1})
    assert pool.find(job, "start").start == 5
    pool.release(window)
    assert pool.find(job, "start").start == 0


def test_windows_and_listings_say_what_is_used() -> None:
    pool = pool_of(caps={"matlab": 2, "power": 9})
    job = sk.Request(1, 5, uses={"power": 3, "matlab": 1}, account="ann", name="j")
    window = pool.find(job, "start")
    pool.book(window)
    assert sk.Window.from_dict(window.to_dict()).uses == {"power": 3, "matlab": 1}
    assert pickle.loads(pickle.dumps(window)).account == "ann"
    row = pool.bookings()[["owner", "account", "uses"]].tolist()
    assert row == [("ann", "ann", "power=3,matlab=1")]
    assert pool.copy().windows()[0].uses == window.uses


def test_files_keep_capacities_and_older_versions_refuse_them(tmp_path: Path) -> None:
    pool = pool_of(caps={"matlab": 2}, clock=CLOCK)
    pool.quota("nodes", 2, account="ann", when="Mon-Fri")
    owned = pool.find(sk.Request(1, 5, uses={"matlab": 1}, account="ann"), "start")
    pool.book(owned)
    pool.book(pool.find(sk.Request(1, 5, uses={"matlab": 1}), "start"))
    pool.advance(1)
    pool.save(tmp_path / "pool.npz")
    loaded = sk.SlotPool.load(tmp_path / "pool.npz")
    assert loaded.caps.tolist() == pool.caps.tolist()
    assert loaded.windows("ann")[0].uses == {"matlab": 1}
    loaded.release("ann")
    assert loaded.caps["used"].max() == 1
    with np.load(tmp_path / "pool.npz") as arrays:
        assert arrays["format"] == "slotkern pool 4"
        damaged = {name: arrays[name] for name in arrays.files}
    damaged["capacities"] = np.array('{"rules": [["matlab"]]}')
    np.savez(tmp_path / "damaged.npz", **damaged)
    with pytest.raises(ValueError, match="its capacities are not complete"):
        sk.SlotPool.load(tmp_path / "damaged.npz")


def test_explanations_name_the_rule_and_what_fits() -> None:
    pool = pool_of(caps={"matlab": 10})
    pool.book(pool.find(sk.Request(1, 10, uses={"matlab": 9}, earliest=8), "start"))
    job = sk.Request(1, 12, uses={"matlab": 2}, deadline=20)
    why = sk.explain(pool, job)
    assert not why.fits
    assert why.earliest_finish == 30
    text = str(why)
    assert "matlab: 10 in all, 9 are taken from 8 to 18; without this limit" in text
    assert "with uses of 1 matlab, or without the capacity of matlab" in text
    late = str(sk.explain(pool, job.replace(deadline=np.inf)))
    assert "A window fits." in late
    assert (
        "9 are taken from 8 to 18; without this limit the earliest start is 0" in late
    )
    assert "with all limits the earliest start is 18" in late
    assert "matlab" not in str(sk.explain(pool, job.replace(volume=5)))
    pool.quota("nodes", 1, account="ann")
    quota = str(sk.explain(pool, sk.Request(2, 5, account="ann")))
    assert "nodes of 'ann': 1 in all, none is taken" in quota
    assert "without the quota of nodes" in quota


def test_tables_of_jobs_have_columns_of_uses_and_accounts() -> None:
    pool = pool_of(caps={"matlab": 1})
    jobs = {"nodes": [1, 1, 1], "volume": 5, "uses.matlab": [1, 1, 0], "account": "ann"}
    done = pool.schedule(jobs)
    assert done.start.tolist() == [0, 5, 0]
    assert done[0].uses == {"matlab": 1}
    assert done[2].uses is None
    assert done.listing()["account"].tolist() == ["ann"] * 3


def test_a_use_may_be_a_sum_over_the_chosen_nodes() -> None:
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=20, performance=1, price=[1, 1, 3], watts=[5, 5, 1]
    )
    pool = sk.SlotPool(slots, caps={"power": 10})
    pool.set_cap("power", 6, 0, 9)
    job = sk.Request(2, 5, uses={"power": "watts"}, name="hot")
    soon, cheap = pool.find(job, "start"), pool.find(job, "cost")
    assert (soon.start, soon.nodes, soon.uses) == (0, (0, 2), {"power": 6})
    assert (cheap.start, cheap.nodes, cheap.uses) == (9, (0, 1), {"power": 10})
    done = pool.schedule([job, job])
    assert [window.uses for window in done] == [{"power": 6}, {"power": 6}]
    assert done.start.tolist() == [0, 5]
    pool.set_cap("heat", 9)
    two = job.replace(uses={"power": "watts", "heat": "watts"})
    with pytest.raises(ValueError, match="only one can be a sum over the nodes"):
        pool.find(two)
    with pytest.raises(ValueError, match=r"no column 'wats'.*did you mean 'watts'"):
        pool.find(job.replace(uses={"power": "wats"}))
    with pytest.raises(ValueError, match="the pool has no capacity 'pwer'"):
        pool.find(job.replace(uses={"pwer": "watts"}))
    with pytest.raises(ValueError, match="does not depend on the length; limits can"):
        pool.find(job.replace(uses={"power": "watts * length"}))
    with pytest.raises(ValueError, match="must be a whole number or a column"):
        sk.Request(1, 1, uses={"power": " "})


def test_searches_add_no_rows_to_the_table_of_capacities() -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=20, performance=1, price=1)
    pool = sk.SlotPool(slots)
    pool.quota("nodes", 1, each=True)
    assert pool.caps["account"].tolist() == ["*"]
    pool.find(sk.Request(1, 5, account="bob"))
    assert pool.caps["account"].tolist() == ["*"]
    pool.schedule([sk.Request(1, 5, account="ann")])
    assert set(pool.caps["account"].tolist()) == {"ann"}


def test_explanations_print_starts_with_all_digits() -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=9e6, performance=1, price=1)
    pool = sk.SlotPool(slots, caps={"matlab": 1})
    job = sk.Request(1, 2345678, earliest=1234567, uses={"matlab": 1})
    pool.book(pool.find(job, "start"), "ann")
    assert "the earliest start is 1234567" in str(sk.explain(pool, job))


def test_a_quota_of_no_name_is_refused() -> None:
    pool = sk.SlotPool(sk.make_slots(node=[0], start=0, end=9, performance=1, price=1))
    wrong: Any = []
    with pytest.raises(ValueError, match=r"a quota limits 'nodes'; got \[\]"):
        pool.quota(wrong, 1)


def test_threads_schedule_under_capacities_at_once() -> None:
    slots = sk.make_slots(node=range(6), start=0, end=1e6, performance=1, price=1)
    pool = sk.SlotPool(slots, caps={"matlab": 4})
    jobs = [sk.Request(1 + k % 2, 2, uses={"matlab": 1}) for k in range(60)]
    done: list[Any] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda: done.append(pool.schedule(jobs, "start")))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert [each.reason.tolist() for each in done] == [[0] * 60] * 4
    assert pool.caps["used"].max() == 4
    assert len(pool.booked) == 4 * 90


def test_refused_bookings_give_all_amounts_back() -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
    pool, other = sk.SlotPool(slots, caps={"m": 10}), sk.SlotPool(slots, caps={"x": 1})
    first = pool.find(sk.Request(1, 5, uses={"m": 6}), "start")
    unknown = other.find(sk.Request(1, 5, uses={"x": 1}, where="node == 1"), "start")
    with pytest.raises(ValueError, match="'x'"):
        pool.book([first, unknown])
    assert not pool.caps["used"].any()


def test_adding_slots_that_a_weekly_quota_does_not_support_changes_nothing() -> None:
    pool = pool_of(2, 24, clock=CLOCK)
    pool.quota("nodes", 0, when="Sat")
    before = pool.slots.tolist(), pool.caps.tolist()
    endless = sk.make_slots(node=[7], start=24, end=np.inf, performance=1, price=1)
    with pytest.raises(ValueError, match="when='Sat' needs slots that end"):
        pool.add_slots(endless)
    assert (pool.slots.tolist(), pool.caps.tolist()) == before


def test_a_pool_with_a_handle_takes_over_no_capacities() -> None:
    pool, other = pool_of(), pool_of(caps={"matlab": 1})
    pool.handle()
    with pytest.raises(ValueError, match="compiled code has a handle of this pool"):
        pool._replace_state(other)
    assert not len(pool.caps)
    pool._replace_state(pool_of(4))
    assert len(pool.nodes) == 4


@pytest.mark.parametrize("power", [6, 100])
def test_a_sum_to_which_no_limit_can_be_added_is_refused_for_any_bookings(
    power: int,
) -> None:
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=20, performance=1, price=1, watts=[5, 5, 1], rack=0
    )
    pool = sk.SlotPool(slots, caps={"power": power})
    job = sk.Request(2, 5, uses={"power": "watts"})
    limits = [f"sum(watts) <= {100 + k}" for k in range(6)]
    assert pool.find(job.replace(limits=limits[:5])) is not None
    with pytest.raises(ValueError, match=r"'watts'.* at most 5 limits, got 6"):
        pool.find(job.replace(limits=limits))
    for rules in ({"within": "rack"}, {"limits": "distinct(rack) <= 1"}):
        with pytest.raises(ValueError, match="not supported together with group rules"):
            pool.find(job.replace(**rules))


@pytest.mark.parametrize(
    ("given", "uses"),
    [
        ({"m": "2"}, {"m": 2}),
        ("m=2", {"m": 2}),
        ({"m": "2", "power": "watts"}, {"m": 2, "power": "watts"}),
        ("m=2,power=watts", {"m": 2, "power": "watts"}),
    ],
)
def test_a_number_in_a_text_is_an_amount(given: Any, uses: dict[str, Any]) -> None:
    assert sk.Request(1, 1, uses=given).uses == uses


def test_searches_that_keep_no_capacities_name_those_that_do() -> None:
    pool = pool_of(caps={"matlab": 1})
    with pytest.raises(ValueError, match=r"SlotPool\.schedule of single requests do"):
        sk.find_alternatives(pool, sk.Request(1, 5, uses={"matlab": 1}))


def test_explanations_name_the_capacity_of_a_sum() -> None:
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=20, performance=1, price=1, watts=[5, 5, 1]
    )
    pool = sk.SlotPool(slots, caps={"power": 10})
    why = str(sk.explain(pool, sk.Request(3, 5, uses={"power": "watts"})))
    assert "power: 10 in all, none is taken" in why
    assert "without the capacity of power" in why
    assert "with uses of" not in why


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        ({"pwer": 1}, "the pool has no capacity 'pwer'; it has 'power'"),
        ({"power": "wats"}, "no column 'wats'"),
    ],
)
def test_schedules_name_the_request_with_a_wrong_use_and_book_nothing(
    uses: dict[str, Any], message: str
) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1, watts=1)
    pool = sk.SlotPool(slots, caps={"power": 9})
    jobs = [sk.Request(1, 5), sk.Request(1, 5, uses=uses)]
    with pytest.raises(ValueError, match=rf"^requests\[1\]: .*{message}"):
        pool.schedule(jobs)
    assert not len(pool.booked)
