"""The study of batches: division into chunks, columns, claims, figures and report."""

from __future__ import annotations

import copy
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import slotkern as sk
from slotkern import studies
from slotkern.studies.batches import (
    BATCH,
    USER_CRITERIA,
    PolicyRun,
    draw_cycle,
    run_flow,
)
from slotkern.studies.claims import verdicts
from slotkern.studies.experiment import compute
from slotkern.studies.load import _study
from slotkern.studies.report import print_report, write_report


@pytest.fixture(scope="module")
def vo():
    return studies.load_study("vo")


@pytest.mark.parametrize(
    "name", ["table1_eq6", "table2", "table3", "amp_alp", "administrators_limit"]
)
def test_results_do_not_depend_on_the_division_into_chunks(vo, name):
    setting = vo.sweeps[name][-1]
    whole = compute(setting, 0, 4)
    first, last = compute(setting, 0, 1), compute(setting, 1, 4)
    for title, values in whole.items():
        parts = np.concatenate([first[title], last[title]])
        assert np.array_equal(values, parts, equal_nan=True)


def test_a_cycle_is_drawn_from_its_setting(vo):
    setting = vo.sweeps["table2"][2]
    drawn = draw_cycle(setting, 3)
    slots, batch = drawn.slots, drawn.batch
    own = slots[slots["node"] == 0]
    assert own[["start", "end", "performance", "price"]].tolist() == [(0, 600, 6.5, 6)]
    assert len(np.unique(slots["node"])) == 24
    assert len(batch) == 20
    assert ((drawn.lengths >= 0.2) & (drawn.lengths <= 1)).all()
    for job in batch.requests:
        assert 2 <= job.nodes <= 6
        assert 0.85 <= job.budget / (job.nodes * job.volume) <= 1.6
    again = draw_cycle(setting, 3)
    assert (again.slots == slots).all()
    assert again.batch == batch


def test_columns_are_those_of_the_schedules(vo):
    """Means by hand of one cycle: all jobs, those of one criterion, true lengths."""
    setting = vo.sweeps["table1"][0]
    drawn, got = draw_cycle(setting, 5), compute(setting, 5, 6)
    schedule = sk.schedule_batch(drawn.slots, drawn.batch, sk.BatchSlicer(10), most=14)
    own = np.array(drawn.batch.criteria)
    for column, name in enumerate(USER_CRITERIA):
        costs = schedule.windows.table["cost"][own == name]
        assert got["cost"][0, column] == np.nanmean(costs)
    setting = vo.sweeps["table3"][0]
    drawn, got = draw_cycle(setting, 5), compute(setting, 5, 6)
    schedule = sk.schedule_batch(drawn.slots, drawn.batch, sk.CSS)
    done = schedule.execute(drawn.lengths)
    assert got["start"][0, 2] == pytest.approx(schedule.means()["start"])
    assert got["real_start"][0, 2] == pytest.approx(np.nanmean(done.start))
    assert got["failed"][0, 2] == (not schedule.scheduled.all())


