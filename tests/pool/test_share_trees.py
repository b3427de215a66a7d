"""Requests for groups of a tree of levels, compared with all numbers of parts."""

from __future__ import annotations

import json
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shares_model import SharesModel

import slotkern as sk
from slotkern.machine.jobs import requests_of

HORIZON = 12


def machine_of(
    switch: list[int], rack: list[int], cores: list[int], price: list[int]
) -> sk.Machine:
    size = len(switch)
    return sk.Machine(
        {
            "name": [f"n{k}" for k in range(size)],
            "switch": switch,
            "rack": rack,
            "cores": cores,
            "price": price,
        },
        capacity=["cores"],
    )


def pool_of(machine: sk.Machine) -> sk.HostPool:
    return sk.HostPool(sk.free_slots(machine, start=0, end=HORIZON))


#: Two switches of two racks of two nodes each.
PLAIN = machine_of([0] * 4 + [1] * 4, [0, 0, 1, 1, 2, 2, 3, 3], [4] * 8, [1] * 8)


def has_form(
    counts: tuple[int, ...], groups: list[list[int]], wanted: list[int], parts: int
) -> bool:
    """Return whether parts on nodes have the form of a request.

    `groups`: of each level, from the coarsest, the group of each node; `wanted`: how
    many are taken in each group above; `parts`: of each innermost group, 0 for all.
    """
    above: list[Any] = [0] * len(counts)
    for level, number in zip(groups, wanted, strict=True):
        paths = [*zip(above, level, strict=True)]
        taken = {path for path, count in zip(paths, counts, strict=True) if count}
        for group in {path[0] for path in taken}:
            if sum(path[0] == group for path in taken) != number:
                return False
        above = paths
    for path in {path for path, count in zip(above, counts, strict=True) if count}:
        inside = [c for at, c in zip(above, counts, strict=True) if at == path]
        if sum(inside) != (parts or len(inside)):
            return False
    return any(counts)


def plain_best(
    model: SharesModel, search: dict[str, Any], groups: list[list[int]]
) -> tuple[int, float, tuple[int, ...]] | None:
    """Return the earliest start, the least cost there, and the first such counts.

    Those that come first take more of the nodes that come first in the tree.
    """
    demand = None if search["cores"] is None else (search["cores"],)
    length, hosts = search["length"], range(len(model.capacity))
    most = 1 if demand is None else search["stack"]
    order = sorted(hosts, key=lambda host: [g.index(g[host]) for g in groups] + [host])
    for start in range(search["earliest"], HORIZON - length + 1):
        best = None
        for counts in product(*(range(most + 1) for _ in hosts)):
            if not has_form(counts, groups, search["wanted"], search["parts"]):
                continue
            if not all(
                model.holds(
                    host,
                    start,
                    start + length,
                    tuple(
                        count * a
                        for a in (model.capacity[host] if demand is None else demand)
                    ),
                )
                for host, count in enumerate(counts)
                if count
            ):
                continue
            cost = sum(
                count * length * model.part_price(host, demand)
                for host, count in enumerate(counts)
            )
            if cost <= search["budget"]:
                each = cost, tuple(-counts[host] for host in order), counts
                best = each if best is None else min(best, each)
        if best is not None:
            return start, best[0], best[2]
    return None


@st.composite
def cases(draw: Any) -> tuple[sk.Machine, list[dict[str, Any]]]:
    """Draw a machine whose groups are in any order, and searches."""
    size = draw(st.integers(1, 5))
    borders = [draw(st.integers(0, 2)) for _ in range(size)]
    switch = np.cumsum([b == 2 for b in borders]).tolist()
    rack = np.cumsum([b >= 1 for b in borders]).tolist()
    order = draw(st.permutations(range(size)))
    switch, rack = [switch[i] for i in order], [rack[i] for i in order]
    # Amounts and prices are powers of two: costs are exact.
    cores = [draw(st.sampled_from([4, 4, 2])) for _ in range(size)]
    price = [draw(st.sampled_from([4, 8])) for _ in range(size)]
    searches = []
    for _ in range(draw(st.integers(1, 6))):
        whole = draw(st.booleans())
        tree = draw(st.sampled_from([(), ("switch",), ("rack",), ("switch", "rack")]))
        if whole:
            tree = tuple(level for level in tree if level != "rack")
        elif not tree:
            tree = ("rack",)
        cores_of_part = None if whole else draw(st.sampled_from([None, 1, 2]))
        searches.append(
            {
                "tree": {level: draw(st.integers(1, 2)) for level in tree},
                "whole": whole,
                "each": draw(st.integers(1, 3)),
                "length": draw(st.integers(1, 4)),
                "cores": cores_of_part,
                "stack": 1 if cores_of_part is None else draw(st.integers(1, 3)),
                "earliest": draw(st.integers(0, 3)),
                "budget": draw(st.sampled_from([np.inf, np.inf, 32.0])),
                "books": draw(st.booleans()),
                "criterion": draw(st.sampled_from(["start", "finish"])),
            }
        )
    return machine_of(switch, rack, cores, price), searches


