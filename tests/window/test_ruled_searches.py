"""Tests of searches under group rules, against exhaustive search."""

from __future__ import annotations

import itertools

import group_rules
import numpy as np
import pytest
from group_rules import Rule, ruled_cases, with_levels
from hypothesis import given, settings
from strategies import SHAPES, Case, cases, pickers, rival_groups
from test_find_window import CRITERIA, as_best, as_request, check_exact

import slotkern as sk


def check(case: Case, rules: list[Rule]) -> None:
    """Compare all searches under the rules with exhaustive search."""
    slots, request = case
    job = as_request(request).replace(limits=[rule.text for rule in rules])
    pool = sk.SlotPool(slots)
    for shape in SHAPES:
        expected = group_rules.best_under_rules(slots, shape, rules, **request)
        for criterion in CRITERIA:
            for searched in (slots, pool):
                window = sk.find_window(searched, job, criterion, shape=shape)
                assert as_best(window) == expected[criterion], (shape, criterion)
                if window is not None:
                    check_exact(window, slots, request)


@settings(max_examples=5 * settings.default.max_examples)
@given(ruled_cases(cases()))
def test_searches_under_group_rules_equal_exhaustive_search(case):
    check(*case)


@settings(max_examples=2 * settings.default.max_examples)
@given(ruled_cases(rival_groups(), most=3))
def test_searches_under_group_rules_of_competing_groups(case):
    check(*case)


@given(cases(), pickers)
def test_within_is_the_best_of_the_groups(case, pick):
    slots, request = with_levels(case.slots, pick), as_request(case.request)
    for shape, criterion in itertools.product(SHAPES, CRITERIA):
        found = sk.find_window(
            slots, request.replace(within="rack"), criterion, shape=shape
        )
        windows = [
            sk.find_window(
                slots, request.replace(where=slots["rack"] == rack), criterion,
                shape=shape,
            )
            for rack in np.unique(slots["rack"])
        ]  # fmt: skip
        if request.where is not None or not any(windows):
            continue
        attribute = "start" if criterion == "first" else criterion
        best = min(getattr(window, attribute) for window in windows if window)
        assert found is not None
        assert getattr(found, attribute) == best
        rule = request.replace(limits="distinct(rack) <= 1")
        same = sk.find_window(slots, rule, criterion, shape=shape)
        assert as_best(same) == as_best(found)


@given(cases(), pickers)
def test_rules_that_always_hold_change_nothing(case, pick):
    slots, request = with_levels(case.slots, pick), as_request(case.request)
    nodes = request.nodes
    limits = [f"distinct(rack) <= {nodes}", f"most(site) <= {nodes}"]
    for rules in ({"within": "hall"}, {"limits": limits}):
        for shape, criterion in itertools.product(SHAPES, CRITERIA):
            free = sk.find_window(slots, request, criterion, shape=shape)
            ruled = request.replace(**rules)
            found = sk.find_window(slots, ruled, criterion, shape=shape)
            assert as_best(found) == as_best(free), (rules, shape, criterion)


SLOTS = sk.make_slots(
    node=range(6), start=0, end=9, performance=1, price=[1, 2, 3, 4, 5, 6],
    rack=["a", "b", "a", "c", "b", "c"], line=[1, 1, 2, 2, 1, 2], gb=1.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "nodes"),
    [
        ({"within": "rack"}, (0, 2)),
        ({"limits": "distinct(rack) <= 1"}, (0, 2)),
        ({"limits": "most(rack) <= 1"}, (0, 1)),
        ({"limits": "most(line) <= 1"}, (0, 2)),
        ({"within": "rack", "where": "node >= 1"}, (1, 4)),
        ({"within": "rack", "limits": "distinct(line) >= 2"}, (0, 2)),
    ],
)
def test_rules_choose_the_cheapest_nodes(rules, nodes):
    window = sk.find_window(SLOTS, sk.Request(2, 4, **rules), "cost")
    assert window.nodes == nodes


def test_groups_without_a_proper_slot_are_no_groups():
    job = sk.Request(2, 4, limits="distinct(rack) >= 2", where="rack == 'a'")
    assert sk.find_window(SLOTS, job) is None
    assert sk.find_window(SLOTS, sk.Request(3, 4, within="rack")) is None
    assert sk.find_window(SLOTS, sk.Request(2, 4, limits="distinct(rack) >= 3")) is None


def test_crossing_levels_are_refused():
    job = sk.Request(2, 4, limits=["most(rack) <= 1", "most(line) <= 1"])
    message = r"rack 'a' lies in line 1 \(row 0\) and in line 2 \(row 2\); .* cross"
    with pytest.raises(ValueError, match=message):
        sk.find_window(SLOTS, job)


@pytest.mark.parametrize(
    "how",
    [{"method": "lite"}, {"method": "published"}, {"method": "published-lite"}],
)
def test_other_methods_refuse_group_rules(how):
    job = sk.Request(2, 4, within="rack")
    with pytest.raises(ValueError, match="within"):
        sk.find_window(SLOTS, job, "finish", **how)


def test_limits_on_sums_and_group_rules_are_refused_together():
    job = sk.Request(2, 4, within="rack", limits="sum(gb) >= 2")
    with pytest.raises(ValueError, match="limits on sums"):
        sk.find_window(SLOTS, job)


def test_invalid_levels_are_refused_by_searches():
    for level, message in (("rakc", "did you mean 'rack'"), ("start", "is a time")):
        with pytest.raises(ValueError, match=message):
            sk.find_window(SLOTS, sk.Request(2, 4, within=level))
        with pytest.raises(ValueError, match=message):
            sk.SlotPool(SLOTS).find(sk.Request(2, 4, within=level))