SMALL = {
    "name": "small",
    "experiment": "batch",
    "metrics": ["start", "failed_jobs"],
    "job": {"jobs": 4},
    "algorithms": {"css": {"policy": "slicer", "criterion": "first"}},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"environment": {"load": [0, 2]}}, r"environment: load.*2"),
        ({"environment": {"owner": -1}}, r"environment\.owner.*-1"),
        ({"job": {"nodes": [3, 2]}}, r"job\.nodes: \[3, 2\]"),
        ({"job": {"budget": [0, 1]}}, r"job\.budget.*0"),
        ({"job": {"length": [0.5, 2]}}, r"job\.length.*2"),
        ({"job": {"volumes": 3}}, r"job\.volumes: unknown key"),
        ({"job": {"limit": 0}}, r"job\.limit must be more than 0"),
        ({"job": {"choice": "least time"}}, r"job\.choice: 'least time' is not like"),
        ({"job": {"choice": "minimize age under cost"}}, r"job\.choice must .*'age'"),
        ({"metrics": ["profit"]}, r"metrics: 'profit' needs environment\.owner"),
        ({"metrics": ["prophet"]}, r"metrics must .*'prophet'"),
        (
            {"algorithms": {"a": {"policy": "best"}}},
            r"algorithms\.a\.policy must .*'best'",
        ),
        ({"algorithms": {"a": {"policy": "slicer", "k": 0}}}, r"algorithms\.a: k .* 0"),
        ({"algorithms": {"a": {"policy": "slicer", "q": 0}}}, r"a\.q: unknown key"),
        (
            {"algorithms": {"a": {"policy": "slicer", "alternatives": "csa"}}},
            r"algorithms\.a\.alternatives must .*'csa'",
        ),
        ({"timing": [{"algorithms": ["css"]}]}, r"timing\[0\].*'batch' has no search"),
        (
            {"figure": [{"name": "g", "kind": "gantt"}]},
            r"figure\[0\]\.kind must .*'gantt'",
        ),
    ],
)
def test_settings_are_checked(change, message):
    assert _study(SMALL).settings[0].job["volume"] == [210.0, 400.0]
    with pytest.raises(ValueError, match=message):
        _study(SMALL | change)


WRONG = [-1, 10**30, float("nan"), True, "x", "two\nlines", [], {}, [[1, "x"]]]
SWEEP = {
    "name": "x",
    "metrics": ["start"],
    "environment": {"load": [0, 0.1]},
    "job": {"jobs": 5},
    "grid": {"algorithms": {"css": {"k": [1, 2]}}},
}
PATH = "algorithms.css.k"
CLAIM = {"text": "t", "metric": "start", "algorithm": "css", "is": "peak", "at": 2}
CLAIM |= {"along": PATH}


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_any_wrong_value_is_one_line(wrong):
    """Any value in any place is accepted, or rejected in one line."""
    whole = SMALL | {"sweep": [SWEEP], "claim": [CLAIM], "formats": ["tex"]}
    _study(copy.deepcopy(whole))
    refused = []
    for path in places(whole):
        data = copy.deepcopy(whole)
        inside = data
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = wrong
        try:
            _study(data)
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) > 15
    assert not any("\n" in message for message in refused)


