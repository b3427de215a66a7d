"""Tests of find_alternatives: one sweep equals repeated search and cutting."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import add, met

import slotkern as sk

SHAPES = ["square", "ragged"]
NAMES = ["start", "finish", "runtime", "cost", "processor_time"]


@st.composite
def slot_arrays(draw, most_nodes=6, most_slots=4):
    """Draw small arrays with many ties, zero gaps and equal ends."""
    rows = []
    for node in range(draw(st.integers(1, most_nodes))):
        performance = draw(st.sampled_from([1.0, 2.0, 3.0, 4.0]))
        clock = draw(st.integers(0, 3))
        for _ in range(draw(st.integers(1, most_slots))):
            start = clock + draw(st.integers(0, 2))
            clock = start + draw(st.integers(1, 12))
            price = draw(st.sampled_from([0.0, 1.0, 1.0, 2.0, 2.5, 3.0]))
            rows.append((7 * node, start, clock, performance, price))
    node, start, end, performance, price = zip(*rows, strict=True)
    return sk.make_slots(
        node=node, start=start, end=end, performance=performance, price=price
    )


@st.composite
def requests(draw, most_nodes=4):
    return sk.Request(
        draw(st.integers(1, most_nodes)),
        draw(st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0, 0.1])),
        budget=draw(st.sampled_from([np.inf, 30.0, 12.0, 8.0, 4.0])),
        min_performance=draw(st.sampled_from([0.0, 0.0, 2.0])),
        earliest=draw(st.sampled_from([0.0, 0.0, 3.0, 4.5])),
        deadline=draw(st.sampled_from([np.inf, 25.0, 11.0])),
        max_price=draw(st.sampled_from([np.inf, np.inf, 2.0])),
    )


def same_but_rows(a, b):
    return (
        (a.start, a.finish, a.runtime, a.cost, a.processor_time, a.value)
        == (b.start, b.finish, b.runtime, b.cost, b.processor_time, b.value)
    ) and (a.slots[["node", "start", "end", "cost"]].tolist()) == (
        b.slots[["node", "start", "end", "cost"]].tolist()
    )


def search_and_cut(slots, request, criterion, shape):
    """Search and cut repeatedly on plain arrays, without the package's cutting code."""
    windows, free = [], [tuple(row) for row in slots.tolist()]
    while True:
        free.sort(key=lambda row: (row[1], row[0]))
        if not free:
            return windows
        columns = dict(
            zip(
                ("node", "start", "end", "performance", "price"),
                zip(*free, strict=True),
                strict=True,
            )
        )
        window = sk.find_window(
            sk.make_slots(**columns), request, criterion, shape=shape
        )
        if window is None:
            return windows
        windows.append(window)
        cut = {row: i for i, row in enumerate(window.slots["row"].tolist())}
        left = [row for i, row in enumerate(free) if i not in cut]
        for row, part in cut.items():
            node, start, end, performance, price = free[row]
            finish = float(window.slots["end"][part])
            if end - finish <= 4 * 2.0**-52 * finish:
                finish = end
            left.append((node, start, window.start, performance, price))
            left.append((node, finish, end, performance, price))
        free = [row for row in left if row[1] < row[2]]


