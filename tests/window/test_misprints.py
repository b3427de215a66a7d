"""Tests of the papers' misprints: each shows an error of the printed form."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from strategies import SLOT

import slotkern as sk
from slotkern import published

PAGE = (Path(__file__).parents[2] / "docs" / "published.md").read_text()


def slot(node, start, end, performance, price):
    return (node, float(start), float(end), float(performance), float(price))


def find(rows, criterion, shape="square", **job):
    slots = np.array(rows, dtype=SLOT)
    return published.find(slots, criterion=criterion, shape=shape, **job)


# --- the page and the docstrings agree ------------------------------------------------


def corrected():
    """Return the function of each row in the page's table of misprints."""
    table = PAGE[PAGE.index("| printed | done |") :]
    rows = re.findall(r"^\| (?:A|B|the).*\| `([\w.]+)` \|$", table, re.M)
    assert len(rows) == 14
    return rows


def documentation(place):
    module, _, name = place.rpartition(".")
    home = import_module(".".join(filter(None, ["slotkern.published", module])))
    return getattr(home, name).__doc__.casefold()


def test_docstrings_describe_all_corrections():
    places = corrected()
    for place in sorted(set(places)):
        assert "misprint" in documentation(place), place
    for place in re.findall(r"\(`([\w.]+)`\)", PAGE):
        text = documentation(place)
        assert re.search("paper.* (not define|defines neither|without defining)", text)


def test_page_lists_all_algorithms():
    for algorithm in (*published.ALGORITHMS.values(), *published.SCHEMES.values()):
        assert re.search(rf"^\|.*\b{algorithm.name}\b", PAGE, re.M), algorithm.name


# --- the corrections ------------------------------------------------------------------


def test_aep_minimizes():
    """The printed crW > maxCriterion would return the most expensive window."""
    rows = [slot(0, 0, 9, 1, 2), slot(1, 9, 18, 1, 1), slot(2, 18, 27, 1, 3)]
    found = find(rows, "cost", "ragged", nodes=1, volume=4)
    assert found.rows.tolist() == [1]


def test_negative_values_are_found():
    """With the printed f_max = 0, negative values such as COORD's are never found."""
    rows = [slot(0, 1, 9, 1, 1)]
    for criterion in ("first", "finish", "runtime", "cost", "coordinated"):
        assert find(rows, criterion, nodes=1, volume=4, budget=9.0) is not None
    low = find(rows, np.array([-7.0]), nodes=1, volume=4, budget=9.0)
    assert low.value == -7


def test_all_expired_slots_are_removed():
    """Removing in a loop over indices, as printed, skips the second expired slot."""
    rows = [slot(0, 0, 5, 1, 1), slot(1, 0, 5, 1, 1), slot(2, 3, 9, 1, 1)]
    assert find(rows, "cost", "ragged", nodes=2, volume=4, min_performance=1).start == 0
    late = find(rows, "cost", "ragged", nodes=2, volume=4, earliest=2)
    assert late is None


def test_exchange_considers_slot_n_plus_one():
    """The printed getSubList(n + 1, m) would skip the only faster slot."""
    rows = [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 2, 4)]
    found = find(rows, "runtime", "ragged", nodes=1, volume=4, budget=8.0)
    assert found.rows.tolist() == [1]


def test_exchange_skips_steps_beyond_budget():
    """The printed exchange would return a window that exceeds the budget."""
    rows = [slot(0, 0, 9, 1, 3), slot(1, 0, 9, 2, 8), slot(2, 4, 13, 1, 1)]
    for criterion in ("runtime", "finish", "cost"):
        found = find(rows, criterion, "ragged", nodes=1, volume=4, budget=4.0)
        assert found.rows.tolist() == [2]
        assert find(rows, criterion, "ragged", nodes=1, volume=4, budget=3.0) is None


def test_exchange_refunds_long_slot_and_uses_whole_budget():
    rows = [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 2, 4)]
    for budget, row in ((8.0, 1), (8.0 * (1 - 2.0**-49), 0)):
        found = find(rows, "runtime", "ragged", nodes=1, volume=4, budget=budget)
        assert found.rows.tolist() == [row]


@pytest.mark.parametrize("criterion", ["first", "finish", "runtime", "cost"])
def test_square_window_may_cost_the_whole_budget(criterion):
    rows = [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 2, 3)]
    assert find(rows, criterion, nodes=2, volume=4, budget=16.0) is not None
    below = 16.0 * (1 - 2.0**-49)
    assert find(rows, criterion, nodes=2, volume=4, budget=below) is None


