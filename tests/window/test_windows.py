"""Tests of windows as objects, find_windows, large requests, and explanations."""

import math
import pickle
import pkgutil
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from environments import random_environment
from hypothesis import given, settings
from strategies import cases

import slotkern as sk
from slotkern._kernels.request import FIELDS

SHAPES = ("square", "ragged")


def stream(count, seed=0):
    rng = np.random.default_rng(seed)
    return [
        sk.Request(
            int(rng.integers(1, 9)),
            rng.uniform(100, 400),
            budget=rng.uniform(300, 3000),
            deadline=rng.choice([np.inf, 400.0]),
            earliest=rng.choice([0.0, 100.0]),
            where=rng.choice([None, "price < 8", "performance >= 4"]),
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def pool():
    return sk.SlotPool(random_environment(60, 600, seed=5))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("criterion", sk.CRITERIA)
def test_find_windows_equals_single_searches(pool, criterion, shape):
    jobs = stream(300)
    one_by_one = [sk.find_window(pool, job, criterion, shape=shape) for job in jobs]
    assert 50 < sum(w is None for w in one_by_one) < 250
    for threads in (1, 2, 7):
        for source in (pool, pool.slots):
            many = sk.find_windows(
                source, iter(jobs), criterion, shape=shape, threads=threads
            )
            assert many == one_by_one


def test_find_windows_of_no_requests_and_other_methods(pool):
    assert sk.find_windows(pool, []) == []
    jobs = stream(3)
    published = sk.find_windows(pool, jobs, "cost", method="published")
    assert published == [
        sk.find_window(pool, job, "cost", method="published") for job in jobs
    ]


@pytest.mark.parametrize(
    ("threads", "error", "says"),
    [
        (0, ValueError, "threads must be at least 1, got 0"),
        (-1, ValueError, "threads must be at least 1, got -1"),
        (1.5, TypeError, "threads must be an integer, got 1.5"),
        (True, TypeError, "threads must be an integer, got True"),
        ("2", TypeError, "threads must be an integer, got '2'"),
    ],
)
def test_invalid_number_of_threads_is_rejected(pool, threads, error, says):
    with pytest.raises(error, match=re.escape(says)):
        sk.find_windows(pool, [], threads=threads)


def test_find_windows_returns_a_table(pool):
    found = sk.find_windows(pool, stream(200), "cost", threads=3)
    assert isinstance(found, sk.WindowTable)
    alone = [sk.find_window(pool, job, "cost") for job in stream(200)]
    assert found == alone
    costs = [np.nan if w is None else w.cost for w in alone]
    np.testing.assert_array_equal(found.cost, costs)
    assert len(found[10:20]) == 10
    assert found[10:20] == [found[i] for i in range(10, 20)]


def test_error_names_first_invalid_request(pool):
    requests = [sk.Request(1, 5)] * 300
    requests[270], requests[130] = sk.Request(1, 1e-300), sk.Request(1, 1e-301)
    late = sk.make_slots(node=0, start=[1e9], end=2e9, performance=1, price=1)
    for threads in (1, 4):
        with pytest.raises(ValueError, match="volume 1e-301 is too small"):
            sk.find_windows(late, requests, threads=threads)


def test_non_requests_are_rejected(pool):
    with pytest.raises(TypeError, match=r"requests\[1\] must be a Request, got int"):
        sk.find_windows(pool, [sk.Request(1, 1), 5])
    with pytest.raises(TypeError):
        sk.find_window(pool, {"nodes": 1})


def test_pool_searches_by_several_threads(pool):
    jobs = stream(200)
    want = [pool.find(job, "cost", shape="ragged") for job in jobs]
    with ThreadPoolExecutor(4) as threads:
        futures = [
            threads.submit(lambda: [pool.find(j, "cost", shape="ragged") for j in jobs])
            for _ in range(8)
        ]
        assert all(future.result() == want for future in futures)


def test_pool_copies_its_slots():
    slots = random_environment(10, 600, seed=1)
    pool = sk.SlotPool(slots)
    before = pool.find(sk.Request(2, 100))
    slots["price"] = 1e9
    assert pool.find(sk.Request(2, 100)) == before
    assert len(pool) == len(slots)
    assert pool.nodes.tolist() == list(range(10))
    with pytest.raises(ValueError, match="read-only"):
        pool.slots["price"][0] = 1
    assert pickle.loads(pickle.dumps(pool)).find(sk.Request(2, 100)) == before
    assert repr(pool) == f"SlotPool({len(slots)} slots of 10 nodes)"


def test_window_repr_and_pickle(pool):
    window = pool.find(sk.Request(4, 200), "cost", shape="ragged")
    parts = window.slots
    assert len(window) == len(parts) == 4
    assert window.nodes == tuple(parts["node"].tolist()) == tuple(sorted(window.nodes))
    assert (parts["start"] == window.start).all()
    assert parts["end"].max() == window.finish
    assert np.isclose(parts["cost"].sum(), window.cost)
    rows = pool.slots[parts["row"]]
    assert (rows["node"] == parts["node"]).all()
    assert (rows["start"] <= parts["start"]).all()
    assert (parts["end"] <= rows["end"]).all()
    lengths = 200 / rows["performance"]
    assert np.isclose(lengths.sum(), window.processor_time)
    assert lengths.max() == window.runtime
    assert window.value == window.bound == window.cost
    assert window.proven
    assert pickle.loads(pickle.dumps(window)) == window
    assert window != pool.find(sk.Request(3, 200), "cost", shape="ragged")
    assert hash(window) == hash(pool.find(sk.Request(4, 200), "cost", shape="ragged"))
    assert str(window).startswith(f"Window(ragged cost: start={window.start:g}, ")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("criterion", sk.CRITERIA)
def test_window_of_thousands_of_nodes(criterion, shape):
    slots = random_environment(4000, 600, seed=3)
    pool = sk.SlotPool(slots)
    window = pool.find(sk.Request(2500, 100), criterion, shape=shape)
    assert len(set(window.nodes)) == 2500
    chosen = slots[window.slots["row"]]
    span = 100 / chosen["performance"].min()
    key = (
        "price"
        if shape == "square"
        else 100 * (chosen["price"] / chosen["performance"])
    )
    total = math.fsum(chosen[key] if isinstance(key, str) else key)
    assert window.cost == (span * total if shape == "square" else total)
    tight = pool.find(sk.Request(2500, 100, budget=window.cost), criterion, shape=shape)
    assert tight.value <= window.value
    if criterion == "cost":
        less = window.cost * (1 - 2.0**-49)
        assert (
            pool.find(sk.Request(2500, 100, budget=less), "cost", shape=shape) is None
        )


def test_window_of_all_nodes_and_none_of_more():
    rng = np.random.default_rng(1)
    slots = sk.make_slots(
        node=np.arange(60),
        start=rng.integers(0, 50, 60),
        end=100,
        performance=rng.uniform(2, 10, 60),
        price=rng.uniform(1, 9, 60),
    )
    for shape in SHAPES:
        for criterion in sk.CRITERIA:
            every = sk.find_window(slots, sk.Request(60, 50), criterion, shape=shape)
            assert every.nodes == tuple(range(60))
            assert every.start == slots["start"].max()
            more = sk.Request(61, 50)
            assert sk.find_window(slots, more, criterion, shape=shape) is None


def test_explanation_uses_singular():
    slots = sk.make_slots(node=[3], start=0, end=9, performance=1, price=1)
    why = str(sk.explain(slots, sk.Request(2, 5)))
    assert "the node qualifies" in why
    assert "at most 1 such node is ever free together for that long; 2 are asked" in why
    assert "the cheapest window" not in why
    assert "with 1 node instead" in why
    assert "1 is asked for" in str(sk.explain(slots, sk.Request(1, 5)))


def test_explanation_suggests_filter_values():
    kind = ["gpu", "thin", "gpu"]
    slots = sk.make_slots(
        node=range(3), start=0, end=9, performance=1, price=1, kind=kind, os="x"
    )
    why = sk.explain(slots, sk.Request(1, 4, where="kind == 'GPU' and price < 2"))
    assert why.words == {"kind": ["'gpu'", "'thin'"]}
    assert "\nno slot passes the filter: kind is one of 'gpu', 'thin'\n" in str(why)
    for where in (None, "kind == 'gpu'", "price > 2", np.zeros(3, bool)):
        assert sk.explain(slots, sk.Request(1, 4, where=where)).words == {}
    many = sk.make_slots(
        node=range(13),
        start=0,
        end=9,
        performance=1,
        price=1,
        kind=list("abcdefghijklm"),
    )
    assert sk.explain(many, sk.Request(1, 4, where="kind == 'z'")).words == {}


def test_explanation_states_its_assumptions():
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=3)
    why = str(sk.explain(slots, sk.Request(2, 4)))
    assert "2 such nodes are ever free together for that long; 2 are asked" in why
    assert why.endswith("the cheapest square window costs 24")
    why = str(sk.explain(slots, sk.Request(2, 4, deadline=2)))
    assert (
        "0 such nodes are ever free together for that long in the time allowed" in why
    )
    why = str(sk.explain(slots, sk.Request(2, 4, budget=2)))
    assert "the cheapest square window costs 24; the budget is 2\n" in why
    assert "it fits with a budget of 24" in why
    assert "24.0" not in why
    near = sk.make_slots(
        node=[0, 1, 2], start=0, end=20, performance=1, price=[0.1, 0.2, 0.3]
    )
    assert sk.explain(near, sk.Request(3, 3, budget=1.8)).fits
    why = sk.explain(near, sk.Request(3, 3, budget=1.8 * (1 - 2.0**-48)))
    assert not why.fits
    assert f"window costs {why.cheapest!r}; the budget is 1.79999" in str(why)


@given(case=cases())
@settings(max_examples=settings.default.max_examples)
def test_changes_of_explanation_make_request_fit(case):
    options = dict(case.request)
    options["where"] = options.pop("proper", None)
    job = sk.Request(**options)
    for shape in SHAPES:

        def fits(changed, shape=shape):
            return sk.find_window(case.slots, changed, "first", shape=shape) is not None

        why = sk.explain(case.slots, job, shape=shape)
        assert why.fits == fits(job)
        assert ("No window fits" in str(why)) == (not why.fits)
        if why.cheapest is None:
            assert not fits(job.replace(budget=np.inf))
        else:
            assert fits(job.replace(budget=why.cheapest))
            if why.cheapest > 0:
                less = min(why.cheapest * (1 - 2.0**-49), np.nextafter(why.cheapest, 0))
                assert not fits(job.replace(budget=less))
        if why.earliest_finish is None:
            assert not fits(job.replace(deadline=np.inf))
        else:
            assert fits(job.replace(deadline=why.earliest_finish))
            sooner = np.nextafter(why.earliest_finish, -np.inf)
            assert not fits(job.replace(deadline=sooner))
        assert not fits(job.replace(nodes=why.most_nodes + 1))
        assert why.nearest_nodes == min(job.nodes, why.most_nodes)
        assert not fits(job.replace(nodes=why.together + 1, budget=np.inf))
        if why.most_nodes:
            assert fits(job.replace(nodes=why.most_nodes))
        if why.together:
            assert fits(job.replace(nodes=why.together, budget=np.inf))
        for name, value in why.changes().items():
            assert fits(job.replace(**{name: value}))
            if name in ("latest", "max_runtime"):
                least = np.nextafter(value, -np.inf)
                assert least <= job.earliest or not fits(job.replace(**{name: least}))
        free = {name: field.default for name, field in FIELDS.items()} | {"where": None}
        for name in ("volume", "budget", "deadline"):
            del free[name]
        for name, value in free.items():
            helps = not why.fits and fits(job.replace(**{name: value}))
            assert (name in why.without) == helps
        assert 0 <= why.nodes_proper <= why.nodes_fast <= why.nodes_total
        assert 0 <= why.slots_long <= why.slots_total == len(case.slots)
        assert why.together <= why.nodes_proper


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"min_performance": 2}, "without the least performance"),
        ({"earliest": 8}, "without the earliest start"),
        ({"max_price": 1}, "without the price limit"),
        ({"setup": 6}, "without the setup time"),
        ({"step": 10}, "without the rounding of lengths"),
        ({"latest": -1}, "a latest start of 0"),
        ({"max_runtime": 3}, "a runtime of 4"),
        ({"where": "price < 2"}, "without the filter"),
        ({}, "A window fits"),
    ],
)
def test_explanation_names_the_violated_limit(limit, words):
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2)
    why = sk.explain(slots, sk.Request(2, 4, **limit))
    assert why.without == list(limit)
    assert words in str(why)


def test_import_is_light():
    probe = (
        "import sys, numpy; before = set(sys.modules); import slotkern; "
        "heavy = {'numba', 'pyarrow', 'matplotlib', 'pandas', 'typer', 'rich',"
        " 'joblib', 'dask', 'scipy', 'threading', 'numpy.typing', "
        "'slotkern._kernels.pool', 'slotkern.display.table'}; "
        "heavy &= set(sys.modules) - before; sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)


def test_modules_do_not_shadow_public_names():
    modules = {module.name for module in pkgutil.iter_modules(sk.__path__)}
    assert {"expressions", "knapsack", "slots"} <= modules
    assert modules.isdisjoint(sk.__all__)


def test_public_names_exist_and_are_not_modules():
    for name in sk.__all__:
        assert hasattr(sk, name), name
        assert type(getattr(sk, name)).__name__ != "module", name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sk.nothing  # noqa: B018
