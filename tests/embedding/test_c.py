"""slotkern.h: the example in C, and random calls through ctypes."""

from __future__ import annotations

import ctypes as ct
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import program

import slotkern as sk

HEADER = (Path(sk.get_include()) / "slotkern" / "slotkern.h").read_text()
MEMBERS = HEADER.split("typedef struct slotkern_request {")[1].split("}")[0]


class Request(ct.Structure):
    _fields_ = [
        ("nodes", ct.c_int64),
        *((name, ct.c_double) for name in re.findall(r"double (\w+);", MEMBERS)),
    ]


def test_requests_keep_their_layout() -> None:
    assert [name for name, *_ in Request._fields_][:11] == [
        *("nodes", "volume", "budget", "min_performance", "max_price", "earliest"),
        *("latest", "deadline", "max_runtime", "setup", "step"),
    ]


class Window(ct.Structure):
    _fields_ = [
        (name, ct.c_double)
        for name in ("start", "finish", "runtime", "cost", "processor_time")
    ]


SLOT = np.dtype(sk.SLOT, align=True)
PART = np.dtype(
    [("row", "i8"), ("node", "i4"), ("length", "f8"), ("cost", "f8")], align=True
)


@pytest.fixture
def lib() -> ct.CDLL:
    loaded = ct.CDLL(str(program("slotkern-shared")))
    loaded.slotkern_words.restype = ct.c_char_p
    loaded.slotkern_request_of.restype = Request
    loaded.slotkern_request_of.argtypes = [ct.c_int64, ct.c_double]
    loaded.slotkern_close.restype = None
    loaded.slotkern_close.argtypes = [ct.c_void_p]
    loaded.slotkern_advance.argtypes = [ct.c_void_p, ct.c_double]
    for name in ("book", "release"):
        getattr(loaded, f"slotkern_{name}").argtypes = [
            *(ct.c_void_p, ct.c_double, ct.c_void_p, ct.c_size_t, ct.c_void_p)
        ]
    return loaded


def address(array: np.ndarray) -> ct.c_void_p:
    return ct.c_void_p(array.ctypes.data)


def opened(lib: ct.CDLL, slots: np.ndarray) -> tuple[int, ct.c_void_p, int]:
    pool, row = ct.c_void_p(), ct.c_size_t(99)
    rows = np.ascontiguousarray(slots[list(SLOT.names or ())].astype(SLOT))
    code = lib.slotkern_open(
        address(rows), ct.c_size_t(len(rows)), ct.byref(pool), ct.byref(row)
    )
    return code, pool, row.value


def test_the_example() -> None:
    printed = subprocess.check_output([program("example-schedule-c")], text=True)
    slots = sk.make_slots(
        node=[0, 1, 2],
        start=[0, 0, 4],
        end=[20, 30, 30],
        performance=[1, 2, 4],
        price=[1, 3, 5],
    )
    pool, job = sk.SlotPool(slots), sk.Request(2, 8, budget=40)
    done = list(filter(None, pool.schedule([job] * 20, "start", shape="ragged")))
    assert printed.splitlines() == [
        *(
            f"job {i} starts {window.start:g} costs {window.cost:g} on nodes "
            f"{window.nodes[0]}, {window.nodes[1]}"
            for i, window in enumerate(done)
        ),
        f"then no window exists; {len(pool)} free slots are left",
    ]


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("criterion", sk.CRITERIA)
def test_random_calls_equal_a_pool(lib: ct.CDLL, criterion: str, shape: str) -> None:
    slots = sk.generate_environment("aep", seed=3, nodes=20, interval=300).slots
    pool = sk.SlotPool(slots)
    code, mine, _ = opened(lib, slots)
    assert code == 0
    rng = np.random.default_rng(7)
    window, parts, booked = Window(), np.zeros(4, PART), []
    for step in range(120):
        job = sk.Request(
            int(rng.integers(1, 5)),
            float(rng.integers(20, 400)),
            budget=float(rng.integers(900)),
        )
        asked = lib.slotkern_request_of(job.nodes, job.volume)
        asked.budget = job.budget
        code = lib.slotkern_find(
            mine,
            ct.byref(asked),
            criterion.encode(),
            int(shape == "ragged"),
            ct.byref(window),
            address(parts),
        )
        found = pool.find(job, criterion, shape=shape)
        assert code == (found is None)
        if found is not None:
            totals = [getattr(window, name) for name, _ in Window._fields_]
            assert totals == [getattr(found, name) for name, _ in Window._fields_]
            assert parts["node"][: job.nodes].tolist() == list(found.nodes)
            assert parts["cost"][: job.nodes].tolist() == found.slots["cost"].tolist()
            pool.book(found)
            of = (window.start, address(parts), job.nodes, None)
            assert lib.slotkern_book(mine, *of) == 0
            booked.append((found, window.start, parts[: job.nodes].copy()))
        if step % 3 == 2 and booked:
            found, start, rows = booked.pop(int(rng.integers(len(booked))))
            pool.release(found)
            of = (start, address(rows), len(rows), None)
            assert lib.slotkern_release(mine, *of) == 0
    assert len(booked) >= 5
    pool.advance(50.0)
    assert lib.slotkern_advance(mine, 50.0) == 0
    count = ct.c_size_t()
    free = np.zeros(len(pool), SLOT)
    of = (address(free), ct.c_size_t(len(free)), ct.byref(count))
    assert lib.slotkern_free(mine, *of) == 0
    assert count.value == len(free)
    order = np.lexsort((free["node"], free["start"]))
    assert free[order].tolist() == pool.slots[list(SLOT.names or ())].tolist()
    lib.slotkern_close(mine)


