"""Tests of the checks of arguments."""

import numpy as np
import pytest

from slotkern.foundation import checks


@pytest.mark.parametrize("value", [1, np.int8(1), np.uint64(1), np.array(1)])
def test_integers_of_any_kind_are_integers(value):
    found = checks.integer("k", value)
    assert found == 1
    assert type(found) is int


@pytest.mark.parametrize("value", [True, np.True_, "2", 2.0, None, [1], np.float64(1)])
def test_other_types_than_integers_raise_type_error(value):
    with pytest.raises(TypeError, match="k must be an integer, got"):
        checks.integer("k", value)


def test_integers_have_limits():
    assert checks.integer("k", 3, 3, 3) == 3
    with pytest.raises(ValueError, match="k must be at least 4, got 3"):
        checks.integer("k", 3, least=4)
    with pytest.raises(ValueError, match="k must be at most 2, got 3"):
        checks.integer("k", 3, most=2)
    with pytest.raises(ValueError, match="got an integer of 33220 bits"):
        checks.integer("k", 10**10_000, most=2)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5)])
def test_numbers_of_any_kind_are_numbers(value):
    found = checks.number("x", value, least=0.5)
    assert found == 0.5
    assert type(found) is float


@pytest.mark.parametrize("value", [True, np.True_, "2", b"2", 1j, None, [1.0, 2.0]])
def test_other_types_than_numbers_raise_type_error(value):
    with pytest.raises(TypeError, match="x must be a number, got"):
        checks.number("x", value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "x must not be NaN"),
        (np.inf, "x must be finite, got inf"),
        (10**400, "x is too large: 1000"),
        (-1, "x must not be negative, got -1"),
    ],
)
def test_numbers_have_limits(value, words):
    with pytest.raises(ValueError, match=words):
        checks.number("x", value, least=0)


def test_infinity_is_accepted_if_finite_is_false():
    assert checks.number("x", np.inf, finite=False) == np.inf
    with pytest.raises(ValueError, match="x must be more than 0, got 0"):
        checks.number("x", 0, above=0)


def test_errors_list_the_allowed_words():
    assert checks.one_of("shape", "a", ("a", "b")) == "a"
    for value in ("c", None, 3, ["a"]):
        with pytest.raises(ValueError, match="shape must be one of a, b; got"):
            checks.one_of("shape", value, ("a", "b"))
