"""Tests of `HostPool`: owners, prices, reservations, files, errors and pictures."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slotkern as sk

TABLE = {
    "name": ["anna", "bert", "carl", "dora"],
    "cores": [64, 64, 64, 32],
    "gpus": [4, 4, 0, 0],
    "memory": [512, 512, 256, 256],
    "rack": ["r1", "r1", "r2", "r2"],
    "price": [8, 8, 2, 1],
    "gpu_price": [8.0, 8.0, 0.0, 0.0],
}
NAMES = ["cores", "gpus", "memory"]
JOB = sk.Request(2, 4, share={"cores": 16, "gpus": 2}, name="job")


def machine(**options: Any) -> sk.Machine:
    return sk.Machine(TABLE, capacity=NAMES, **options)


def new_pool(busy: Any = None, **options: Any) -> sk.HostPool:
    return sk.HostPool(sk.free_slots(machine(**options), busy, start=0, end=24))


def found(pool: sk.HostPool, request: sk.Request, *how: Any) -> sk.ShareWindow:
    window = pool.find(request, *how)
    assert window is not None
    return window


# --- searches


def test_shares_of_several_jobs_lie_on_one_node() -> None:
    pool = new_pool()
    windows = pool.schedule([JOB] * 3, owner="ann")
    assert windows.start.tolist() == [0, 0, 4]
    assert windows[1] is not None
    assert windows[1].names == ("anna", "bert")
    assert windows.reasons == ["booked"] * 3
    assert pool.amounts[0].tolist() == (0, 0, 4, 32, 0, 512)


def test_requests_without_share_take_whole_unlike_nodes() -> None:
    pool = new_pool()
    whole = found(pool, sk.Request(4, 4))
    assert whole.share is None
    pool.book(whole)
    assert not pool.amounts[pool.amounts["start"] < 4][NAMES].tolist()[0][0]
    assert found(pool, sk.Request(1, 4, share={"cores": 1})).start == 4
    pool.release(whole)
    assert pool == new_pool()


def test_stack_puts_several_parts_on_one_node() -> None:
    pool = new_pool()
    job = sk.Request(6, 4, share={"gpus": 1}, stack=4, name="many")
    window = found(pool, job)
    assert window.counts == (4, 2)
    assert window.slots["count"].tolist() == [4, 2]
    assert window.cost == pytest.approx(6 * 4 * 8 / 4)
    pool.book(window)
    assert found(pool, sk.Request(2, 4, share={"gpus": 1}, stack=2)).counts == (2,)
    pool.release(window)
    assert pool == new_pool()


def test_filters_limits_and_values_see_the_nodes() -> None:
    pool = new_pool()
    for stack in (1, 2):
        job = sk.Request(2, 4, share={"cores": 8}, stack=stack, where="rack == 'r2'")
        assert set(found(pool, job, "cost").names) <= {"carl", "dora"}
        named = job.replace(where="name == 'dora'", nodes=stack)
        assert found(pool, named).names == ("dora",)
        assert found(pool, job, "memory").value == 512
    limited = sk.Request(2, 4, share={"cores": 8}, limits="sum(memory) >= 1000")
    assert found(pool, limited).names == ("anna", "bert")
    early = sk.Request(1, 4, share={"cores": 8}, where="start < 1 and rack == 'r2'")
    assert found(pool, early).names == ("carl",)
    with pytest.raises(ValueError, match="where is an array"):
        pool.find(sk.Request(1, 4, share={"cores": 8}, where=[True] * 4))


def test_group_rules_of_limits() -> None:
    pool = new_pool()
    for stack in (1, 2):
        job = sk.Request(
            2, 4, share={"cores": 40}, stack=stack, limits="distinct(rack) <= 1"
        )
        assert found(pool, job, "start").names == ("anna", "bert")
        apart = job.replace(limits="distinct(rack) >= 2")
        assert found(pool, apart, "start").names == ("anna", "carl")
    pool.book(found(pool, job))
    assert found(pool, job, "start").start == 4
    near = sk.Request(2, 4, share={"cores": 20}, within="rack")
    assert found(pool, near, "start").names == ("carl", "dora")


def test_share_that_no_node_holds_has_no_window() -> None:
    pool = new_pool()
    assert pool.find(sk.Request(1, 4, share={"cores": 65})) is None
    done = pool.schedule([sk.Request(1, 4, share={"gpus": 5}), sk.Request(5, 4)])
    assert done.reasons == ["share", "nodes"]
    with pytest.raises(ValueError, match=r"share has 'gpu', but .*mean 'gpus'"):
        pool.find(sk.Request(1, 4, share={"gpu": 1}))
    with pytest.raises(sk.NoWindowError, match="no node can hold 65 cores"):
        pool.find(sk.Request(1, 4, share={"cores": 65}), required=True)


def test_dates_and_walltimes() -> None:
    free = sk.free_slots(machine(), start="2026-10-26", end="2026-10-27", zone="UTC")
    pool = sk.HostPool(free)
    job = sk.Request(
        1, walltime="4h", share={"gpus": 4}, earliest="2026-10-26 18:00", name="late"
    )
    window = found(pool, job)
    assert str(window.start_time) == "2026-10-26 18:00:00+00:00"
    pool.book(window, "ann")
    assert pool.bookings()["share"].tolist() == ["4 gpus"]
    loaded = pickle.loads(pickle.dumps(pool))
    assert loaded == pool


def test_busy_spans_take_their_part() -> None:
    busy = {"node": ["anna", "bert"], "start": [0, 0], "end": [9, 9], "gpus": [3, 2]}
    pool = new_pool(busy)
    assert found(pool, JOB.replace(nodes=1)).names == ("bert",)
    assert found(pool, JOB).start == 9
    assert "anna" not in found(pool, sk.Request(2, 4)).names


# --- prices


def test_price_of_a_share_is_that_of_its_largest_part() -> None:
    pool = new_pool()
    for share, cost in (
        ({"cores": 16}, 2.0),
        ({"cores": 16, "memory": 64}, 2.0),
        ({"memory": 256}, 4.0),
    ):
        window = found(pool, sk.Request(1, 4, share=share), "cost")
        assert window.cost == cost
        assert window.slots["cost"].sum() == cost


def test_prices_by_resource() -> None:
    options = {"cores": 0.5, "gpus": "gpu_price"}
    pool = new_pool(prices=options)
    job = sk.Request(1, 4, share={"cores": 2, "gpus": 3})
    assert found(pool, job, "cost").cost == 4 * (2 * 0.5 + 3 * 8)
    assert found(pool, sk.Request(1, 4), "cost").cost == 4 * 32 * 0.5


def test_grain_rounds_shares_up() -> None:
    pool = new_pool(grain={"memory": 64})
    window = found(pool, sk.Request(1, 4, share={"memory": 65, "cores": 1}))
    assert window.share == {"cores": 1, "memory": 128}


# --- owners and bookings


def test_owners_release_their_windows() -> None:
    pool = new_pool()
    first, second = found(pool, JOB), found(pool, JOB)
    assert first == second
    pool.book(first, "ann")
    pool.book(second, "bob")
    assert pool.owners == ["ann", "bob"]
    assert pool.bookings(nodes="anna")["owner"].tolist() == ["ann", "bob"]
    assert pool.bookings(during=(4, 9)).size == 0
    assert sorted(pool.booked["owner"].tolist()) == ["ann", "ann", "bob", "bob"]
    pool.release("ann")
    assert pool.owners == ["bob"]
    pool.release(second)
    for missing in (second, "bob"):
        with pytest.raises(ValueError, match="booked"):
            pool.release(missing)
    assert pool == new_pool()


def test_sequences_are_booked_all_or_none() -> None:
    pool = new_pool()
    window = found(pool, JOB)
    with pytest.raises(ValueError, match="not free"):
        pool.book([window, None, window, window])
    assert pool == new_pool()
    with pytest.raises(TypeError, match="there is no window to book"):
        pool.book(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="only windows can be booked, got int"):
        pool.book([3])  # type: ignore[list-item]


def test_windows_of_the_whole_slots_can_be_booked() -> None:
    pool = new_pool()
    window = sk.find_window(pool.slots, sk.Request(2, 4), "cost")
    assert window is not None
    pool.book(window, "ann")
    assert pool.bookings()["nodes"].tolist() == ["carl,dora"]
    pool.release("ann")
    assert pool == new_pool()


def test_reservations_withhold_shares() -> None:
    pool = new_pool()
    pool.book(found(pool, JOB), "ann")
    with pytest.raises(ValueError, match="anna has only 2 of 3 gpus free from 0 to 9"):
        pool.reserve("anna", 0, 9, share={"gpus": 3}, owner="maintenance")
    pool.reserve("anna", 0, 9, share={"gpus": 3}, owner="maintenance", partly=True)
    assert pool.owners == ["ann", "maintenance"]
    assert found(pool, sk.Request(1, 1, share={"gpus": 2})).names == ("bert",)
    pool.release("ann")
    assert found(pool, JOB.replace(nodes=1), "start").names == ("bert",)
    pool.release("maintenance")
    assert pool == new_pool()


def test_disabled_nodes_hold_nothing() -> None:
    pool = new_pool()
    pool.book(found(pool, JOB), "ann")
    assert [window.name for window in pool.disable(["anna", "carl"], 2)] == ["job"]
    pool.release("ann")
    assert pool.find(JOB) is None
    assert pool.amounts[pool.amounts["node"] == 2].tolist()[-1][3:] == (0, 0, 0)
    with pytest.raises(ValueError, match="node 'bert' is not disabled"):
        pool.enable("bert")
    pool.enable(["anna", "carl"])
    assert pool == new_pool()


def test_time_goes_on_and_is_added() -> None:
    pool = new_pool()
    pool.book(found(pool, JOB), "ann")
    pool.advance(4)
    assert pool.owners == []
    assert found(pool, JOB).start == 4
    with pytest.raises(ValueError, match="lies before the pool's now"):
        pool.advance(3)
    pool.add_slots(sk.free_slots(machine(), start=24, end=48))
    assert found(pool, sk.Request(1, 9, earliest=30, share={"cores": 1})).start == 30
    with pytest.raises(ValueError, match="overlaps"):
        pool.add_slots(sk.free_slots(machine(), start=24, end=48))


def test_figures_by_resource_and_group() -> None:
    pool = new_pool()
    pool.book(found(pool, JOB))
    taken = pool.utilization()
    assert taken["gpus"] == pytest.approx(4 * 4 / (8 * 24))
    assert taken["memory"] == 0
    assert pool.utilization(0, 4)["gpus"] == pytest.approx(0.5)
    assert pool.free_of("gpus").tolist() == [(0, 4, 4), (4, 24, 8)]
    assert pool.free_of("cores", by="rack").tolist() == [
        ("r1", 0, 4, 96),
        ("r1", 4, 24, 128),
        ("r2", 0, 24, 96),
    ]
    with pytest.raises(ValueError, match="by must be one of"):
        pool.free_of("cores", by="rak")


# --- windows in words and files


def test_windows_say_their_share() -> None:
    pool = new_pool()
    window = found(pool, JOB)
    assert repr(window).endswith("share={'cores': 16, 'gpus': 2})")
    assert "16 cores + 2 gpus" in window._repr_html_()
    data = json.loads(json.dumps(window.to_dict()))
    assert data["share"] == {"cores": 16, "gpus": 2}
    assert sk.Window.from_dict(data) == window
    stacked = found(pool, sk.Request(3, 4, share={"gpus": 1}, stack=3))
    data = json.loads(json.dumps(stacked.to_dict()))
    assert data["slots"][0]["count"] == 3
    assert sk.Window.from_dict(data) == stacked
    assert pickle.loads(pickle.dumps(stacked)) == stacked
    assert stacked != window
    plain = sk.Request(1, 4, share={"gpus": 1})
    assert found(pool, plain) != found(pool, plain.replace(share={"gpus": 2}))


def test_files_keep_everything(tmp_path: Path) -> None:
    pool = new_pool(prices={"gpus": 2.0}, grain={"memory": 8})
    path = tmp_path / "pool.npz"
    pool.book(found(pool, JOB), "ann")
    pool.book(found(pool, sk.Request(3, 4, share={"gpus": 1}, stack=2)), "bob")
    pool.book(found(pool, JOB))
    pool.reserve(["carl", "dora"], 3, 9, share={"cores": 4}, owner="down")
    pool.disable("dora", 12, owner="broken")
    pool.save(path)
    loaded = sk.HostPool.load(path)
    assert isinstance(loaded, sk.HostPool)
    assert loaded == pool
    assert loaded.machine == pool.machine
    assert loaded.booked.tolist() == pool.booked.tolist()
    assert loaded.closed["owner"].tolist() == ["broken"]
    for owner in ("ann", "bob", "down"):
        loaded.release(owner)
    loaded.save(path)
    with pytest.raises(sk.PoolFileChangedError):
        pool.save(path)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    pool = new_pool()
    path = tmp_path / "pool.npz"
    pool.book(found(pool, JOB), "ann")
    pool.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    for name, change in (
        ("rows free", lambda rows: rows[:-1]),
        ("rows booked", lambda rows: rows[::-1]["row"]),
        ("rows booked_amounts", lambda rows: -rows),
        ("rows now", lambda _: np.array("now")),
        ("window share", lambda shares: shares[:0]),
        ("capacity", lambda _: np.array("[]")),
    ):
        np.savez(path, **(arrays | {name: change(arrays[name])}))
        with pytest.raises(ValueError, match="not a complete slotkern pool"):
            sk.SlotPool.load(path)


def test_pools_are_made_of_machines_with_capacity() -> None:
    free = sk.free_slots(sk.Machine(TABLE), start=0, end=9)
    with pytest.raises(ValueError, match="the machine has no capacity to share"):
        sk.HostPool(free)
    with pytest.raises(TypeError, match="is made of free_slots"):
        sk.HostPool(free.slots)  # type: ignore[arg-type]
    priced = sk.free_slots(
        machine(), start=0, end=9, prices={"start": [0], "end": [9], "price": [2]}
    )
    with pytest.raises(ValueError, match="does not support tariffs"):
        sk.HostPool(priced)


def test_other_functions_plan_the_whole_nodes_of_the_pool() -> None:
    pool = new_pool()
    pool.book(found(pool, JOB))
    assert len(sk.find_alternatives(pool, sk.Request(2, 12), "cost")) >= 2
    assert sk.schedule_batch(pool, [sk.Request(4, 4)]).windows.start.tolist() == [4]
    text = re.escape("needs find, schedule or explain of a HostPool")
    with pytest.raises(ValueError, match=text):
        sk.find_alternatives(pool, JOB)


# --- explanations


def test_explain_names_the_resource_to_blame() -> None:
    pool = new_pool()
    why = sk.explain(pool, JOB.replace(nodes=3))
    assert str(why).splitlines() == [
        "No window fits.",
        "2 of 4 nodes can hold 16 cores + 2 gpus",
        "at most 2 nodes hold 16 cores + 2 gpus together for volume 4; 3 are asked for",
        "gpus are to blame: without them 4 fit",
        "it fits with 2 nodes instead",
    ]
    pool.book(found(pool, JOB.replace(share={"gpus": 3})))
    why = sk.explain(pool, JOB.replace(deadline=4))
    assert why.changes()["share.gpus"] == 1
    assert str(why).endswith("or with 1 gpus")
    fits = sk.explain(pool, JOB)
    assert fits.fits
    assert str(fits).startswith("A window fits.")


@pytest.mark.parametrize("stack", [1, 2])
@pytest.mark.parametrize("gpus", [1, 2, 3, 4, 5])
def test_amounts_of_explanations_are_sufficient_and_necessary(
    stack: int, gpus: int
) -> None:
    pool = new_pool({"node": ["anna"], "start": [0], "end": [24], "gpus": [1]})
    pool.book(found(pool, sk.Request(1, 20, share={"cores": 60, "gpus": 2})))
    job = sk.Request(3, 12, share={"cores": 8, "gpus": gpus}, stack=stack)
    why = sk.explain(pool, job)
    assert why.fits is (pool.find(job) is not None)
    fitting = [
        amount
        for amount in range(gpus)
        if pool.find(job.replace(share={"cores": 8, "gpus": amount})) is not None
    ]
    amounts = getattr(why, "amounts", {})
    if not why.fits and fitting:
        assert amounts["gpus"] == max(fitting)
    else:
        assert "gpus" not in amounts


# --- pictures


def test_bars_have_the_height_of_the_largest_part() -> None:
    from slotkern.plotting.heights import stack_parts

    pool = new_pool()
    window = found(pool, JOB)
    assert window.heights.tolist() == [0.5, 0.5]
    top, height = stack_parts(
        np.array([0, 0, 0, 1]),
        np.array([0.0, 1, 5, 0]),
        np.array([4.0, 6, 9, 1]),
        np.array([0.5, 0.75, 0.25, 1]),
    )
    assert (top * 1.25).tolist() == [0, 0.5, 0, 1.25 * top[3]]
    assert height.tolist() == [0.4, 0.6, 0.2, 1]
    pool.schedule([JOB] * 4, owner="ann")
    figure = pool.plot()
    assert len(figure.axes) == 1


def test_pages_name_the_shares() -> None:
    pool = new_pool()
    pool.book(found(pool, JOB), "ann")
    assert "job (16 cores + 2 gpus)" in str(sk.view(pool).html)


def test_parts_found_by_another_criterion_lose_their_owner_at_release() -> None:
    pool, twin = new_pool(), new_pool()
    job = sk.Request(1, 4, share={"cores": 16})
    pool.book(found(pool, job, "cost"), "ann")
    same = found(twin, job, "start")
    assert same.nodes == pool.windows("ann")[0].nodes
    pool.release(same)
    assert (pool.owners, pool.windows(), len(pool.booked)) == ([], [], 0)


def test_pickled_pools_see_their_own_bookings() -> None:
    pool = new_pool()
    job = sk.Request(4, 20, share={"cores": 32})
    window = found(pool, job)
    pool.book(window)
    pool.release(window)
    assert found(pool, job, "processor_time").start == 0  # searches a view
    twin = pickle.loads(pickle.dumps(pool))
    twin.book(found(twin, job))
    while twin._rows.core.version < pool._rows.core.version:
        twin._rows.core.advance(twin._rows.core.version - 100.0)
    assert twin._rows.core.version == pool._rows.core.version
    assert twin.find(job, "processor_time") is None


def test_owners_of_closed_time_are_not_shortened(tmp_path: Path) -> None:
    pool = new_pool()
    pool.disable("anna", 1, 2, owner="o" * 80)
    assert pool.closed["owner"].tolist() == ["o" * 80]
    pool.save(tmp_path / "pool.npz")
    assert sk.HostPool.load(tmp_path / "pool.npz") == pool


def test_stack_beyond_what_a_node_holds_takes_no_more_nodes_to_search() -> None:
    pool = new_pool()
    asked = sk.Request(3, 4, share={"cores": 32}, stack=2)
    few, many = found(pool, asked), found(pool, asked.replace(stack=2**20))
    assert (many.nodes, many.counts, many.cost) == (few.nodes, few.counts, few.cost)
    assert found(pool, asked.replace(stack=2**20, share={"cores": 64})).counts


def test_refused_reservations_and_times_change_nothing() -> None:
    most = 2**27 - 1
    nodes = {"name": ["anna", "bert"], "cores": [8, most], "price": [1, 1]}
    shared = sk.Machine(nodes, capacity="cores")
    pool = sk.HostPool(sk.free_slots(shared, start=0, end=24))
    pool.reserve("bert", 0, 5, owner="first")
    before = pool.copy()
    with pytest.raises(ValueError, match="would be reserved in total on node bert"):
        pool.reserve(["anna", "bert"], 0, 5, owner="second", partly=True)
    assert pool == before
    assert pool._rows.core.state()["reserved"]["row"].tolist() == [1]
    late = sk.free_slots(shared, start=24, end=48)
    assert late.amounts is not None
    late.amounts["start"][late.amounts["node"] == 1] = (
        12  # anna's time is new, bert's not
    )
    with pytest.raises(ValueError, match="overlaps another span of node bert"):
        pool.add_slots(late)
    assert pool == before


def test_schedule_searches_again_after_a_booking_by_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, job = new_pool(), sk.Request(4, 4)
    search, calls = pool.find, []

    def find(*given: Any, **options: Any) -> Any:
        window = search(*given, **options)
        if not calls:  # as another thread would between the search and the booking
            pool.book(window, "other")
        calls.append(window)
        return window

    monkeypatch.setattr(pool, "find", find)
    done = pool.schedule([job], owner="ann")
    assert done.start.tolist() == [4]
    assert (len(calls), len(pool.windows("ann"))) == (2, 1)


def test_reserved_shares_are_checked_as_those_of_requests() -> None:
    pool = sk.HostPool(sk.free_slots(machine(), start=0, end=9))
    before = pool.amounts.tolist()
    for share, text in (
        ({"cores": 1.5}, r"share\['cores'\] is 1.5, but amounts are whole numbers"),
        ({"cores": -3}, r"share\['cores'\] must not be negative, got -3"),
        ({"cores": True}, r"share\['cores'\] must be a whole number, got True"),
        ({"cores": "x"}, r"share\['cores'\] must be a whole number, got 'x'"),
        (7, "share must be a mapping of names to amounts"),
        ({}, "share takes nothing"),
    ):
        given: Any = share
        with pytest.raises((TypeError, ValueError), match=text):
            pool.reserve(["anna"], 1, 2, share=given)
    assert pool.amounts.tolist() == before


def test_values_that_are_no_windows_are_refused() -> None:
    pool = sk.HostPool(sk.free_slots(machine(), start=0, end=9))
    wrong: Any = 7
    with pytest.raises(TypeError, match="only windows can be booked, got int"):
        pool.book(wrong)
    with pytest.raises(TypeError, match="only windows can be booked, got int"):
        pool.release(wrong)
    wrong = []
    with pytest.raises(ValueError, match="one window or an owner, got 0"):
        pool.release(wrong)


def test_levels_that_are_no_names_are_refused() -> None:
    wrong: Any = 7
    with pytest.raises(TypeError, match="levels must be names of columns, got 7"):
        machine(levels=wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pool: pool.find(sk.Request(1, 1), shape=0), "shape must be .*got 0"),
        (lambda pool: pool.schedule(7), "requests must be .*got int"),
        (lambda pool: pool.reserve({}, 0, 1), "nodes must be names or ids, got {}"),
        (lambda pool: pool.disable({}), "nodes must be names or ids, got {}"),
        (lambda pool: pool.enable(["a", {}]), "nodes must be names or ids, got"),
    ],
)
def test_arguments_of_other_types_are_named(call: Any, message: str) -> None:
    machine = sk.Machine({"name": ["a"], "cores": [4]}, capacity="cores")
    pool = sk.HostPool(sk.free_slots(machine, start=0, end=9))
    with pytest.raises((ValueError, TypeError), match=message):
        call(pool)


def test_slots_that_overlap_are_added_all_or_none() -> None:
    machine = sk.Machine({"name": ["a", "b"], "cores": [4, 4]}, capacity="cores")
    pool = sk.HostPool(sk.free_slots(machine, start=0, end=9))
    pool.reserve("b", 0, 9, owner="x")
    before = pool.amounts.tolist()
    with pytest.raises(ValueError, match="overlaps"):
        pool.add_slots(sk.free_slots(machine, start=8, end=12))
    amounts = pool.amounts[[0, 1]]
    amounts["start"], amounts["end"] = [9, 8], 12
    with pytest.raises(ValueError, match=r"spans\[1\] overlaps .* of node b from 8"):
        pool._rows.add(amounts)
    assert pool.amounts.tolist() == before
    pool.add_slots(sk.free_slots(machine, start=9, end=12))
    assert pool.amounts[-1].tolist() == (1, 9, 12, 4)
