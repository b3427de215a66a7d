"""Searches by value under limits on other sums, against exhaustive search."""

from __future__ import annotations

import limited
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limit_cases import limited_cases, with_columns
from strategies import SHAPES, Case, cases, rival_groups
from windows import check_window, farthest, judge, nearest, request_of, total

import slotkern as sk


def windows_within(case, shape, limits):
    terms = oracle.terms_of(case.request)
    return [
        window
        for window in oracle.all_windows(case.slots, shape, **case.request)
        if limited.meets_limits(window, case.slots, shape, limits, *terms)
    ]


def judged(case, table, asked, limits, shape, criterion, function, sign):
    """Compare one search with the best total of all windows under the limits."""
    windows = windows_within(case, shape, limits)
    totals = [
        sign * total(function, window, case.slots, shape, case.request)
        for window in windows
    ]
    best = sign * max(totals) if totals else None
    window = sk.find_window(table, asked, criterion, shape=shape)
    value = None
    if window is not None:
        again = check_window(window, case, shape)
        terms = oracle.terms_of(case.request)
        assert limited.meets_limits(again, case.slots, shape, limits, *terms)
        value = total(function, again, case.slots, shape, case.request)
    judge(window, best, sign, value)


@settings(max_examples=settings.default.max_examples)
@given(st.one_of(limited_cases(cases()), limited_cases(rival_groups())), st.data())
def test_columns_and_lengths(limits_of, data):
    case, limits = limits_of
    table, words = with_columns(case.slots, limits)
    asked = request_of(case).replace(limits=words)
    few = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.1, 0.3, 5.0])
    size = len(case.slots)
    column = np.array(data.draw(st.lists(few, min_size=size, max_size=size)), float)
    # The slots that are live later may have integer values only.
    later = data.draw(st.integers(0, size))
    column[later:] = np.floor(column[later:])

    def of_column(_slots, row, _start, _length):
        return column[row]

    def of_length(_slots, _row, _start, length):
        return length

    for shape in SHAPES:
        for criterion, function, sign in (
            (column, of_column, 1),
            (sk.minimize(column), of_column, -1),
            ("processor_time", of_length, -1),
        ):
            judged(case, table, asked, limits, shape, criterion, function, sign)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("later", [0.0, 1.0])
def test_integer_values_may_win_by_less_than_1(shape, later):
    slots = sk.make_slots(
        node=[0, 1, 2, 3, 4],
        start=[0, 0, 6, 6, 6],
        end=[4, 4, 9, 9, 9],
        performance=1,
        price=[2, 1, 1, 1, 2],
        worth=[later, later + 0.1, later, later, later],
    )
    # Only parts of prices 2 and 1 together satisfy both limits.
    asked = sk.Request(2, 1, limits=["sum(price) >= 3", "sum(price) <= 3"])
    window = sk.find_window(slots, asked, sk.minimize("worth"), shape=shape)
    assert window.proven
    assert (window.start, window.value) == (6, 2 * later)


@settings(max_examples=settings.default.max_examples // 2)
@given(limited_cases(cases()))
def test_placement(limits_of):
    case, limits = limits_of
    slots = case.slots.copy()
    endless = np.isinf(slots["end"])
    slots["end"][endless] = slots["start"][endless] + 4.0
    request = {k: v for k, v in case.request.items() if k in ("nodes", "volume")}
    request |= {k: v for k, v in case.request.items() if k in ("budget", "deadline")}
    case = Case(slots, request)
    table, words = with_columns(slots, limits)
    asked = request_of(case).replace(limits=words)
    nodes = request["nodes"]
    for shape in SHAPES:
        for criterion, distance, sign in (
            ("dependable", nearest, 1),
            ("coordinated", farthest, -1),
        ):
            values = [
                sign * total(distance, window, slots, shape, request) / nodes
                for window in windows_within(case, shape, limits)
            ]
            window = sk.find_window(table, asked, criterion, shape=shape)
            value = None
            if window is not None:
                again = check_window(window, case, shape)
                value = total(distance, again, slots, shape, request) / nodes
            judge(window, sign * max(values) if values else None, sign, value)
            anywhere = sk.find_window(
                table, asked, criterion, shape=shape, placement="any"
            )
            assert window is None or sign * anywhere.value >= sign * value - 1e-9
            if anywhere is None:
                continue
            again = check_window(anywhere, case, shape)
            terms = oracle.terms_of(request)
            assert limited.meets_limits(again, slots, shape, limits, *terms)


def energy(slot, length):
    return slot.power * length


def test_functions_equal_expressions():
    pytest.importorskip("numba")
    slots = sk.make_slots(
        node=range(6),
        start=[0, 0, 1, 1, 2, 3],
        end=20,
        performance=[1, 2, 2, 3, 4, 4],
        price=[1, 2, 3, 3, 6, 5],
        power=[1.0, 3.0, 3.0, 4.0, 9.0, 8.0],
    )
    words = sk.Request(3, 12, limits="sum(power * length) <= 60")
    function = words.replace(limits=[sk.Limit(sk.criterion(energy), "<=", 60)])
    for shape in SHAPES:
        for criterion in (*sk.CRITERIA, "power", "dependable"):
            found = sk.find_window(slots, words, criterion, shape=shape)
            assert found is not None
            assert sk.find_window(slots, function, criterion, shape=shape) == found


def broken(slot, length):
    if slot.power > 3:
        raise ValueError("no")
    return length


def test_a_function_that_fails_names_the_row():
    pytest.importorskip("numba")
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=9, performance=1, price=[3, 1, 1], power=[1, 5, 2]
    )
    asked = sk.Request(2, 4, limits=[sk.Limit(sk.criterion(broken), "<=", 99)])
    for criterion in ("cost", "start", "power"):
        with pytest.raises(ValueError, match=r"of a limit raised, .* of row 1"):
            sk.find_window(slots, asked, criterion)
