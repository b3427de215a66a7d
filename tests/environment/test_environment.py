"""Tests of random environments: partition, distributions, random streams, errors."""

import hashlib
import tomllib
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotkern.environment import (
    PRESETS,
    Load,
    Price,
    Uniform,
    generate_environment,
)
from slotkern.studies.cycle import complete_environment

CYCLES = 150


def assert_tiles(environment):
    """Assert that tasks and slots partition [0, horizon) of each node."""
    slots, tasks = environment.slots, environment.tasks
    node = np.concatenate((slots["node"], tasks["node"]))
    start = np.concatenate((slots["start"], tasks["start"]))
    end = np.concatenate((slots["end"], tasks["end"]))
    order = np.lexsort((start, node))
    node, start, end = node[order], start[order], end[order]
    first = np.r_[True, node[1:] != node[:-1]]
    assert np.array_equal(node[first], environment.nodes["node"])
    assert (start[first] == 0).all()
    assert (end[np.roll(first, -1)] == environment.horizon).all()
    assert (start[1:][~first[1:]] == end[:-1][~first[1:]]).all()
    assert (end > start).all()


def assert_well_formed(environment):
    slots, tasks, nodes = environment.slots, environment.tasks, environment.nodes
    assert np.array_equal(
        np.lexsort((slots["node"], slots["start"])), np.arange(slots.size)
    )
    assert np.array_equal(
        np.lexsort((tasks["start"], tasks["node"])), np.arange(tasks.size)
    )
    for name in nodes.dtype.names:
        assert np.array_equal(slots[name], nodes[name][slots["node"]])
    touching = slots[np.lexsort((slots["start"], slots["node"]))]
    same = touching["node"][1:] == touching["node"][:-1]
    assert (touching["start"][1:][same] > touching["end"][:-1][same]).all()