def request_of(search: dict[str, Any]) -> sk.Request:
    nodes = search["each"] * int(np.prod([*search["tree"].values()]))
    cores = search["cores"]
    return sk.Request(
        nodes,
        search["length"],
        tree=search["tree"] or None,
        whole="rack" if search["whole"] else None,
        share=None if cores is None else {"cores": cores},
        stack=search["stack"],
        earliest=search["earliest"],
        budget=search["budget"],
    )


def find_both(
    pool: sk.HostPool, model: SharesModel, search: dict[str, Any]
) -> sk.ShareWindow | None:
    """Compare a search with the plain definition; return the window."""
    columns, tree = pool.machine.columns, search["tree"]
    # If levels have equal groups, one that asks for several groups is the outer one.
    levels = sorted(tree, key=lambda level: (len({*columns[level]}), -tree[level]))
    wanted = [tree[level] for level in levels]
    if search["whole"]:
        levels, wanted = [*levels, "rack"], [*wanted, search["each"]]
    groups = [columns[level].tolist() for level in levels]
    plain = {
        **search,
        "wanted": wanted,
        "parts": 0 if search["whole"] else search["each"],
    }
    window = pool.find(request_of(search), search["criterion"])
    expected = plain_best(model, plain, groups)
    if window is None:
        assert expected is None
        return None
    counts = [0] * len(pool)
    for node, count in window.slots[["node", "count"]].tolist():
        counts[node] = count
    assert (window.start, window.cost, tuple(counts)) == expected
    assert window.value == getattr(window, search["criterion"])
    return window


@settings(max_examples=150)
@given(cases())
def test_windows_are_those_of_the_plain_definition(
    case: tuple[sk.Machine, list[dict[str, Any]]],
) -> None:
    machine, searches = case
    pool, new = pool_of(machine), pool_of(machine)
    cores = machine.columns["cores"].tolist()
    model = SharesModel(
        [(c,) for c in cores],
        [1] * len(machine),
        machine.price.astype(int).tolist(),
        HORIZON,
    )
    booked = []
    for search in searches:
        window = find_both(pool, model, search)
        if window is None or not search["books"]:
            continue
        pool.book(window)
        booked.append(window)
        nodes = np.repeat(window.nodes, window.counts or [1] * len(window))
        lengths = dict.fromkeys(window.nodes, search["length"])
        demand = None if search["cores"] is None else (search["cores"],)
        parts = model.parts(tuple(nodes.tolist()), int(window.start), lengths, demand)
        model.booked.append((window, parts))
    for window in booked:
        pool.release(window)
    assert pool == new


def test_levels_may_be_given_in_any_order() -> None:
    pool = pool_of(PLAIN)
    pool.reserve(["n0", "n5"], 0, 3)
    for tree in ({"switch": 2, "rack": 1}, {"rack": 1, "switch": 2}):
        window = pool.find(sk.Request(4, 2, tree=tree))
        assert window is not None
        assert (window.start, window.nodes) == (0, (2, 3, 6, 7))


def test_filters_prices_and_times_hold_in_trees() -> None:
    pool = pool_of(PLAIN)
    job = sk.Request(4, 2, tree={"switch": 1, "rack": 2})
    window = pool.find(job.replace(where="rack >= 1"))
    assert window is not None
    assert window.nodes == (4, 5, 6, 7)
    assert pool.find(job.replace(where="rack != 1 and rack != 2")) is None
    assert pool.find(job.replace(max_price=0.5)) is None
    assert pool.find(job.replace(min_performance=2)) is None
    assert pool.find(job.replace(max_runtime=1)) is None
    pool.reserve(["n0", "n4"], 0, 5)
    found = pool.find(job)
    assert found is not None
    assert found.start == 5
    assert pool.find(job.replace(latest=4)) is None
    assert pool.find(job.replace(deadline=6)) is None


