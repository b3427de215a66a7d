"""Tests of owners of bookings, reservations and utilization."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk
from slotkern._kernels.pool import ADDRESSES


@pytest.fixture
def pool():
    machine = sk.Machine.homogeneous(4, price=2)
    return sk.SlotPool(
        sk.free_slots(
            machine,
            start="2026-10-24",
            end="2026-10-27",
            zone="Europe/Berlin",
            unit="h",
        )
    )


def state(pool):
    return pool.slots.tolist(), pool.booked.tolist(), pool.owners


def test_owners_of_bookings(pool, tmp_path):
    before = state(pool)
    first = pool.find(sk.Request(2, 4, name="a"))
    pool.book(first, owner="alice")
    second = pool.find(sk.Request(2, 4), "start")
    pool.book([second, pool.find(sk.Request(1, 3, earliest=9))], owner="bob")
    pool.book(pool.find(sk.Request(1, 3, earliest=20)))
    assert pool.owners == ["alice", "bob"]
    assert pool.windows("alice") == [first]
    assert pool.windows()[:2] == [first, second]
    assert sorted(pool.booked["owner"].tolist()) == ["", "alice", "alice", *["bob"] * 3]
    table = pool.bookings()
    assert table["owner"].tolist() == ["alice", "bob", "bob"]
    assert table["name"].tolist() == ["a", "", ""]
    assert table["nodes"][0] == "n0,n1"
    assert table["start_time"][0] == "2026-10-24T00:00:00+02:00"
    assert table["cost"].tolist() == [w.cost for w in pool.windows()]
    pool.save(tmp_path / "pool.npz")
    same = sk.SlotPool.load(tmp_path / "pool.npz")
    assert state(same) == state(pool)
    assert same.bookings().tolist() == table.tolist()
    assert same.windows() == pool.windows()
    assert [w.name for w in same.windows()] == ["a", None, None]
    trial = pool.copy()
    trial.release("bob")
    assert trial.owners == ["alice"]
    assert state(same) == state(pool)  # the other pool is unchanged
    for each in (pool, same):
        each.release("bob")
        each.release(first)
        assert each.owners == []
        assert each.bookings().size == 0
        with pytest.raises(ValueError, match="'bob' has nothing booked in this pool"):
            each.release("bob")
        last = sk.SlotPool(pool.origin).find(sk.Request(1, 3, earliest=20))
        each.release(last)
        assert state(each) == before


def test_past_bookings_have_no_owner(pool):
    window = pool.find(sk.Request(1, 4))
    pool.book(window, owner="alice")
    pool.advance(2)
    assert pool.booked["owner"].tolist() == ["alice"]
    pool.advance(4)
    assert pool.owners == []


def test_owners_of_a_schedule(pool):
    done = pool.schedule([sk.Request(2, 4), sk.Request(9, 4)], owner="carol")
    assert done.reasons == ["booked", "nodes"]
    assert pool.windows("carol") == [done[0]]


@pytest.mark.parametrize("owner", ["", 7, "a\0"])
def test_bad_owners(pool, owner):
    before = state(pool)
    window = pool.find(sk.Request(1, 4))
    for call in (
        lambda: pool.book(window, owner=owner),
        lambda: pool.reserve("n0", 0, 1, owner=owner),
        lambda: pool.schedule([sk.Request(1, 1)], owner=owner),
    ):
        with pytest.raises(TypeError, match="owner must be text"):
            call()
    assert state(pool) == before
    with pytest.raises(TypeError, match="only windows and owners can be released"):
        pool.release(owner if owner == 7 else None)


def test_reservations(pool):
    made = pool.reserve(
        ["n3", "n1"], "2026-10-25 00:00", "2026-10-25 06:00", owner="maintenance"
    )
    assert [(w.start, w.runtime, w.nodes) for w in made] == [(24, 7, (1, 3))]
    assert made[0].cost == 2 * 7 * 2
    assert made[0].names == ("n1", "n3")
    before = state(pool)
    words = (
        r"node n1 is not free from 2026-10-25 04:00:00\+01:00 to "
        r"2026-10-25 06:00:00\+01:00; partly=True takes the rest"
    )
    with pytest.raises(ValueError, match=words):
        pool.reserve(["n0", "n1"], "2026-10-25 04:00", "2026-10-25 08:00")
    assert state(pool) == before
    part = pool.reserve([0, 1], "2026-10-25 04:00", "2026-10-25 08:00", partly=True)
    assert [(w.start, w.finish, w.nodes) for w in part] == [
        (29, 33, (0,)),
        (31, 33, (1,)),
    ]
    assert pool.reserve("n1", 24, 33, partly=True) == []
    for window in part:
        pool.release(window)
    assert state(pool) == before
    pool.release("maintenance")
    assert pool.slots.tolist() == sk.SlotPool(pool.origin).slots.tolist()


def test_unknown_nodes_are_refused_with_a_proposal():
    machine = sk.Machine.homogeneous(12, prefix="n")
    with pytest.raises(ValueError, match=r"'n3' is no node .*did you mean 'n03'\?"):
        machine.ids(["n00", "n3"])


def test_a_reservation_spans_adjacent_slots():
    slots = sk.make_slots(node=0, start=[0, 5], end=[5, 9], performance=1, price=[1, 3])
    pool = sk.SlotPool(slots)
    made = pool.reserve(0, 3, 7)
    assert [(w.start, w.finish, w.cost) for w in made] == [(3, 5, 2), (5, 7, 6)]
    assert pool.slots[["start", "end"]].tolist() == [(0, 3), (7, 9)]
    assert pool.utilization() == 4 / 9


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (("n9", 0, 1), ValueError, "nodes: 'n9' is no node of the machine"),
        (([], 0, 1), ValueError, "nodes must be one node or more"),
        ((["n0", "n0"], 0, 1), ValueError, "a node occurs twice"),
        ((0.5, 0, 1), TypeError, "must be names or ids"),
        (("n0", 1, 1), ValueError, "end 1 does not lie after start 1"),
        (("n0", 0, float("inf")), ValueError, "end must be finite"),
        (("n0", 0, "x"), ValueError, "end: 'x' is no date"),
        (("n0", 70, 90), ValueError, "node n0 is not free from 2026-10-27 00:00"),
    ],
)
def test_bad_reservations(pool, given, error, words):
    with pytest.raises(error, match=words):
        pool.reserve(*given)
    assert pool.booked.size == 0


def test_names_and_dates_need_a_machine_and_a_clock(pool):
    bare = sk.SlotPool(pool.origin)
    with pytest.raises(
        ValueError, match="'n0' is a name, but this pool has no machine"
    ):
        bare.reserve("n0", 0, 1)
    with pytest.raises(
        ValueError, match="start is the date '2026-10-25', but this pool"
    ):
        bare.reserve(0, "2026-10-25", "2026-10-26")
    with pytest.raises(ValueError, match="node 7 is not in the pool"):
        bare.reserve(7, 0, 1)


spans = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(1, 5)), max_size=8
)


@given(spans, spans)
@example([(0, 0, 12)], [(0, 3, 2)])  # a node without slots
def test_reservations_book_the_free_time(busy, asked):
    busy = {
        name: [float(row[i]) if i else row[i] for row in busy]
        for i, name in enumerate(("node", "start", "end"))
    }
    busy["node"] = np.array(busy["node"], int)
    busy["end"] = [a + b for a, b in zip(busy["start"], busy["end"], strict=True)]
    machine = sk.Machine.homogeneous(3)
    pool = sk.SlotPool(sk.free_slots(machine, busy, start=0, end=12))

    def open_halves():
        return {
            (slot["node"], time)
            for slot in pool.slots
            for time in np.arange(slot["start"], slot["end"], 0.5)
        }

    first = before = open_halves()
    total = len(before)
    made = []
    for node, start, length in asked:
        wanted = {(node, time) for time in np.arange(start, start + length, 0.5)}
        if not wanted <= before:
            with pytest.raises(ValueError, match="is not free from"):
                pool.reserve(node, start, start + length)
        made += pool.reserve(node, start, start + length, owner="o", partly=True)
        assert open_halves() == before - wanted
        before = before - wanted
        if total:
            assert pool.utilization() == pytest.approx(1 - len(before) / total)
    if made:
        pool.release("o")
    assert open_halves() == first


def test_older_pool_files_load(pool, tmp_path):
    path, old = tmp_path / "pool.npz", tmp_path / "old.npz"
    pool.book(pool.find(sk.Request(2, 4)), owner="alice")
    pool.save(path)
    with np.load(path) as arrays:
        kept = {
            name: arrays[name] for name in ("origin", "now", "free", "booked", "gone")
        }
    np.savez(old, format=np.array("slotkern pool 1"), **kept)
    same = sk.SlotPool.load(old)
    assert same.slots.tolist() == pool.slots.tolist()
    assert (same.clock, same.machine, same.owners) == (None, None, [])


@pytest.mark.parametrize(
    "broken",
    [
        {"clock": np.array("{}")},
        {"clock": np.array("no json")},
        {"machine price": np.array([1.0, -2.0, 1.0, 1.0])},
        {"machine name": np.array(["a", "a", "b", "c"])},
        {"owner": np.array(["alice", "bob"])},
        {"window size": np.array([7])},
        {"window parts": np.zeros(2)},
        {"window numbers": np.zeros((1, 2))},
        {"window length": np.zeros(1)},
    ],
    ids=lambda broken: next(iter(broken)),
)
def test_damaged_pool_files_are_refused(pool, tmp_path, broken):
    path = tmp_path / "pool.npz"
    pool.book(pool.find(sk.Request(2, 4)), owner="alice")
    pool.save(path)
    with np.load(path) as arrays:
        whole = dict(arrays)
    np.savez(path, **(whole | broken))
    with pytest.raises(ValueError, match="not a complete slotkern pool"):
        sk.SlotPool.load(path)


def test_booking_errors_contain_names_and_dates(pool: sk.SlotPool) -> None:
    window = pool.find(sk.Request(2, walltime="4h"), "start")
    pool.book(window, owner="alice")
    with pytest.raises(
        ValueError, match=r"node n0 from 2026-10-2\d \d\d:.* is not free"
    ):
        pool.book(window)
    with pytest.raises(TypeError, match="no window to book: the search returned None"):
        pool.book(None)


def test_release_of_an_equal_window_of_another_criterion_removes_the_owner():
    """A window with the same parts but another criterion can be released."""
    slots = sk.make_slots(node=[0, 1], start=0, end=10, performance=1, price=1)
    pool, job = sk.SlotPool(slots), sk.Request(1, 3)
    first, second = (pool.find(job, "finish") for _ in range(2))
    pool.book(first, "x")
    second = pool.find(job, "finish")
    pool.book(second, "x")
    pool.release(sk.Window.from_dict(first.to_dict() | {"criterion": "cost"}))
    assert pool.windows("x") == [second]
    pool.book(first)
    assert [owner for *_, owner in pool.booked.tolist()] == ["", "x"]
    pool.release("x")
    pool.release(first)
    assert pool.slots.tolist() == slots.tolist()
    assert pool.owners == []


@pytest.mark.parametrize("leaves", ["past", "node"])
def test_release_of_an_unbooked_part_keeps_the_owner(leaves):
    slots = sk.make_slots(node=[1, 2], start=0, end=20, performance=[10, 1], price=1)
    pool = sk.SlotPool(slots)
    short = pool.find(sk.Request(1, 10), "finish")  # one unit of time on node 1
    pool.book(short)
    pool.release(short)
    long = pool.find(sk.Request(2, 10), "finish", shape="ragged")
    pool.book(long, owner="alice")
    assert long.nodes == (1, 2)
    if leaves == "past":
        pool.advance(5)
    else:
        pool.remove_node(1)
    pool.release(short)  # nothing of it remains
    assert pool.owners == ["alice"]
    pool.release("alice")
    assert pool.owners == []
    assert pool.booked.size == 0


def test_release_of_an_owner_is_all_or_nothing():
    slots = sk.make_slots(node=[0, 1], start=0, end=10, performance=1, price=1)
    pool, job = sk.SlotPool(slots), sk.Request(1, 3)
    first, other = sk.find_window(slots, job), sk.find_window(slots[1:], job)
    pool.book([first, other])
    pool.book(pool.find(job), "x")
    # The C interface, which has no owners, releases the second of two windows.
    pool.book(pool.find(job), "x")
    gone = pool.windows("x")[1]
    rows, nodes = gone.slots["row"], gone.slots["node"]
    release = ctypes.CFUNCTYPE(
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_double,
        ctypes.c_int64,
        *[ctypes.c_void_p] * 3,
    )(next(a for n, a in ADDRESSES.items() if n.startswith("slotkern_release")))
    lengths = gone.slots["end"] - gone.slots["start"]
    given = [np.ascontiguousarray(c) for c in (rows, nodes, lengths)]
    status = release(pool.handle(), gone.start, 1, *(c.ctypes.data for c in given))
    assert status == 0
    before = state(pool)
    with pytest.raises(ValueError, match="is not booked"):
        pool.release("x")
    assert state(pool) == before


@given(
    st.floats(-1e3, -1e-3), st.floats(1e-3, 1e3), st.booleans(), st.floats(1e-3, 1.0)
)
@example(-6.79358183352221, 2.5752285599494193, False, 1.0)
def test_a_whole_slot_can_be_reserved_despite_rounding(start, end, partly, price):
    slots = sk.make_slots(node=0, start=start, end=end, performance=1, price=price)
    pool = sk.SlotPool(slots)
    pool.reserve(0, start, end, partly=partly)
    left = pool.slots["end"] - pool.slots["start"]
    assert left.sum() <= 2 * np.spacing(end - start)  # lengths are rounded
