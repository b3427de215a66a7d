"""Windows by value whose prices and values round, cancel or are huge."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import oracle
import pytest
from extremes import SOURCES, Picker, check_search, searches
from hypothesis import given, settings
from hypothesis import strategies as st

import slotkern as sk
import slotkern.typing
from slotkern._kernels.values import NAMED_VALUES
from slotkern.commands.search_options import CRITERION_HELP
from slotkern.search.criteria import criterion_names

pickers = st.binary(min_size=50, max_size=50).map(
    lambda digits: Picker(int.from_bytes(digits))
)


@settings(max_examples=settings.default.max_examples // 2)
@given(pickers, pickers, st.sampled_from([{}, {"max_work": 2}]))
def test_every_source_equals_exhaustive_search(pick, more, options):
    check_search(searches(pick, more), **options)


def test_every_named_value_is_tested_typed_and_documented():
    named = [source[0] for source in SOURCES if isinstance(source[0], str)]
    assert set(named) == {"q", *NAMED_VALUES}
    assert {*get_args(sk.typing.BuiltIn), *NAMED_VALUES} == set(criterion_names())
    literal = re.findall(r"'(\w+)'", str(sk.typing.ValueCriterion))
    assert literal == list(NAMED_VALUES)
    page = (Path(__file__).parents[2] / "docs" / "criteria.md").read_text()
    for name, value in NAMED_VALUES.items():
        assert f'| `"{name}"` | {value.doc} |' in page
        assert name in CRITERION_HELP


def test_an_infinite_end_leaves_over_no_number():
    slots = sk.make_slots(node=[0, 1], start=0, end=[9, np.inf], performance=1, price=1)
    with pytest.raises(ValueError, match="slot row 1: end is inf, but leftover needs"):
        sk.find_window(slots, sk.Request(1, 2), "leftover")
    kept = sk.find_window(slots, sk.Request(1, 2, where="end < 10"), "leftover")
    assert (kept.nodes, kept.value) == ((0,), 7)
    with pytest.raises(ValueError, match="span='group' is for"):
        sk.find_window(slots, sk.Request(1, 2), "leftover", span="group")


@pytest.mark.parametrize(
    ("nodes", "budget", "max_work"), [(10, 920, None), (20, 2136, 3e6), (40, 5400, 3e6)]
)
@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_values_that_follow_costs(nodes, budget, max_work, shape):
    # No multiplier separates these slots; the search may reach its work limit.
    slots = sk.generate_environment("square", seed=1).slots
    request = sk.Request(nodes, 800, budget=budget)
    work = max_work and int(max_work)
    window = sk.find_window(slots, request, "price", shape=shape, max_work=work)
    assert oracle.met(window.cost, request.budget)
    assert window.value == pytest.approx(
        slots["price"][list(window.slots["row"])].sum()
    )
    assert window.value <= window.bound


def three(prices, **fields):
    count = len(prices)
    return sk.make_slots(
        node=np.arange(count),
        start=0.0,
        end=10.0,
        performance=1.0,
        price=prices,
        **fields,
    )


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("budget", [0.0, 5e-324, 1e-310])
def test_budgets_beside_nothing(shape, budget):
    # With short parts all prices up to 1e-312 cost 0: a linear scan would visit 1e12
    # doubles.
    slots = three([0.0, 1e-313, 1.0], q=[1.0, 2.0, 9.0])
    window = sk.find_window(
        slots, sk.Request(1, 1e-12, budget=budget), "q", shape=shape
    )
    assert window.value == 2.0
    assert window.proven


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("criterion", ["q", *NAMED_VALUES])
@pytest.mark.parametrize("max_price", [np.inf, 5.0])
def test_one_huge_price_does_not_affect_the_search(shape, criterion, max_price):
    for costly in (1e308, 1e300, 2.0**53):
        slots = three([1.0, 2.0, costly], q=[1.0, 2.0, 3.0])
        request = sk.Request(2, 4.0, max_price=max_price)
        window = sk.find_window(slots, request, criterion, shape=shape)
        assert window is not None
        assert window.proven
        if criterion == "q":
            allowed = max_price == np.inf and 4 * costly < np.inf
            assert window.value == (5.0 if allowed else 3.0)


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("criterion", ["q", *NAMED_VALUES])
@pytest.mark.parametrize("budget", [np.inf, 1e308, 8.1e300])
@pytest.mark.parametrize("price", [5e299, 1e300])
def test_windows_beyond_any_money_but_finite_are_found(shape, criterion, budget, price):
    # The other parts of a window alone cost more than 1e300, which is allowed.
    slots = three([price, price, price], q=[1.0, 2.0, 3.0])
    request = sk.Request(3, 2.0, budget=budget)
    window = sk.find_window(slots, request, criterion, shape=shape)
    assert window is not None
    whole = 2 * oracle.exact([price] * 3)
    parts = oracle.exact([2 * price] * 3)
    assert window.cost == (whole if shape == "square" else parts)
    assert window.proven


def test_distances_far_from_the_origin_are_not_bounded_by_rounded_times():
    # At times of 1.7e9 seconds an end minus a length is rounded by 1e-7. Windows of
    # two lengths, 0.1 and 0.3, differ by less in what they are worth.
    for seed in range(300):
        rng = np.random.default_rng(seed)
        m = 24
        start = 1.7e9 + np.round(rng.integers(0, 40, m) * 0.1, 3)
        slots = sk.make_slots(
            node=np.arange(m),
            start=start,
            end=start + rng.integers(30, 60, m) * 0.1,
            performance=rng.choice([1.0, 3.0], m),
            price=rng.integers(1, 3, m),
        )
        request = sk.Request(int(rng.integers(1, 4)), 0.3, budget=5.0)
        for criterion, pick in (("dependable", max), ("coordinated", min)):
            window = sk.find_window(slots, request, criterion)
            values = sk.step_values(slots, request, criterion)[1]
            best = pick(values[np.isfinite(values)])
            assert window.value == pytest.approx(best, rel=2e-12)


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("scale", [1e-3, 1e-100, 1e-300])
def test_no_search_depends_on_those_before_it(shape, scale):
    # The multiplier of a search with tiny prices times the largest budget is inf.
    tiny = sk.make_slots(
        node=np.arange(4),
        start=0.0,
        end=[7.0, 8.0, 9.0, 30.0],
        performance=1.0,
        price=np.array([1.0, 2.0, 3.0, 5.0]) * scale,
    )
    before = sk.Request(2, 1.0, budget=5 * scale, earliest=5.0)
    assert sk.find_window(tiny, before, "dependable", shape=shape) is not None
    costly = 4.4942328371557893e307
    slots = sk.make_slots(
        node=[0, 1], start=[0.0, 1.0], end=[3.0, 4.0], performance=4.0, price=costly
    )
    request = sk.Request(1, 4.0, budget=costly)
    window = sk.find_window(slots, request, "dependable", shape=shape)
    assert window.value == 1.0
    assert window.proven


@pytest.mark.parametrize("criterion", ["q", "processor_time", "dependable", "cost"])
@pytest.mark.parametrize("price", [0.0, 1.0])
def test_a_group_of_infinite_length_has_no_window(criterion, price):
    slots = sk.make_slots(
        node=[0, 1], start=0, end=1e300, performance=[1e9, 1e-3], price=price, q=[1, 2]
    )
    for nodes, found in ((1, (0,)), (2, None)):
        window = sk.find_window(slots, sk.Request(nodes, 1e306), criterion)
        assert (window and window.nodes) == found
