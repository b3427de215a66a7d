"""Tests of the published algorithms: exhaustive search, compiled and plain Python."""

import os
import subprocess
import sys

import numpy as np
import oracle
import pytest
from environments import random_environment
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SHAPES, SLOT, Case, cases

import slotkern as sk
from slotkern import published
from slotkern._kernels.request import FIELDS
from slotkern.published import ALGORITHMS, loops
from slotkern.published.job import supported_fields

CHECKED = [key for key in ALGORITHMS if key[1] in oracle.VALUE]

#: Searches whose first step of the best value also has the earliest start. Others may
#: have an equal finish at a later start, or equal costs in two groups.
FIRST_OF_EQUALS = {
    *((shape, criterion) for shape in SHAPES for criterion in ("start", "runtime")),
    ("ragged", "cost"),
}


def criterion_for(slots, criterion):
    """Return the criterion, or an array of values if the algorithm needs one."""
    return slots["performance"] % 3 if criterion == "value" else criterion


def window_found(slots, request, criterion, shape, seed=0):
    """Return the published window as the oracle describes it, after checking it."""
    found = published.find(
        slots, criterion=criterion, shape=shape, seed=seed, **request
    )
    if found is None:
        return None
    start, rows = found.start, found.rows
    usable = oracle.proper_slots(
        slots, **{name: request[name] for name in oracle.FILTERS if name in request}
    )
    parts = [slot for slot in usable if slot.row in rows]
    terms = oracle.terms_of(request)
    window = oracle.window_of(start, parts, shape, *terms)
    assert len(parts) == len(set(window.nodes)) == request["nodes"] == len(rows)
    assert start >= request.get("earliest", -np.inf)
    assert start <= request.get("latest", np.inf)
    assert window.runtime <= request.get("max_runtime", np.inf)
    assert oracle.met(window.cost, request.get("budget", np.inf))
    for slot in parts:
        length = window.runtime
        if shape == "ragged":
            length = oracle.length_on(slot.performance, *terms)
        assert oracle.is_live(slot, start, length, request.get("deadline", np.inf))
    return window


@given(cases())
def test_published_value_equals_exhaustive_search(case: Case):
    charged = {"setup", "step"} & case.request.keys()
    for shape in SHAPES:
        best = oracle.best_windows(case.slots, shape, **case.request)
        for form, criterion in CHECKED:
            if form != shape:
                continue
            window = window_found(*case, criterion, shape)
            expected = best[criterion]
            if expected is None:
                assert window is None, criterion
                continue
            assert window is not None, criterion
            assert oracle.VALUE[criterion](window) == expected.value, criterion
            # Groups of equal length are one group here, but separate in the papers.
            apart = shape == "ragged" or criterion == "start" or not charged
            if apart and (shape, criterion) in FIRST_OF_EQUALS:
                assert window.start == expected.start, criterion


@given(cases(charged=False))
def test_amp_and_first_fit_equal_criterion_first(case: Case):
    """Without steps: they give several groups of the papers the same length."""
    for shape in SHAPES:
        expected = oracle.first_window(case.slots, shape, **case.request)
        window = window_found(*case, "first", shape)
        if expected is None:
            assert window is None
        else:
            assert window is not None
            assert window.start == expected.start
            assert window.cost == expected.cost
            assert window.nodes == expected.nodes
            assert window.rows == expected.rows