def test_whole_groups_of_unlike_sizes_are_taken_cheapest_first() -> None:
    machine = machine_of([0] * 4, [0, 0, 0, 1], [4, 4, 4, 2], [1] * 4)
    pool = pool_of(machine)
    window = pool.find(sk.Request(1, 2, whole="rack"))
    assert window is not None
    assert window.nodes == (3,)
    both = pool.find(sk.Request(2, 2, whole="rack", tree={"switch": 1}))
    assert both is not None
    assert (both.nodes, both.cost) == ((0, 1, 2, 3), 8)
    assert both.counts is None


def test_schedule_books_what_find_returns() -> None:
    jobs = [
        sk.Request(6, 2, share={"cores": 1}, stack=4, tree={"rack": 1}, name="cores"),
        sk.Request(4, 3, tree={"switch": 1}, name="nodes"),
        sk.Request(2, 4, whole="rack", tree={"switch": 1}, name="racks"),
        sk.Request(2, 1, share={"cores": 4}, name="plain"),
        sk.Request(3, 1, whole="rack", tree={"switch": 1}, name="never"),
    ]
    one, other = pool_of(PLAIN), pool_of(PLAIN)
    booked = one.schedule(jobs, owner="ann")
    for job, window in zip(jobs, booked, strict=True):
        assert other.find(job, "start") == window
        if window is not None:
            assert window.name == job.name
            other.book(window, "ann")
    assert one == other
    assert booked.reasons == ["booked"] * 4 + ["groups"]
    assert one.windows("ann") == other.windows("ann") == list(booked)[:4]
    one.release("ann")
    assert one == pool_of(PLAIN)


def test_pools_with_windows_of_trees_are_copied_and_stored(tmp_path: Path) -> None:
    pool = pool_of(PLAIN)
    job = sk.Request(6, 2, share={"cores": 1}, stack=4, tree={"rack": 1})
    pool.schedule([job, job], owner="ann")
    pool.save(tmp_path / "pool.npz")
    expected = pool.find(job)
    for other in (
        pool.copy(),
        pickle.loads(pickle.dumps(pool)),
        sk.HostPool.load(tmp_path / "pool.npz"),
    ):
        assert other == pool
        assert other.find(job) == expected
        other.release("ann")
        assert other == pool_of(PLAIN)
    window = pool.windows("ann")[0]
    assert sk.Window.from_dict(json.loads(json.dumps(window.to_dict()))) == window


def test_times_of_closed_nodes_are_not_taken() -> None:
    pool = pool_of(PLAIN)
    job = sk.Request(1, 3, whole="rack")
    pool.disable(["n0", "n3", "n4", "n7"], 0, 2)
    assert pool.find(job, required=True).start == 2
    pool.enable(["n7"])
    assert pool.find(job, required=True).nodes == (6, 7)
    pool.advance(1)
    assert pool.find(job, required=True).start == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tree": {"rak": 1}}, "rak.*rack"),
        ({"tree": {"rack": 3}}, "nodes=4 cannot be divided among 3 groups"),
        ({"tree": {"switch": 2}, "whole": "switch"}, "must be a finer level"),
        ({"tree": {"rack": 1}, "whole": "switch"}, "must be a finer level"),
        ({"tree": {"rack": 1, "cross": 1}}, "rack.*cross|cross.*rack"),
        ({"tree": {"rack": 1}, "limits": "most(rack) <= 2"}, "do not support limits"),
        ({"tree": {"rack": 1}, "limits": "sum(cores) <= 9"}, "do not support limits"),
        ({"tree": {"rack": 1}, "where": "start > 2"}, "cannot read start or end"),
        ({"tree": {"rack": 1}, "where": "rak > 2"}, "no column 'rak'"),
    ],
)
def test_errors_name_the_field(fields: dict[str, Any], message: str) -> None:
    columns = {"rack": PLAIN.columns["rack"], "switch": PLAIN.columns["switch"]}
    table = {"name": [*PLAIN.names], "cores": [4] * 8, "cross": [0, 1] * 4, **columns}
    pool = pool_of(sk.Machine(table, capacity=["cores"]))
    job = sk.Request(4, 1, **fields)
    with pytest.raises(ValueError, match=message):
        pool.find(job)
    with pytest.raises(ValueError, match=rf"requests\[1\]: .*({message})"):
        pool.schedule([sk.Request(1, 1), job])
    assert not len(pool.booked)


