"""The text of results: control and bidirectional characters of names are escaped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slotkern as sk

EVIL = "n\x1b[2J\u202e"


@pytest.fixture(scope="module")
def pool() -> sk.SlotPool:
    machine = sk.Machine({"name": [EVIL, "b"], EVIL: [1, 2], "price": [1, 2]})
    return sk.SlotPool(
        sk.free_slots(
            machine, start="2026-05-01", end="2026-05-02", zone="Europe/Berlin"
        )
    )


def results(pool: sk.SlotPool) -> list[Any]:
    request = sk.Request(1, 60, name=EVIL)
    window = sk.find_window(pool, request, EVIL, required=True)
    batch = sk.schedule_batch(pool, [request])
    function = lambda slot, length: length  # noqa: E731
    function.__name__ = EVIL
    evil = sk.criterion(function)
    return [
        pool,
        pool.slots,
        window,
        request,
        batch,
        batch.execute(),
        pool.machine,
        evil,
        sk.minimize(EVIL),
        sk.find_windows(pool, [request], EVIL),
        sk.find_alternatives(pool, request, limit=2).best(EVIL),
        sk.pareto(pool, request, ("cost", EVIL)),
        sk.view(pool, title=EVIL),
        sk.explain(pool, request.replace(where="name == 'x'")),
        pool.schedule([request], "cost"),
        sk.run_cycles(pool, [request], [0], length=60),
        sk.Trace(np.full(1, -1, sk.SWF), source=EVIL),
    ]


def test_reprs_and_texts_hold_no_control_characters(pool: sk.SlotPool) -> None:
    for result in results(pool):
        for text in (repr(result), *str(result).split("\n")):
            assert not {"\x1b", "\u202e"} & {*text}, type(result)


def test_repr_of_window_names_nodes(pool: sk.SlotPool) -> None:
    window = sk.find_window(pool, sk.Request(2, 60), "start", required=True)
    assert r"n\x1b[2J\u202e" in repr(window)
