"""Tests of searches in pools that have changed."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from pools import assert_same_but_rows, random_request, random_slots

import slotkern as sk
from slotkern._kernels.search import find_once
from slotkern.plotting.steps import step_values


def changed_pool(seed, bookings=8):
    """Return a pool with bookings, whose slots have a site, a quality and a flag."""
    slots = random_slots(seed, nodes=16, slots=8)
    rng = np.random.default_rng(seed)
    pool = sk.SlotPool(
        sk.make_slots(
            **{name: slots[name] for name in slots.dtype.names},
            q=rng.uniform(0, 5, len(slots)).round(1),
            site=rng.choice(["a", "b"], len(slots)),
            fast=rng.random(len(slots)) < 0.7,
        )
    )
    for _ in range(bookings):
        pool.book(pool.find(sk.Request(3, 9)))
    return pool


def assert_rows_are_of_the_origin(pool, window):
    for part in window.slots:
        slot = pool.origin[part["row"]]
        assert slot["node"] == part["node"]
        assert slot["start"] <= part["start"] < part["end"] <= slot["end"]


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("booked", [False, True])
def test_no_search_finds_time_before_now(shape, booked):
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=[1, 2], price=1)
    job = sk.Request(1, 4)
    limited = job.replace(limits="sum(price) <= 5")

    def advanced():
        pool = sk.SlotPool(slots)
        if booked:
            pool.book(pool.find(job, "cost"))
        pool.advance(2.5)
        return pool

    for request in (job, limited):
        for criterion in ("first", "start", "finish", "runtime", "cost"):
            options = {"criterion": criterion, "shape": shape}
            free = advanced().slots
            assert (
                sk.find_windows(advanced(), [request], **options)[0].start
                == sk.find_windows(free, [request], **options)[0].start
                == 2.5
            )
            found = advanced().find_alternatives(request, **options)
            assert found.start.tolist() == (
                sk.find_alternatives(free, request, **options).start.tolist()
            )
            assert min(found.start) == 2.5
            assert advanced().find(request, **options).start == 2.5


def test_cheap_slots_that_are_slightly_too_short_are_skipped():
    rng = np.random.default_rng(1)
    node = np.arange(2000)
    for _ in range(20):
        is_short = (node % 20 == 0) & (node < 48 * rng.integers(1, 41))
        end = np.where(is_short, 20.5, 100)
        least, spread = np.where(is_short, [[1], [1]], [[2], [50]])
        price = least + spread * rng.random(2000)
        pool = sk.SlotPool(
            sk.make_slots(node=node, start=0, end=end, performance=1, price=price)
        )
        n = int(rng.integers(1, 7))
        for volume in (20, 20, 20, 20, 20, 20, 20, 20, 20, 21, 21, 20):
            fits = np.flatnonzero(volume <= end)
            cheapest = fits[np.argsort(price[fits])[:n]]
            window = pool.find(sk.Request(n, volume), "start", shape="ragged")
            assert window.start == 0
            assert sorted(window.nodes) == sorted(cheapest.tolist())


def test_all_searches_run_in_changed_pool():
    slots = random_slots(8, nodes=20, slots=8)
    pool = sk.SlotPool(slots)
    request = sk.Request(2, 9, where="tag >= 3")
    where = slots["tag"] >= 3
    assert pool.find(request) == pool.find(request.replace(where=where))
    for _ in range(5):
        pool.book(pool.find(sk.Request(3, 9)))
    assert_same_but_rows(pool.find(request), sk.find_window(pool.slots, request))
    assert (pool.origin["tag"][pool.find(request).slots["row"]] >= 3).all()
    with pytest.raises(ValueError, match="has changed"):
        pool.find(request.replace(where=where))
    assert str(sk.explain(pool, request)) == str(sk.explain(pool.slots, request))
    requests = [random_request(np.random.default_rng(k)) for k in range(80)]
    for found, single in zip(
        sk.find_windows(pool, requests, "cost", threads=2),
        [sk.find_window(pool.slots, r, "cost") for r in requests],
        strict=True,
    ):
        assert_same_but_rows(found, single)
    for criterion in ("first", "cost"):
        plain = sk.Request(2, 9, budget=40)
        found = pool.find_alternatives(plain, criterion)
        expected = sk.find_alternatives(pool.slots, plain, criterion)
        assert (found.table == expected.table).all()
        rows = pool.origin["node"][found.parts["row"]]
        assert (rows == found.parts["node"]).all()
        assert (found.parts["node"] == expected.parts["node"]).all()


@sk.criterion
def spare(slot, length):
    return slot.end - slot.start - length + slot.q


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize(
    "criterion",
    [
        *("q", sk.minimize("q"), "processor_time", "dependable", "coordinated"),
        *(spare, sk.minimize(spare)),
    ],
    ids=[
        "q",
        "least q",
        "processor_time",
        "dependable",
        "coordinated",
        "own",
        "least own",
    ],
)
def test_criteria_by_value_after_bookings(criterion, shape):
    pool = changed_pool(3)
    windows = 0
    for k in range(12):
        request = random_request(np.random.default_rng(k))
        window = pool.find(request, criterion, shape=shape)
        plain = sk.find_window(pool.slots, request, criterion, shape=shape)
        assert_same_but_rows(window, plain)
        if window is not None:
            assert_rows_are_of_the_origin(pool, window)
            assert window.proven
            pool.book(window)
            windows += 1
    assert windows > 3


WHERE = ["site == 'a'", "fast", "q > 1 and not fast", "start < 80"]


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("where", WHERE)
def test_filters_after_bookings(where, shape):
    """A filter is evaluated on the current free slots, including remnants."""
    pool, found = changed_pool(5), 0
    for k in range(30):
        request = random_request(np.random.default_rng(k)).replace(where=where)
        criterion = list(sk.CRITERIA)[k % len(sk.CRITERIA)]
        window = pool.find(request, criterion, shape=shape)
        plain = sk.find_window(pool.slots, request, criterion, shape=shape)
        assert_same_but_rows(window, plain)
        both = [request, request.replace(where=None)]
        for threads in (1, 2):
            many = sk.find_windows(
                pool, both * 40, criterion, shape=shape, threads=threads
            )
            assert many[0] == window
            assert many == [pool.find(r, criterion, shape=shape) for r in both] * 40
        for scheme in ("first", "cost"):
            several = pool.find_alternatives(request, scheme, shape=shape)
            alone = sk.find_alternatives(pool.slots, request, scheme, shape=shape)
            assert several.table.tolist() == alone.table.tolist()
            for other in several:
                assert_rows_are_of_the_origin(pool, other)
        if window is not None:
            assert_rows_are_of_the_origin(pool, window)
            found += 1
            if k % 3:
                pool.book(window)
    assert found > 5


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("criterion", ["q", "dependable", "coordinated"])
def test_sums_of_values_until_a_deadline(criterion, shape):
    """A single search of a part of the slots equals a search of all slots."""
    found = 0
    for seed in range(6):
        pool = changed_pool(seed)
        slots = pool.slots
        times = np.concatenate([slots["start"], slots["end"][slots["end"] < np.inf]])
        rng = np.random.default_rng(seed)
        for _ in range(25):
            first, last = np.sort(rng.choice(times, 2))
            request = sk.Request(
                int(rng.integers(1, 4)),
                float(rng.uniform(1, 9)),
                budget=float(rng.uniform(5, 200)),
                earliest=float(first),
                deadline=float(last) if rng.random() < 0.7 else np.inf,
                latest=float(rng.choice(times[times >= first])),
            )
            for how in ("exact", "lite"):
                ours = find_once(pool, request, criterion, shape=shape, method=how)
                other = sk.find_window(
                    slots, request, criterion, shape=shape, method=how
                )
                assert (ours is None) == (other is None)
                if ours is None:
                    continue
                found += 1
                assert ours.value == pytest.approx(other.value, rel=1e-12)
                assert ours.proven == other.proven  # windows of equal sums may differ
                assert_rows_are_of_the_origin(pool, ours)
    assert found > 50


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_schedule_with_filters(shape):
    pool = changed_pool(7)
    twin = copy.copy(pool)
    rng = np.random.default_rng(1)
    wheres = [None, *WHERE[:3]]
    requests = [
        random_request(rng).replace(where=wheres[int(rng.integers(4))])
        for _ in range(60)
    ]
    done = pool.schedule(requests, shape=shape)
    for request, window in zip(requests, done, strict=True):
        expected = sk.find_window(twin.slots, request, "start", shape=shape)
        assert_same_but_rows(window, expected)
        if window is not None:
            twin.book(window)
    assert 5 < done.booked.sum() < 60
    before = pool.slots
    for where in ("start < 80", "fast and end > 3", np.ones(len(pool.origin), bool)):
        with pytest.raises(ValueError, match=r"requests\[1\]: a filter must be"):
            pool.schedule([requests[0], sk.Request(1, 1, where=where)])
    with pytest.raises(ValueError, match="'memory'"):
        pool.schedule([sk.Request(1, 1, where="memory > 3")])
    assert before.tolist() == pool.slots.tolist()


def test_filters_include_added_slots():
    pool = sk.SlotPool(
        sk.make_slots(node=0, start=0, end=9, performance=1, price=1, tag=1)
    )
    request = sk.Request(1, 4, where="tag == 2")
    pool.book(pool.find(sk.Request(1, 2)))
    assert pool.find(request) is None
    pool.add_slots(sk.make_slots(node=1, start=5, end=9, performance=1, price=1, tag=2))
    assert pool.find(request).nodes == (1,)


def test_row_arrays_are_rejected_after_change():
    pool = changed_pool(2, bookings=0)
    values, where = np.arange(len(pool.slots)) * 1.0, np.ones(len(pool.slots), bool)
    request, filtered = sk.Request(2, 5), sk.Request(2, 5, where=where)
    for criterion in (values, sk.minimize(values)):
        assert pool.find(request, criterion) is not None
    pool.book(pool.find(request))
    for criterion in (values, values[:3], sk.minimize(values)):
        for search in (pool.find, pool.find_alternatives):
            with pytest.raises(ValueError, match="criterion is an array, but the pool"):
                search(request, criterion)
        for search in (sk.find_windows, step_values):
            with pytest.raises(ValueError, match="criterion is an array, but the pool"):
                search(
                    pool, [request] if search is sk.find_windows else request, criterion
                )
    for search in (
        *(pool.find, pool.find_alternatives),
        lambda r: pool.find(r, "q"),
        lambda r: pool.find(r, "start", method="lite"),
        lambda r: pool.find_alternatives(r, "cost"),
        lambda r: sk.find_windows(pool, [r]),
        lambda r: sk.explain(pool, r),
        lambda r: step_values(pool, r, "q"),
    ):
        with pytest.raises(ValueError, match="where is an array, but the pool"):
            search(filtered)


def test_pool_cannot_be_reinitialized():
    pool = changed_pool(4)
    before = pool.slots.tolist()
    with pytest.raises(TypeError, match="a SlotPool cannot be initialized again"):
        pool.__init__(random_slots(1))
    with pytest.raises(TypeError, match="cannot be initialized again"):
        sk.SlotPool(random_slots(1)).__init__(random_slots(2))
    assert pool.slots.tolist() == before
    assert pool.find(sk.Request(1, 2)) is not None


def test_copies_are_independent():
    pool = changed_pool(6)
    before = pool.slots.tolist()
    other = copy.copy(pool)
    other.book(other.find(sk.Request(2, 5)))
    assert pool.slots.tolist() == before
    assert len(other.booked) == len(pool.booked) + 2


def test_removed_nodes_are_not_used():
    pool = changed_pool(1)
    assert 3 in pool.slots["node"]  # a snapshot that the removal must invalidate
    pool.remove_node(3)
    assert 3 not in pool.slots["node"]
    left = len(pool.nodes)
    assert repr(pool) == f"SlotPool({len(pool.slots)} slots of {left} nodes)"
    assert pool.schedule([sk.Request(left + 1, 1)]).reasons == ["nodes"]
    for k in range(40):
        request = random_request(np.random.default_rng(k))
        for criterion in sk.CRITERIA:
            assert_same_but_rows(
                pool.find(request, criterion),
                sk.find_window(pool.slots, request, criterion),
            )


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_short_remnants_are_dropped_and_restored(shape):
    """Short remnants leave the index when it has doubled, and return when needed."""
    nodes, length = 12, 3000
    slots = sk.make_slots(
        node=np.arange(nodes),
        start=0,
        end=length,
        performance=[1, 2, 4] * (nodes // 3),
        price=1,
    )
    pool, rng, booked = sk.SlotPool(slots), np.random.default_rng(0), []

    def compare(volume, criterion="start"):
        request = sk.Request(
            2, volume, earliest=float(rng.integers(length)), budget=rng.choice([9, 99])
        )
        assert_same_but_rows(
            pool.find(request, criterion, shape=shape),
            sk.find_window(pool.slots, request, criterion, shape=shape),
        )

    for turn in range(2500):
        volume = float(rng.choice([6, 8, 20]))
        earliest = float(rng.integers(length))
        window = pool.find(sk.Request(1, volume, earliest=earliest), shape=shape)
        if window is not None:
            pool.book(window)
            booked.append(window)
        if turn % 3 == 2:
            pool.release(booked.pop(int(rng.integers(len(booked)))))
        if turn % 40 == 0:
            compare(volume)
    spans = pool.slots
    work = (spans["end"] - spans["start"]) * spans["performance"]
    assert len(spans) > 1024 + 2 * nodes
    assert (work < 6).sum() > 100
    for volume in (6, 5, 3, 2, 1, 0.5):
        for criterion in sk.CRITERIA:
            compare(volume, criterion)
    for window in booked:
        pool.release(window)
    assert pool.slots.tolist() == slots.tolist()


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_hundreds_of_slots_that_start_together(shape):
    """They need several blocks, which all begin at the same time."""
    rng = np.random.default_rng(0)
    slots = sk.make_slots(
        node=rng.permutation(400),
        start=rng.integers(0, 3, 400),
        end=60,
        performance=rng.integers(1, 4, 400),
        price=rng.integers(1, 30, 400),
    )
    pool, found = sk.SlotPool(slots), 0
    for turn in range(60):
        if turn % 20 == 19:
            pool.advance(turn / 2)
        request = sk.Request(
            int(rng.integers(1, 9)),
            float(rng.choice([3, 6])),
            budget=float(rng.choice([20, 60, 200])),
            earliest=float(rng.choice([0, 2, 5])),
        )
        for criterion in sk.CRITERIA:
            window = pool.find(request, criterion, shape=shape)
            assert_same_but_rows(
                window, sk.find_window(pool.slots, request, criterion, shape=shape)
            )
        window = pool.find(request, "first", shape=shape)
        if window is not None:
            pool.book(window)
            found += 1
    assert found > 20


def test_huge_end_times():
    """Times that absorb a volume are errors only if a window can start then."""
    slots = sk.make_slots(
        node=[0, 1], start=[0, 20], end=[10, 1e17], performance=1, price=1
    )
    pool = sk.SlotPool(slots)
    pool.book(pool.find(sk.Request(1, 2)))
    for _ in range(2):  # the second time the result is cached
        assert pool.find(sk.Request(2, 1), "start") is None
    assert pool.schedule([sk.Request(2, 1)]).reasons == ["time"]
    pool.book(sk.find_window(slots, sk.Request(1, 5e16), "start"))
    for source in (pool, pool.slots):
        with pytest.raises(ValueError, match=r"volume 1\.0 is too small"):
            sk.find_window(source, sk.Request(1, 1), "start")
    assert pool.schedule([sk.Request(1, 1)]).reasons == ["volume"]
    with pytest.raises(ValueError, match=r"volume 1\.0 is too small"):
        pool.find(sk.Request(2, 1, earliest=1e17), "start")


def test_part_of_zero_length_is_rejected():
    near = sk.make_slots(node=0, start=0, end=10, performance=1, price=1)
    far = sk.make_slots(node=0, start=1e17, end=2e17, performance=1, price=1)
    window = sk.find_window(near, sk.Request(1, 1))
    pool = sk.SlotPool(far)
    with pytest.raises(ValueError, match="not free"):
        pool.book(window)


def test_expensive_released_slot_lowers_start_bound():
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=[0.5, 3])
    pool = sk.SlotPool(slots)
    job = sk.Request(2, 10, budget=35)
    window = pool.find(sk.Request(1, 50, where="price > 1"), "start")
    pool.book(window)
    assert pool.find(job, "start").start == 50
    pool.release(window)
    assert pool.find(job, "start").start == 0


def test_small_volume_is_checked_against_usable_slots():
    slots = sk.make_slots(node=[0, 1], start=0, end=[9, 100], performance=1, price=1)
    for source in (slots, sk.SlotPool(slots)):
        for earliest in (-np.inf, -1e300, -1e8, 0):
            window = sk.find_window(source, sk.Request(1, 1e-9, earliest=earliest))
            assert (window.start, window.nodes) == (0, (0,))
        with pytest.raises(ValueError, match="volume 1e-16 is too small"):
            sk.find_window(source, sk.Request(1, 1e-16, earliest=50))
        # no slot ends so late
        late = sk.Request(1, 1e-9, earliest=1e8)
        assert sk.find_window(source, late) is None
    requests = [
        sk.Request(1, 1e-9, earliest=-1e8, budget=0),
        sk.Request(3, 1e-9, earliest=-1e8),
        sk.Request(1, 1e-9, earliest=-1e8),
    ]
    done = sk.SlotPool(slots).schedule(requests)
    assert done.reasons == ["budget", "nodes", "booked"]


def test_pools_and_slots_reject_the_same_requests():
    rng = np.random.default_rng(5)
    refused = booked = 0
    for _ in range(60):
        count = 12
        start = rng.choice([-1e9, 0, 1, 1e3, 1e9], count) + np.arange(count)
        slots = sk.make_slots(
            node=np.arange(count),
            start=start,
            end=start + rng.choice([1e-6, 0.5, 1e9], count),
            performance=rng.choice([1e-3, 1, 1e3], count),
            price=rng.choice([1, 2], count),
        )
        pool = sk.SlotPool(slots)
        for _ in range(15):
            job = sk.Request(
                int(rng.integers(1, 4)),
                float(rng.choice([1e-9, 1e-7, 1e-5, 1e-3, 0.3, 100])),
                earliest=float(rng.choice([-np.inf, -1e12, 0, 500, 1e9])),
                max_price=float(rng.choice([1, 2])),
                budget=float(rng.choice([0, 1, np.inf])),
            )
            found = []
            for source in (pool, pool.slots):
                try:
                    window = sk.find_window(source, job, "start", shape="ragged")
                except ValueError as error:
                    found.append(str(error))
                    refused += 1
                else:
                    found.append(window and (window.start, window.cost, window.nodes))
            assert found[0] == found[1]
            if isinstance(found[0], tuple):
                pool.book(sk.find_window(pool, job, "start", shape="ragged"))
                booked += 1
    assert min(refused, booked) > 50


def rates_of_few_kinds(rng):
    """Draw small integers, arbitrary numbers, or some ulps above a float32."""
    rates = rng.choice([1.0, 2.0, rng.random(), rng.random()], rng.integers(1, 4))
    rounded = np.float32(rates).astype(float)
    return np.where(
        rng.random(len(rates)) < 0.5,
        rounded + rng.integers(0, 5) * np.spacing(rounded),
        rates,
    )


def slots_of_few_kinds(rng, nodes, first=0.0):
    rates = rates_of_few_kinds(rng)
    performance = rng.choice([1.0, 1.0, 2.0, 0.3], len(rates))
    kind = rng.integers(0, len(rates), nodes)
    start = first + rng.choice([0.0, 0.0, 3.0, 10.0], nodes)
    return sk.make_slots(
        node=rng.permutation(2 * nodes)[:nodes],
        start=start,
        end=start + rng.integers(20, 200, nodes),
        performance=performance[kind],
        price=(performance * rates)[kind],
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(40))
def test_pool_of_few_kinds_equals_its_slots(seed):
    """Many slots have equal cost, on more nodes than a probe examines."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(100, 700))
    pool, booked, found = sk.SlotPool(slots_of_few_kinds(rng, nodes)), [], 0
    for step in range(60):
        request = sk.Request(
            int(rng.choice([1, 1, 2, 3, nodes // 20])),
            float(rng.choice([0.3, 1, 7.7, 20])),
            budget=float(rng.choice([np.inf, np.inf, 40])),
            deadline=float(rng.choice([np.inf, 90])),
        )
        criterion = ["cost", "cost", "start", "finish", "runtime"][step % 5]
        shape = "square" if step % 7 == 0 else "ragged"
        window = pool.find(request, criterion, shape=shape)
        plain = sk.find_window(pool.slots, request, criterion, shape=shape)
        assert_same_but_rows(window, plain)
        if window is not None:
            found += 1
            pool.book(window)
            booked.append(window)
        if booked and step < 40 and rng.random() < 0.3:
            pool.release(booked.pop(rng.integers(len(booked))))
        if step == 40:
            pool.advance(2.0)
            more = slots_of_few_kinds(rng, 50, pool.now)
            more["node"] += 10_000
            pool.add_slots(more)
    assert found > 20
