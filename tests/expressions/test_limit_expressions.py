"""Tests of limits on sums as expressions and objects, valid and invalid."""

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


def request_with(limits, **fields):
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
def test_limit_expressions_are_parsed(text, limits):
    found = request_with(text).limits
    assert [(limit.of, limit.side, limit.amount) for limit in found] == limits
    assert request_with([limit.text for limit in found]).limits == found


@pytest.mark.parametrize(
    ("limits", "kind", "message"),
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
        ("sum(storage) >= ", ValueError, "character 16: invalid syntax"),
        ("  sum(storage) => 5", ValueError, "character 16: invalid syntax"),
        ("sum(storage) >= --5", ValueError, ": --5 is no number"),
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
def test_invalid_limit_expressions_are_rejected(limits, kind, message):
    with pytest.raises(kind, match=message):
        request_with(limits)


@pytest.mark.parametrize(
    "limits",
    [
        "sum(storage) <= -1",  # possible if the column has negative values
        "sum(0 * storage) <= 0",
        "sum(-1 * length) <= -1",
        "sum(power * power * length) <= 0",
        # 0.1 + 0.2 is 0.30000000000000004, which meets 0.3.
        f"{0.1 + 0.2!r} <= sum(power) <= 0.3",
        f"{-0.3!r} <= sum(power) <= {-0.1 - 0.2!r}",
        # Rounded products of three may differ: 0.1 * 3 * 7 and 7 * 3 * 0.1.
        ["sum(a * b * c) >= 6", "sum(c * b * a) <= 5"],
        ["sum(a * length) >= 6", "sum(a) <= 5"],
        ["sum(2 * a) >= 6", "sum(a) <= 5"],
    ],
)
def test_attainable_amounts_are_accepted(limits):
    assert len(request_with(limits).limits) in (1, 2)


@pytest.mark.parametrize(
    ("of", "side", "amount", "kind", "message"),
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
def test_invalid_limit_objects_are_rejected(of, side, amount, kind, message):
    with pytest.raises(kind, match=message):
        sk.Limit(of, side, amount)


@pytest.mark.parametrize(
    ("columns", "limit", "message"),
    [
        ({}, "sum(disk) >= 5", r"limit on sum\(disk\): no column 'disk'; there are"),
        ({"storage": ["a", "b", "c"]}, "sum(storage) >= 5", "holds no numbers"),
        ({"storage": [1, math.nan, 2]}, "sum(storage) >= 5", "is nan in row 1"),
        ({"storage": [1, 2, INF]}, "sum(storage) >= 5", "is inf in row 2"),
        ({"storage": [1, 2, 1e291]}, "sum(storage) >= 5", "beyond 1e.290"),
        ({}, sk.Limit(np.ones(2), "<=", 5), "a limit has 2 values for 3 slots"),
    ],
)
def test_unsuitable_columns_are_rejected(columns, limit, message):
    with pytest.raises(ValueError, match=message):
        sk.find_window(some_slots(**columns), request_with([limit]), "cost")


def test_requests_with_limits_compare_and_pickle():
    words = request_with(["sum(storage) >= 5", "sum(price * length) <= 12"])
    objects = request_with([sk.Limit([1.0, 2.0, 3.0], "<=", 5)])
    for request in (words, objects):
        again = pickle.loads(pickle.dumps(request))
        assert again == request
        assert hash(again) == hash(request)
        assert request.replace(budget=5.0).limits == request.limits
        assert request.replace(limits=None) == sk.Request(2, 4)
    assert words != objects
    assert objects != request_with([sk.Limit([1.0, 2.0, 4.0], "<=", 5)])
    assert eval(repr(words), {"Request": sk.Request, "Limit": sk.Limit}) == words


def test_array_and_column_limits_are_equal():
    slots = some_slots()
    for of in ("storage", slots["storage"]):
        window = sk.find_window(slots, request_with([sk.Limit(of, ">=", 50)]), "cost")
        assert window.nodes == (0, 2)


def test_length_in_limits_depends_on_shape():
    slots = sk.make_slots(
        node=[0, 1], start=0, end=9, performance=[1, 2], price=1, power=1.0
    )
    job = request_with("sum(power * length) <= 6")
    assert sk.find_window(slots, job, "cost", shape="ragged").nodes == (0, 1)
    assert sk.find_window(slots, job, "cost") is None
    assert sk.find_window(slots, request_with("sum(length) <= 8"), "cost").nodes == (
        0,
        1,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "lite"}, "method 'lite' does not support limits"),
        ({"method": "published"}, "method 'published' does not support limits"),
        (
            {"criterion": "dependable", "span": "group"},
            "span 'group' does not support limits",
        ),
    ],
)
def test_methods_without_limits_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        sk.find_window(some_slots(), request_with("sum(storage) >= 5"), **options)


def test_step_values_rejects_limits():
    with pytest.raises(ValueError, match="step_values does not support limits"):
        sk.step_values(some_slots(), request_with("sum(storage) >= 5"), "storage")
