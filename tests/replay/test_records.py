"""Records of a trace: preceding jobs, parts of jobs, sizes of partitions, frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import slotkern as sk
from slotkern.commands.main import app

POLICIES = [
    *("fcfs", "easy", "conservative", "easy-sjf", "easy-multifactor"),
    *("window-start", "window-start-compressed"),
]


def flow_of(*rows: tuple[int, float, float, int, int, float]) -> np.ndarray:
    """Return jobs from tuples (number, submit, run, width, preceding, think)."""
    jobs = np.full(len(rows), -1, sk.SWF)
    names = ["job", "submit", "run_time", "allocated", "preceding", "think_time"]
    for i, row in enumerate(rows):
        for name, value in zip(names, row, strict=True):
            jobs[name][i] = value
    return jobs


CHAIN = flow_of((1, 20, 1200, 1, -1, 0), (2, 20, 2100, 5, 1, 0), (3, 20, 900, 1, 2, 60))


@pytest.mark.parametrize("policy", [*POLICIES, "batch-slicer"])
def test_a_job_waits_for_its_preceding_job(policy: str) -> None:
    done = sk.replay(CHAIN, 16, policy)
    assert done.following == 2
    assert "2 after a preceding job" in repr(done)
    assert done.jobs["job"].tolist() == [1, 2, 3]
    free = sk.replay(CHAIN, 16, policy, preceding=False)
    assert free.following == 0
    assert (free.jobs["submit"] == 20).all()
    if policy != "batch-slicer":  # under which jobs wait for a cycle
        assert done.jobs["submit"].tolist() == [20, 1220, 3380]
        assert done.jobs["start"].tolist() == [20, 1220, 3380]
        assert (free.jobs["start"] == 20).all()
    assert (done.jobs["start"] >= done.jobs["submit"]).all()
    pause = np.array([0, 60])
    assert (done.jobs["submit"][1:] >= done.jobs["end"][:-1] + pause).all()
    assert (done.jobs["wait"] == done.jobs["start"] - done.jobs["submit"]).all()


@pytest.mark.parametrize("policy", [*POLICIES, "batch-slicer"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_policy_starts_a_job_before_its_predecessor_ends(
    policy: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 12))
    before = [int(rng.integers(-1, i)) + 1 if i else 0 for i in range(size)]
    jobs = flow_of(
        *(
            (
                i + 1,
                float(rng.integers(30)),
                float(rng.integers(20)),
                1,
                before[i] or -1,
                2,
            )
            for i in range(size)
        )
    )
    jobs["allocated"] = rng.integers(1, 5, size)
    jobs["requested_time"] = jobs["run_time"] + rng.integers(0, 5, size)
    done = sk.replay(jobs, 4, policy)
    assert sorted(done.jobs["job"].tolist()) == list(range(1, size + 1))
    assert (np.diff(done.jobs["submit"]) >= 0).all()
    end = dict(zip(done.jobs["job"].tolist(), done.jobs["end"].tolist(), strict=True))
    for job, row, submit, start in zip(
        *(done.jobs[name].tolist() for name in ("job", "row", "submit", "start")),
        strict=True,
    ):
        preceding = int(jobs["preceding"][row])
        least = end[preceding] + 2 if preceding > 0 else 0
        assert submit == max(jobs["submit"][row], least), job
        assert start >= submit
    nodes = [set(done.nodes(i).tolist()) for i in range(size)]
    for i in range(size):
        for j in range(i):
            apart = done.jobs["end"][j] <= done.jobs["start"][i]
            apart |= done.jobs["end"][i] <= done.jobs["start"][j]
            assert apart or nodes[i].isdisjoint(nodes[j])


def test_missing_predecessors(caplog: pytest.LogCaptureFixture) -> None:
    jobs = CHAIN.copy()
    jobs["run_time"][0] = -1  # unknown, so the job is not replayed
    done = sk.replay(jobs, 16)
    assert done.following == 1
    assert done.jobs["submit"].tolist() == [20, 2180]
    assert "1 jobs do not wait for their preceding job, which is not" in caplog.text
    jobs = CHAIN.copy()
    jobs["partition"] = [1, 2, 2]
    done = sk.replay(jobs, {"site": [1, 2], "processors": [1, 9]})
    assert done.following == 1
    assert sorted(done.jobs["start"].tolist()) == [20, 20, 2180]
    assert "on another site" in caplog.text
    jobs = CHAIN.copy()
    jobs["preceding"] = [3, 1, 2]
    with pytest.raises(ValueError, match=r"job 1 waits for a cycle .*preceding=False"):
        sk.replay(jobs, 16)


def test_weeks_keep_chains_within_a_week() -> None:
    week = 7 * 86400
    jobs = flow_of(
        (7, 0, 50, 1, -1, 0), (9, 10, 50, 1, 7, 5), (8, week + 5, 50, 1, 7, 5)
    )
    flow = sk.resample_weeks(jobs, seed=1, weeks=9)
    assert flow.jobs["job"].tolist() == list(range(1, len(flow) + 1))
    rows = flow.jobs
    late = rows["preceding"] > 0
    assert (rows["preceding"][late] == rows["job"][late] - 1).all()
    assert late.sum() == (rows["submit"] % week == 10).sum() > 0
    assert sk.replay(flow, 4).following == late.sum()
    with pytest.raises(ValueError, match="weeks must be at most 1000000"):
        sk.resample_weeks(jobs, seed=1, weeks=10**9)
    with pytest.raises(ValueError, match=r"weeks drawn have [\d,]+ jobs, more than"):
        sk.resample_weeks(np.repeat(jobs, 40), seed=1, weeks=10**6)


PARTS = """\
; MaxProcs: 10
1 0 10 300 8 -1 -1 8 600 -1 1 1 1 1 1 1 -1 -1
1 0 10 100 8 -1 -1 8 600 -1 2 1 1 1 1 1 -1 -1
1 -1 50 100 8 -1 -1 8 600 -1 2 1 1 1 1 1 -1 -1
1 -1 60 100 8 -1 -1 8 600 -1 3 1 1 1 1 1 -1 -1
2 20 0 0 4 -1 -1 4 600 -1 5 2 1 1 1 1 -1 -1
3 20 0 100 4 -1 -1 4 600 -1 3 2 1 1 1 1 -1 -1
"""


def test_parts_of_a_job_and_cancelled_jobs(tmp_path: Path) -> None:
    path = tmp_path / "parts.swf"
    path.write_text(PARTS)
    trace = sk.read_trace(path, clean=("partial", "cancelled"))
    assert trace.jobs["job"].tolist() == [1, 3]  # a part without a whole job is kept
    assert trace.repairs == {"partial": 3, "cancelled": 1}
    done = sk.replay(sk.read_trace(path))
    assert done.jobs["job"].tolist() == [1, 2, 3]
    assert done.dropped == {"part of a checkpointed job": 3}
    found = CliRunner().invoke(
        app, ["replay", str(path), "--clean", "partial", "--clean", "cancelled"]
    )
    assert found.exit_code == 0
    assert "2 jobs on 10 processors; partial: 3; cancelled: 1" in found.output
    summary = CliRunner().invoke(app, ["trace", str(path)])
    assert "at most 12 processors in use at once" in summary.output
    assert "load 1400.0 %" in summary.output


def test_a_trace_without_a_valid_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.swf"
    path.write_text("1 2 3\nfour five\n")
    with pytest.raises(
        ValueError, match=r"leaves no job: all 2 lines .* line 1: 3 fie"
    ):
        sk.read_trace(path, errors="skip")
    for command in ("trace", "replay"):
        done = CliRunner().invoke(app, [command, str(path), "--errors", "skip"])
        assert done.exit_code == 2
        assert "leaves no job" in done.stderr


GRID = """\
; MaxProcs: 200{sizes}
1 0 -1 1000 1 -1 -1 1 2000 -1 -1 1 -1 -1 -1 1 -1 -1
2 0 -1 1000 1 -1 -1 1 2000 -1 -1 1 -1 -1 -1 2 -1 -1
3 1 -1 1000 1 -1 -1 1 2000 -1 -1 2 -1 -1 -1 2 -1 -1
"""


def test_partitions_of_unknown_size_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "grid.swf"
    path.write_text(GRID.format(sizes=""))
    trace = sk.read_trace(path)
    with pytest.raises(
        ValueError, match=r"of the machine's 200 processors are unknown"
    ):
        sk.replay(trace, "partitions")
    done = CliRunner().invoke(app, ["replay", str(path), "--cluster", "partitions"])
    assert done.exit_code == 2
    assert "--cluster PARTITION=PROCESSORS" in done.stderr
    given = ["replay", str(path), "--cluster", "1=128,2=72"]
    assert "200 processors in 2 sites" in CliRunner().invoke(app, given).output
    given[-1] = "1=128,2"
    wrong = CliRunner().invoke(app, given)
    assert wrong.exit_code == 2
    assert "is not PARTITION=PROCESSORS" in wrong.stderr


@pytest.mark.parametrize("sizes", [" (128+72)", " (1: 128, 2: 72)", " (2=72, 1=128)"])
def test_partition_sizes_of_the_header(tmp_path: Path, sizes: str) -> None:
    path = tmp_path / "grid.swf"
    path.write_text(GRID.format(sizes=sizes))
    done = sk.replay(sk.read_trace(path), "partitions")
    assert done.cluster.processors.tolist() == [128, 72]


COLUMNS: dict[str, Any] = {
    "submit": [0, 1, 2],
    "run_time": [10.0, 5.0, 6.0],
    "allocated": [2, 4, 2],
}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame], ids=str)
def test_tables_are_jobs(make: Any) -> None:
    done = sk.replay(make(COLUMNS), 4, "easy")
    assert done.jobs["start"].tolist() == [0, 10, 2]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"submit": [0]}, "no field 'run_time'"),
        (
            COLUMNS | {"allocated": [1.5, 1, 1]},
            "row 0: allocated 1.5 is not an integer",
        ),
        (COLUMNS | {"submit": pd.date_range("2026-01-01", periods=3)}, "holds dates"),
    ],
)
def test_invalid_tables_are_refused(columns: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        sk.replay(pd.DataFrame(columns), 4)


def test_a_missing_value_is_unknown() -> None:
    frame = pd.DataFrame(COLUMNS | {"run_time": [10, None, 6]})
    assert sk.replay(frame, 4).dropped == {"run time unknown": 1}


def test_killed_jobs_are_reported(tmp_path: Path) -> None:
    jobs = flow_of((1, 0, 100, 1, -1, 0), (2, 0, 10, 1, -1, 0))
    jobs["requested_time"], jobs["status"] = 50, 1
    done = sk.replay(jobs, 4)
    assert done.metrics()["killed"] == 1
    assert done.killed.tolist() == [True, False]
    assert done.swf_jobs()["status"].tolist() == [0, 1]
    done.write_csv(tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["success"].tolist() == [0, 1]
    assert sk.replay(jobs, 4, overrun="extend").metrics()["killed"] == 0
    sk.write_trace(tmp_path / "jobs.swf", jobs)
    found = CliRunner().invoke(app, ["replay", str(tmp_path / "jobs.swf")])
    assert "killed at the requested time: 1" in found.output


ALEA = """\
; 18: used_GPUs (sum over all used nodes)
; 19: soft_walltime ("expected" runtime)
; 20: required_properties (a String property)
1 1 0 3609 40 3609 33554432 40 7200 33554432 1 0 0 -1 0 -1 -1 -1 40 3609 all
2 1 0 60 1 60 33554432 1 600 33554432 1 1 0 -1 0 -1 -1 -1 1 60.5 normal
3 1 0 60 1 60 33554432 1 600 33554432 1 1 0 -1 0 -1 -1 -1 0 61 all
"""


def test_further_fields_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "alea.swf"
    path.write_text(ALEA)
    trace = sk.read_trace(path)
    assert trace.jobs["run_time"].tolist() == [3609, 60, 60]
    assert trace.jobs.dtype.names[18:] == (
        "used_GPUs",
        "soft_walltime",
        "required_properties",
    )
    assert trace.jobs["used_GPUs"].tolist() == [40, 1, 0]
    assert trace.jobs["soft_walltime"].tolist() == [3609, 60.5, 61]
    assert trace.jobs["required_properties"].tolist() == [0, 1, 0]
    assert trace.words["required_properties"] == ("all", "normal")
    assert len(sk.replay(trace, 64)) == 3
    sk.write_trace(tmp_path / "plain.swf", trace)
    assert sk.read_trace(tmp_path / "plain.swf").jobs.dtype == sk.SWF
    names = " ".join([*(sk.SWF.names or ()), "gpus", "run_time", "x-y"])
    rows = "".join(line for line in ALEA.splitlines(True) if line[0] != ";")
    path.write_text(names + "\n" + rows)
    named = sk.read_trace(path)
    assert named.jobs.dtype.names[18:] == ("gpus", "field_20", "field_21")
    path.write_text(ALEA + "4 1 0 60 1 60 1 1 600 1 1 1 0 -1 0 -1 -1 -1 0 61\n")
    with pytest.raises(ValueError, match="line 7: 20 fields, not 21"):
        sk.read_trace(path)
    assert sk.read_trace(path, errors="skip").skipped == 1
    path.write_text(ALEA.replace("60.5", "60.5 " + "9 " * 64))
    with pytest.raises(ValueError, match="line 5: 85 fields, not 21"):
        sk.read_trace(path)
    path.write_text(rows)  # without names of the further fields
    with pytest.raises(ValueError, match=r"line 1: 21 fields, not 18 .further fields"):
        sk.read_trace(path)


def test_window_policies_refuse_too_many_processors() -> None:
    with pytest.raises(
        ValueError, match=r"at most 1,048,576; the cluster has 16,777,216"
    ):
        sk.replay(CHAIN, 2**24, "window-start")
    with pytest.raises(ValueError, match="use a queue policy"):
        sk.replay(CHAIN, 2**24, "batch-slicer")
    assert len(sk.replay(CHAIN, 2**24, "easy")) == 3