def test_other_criteria_options_and_machines_are_refused() -> None:
    pool = pool_of(PLAIN)
    job = sk.Request(2, 1, tree={"rack": 1})
    for criterion in ("cost", "runtime", "first", "processor_time"):
        with pytest.raises(ValueError, match="criterion of a request with tree"):
            pool.find(job, criterion)
    with pytest.raises(ValueError, match="do not support the option method"):
        pool.find(job, method="lite")
    table = {"name": ["a", "b"], "cores": [1, 1], "performance": [1, 2], "rack": [0, 0]}
    unlike = sk.HostPool(
        sk.free_slots(sk.Machine(table, capacity="cores"), start=0, end=9)
    )
    with pytest.raises(ValueError, match="nodes of one performance"):
        unlike.find(job)


@pytest.mark.parametrize("field", [{"tree": {"rack": 1}}, {"whole": "rack"}])
def test_searches_of_whole_nodes_refuse_trees(field: dict[str, Any]) -> None:
    job = sk.Request(2, 1, **field)
    slots = sk.free_slots(PLAIN, start=0, end=9)
    for search in (
        lambda: sk.find_window(slots, job),
        lambda: sk.SlotPool(slots).schedule([job]),
        lambda: sk.find_alternatives(slots, job),
        lambda: sk.explain(slots, job),
        lambda: sk.find_window(slots, sk.AnyOf([job])),
    ):
        with pytest.raises(ValueError, match=f"{next(iter(field))}=.*HostPool"):
            search()


def test_fields_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="omit share="):
        sk.Request(1, 1, whole="rack", share={"cores": 1})
    with pytest.raises(ValueError, match=r"write tree=\{'rack': 1\}"):
        sk.Request(1, 1, within="rack", tree={"switch": 1})
    with pytest.raises(ValueError, match="a level of tree must be one name"):
        sk.Request(1, 1, tree={"rack 1": 1})
    with pytest.raises(ValueError, match="tree must be amounts such as 'switch=1"):
        sk.Request(1, 1, tree="switch")


def test_tables_of_jobs_have_trees() -> None:
    expected = [
        sk.Request(6, 4, tree={"switch": 1, "rack": 3}),
        sk.Request(2, 4, tree={"switch": 1}, whole="rack"),
        sk.Request(1, 4),
    ]
    columns = {
        "nodes": [6, 2, 1],
        "volume": [4, 4, 4],
        "tree.switch": [1, 1, np.nan],
        "tree.rack": [3, 0, np.nan],
        "whole": ["", "rack", ""],
    }
    assert requests_of(columns) == expected


def test_explain_names_the_counts_and_limits_to_blame() -> None:
    pool = pool_of(PLAIN)
    pool.reserve(["n0", "n2"], 0, 5)
    job = sk.Request(8, 2, tree={"switch": 2, "rack": 2}, latest=4, budget=100)
    why = sk.explain(pool, job)
    assert not why.fits
    assert (why.most_nodes, why.together, why.earliest_start) == (4, 8, 5)
    assert why.cheapest is None  # without a budget none starts in time either
    assert why.without == ["latest"]
    assert why.changes() == {"latest": 5, "nodes": 4, "tree.switch": 1}
    assert str(why).splitlines() == [
        "No window fits.",
        "8 nodes in 2 of switch and 2 of rack are asked for, for volume 2 in the time "
        "allowed",
        "at most 8 are ever free together",
        "it fits with a latest start of 5, or with 4 nodes instead, "
        "or with 1 of switch",
    ]
    assert why.to_dict()["levels"] == {"switch": 1}
    with pytest.raises(sk.NoWindowError, match="with a latest start of 5"):
        pool.find(job, required=True)
    dear = sk.explain(pool, job.replace(latest=np.inf, budget=10))
    assert (dear.cheapest, dear.changes()["budget"]) == (16, 16)
    assert sk.explain(pool, job.replace(latest=np.inf)).fits


@pytest.mark.parametrize(
    ("busy", "message"),
    [(["n0"], "3 whole groups of rack"), (["n0", "n2", "n4"], "1 whole group of rack")],
)
def test_explain_counts_whole_groups(busy: list[str], message: str) -> None:
    pool = pool_of(PLAIN)
    pool.reserve(busy, 0, HORIZON)
    why = sk.explain(pool, sk.Request(4, 2, whole="rack"))
    assert f"it fits with {message} instead" in str(why)
