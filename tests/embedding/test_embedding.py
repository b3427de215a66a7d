"""slotkern from C++, Cython and numba: the examples build and agree with Python."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import weakref
from pathlib import Path

import numpy as np
import pytest
from programs import program

import slotkern as sk

EXAMPLES = Path(__file__).parents[2] / "examples" / "embedding"
CC = shutil.which(os.environ.get("CC", "cc"))


@pytest.fixture
def slots():
    return sk.make_slots(
        node=[0, 1, 2],
        start=[0, 0, 4],
        end=[20, 30, 30],
        performance=[1, 2, 4],
        price=[1, 3, 5],
    )


def printed_by(name):
    """Return the lines that a program prints."""
    return subprocess.check_output([program(name)], text=True).splitlines()


def test_cpp_with_limits():
    slots = sk.make_slots(
        node=range(4),
        start=0,
        end=20,
        performance=[1, 2, 2, 4],
        price=[1, 2, 3, 9],
        storage=[100, 150, 400, 250],
        power=[0.1, 0.3, 0.3, 0.9],
    )
    job = sk.Request(2, 10, limits="sum(storage) >= 500 and sum(power * length) <= 6")
    windows = {
        name: sk.find_window(slots, job, name, shape="ragged") for name in sk.CRITERIA
    }
    assert printed_by("example-limits") == [
        f"{name}: nodes {window.nodes[0]} and {window.nodes[1]} for {window.cost:g}"
        for name, window in windows.items()
    ]


def test_cpp(slots):
    lines = printed_by("example-schedule")
    done = sk.SlotPool(slots).schedule(
        [sk.Request(2, 8, budget=40)] * 12, "start", shape="ragged"
    )
    assert lines == [
        f"job {i} does not fit"
        if window is None
        else f"job {i} starts {window.start:g} costs {window.cost:g}"
        for i, window in enumerate(done)
    ]
    assert done.booked.any()
    assert not done.booked.all()


def cython_module(folder, name, text):
    """Build a module outside slotkern with the include path of Python alone."""
    pytest.importorskip("Cython")
    (folder / f"{name}.pyx").write_text(text)
    package = Path(sk.__file__).parent.parent
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", "-I", str(package), f"{name}.pyx"],
        check=True,
        cwd=folder,
    )
    library = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(
        [
            *(CC, "-O1", "-fPIC", "-shared"),
            *("-I", sysconfig.get_path("include")),
            *(str(folder / f"{name}.c"), "-o", str(library)),
        ],
        check=True,
    )
    spec = importlib.util.spec_from_file_location(name, library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
def test_cython(tmp_path, slots):
    placer = cython_module(tmp_path, "placer", (EXAMPLES / "placer.pyx").read_text())
    volumes = np.array([8.0, 30.0, 800.0, 8.0])
    pool, twin = sk.SlotPool(slots), sk.SlotPool(slots)
    for _ in range(2):
        expected = twin.schedule(
            [sk.Request(2, v) for v in volumes], "start", shape="ragged"
        )
        assert placer.place(pool, volumes, 2).tolist() == [
            -1.0 if window is None else window.start for window in expected
        ]
        assert pool.slots.tolist() == twin.slots.tolist()
    assert len(pool.booked) > 0
    for wrong in (None, slots, 0):
        with pytest.raises(TypeError, match="pool must be a SlotPool"):
            placer.place(wrong, volumes, 2)
    with pytest.raises(ValueError, match="nodes must be at least 1"):
        placer.place(pool, volumes, 0)


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
def test_cython_of_another_interface_is_refused(tmp_path):
    text = "from slotkern cimport embed\nembed.need_interface(embed.INTERFACE + 1)\n"
    with pytest.raises(ImportError, match="interface 2 of slotkern, which has 1"):
        cython_module(tmp_path, "later", text)


def test_invalid_requests_are_refused_in_cpp():
    assert printed_by("refusals") == ["34 refused"]


def test_numba_caches_compiled_code(tmp_path):
    pytest.importorskip("numba")
    shutil.copy(EXAMPLES / "placer_numba.py", tmp_path)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run(
            [sys.executable, str(tmp_path / "placer_numba.py")],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert runs[0][0] == runs[1][0]
    assert runs[0][1] == "0 loaded from the cache"
    assert runs[1][1] == "1 loaded from the cache"


def test_numba_equals_python(slots):
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool, twin = sk.SlotPool(slots), sk.SlotPool(slots)
    handle, window = pool.handle(), sn.window(2)
    booked = []
    while sn.find(handle, sn.request(2, 8.0, 40.0), window, sn.COST, sn.SQUARE) == 0:
        expected = twin.find(sk.Request(2, 8, budget=40), "cost")
        assert window.totals.tolist() == [
            getattr(expected, name)
            for name in ("start", "finish", "runtime", "cost", "processor_time")
        ]
        assert window.rows.tolist() == expected.slots["row"].tolist()
        assert window.costs.tolist() == expected.slots["cost"].tolist()
        assert sn.book(handle, window) == 0
        assert sn.book(handle, window) != 0
        twin.book(expected)
        booked.append([array.copy() for array in window])
        assert pool.slots.tolist() == twin.slots.tolist()
    assert len(booked) > 1
    assert twin.find(sk.Request(2, 8, budget=40), "cost") is None
    for arrays in booked:
        assert sn.release(handle, sn.FoundWindow(*arrays)) == 0
    assert pool.slots.tolist() == slots.tolist()
    assert sn.find(handle, sn.request(3, 8.0), window, sn.START, sn.SQUARE) == -1


@pytest.mark.parametrize(("number", "criterion"), [*enumerate(sk.CRITERIA)])
def test_numba_searches_under_tariffs(number, criterion):
    pytest.importorskip("numba")
    import slotkern.numba as sn

    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=40, performance=1, price=[1, 2, 1], tariff="day"
    )
    slots["tariff"][2] = ""
    tariffs = {"day": sk.Tariff([6, 22], [1, 3, 1])}
    pool, twin = (sk.SlotPool(slots, tariffs=tariffs) for _ in range(2))
    handle, window = pool.handle(), sn.window(2)
    asked = sn.request(2, 8.0, 35.0)
    booked = 0
    while sn.find(handle, asked, window, number, sn.RAGGED) == 0:
        expected = twin.find(sk.Request(2, 8, budget=35), criterion, shape="ragged")
        assert window.totals[0] == expected.start
        assert window.costs.tolist() == expected.slots["cost"].tolist()
        assert window.rows.tolist() == expected.slots["row"].tolist()
        assert sn.book(handle, window) == 0
        twin.book(expected)
        booked += 1
    assert booked
    assert twin.find(sk.Request(2, 8, budget=35), criterion, shape="ragged") is None


def test_numba_requests_have_every_field(slots):
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool, window = sk.SlotPool(slots), sn.window(1)
    handle, plain = pool.handle(), sk.Request(1, 8)
    for shape in (sn.SQUARE, sn.RAGGED):
        for changes in (
            {},
            {"min_performance": 4.0},
            {"earliest": 21.0},
            {"deadline": 3.0},
            {"max_price": 1.0},
            {"setup": 3.0, "budget": 30.0},
            {"step": 5.0},
            {"setup": 1e3},
            {"earliest": -1.0, "latest": -0.5},
            {"max_runtime": 2.0},
            {"budget": 8.0},
        ):
            expected = pool.find(
                plain.replace(**changes), "start", shape=("square", "ragged")[shape]
            )
            asked = sn.request(1, 8.0, **changes)
            status = sn.find(handle, asked, window, sn.START, shape)
            assert (status == 0) == (expected is not None)
            if expected is not None:
                assert window.totals[0] == expected.start
                assert window.nodes.tolist() == list(expected.nodes)


def test_numba_refuses_invalid_windows(slots):
    """Arrays of a caller may contain a node twice, an unknown node or a bad length."""
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool, window = sk.SlotPool(slots), sn.window(2)
    handle = pool.handle()
    assert sn.find(handle, sn.request(2, 8.0), window, sn.START, sn.SQUARE) == 0
    for name, values in (
        ("nodes", [0, 0]),
        ("nodes", [1, 0]),
        ("nodes", [0, 9]),
        ("lengths", [8.0, 0.0]),
        ("lengths", [8.0, -1.0]),
        ("lengths", [8.0, np.nan]),
        ("lengths", [8.0, 1e9]),
    ):
        wrong = sn.FoundWindow(*(array.copy() for array in window))
        getattr(wrong, name)[:] = values
        assert sn.book(handle, wrong) != 0
        assert sn.release(handle, wrong) != 0
    assert pool.slots.tolist() == slots.tolist()
    assert len(pool.booked) == 0
    assert sn.book(handle, window) == 0
    twice = sn.FoundWindow(*(array.copy() for array in window))
    twice.nodes[:] = window.nodes[0]
    assert sn.release(handle, twice) != 0
    assert len(pool.booked) == 2


def test_numba_refuses_invalid_requests(slots):
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool, window = sk.SlotPool(slots), sn.window(2)
    handle, asked = pool.handle(), sn.request(2, 8.0)
    for call in (
        (0, asked, window, sn.START, sn.SQUARE),
        (handle, asked, window, sn.START, 2),
        (handle, asked, window, sn.START, -1),
        (handle, asked, window, 99, sn.SQUARE),
        (handle, asked, window, -1, sn.SQUARE),
        (handle, asked[:1], window, sn.START, sn.SQUARE),
        (handle, sn.request(0, 8.0), sn.window(0), sn.START, sn.SQUARE),
        (handle, sn.request(-1, 8.0), window, sn.START, sn.SQUARE),
        (handle, sn.request(3, 8.0), window, sn.START, sn.SQUARE),
        (handle, sn.request(2, 0.0), window, sn.START, sn.SQUARE),
        (handle, sn.request(2, np.nan), window, sn.START, sn.SQUARE),
        (handle, sn.request(2, 8.0, np.nan), window, sn.START, sn.SQUARE),
    ):
        assert sn.find(*call) != 0
        assert window.totals.tolist() == [0.0] * 5
    for name in sn.FoundWindow._fields:
        if name == "nodes":  # their number determines the number of parts
            continue
        short = window._replace(**{name: getattr(window, name)[:1]})
        assert sn.find(handle, asked, short, sn.START, sn.SQUARE) != 0
        assert sn.book(handle, short) != 0
    assert len(pool.booked) == 0
    assert sn.find(handle, asked[:2].copy(), window, sn.START, sn.SQUARE) == 0
    assert sn.book(0, window) != 0
    assert sn.release(0, window) != 0
    assert sn.book(handle, window) == 0


def test_numba_refuses_arrays_of_another_type(slots):
    numba = pytest.importorskip("numba")
    import slotkern.numba as sn

    pool, window = sk.SlotPool(slots), sn.window(2)
    handle, asked = pool.handle(), sn.request(2, 8.0)
    refused = numba.core.errors.TypingError
    for name, array in (
        ("rows", np.zeros(4, np.int64)[::2]),
        ("rows", np.zeros(2)),
        ("nodes", np.zeros(2, np.int64)),
        ("lengths", np.zeros(2, np.float32)),
        ("totals", np.zeros((5, 1))),
    ):
        wrong = window._replace(**{name: array})
        with pytest.raises(refused, match=f"{name} of found must be a contiguous"):
            sn.find(handle, asked, wrong, sn.START, sn.SQUARE)
        with pytest.raises(refused, match=f"{name} of found must be a contiguous"):
            sn.book(handle, wrong)
    for array in (np.zeros(14)[::2], np.zeros(7, np.float32)):
        with pytest.raises(refused, match="asked must be a contiguous"):
            sn.find(handle, array, window, sn.START, sn.SQUARE)
    with pytest.raises(refused, match="pool must be the integer"):
        sn.find(1.5, asked, window, sn.START, sn.SQUARE)
    with pytest.raises(refused, match="found must be a FoundWindow"):
        sn.find(handle, asked, tuple(window), sn.START, sn.SQUARE)


LIMITS = ["sum(storage) >= 500", "sum(power * length) <= 6"]

WITHIN = """
from libc.stdint cimport int32_t, int64_t
from slotkern cimport embed
embed.need_interface(embed.INTERFACE)

