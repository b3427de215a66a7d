"""Tests of public names: signatures, constructors, and arguments."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import numpy as np
import pytest

import slotkern as sk
from slotkern.foundation.special_fields import SPECIAL_FIELDS

CALLABLE = [name for name in sk.__all__ if callable(getattr(sk, name))]
JOB = sk.Request(2, 50)


@pytest.fixture(scope="module")
def environment() -> sk.Environment:
    return sk.generate_environment("square", nodes=20, seed=1)


# --- signatures


@pytest.mark.parametrize("name", CALLABLE)
def test_public_callables_have_signatures(name: str) -> None:
    thing = getattr(sk, name)
    things = [thing]
    if isinstance(thing, type):
        things += [
            member
            for inner, member in vars(thing).items()
            if callable(member) and not inner.startswith("_")
        ]
    for each in things:
        for parameter in inspect.signature(each).parameters.values():
            assert parameter.name not in ("args", "kwargs"), each


def test_signature_of_request() -> None:
    parameters = inspect.signature(sk.Request).parameters
    request = sk.Request(2, 3.0)
    for name, parameter in parameters.items():
        needed = name in ("nodes", "volume")
        assert (parameter.kind is parameter.KEYWORD_ONLY) is not needed
        if not needed:
            assert getattr(request, name) == parameter.default
    # Some requests lack these fields.
    optional = [*SPECIAL_FIELDS, "walltime", "reference", "name"]
    assert [*parameters] == [*sk.Request(1, 1)._fields(), *optional]
    shown = pydoc.render_doc(sk.Request, renderer=pydoc.plaintext)
    assert "Request(nodes, volume=None, *, budget=inf, min_performance=0.0" in shown
    assert str(inspect.signature(sk.SlotPool)) == (
        "(slots, *, clock=None, machine=None, tariffs=None, caps=None)"
    )
    assert next(iter(inspect.signature(sk.Choice).parameters)) == "rows"


# --- constructors


def test_windows_cannot_be_constructed(environment: sk.Environment) -> None:
    window = sk.find_window(environment, JOB)
    assert window is not None
    for make in (sk.Window, lambda: sk.Window(**window.to_dict())):
        with pytest.raises(TypeError, match="cannot be created directly"):
            make()
    for name in ("Bookings", "Alternatives"):
        with pytest.raises(TypeError, match="made by"):
            getattr(sk, name)(3, x=1)


def test_choice_can_be_constructed() -> None:
    choice = sk.Choice([0, 2], 3, 4, True, 5)
    assert repr(choice) == (
        "Choice(rows=[0, 2], value=3.0, cost=4.0, proven=True, bound=5.0)"
    )
    assert choice == sk.Choice(np.array([0, 2], np.int32), 3, 4, True, 5)
    assert repr(sk.Choice([], 0, 0, True, 0)).startswith("Choice(rows=[],")
    for rows in ([0.5], 3, [[1, 2]], ["a"]):
        with pytest.raises(TypeError, match="rows must be row numbers"):
            sk.Choice(rows, 3, 4, True, 5)


def test_request_rejects_deadline_before_earliest() -> None:
    with pytest.raises(ValueError, match="earliest 5 lies after deadline 2"):
        sk.Request(1, 1, earliest=5, deadline=2)
    with pytest.raises(ValueError, match="earliest 5 lies after deadline"):
        sk.Request(1, 1, deadline=3).replace(earliest=5)
    assert sk.Request(1, 1, earliest=5, deadline=5).deadline == 5


# --- an environment is accepted instead of its slots


def test_environment_is_accepted_as_slots(
    environment: sk.Environment,
) -> None:
    slots = environment.slots
    calls: list[Any] = [
        lambda s: sk.find_window(s, JOB),
        lambda s: sk.find_window(s, JOB, "q", method="lite"),
        lambda s: sk.find_window(s, JOB, sk.minimize(slots["q"])),
        lambda s: sk.find_window(s, JOB.replace(where="q > 1"), "dependable"),
        lambda s: sk.find_windows(s, [JOB, JOB], "cost"),
        lambda s: list(sk.find_alternatives(s, JOB)),
        lambda s: list(sk.find_alternatives(s, JOB, "cost", limit=3)),
        lambda s: str(sk.explain(s, JOB)),
        lambda s: [a.tolist() for a in sk.step_values(s, JOB, "q")],
        lambda s: sk.SlotPool(s).slots.tolist(),
        lambda s: sk.to_arrow(s).to_pydict(),
        sk.validate_slots,
    ]
    for call in calls:
        assert call(environment) == call(slots)
    assert len(sk.plot_gantt(environment).axes) == 1
    pool = sk.SlotPool(slots[:0])
    pool.add_slots(environment)
    assert len(pool) == len(slots)


def test_published_searches_accept_environment(environment: sk.Environment) -> None:
    pytest.importorskip("numba")
    found = sk.find_window(environment, JOB, "cost", method="published")
    assert found == sk.find_window(environment.slots, JOB, "cost", method="published")


def test_windows_are_rejected_as_slots(
    environment: sk.Environment,
) -> None:
    window = sk.find_window(environment, JOB)
    with pytest.raises(TypeError, match="a SlotPool or an Environment, got Window"):
        sk.find_window(window, JOB)


def test_repr_of_environment_is_one_line() -> None:
    shown = repr(sk.generate_environment("aep", seed=1))
    assert len(shown) < 80
    assert shown.startswith("Environment(")
    assert "100 nodes" in shown