def test_min_performance_is_inclusive():
    rows = [slot(0, 0, 9, 1, 1)]
    for shape in ("ragged", "square"):
        found = find(rows, "cost", shape, nodes=1, volume=4, min_performance=1)
        assert found is not None


def test_group_without_own_live_slots_is_skipped():
    """The group's other slots belong to a faster group, with a shorter window.

    The slot of performance 1 has expired at 10, when the two of performance 2 begin. As
    printed they would be used for 8 time units instead of 4, which COORD prefers.
    """
    rows = [slot(0, 0, 9, 1, 1), slot(1, 10, 18, 2, 1), slot(2, 10, 18, 2, 1)]
    for lite in (False, True):
        found = find(
            rows, "coordinated", nodes=2, volume=8, budget=99.0, earliest=2, lite=lite
        )
        assert (found.start, found.length, found.value) == (10, 4, -8)


def test_first_fit_minimizes_start_over_groups():
    """The fastest group, the first one with a window, would start at 3."""
    rows = [slot(0, 0, 9, 1, 1), slot(1, 3, 9, 2, 1)]
    found = find(rows, "first", nodes=1, volume=4)
    assert (found.start, found.rows.tolist()) == (0, [0])


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_table_includes_zero_remaining_budget(shape):
    """A slot for the whole budget and a free slot need f(0, 1) of eq. (2)."""
    rows = [slot(0, 0, 9, 1, 2), slot(1, 0, 9, 1, 0), slot(2, 0, 9, 1, 1)]
    values = np.array([9.0, 5.0, 1.0])
    found = find(rows, values, shape, nodes=2, volume=4, budget=8.0)
    assert (sorted(found.rows.tolist()), found.value) == ([0, 1], 14)
    # Two slots cannot be chosen from one: f of no slots is not 0.
    assert find(rows[:1], values[:1], shape, nodes=1, volume=4, budget=7.0) is None


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_infinite_costs_are_not_chosen(shape):
    rows = [slot(0, 0, 9, 1, 1e308), slot(1, 0, 9, 1, 1), slot(2, 0, 9, 1, 1e30)]
    found = find(rows, np.arange(3.0), shape, nodes=1, volume=8, budget=20.0)
    assert found.rows.tolist() == [1]


# --- ALP, and the budget S = F T n --------------------------------------------------


def test_alp_ignores_the_budget():
    algorithm = published.ALGORITHMS["ragged", "local_price"]
    assert algorithm.name == "ALP"
    rows = [slot(0, 0, 9, 1, 3), slot(1, 1, 9, 1, 9), slot(2, 2, 9, 1, 4)]
    found = find(rows, "local_price", "ragged", nodes=2, volume=4, max_price=4)
    assert (found.start, found.rows.tolist()) == (2.0, [0, 2])
    slots = np.array(rows, dtype=SLOT)
    request = sk.Request(2, 4, max_price=4, budget=1)  # the budget does not count
    window = sk.find_window(
        slots, request, "local_price", shape="ragged", method="published"
    )
    assert (window.start, window.value, window.nodes) == (2, 2, (0, 2))
    exact = sk.find_window(
        slots, request.replace(budget=np.inf), "first", shape="ragged"
    )
    assert (exact.start, exact.nodes) == (2, (0, 2))


def test_amp_starts_no_later_than_alp():
    """The budget S = F T n covers any n slots whose prices are at most F."""
    earlier = 0
    for cycle in range(30):
        slots = sk.generate_environment("aep", nodes=30, cycle=cycle).slots
        alp = sk.Request(5, 300, min_performance=2, max_price=5)
        budget = sk.job_budget(5, 300, price=5, performance=2)
        assert budget == 5 * 150 * 5
        by_price = sk.find_window(
            slots, alp, "local_price", shape="ragged", method="published"
        )
        amp = sk.Request(5, 300, min_performance=2, budget=budget)
        by_budget = sk.find_window(slots, amp, "first", shape="ragged")
        if by_price is not None:
            assert by_price.cost <= budget
            assert by_budget.start <= by_price.start
            earlier += by_budget.start < by_price.start
    assert earlier


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"nodes": 0}, "nodes"),
        ({"volume": -1}, "volume"),
        ({"volume": float("nan")}, "volume"),
        ({"performance": 0}, "performance"),
        ({"price": -1}, "price"),
        ({"price": float("inf")}, "price"),
        ({"price": 1e308, "volume": 1e9}, "overflows"),
    ],
)
def test_job_budget_rejects_invalid_numbers(changes, named):
    given = {"nodes": 5, "volume": 300, "price": 2, "performance": 2} | changes
    with pytest.raises(ValueError, match=named):
        sk.job_budget(given.pop("nodes"), given.pop("volume"), **given)