def nodes(pool, limits, str criterion):
    cdef double[embed.REQUEST_FIELDS] request
    cdef double[embed.TOTALS] window
    cdef int64_t[2] rows
    cdef int32_t[2] nodes
    cdef double[2] lengths, costs
    embed.fill_request(request, embed.REQUEST_FIELDS, 2, 10)
    request[embed.LIMITS] = embed.limits_of(pool, limits)
    if embed.find(embed.address_of(pool), request, embed.REQUEST_FIELDS,
                  embed.criterion_of(criterion), embed.RAGGED,
                  window, rows, nodes, lengths, costs):
        return None
    return nodes[0], nodes[1]
"""


@pytest.fixture
def columns():
    return {
        "node": range(4),
        "start": 0,
        "end": 20,
        "performance": [1, 2, 2, 4],
        "price": [1, 2, 3, 9],
        "storage": [100, 150, 400, 250],
        "power": [0.1, 0.3, 0.3, 0.9],
    }


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
def test_cython_with_limits(tmp_path, columns):
    module = cython_module(tmp_path, "within", WITHIN)
    pool = sk.SlotPool(sk.make_slots(**columns))
    for limits in ((), LIMITS[0], LIMITS, "sum(storage) >= 651"):
        for criterion in sk.CRITERIA:
            job = sk.Request(2, 10, limits=limits)
            expected = pool.find(job, criterion, shape="ragged")
            found = module.nodes(pool, limits, criterion)
            assert found == (None if expected is None else expected.nodes)
    for wrong in (None, sk.make_slots(**columns), 0):
        with pytest.raises(TypeError, match="pool must be a SlotPool"):
            module.nodes(wrong, LIMITS, "cost")
    with pytest.raises(ValueError, match=r"no column 'memory'"):
        module.nodes(pool, "sum(memory) >= 1", "cost")


def test_numba_with_limits(columns):
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool = sk.SlotPool(sk.make_slots(**columns))
    handle, window = pool.handle(), sn.window(2)
    assert pool.limits_handle(()) == 0
    numbers = {
        limits: pool.limits_handle(limits) for limits in (*LIMITS, " and ".join(LIMITS))
    }
    assert list(numbers.values()) == [1, 2, 3]
    booked = 0
    while booked < 2:
        for limits, number in numbers.items():
            assert pool.limits_handle(limits) == number
            for shape in (sn.SQUARE, sn.RAGGED):
                job = sk.Request(2, 10, limits=limits)
                expected = pool.find(job, "cost", shape=("square", "ragged")[shape])
                asked = sn.request(2, 10.0, limits=number)
                status = sn.find(handle, asked, window, sn.COST, shape)
                assert (status == 0) == (expected is not None)
                if expected is not None:
                    assert window.nodes.tolist() == list(expected.nodes)
                    assert window.totals[3] == expected.cost
        assert (
            sn.find(handle, sn.request(2, 10.0, limits=3), window, sn.COST, sn.RAGGED)
            == 0
        )
        assert sn.book(handle, window) == 0
        booked += 1


def test_limit_numbers_of_other_pools_are_refused(columns):
    pytest.importorskip("numba")
    import slotkern.numba as sn

    slots = sk.make_slots(**columns)
    pool, other = sk.SlotPool(slots), sk.SlotPool(slots)
    number, window = pool.limits_handle(LIMITS[0]), sn.window(2)

    def status(pool, number):
        asked = sn.request(2, 10.0, limits=number)
        return sn.find(pool.handle(), asked, window, sn.START, sn.RAGGED)

    assert status(pool, number) == 0
    refused = status(other, number)
    assert refused != 0
    for wrong in (-1, 2, 0.5, np.nan, np.inf):
        assert status(pool, wrong) == refused
    # add_slots invalidates the numbers: the new slots have no weights.
    added = sk.make_slots(**{**columns, "start": 30, "end": 40, "storage": 900})
    pool.add_slots(added)
    assert status(pool, number) == refused
    assert pool.limits_handle(LIMITS[1]) == number + 1
    assert pool.limits_handle(LIMITS[0]) == number + 2
    assert status(pool, number) == refused
    huge = pool.limits_handle("sum(storage) >= 1800")
    assert status(pool, huge) == 0
    assert window.totals[0] == 30


def test_limits_that_depend_on_bookings_have_no_number(columns):
    slots = sk.make_slots(**columns)
    pool = sk.SlotPool(slots)
    for limits in (
        "sum(end) <= 40",
        "sum(start * power) <= 40",
        sk.Limit(np.ones(len(slots)), "<=", 1),
    ):
        with pytest.raises(
            ValueError, match="terms over columns other than start and end"
        ):
            pool.limits_handle(limits)
    with pytest.raises(ValueError, match="no column 'memory'"):
        pool.limits_handle("sum(memory) >= 1")
    with pytest.raises(ValueError, match="at most 6 limits"):
        pool.limits_handle([f"sum(storage) >= {k}" for k in range(7)])


def test_limits_are_freed_with_their_pool(columns):
    pool = sk.SlotPool(sk.make_slots(**columns))
    limits = sk.Limit("storage", ">=", 500)
    held = weakref.ref(limits)
    for _ in range(100):
        pool.limits_handle(limits)
    assert pool.limits_handle([limits]) == 1
    del limits
    assert held() is not None
    del pool
    assert held() is None


def test_get_include_returns_the_folder_of_the_headers():
    headers = sorted((Path(sk.get_include()) / "slotkern").rglob("*.hpp"))
    assert {"find.hpp", "schedule.hpp", "embed.hpp"} <= {path.name for path in headers}
    assert "Python.h" not in "".join(path.read_text() for path in headers)
