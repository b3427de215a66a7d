"""Domains against one pool with the slots of all domains."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern.domains.joined import JoinedSlots

_CLOCK = sk.Clock("2030-01-01", zone="UTC")
_SHAPES = ("square", "ragged")
_PRICES = {"cern": 3, "jinr": 1}


def _slots(rnd: random.Random, first: int = 0, since: int = 0) -> Any:
    """Return up to two slots of each of one to five nodes from `first` on."""
    rows = []
    for node in range(first, first + rnd.randint(1, 5)):
        performance, price = rnd.choice([1, 2, 4]), rnd.randint(0, 4)
        start = since + rnd.randint(0, 4)
        for _ in range(rnd.randint(1, 2)):
            end = start + rnd.randint(1, 12)
            rows.append((node, start, end, performance, price))
            start = end + rnd.randint(1, 3)
    rows.sort(key=lambda row: (row[1], row[0]))
    return np.array(rows, sk.SLOT)


def _change(rnd: random.Random, pool: sk.SlotPool, gap: int) -> None:
    """Make a change of a local manager."""
    what = rnd.randrange(7)
    nodes, last = pool.nodes.tolist(), int(max(pool.now, pool.origin["end"].max()))
    node, start = rnd.choice(nodes or [0]), max(0.0, pool.now) + rnd.randint(0, 6)
    if what <= 1 and nodes:
        pool.reserve(node, start, start + rnd.randint(1, 5), owner="own", partly=True)
    elif what == 2 and "own" in pool.owners:
        pool.release("own")
    elif what == 3 and nodes:
        pool.disable([node], start, start + 3)
    elif what == 4:
        pool.advance(max(0.0, pool.now) + rnd.randint(0, 2))
    elif what == 5 and len(nodes) > 1:
        pool.remove_node(node)
    elif what == 6:
        used = int(pool.origin["node"].max()) + gap
        pool.add_slots(_slots(rnd, used, last))


def _joined(pools: dict[str, sk.SlotPool]) -> tuple[sk.SlotPool, list[str]]:
    """Return one pool with the free slots of all, and the names of its nodes."""
    tables, names = [], []
    for name, pool in pools.items():
        ids, slots = np.unique(pool.origin["node"]), pool.slots.copy()
        slots["node"] = len(names) + np.searchsorted(ids, slots["node"])
        names += [f"{name}/{i}" for i in ids]
        tables.append(slots)
    slots = np.concatenate(tables)
    return sk.SlotPool(slots[np.lexsort((slots["node"], slots["start"]))]), names


def _facts(window: sk.Window | None, names: list[str] | None = None) -> Any:
    if window is None:
        return None
    nodes = window.names if names is None else [names[i] for i in window.nodes]
    times = window.start, window.finish, window.cost, window.value
    return times, tuple(nodes), window.slots["end"].tolist()


def check(rnd: random.Random) -> None:
    """Compare searches and bookings with those of the joined pool, after changes."""
    gap = rnd.choice([1, 3])
    pools = {f"d{k}": sk.SlotPool(_slots(rnd)) for k in range(rnd.randint(1, 4))}
    domains = sk.Domains(pools)
    booked: list[Any] = []
    for step in range(4):
        joined, names = _joined(pools)
        for criterion in sk.CRITERIA:
            for shape in _SHAPES:
                request = sk.Request(
                    rnd.randint(1, 5),
                    rnd.randint(1, 12),
                    budget=rnd.choice([float("inf"), 60]),
                    earliest=rnd.choice([0, 3]),
                )
                window = domains.find(request, criterion, shape=shape)
                other = joined.find(request, criterion, shape=shape)
                assert _facts(window) == _facts(other, names)
        if window is not None and rnd.random() < 0.7:
            booked.append(domains.book(window, "meta"))
            assert sum(map(len, booked[-1].parts.values())) == len(window)
            with pytest.raises(ValueError, match="not free"):
                domains.book(window, "meta")
        if booked and rnd.random() < 0.3:
            done = booked.pop(rnd.randrange(len(booked)))
            if done.window.finish > max(pool.now for pool in pools.values()):
                domains.release(done)
        for name in pools:
            if rnd.random() < 0.5:
                _change(rnd, pools[name], gap)
        if rnd.random() < 0.2:
            pools[f"late{step}"] = sk.SlotPool(_slots(rnd))
            domains.add(f"late{step}", pools[f"late{step}"])
        elif rnd.random() < 0.2 and len(pools) > 1:
            name = rnd.choice([*pools])
            assert domains.remove(name) is pools.pop(name)
            booked = [each for each in booked if name not in each.parts]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64).map(random.Random))
def test_searches_equal_those_of_the_joined_pool(rnd: random.Random) -> None:
    check(rnd)


def _site(names: list[str], price: float, **options: Any) -> sk.SlotPool:
    """Return a pool of named nodes that are free from 0 to 100."""
    machine = sk.Machine({"name": names, "price": price, "rack": "r1"}, levels="rack")
    return sk.SlotPool(sk.free_slots(machine, start=0, end=100, **options))


@pytest.fixture
def sites() -> sk.Domains:
    """Two sites of three nodes; those of the second one are cheaper."""
    cern = _site(["n1", "n2", "n3"], 3)
    return sk.Domains({"cern": cern, "jinr": _site(["n1", "n2", "n3"], 1)})


def test_nodes_have_the_name_of_their_domain(sites: sk.Domains) -> None:
    window = sites.find(sk.Request(4, 10), "cost")
    assert window is not None
    assert window.names == ("cern/n1", "jinr/n1", "jinr/n2", "jinr/n3")
    assert sk.find_window(sites, sk.Request(4, 10), "cost") == window
    booking = sites.book(window, "ann")
    assert {name: part.names for name, part in booking.parts.items()} == {
        "cern": ("n1",),
        "jinr": ("n1", "n2", "n3"),
    }
    assert [part.cost for part in booking.parts.values()] == [30, 30]
    assert sites["cern"].owners == sites["jinr"].owners == ["ann"]
    assert set(sites.slots["domain"]) == {"cern", "jinr"}


def test_group_rules_of_domains(sites: sk.Domains) -> None:
    within = sites.find(sk.Request(3, 10, within="domain"), "cost")
    assert within is not None
    assert within.cost == 30
    assert sites.find(sk.Request(4, 10, within="domain")) is None
    few = sites.find(sk.Request(4, 10, limits="most(domain) <= 2"), "cost")
    assert few is not None
    assert few.names == ("cern/n1", "cern/n2", "jinr/n1", "jinr/n2")
    assert sites.find(sk.Request(5, 10, limits="most(domain) <= 2")) is None


def test_groups_of_a_level_do_not_span_domains(sites: sk.Domains) -> None:
    assert sites.machine.levels == ("rack", "domain")
    assert sites.find(sk.Request(4, 10, within="rack")) is None
    here = sites.find(sk.Request(2, 10, where="rack == 'cern/r1'"), "cost")
    assert here is not None
    assert here.names == ("cern/n1", "cern/n2")


def test_ties_go_to_the_first_domain() -> None:
    sites = sk.Domains({"cern": _site(["n1", "n2"], 1), "jinr": _site(["n1"], 1)})
    sites["cern"].reserve("n1", 0, 50)
    window = sites.find(sk.Request(1, 10))
    assert window is not None
    assert window.names == ("cern/n2",)


def test_stale_domains_are_those_that_changed(sites: sk.Domains) -> None:
    sites.find(sk.Request(1, 10))
    assert sites.stale == []
    sites["jinr"].reserve("n2", 5, 9, owner="local")
    assert sites.stale == ["jinr"]
    assert len(sites.slots) == 7
    assert sites.stale == []


@pytest.mark.parametrize("changes", [1, 40, 400])
def test_the_joined_pool_follows_changes(changes: int) -> None:
    """It is the same pool, also after more changes than the log of a pool holds."""
    pools = {name: _site(["n1", "n2", "n3"], price) for name, price in _PRICES.items()}
    domains = sk.Domains(pools)
    domains.find(sk.Request(1, 1))
    pools["cern"].reserve("n1", 90, 91)  # from now on a change is logged
    pool = domains.pool
    for k in range(changes):
        pools["cern"].reserve(f"n{1 + k % 3}", k / 8, (k + 1) / 8, owner=f"u{k}")
    for k in range(0, changes, 2):
        pools["cern"].release(f"u{k}")
    pools["jinr"].advance(30)
    assert domains.stale == ["cern", "jinr"]
    assert domains.pool is pool
    for name in pools:
        mine = domains.slots[domains.slots["domain"] == name]
        theirs = pools[name].slots
        assert mine["start"].tolist() == theirs["start"].tolist()
        assert mine["end"].tolist() == theirs["end"].tolist()
        assert sum(mine["node"] // 3) == (name == "jinr") * len(mine)


def test_a_failed_update_builds_the_joined_pool_again(
    sites: sk.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sites.pool
    sites["cern"].reserve("n1", 0, 100)

    def fail(*_given: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as during:
        during.setattr(JoinedSlots, "update", fail)
        with pytest.raises(MemoryError):
            sites.find(sk.Request(1, 1))
    assert len(sites.slots) == 5
    assert sites.pool is not before


def test_a_refused_part_releases_the_others(sites: sk.Domains) -> None:
    window = sites.find(sk.Request(4, 10), "cost")
    before = sites["cern"].slots
    sites["jinr"].reserve("n2", 5, 9, owner="local")
    with pytest.raises(ValueError, match="n2") as caught:
        sites.book(window, "ann")
    assert caught.value.__notes__ == ["in the domain 'jinr'"]
    assert sites["cern"].slots.tolist() == before.tolist()
    assert sites["cern"].owners == []


def test_place_searches_again_if_a_local_manager_was_quicker(
    sites: sk.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = sk.Request(6, 10)
    find = sk.Domains.find

    def find_and_lose(self: sk.Domains, *given: Any, **options: Any) -> Any:
        window = find(self, *given, **options)
        if "local" not in sites["jinr"].owners:
            sites["jinr"].reserve("n2", 5, 9, owner="local")
        return window

    monkeypatch.setattr(sk.Domains, "find", find_and_lose)
    booking = sites.place(request, owner="ann")
    assert booking is not None
    assert booking.window.start == 9
    assert len(sites["cern"].windows("ann")) == 1


def test_schedule_books_all_or_none(sites: sk.Domains) -> None:
    jobs = {"a": sk.Request(6, 10), "b": sk.Request(4, 20), "c": sk.Request(9, 1)}
    done = sites.schedule(jobs, owner="ann")
    assert done.start[:2].tolist() == [0, 10]
    assert done.reasons == ["booked", "booked", "nodes"]
    assert len(sites["cern"].windows("ann")) == 2
    assert [w.name for w in sites["jinr"].windows("ann")] == ["a", "b"]


def test_reserve_and_release_an_owner(sites: sk.Domains) -> None:
    made = sites.reserve(["cern/n1", "jinr/n3"], 10, 20, owner="ann")
    assert [sorted(each.parts) for each in made] == [["cern", "jinr"]]
    sites.release("ann")
    assert len(sites.slots) == 6
    with pytest.raises(ValueError, match="'ann' has booked nothing"):
        sites.release("ann")
    with pytest.raises(ValueError, match="booked in no domain"):
        sites.release(made[0])


def test_windows_found_before_a_domain_went_keep_their_nodes(sites: sk.Domains) -> None:
    both = sites.find(sk.Request(4, 10), "cost")
    cheap = sites.find(sk.Request(2, 10), "cost")
    sites.add("gsi", _site(["n1"], 1))
    cern = sites.remove("cern")
    assert list(sites) == ["jinr", "gsi"]
    with pytest.raises(ValueError, match="'cern/n1' is no node"):
        sites.book(both)
    booking = sites.book(cheap, "ann")
    assert booking.parts["jinr"].names == ("n1", "n2")
    assert cern.owners == []
    with pytest.raises(ValueError, match="was not found in these domains"):
        sites.book(sk.Window.from_dict(cheap.to_dict()))


def test_cycles_over_domains_with_local_managers(sites: sk.Domains) -> None:
    def local(cycle: int, domains: sk.Domains) -> None:
        if cycle == 1:
            domains["jinr"].reserve(["n1", "n2"], 20, 50, owner="own", partly=True)

    jobs, when = [sk.Request(4, 30), sk.Request(4, 20), sk.Request(1, 20)], [0, 5, 12]
    flow = sk.run_cycles(
        sites, jobs, when, length=10, horizon=90, update=local, lengths=[0.5, 1, 1]
    )
    joined = sk.SlotPool(sites.slots, machine=sites.machine)

    def same(cycle: int, pool: sk.SlotPool) -> None:
        if cycle == 1:
            nodes = ["jinr/n1", "jinr/n2"]
            pool.reserve(nodes, 20, 50, owner="own", partly=True)

    other = sk.run_cycles(
        joined, jobs, when, length=10, horizon=90, update=same, lengths=[0.5, 1, 1]
    )
    assert flow.start.tolist() == other.start.tolist()
    assert flow.finish.tolist() == other.finish.tolist()
    assert isinstance(flow.pool, sk.Domains)
    assert len(sites.slots) == 6


def test_batches_over_domains(sites: sk.Domains) -> None:
    jobs = [sk.Request(4, 30), sk.Request(2, 20, within="domain")]
    schedule = sk.schedule_batch(sites, jobs)
    plain = sk.schedule_batch(sk.SlotPool(sites.slots), jobs)
    assert schedule.windows.start.tolist() == plain.windows.start.tolist()
    made = sites.book(schedule, "ann")
    assert [len(each.window) for each in made] == [4, 2]
    assert len(made[1].parts) == 1


def test_ledgers_and_pools_are_booked_all_or_none(tmp_path: Path) -> None:
    pools = {
        name: _site(["n1", "n2"], 1).share(tmp_path / f"{name}.db")
        for name in ("a", "b")
    }
    domains = sk.Domains(pools | {"c": _site(["n1"], 1)})
    window = domains.find(sk.Request(5, 10))
    sk.SlotPool.open(tmp_path / "b.db").reserve("n1", 0, 5, owner="local")
    with pytest.raises(ValueError, match="n1"):
        domains.book(window, "ann")
    assert pools["a"].open_bookings() == []
    booking = domains.place(sk.Request(5, 10), owner="ann")
    assert booking is not None
    assert booking.window.start == 5
    for name, pool in pools.items():
        (open_one,) = pool.open_bookings("ann")
        assert open_one.expires is None
        assert booking.parts[name].id == open_one.id
        assert pool.check().violations == []
    domains.release(booking)
    assert domains["c"].owners == []
    assert domains.find(sk.Request(5, 5)).start == 5


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "one or more"),
        ({"a/b": _site(["n1"], 1)}, "'a/b'"),
        ({1: _site(["n1"], 1)}, "must be text"),
        ({"a": [1]}, "domain 'a' must be a SlotPool"),
        (
            {
                "a": _site(["n1"], 1),
                "b": _site(["n1"], 1, clock=_CLOCK),
            },
            "'a' and 'b' must have the same clock",
        ),
        (
            {
                "a": _site(["n1"], 1),
                "b": sk.SlotPool(np.array([(0, 0, 1, 1, 1)], sk.SLOT)),
            },
            "same columns of slots",
        ),
        (
            {"a": sk.SlotPool(np.array([(0, 0, 1, 1, 1)], sk.SLOT), caps={"x": 1})},
            "capacities or quotas",
        ),
    ],
)
def test_domains_that_cannot_be_joined(given: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        sk.Domains(given)
