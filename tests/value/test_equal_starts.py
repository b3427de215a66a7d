"""Searches by value with equal starts, Lite, and the starts that a proof covers."""

import pickle

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk

few = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 1.1, 2.0])


@st.composite
def machines(draw):
    """Slots with many equal starts, and a budget that some set meets exactly."""
    m = draw(st.integers(2, 9))
    column = st.lists(few, min_size=m, max_size=m)
    slots = sk.make_slots(
        node=range(m),
        start=draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=m, max_size=m)),
        end=draw(st.lists(st.sampled_from([4, 5, 9]), min_size=m, max_size=m)),
        performance=draw(st.lists(st.sampled_from([1, 1, 2]), min_size=m, max_size=m)),
        price=draw(column),
        q=draw(column),
    )
    n = draw(st.integers(1, min(m, 4)))
    some = draw(st.permutations(range(m)))[:n]
    shape = draw(st.sampled_from(["square", "ragged"]))
    parts = [slot for slot in oracle.proper_slots(slots) if slot.row in some]
    budget = oracle.window_of(0.0, parts, shape, 3.0).cost
    factor = draw(st.sampled_from([1.0, 1.0, 1 - 2.0**-48, 1.5]))
    request = {"nodes": n, "volume": 3.0, "budget": budget * factor}
    earliest = draw(st.sampled_from([None, 1.0, 0.5]))
    return slots, request | ({} if earliest is None else {"earliest": earliest}), shape


@given(machines(), st.sampled_from(["q", "minimum", "leftover", "processor_time"]))
def test_equal_starts_match_exhaustive_search(case, criterion):
    slots, request, shape = case
    windows = list(oracle.all_windows(slots, shape, **request))
    job = sk.Request(request.pop("nodes"), request.pop("volume"), **request)
    by = sk.minimize("q") if criterion == "minimum" else criterion
    found = sk.find_window(slots, job, by, shape=shape)
    assert (found is None) == (not windows)
    if found is None:
        return

    def value(window):
        lengths = [
            window.runtime if shape == "square" else 3.0 / slots["performance"][row]
            for row in window.rows
        ]
        if criterion == "processor_time":
            return -sum(lengths)
        if criterion == "leftover":
            ends = [
                slots["end"][row] - slots["start"][row] - length
                for row, length in zip(window.rows, lengths, strict=True)
            ]
            return -sum(ends)
        sign = 1 if criterion == "q" else -1
        return sign * sum(slots["q"][row] for row in window.rows)

    sign = 1 if criterion == "q" else -1
    best = max(map(value, windows))
    assert found.proven
    assert sign * found.value == pytest.approx(best, abs=1e-12)


def idle(m, seed=1):
    rng = np.random.default_rng(seed)
    price, q = rng.uniform(0.1, 2, m).round(2), rng.uniform(0, 100, m)
    slots = sk.make_slots(
        node=range(m), start=0, end=10, performance=1, price=price, q=q
    )
    return slots, price, q


def test_an_idle_machine_is_one_knapsack():
    for m, n in ((200, 20), (1000, 50)):
        slots, price, q = idle(m)
        budget = float(np.sort(price)[:n].sum() * 1.5)
        choice = sk.choose(price, q, n=n, budget=budget)
        for shape in ("square", "ragged"):
            found = sk.find_window(
                slots, sk.Request(n, 1, budget=budget), "q", shape=shape
            )
            assert found.effort["subsets"] == 1
            assert found.proven == choice.proven
            assert found.value == pytest.approx(choice.value, rel=1e-12)


def test_each_distinct_start_is_one_knapsack_at_most():
    slots, _, _ = idle(300)
    slots["start"] = np.sort(np.arange(300) % 5)
    found = sk.find_window(slots, sk.Request(12, 1, budget=9), "q")
    assert found.proven
    assert found.effort["subsets"] <= 5


