"""Tests that defaults and omitted data are logged by the logger ``slotkern``."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slotkern as sk


def jobs() -> np.ndarray:
    """Return a valid job, one without submission and one without requested time."""
    rows = np.zeros(3, sk.SWF)
    rows["job"], rows["submit"] = [1, 2, 3], [0, -1, 5]
    rows["run_time"], rows["allocated"], rows["requested_time"] = 10, 2, [20, 20, -1]
    return rows


def logged(caplog: pytest.LogCaptureFixture, level: int) -> str:
    """Return the logged messages of a level."""
    records = [r for r in caplog.records if r.name == "slotkern"]
    return "\n".join(r.getMessage() for r in records if r.levelno == level)


def test_omitted_data_is_logged_as_warning(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("INFO", "slotkern")
    path = tmp_path / "some.swf"
    sk.write_trace(path, jobs())
    path.write_text(path.read_text() + "1 2 3\n")
    trace = sk.read_trace(path, errors="skip")
    assert trace.skipped == 1
    assert "1 lines left out: line 4" in logged(caplog, logging.WARNING)
    sk.clean_trace(trace, "unknown")
    sk.replay(trace)
    sk.resample_weeks(trace, seed=1)
    warnings = logged(caplog, logging.WARNING)
    assert f"{path}: jobs left out, cut or moved: unknown 1" in warnings
    assert "replay under easy: jobs left out: submission unknown 1" in warnings
    assert "without 1 jobs of unknown submission" in warnings
    assert "one week only" in warnings
    infos = logged(caplog, logging.INFO)
    assert (
        "no MaxProcs: the cluster has 4 processors, the peak use of the jobs" in infos
    )
    assert "1 jobs have no requested time" in infos


def test_resampling_several_weeks_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = jobs()[[0, 2]]
    rows["submit"][1] = 8 * 86400
    sk.resample_weeks(rows, seed=1)
    assert logged(caplog, logging.WARNING) == ""


def test_defaults_are_logged_as_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "slotkern")
    machine = sk.Machine({"name": ["a", "b"], "price": [1, 2]})
    busy = {"node": ["a", "b"], "start": [1, 20], "end": [np.nan, 30]}
    slots = sk.free_slots(machine, busy, start=0, end=9)
    schedule = sk.schedule_batch(slots, [sk.Request(1, 1)])
    schedule.execute()
    sk.run_cycles(slots, [sk.Request(1, 1)], [0], length=1)
    assert logged(caplog, logging.WARNING) == ""
    for words in (
        "machine has no column 'performance': it is 1 of each node",
        "1 of 2 busy spans lie outside the horizon",
        "1 of 2 busy spans have no end: busy for ever",
        "no limit on cost given",
        "lengths are drawn from [0.2, 1], seed 0",
        "1 cycles: until all jobs have had a turn",
    ):
        assert words in logged(caplog, logging.INFO)
    assert "'price'" not in logged(caplog, logging.INFO)


def test_logger_prints_nothing_by_default() -> None:
    code = "import slotkern as sk; sk.Machine({'name': ['a']})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == done.stderr == ""