def test_tariffs_of_nodes(lib: ct.CDLL) -> None:
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=40, performance=1, price=[1, 2, 1], tariff="day"
    )
    slots["tariff"][2] = ""
    tariffs = {"day": sk.Tariff([6, 22], [1, 3, 1])}
    _, mine, _ = opened(lib, slots)
    pool = sk.SlotPool(slots, tariffs=tariffs)
    window, parts = Window(), np.zeros(2, PART)

    def find(job: Any) -> int:
        of = (ct.byref(job), b"cost", 1, ct.byref(window), address(parts))
        code: int = lib.slotkern_find(mine, *of)
        return code

    def set_tariff(nodes: list[int], breakpoints: list[float], factors: Any) -> int:
        ids, times = np.array(nodes, "i4"), np.array(breakpoints, "f8")
        values = np.array(factors, "f8")
        code: int = lib.slotkern_set_tariff(
            mine,
            address(ids),
            ct.c_size_t(len(ids)),
            address(times),
            ct.c_size_t(len(times)),
            address(values),
        )
        return code

    job = lib.slotkern_request_of(2, 4.0)
    assert find(job) == 0
    assert lib.slotkern_book(mine, window.start, address(parts), 2, None) == 0
    pool.book(
        sk.SlotPool(slots[list(sk.SLOT.names or ())]).find(
            sk.Request(2, 4), "cost", shape="ragged"
        )
    )
    for nodes in ([0, 1], [1], [0]):  # the last calls are replaced
        assert set_tariff(nodes, [9], [7, 5]) == 0
    assert set_tariff([0, 1], [6, 22], [1, 3, 1]) == 0
    for start in (4.0, 22.0):
        job.earliest = start
        assert find(job) == 0
        found = pool.find(sk.Request(2, 4, earliest=start), "cost", shape="ragged")
        assert (window.start, window.cost) == (found.start, found.cost)
        assert parts["cost"].tolist() == found.slots["cost"].tolist()
    wrong = b"the request is not valid"
    job.max_price = 3.0
    assert lib.slotkern_words(find(job)) == wrong
    assert lib.slotkern_words(set_tariff([7], [6], [1, 3])) == wrong
    assert lib.slotkern_words(set_tariff([0], [6, 5], [1, 3, 1])).startswith(
        b"slots are"
    )
    lib.slotkern_close(mine)


def test_errors_have_a_code_and_change_nothing(lib: ct.CDLL) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
    bad = slots.copy()
    bad["end"][1] = -1
    code, pool, row = opened(lib, bad)
    assert (lib.slotkern_words(code), pool.value, row) == (
        b"an end is not after its start",
        None,
        1,
    )
    code, pool, row = opened(lib, slots)
    assert (code, row) == (0, 99)
    window, parts, fault = Window(), np.zeros(2, PART), ct.c_size_t(99)

    def find(job: Request, criterion: bytes = b"start", shape: int = 0) -> bytes:
        of = (ct.byref(job), criterion, shape, ct.byref(window), address(parts))
        announced: bytes = lib.slotkern_words(lib.slotkern_find(pool, *of))
        return announced

    make: Callable[[int, float], Any] = lib.slotkern_request_of
    wrong = b"the request is not valid"
    assert find(make(0, 3)) == find(make(-(2**63), 3)) == wrong
    assert find(make(1, 0)) == find(make(1, float("nan"))) == wrong
    assert find(make(1, 3), b"quickly") == find(make(1, 3), shape=2) == wrong
    assert find(make(3, 3)) == b"no window exists"
    assert find(make(2, 3)) == b"done"
    of = (window.start, address(parts), 2, ct.byref(fault))
    release = lib.slotkern_release(pool, *of)
    assert (lib.slotkern_words(release), fault.value) == (
        b"a part is not booked",
        0,
    )
    assert lib.slotkern_book(pool, *of) == 0
    parts["length"][0], parts["node"][1] = 0.5, 77
    of = (5.0, *of[1:])
    again = lib.slotkern_book(pool, *of)
    assert (lib.slotkern_words(again), fault.value) == (b"a part is not free", 1)
    assert lib.slotkern_words(lib.slotkern_advance(pool, np.nan)) == b"a time is NaN"
    assert lib.slotkern_words(lib.slotkern_book(pool, 0, None, 2, None)) == wrong
    assert lib.slotkern_words(lib.slotkern_book(None, *of)) == wrong
    count = ct.c_size_t()
    assert lib.slotkern_free(pool, None, ct.c_size_t(0), ct.byref(count)) == 0
    assert count.value == 2
    lib.slotkern_close(pool)
    lib.slotkern_close(None)


def test_every_code_has_its_own_message(lib: ct.CDLL) -> None:
    header = Path(sk.get_include()) / "slotkern" / "base" / "status_list.hpp"
    body = header.read_text().split("#define SLOTKERN_REASONS(X)")[0]
    codes = len(re.findall(r"^  X\(\w+,", body, re.M))
    announced = [lib.slotkern_words(code) for code in range(-1, codes + 1)]
    assert announced[0] == announced[-1] == b"no code of slotkern"
    assert len(set(announced[1:-1])) == codes > 30
    assert lib.slotkern_interface() == 1