def places(value, path=()):
    """Yield the path of everything in nested tables and lists."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield *path, key
        if isinstance(value[key], dict | list):
            yield from places(value[key], (*path, key))


def test_options_of_the_organization(vo):
    """Policies, problems, limits and prices of single slots follow the arguments."""
    setting = vo.sweeps["administrators_limit"][0]
    assert setting.job["limit"] == 0.94
    drawn, got = draw_cycle(setting, 2), compute(setting, 2, 3)
    free = sk.schedule_batch(drawn.slots, drawn.batch, sk.CSS)
    tight = sk.schedule_batch(drawn.slots, drawn.batch, sk.CSS, limit=0.94 * free.limit)
    assert tight.totals()["cost"] <= 0.94 * free.limit
    assert got["cost"][0, 0] == np.nanmean(tight.windows.table["cost"])

    setting = vo.sweeps["administrators_choice"][0]
    drawn, got = draw_cycle(setting, 2), compute(setting, 2, 3)
    most = sk.schedule_batch(
        drawn.slots, drawn.batch, sk.BatchSlicer(3), maximize="cost", under="time"
    )
    assert got["cost"][0, 0] == np.nanmean(most.windows.table["cost"])

    setting = vo.sweeps["amp_alp"][0]
    drawn, got = draw_cycle(setting, 2), compute(setting, 2, 3)
    pay = [job.budget / (job.nodes * job.volume / 6) for job in drawn.batch.requests]
    local = [
        job.replace(max_price=most, budget=np.inf)
        for job, most in zip(drawn.batch.requests, pay, strict=True)
    ]
    alp = sk.schedule_batch(drawn.slots, local, sk.CSS)
    assert got["alternatives"].tolist() == [
        [
            sk.schedule_batch(drawn.slots, drawn.batch, sk.CSS).count.mean(),
            alp.count.mean(),
        ]
    ]


def test_the_cost_is_that_of_the_whole_batch_or_nothing(vo):
    setting = vo.sweeps["figure4"][-1]
    got = compute(setting, 0, 12)
    failed = got["failed"][:, 0] == 1
    assert failed.any()
    assert not failed.all()
    assert (np.isnan(got["total_cost"][:, 0]) == failed).all()


def test_a_flow_is_scheduled_cycle_by_cycle(vo):
    setting = vo.sweeps["figure1"][0]
    css, slicer = (
        PolicyRun.from_algorithm(algorithm) for algorithm in setting.algorithms
    )
    run = run_flow(setting, css, 0)
    assert run.times.tolist() == [0, 600, 1200]
    for at, schedule in zip(run.times, run.schedules, strict=True):
        windows = schedule.windows
        assert np.nanmin(windows.start) >= at
        assert np.nanmax(windows.finish) <= at + 600
    prices = [schedule.slots["price"].mean() for schedule in run.schedules]
    assert len(set(prices)) == 3  # the owners draw new prices in each cycle
    assert max(run_flow(setting, slicer, 0).schedules[1].piece) == 2


def test_the_pictures_of_the_paper(vo):
    """All alternatives outlined, the chosen ones filled; a colour a sub-batch."""
    records = {record["name"]: record for record in vo.figures}
    drawn = {
        name: BATCH.draw(records[name].get("kind"), vo, records[name]).axes[0]
        for name in ("figure-1", "figure-2", "figure-3")
    }
    setting = vo.sweeps["figure2"][0]
    cycle = draw_cycle(setting, 0)
    schedule = sk.schedule_batch(cycle.slots, cycle.batch, sk.CSS)
    printed = {text.get_text() for text in drawn["figure-2"].texts}
    assert {"1", "2", "3", "4", "5"} <= printed
    boxes = [
        len(each.get_paths())
        for each in drawn["figure-2"].collections
        if each.get_zorder() >= 5
    ]
    assert sum(boxes) == len(schedule.alternatives.parts)
    css = run_flow(
        setting := vo.sweeps["figure1"][0],
        PolicyRun.from_algorithm(setting.algorithms[0]),
        0,
    )
    printed = {text.get_text() for text in drawn["figure-1"].texts}
    for jobs, failures in zip(css.throughput, css.failures, strict=True):
        assert f"{jobs} scheduled\n{failures} returned" in printed
    lots = [
        sum(len(each.get_paths()) > 0 for each in drawn[name].collections)
        for name in ("figure-1", "figure-3")
    ]
    assert lots[1] == lots[0] + 6  # nine sub-batches, not three


class Lines:
    """An experiment with columns defined by the file: a straight line and noise."""

    def check(self, setting):
        return setting

    def run(self, setting, first, last):
        cycles = np.arange(first, last)
        job = setting.job
        value = job["slope"] * job["x"] + job["tilt"] * job["y"] + 0.0 * cycles
        # Noise of the cycle, common to both ends of a step, and independent noise.
        noise = 100.0 * cycles + job["noise"] * ((cycles + job["x"]) % 2)
        return {"value": (value + noise)[:, None]}


LINES = Lines()


@pytest.mark.parametrize(
    ("job", "along", "kind", "holds", "printed"),
    [
        ({"slope": 1}, "job.x", "rising", True, ""),
        ({"slope": 1}, None, "rising", True, ""),
        ({"slope": 1}, "job.x", "falling", False, "not in 4 of 4 steps, 4 of them"),
        ({"slope": 1, "tilt": -1}, "job.y", "falling", True, ""),
        ({"slope": 1, "tilt": -1}, "job.x", "peak", True, "at 3"),
        ({"slope": -0.1, "noise": 9}, "job.x", "rising", None, "0 of them by more"),
        (
            {"slope": -0.1},
            "job.x",
            "rising",
            False,
            "from x = 1, y = 5 to x = 2, y = 5",
        ),
    ],
)
def test_claims_along_one_varied_value(tmp_path, job, along, kind, holds, printed):
    claim = {"text": "t", "metric": "value", "algorithm": "a", "is": kind, "at": 3}
    study = _study(
        {
            "name": "lines",
            "experiment": f"{__name__}:LINES",
            "cycles": 10,
            "chunk": 3,
            "metrics": ["value"],
            "job": {"slope": 0, "tilt": 0, "noise": 0} | job,
            "algorithms": {"a": {}},
            "grid": {"job": {"x": [1, 2, 3], "y": [5, 6]}},
            "claim": [claim | ({"along": along} if along else {})],
        }
    )
    summary = studies.Summary(studies.run(study, out=tmp_path))
    (verdict,) = verdicts(summary)
    assert verdict.holds is holds
    assert printed in verdict.details


class Rivals:
    """One rival ahead by a grid's value in every cycle, with noise of mean zero."""

    def check(self, setting):
        return setting

    def run(self, setting, first, last):
        cycles, job = np.arange(first, last), setting.job
        noise = job["noise"] * np.where(cycles % 2, 1.0, -1.0)
        if job["lead"] > 99:  # an algorithm without results
            noise *= np.nan
        value = np.stack([job["lead"] + noise, 0 * cycles, 5 + 0 * cycles], axis=1)
        return {"value": value, "double": value * np.array([2, 2, 4])}


