"""What the papers print wrongly: each mend shows where its printed form would fail."""

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


# --- the page and the docstrings tell of the same -----------------------------------


def mended():
    """The function of each row of the page's table of misprints."""
    table = PAGE[PAGE.index("| printed | done |") :]
    rows = re.findall(r"^\| (?:A|B|the).*\| `([\w.]+)` \|$", table, re.M)
    assert len(rows) == 14
    return rows


def documentation(place):
    module, _, name = place.rpartition(".")
    home = import_module(".".join(filter(None, ["slotkern.published", module])))
    return getattr(home, name).__doc__.casefold()


def test_each_mend_stands_in_the_docstring_of_its_function():
    places = mended()
    for place in sorted(set(places)):
        assert "misprint" in documentation(place), place
    for place in re.findall(r"\(`([\w.]+)`\)", PAGE):
        assert re.search("papers? .*not say", documentation(place), re.S), place


def test_the_page_names_every_algorithm():
    for algorithm in (*published.ALGORITHMS.values(), *published.SCHEMES.values()):
        assert re.search(rf"^\|.*\b{algorithm.name}\b", PAGE, re.M), algorithm.name


# --- the mends ----------------------------------------------------------------------


def test_less_is_better_in_aep():
    """crW > maxCriterion would keep the dearest window."""
    rows = [slot(0, 0, 9, 1, 2), slot(1, 9, 18, 1, 1), slot(2, 18, 27, 1, 3)]
    found = find(rows, "cost", "ragged", nodes=1, volume=4)
    assert found.rows.tolist() == [1]


def test_values_below_zero_are_found():
    """With f_max = 0 no -(start + T), and no value of COORD, would ever be kept."""
    rows = [slot(0, 1, 9, 1, 1)]
    for criterion in ("first", "finish", "runtime", "cost", "coordinated"):
        assert find(rows, criterion, nodes=1, volume=4, budget=9.0) is not None
    low = find(rows, np.array([-7.0]), nodes=1, volume=4, budget=9.0)
    assert low.value == -7


def test_every_expired_slot_leaves():
    """Removing within a loop over indices would keep the second of two expired ones."""
    rows = [slot(0, 0, 5, 1, 1), slot(1, 0, 5, 1, 1), slot(2, 3, 9, 1, 1)]
    assert find(rows, "cost", "ragged", nodes=2, volume=4, min_performance=1).start == 0
    late = find(rows, "cost", "ragged", nodes=2, volume=4, earliest=2)
    assert late is None


def test_the_first_slot_beyond_the_n_cheapest_is_exchanged_too():
    """getSubList(n + 1, m) would skip the only faster slot."""
    rows = [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 2, 4)]
    found = find(rows, "runtime", "ragged", nodes=1, volume=4, budget=8.0)
    assert found.rows.tolist() == [1]


def test_a_step_beyond_the_budget_is_skipped():
    """The exchange would call a window beyond the budget the shortest."""
    rows = [slot(0, 0, 9, 1, 3), slot(1, 0, 9, 2, 8), slot(2, 4, 13, 1, 1)]
    for criterion in ("runtime", "finish", "cost"):
        found = find(rows, criterion, "ragged", nodes=1, volume=4, budget=4.0)
        assert found.rows.tolist() == [2]
        assert find(rows, criterion, "ragged", nodes=1, volume=4, budget=3.0) is None


def test_the_long_slot_is_refunded_and_the_budget_may_be_met_exactly():
    rows = [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 2, 4)]
    for budget, row in ((8.0, 1), (8.0 * (1 - 2.0**-49), 0)):
        found = find(rows, "runtime", "ragged", nodes=1, volume=4, budget=budget)
        assert found.rows.tolist() == [row]


@pytest.mark.parametrize("criterion", ["first", "finish", "runtime", "cost"])
def test_a_square_window_may_cost_all_of_the_budget(criterion):
    rows = [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 2, 3)]
    assert find(rows, criterion, nodes=2, volume=4, budget=16.0) is not None
    below = 16.0 * (1 - 2.0**-49)
    assert find(rows, criterion, nodes=2, volume=4, budget=below) is None


def test_the_least_performance_itself_will_do():
    rows = [slot(0, 0, 9, 1, 1)]
    for shape in ("ragged", "square"):
        found = find(rows, "cost", shape, nodes=1, volume=4, min_performance=1)
        assert found is not None


def test_a_group_whose_own_slots_have_expired_is_passed_over():
    """Its other slots are the faster group's: a longer window of them is another's.

    The slot of performance 1 has expired at 10, where the two of performance 2 are. As
    printed they would be taken for 8 time units instead of 4, as COORD likes.
    """
    rows = [slot(0, 0, 9, 1, 1), slot(1, 10, 18, 2, 1), slot(2, 10, 18, 2, 1)]
    for lite in (False, True):
        found = find(
            rows, "coordinated", nodes=2, volume=8, budget=99.0, earliest=2, lite=lite
        )
        assert (found.start, found.length, found.value) == (10, 4, -8)


def test_first_fit_is_the_least_start_of_all_groups():
    """The first group with a window is the fastest, and it would start at 3."""
    rows = [slot(0, 0, 9, 1, 1), slot(1, 3, 9, 2, 1)]
    found = find(rows, "first", nodes=1, volume=4)
    assert (found.start, found.rows.tolist()) == (0, [0])


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_the_table_begins_at_nothing_left(shape):
    """A slot for all the money and a free one: f(0, 1) of eq. (2) is needed."""
    rows = [slot(0, 0, 9, 1, 2), slot(1, 0, 9, 1, 0), slot(2, 0, 9, 1, 1)]
    values = np.array([9.0, 5.0, 1.0])
    found = find(rows, values, shape, nodes=2, volume=4, budget=8.0)
    assert (sorted(found.rows.tolist()), found.value) == ([0, 1], 14)
    # No two slots out of one: f of no slots is not 0.
    assert find(rows[:1], values[:1], shape, nodes=1, volume=4, budget=7.0) is None


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_a_cost_beyond_all_numbers_is_not_chosen(shape):
    rows = [slot(0, 0, 9, 1, 1e308), slot(1, 0, 9, 1, 1), slot(2, 0, 9, 1, 1e30)]
    found = find(rows, np.arange(3.0), shape, nodes=1, volume=8, budget=20.0)
    assert found.rows.tolist() == [1]


# --- ALP, and the budget S = F T n --------------------------------------------------


def test_alp_is_an_algorithm_of_its_own():
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


def test_amp_never_starts_later_than_alp_for_the_same_money():
    """S = F T n pays for whatever n slots at F or less cost."""
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
def test_a_budget_of_impossible_numbers(changes, named):
    given = {"nodes": 5, "volume": 300, "price": 2, "performance": 2} | changes
    with pytest.raises(ValueError, match=named):
        sk.job_budget(given.pop("nodes"), given.pop("volume"), **given)