@given(
    nodes=st.integers(1, 12),
    interval=st.integers(1, 300),
    low=st.floats(0, 1),
    high=st.floats(0, 1),
    shortest=st.integers(1, 40),
    spread=st.integers(0, 200),
    whole=st.booleans(),
    law=st.sampled_from(["hypergeometric", "uniform"]),
    seed=st.integers(0, 2**64),
)
@settings(max_examples=2 * settings.default.max_examples // 3, deadline=None)
def test_tasks_and_slots_tile_the_interval(
    nodes, interval, low, high, shortest, spread, whole, law, seed
):
    low, high = sorted((low, high))
    environment = generate_environment(
        nodes=nodes,
        interval=interval,
        load=Load(low, high, law=law),
        task_length=(shortest, shortest + spread),
        whole_tasks=whole,
        seed=seed,
    )
    assert_tiles(environment)
    assert_well_formed(environment)
    tasks = environment.tasks
    length = tasks["end"] - tasks["start"]
    assert (length <= shortest + spread).all()
    busy = np.bincount(tasks["node"], length, minlength=nodes)
    excess = shortest - 1 if whole else 0
    assert (busy >= np.floor(low * interval)).all()
    assert (busy <= np.ceil(high * interval) + excess).all()
    cut = np.bincount(tasks["node"], length < shortest, minlength=nodes)
    assert (cut <= 1).all(), "only the last task of a node may be cut"


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_well_formed(preset):
    environment = generate_environment(preset, seed=3)
    assert environment.nodes.size == PRESETS[preset]["nodes"]
    assert environment.horizon == PRESETS[preset]["interval"]
    assert_tiles(environment)
    assert_well_formed(environment)


def test_a_full_node_has_no_slot_and_an_idle_one_no_task():
    full = generate_environment(nodes=4, load=(1, 1), whole_tasks=True)
    assert full.slots.size == 0
    assert_tiles(full)
    idle = generate_environment(nodes=4, load=(0, 0))
    assert idle.tasks.size == 0
    assert idle.slots["end"].tolist() == [600.0] * 4
    assert idle.slots["node"].tolist() == [0, 1, 2, 3]


def test_distributions_have_the_stated_moments():
    environment = generate_environment("square", nodes=40_000, seed=11)
    nodes, tasks = environment.nodes, environment.tasks
    root = np.sqrt(nodes.size)
    assert set(nodes["performance"]) == set(range(2, 11))
    assert abs(nodes["performance"].mean() - 6) < 4 * np.sqrt(60 / 9) / root
    relative = nodes["price"] / (0.115 * nodes["performance"])
    assert abs(relative.mean() - 1) < 4 * 0.2 / root
    assert abs(relative.std() - 0.2) < 4 * 0.2 / np.sqrt(2) / root
    q = nodes["q"]
    assert 0 <= q.min() < q.max() <= 10
    assert abs(q.mean() - 5) < 4 * 10 / np.sqrt(12) / root
    assert abs(np.corrcoef(q, nodes["price"])[0, 1]) < 4 / root
    # H is 0, 1, 2, 3 with probabilities 1, 9, 9, 1 of 20; whole tasks add up to 9.
    length = tasks["end"] - tasks["start"]
    busy = np.bincount(tasks["node"], length, minlength=nodes.size)
    class_of = np.searchsorted([1, 130, 250], busy, side="right")
    share = np.bincount(class_of, minlength=4) / nodes.size
    for got, expected in zip(share, [0.05, 0.45, 0.45, 0.05], strict=True):
        assert abs(got - expected) < 4 * np.sqrt(expected * (1 - expected)) / root


def test_tasks_are_placed_uniformly():
    environment = generate_environment(nodes=40_000, seed=5)
    tasks = environment.tasks
    middle = (tasks["start"] + tasks["end"]) / 2
    # The distribution is symmetric in time, for whole and for cut tasks.
    for chosen in (middle, middle[tasks["end"] - tasks["start"] < 10]):
        error = chosen.std() / np.sqrt(chosen.size)
        assert chosen.size > 1000
        assert abs(chosen.mean() - 300) < 4 * error


def test_powers_of_the_price_distribution_are_correctly_rounded():
    law = Price(level=1.0, exponent=1.05, deviation=0.0)
    prices = law.draw(np.random.default_rng(0), np.arange(2.0, 11.0))
    with localcontext() as context:
        context.prec = 60
        exact = [float((Decimal("1.05") * Decimal(p).ln()).exp()) for p in range(2, 11)]
    assert prices.tolist() == exact


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (600, 470.0),
        (1200, 781.9),
        (1800, 1092.6),
        (2400, 1403.7),
        (3000, 1716.9),
        (3600, 2028.4),
    ],
)
def test_number_of_slots_by_interval(interval, expected):
    sizes = [
        generate_environment("aep", interval=interval, seed=1, cycle=k).slots.size
        for k in range(CYCLES)
    ]
    error = np.std(sizes, ddof=1) / np.sqrt(CYCLES)
    assert abs(np.mean(sizes) - expected) < 4 * error


def test_same_seed_gives_the_same_bits():
    digest = hashlib.sha256()
    for cycle in (0, 1, 4999):
        environment = generate_environment("aep", seed=2024, cycle=cycle)
        for name in ("node", "start", "end", "performance"):
            digest.update(environment.slots[name].astype("<i8").tobytes())
    assert digest.hexdigest() == (
        "4d8dbdcfa1c553c1aba231e47d2d5cecf3678f7a2566d6e87ff6e11ed090ace7"
    )


