"""Capacities and quotas of pools of shared nodes, compared with plain definitions."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from caps_model import HALVES, Booking, CapsModel, Rule, halves
from hypothesis import given, settings
from hypothesis import strategies as st
from shares_model import Best, SharesModel, lengths_of

import slotkern as sk

HORIZON = 10
CAPACITY = [(4,), (4,), (8,)]
PERFORMANCE, PRICE, WATTS = [1, 2, 1], [4, 2, 8], [1, 3, 2]
MACHINE = sk.Machine(
    {
        "name": ["a", "b", "c"],
        "cores": [4, 4, 8],
        "performance": PERFORMANCE,
        "price": PRICE,
        "watts": WATTS,
    },
    capacity=["cores"],
)


def new_pool(machine: sk.Machine = MACHINE, **options: Any) -> sk.HostPool:
    return sk.HostPool(sk.free_slots(machine, start=0, end=HORIZON), **options)


#: Four nodes in two racks, for requests with a tree.
RACKS = sk.Machine(
    {"name": list("abcd"), "cores": 4, "rack": [0, 0, 1, 1], "price": 1},
    capacity=["cores"],
)


class World:
    """A pool and its models under the same random changes."""

    def __init__(self, pick: Any) -> None:
        self.pick = pick
        self.hosts = SharesModel(CAPACITY, PERFORMANCE, PRICE, HORIZON)
        self.caps = CapsModel()
        self.pool = new_pool(caps={name: pick((2, 3, 5)) for name in ("a", "b")})
        for row in self.pool.caps:
            amounts = [float(row["amount"])] * HALVES
            self.caps.rules.append(Rule(str(row["name"]), None, False, amounts))
        self.booked: list[tuple[sk.ShareWindow, Booking]] = []

    def set_cap(self) -> None:
        rule = self.pick([r for r in self.caps.rules if r.account is None])
        start = self.pick(range(self.hosts.now, HORIZON))
        end = self.pick(range(start + 1, HORIZON + 1))
        amount = self.pick((0, 1, 2, 4))
        self.pool.set_cap(rule.what, amount, start, end)
        for half in halves(start, end):
            rule.amounts[half] = amount

    def quota(self) -> None:
        what, account = self.pick(("nodes", "a")), self.pick(("*", "*", "x"))
        each, amount = account == "*" and self.pick((True, False)), self.pick((1, 2))
        self.pool.quota(what, amount, account=account, each=each)
        kept = [r for r in self.caps.rules if r[:3] != (what, account, each)]
        self.caps.rules = [*kept, Rule(what, account, each, [amount] * HALVES)]

    def search(self, book: bool) -> None:
        pick, demand = self.pick, self.pick((None, (1,), (2,), (3,)))
        plain: dict[str, Any] = {
            "nodes": pick((1, 1, 2, 3)),
            "volume": pick((2, 4, 6)),
            "stack": 1 if demand is None else pick((1, 2)),
            "budget": pick((math.inf, 20.0)),
            "earliest": pick((0, 0, 3)),
        }
        request = sk.Request(
            **plain,
            share=None if demand is None else {"cores": demand[0]},
            uses=pick((None, {"a": 1}, {"a": 2}, {"b": 3, "a": 1}, {"a": "watts"})),
            account=pick((None, "x", "y")),
        )
        criterion = pick(("start", "finish", "runtime", "cost"))
        shape = pick(("square", "ragged"))
        window = self.pool.find(request, criterion, shape=shape)
        enough = self.caps.fits(request, self.hosts.now)

        def fits(start: float, finish: float, nodes: list[int]) -> bool:
            return enough(start, finish, [{"watts": WATTS[node]} for node in nodes])

        best = self.hosts.find(
            **plain, demand=demand, criterion=criterion, shape=shape, fits=fits
        )
        if window is None:
            assert best is None
            return
        nodes = np.repeat(window.nodes, window.counts or [1] * len(window)).tolist()
        found = Best(window.value, int(window.start), window.cost, tuple(nodes))
        assert found == best
        if book:
            self.pool.book(window)
            self.record(window, nodes, plain["volume"], demand)

    def record(
        self, window: sk.ShareWindow, nodes: list[int], volume: int, demand: Any
    ) -> None:
        lengths = lengths_of(self.hosts, tuple(nodes), volume, window.shape)
        parts = self.hosts.parts(tuple(nodes), int(window.start), lengths, demand)
        booking = Booking(
            *(window.start, window.finish, len(nodes), dict(window.uses or {})),
            window.account,
        )
        self.hosts.booked.append((booking, parts))
        self.caps.bookings.append(booking)
        self.booked.append((window, booking))

    def release(self) -> None:
        if self.booked:
            window, booking = self.booked.pop(self.pick(range(len(self.booked))))
            if window.finish > self.pool.now:
                self.pool.release(window)
                self.caps.bookings.remove(booking)
                index = [each for each, _ in self.hosts.booked].index(booking)
                same = [*self.hosts.booked[index + 1 :]]
                self.hosts.booked[index:] = same

    def step(self, tmp_path: Path) -> None:
        match self.pick(("find", "book", "book", "book", *"rcqaks")):
            case "find" | "book" as what:
                self.search(what == "book")
            case "r":
                self.release()
            case "c":
                self.set_cap()
            case "q":
                self.quota()
            case "a":
                self.hosts.now = min(HORIZON - 1, self.hosts.now + self.pick((1, 2)))
                self.pool.advance(self.hosts.now)
            case "k":
                self.pool = pickle.loads(pickle.dumps(self.pool.copy()))
            case "s":
                self.pool.save(tmp_path / "pool.npz", overwrite=True)
                loaded: Any = sk.SlotPool.load(tmp_path / "pool.npz")
                assert loaded == self.pool
                self.pool = loaded


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_sequences_of_changes_against_the_model(
    tmp_path_factory: Any, random: Any
) -> None:
    world = World(random.choice)
    folder = tmp_path_factory.mktemp("caps")
    for _ in range(7):
        world.step(folder)
    rules = {(r.what, r.account, r.each): r for r in world.caps.rules}
    for row in world.pool.caps:
        if row["each"] or row["end"] <= 0:
            continue
        rule = rules[(row["name"], row["account"] or None, False)]
        for half in halves(max(row["start"], world.pool.now, 0), row["end"]):
            assert row["amount"] - row["used"] == world.caps.free(rule, None)[half]


def jobs_of(pick: Any) -> list[sk.Request]:
    """Return requests for parts and for groups of racks that capacities count."""
    found = []
    for _ in range(5):
        job = sk.Request(
            pick((1, 2)),
            pick((2, 3)),
            uses=pick((None, {"a": 1}, {"a": 2})),
            account=pick((None, "x", "y")),
        )
        how = pick(({}, {"share": {"cores": 2}}, {"tree": {"rack": 1}}))
        found.append(job.replace(**how))
    return found


def racks(pick: Any) -> sk.HostPool:
    pool = new_pool(RACKS, caps={"a": 2})
    pool.set_cap("a", pick((0, 1)), 2, 5)
    pool.quota("nodes", 2, each=True)
    return pool


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_schedule_equals_find_and_book(random: Any) -> None:
    jobs, pool = jobs_of(random.choice), racks(random.choice)
    other = pool.copy()
    done = pool.schedule(jobs, owner="all")
    for job, window in zip(jobs, done, strict=True):
        found = other.find(job, "start")
        assert window == found
        if found is not None and window is not None:
            assert (window.uses, window.account) == (job.uses, job.account)
            assert (found.uses, found.account) == (job.uses, job.account)
            other.book(found, "all")
    assert pool == other
    pool.release("all")
    assert pool.caps["used"].tolist() == [0] * len(pool.caps)


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_trees_start_at_the_first_time_at_which_all_rules_have_enough(
    random: Any,
) -> None:
    pool = racks(random.choice)
    model, bare = CapsModel(), new_pool(RACKS)
    free = [[0.0] * HALVES for _ in range(2)]
    for row in pool.caps:
        for half in halves(max(0, row["start"]), row["end"]):
            free[int(row["each"])][half] = row["amount"]
    model.rules = [Rule("a", None, False, free[0]), Rule("nodes", "*", True, free[1])]
    for job in jobs_of(random.choice):
        fits, expected = model.fits(job, 0), None
        for start in range(HORIZON):
            at = job.replace(uses=None, account=None, earliest=start, latest=start)
            there = bare.find(at, "start")
            if there is not None and fits(start, there.finish, []):
                expected = there
                break
        window = pool.find(job, "start")
        assert window == expected
        if window is not None:
            pool.book(window)
            bare.book(window, "all")
            uses = dict(window.uses or {})
            what = (window.start, window.finish, len(window), uses, window.account)
            model.bookings.append(Booking(*what))


def test_equal_windows_of_two_accounts_are_released_with_their_own_uses() -> None:
    pool = new_pool(caps={"a": 9})
    job = sk.Request(1, 2, share={"cores": 1}, latest=0, where="name == 'a'")
    ann = pool.find(job.replace(account="ann", uses={"a": 1}))
    bob = pool.find(job.replace(account="bob", uses={"a": 3}))
    assert ann is not None
    assert bob is not None
    assert ann == bob
    for window in (ann, bob, ann):
        pool.book(window)
    assert pool.owners == ["ann", "bob"]
    assert pool.caps["used"].max() == 5
    pool.release(ann)
    assert pool.caps["used"].max() == 4
    pool.release(bob)
    assert pool.caps["used"].max() == 1
    assert pool.owners == ["ann"]
    pool.release("ann")
    assert pool.caps["used"].max() == 0


@pytest.mark.parametrize("other", ["finish", "start"])
@pytest.mark.parametrize("account", ["ann", None])
def test_a_window_without_an_owner_is_released_with_its_own_uses(
    other: Any, account: str | None
) -> None:
    pool = new_pool(caps={"a": 9})
    job = sk.Request(1, 2, share={"cores": 1}, latest=0, where="name == 'a'")
    kept = pool.find(job.replace(account=account, uses={"a": 1}), other)
    given = pool.find(job.replace(uses={"a": 3}), "start")
    assert kept is not None
    assert given is not None
    for first, second in ((kept, given), (given, kept)):
        pool.book(first)
        pool.book(second)
        pool.release(given)
        assert pool.caps["used"].max() == 1
        assert pool.owners == ([] if account is None else [account])
        pool.release(kept)
        assert pool.caps["used"].max() == 0
        assert pool.owners == []
        assert pool.amounts.tolist() == new_pool().amounts.tolist()


def test_a_window_without_an_owner_is_released_as_found_by_another_criterion() -> None:
    pool = new_pool(caps={"a": 9})
    job = sk.Request(1, 2, share={"cores": 1}, uses={"a": 2})
    found, other = pool.find(job, "start"), pool.find(job, "cost")
    assert found is not None
    assert other is not None
    pool.book(found)
    pool.release(pool.find(job.replace(latest=0), "first") or other)
    assert pool.caps["used"].max() == 0


def test_reasons_name_a_capacity_or_a_quota() -> None:
    pool = new_pool(caps={"a": 1})
    pool.quota("nodes", 1, account="ann")
    part = sk.Request(1, 2, share={"cores": 1})
    jobs = [
        part.replace(uses={"a": 2}),
        part.replace(nodes=2, account="ann"),
        part.replace(nodes=9, account="ann"),
        part.replace(volume=99, uses={"a": 1}),
        part.replace(share={"cores": 99}, account="ann"),
        part.replace(uses={"a": 1}),
    ]
    reasons = ["cap", "quota", "nodes", "time", "share", "booked"]
    assert pool.schedule(jobs).reasons == reasons


def test_capacities_set_later_count_what_is_booked() -> None:
    pool = new_pool()
    job = sk.Request(1, 4, share={"cores": 1}, account="ann")
    pool.schedule([job, job])
    pool.quota("nodes", 3, account="ann")
    assert pool.caps["used"].max() == 2
    # One of the two has ended at 2: it is on the node of twice the performance.
    assert pool.find(job.replace(nodes=2), "start").start == 2  # type: ignore[union-attr]
    pool.book(pool.find(job.replace(account=None)))  # type: ignore[arg-type]
    bare = new_pool()
    bare.book(bare.find(job.replace(account=None)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="booked without an owner"):
        bare.set_cap("a", 1)


def test_explain_names_the_rule_to_blame() -> None:
    pool = new_pool(RACKS, caps={"a": 3})
    pool.set_cap("a", 1, 0, 8)
    part = sk.Request(1, 2, share={"cores": 1}, uses={"a": 2})
    text = str(sk.explain(pool, part))
    assert "a: 1 in all, none is taken from 0 to 8; without this limit" in text
    pool.set_cap("a", 1)
    assert "with uses of 1 a" in str(sk.explain(pool, part))
    tree = sk.Request(2, 2, tree={"rack": 1}, uses={"a": 2})
    text = str(sk.explain(pool, tree))
    assert "a: 1 in all" in text
    assert "at most 2 are ever free together" in text
    assert "without the capacity of a" in text
    with pytest.raises(ValueError, match="no capacity 'b'; it has 'a'"):
        sk.explain(pool, part.replace(uses={"b": 1}))


def test_what_a_pool_does_not_count_is_refused() -> None:
    pool = new_pool(RACKS, caps={"a": 1})
    whole = sk.Request(1, 2, whole="rack", account="ann")
    assert pool.find(whole, "start") is not None
    pool.quota("nodes", 1)
    for search in (pool.find, lambda job: pool.schedule([job])):
        for job, message in (
            (whole, "whole='rack' has a number of nodes that depends"),
            (sk.Request(2, 2, tree={"rack": 1}, uses={"a": "price"}), "is the sum"),
            (sk.Request(1, 2, uses={"b": 1}), "no capacity 'b'"),
            (sk.Request(1, 2, uses={"a": "prise"}), "prise"),
        ):
            with pytest.raises(ValueError, match=message):
                search(job)
    with pytest.raises(ValueError, match="does not keep the capacities"):
        sk.find_alternatives(pool, sk.Request(1, 2))
    with pytest.raises(ValueError, match="has no capacity 'a'"):
        new_pool().find(sk.Request(1, 2, uses={"a": 1}))
    window = pool.find(sk.Request(1, 2, uses={"a": 1}))
    assert window is not None
    pool.book(window)
    with pytest.raises(ValueError, match="cannot be booked: a: 1 in all, 1 is taken"):
        pool.book(window)


def test_a_price_above_the_largest_number_is_refused() -> None:
    machine = sk.Machine(
        {"name": ["a", "b"], "cores": [4, 8]}, capacity="cores", prices={"cores": 3e307}
    )
    pool = new_pool(machine)
    job = sk.Request(1, 0.5, share={"cores": 5})
    window = pool.find(job)
    assert window is not None
    assert window.cost == 0.5 * 5 * 3e307
    # Node a has no finite price either, but cannot hold the part.
    with pytest.raises(ValueError, match="price of a part on node 'b' is above"):
        pool.find(job.replace(share={"cores": 8}))


def test_quotas_at_hours_of_the_week_extend_over_new_time() -> None:
    clock = sk.Clock("2026-10-23", unit="h", zone="Europe/Berlin")  # a Friday
    free = [
        sk.free_slots(RACKS, start=start, end=end, clock=clock)
        for start, end in (("2026-10-23", "2026-10-26"), ("2026-10-26", "2026-10-28"))
    ]
    pool = sk.HostPool(free[0])
    pool.quota("nodes", 1, when="Mon-Fri 08:00-18:00")
    pool.add_slots(free[1])
    job = sk.Request(2, 24, share={"cores": 1}, earliest="2026-10-26 08:00")
    assert pool.find(job.replace(volume=8), "start").start == 91  # type: ignore[union-attr]
    assert pool.find(job) is None


def test_a_later_quota_counts_what_schedule_has_booked() -> None:
    jobs = [sk.Request(3, 4, share={"cores": 1}, stack=3), sk.Request(1, 2)]
    scheduled, booked, before = (new_pool(caps={"lic": 3}) for _ in range(3))
    scheduled.schedule(jobs, owner="ann")
    for job in jobs:
        booked.book(booked.find(job, "start"), owner="ann")
    for pool in (scheduled, booked, before):
        pool.quota("nodes", 4)
    before.schedule(jobs, owner="ann")
    assert scheduled.caps.tolist() == booked.caps.tolist() == before.caps.tolist()
    plain = (
        new_pool()
    )  # its parts, and not only its nodes, count from the first quota on
    plain.schedule(jobs[:1], owner="ann")
    plain.quota("nodes", 4)
    assert plain.caps["used"].max() == 3


@pytest.mark.parametrize("uses", [None, {"metres": 1}])
def test_a_queue_says_why_a_job_with_uses_has_no_window(
    uses: dict[str, int] | None,
) -> None:
    pool = sk.HostPool(sk.free_slots(RACKS, start=0, end=HORIZON), caps={"metres": 2})
    job = sk.Request(2, 4, share={"cores": 2}, uses=uses)
    jobs = [
        job.replace(budget=1),
        job.replace(nodes=3, within="rack"),
        job.replace(nodes=5),
        job.replace(volume=HORIZON + 1),
        job,
    ]
    result = pool.schedule(jobs)
    assert result.reasons == ["budget", "groups", "nodes", "time", "booked"]