RIVALS = Rivals()


@pytest.mark.parametrize(
    ("leads", "claim", "cycles", "holds", "printed"),
    [
        ([1, 2], {"is": "most", "among": ["b"]}, 8, True, "lead = 1: 1 and 0; in 8"),
        ([2, 1], {"is": "most", "among": ["b"]}, 8, True, "lead = 1: 1 and 0; in 8"),
        (
            [9, -9],
            {"is": "most", "among": ["b"]},
            8,
            False,
            "not in 1 of 2 settings, 1",
        ),
        (
            [-9, 9],
            {"is": "most", "among": ["b"]},
            8,
            False,
            "not in 1 of 2 settings, 1",
        ),
        ([9, 0.1], {"is": "most", "among": ["b"]}, 8, None, "lead = 0.1: 0.1 and 0"),
        ([9, -0.1], {"is": "most", "among": ["b"]}, 8, None, "1 of 2 settings, 0"),
        ([9, 100], {"is": "most", "among": ["b"]}, 8, None, "lead = 100: none and 0"),
        ([-9, 100], {"is": "most", "among": ["b"]}, 8, False, "not in 1 of 2 settings"),
        ([9], {"is": "most", "among": ["b"]}, 2, None, "9 and 0; in 2 of 2 cycles"),
        ([9], {"is": "least", "among": ["b"]}, 2, None, "9 and 0; in 0 of 2 cycles"),
        ([9], {"is": "most", "among": ["b"]}, 6, True, "9 and 0; in 6 of 6 cycles"),
        ([9, 1], {"is": "above", "at": 5}, 8, False, "lead = 1: 1"),
        ([9, 5], {"is": "above", "at": 5}, 8, None, "lead = 5: 5"),
        ([4, 5], {"is": "near", "at": 4, "within": 3}, 8, True, "lead = 5: 5"),
        ([4, 5], {"is": "near", "at": 4, "within": 1}, 8, None, "lead = 5: 5"),
        ([4, 5], {"is": "near", "at": 4, "within": 3}, 5, None, "lead = 5"),
        ([4], {"is": "like", "among": ["c"], "within": 0.5}, 8, True, "4 and 5"),
        ([3], {"is": "like", "among": ["c"], "within": 0.1}, 8, False, "3 and 5"),
        ([7], {"is": "like", "among": ["c"], "within": 0.1}, 8, False, "7 and 5"),
        ([6], {"is": "like", "among": ["c"], "within": 0.5}, 8, True, "6 and 5"),
        ([4], {"is": "like", "among": ["c"], "within": 0.2}, 8, None, "4 and 5"),
        (
            [8],
            {"is": "like", "among": ["c"], "times": 2, "within": 0.5},
            8,
            True,
            "10",
        ),
        # Advantages over c: 1 - 4/5 and 1 - 8/20, and the reverse.
        (
            [4],
            {"is": "gaining", "among": ["c"], "metric": "double", "other": "value"},
            8,
            True,
            "60.00% and 20.00%",
        ),
        ([4], {"is": "gaining", "among": ["c"], "other": "double"}, 8, False, "20.00%"),
        ([4], {"is": "gaining", "among": ["c"], "other": "value"}, 8, False, "20.00%"),
        ([100], {"is": "gaining", "among": ["c"], "other": "double"}, 8, None, "none"),
        ([1, 9], {"is": "rising"}, 8, True, ""),
        ([1, 9], {"is": "rising"}, 2, None, "from lead = 1 to lead = 9 by +8 ±0 in 2"),
        ([1, 9], {"is": "falling"}, 1, None, "0 of them by more"),
        ([1, 9], {"is": "peak", "at": 9}, 8, True, "at 9"),
        ([1, 9], {"is": "peak", "at": 9}, 2, None, "at 9"),
    ],
)
def test_claims_hold_in_every_setting_by_more_than_their_errors(
    tmp_path, leads, claim, cycles, holds, printed
):
    data = {
        "name": "rivals",
        "experiment": f"{__name__}:RIVALS",
        "metrics": ["value", "double"],
        "job": {"noise": 0.5},
        "algorithms": {"a": {}, "b": {}, "c": {}},
        "grid": {"job": {"lead": leads}},
        "claim": [{"text": "t", "metric": "value", "algorithm": "a"} | claim],
    }
    if len(leads) == 1:
        data |= {"job": {"noise": 0.5, "lead": leads[0]}, "grid": {}}
    study = _study(data)
    (verdict,) = verdicts(studies.Summary(studies.run(study, cycles, out=tmp_path)))
    assert (verdict.holds, printed in verdict.details) == (holds, True), verdict.details