def test_cycles_do_not_depend_on_each_other():
    alone = generate_environment(seed=9, cycle=7)
    for cycle in range(7):
        generate_environment(seed=9, cycle=cycle)
    again = generate_environment(seed=9, cycle=7)
    assert alone.slots.tobytes() == again.slots.tobytes()
    assert alone.nodes.tobytes() == again.nodes.tobytes()
    # Neighbouring cycles and seeds are uncorrelated.
    price = np.array(
        [generate_environment(seed=9, cycle=k).nodes["price"] for k in range(200)]
    )
    for other in (price[1:], [generate_environment(seed=10).nodes["price"]]):
        other = np.asarray(other)
        correlation = np.corrcoef(price[: len(other)].ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 4 / np.sqrt(other.size)


def test_distributions_of_columns_do_not_change_times():
    plain = generate_environment(seed=4)
    other = generate_environment(
        seed=4,
        performance=Uniform(1.5, 9.5),
        price={"level": 2, "exponent": 1.3, "deviation": 0.5},
        extra={"memory": {"low": 1, "high": 4, "integer": True}},
    )
    assert np.array_equal(plain.tasks, other.tasks)
    assert np.array_equal(plain.slots["start"], other.slots["start"])
    assert set(other.slots["memory"]) <= {1.0, 2.0, 3.0, 4.0}
    assert (other.nodes["price"] > 0).all()
    assert np.unique(other.nodes["performance"]).size == 100


def test_distributions_from_a_file():
    text = """
    load = { low = 0.2, high = 0.6, law = "uniform" }
    task_length = [5, 50]
    performance = { low = 1, high = 4, integer = true }
    price = { level = 0.5 }
    extra = { q = { low = 0, high = 10 } }
    """
    made = generate_environment(**tomllib.loads(text))
    same = generate_environment(
        load=Load(0.2, 0.6, law="uniform"),
        task_length=(5, 50),
        performance=Uniform(1, 4, integer=True),
        price=Price(0.5),
        extra={"q": Uniform(0, 10)},
    )
    assert made.slots.tobytes() == same.slots.tobytes()


@pytest.mark.parametrize("integer", [None, False, True])
def test_a_distribution_is_the_same_in_a_study(integer):
    """The default is real numbers, even if the preset has integers."""
    law = {"low": 2, "high": 10} | ({} if integer is None else {"integer": integer})
    whole = complete_environment({"preset": "square", "performance": law})
    study = generate_environment(**whole, seed=3)
    made = generate_environment("square", performance=law, seed=3)
    assert study.slots.tobytes() == made.slots.tobytes()
    kept = complete_environment({"preset": "square", "performance": {"high": 8}})
    assert kept["performance"] == {"low": 2, "high": 8, "integer": True}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"preset": "nope"}, ["preset", "nope", "aep"]),
        ({"nodes": 0}, ["nodes", "0"]),
        ({"interval": 0}, ["interval", "0"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"cycle": -1}, ["cycle", "-1"]),
        ({"load": (0.5, 0.1)}, ["load", "0.5", "0.1"]),
        ({"load": (0.5, 1.1)}, ["load", "1.1"]),
        ({"load": (float("nan"), 1)}, ["load", "NaN"]),
        ({"load": Load(0, 1, "poisson")}, ["load", "poisson"]),
        ({"load": Load(0, 1, draws=7)}, ["load", "7"]),
        ({"task_length": (0, 5)}, ["task_length", "0"]),
        ({"task_length": (9, 5)}, ["task_length", "9", "5"]),
        ({"task_length": ()}, ["task_length"]),
        ({"performance": Uniform(0, 5)}, ["performance", "0"]),
        ({"performance": Uniform(5, 2)}, ["performance", "5", "2"]),
        ({"performance": Uniform(1.5, 2, integer=True)}, ["performance", "1.5"]),
        ({"performance": {"low": 1}}, ["performance", "high"]),
        ({"performance": {"lo": 1}}, ["performance", "lo"]),
        ({"performance": {}}, ["performance"]),
        ({"price": Price(0)}, ["price", "level", "0"]),
        ({"price": Price(1, 99)}, ["price", "exponent", "99"]),
        ({"price": Price(deviation=-1)}, ["price", "deviation", "-1"]),
        ({"extra": {"price": Uniform(0, 1)}}, ["extra", "price"]),
        ({"extra": {"a b": Uniform(0, 1)}}, ["extra", "a b"]),
        ({"extra": {"q": Uniform(3, 1)}}, ["extra", "q", "3"]),
    ],
)
def test_errors_for_invalid_values_name_the_parameter(wrong, words):
    with pytest.raises(ValueError, match=r".") as caught:
        generate_environment(**wrong)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"nodes": 2.5}, ["nodes", "2.5"]),
        ({"nodes": True}, ["nodes", "True"]),
        ({"interval": 600.5}, ["interval", "600.5"]),
        ({"task_length": (1.5, 5)}, ["task_length", "1.5"]),
        ({"whole_tasks": 1}, ["whole_tasks", "1"]),
        ({"price": {"level": "high"}}, ["price", "level", "high"]),
        ({"load": 0.5}, ["load", "0.5"]),
        ({"extra": [1]}, ["extra", "1"]),
    ],
)
def test_values_of_another_type_are_type_errors(wrong, words):
    with pytest.raises(TypeError, match=r".") as caught:
        generate_environment(**wrong)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
