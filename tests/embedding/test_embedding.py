"""slotkern from C++, Cython and numba: the examples build and agree with Python."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import slotkern as sk

EXAMPLES = Path(__file__).parents[2] / "examples" / "embedding"
CXX = shutil.which(os.environ.get("CXX", "g++"))
FLAGS = ["-std=c++20", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]


@pytest.fixture
def slots():
    return sk.make_slots(
        node=[0, 1, 2],
        start=[0, 0, 4],
        end=[20, 30, 30],
        performance=[1, 2, 4],
        price=[1, 3, 5],
    )


@pytest.mark.skipif(CXX is None, reason="needs a C++ compiler")
def test_cpp(tmp_path, slots):
    program = tmp_path / "schedule"
    source = EXAMPLES / "schedule.cpp"
    subprocess.run(
        [CXX, *FLAGS, "-I", sk.get_include(), str(source), "-o", str(program)],
        check=True,
    )
    lines = subprocess.run(
        [str(program)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
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


@pytest.mark.skipif(CXX is None, reason="needs a C++ compiler")
def test_cython(tmp_path, slots):
    pytest.importorskip("Cython")
    source = tmp_path / "placer.cpp"
    library = tmp_path / f"placer{sysconfig.get_config_var('EXT_SUFFIX')}"
    package = Path(sk.__file__).parent.parent
    subprocess.run(
        [
            *(sys.executable, "-m", "cython", "-3", "--cplus", "-I", str(package)),
            *(str(EXAMPLES / "placer.pyx"), "-o", str(source)),
        ],
        check=True,
    )
    folders = [sysconfig.get_path("include"), np.get_include(), sk.get_include()]
    subprocess.run(
        [
            *(CXX, "-std=c++20", "-O1", "-fPIC", "-shared"),
            *(f"-I{folder}" for folder in folders),
            *(str(source), "-o", str(library)),
        ],
        check=True,
    )
    spec = importlib.util.spec_from_file_location("placer", library)
    placer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(placer)
    volumes = np.array([8.0, 30.0, 800.0])
    pool = sk.SlotPool(slots)
    for _ in range(2):  # as built, then changed
        expected = [
            pool.find(sk.Request(2, v), "start", shape="ragged") for v in volumes
        ]
        assert placer.earliest(pool, volumes, 2) == [
            -1.0 if window is None else window.start for window in expected
        ]
        pool.book(expected[0])


def test_numba_caches(tmp_path):
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
    door, window = pool.handle(), sn.window(2)
    booked = []
    while sn.find(door, sn.request(2, 8.0, 40.0), window, sn.COST, sn.SQUARE) == 0:
        expected = twin.find(sk.Request(2, 8, budget=40), "cost")
        assert window.totals.tolist() == [
            getattr(expected, name)
            for name in ("start", "finish", "runtime", "cost", "processor_time")
        ]
        assert window.rows.tolist() == expected.slots["row"].tolist()
        assert window.costs.tolist() == expected.slots["cost"].tolist()
        assert sn.book(door, window) == 0
        assert sn.book(door, window) != 0
        twin.book(expected)
        booked.append([array.copy() for array in window])
        assert pool.slots.tolist() == twin.slots.tolist()
    assert len(booked) > 1
    assert twin.find(sk.Request(2, 8, budget=40), "cost") is None
    for arrays in booked:
        assert sn.release(door, sn.FoundWindow(*arrays)) == 0
    assert pool.slots.tolist() == slots.tolist()
    assert sn.find(door, sn.request(3, 8.0), window, sn.START, sn.SQUARE) == -1


def test_numba_requests_have_every_field(slots):
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool, window = sk.SlotPool(slots), sn.window(1)
    door, plain = pool.handle(), sk.Request(1, 8)
    for shape in (sn.SQUARE, sn.RAGGED):
        for changes in (
            {},
            {"min_performance": 4.0},
            {"earliest": 21.0},
            {"deadline": 3.0},
            {"max_price": 1.0},
            {"budget": 8.0},
        ):
            expected = pool.find(
                plain.replace(**changes), "start", shape=("square", "ragged")[shape]
            )
            asked = sn.request(1, 8.0, **changes)
            status = sn.find(door, asked, window, sn.START, shape)
            assert (status == 0) == (expected is not None)
            if expected is not None:
                assert window.totals[0] == expected.start
                assert window.nodes.tolist() == list(expected.nodes)


def test_numba_books_no_window_that_is_none(slots):
    """What a caller's own arrays may say: a node twice, an unknown one, no time."""
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool, window = sk.SlotPool(slots), sn.window(2)
    door = pool.handle()
    assert sn.find(door, sn.request(2, 8.0), window, sn.START, sn.SQUARE) == 0
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
        assert sn.book(door, wrong) != 0
        assert sn.release(door, wrong) != 0
    assert pool.slots.tolist() == slots.tolist()
    assert len(pool.booked) == 0
    assert sn.book(door, window) == 0
    twice = sn.FoundWindow(*(array.copy() for array in window))
    twice.nodes[:] = window.nodes[0]
    assert sn.release(door, twice) != 0
    assert len(pool.booked) == 2


def test_headers_are_where_they_are_said_to_be():
    headers = sorted((Path(sk.get_include()) / "slotkern").rglob("*.hpp"))
    assert {"find.hpp", "schedule.hpp", "embed.hpp"} <= {path.name for path in headers}
    assert "Python.h" not in "".join(path.read_text() for path in headers)
