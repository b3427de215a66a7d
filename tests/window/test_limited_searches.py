"""Tests of find_window with limits on sums, against exhaustive search."""

from __future__ import annotations

import limited
import pytest
from hypothesis import given, settings
from limit_cases import limited_cases, with_columns
from limited import Limit
from strategies import SHAPES, Case, cases, rival_groups
from test_find_window import CRITERIA, as_best, as_request, check_exact

import slotkern as sk


def check(case: Case, limits: list[Limit]) -> None:
    """Compare all searches within the limits with exhaustive search."""
    slots, request = case
    table, words = with_columns(slots, limits)
    job = as_request(request).replace(limits=words)
    for shape in SHAPES:
        expected = limited.best_within(slots, shape, limits, **request)
        for criterion in CRITERIA:
            window = sk.find_window(table, job, criterion, shape=shape)
            assert as_best(window) == expected[criterion], (shape, criterion)
            if window is not None:
                check_exact(window, slots, request)


@settings(max_examples=5 * settings.default.max_examples)
@given(limited_cases(cases()))
def test_limited_searches_equal_exhaustive_search(case):
    check(*case)


@settings(max_examples=2 * settings.default.max_examples)
@given(limited_cases(rival_groups()))
def test_limited_searches_of_competing_groups(case):
    check(*case)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("nodes", "chosen"), [(1, (1,)), (2, (1, 2))])
def test_limited_searches_with_huge_costs(shape, nodes, chosen):
    slots = sk.make_slots(
        node=range(nodes + 1),
        start=0,
        end=9,
        performance=1,
        price=1e308 / nodes,
        gb=[5 * (1 - 2.0**-49), 9, 9][: nodes + 1],
        none=0,
    )
    limits = [f"sum(gb) >= {18 if nodes == 2 else 5}", "sum(none) <= 0"]
    job = sk.Request(nodes, 0.2, limits=limits)
    for criterion in CRITERIA:
        window = sk.find_window(slots, job, criterion, shape=shape)
        assert window is not None, criterion
        assert window.nodes == chosen
