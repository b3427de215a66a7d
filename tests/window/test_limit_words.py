"""Limits on sums in words and as objects: what is understood, and what is refused."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import slotkern as sk

INF = math.inf


def some_slots(**columns):
    columns.setdefault("storage", [10.0, 20.0, 40.0])
    return sk.make_slots(
        node=[0, 1, 2], start=0, end=9, performance=1, price=[1, 2, 3], **columns
    )


def asked(limits, **fields):
    return sk.Request(2, 4, limits=limits, **fields)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("sum(a) >= 5", [("a", ">=", 5.0)]),
        ("5 <= sum(a)", [("a", ">=", 5.0)]),
        ("5 >= sum(a)", [("a", "<=", 5.0)]),
        ("2 <= sum(a) <= 5", [("a", ">=", 2.0), ("a", "<=", 5.0)]),
        ("5 >= sum(a) >= 2", [("a", "<=", 5.0), ("a", ">=", 2.0)]),
        ("sum(a*b) <= -1.5", [("a * b", "<=", -1.5)]),
        ("sum(2 * a * length) <= 1", [("2 * a * length", "<=", 1.0)]),
        ("sum(a) >= 5 and sum(b) <= 1", [("a", ">=", 5.0), ("b", "<=", 1.0)]),
        ("sum(length) <= 8", [("length", "<=", 8.0)]),
    ],
)
def test_words(text, limits):
    found = asked(text).limits
    assert [(limit.of, limit.side, limit.amount) for limit in found] == limits
    assert asked([limit.text for limit in found]).limits == found


@pytest.mark.parametrize(
    ("limits", "kind", "words"),
    [
        ("sum(storage) > 5", ValueError, "with <= or >="),
        ("sum(storage) == 5", ValueError, "with <= or >="),
        ("storage >= 5", ValueError, r"one sum\(\.\.\.\) with a number"),
        ("sum(storage) >= sum(node)", ValueError, r"one sum\(\.\.\.\) with a number"),
        ("sum(storage)", ValueError, "is no comparison"),
        ("sum(storage) >= price", ValueError, "price is no number"),
        ("sum(storage) >= 1e999", ValueError, "the amount of a limit"),
        ("sum(storage + 1) >= 5", ValueError, "neither a column nor a number"),
        ("sum(length * length) >= 5", ValueError, "length occurs twice"),
        ("sum(2) >= 5", ValueError, "names no column"),
        ("sum(storage, 1) >= 5", ValueError, "is no sum of one term"),
        ("max(storage) >= 5", ValueError, "is no sum of one term"),
        ("sum(storage) >= ", ValueError, "invalid syntax"),
        ("sum(storage) >= 5 or sum(price) <= 2", ValueError, "is no comparison"),
        ("__import__('os').system('true')", ValueError, "is no comparison"),
        ([5], TypeError, r"limits\[0\] must be text or a Limit, got 5"),
        (5, TypeError, "limits must be a sequence"),
        (["sum(storage) >= 5"] * 7, ValueError, "at most 6 limits, got 7"),
        ("6 <= sum(storage) <= 5", ValueError, "limits contradict each other"),
        (
            ["sum(power * length) >= 6", "sum(length * power) <= 5"],
            ValueError,
            "limits contradict each other",
        ),
        (
            ["sum(power * storage) >= 6", "sum(1 * storage * power) <= 5"],
            ValueError,
            "limits contradict each other",
        ),
        ("sum(0 * storage) >= 1", ValueError, r"0 \* storage is always 0"),
        ("sum(0 * storage) <= -1", ValueError, r"0 \* storage is always 0"),
        ("sum(length) <= -1", ValueError, "length is never negative"),
        ("sum(-2 * length) >= 1", ValueError, "length is never positive"),
        ("sum(power * power) <= -1", ValueError, "power is never negative"),
        ("sum(storage) >= 1e300", ValueError, "parts use at most 1e.290 each"),
        ("sum(storage) <= -1e300", ValueError, "parts use at most 1e.290 each"),
    ],
)
def test_words_that_say_nothing(limits, kind, words):
    with pytest.raises(kind, match=words):
        asked(limits)


@pytest.mark.parametrize(
    "limits",
    [
        "sum(storage) <= -1",  # may hold what is negative
        "sum(0 * storage) <= 0",
        "sum(-1 * length) <= -1",
        "sum(power * power * length) <= 0",
        # Rounded products of three may differ: 0.1 * 3 * 7 and 7 * 3 * 0.1.
        ["sum(a * b * c) >= 6", "sum(c * b * a) <= 5"],
        ["sum(a * length) >= 6", "sum(a) <= 5"],
        ["sum(2 * a) >= 6", "sum(a) <= 5"],
    ],
)
def test_amounts_that_some_columns_come_to(limits):
    assert len(asked(limits).limits) in (1, 2)


@pytest.mark.parametrize(
    ("of", "side", "amount", "kind", "words"),
    [
        ("storage", "<", 5, ValueError, "the side of a limit must be one of"),
        ("storage", "<=", math.nan, ValueError, "the amount of a limit"),
        ("storage", "<=", INF, ValueError, "the amount of a limit"),
        ("storage", "<=", "5", TypeError, "the amount of a limit"),
        ([1.0, math.nan], "<=", 5, ValueError, "row 1 of a limit must be finite"),
        ([1.0, 1e300], "<=", 5, ValueError, "row 1 of a limit must be finite"),
        (["a"], "<=", 5, TypeError, "a limit is on a term over columns"),
        ([[1.0]], "<=", 5, TypeError, "a limit is on a term over columns"),
    ],
)
def test_objects_that_say_nothing(of, side, amount, kind, words):
    with pytest.raises(kind, match=words):
        sk.Limit(of, side, amount)


@pytest.mark.parametrize(
    ("columns", "limit", "words"),
    [
        ({}, "sum(disk) >= 5", r"limit on sum\(disk\): no column 'disk'; there are"),
        ({"storage": ["a", "b", "c"]}, "sum(storage) >= 5", "holds no numbers"),
        ({"storage": [1, math.nan, 2]}, "sum(storage) >= 5", "is nan in row 1"),
        ({"storage": [1, 2, INF]}, "sum(storage) >= 5", "is inf in row 2"),
        ({"storage": [1, 2, 1e291]}, "sum(storage) >= 5", "beyond 1e.290"),
        ({}, sk.Limit(np.ones(2), "<=", 5), "a limit has 2 values for 3 slots"),
    ],
)
def test_columns_that_cannot_be_summed(columns, limit, words):
    with pytest.raises(ValueError, match=words):
        sk.find_window(some_slots(**columns), asked([limit]), "cost")


def test_a_request_with_limits_is_a_value():
    words = asked(["sum(storage) >= 5", "sum(price * length) <= 12"])
    objects = asked([sk.Limit([1.0, 2.0, 3.0], "<=", 5)])
    for request in (words, objects):
        again = pickle.loads(pickle.dumps(request))
        assert again == request
        assert hash(again) == hash(request)
        assert request.replace(budget=5.0).limits == request.limits
        assert request.replace(limits=None) == sk.Request(2, 4)
    assert words != objects
    assert objects != asked([sk.Limit([1.0, 2.0, 4.0], "<=", 5)])
    assert eval(repr(words), {"Request": sk.Request, "Limit": sk.Limit}) == words


def test_arrays_and_columns_say_the_same():
    slots = some_slots()
    for of in ("storage", slots["storage"]):
        window = sk.find_window(slots, asked([sk.Limit(of, ">=", 50)]), "cost")
        assert window.nodes == (0, 2)


def test_lengths_are_those_of_the_shape():
    slots = sk.make_slots(
        node=[0, 1], start=0, end=9, performance=[1, 2], price=1, power=1.0
    )
    job = asked("sum(power * length) <= 6")
    assert sk.find_window(slots, job, "cost", shape="ragged").nodes == (0, 1)
    assert sk.find_window(slots, job, "cost") is None
    assert sk.find_window(slots, asked("sum(length) <= 8"), "cost").nodes == (0, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "lite"}, "method 'lite' knows no limits"),
        ({"method": "published"}, "method 'published' knows no limits"),
        ({"criterion": "dependable", "span": "group"}, "span 'group' knows no limits"),
    ],
)
def test_methods_that_know_no_limits(options, words):
    with pytest.raises(ValueError, match=words):
        sk.find_window(some_slots(), asked("sum(storage) >= 5"), **options)


def test_steps_know_no_limits():
    with pytest.raises(ValueError, match="step_values knows no limits"):
        sk.step_values(some_slots(), asked("sum(storage) >= 5"), "storage")