def by_steps(slots, n, volume, budget, criterion):
    """Lite by its definition: the n cheapest of each step of each group."""
    best = None
    rows = oracle.proper_slots(slots)
    ordered = sorted(rows, key=lambda s: (s.start, s.node))
    for length in sorted({volume / s.performance for s in rows}):
        for last, newest in enumerate(ordered):
            t = newest.start
            live = [
                s
                for s in ordered[: last + 1]
                if volume / s.performance <= length and t + length <= s.end
            ]
            if newest not in live or not any(
                volume / s.performance == length for s in live
            ):
                continue
            chosen = sorted(live, key=lambda s: (s.price, s.node))[:n]
            if len(chosen) < n:
                continue
            cost = length * oracle.exact(s.price for s in chosen)
            if not oracle.met(cost, budget):
                continue
            own = max(volume / s.performance for s in chosen)
            spans = [(t - s.start, s.end - t - own) for s in chosen]
            value = {
                "q": lambda chosen=chosen: sum(slots["q"][s.row] for s in chosen),
                "dependable": lambda spans=spans: sum(map(min, spans)) / n,
                "coordinated": lambda spans=spans: -sum(map(max, spans)) / n,
            }[criterion]()
            best = value if best is None else max(best, value)
    return best


@given(machines(), st.sampled_from(["q", "dependable", "coordinated"]))
def test_lite_equals_its_definition(case, criterion):
    slots, request, _ = case
    n, budget = request["nodes"], request["budget"]
    job = sk.Request(n, 3, budget=budget)
    found = sk.find_window(slots, job, criterion, method="lite")
    best = by_steps(slots, n, 3.0, budget, criterion)
    assert (found is None) == (best is None)
    if found is not None:
        sign = -1 if criterion == "coordinated" else 1
        assert sign * found.value == pytest.approx(best, abs=1e-12)
        assert not found.proven


def test_lite_evaluates_no_set_twice():
    slots, _, _ = idle(400)
    slots["start"] = np.sort(np.arange(400) % 40)
    slots["end"] = 100
    slots["price"][8:] += 10  # more expensive than the first eight
    found = sk.find_window(slots, sk.Request(8, 1), "q", method="lite")
    assert found.effort["steps"] <= 2


def test_proven_names_the_starts_that_were_compared():
    slots = sk.make_slots(node=[0, 1], start=[0, 0], end=20, performance=1, price=1)
    job = sk.Request(2, 4)
    whole = sk.find_window(slots, job, "dependable", placement="any")
    part = sk.find_window(slots, job, "dependable")
    assert whole.proven
    assert part.proven
    assert whole.value == 8 > part.value
    assert whole.proven_over == "all starts"
    assert part.proven_over == "starts of slots"
    assert "starts of slots" in str(part._as_table())
    assert "starts of slots" not in str(whole._as_table())
    for window in (part, whole):
        assert pickle.loads(pickle.dumps(window)).proven_over == window.proven_over
        again = sk.Window.from_dict(window.to_dict())
        assert again.proven_over == window.proven_over
        table = sk.WindowTable.of([None, window])
        assert table[1].proven_over == window.proven_over
        assert table[1:][0].proven_over == window.proven_over
    for criterion in ("cost", "processor_time", "start"):
        assert sk.find_window(slots, job, criterion).proven_over == "all starts"
    old = {k: v for k, v in whole.to_dict().items() if k != "proven_over"}
    assert sk.Window.from_dict(old).proven_over == "all starts"


def test_an_own_criterion_of_the_start_is_proven_over_starts_of_slots():
    @sk.criterion(uses_start=True)
    def near_five(slot, start, length):
        return -abs(start - 5.0)

    slots = sk.make_slots(node=[0, 1], start=[0, 1], end=20, performance=1, price=1)
    window = sk.find_window(slots, sk.Request(2, 4), near_five)
    assert window.proven
    assert window.proven_over == "starts of slots"
