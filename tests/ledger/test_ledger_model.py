"""Two shared pools and a plain pool in any order of calls stay equal."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern._kernels.windows import columns_of_rows, run_of_rows
from slotkern.ledger.codec import pack_window, unpack_window, unpack_windows
from tests.support.ledgers import NewPlace, assert_followed, nodes, state_of

OWNERS = st.sampled_from(["ann", "bob"])
SIZES = st.tuples(st.integers(1, 4), st.sampled_from([1.0, 3.0, 7.5]))
CALL = st.one_of(
    st.tuples(st.just("place"), SIZES, OWNERS, st.sampled_from(["start", "cost"])),
    st.tuples(st.just("schedule"), st.lists(SIZES, min_size=1, max_size=4), OWNERS),
    st.tuples(st.just("release"), st.integers(0, 9)),
    st.tuples(st.just("release_all"), OWNERS),
    st.tuples(st.just("reserve"), st.integers(0, 4), st.integers(0, 40), OWNERS),
    st.tuples(st.just("disable"), st.integers(0, 4), st.integers(0, 40)),
    st.tuples(st.just("enable"), st.integers(0, 4)),
    st.tuples(st.just("advance"), st.integers(0, 30)),
    st.tuples(st.just("remove"), st.integers(0, 4)),
    st.tuples(st.just("add"), st.integers(5, 8)),
)


def run(pool: Any, call: tuple[Any, ...]) -> Any:
    """Make a call; a refusal is part of the result."""
    what, *given = call
    try:
        match what:
            case "place":
                size, owner, criterion = given
                window = pool.find(sk.Request(*size), criterion)
                if isinstance(pool, sk.SharedPool):
                    booking = pool.place(sk.Request(*size), criterion, owner=owner)
                    assert (booking and booking.window) == window
                elif window is not None:
                    pool.book(window, owner=owner)
                return window
            case "schedule":
                jobs = [sk.Request(*size) for size in given[0]]
                return pool.schedule(jobs, owner=given[1])
            case "release":
                windows = sorted(pool.windows(), key=lambda w: (w.start, w.nodes))
                if given[0] < len(windows):
                    pool.release(windows[given[0]])
            case "release_all":
                pool.release(given[0])
            case "reserve":
                node, start, owner = given
                return pool.reserve(
                    [node], start, start + 9, owner=owner, partly=start % 2 > 0
                )
            case "disable":
                return set(pool.disable([given[0]], given[1], given[1] + 20))
            case "enable":
                pool.enable([given[0]])
            case "advance":
                pool.advance(max(pool.now, given[0]))
            case "remove":
                pool.remove_node(given[0])
            case "add":
                slots = nodes(given[0] + 1)[-1:]
                slots["start"] = 35
                pool.add_slots(slots)
    except ValueError as error:
        return str(error).removesuffix("; nothing has changed")
    return None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.booleans(), CALL), max_size=25), st.data())
def test_shared_pools_and_a_plain_pool_stay_equal(
    new_place: NewPlace,
    calls: list[tuple[bool, tuple[Any, ...]]],
    data: st.DataObject,
) -> None:
    where = new_place()
    plain = sk.SlotPool(nodes(5, 50.0))
    first = sk.SlotPool(nodes(5, 50.0)).share(where)
    second = sk.SlotPool.open(where, durable="crash")
    states = {0: state_of(first)}
    for which, call in calls:
        pool = second if which else first
        pool.refresh()
        assert run(pool, call) == run(plain, call)
        states[pool.version] = state_of(pool)
        assert states[pool.version] == state_of(plain)
        if data.draw(st.integers(0, 9)) == 0:
            pool.snapshot()
    first.refresh()
    second.refresh()
    assert state_of(first) == state_of(second) == state_of(plain)
    assert_followed(second)
    for stored in first._store.snapshots():  # a snapshot is the replay of a prefix
        pool, bookings = sk.ledger.snapshots.unpack_pool(stored.body)
        assert state_of(pool) == states[stored.version]
        assert len(bookings) == len(pool.windows())
    first.close()
    second.close()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from("abc"), SIZES, st.booleans()),
        max_size=12,
    )
)
def test_tokens_in_any_order(
    new_place: NewPlace,
    calls: list[tuple[bool, str, tuple[int, float], bool]],
) -> None:
    where = new_place()
    first = sk.SlotPool(nodes(5, 50.0)).share(where, user="ann")
    second = sk.SlotPool.open(where, user="ann", durable="crash")
    known: dict[str, Any] = {}
    for which, token, size, grouped in calls:
        pool = second if which else first
        request, before = sk.Request(*size), (pool.refresh() and 0) or pool.version
        try:
            if grouped:
                with pool.group():
                    booking = pool.place(request, token=token)
            else:
                booking = pool.place(request, token=token)
        except sk.ledger.TokenUsed:
            assert known[token][0] != request
            assert pool.version == before
            continue
        if token in known:
            assert known[token][0] == request
            assert booking == known[token][1]._replace(repeated=True)
            assert pool.version == before
        elif booking is not None:
            known[token] = request, booking
    assert_followed(first)
    first.close()
    second.close()


@given(st.lists(SIZES, min_size=1, max_size=5), st.sampled_from(["ragged", "square"]))
def test_bodies_of_windows_round_trip(sizes: list[Any], shape: Any) -> None:
    slots = sk.make_slots(
        node=range(4), start=0, end=1e300, performance=[1, 2, 3, 0.1], price=0.3
    )
    windows = []
    for n, volume in sizes:
        window = sk.find_window(slots, sk.Request(n, volume), "runtime", shape=shape)
        assert window is not None
        windows.append(window)
        again = unpack_window(pack_window(window))
        assert again == window
        assert again.proven_over == window.proven_over
    bodies = [pack_window(w) for w in windows]
    names = ["a" if i % 2 else None for i in range(len(windows))]
    compiled = unpack_windows(bodies, names)
    plain = [unpack_window(b, n) for b, n in zip(bodies, names, strict=True)]
    for one, other in zip(compiled, plain, strict=True):
        assert (one._state(), one.name, one.proven_over) == (
            *(other._state(), other.name, other.proven_over),
        )
        assert hash(one) == hash(other)
    for body in bodies:
        for wrong in (b"\2" + body[1:], body[:-1], body + b"x", body[:5], b""):
            with pytest.raises(ValueError, match="a window of"):
                unpack_windows([bodies[0], wrong], [None, None])
            with pytest.raises(ValueError, match="a window of"):
                unpack_window(wrong)


@given(
    st.lists(st.tuples(st.sampled_from(["book", "hold"]), OWNERS | st.none())),
    st.integers(0, 3),
)
def test_rows_of_a_log_are_columns_of_runs(rows: list[Any], extra: int) -> None:
    rows = [(i, *row) for i, row in enumerate(rows)]
    found, begin = [], 0
    while begin < len(rows):
        end = run_of_rows(rows, begin, 1, 2)
        found.append(columns_of_rows(rows, begin, end, (2, 0)))
        begin = end
    groups = [[*group] for _, group in groupby(rows, itemgetter(1, 2))]
    assert found == [[[row[2] for row in g], [row[0] for row in g]] for g in groups]
    size = len(rows)
    with pytest.raises(IndexError, match=f"no row {size + extra}"):
        run_of_rows(rows, size + extra, 1, 2)
    for begin, end in ((0, size + 1), (-1, 0), (size + 1, size)):
        with pytest.raises(IndexError, match="no rows"):
            columns_of_rows(rows, begin, end, (0,))
    for column in (3 + extra, -1):
        with pytest.raises(IndexError, match=f"no column {column}"):
            columns_of_rows([(1, 2, 3)], 0, 1, (column,))
        with pytest.raises(IndexError, match=f"no column {column}"):
            run_of_rows([(1, 2, 3)], 0, column, 0)


def test_a_replay_equals_the_pool_that_was_logged(where: Any) -> None:
    pool = sk.SlotPool(nodes(50, 1e5)).share(where)
    jobs = [sk.Request(1 + i % 5, 1.0 + i % 7, name=f"j{i}") for i in range(400)]
    for owner in ("ann", "bob"):
        pool.schedule(jobs, owner=owner)
        pool.schedule(jobs, "cost", owner=owner, shape="ragged")
        pool.release(owner, name="j7")
    other = sk.SlotPool.open(where)
    assert other.replayed > 1600
    assert state_of(other) == state_of(pool)
    assert other.windows() == pool.windows()
    assert other.owners == pool.owners
    assert other.open_bookings() == pool.open_bookings()
    assert other.find(sk.Request(3, 5)) == pool.find(sk.Request(3, 5))