@pytest.mark.parametrize("shape", SHAPES)
@given(slots=slot_arrays(), request_=requests())
@settings(max_examples=2 * settings.default.max_examples // 5, deadline=None)
def test_one_sweep_equals_repeated_search(shape, slots, request_):
    found = sk.find_alternatives(slots, request_, shape=shape)
    expected = search_and_cut(slots, request_, "first", shape)
    assert len(found) == len(expected)
    assert all(same_but_rows(a, b) for a, b in zip(found, expected, strict=True))
    pooled = sk.find_alternatives(sk.SlotPool(slots), request_, shape=shape)
    assert pooled == found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("criterion", ["start", "finish", "runtime", "cost"])
@given(slots=slot_arrays(most_nodes=4, most_slots=3), request_=requests(3))
@settings(max_examples=settings.default.max_examples // 15, deadline=None)
def test_other_criteria_equal_search_and_cut(criterion, shape, slots, request_):
    found = sk.find_alternatives(slots, request_, criterion, shape=shape)
    expected = search_and_cut(slots, request_, criterion, shape)
    assert len(found) == len(expected)
    assert all(same_but_rows(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("criterion", ["first", "cost"])
@pytest.mark.parametrize("shape", SHAPES)
@given(slots=slot_arrays(), request_=requests())
@settings(max_examples=settings.default.max_examples // 12, deadline=None)
def test_alternatives_share_no_slot_time(criterion, shape, slots, request_):
    found = sk.find_alternatives(slots, request_, criterion, shape=shape)
    taken = {}
    for part in found.parts.ravel():
        slot = slots[part["row"]]
        assert slot["node"] == part["node"]
        assert slot["start"] <= part["start"] < part["end"] <= slot["end"]
        taken.setdefault(int(part["row"]), []).append((part["start"], part["end"]))
    for spans in taken.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert all(met(cost, request_.budget) for cost in found.cost)


@pytest.fixture(scope="module")
def larger():
    rng = np.random.default_rng(5)
    node = np.repeat(np.arange(60), 8)
    edges = np.sort(rng.integers(0, 900, (60, 16)), axis=1) + np.arange(16)
    performance = np.repeat(rng.integers(2, 11, 60), 8)
    return sk.make_slots(
        node=node,
        start=edges[:, ::2].ravel(),
        end=edges[:, 1::2].ravel(),
        performance=performance,
        price=performance * rng.uniform(0.8, 1.2, 480),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("nodes", [1, 3, 12])
def test_sweep_on_60_nodes_equals_search_and_cut(larger, shape, nodes):
    request = sk.Request(nodes, 90, budget=nodes * 90 * 1.05)
    found = sk.find_alternatives(larger, request, shape=shape)
    expected = search_and_cut(larger, request, "first", shape)
    assert len(found) == len(expected) > 2
    assert all(same_but_rows(a, b) for a, b in zip(found, expected, strict=True))


def test_slow_group_may_use_one_expensive_part():
    """Its other parts cost nothing, so one part may cost more than any fast one."""
    slots = sk.make_slots(
        node=range(6),
        start=0,
        end=[2, 2, 2, 4, 4, 4],
        performance=[2, 2, 2, 1, 1, 1],
        price=[4, 4, 4, 0, 0, 5],
    )
    found = sk.find_alternatives(slots, sk.Request(3, 4, budget=25))
    assert [w.nodes for w in found] == [(0, 1, 2), (3, 4, 5)]
    assert found.cost.tolist() == [24, 20]


@pytest.mark.parametrize("shape", SHAPES)
def test_windows_of_infinite_cost_are_excluded(shape):
    slots = sk.make_slots(node=[0, 1, 2], start=0, end=9, performance=1, price=1e308)
    assert len(sk.find_alternatives(slots, sk.Request(2, 4), shape=shape)) == 0
    assert len(sk.find_alternatives(slots, sk.Request(1, 1), shape=shape)) == 27


def test_alternatives_are_a_sequence(larger):
    found = sk.find_alternatives(larger, sk.Request(2, 60, budget=130))
    windows = list(found)
    assert found[0] == windows[0]
    assert found[-1] == windows[-1]
    assert list(found[3:9:2]) == windows[3:9:2]
    assert isinstance(found[:2], sk.Alternatives)
    assert isinstance(found, Sequence)
    assert list(reversed(found)) == windows[::-1]
    assert windows[3] in found
    assert found.index(windows[3]) == 3
    assert found.count(windows[3]) == 1
    with pytest.raises(ValueError):  # noqa: PT011 (Sequence gives no message)
        found.index(windows[3], 4)
    for name in NAMES:
        assert getattr(found, name).tolist() == [getattr(w, name) for w in windows]
        assert getattr(found.best(name), name) == min(getattr(w, name) for w in windows)
    assert found.parts.shape == (len(windows), 2)
    assert all(
        row.tolist() == w.slots.tolist()
        for row, w in zip(found.parts, windows, strict=True)
    )
    assert found.table["value"].tolist() == [w.value for w in windows]
    assert pickle.loads(pickle.dumps(found)) == found
    limited = sk.find_alternatives(larger, sk.Request(2, 60, budget=130), limit=4)
    assert list(limited) == windows[:4]
    every = sk.find_alternatives(larger, sk.Request(2, 60, budget=130), limit=10**30)
    assert list(every) == windows
    for index in (len(windows), 2**70):
        with pytest.raises(IndexError, match="out of range"):
            found[index]
    with pytest.raises(TypeError, match="index"):
        found["cost"]
    with pytest.raises(ValueError, match="read-only"):
        found.cost[0] = 1


@pytest.mark.parametrize(
    "criteria", [("cost", "finish"), ("runtime", "cost"), ("start", "cost", "finish")]
)
def test_pareto_returns_nondominated_windows(larger, criteria):
    found = sk.find_alternatives(larger, sk.Request(2, 60, budget=130), shape="ragged")
    values = [tuple(getattr(w, name) for name in criteria) for w in found]
    best = {
        a
        for a in values
        if not any(
            all(x <= y for x, y in zip(b, a, strict=True)) and b != a for b in values
        )
    }
    front = found.pareto(*criteria)
    got = [tuple(getattr(w, name) for name in criteria) for w in front]
    assert set(got) == best
    assert len(got) == sum(v in best for v in values)
    assert got == sorted(got)


def test_pareto_contains_all_equal_windows():
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=4, performance=1, price=[2, 1, 1]
    )
    found = sk.find_alternatives(slots, sk.Request(1, 4))
    assert [w.nodes[0] for w in found] == [0, 1, 2]
    for criteria in (("cost", "finish"), ("cost", "finish", "start")):
        assert [w.nodes[0] for w in found.pareto(*criteria)] == [1, 2]
    assert found.best("cost").nodes == (1,)
    assert found.best("finish").nodes == (0,)


def test_slices_and_copies_contain_bounds(larger):
    """Values of the heuristic are not proven, also in slices and copies."""
    request, value = sk.Request(2, 60, budget=130), np.cos(np.arange(len(larger)))
    found = sk.find_alternatives(larger, request, value, method="lite", limit=5)
    windows = list(found)
    claims = [(w.bound, w.proven) for w in windows]
    assert any(w.bound != w.value or not w.proven for w in windows)
    for same in (found[:], pickle.loads(pickle.dumps(found)), found[::-1][::-1]):
        assert [(w.bound, w.proven) for w in same] == claims


def test_boolean_filter_equals_filtered_slots(larger):
    where = larger["node"] % 2 == 0
    request = sk.Request(2, 60, budget=130, where=where)
    for criterion in ("first", "cost"):
        found = sk.find_alternatives(larger, request, criterion)
        alone = sk.find_alternatives(
            larger[where], request.replace(where=None), criterion
        )
        assert len(found) == len(alone) > 0
        assert (found.parts["node"] % 2 == 0).all()
        assert (found.cost == alone.cost).all()


@pytest.mark.parametrize("method", ["exact", "lite"])
def test_array_and_field_criteria_are_equal(larger, method):
    """Repeated search and cutting also cuts the arrays of criteria and filters."""
    where, value = larger["node"] % 2 == 0, np.cos(np.arange(len(larger)))
    named = sk.make_slots(
        **{name: larger[name] for name in sk.SLOT.names}, q=value, even=where
    )
    assert (named["node"] == larger["node"]).all()
    request, options = sk.Request(2, 60, budget=130), {"limit": 6, "method": method}
    for by_array, by_field in ((value, "q"), (sk.minimize(value), sk.minimize("q"))):
        found = sk.find_alternatives(
            larger, request.replace(where=where), by_array, **options
        )
        expected = sk.find_alternatives(
            named, request.replace(where="even"), by_field, **options
        )
        assert len(found) == 6
        assert (found.parts == expected.parts).all()
        assert (found.table["value"] == expected.table["value"]).all()
        assert found.criterion == ("array" if by_field == "q" else "minimize(array)")


def test_empty_results_and_invalid_arguments(larger):
    none = sk.find_alternatives(larger, sk.Request(61, 1))
    assert (len(none), none.best("cost"), none.parts.shape) == (0, None, (0, 61))
    assert len(none.pareto("cost", "finish")) == 0
    assert len(sk.find_alternatives(larger, sk.Request(1, 1), limit=0)) == 0
    with pytest.raises(ValueError, match="'weight'"):
        none.best("weight")
    with pytest.raises(ValueError, match="two criteria"):
        none.pareto("cost")
    with pytest.raises(ValueError, match="-1"):
        sk.find_alternatives(larger, sk.Request(1, 1), limit=-1)
    with pytest.raises(TypeError, match="limit"):
        sk.find_alternatives(larger, sk.Request(1, 1), limit=2.5)
    with pytest.raises(ValueError, match="shape"):
        sk.find_alternatives(larger, sk.Request(1, 1), shape="round")


@pytest.mark.parametrize("criterion", ["first", "cost"])
def test_infinite_slots_need_limit_or_deadline(criterion):
    slots = sk.make_slots(node=[0, 1], start=0, end=np.inf, performance=2, price=1)
    request = sk.Request(2, 4)
    with pytest.raises(ValueError, match="infinite end"):
        sk.find_alternatives(slots, request, criterion)
    assert len(sk.find_alternatives(slots, request, criterion, limit=5)) == 5
    bounded = request.replace(deadline=10)
    found = sk.find_alternatives(slots, bounded, criterion)
    assert found.start.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("nodes", [2, 5])
def test_alternatives_equal_published_schemes(larger, shape, nodes):
    """Compare with CSA and MultipleBest as published."""
    pytest.importorskip("numba")
    from slotkern.published import SCHEMES

    budget = nodes * 90 * 1.05
    found = sk.find_alternatives(
        larger, sk.Request(nodes, 90, budget=budget), shape=shape
    )
    search = SCHEMES[shape].search
    expected = search(larger, nodes=nodes, volume=90.0, budget=budget)
    assert len(found) == len(expected) > 5
    for window, (start, rows, finish) in zip(found, expected, strict=True):
        order = np.argsort(larger["node"][rows])
        assert window.start == start
        assert window.slots["row"].tolist() == rows[order].tolist()
        assert window.slots["end"].tolist() == finish[order].tolist()
    general = sk.find_alternatives(
        larger,
        sk.Request(nodes, 90, budget=budget),
        shape=shape,
        method="published",
        limit=4,
    )
    assert (general.parts["row"] == found.parts["row"][:4]).all()


# --- best and pareto by any criterion ------------------------------------------------


@sk.criterion
def warmth(slot, length):
    return slot.q * length


@sk.criterion(uses_start=True)
def lateness(slot, start, length):
    return (start + length) * slot.q


@pytest.fixture(scope="module")
def with_fields(larger):
    q = np.random.default_rng(2).integers(0, 40, len(larger)) / 4
    return sk.make_slots(**{name: larger[name] for name in sk.SLOT.names}, q=q)


def value_by(criterion, window, slots):
    """Return the value of a window (larger is better) by plain Python."""
    parts = window.slots
    rows = parts["row"]
    ends = slots["end"][rows]
    if isinstance(criterion, np.ndarray):
        return criterion[rows].sum()
    if criterion == "dependable":
        gaps = np.minimum(parts["start"] - slots["start"][rows], ends - parts["end"])
        return gaps.mean()
    if criterion == "coordinated":
        gaps = np.maximum(parts["start"] - slots["start"][rows], ends - parts["end"])
        return -gaps.mean()
    lengths = parts["end"] - parts["start"]
    pairs = zip(slots[rows], lengths, strict=True)
    if criterion is warmth:
        return add(s["q"] * length for s, length in pairs)
    if criterion is lateness:
        return add(s["q"] * (window.start + length) for s, length in pairs)
    return slots[criterion][rows].sum()


@pytest.mark.parametrize("shape", SHAPES)
def test_best_by_any_criterion(with_fields, shape):
    pytest.importorskip("numba")
    slots = with_fields
    array = np.cos(np.arange(len(slots)))
    found = sk.find_alternatives(slots, sk.Request(3, 60, budget=200), shape=shape)
    assert len(found) > 20
    for criterion in ("q", array, warmth, lateness, "dependable", "coordinated"):
        values = [value_by(criterion, window, slots) for window in found]
        best = found.best(criterion)
        assert value_by(criterion, best, slots) == pytest.approx(max(values))
        assert found.index(best) == int(np.argmax(values))
        if isinstance(criterion, str) and criterion != "q":
            continue
        least = found.best(sk.minimize(criterion))
        assert value_by(criterion, least, slots) == pytest.approx(min(values))
    assert found.best("minimize(q)") == found.best(sk.minimize("q"))
    assert found.best("first") == found[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_best_by_criterion_of_the_search(with_fields, shape):
    """`best` orders windows by the values that the search computed."""
    request = sk.Request(3, 60, budget=200)
    for criterion in ("q", "minimize(q)", "dependable", "coordinated"):
        found = sk.find_alternatives(
            with_fields, request, criterion, shape=shape, limit=12
        )
        values = found.table["value"]
        if criterion in ("minimize(q)", "coordinated"):
            values = -values
        # For gaps, `best` does not count earlier windows as tasks, unlike the search.
        if criterion.endswith(("q", "q)")):
            assert found.index(found.best(criterion)) == values.argmax()
        assert found[:1].best(criterion) == found[0]


def test_multiple_best_is_no_better_than_maxq(with_fields):
    """Compare the best alternative with the best of all windows, as the papers do."""
    request = sk.Request(3, 60, budget=200)
    several = sk.find_alternatives(with_fields, request).best("q")
    best = sk.find_window(with_fields, request, "q")
    q = with_fields["q"]
    assert q[several.slots["row"]].sum() < q[best.slots["row"]].sum() == best.value


def test_pareto_by_any_criterion(with_fields):
    found = sk.find_alternatives(with_fields, sk.Request(3, 60, budget=200))
    q = with_fields["q"][found.parts["row"]].sum(axis=1)
    front = found.pareto("q", "cost")
    chosen = [found.index(window) for window in front]
    for k in range(len(found)):
        beaten = ((q >= q[k]) & (found.cost <= found.cost[k])) & (
            (q > q[k]) | (found.cost < found.cost[k])
        )
        assert (k in chosen) == (not beaten.any())
    assert (np.diff(q[chosen]) <= 0).all()
    three = found.pareto("cost", "q", "dependable")
    assert set(map(repr, front)) <= set(map(repr, three))
    assert found[3:9].pareto("q", "cost")
    again = pickle.loads(pickle.dumps(found))
    assert again.pareto("q", "cost") == front


def test_later_pool_changes_leave_alternatives_unchanged(with_fields):
    """Values are computed from the slots that were free when the search ran."""
    pool = sk.SlotPool(with_fields)
    request = sk.Request(3, 60, budget=200)
    for window in list(pool.find_alternatives(request, limit=5)):
        pool.book(window)
    free = pool.slots.copy()
    found = pool.find_alternatives(request)
    alone = sk.find_alternatives(free, request)
    assert len(found) == len(alone) > 5
    pool.book(found[2])
    for criterion in ("q", "dependable", "coordinated", sk.minimize("start"), warmth):
        one, other = found.best(criterion), alone.best(criterion)
        assert (one.start, one.nodes) == (other.start, other.nodes)
    with pytest.raises(ValueError, match="the pool has changed"):
        found.best(np.zeros(len(free)))


def test_best_rejects_invalid_criteria(with_fields):
    found = sk.find_alternatives(with_fields, sk.Request(3, 60, budget=200))
    with pytest.raises(ValueError, match="'weight'"):
        found.best("weight")
    with pytest.raises(ValueError, match="one value for each row"):
        found.best(np.zeros(3))
    with pytest.raises(TypeError, match="got 7"):
        found.best(7)
    with pytest.raises(ValueError, match="minimize does not apply"):
        found.best(sk.minimize("dependable"))

    @sk.criterion
    def wrong(slot, length):
        return 1 / (slot.q - slot.q)

    with pytest.raises(ValueError, match="criterion wrong raised"):
        found.best(wrong)
    slots = sk.make_slots(node=[0, 1], start=0, end=np.inf, performance=1, price=1)
    endless = sk.find_alternatives(slots, sk.Request(2, 4), limit=3)
    with pytest.raises(ValueError, match="slot row 0: end is inf"):
        endless.best("dependable")
    assert endless.best("cost") == endless[0]


def test_live_slots_of_many_performances_are_limited():
    """Every performance group stores its live slots; their total number is limited."""
    count = 10_000
    start = np.arange(count) * 10.0
    performance = 1 + np.arange(count) / count
    node = np.arange(count)
    few = sk.make_slots(
        node=node, start=start, end=start + 30, performance=performance, price=1
    )
    found = sk.find_alternatives(few, sk.Request(2, 10))
    assert len(found) > count // 4
    pairs = sk.make_slots(  # each slot waits for the other half of a window
        node=[*node, *node[-2:]],
        start=[0.0] * count + [1e3] * 2,
        end=[1e3] * count + [1e3 + 10] * 2,
        performance=[*performance, *performance[-2:]],
        price=[1.0] * count + [0.0] * 2,
    )
    too_many = (
        "more than 16,777,216; give the request a min_performance, a max_price or a "
    )
    with pytest.raises(ValueError, match=too_many):
        sk.find_alternatives(pairs, sk.Request(2, 10, budget=9))
    with pytest.raises(ValueError, match=too_many):  # n cheapest of each group alone
        sk.find_alternatives(pairs, sk.Request(count // 2, 10))
    fast = sk.Request(2, 10, budget=9, min_performance=1.9)
    assert sk.find_alternatives(pairs, fast).start.tolist() == [1e3]


@settings(max_examples=100, deadline=None)
@given(slots=slot_arrays(), request=requests())
def test_timed_loops_equal_published_searches(slots, request):
    """The loops that benchmarks time return the starts of the published searches."""
    pytest.importorskip("numba")
    from slotkern.published import loops

    how = {"shape": "ragged", "method": "published"}
    for criterion in loops.CRITERIA:
        window = sk.find_window(slots, request, criterion, seed=3, **how)
        starts = [] if window is None else [window.start]
        assert loops.loop_of(slots, request, criterion, seed=3)() == starts
    found = sk.find_alternatives(slots, request, "first", **how)
    assert loops.loop_of(slots, request, None)(times=2) == found.start.tolist()
