"""Criteria of the user's own: compiled functions, C functions, arrays."""

from __future__ import annotations

import copy
import ctypes
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import SHAPES, Case, cases
from windows import (
    PAPER,
    best_total,
    check_window,
    environment,
    judge,
    request_of,
    total,
)

import slotkern as sk


@sk.criterion
def the_column(slot, length):
    return slot.q


@sk.criterion
def work_done(slot, length):
    return slot.performance * length


def plain_price(slot, length):
    return slot.price


@sk.criterion(uses_start=True)
def nearest_task(slot, start, length):
    return min(start - slot.start, slot.end - start - length)


@sk.criterion(uses_start=True)
def farthest_task(slot, start, length):
    return max(start - slot.start, slot.end - start - length)


@sk.criterion
def divides(slot, length):
    return length / (slot.performance - slot.performance)


@sk.criterion
def not_a_number(slot, length):
    return np.nan


@sk.criterion
def no_such_field(slot, length):
    return slot.memory


def in_a_branch(slot, length):
    if slot.q > 3:
        return length
    return slot.q


def in_a_loop(slot, length):
    total = 0.0
    for _ in range(3):
        total += slot.q
    return total


def of_a_field_alike(slot, length):
    return slot.lengths


@pytest.mark.parametrize(
    ("function", "fixed"),
    [(in_a_branch, False), (in_a_loop, True), (of_a_field_alike, True)],
)
def test_use_of_the_length_is_detected(function, fixed):
    assert sk.criterion(function).fixed is fixed
    assert not sk.criterion(uses_start=True)(lambda slot, start, length: 1.0).fixed


def test_own_criteria_equal_the_built_in_ones():
    slots = environment(2)
    assert the_column.fixed
    assert not work_done.fixed
    assert not nearest_task.fixed
    for shape in SHAPES:
        for own, same, scale in (
            (the_column, "q", 1),
            (nearest_task, "dependable", 7),
            (sk.minimize(farthest_task), "coordinated", 7),
        ):
            mine = sk.find_window(slots, PAPER, own, shape=shape)
            theirs = sk.find_window(slots, PAPER, same, shape=shape)
            assert mine.value == pytest.approx(theirs.value * scale, rel=1e-11)
            assert mine.proven


def test_group_span_of_a_function_is_that_of_the_built_in_criterion():
    for cycle in range(3):
        slots = environment(cycle)
        mine = sk.find_window(slots, PAPER, sk.minimize(farthest_task), span="group")
        theirs = sk.find_window(slots, PAPER, "coordinated", span="group")
        assert mine.value == pytest.approx(theirs.value * 7, rel=1e-11)
        assert theirs.value <= sk.find_window(slots, PAPER, "coordinated").value


@settings(max_examples=settings.default.max_examples // 3, deadline=None)
@given(cases())
def test_own_criterion_equals_exhaustive_search(case: Case):
    request = request_of(case)
    for shape in SHAPES:
        best = best_total(
            case, shape, lambda s, row, t, d: s["performance"][row] * d, 1
        )
        window = sk.find_window(case.slots, request, work_done, shape=shape)
        value = None
        if window is not None:
            again = check_window(window, case, shape)
            value = total(
                lambda s, row, t, d: s["performance"][row] * d,
                again,
                case.slots,
                shape,
                case.request,
            )
        judge(window, best, 1, value)


def capsule_of(function, text):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(function, ctypes.c_void_p), text, None)


@ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_double)
)
def c_length(slot, length, value):
    value[0] = length
    return 0


STATIC_NAME = b"int (const void *, double, double *)"


def test_capsule_of_a_c_function():
    slots = environment(0)
    capsule = capsule_of(c_length, STATIC_NAME)
    window = sk.find_window(slots, PAPER, sk.minimize(capsule))
    best = sk.find_window(slots, PAPER, "processor_time")
    assert window.value == pytest.approx(best.value)
    wrong = capsule_of(c_length, b"double (double)")
    with pytest.raises(TypeError, match=r"capsule must be named .* got 'double"):
        sk.find_window(slots, PAPER, wrong)


@pytest.mark.parametrize("name", [None, b"double (double)"])
def test_a_limit_takes_capsules_of_its_own_kind_alone(name):
    class Own:
        def __call__(self, *given):
            return 0.0

        def capsule(self, dtype):
            return capsule_of(c_length, name)

    request = sk.Request(5, 300, limits=[sk.Limit(Own(), ">=", 1)])
    with pytest.raises(TypeError, match="a limit's function must not depend on"):
        sk.find_window(environment(0), request)


@pytest.mark.parametrize("real", [False, True])
def test_a_function_is_called_once_a_slot_and_group(real):
    asked: dict[tuple[int, float], int] = {}

    @ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_double)
    )
    def counted(slot, length, value):
        asked[slot, length] = asked.get((slot, length), 0) + 1
        value[0] = length
        return 0

    slots = environment(0, real=real)
    capsule = capsule_of(counted, STATIC_NAME)
    window = sk.find_window(slots, PAPER, sk.minimize(capsule))
    best = sk.find_window(slots, PAPER, "processor_time")
    assert window.value == pytest.approx(best.value)
    assert len(asked) > len(slots)
    again = [key for key, times in asked.items() if times > 1]
    assert len(again) == PAPER.nodes  # the parts of the answer
    assert max(asked.values()) == 2


@pytest.mark.parametrize(
    ("criterion", "error", "text"),
    [
        (divides, ValueError, r"criterion divides raised, .* of row \d+"),
        (not_a_number, ValueError, r"criterion not_a_number raised, .* of row \d+"),
        (no_such_field, TypeError, "no_such_field does not compile: .* no field '"),
        (sk.criterion(int), TypeError, "criterion int does not compile"),
        (
            sk.criterion(lambda slot: 1.0),
            TypeError,
            r"criterion <lambda>\(slot\) must take \(slot, length\)$",
        ),
        (
            sk.criterion(lambda slot, length: 1.0, uses_start=True),
            TypeError,
            r"must take \(slot, start, length\)$",
        ),
        (12345678, TypeError, "criterion must be one of"),
        (len, TypeError, "criterion must be one of"),
        ("memory", ValueError, "criterion must be one of .*, or a numeric field"),
        (np.ones(3), ValueError, r"shape \(3,\) for \d+ slots"),
        (sk.minimize("cost"), ValueError, r"does not apply .* give 'cost' alone"),
        (sk.minimize("dependable"), ValueError, "minimize does not apply"),
        (sk.minimize("leftover"), ValueError, "the least sum .* give 'leftover' alone"),
    ],
)
def test_bad_criteria(criterion, error, text):
    with pytest.raises(error, match=text):
        sk.find_window(environment(0), PAPER, criterion)


def test_records_of_objects_are_refused():
    slots = sk.make_slots(
        node=0, start=0, end=9, performance=1, price=1, tag=np.array([{}])
    )
    with pytest.raises(TypeError, match="does not compile: dtypes that contain object"):
        sk.find_window(slots, sk.Request(1, 1), divides)


def test_criteria_copy_and_pickle():
    for criterion in (divides, sk.criterion(plain_price), sk.minimize(divides)):
        assert pickle.loads(pickle.dumps(criterion)) == criterion
        assert copy.deepcopy(criterion) == criterion


def test_functions_are_not_placed_anywhere():
    with pytest.raises(ValueError, match="placement='any' needs"):
        sk.find_window(environment(0), PAPER, nearest_task, placement="any")


def test_a_criterion_is_a_function():
    with pytest.raises(TypeError, match="criterion needs a function"):
        sk.criterion(3)
