"""Tests of errors for unknown names, which suggest a similar name."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import slotkern as sk

SLOTS = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=[3, 1])
JOB = sk.Request(1, 3)
MACHINE = sk.Machine.homogeneous(2)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: sk.Request(1, 3, budgt=5), "budget"),
        (lambda: JOB.replace(dedline=5), "deadline"),
        (lambda: sk.find_window(SLOTS, JOB, shpe="ragged"), "shape"),
        (lambda: sk.SlotPool(SLOTS).find(JOB, placment="any"), "placement"),
        (lambda: sk.free_slots(MACHINE, start=0, ende=5), "end"),
        (lambda: sk.replay({}, 4, load_=2), "load"),
        (lambda: sk.explain(SLOTS, JOB, shap="ragged"), "shape"),
        (lambda: sk.Machine({"name": ["a"]}, procesors=2), "processors"),
    ],
)
def test_unknown_keyword_suggests_similar_one(call: Any, meant: str) -> None:
    match = rf"unexpected keyword argument '\w+'; did you mean '{meant}'\?$"
    with pytest.raises(TypeError, match=match):
        call()


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: sk.find_window(SLOTS, JOB, "finsh"), "finish"),
        (lambda: sk.find_window(SLOTS, JOB, shape="raged"), "ragged"),
        (lambda: sk.find_window(SLOTS, JOB, "pric"), "price"),
        (lambda: sk.SlotPool(SLOTS).schedule([JOB], "finsh"), "finish"),
        (lambda: sk.find_window(SLOTS, JOB.replace(where="prize < 2")), "price"),
        (lambda: sk.find_window(SLOTS, JOB.replace(where="prize == cheap")), "price"),
        (lambda: sk.find_window(SLOTS, JOB.replace(limits="sum(prize) <= 9")), "price"),
        (lambda: sk.schedule_batch(SLOTS, {"nodes": [1], "volum": [3]}), "volume"),
        (lambda: sk.replay(np.full(1, -1, sk.SWF), 4, "easy-sjff"), "easy-sjf"),
        (
            lambda: sk.free_slots(
                MACHINE, {"nod": [0], "start": [1], "end": [2]}, start=0, end=9
            ),
            "nod",
        ),
    ],
)
def test_unknown_value_suggests_similar_one(call: Any, meant: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        call()
    question = f"; did you mean {meant!r}?"
    assert (question in str(caught.value)) == (meant != "")


def test_no_suggestion_without_similar_name() -> None:
    with pytest.raises(ValueError, match="criterion must be one of") as caught:
        sk.find_window(SLOTS, JOB, "qqqq")
    assert "did you mean" not in str(caught.value)


def test_other_type_errors_are_unchanged() -> None:
    with pytest.raises(TypeError, match="missing"):
        sk.explain(SLOTS)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="machine must be a Machine"):
        sk.free_slots(3, start=0, end=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [sk.find_window, sk.replay, sk.explain])
def test_functions_have_signatures_and_pickle_by_name(function: Any) -> None:
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert pickle.loads(pickle.dumps(function)) is function