@settings(max_examples=settings.default.max_examples // 2)
@given(cases(), st.integers(0, 2**32))
def test_min_proc_time_is_valid_and_reproducible(case: Case, seed: int):
    window = window_found(*case, "processor_time", "ragged", seed)
    assert window == window_found(*case, "processor_time", "ragged", seed)
    if window is not None:
        best = oracle.best_windows(case.slots, "ragged", **case.request)
        assert best["cost"] is not None


def test_min_proc_time_depends_on_its_seed():
    slots = random_environment(40, 600, seed=1)
    request = {"nodes": 5, "volume": 300.0, "budget": 1500.0}
    windows = {
        window_found(slots, request, "processor_time", "ragged", seed)
        for seed in range(8)
    }
    assert len(windows) > 1


def slot(node, start, end, performance, price):
    return (node, float(start), float(end), float(performance), float(price))


def test_amp_tests_n_cheapest_after_each_slot():
    slots = np.array(
        [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 1, 5), slot(2, 0, 9, 1, 2)], dtype=SLOT
    )
    search = {"nodes": 2, "volume": 4, "criterion": "first", "shape": "ragged"}
    assert published.find(slots, budget=24, **search).rows.tolist() == [0, 1]
    assert published.find(slots, budget=23, **search).rows.tolist() == [0, 2]


def test_alp_takes_the_first_slots_below_the_price():
    slots = np.array(
        [slot(0, 0, 9, 1, 3), slot(1, 1, 9, 1, 9), slot(2, 2, 9, 1, 4)], dtype=SLOT
    )
    found = published.find(
        slots, nodes=2, volume=4, max_price=4, criterion="first", shape="ragged"
    )
    assert (found.start, found.rows.tolist()) == (2.0, [0, 2])


def test_exchange_refunds_the_long_slot():
    # 4 + 4 = 8 already uses the budget; 4 + 5 fits only after a 4 is refunded.
    slow = [slot(node, 0, 9, 1, 1) for node in (0, 1)]
    fast = [slot(node, 0, 9, 2, 2.5) for node in (2, 3)]
    slots = np.array([*slow, *fast], dtype=SLOT)
    search = {"nodes": 2, "volume": 4, "criterion": "runtime", "shape": "ragged"}
    assert published.find(slots, budget=10, **search).rows.tolist() == [2, 3]
    assert published.find(slots, budget=8, **search).rows.tolist() == [0, 1]


def test_first_fit_prefers_the_fastest_group_at_the_first_start():
    slots = np.array(
        [slot(0, 0, 9, 1, 1), slot(1, 0, 9, 2, 1), slot(2, 3, 9, 4, 1)], dtype=SLOT
    )
    search = {"volume": 4, "criterion": "first", "shape": "square"}
    assert published.find(slots, nodes=1, **search).rows.tolist() == [1]
    found = published.find(slots, nodes=2, **search)
    assert (found.start, sorted(found.rows.tolist())) == (0.0, [0, 1])


def test_limits_that_the_papers_lack_are_refused():
    lacking = FIELDS.keys() - {"step", "setup", "max_price"}
    request = sk.Request(1, 4, budget=9, setup=1, step=2)
    with pytest.raises(ValueError, match=r"have no setup; the request has 1\.0$"):
        supported_fields(request, lacking)
    fields = supported_fields(request.replace(setup=0, step=0), lacking)
    assert fields.keys() == lacking
    assert fields["budget"] == 9


def test_timed_loops_refuse_limits_that_they_lack(monkeypatch):
    slots = np.array([slot(0, 0, 9, 1, 1)], dtype=SLOT)
    for more in ({"where": "performance > 0"}, {"limits": "sum(price) <= 9"}):
        with pytest.raises(ValueError, match="no filter and no limits on sums"):
            loops.loop_of(slots, sk.Request(1, 4, **more), "cost")
    monkeypatch.setattr(loops, "SLOT_LIMITS", ("min_performance", "max_price"))
    with pytest.raises(ValueError, match="have no latest; the request has 3"):
        loops.loop_of(slots, sk.Request(1, 4, latest=3), "cost")


