"""The study of communities: division into chunks, columns, claims and report."""

from __future__ import annotations

import copy
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from trace_files import swf_line

import slotkern as sk
from slotkern import studies
from slotkern.studies.claims import verdicts
from slotkern.studies.communities import workload_of_cycle
from slotkern.studies.experiment import compute, experiment_of
from slotkern.studies.load import _study
from slotkern.studies.report import print_report, write_report
from slotkern.studies.summary import Median


@pytest.fixture(scope="module")
def casa():
    return studies.load_study("casa")


SMALL = {
    "name": "small",
    "experiment": "community",
    "chunk": 2,
    "metrics": ["completion", "waiting", "messages"],
    "medians": ["waiting"],
    "environment": {"preset": "heavy", "jobs": 300, "nodes": 8},
    "algorithms": {
        "ind": {"scenario": "ind"},
        "ring": {"scenario": "dec-p", "neighbours": 2, "loss": 0.1, "policy": "easy"},
        "ring_common": {
            **{"scenario": "dec-p", "neighbours": 2, "loss": 0.1, "policy": "easy"},
            "common": True,
        },
    },
}


def test_results_do_not_depend_on_the_division_into_chunks(tmp_path):
    study = _study(SMALL)
    (setting,) = study.settings
    whole = compute(setting, 0, 5)
    first, last = compute(setting, 0, 2), compute(setting, 2, 5)
    for name, values in whole.items():
        parts = np.concatenate([first[name], last[name]])
        assert np.array_equal(values, parts, equal_nan=True)
    one = studies.run(study, 5, out=tmp_path / "one")
    two = studies.run(study, 3, out=tmp_path / "two", workers=2)
    two = studies.run(study, 5, out=tmp_path / "two", workers=2)  # goes on
    for chunk in one.all_chunks():
        here, there = one.read(chunk), two.read(chunk)
        for name, values in here.items():
            assert np.array_equal(values, there[name], equal_nan=True)


def test_columns_are_those_of_the_simulations():
    (setting,) = _study(SMALL).settings
    got = compute(setting, 3, 4)
    jobs, nodes = workload_of_cycle(setting, 3)
    assert (len(jobs), len(nodes)) == (300, 8)
    alone = sk.simulate_community(jobs, nodes, "ind")
    assert got["waiting"][0, 0] == alone.metrics()["waiting"]
    assert got["messages"][0, 0] == 0
    # Failed jobs are left out of the means of their own scenario only.
    waits = got["waiting"][0]
    assert waits[1] != waits[2]
    assert got["completion"][0, 1] == got["completion"][0, 2]
    assert not np.array_equal(jobs, workload_of_cycle(setting, 4).jobs)


def test_jobs_of_a_trace(tmp_path):
    path = tmp_path / "small.swf"
    lines = [
        swf_line(i + 1, submit=60 * i, run_time=300, allocated=1 + i % 4)
        for i in range(40)
    ]
    path.write_text("; MaxProcs: 16\n" + "".join(line + "\n" for line in lines))
    environment = {"trace": str(path), "homes": 4, "sample": 3, "squeeze": 0.5}
    (setting,) = _study(SMALL | {"environment": environment}).settings
    sizes = [len(workload_of_cycle(setting, cycle).jobs) for cycle in range(4)]
    assert sizes == [14, 13, 13, 14]
    assert compute(setting, 0, 2)["completion"].shape == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"environment": {"preset": "casas"}}, r"environment\.preset.*casas"),
        ({"environment": {"jobs": -1}}, r"environment\.jobs.*-1"),
        ({"environment": {"nodes": 0}}, r"environment\.nodes.*0"),
        ({"environment": {"size": 1}}, r"environment\.size: unknown key"),
        ({"environment": {"trace": "no.swf"}}, r"environment\.trace: no\.swf: No such"),
        ({"job": {"nodes": 1}}, r"job\.nodes: unknown key"),
        ({"metrics": ["wait"]}, r"metrics must be one of .*; got 'wait'"),
        ({"medians": ["slowdown"]}, r"medians must be one of completion.*'slowdown'"),
        ({"algorithms": {"a": {}}}, r"a\.scenario must .* got None"),
        ({"algorithms": {"a": {"scenario": "dec"}}}, r"a\.scenario must .* got 'dec'"),
        (
            {"algorithms": {"a": {"scenario": "ind", "policy": "x"}}},
            r"algorithms\.a\.policy must .* got 'x'",
        ),
        (
            {"algorithms": {"a": {"scenario": "ind", "loss": 0.1}}},
            r"algorithms\.a\.loss: unknown key",
        ),
        (
            {"algorithms": {"a": {"scenario": "dec-p", "loss": 2}}},
            r"algorithms\.a: loss must be below 1",
        ),
        (
            {"algorithms": {"a": {"scenario": "cen", "host": 26}}},
            r"algorithms\.a: host must be at most 7",
        ),
        (
            {"algorithms": {"a": {"scenario": "dec-p", "neighbours": [[9]]}}},
            r"algorithms\.a: neighbours: a neighbour of node 0 is 9",
        ),
        (
            {"algorithms": {"a": {"scenario": "ind", "common": 1}}},
            r"algorithms\.a\.common: 1 is not true or false",
        ),
    ],
)
def test_wrong_settings_name_the_key(change, message):
    with pytest.raises(ValueError, match=message):
        _study(copy.deepcopy(SMALL) | change)


