"""Inputs of community simulations: jobs, nodes, labels, scenarios, and errors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import slotkern as sk


def test_jobs_keep_the_order_in_which_they_are_given() -> None:
    jobs = {"submit": [5.0, 1.0], "run": [2.0, 3.0], "processors": 1, "home": 0}
    run = sk.simulate_community(jobs, {"processors": [1]}, "ind")
    assert run.jobs["start"].tolist() == [5.0, 1.0]
    assert run.jobs["end"].tolist() == [7.0, 4.0]


def test_labels_may_be_words() -> None:
    jobs = {"submit": 0.0 * np.arange(4), "run": 1.0, "processors": 1, "home": 0}
    jobs["label"] = ["linux", "windows", "", "plan9"]
    grid = {"processors": [1, 1], "label": ["linux", "windows"]}
    run = sk.simulate_community(jobs, grid, sk.Community("all"))
    assert run.failures() == {"no offer": 1}
    assert run.jobs["node"][:2].tolist() == [0, 1]


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("scenario", ["ind", "cen", "dec-g", "dec-p"])
def test_few_jobs(count: int, scenario: str) -> None:
    jobs, nodes = sk.generate_community(jobs=count, seed=2)
    run = sk.simulate_community(jobs, nodes, scenario)
    assert len(run) == count
    assert sum(run.failures().values()) + len(run.completed) == count
    assert isinstance(run.metrics()["waiting"], float)
    assert run.flow().sum() == len(run.completed)
    assert len(run.states()) >= count


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"home": [0, 9]}, r"jobs: row 1: home is 9, not within \[0, 1\]"),
        ({"processors": [0, 1]}, "jobs: row 0: processors is 0"),
        ({"run": [1.0, np.nan]}, "jobs: row 1: run is nan"),
        ({"run": [1.0, -1]}, "jobs: row 1: run is -1.0"),
        ({"submit": [np.inf, 1]}, "jobs: row 0: submit is inf"),
        ({"estimate": [5.0, 0.5]}, "jobs: row 1: estimate 0.5 is less than run 2.0"),
        ({"label": [0, -2]}, "jobs: row 1: label is -2"),
        ({"run": [1e300, 1e300]}, "the times add up to more than"),
    ],
)
def test_invalid_jobs_are_refused(change: dict[str, Any], message: str) -> None:
    good = {"submit": [0.0, 1], "run": [1.0, 2], "processors": [1, 1], "home": [0, 1]}
    with pytest.raises(ValueError, match=message):
        sk.simulate_community({**good, **change}, {"processors": [1, 1]}, "ind")


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"processors": []}, "grid has no nodes"),
        ({"speed": [1]}, "grid has no column 'processors'"),
        ({"processors": [1], "speed": [0.0]}, "grid: row 0: speed is 0.0"),
        ({"processors": [1, 0]}, "grid: row 1: processors is 0"),
    ],
)
def test_invalid_grids_are_refused(grid: dict[str, Any], message: str) -> None:
    jobs = {"submit": [0.0], "run": [1.0], "processors": [1], "home": [0]}
    with pytest.raises(ValueError, match=message):
        sk.simulate_community(jobs, grid, "ind")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"neighbours": 0}, "neighbours must be at least 1, got 0"),
        ({"neighbours": "some"}, "neighbours must be one of all"),
        ({"latency": -1}, "latency must not be negative, got -1"),
        ({"loss": 1}, "loss must be below 1, got 1"),
        ({"omega": 2}, "omega must be at most 1, got 2"),
        ({"window": 0}, "window must be more than 0, got 0"),
        ({"neighbours": {0: [1, 7]}}, "a neighbour of node 0 is 7, but the grid has"),
        ({"neighbours": {"x": [1]}}, "a node is 'x', but the grid has nodes 0 to 1"),
    ],
)
def test_invalid_scenarios_are_refused(options: dict[str, Any], message: str) -> None:
    jobs = {"submit": [0.0], "run": [1.0], "processors": [1], "home": [0]}
    with pytest.raises(ValueError, match=message):
        sk.simulate_community(jobs, {"processors": [1, 1]}, sk.Community(**options))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((1, 5, "leave"), "changes: row 0: node must be at most 1, got 5"),
        ((1, 0, "go"), "changes: row 0: change must be one of leave, join"),
        ((float("nan"), 0, "leave"), "changes: row 0: time must not be NaN"),
        ((1, 0), "changes: row 0 is"),
    ],
)
def test_invalid_changes_are_refused(change: Any, message: str) -> None:
    jobs = {"submit": [0.0], "run": [1.0], "processors": [1], "home": [0]}
    with pytest.raises(ValueError, match=message):
        sk.simulate_community(jobs, {"processors": [1, 1]}, "ind", changes=[change])


def test_a_graph_of_networkx_is_accepted() -> None:
    class Graph:  # the interface of networkx.Graph
        def adjacency(self) -> Any:
            return iter([(0, {1: {}}), (1, {0: {}})])

    jobs = {"submit": [0.0], "run": [1.0], "processors": [3], "home": [0]}
    grid = {"processors": [1, 4]}
    assert len(sk.simulate_community(jobs, grid, sk.Community(Graph())).completed) == 1


def test_mean_metrics_of_the_scenarios() -> None:
    names = ("ind", "cen", "dec-g", "dec-p")
    runs: dict[str, list[Any]] = {name: [] for name in names}
    common: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(8):
        jobs, nodes = sk.generate_community(seed=seed)
        found = [sk.simulate_community(jobs, nodes, name, seed=seed) for name in names]
        shared = sk.compare_communities(found)
        for name, run in zip(names, found, strict=True):
            runs[name].append(run.metrics())
            common[name].append(run.metrics(shared)["waiting"])
    mean = {
        name: {key: np.mean([each[key] for each in found]) for key in found[0]}
        for name, found in runs.items()
    }
    assert 0.6 < mean["ind"]["completion"] < 0.75
    assert mean["dec-g"]["completion"] > 0.99
    assert 0.93 < mean["dec-p"]["completion"] < 0.99
    assert mean["dec-g"]["request"] == 26
    assert mean["dec-p"]["request_others"] == 6
    assert 16 < mean["dec-g"]["accept_request"] < 19
    assert 4.3 < mean["dec-p"]["accept_request"] < 5.1
    assert 0.13 < mean["dec-p"]["own"] < 0.16
    waiting = {name: np.median(each) for name, each in common.items()}
    assert waiting["ind"] > 2 * waiting["dec-g"]
    assert waiting["ind"] > 2 * waiting["dec-p"]


def test_the_jobs_that_all_scenarios_complete() -> None:
    jobs, nodes = sk.generate_community(jobs=400, seed=5)
    runs = [sk.simulate_community(jobs, nodes, name) for name in ("ind", "dec-g")]
    common = sk.compare_communities(runs)
    assert common.sum() == len(set(runs[0].completed) & set(runs[1].completed))
    mine = runs[1].metrics(common)
    chosen = runs[1].jobs[common]
    assert mine["waiting"] == (chosen["start"] - chosen["submit"]).mean()
    steps = runs[1].states()
    assert (steps["submitted"][-1], steps["running"][-1]) == (400, 0)
    done = runs[1].jobs[runs[1].completed]
    for time, busy in zip(steps["time"][::40], steps["busy"][::40], strict=True):
        on = (done["start"] <= time) & (time < done["end"])
        assert busy == done["processors"][on].sum()
    assert all(a < b for a, b in pairwise(steps["time"].tolist()))
    few = sk.simulate_community(jobs[:3], nodes, "ind")
    with pytest.raises(ValueError, match="different numbers of jobs"):
        sk.compare_communities([runs[0], few])
    with pytest.raises(ValueError, match="needs at least one run"):
        sk.compare_communities([])