@pytest.mark.parametrize(("shape", "criterion"), ALGORITHMS)
def test_overflowing_windows_are_excluded(shape, criterion):
    """Windows with an infinite part or an infinite cost are excluded."""
    search = {"nodes": 2, "volume": 1e10, "shape": shape, "criterion": criterion}
    if criterion in ("value", "dependable", "coordinated"):
        search |= {"budget": 9.0} if shape == "ragged" else {"lite": True}
    endless = np.array([slot(n, 0, np.inf, 1e-300, 1) for n in (0, 1)], dtype=SLOT)
    costly = np.array([slot(n, 0, 1e300, 1, 1e308) for n in (0, 1)], dtype=SLOT)
    for slots in (endless, costly):
        search["criterion"] = criterion_for(slots, criterion)
        assert published.find(slots, **search) is None


@pytest.mark.parametrize(("shape", "criterion"), ALGORITHMS)
def test_no_window_returns_none(shape, criterion):
    none = np.empty(0, SLOT)
    one = np.array([slot(7, 0, 1, 1, 0)], dtype=SLOT)
    search = {"volume": 1.0, "budget": 9.0, "shape": shape}
    search["criterion"] = criterion_for(none, criterion)
    assert published.find(none, nodes=1, **search) is None
    search["criterion"] = criterion_for(one, criterion)
    assert published.find(one, nodes=10**9, **search) is None
    assert published.find(one, nodes=1, proper=np.array([False]), **search) is None
    assert published.find(one, nodes=1, **search).rows.tolist() == [0]


@pytest.mark.parametrize(
    ("shape", "criterion"), [("square", "processor_time"), ("round", "cost")]
)
def test_unknown_algorithm_error_lists_all(shape, criterion):
    with pytest.raises(
        ValueError, match=r"ragged: first, start, local_price.*square: first"
    ):
        published.find(
            np.empty(0, SLOT), nodes=1, volume=1.0, criterion=criterion, shape=shape
        )


def windows_as_text() -> str:
    """Return the exact results of every algorithm in a few environments as text."""
    lines = []
    for seed in range(3):
        slots = random_environment(24, 400, seed, real_performance=seed == 2)
        for (shape, criterion), algorithm in ALGORITHMS.items():
            tables = (
                algorithm.lite is not None
            )  # slow in plain Python, so on small tables
            if tables and seed:
                continue
            for budget in (900.0, 1500.0):
                for lite in (False, True)[: 1 + tables]:
                    found = published.find(
                        slots,
                        nodes=4,
                        volume=200 / (10 if tables else 1),
                        budget=budget / (10 if tables else 1),
                        earliest=30.5,
                        deadline=390,
                        criterion=criterion_for(slots, criterion),
                        shape=shape,
                        lite=lite,
                        seed=seed,
                    )
                    text = found and (found.start.hex(), found.rows.tolist())
                    lines.append(f"{seed} {shape} {criterion} {budget} {lite} {text}")
    return "\n".join(lines)


def test_compiled_equals_plain_python():
    path = os.pathsep.join(
        [
            os.path.dirname(__file__),
            os.path.dirname(oracle.__file__),
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
    )
    plain = subprocess.run(
        [
            sys.executable,
            "-c",
            "import test_published as t; print(t.windows_as_text())",
        ],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[" in plain.stdout
    assert plain.stdout.strip() == windows_as_text()


def test_slotkern_does_not_import_numba():
    check = "import sys, slotkern; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


@pytest.mark.parametrize("criterion", ["q", "dependable", "coordinated"])
@pytest.mark.parametrize("budget", [1e9, 1e18, 1e300])
def test_too_large_table_is_rejected(criterion, budget):
    slots = sk.generate_environment("square", nodes=20, seed=1).slots
    job = sk.Request(3, 100, budget=budget)
    with pytest.raises(ValueError, match=r"budget 1e\+\d+ .* more than 1.07e\+09"):
        sk.find_window(slots, job, criterion, method="published")
    lite = sk.find_window(slots, job, criterion, method="published-lite")
    assert lite is not None
    small = sk.find_window(
        slots, job.replace(budget=500), criterion, method="published"
    )
    assert small is not None