CLAIM = {"text": "t", "metric": "waiting", "algorithm": "ind"}


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"is": "near"}, r"claim\[0\]\.at"),
        ({"is": "near", "at": 1, "within": -1}, r"claim\[0\]\.within.*-1"),
        ({"is": "least", "among": ["ring"], "times": 0}, r"claim\[0\]\.times.*0"),
        ({"is": "above", "at": 1, "of": "mode"}, r"claim\[0\]\.of must .* got 'mode'"),
        (
            {"is": "above", "at": 1, "of": "median", "metric": "messages"},
            r"claim\[0\]\.metric must be one of waiting.*'messages'",
        ),
    ],
)
def test_wrong_claims_name_the_key(claim, message):
    with pytest.raises(ValueError, match=message):
        _study(SMALL | {"claim": [CLAIM | claim]})


def test_claims_on_means_medians_and_numbers(tmp_path):
    claims = [
        {"is": "least", "among": ["ring"], "times": 1000},
        {"is": "most", "among": ["ring"], "times": 1000},
        {"is": "most", "among": ["ring"], "of": "median"},
        {"is": "near", "at": 0, "within": 1e9},
        {"is": "above", "at": -1, "of": "median"},
        {"is": "below", "at": -1e6, "within": 0.5},
    ]
    study = _study(SMALL | {"claim": [CLAIM | claim for claim in claims]})
    summary = studies.Summary(studies.run(study, 20, out=tmp_path))
    found = verdicts(summary)
    (setting,) = study.settings
    ind, ring = (compute(setting, 0, 20)["waiting"][:, k] for k in (0, 1))
    longer = bool(np.median(ind) >= np.median(ring))
    holds = [True, False, longer, True, True, False]
    assert [verdict.holds for verdict in found] == holds
    assert found[0].details.endswith("; in 20 of 20 cycles")
    assert found[2].details.endswith(f"; in {(ind >= ring).sum()} of 20 cycles")
    assert found[4].details == f"{np.median(ind):.4g}"
    assert summary.median(setting, "ind", "waiting").middle == np.median(ind)


def test_intervals_of_medians_are_those_of_the_binomial_law():
    for count in (1, 5, 6, 9, 40, 401):
        values = np.arange(count, dtype=np.float64)
        found = Median.from_values(values[::-1])
        assert (found.middle, found.count) == ((count - 1) / 2, count)
        if count < 6:
            assert math.isnan(found.low)
            continue
        below = int(found.low)  # number of values below the interval, and above it
        assert found.high == count - 1 - below
        tail = [
            sum(math.comb(count, i) for i in range(k + 1)) / 2**count
            for k in (below, below + 1)
        ]
        assert tail[0] <= 0.025 < tail[1]
    none = Median.from_values(np.array([np.nan, 3.0]))
    assert (none.middle, none.count) == (3.0, 1)
    assert Median.from_values(np.full(2, np.nan)).count == 0
    same = Median.from_values(np.full(400_000, 2.0))
    assert (same.low, same.high) == (2.0, 2.0)


@pytest.fixture(scope="module")
def summary(casa, tmp_path_factory):
    """A few cycles of the whole study."""
    folder = tmp_path_factory.mktemp("casa")
    return studies.Summary(studies.run(casa, 6, out=folder))


def test_results_that_follow_from_the_labels_hold(summary):
    base = summary.study.settings[0]

    def mean(algorithm, metric):
        return summary.estimate(base, algorithm, metric).mean

    assert abs(mean("ind", "completion") - 0.67) < 0.05
    assert mean("dec_g", "completion") > 0.99
    assert abs(mean("dec_p", "completion") - 0.955) < 0.025
    assert mean("dec_g", "request") == 26
    assert mean("dec_p", "request_others") == 6
    assert abs(mean("dec_g", "own") - 0.038) < 0.004
    assert abs(mean("dec_g_late", "own") - 0.06) < 0.006
    assert abs(mean("dec_p", "own") - 0.14) < 0.01
    holds = {verdict.text: verdict.holds for verdict in verdicts(summary)}
    assert len(holds) == len(summary.study.claims)
    assert holds["Dec-G completes more than 99%"]
    assert holds["Dec-G keeps 6% of the jobs at home, within a point"] is False
    assert holds["Jobs wait longer in Ind than in Dec-G"] is not False


def test_the_report_names_unmatched_numbers(summary, tmp_path):
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=200))
    text = stream.getvalue()
    for row in summary.comparisons:
        assert row.agrees is not False or row.remarks, row.label
    assert "base: medians of the cycles [95% confidence intervals]" in text
    assert "neighbours: medians of the cycles" in text
    assert "Contradictions within the papers" in text
    assert text.count("INFORM, Dec-") >= 2
    folder = summary.campaign.folder
    study = replace(summary.study, formats=("png", "tex", "csv"))
    campaign = replace(summary.campaign, study=study)
    names = {path.name for path in write_report(studies.Summary(campaign))}
    pictures = {f"figure-{k}.png" for k in range(1, 6)}
    assert pictures | {"figure-4-common.png", "flow-dec-g.png"} <= names
    assert {"medians-base.tex", "medians-neighbours.tex", "summary.csv"} <= names
    heading, *lines = (folder / "summary.csv").read_text().splitlines()
    assert "median_low" in heading
    assert len(lines) == sum(
        len(s.metrics) * len(s.algorithms) for s in summary.study.settings
    )


@pytest.mark.parametrize("kind", ["flow", "states"])
def test_pictures_name_their_setting(kind):
    pytest.importorskip("matplotlib")
    study = _study(SMALL | {"grid": {"environment": {"jobs": [40, 60]}}})
    figure = experiment_of("community").draw(kind, study, {"name": "x"})
    assert figure.axes[0].get_title() == "ind, jobs = 40"
