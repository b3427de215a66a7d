"""Tests of group rules in pools, alternatives, batches, tables, files and explain."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from group_rules import Rule, meets_rules
from pools import random_request, random_slots

import slotkern as sk

RULES = [
    (Rule("distinct", "rack", "<=", 1),),
    (Rule("distinct", "rack", "<=", 2),),
    (Rule("distinct", "rack", ">=", 2),),
    (Rule("most", "rack", "<=", 1), Rule("distinct", "site", "<=", 1)),
]


def some_slots(seed: int) -> np.ndarray:
    """Return slots of 12 nodes in 4 racks of 2 sites."""
    slots = random_slots(seed)
    rack = slots["node"] // 3 % 4
    names = np.array(["r0", "r1", "r2", "r3"])[rack]
    columns = {name: slots[name] for name in slots.dtype.names}
    return sk.make_slots(**columns, rack=names, site=rack // 2)


def text_of(rules):
    return [rule.text for rule in rules]


def value_of(window, criterion):
    return getattr(window, "start" if criterion == "first" else criterion)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_changed_pools_equal_their_slots(rules, shape):
    rng = np.random.default_rng(3)
    slots = some_slots(5)
    pool, booked = sk.SlotPool(slots), []
    for _ in range(30):
        job = random_request(rng).replace(limits=text_of(rules))
        for criterion in ("first", "start", "finish", "runtime", "cost"):
            window = pool.find(job, criterion, shape=shape)
            table = pool.slots
            expected = sk.find_window(table, job, criterion, shape=shape)
            assert (window is None) == (expected is None)
            if window is not None:
                assert window.nodes == expected.nodes
                assert (window.start, window.cost) == (expected.start, expected.cost)
                assert meets_rules(window.slots["row"], slots, rules)
        if window is not None:
            pool.book(window)
            booked.append(window)
        if booked and rng.random() < 0.3:
            pool.release(booked.pop(0))
    assert copy.copy(pool).find(job, "start", shape=shape) == pool.find(
        job, "start", shape=shape
    )


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("criterion", ["first", "start", "cost"])
def test_alternatives_are_the_searches_of_a_pool(rules, criterion):
    slots = some_slots(2)
    job = sk.Request(2, 6, limits=text_of(rules))
    found = sk.find_alternatives(slots, job, criterion)
    pool = sk.SlotPool(slots)
    assert len(found)
    for window in found:
        expected = pool.find(job, criterion)
        assert window.nodes == expected.nodes
        assert window.start == expected.start
        pool.book(expected)
    assert pool.find(job, criterion) is None


def test_schedules_obey_rules():
    slots = some_slots(4)
    pool = sk.SlotPool(slots)
    jobs = [sk.Request(3, 9, within="rack", name=f"j{k}") for k in range(8)]
    booked = pool.schedule(jobs, "finish")
    again = sk.SlotPool(slots)
    for k, window in enumerate(booked):
        expected = again.find(jobs[k], "finish")
        assert (window is None) == (expected is None)
        if window is not None:
            assert window.nodes == expected.nodes
            assert len(set(slots["rack"][window.slots["row"]])) == 1
            again.book(expected)
    crowded = sk.SlotPool(slots).schedule([sk.Request(4, 9, within="rack")])
    assert crowded.reasons == ["groups"]


@pytest.mark.parametrize(
    "policy", [sk.BatchSlicer(2), sk.CSS, sk.Backfilling("easy"), None]
)
def test_batches_obey_rules(policy):
    slots = some_slots(7)
    jobs = [sk.Request(3, 8, within="rack", name=f"j{k}") for k in range(6)]
    how = () if policy is None else (policy,)
    schedule = sk.schedule_batch(slots, jobs, *how)
    chosen = [window for window in schedule.windows if window is not None]
    assert chosen
    for window in chosen:
        assert len(set(slots["rack"][window.slots["row"]])) == 1


def test_tables_of_jobs_have_rules(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "name,nodes,volume,within,limits\n"
        "a,3,8,rack,\n"
        "b,3,8,,most(rack) <= 1 and distinct(site) <= 2\n"
    )
    batch = sk.read_batch(path)
    assert batch.requests[0].within == "rack"
    assert batch.requests[1].rules[0].text == "most(rack) <= 1"
    table = {"nodes": [3, 3], "volume": 8, "within": ["rack", None]}
    assert [job.within for job in sk.Batch.from_jobs(table).requests] == ["rack", None]


def test_explain_of_a_group_that_is_too_small():
    slots = sk.make_slots(
        node=range(8), start=0, end=[20] * 3 + [8] * 2 + [20] * 3, performance=1,
        price=1, rack=["a"] * 3 + ["b"] * 5,
    )  # fmt: skip
    job = sk.Request(5, 10, within="rack")
    why = sk.explain(slots, job)
    assert not why.fits
    assert why.rules == (3, ["a"], 0.0)
    assert (why.groups, why.most_nodes, why.together) == (2, 3, 6)
    assert why.changes() == {"within": 2, "nodes": 3}
    text = str(why)
    assert "in one rack at most 3 are free together (a; 0)" in text
    assert "it fits with distinct(rack) <= 2, or with 3 nodes instead" in text
    fitting = job.replace(within=None, limits="distinct(rack) <= 2")
    assert sk.find_window(slots, fitting) is not None
    assert why.to_dict()["group_names"] == ["a"]
    assert why.to_pandas()["limit"].tolist() == ["within", "nodes"]


def test_explain_of_rules_among_the_limits():
    slots = sk.make_slots(
        node=range(6), start=0, end=20, performance=1, price=1,
        rack=["a", "a", "a", "a", "b", "b"],
    )  # fmt: skip
    why = sk.explain(slots, sk.Request(6, 10, limits="most(rack) <= 2"))
    assert why.sums == {0: 4.0}
    assert why.rules.group_nodes == 4
    assert "under most(rack) <= 2 at most 4 are free together (a, b; 0)" in str(why)
    assert "with most(rack) <= 4" in str(why)
    why = sk.explain(slots, sk.Request(4, 10, limits="distinct(rack) >= 3"))
    assert why.sums == {0: 2.0}
    assert why.beyond == {0: 2.0}
    assert (why.most_nodes, why.nearest_nodes) == (0, 0)
    assert "under distinct(rack) >= 3 none can start together" in str(why)
    why = sk.explain(slots, sk.Request(1, 10, limits="distinct(rack) >= 2"))
    assert (why.most_nodes, why.nearest_nodes) == (6, 2)
    assert sk.explain(slots, sk.Request(2, 10, within="rack")).fits


def test_pool_files_and_pickles_keep_levels(tmp_path):
    slots = some_slots(1)
    pool = sk.SlotPool(slots)
    pool.save(tmp_path / "pool.npz")
    loaded = sk.SlotPool.load(tmp_path / "pool.npz")
    job = sk.Request(3, 5, within="rack")
    assert loaded.find(job) == pool.find(job)
    with pytest.raises(ValueError, match="no column 'shelf'"):
        loaded.find(sk.Request(3, 5, within="shelf"))
