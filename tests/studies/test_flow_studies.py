"""Studies of flows: sections of a trace under policies, metrics as columns."""

from __future__ import annotations

import numpy as np
import pytest
from trace_files import swf_line

import slotkern as sk
from slotkern import studies
from slotkern.studies.experiment import compute
from slotkern.studies.flows import flow_of_cycle
from slotkern.studies.load import _study

DAY = 86400


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Five weeks of random jobs on 16 processors."""
    rng = np.random.default_rng(3)
    count = 600
    submit = np.sort(rng.integers(0, 35 * DAY, count))
    lines = [
        swf_line(
            i + 1,
            submit=int(submit[i]),
            run_time=int(rng.integers(60, 2 * DAY)),
            allocated=int(rng.integers(1, 9)),
            requested_time=3 * DAY,
            user=int(rng.integers(1, 5)),
        )
        for i in range(count)
    ]
    path = tmp_path_factory.mktemp("trace") / "flow.swf"
    path.write_text("; MaxProcs: 16\n" + "".join(line + "\n" for line in lines))
    return path


def data(trace, **more):
    algorithms = {name: {"policy": name} for name in ("fcfs", "easy")}
    metrics = ["jobs", "wait_mean", "bounded_slowdown_p95", "utilization"]
    return {
        "name": "flow",
        "experiment": "flow",
        "chunk": 2,
        "metrics": metrics,
        "environment": {"trace": str(trace)},
        "algorithms": algorithms,
    } | more


def test_columns_are_those_of_the_replays(trace):
    (setting,) = _study(data(trace)).settings
    got = compute(setting, 0, 5)
    whole = sk.read_trace(trace)
    submit = whole.jobs["submit"]
    assert got["jobs"][:, 0].sum() == len(whole)
    for week in range(5):
        since = submit - submit.min()
        mine = whole.jobs[(since >= week * 7 * DAY) & (since < (week + 1) * 7 * DAY)]
        for place, policy in enumerate(("fcfs", "easy")):
            done = sk.replay(mine, 16, policy).metrics()
            for name, values in got.items():
                assert values[week, place] == done[name], name


def test_prices_charge_the_runs(trace):
    prices = {"start": [0, 3 * DAY, 9 * DAY], "price": [1.0, 2.0, 0.5]}
    environment = {"trace": str(trace), "prices": prices}
    policies = ("fcfs", "easy", "window-cost")
    algorithms = {name.replace("-", "_"): {"policy": name} for name in policies}
    metrics = ["cost", "wait_mean"]
    study = data(trace, environment=environment, metrics=metrics, algorithms=algorithms)
    (setting,) = _study(study).settings
    got = compute(setting, 0, 2)
    for cycle in range(2):
        flow = flow_of_cycle(setting, cycle)
        for place, policy in enumerate(policies):
            done = sk.replay(flow, policy=policy, prices=prices).metrics()
            assert got["cost"][cycle, place] == done["cost"] > 0
            assert got["wait_mean"][cycle, place] == done["wait_mean"]
    environment["prices"] = "prices.csv"
    with pytest.raises(ValueError, match=r"environment\.prices must be a table of sta"):
        _study(data(trace, environment=environment))


def test_sections_end_with_the_trace(trace, tmp_path):
    study = _study(data(trace))
    with pytest.raises(ValueError, match=r"cycle 5: .* has 5 sections of 7 days"):
        studies.run(study, 6, out=tmp_path / "out")
    environment = {"trace": str(trace), "days": 3.5}
    halves = _study(data(trace, environment=environment)).settings[0]
    assert compute(halves, 0, 10)["jobs"][:, 0].sum() == 600


def test_drawn_weeks_depend_on_seed_and_cycle_alone(trace, tmp_path):
    environment = {"trace": str(trace), "draw": "weeks", "days": 14}
    grid = {"environment": {"load": [0.8, 1.2]}}
    study = _study(data(trace, environment=environment, grid=grid))
    one = studies.run(study, 7, out=tmp_path / "one")
    two = studies.run(study, 7, out=tmp_path / "two", workers=2)
    for chunk in one.all_chunks():
        here, there = one.read(chunk), two.read(chunk)
        for name, values in here.items():
            assert np.array_equal(values, there[name], equal_nan=True)
    jobs = compute(study.settings[0], 0, 7)["jobs"][:, 0]
    assert len(set(jobs)) > 1
    summary = studies.Summary(one)
    waits = [summary.estimate(s, "fcfs", "wait_mean").mean for s in study.settings]
    assert waits[0] < waits[1]
    assert len(flow_of_cycle(study.settings[0], 3)) == jobs[3]


def test_another_trace_of_the_same_name_is_refused(trace, tmp_path):
    path = tmp_path / "mine.swf"
    path.write_bytes(trace.read_bytes())
    studies.run(_study(data(path)), 2, out=tmp_path / "out")
    study = _study(data(path))
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ValueError, match=r"environment\.digest is '"):
        studies.run(_study(data(path)), 4, out=tmp_path / "out")
    assert study.settings != _study(data(path)).settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"environment": {}}, r"environment\.trace: is missing"),
        ({"environment": {"trace": "no.swf"}}, r"environment\.trace: no\.swf: No such"),
        ({"environment": {"trace": "TRACE", "days": 0}}, r"environment\.days.* 0"),
        (
            {"environment": {"trace": "TRACE", "draw": "weeks", "days": 3}},
            r"environment\.days: 3 are no whole weeks",
        ),
        ({"environment": {"trace": "TRACE", "load": -1}}, r"environment\.load.*-1"),
        ({"environment": {"trace": "TRACE", "lode": 1}}, r"environment\.lode: unknown"),
        ({"environment": {"trace": "TRACE", "clean": ["x"]}}, r"clean.*x"),
        ({"job": {"nodes": 3}}, r"job\.nodes: unknown key; job has no keys$"),
        ({"metrics": ["wait"]}, r"metrics must .*'wait'"),
        (
            {"algorithms": {"a": {"policy": "esay"}}},
            r"algorithms\.a\.policy must .*'esay'",
        ),
        (
            {"algorithms": {"a": {"policy": "os:sep"}}},
            r"a\.policy: 'os:sep' is not a policy",
        ),
        ({"algorithms": {"a": {"policy": "nomod:x"}}}, r"a\.policy: 'nomod:x': No mod"),
    ],
)
def test_wrong_settings_name_the_key(trace, change, message):
    environment = change.get("environment", {})
    if environment.get("trace") == "TRACE":
        environment["trace"] = str(trace)
    with pytest.raises(ValueError, match=message):
        _study(data(trace) | change)


def test_a_user_policy(trace, tmp_path, monkeypatch):
    (tmp_path / "my_policies.py").write_text(
        "import slotkern as sk\nlargest = sk.QueuePolicy('easy', 'largest')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    algorithms = {
        "mine": {"policy": "my_policies:largest"},
        "laf": {"policy": "easy-laf"},
    }
    (setting,) = _study(data(trace, algorithms=algorithms)).settings
    waits = compute(setting, 0, 2)["wait_mean"]
    assert (waits[:, 0] == waits[:, 1]).all()