def test_every_compared_number_has_a_remark_for_a_mismatch(vo):
    for record in vo.compare:
        for name in record["against"]:
            names = {name, record.get("best")}
            assert any(
                remark["kind"] == "unmatched"
                and record["metric"] in remark["metrics"]
                and names & set(remark["algorithms"])
                for remark in vo.remarks
            ), record


def test_the_report_compares_with_the_paper(vo, tmp_path):
    chosen = ("table1", "table3", "figure5")
    study = replace(
        vo,
        settings=tuple(s for s in vo.settings if s.sweep in chosen),
        compare=tuple(c for c in vo.compare if c["sweep"] in chosen),
        claims=tuple(c for c in vo.claims if c["sweep"] in chosen),
        figures=tuple(f for f in vo.figures if f["sweep"] in chosen),
    )
    campaign = studies.run(study, 6, out=tmp_path, workers=2)
    summary = studies.Summary(campaign)
    rows = {(r.metric, r.algorithm): r for r in summary.comparisons if r.best is None}
    assert rows["processor_time", "plain"].published == 150.1
    assert rows["cost", "css"].published == 1248.4
    columns = compute(vo.sweeps["table3"][0], 0, 6)
    got = summary.estimate(vo.sweeps["table3"][0], "plain", "processor_time")
    assert got.mean == pytest.approx(columns["processor_time"][:, 2].mean())
    assert len(verdicts(summary)) == len(study.claims)
    assert {each.text for each in verdicts(summary)} == {
        claim["text"] for claim in study.claims
    }
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=200))
    text = stream.getvalue()
    answers = ("yes  ", "NO   ", "open ")
    lines = [line for line in text.splitlines() if line.startswith(answers)]
    assert len(lines) == len(study.claims)
    assert any("curves cross: between" in line for line in lines)
    assert "contradicts itself" in text
    names = {path.name for path in write_report(summary)}
    assert names == {"summary.csv", "comparison.csv", "report.txt", "figure-5.png"}
    # One data set: metrics that a sweep does not measure are missing.
    table = pd.read_parquet(tmp_path / "cycles")
    assert set(study.columns) <= set(table.columns)
    assert table[table["setting"] == "table3"]["cost"].isna().all()
