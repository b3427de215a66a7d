"""The output of ``sacct -P`` of two versions of Slurm as a trace."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from command_line import refused, run
from recorded_texts import Recorded

import slotkern as sk


def test_sacct_is_a_trace(recorded: Recorded) -> None:
    trace = sk.read_trace(recorded.path("sacct.txt"), zone="UTC")
    first = dt.datetime.fromtimestamp(recorded.made, dt.UTC)
    assert str(trace.clock) == f"seconds since {first:%FT%T}+00:00 (UTC)"
    # Until 22.05 the CPUs of waiting jobs count as allocated.
    is_old = recorded.version == "22.05"
    waits = [8, 4] if is_old else [-1, -1]
    late, long, last = (2, 4, 84) if is_old else (4, 5, 85)
    fields = ["submit", "wait", "run_time", "allocated", "requested_time", "status"]
    assert trace.jobs[fields].tolist() == [
        (0, 0, -1, 8, 1800, -1),  # runs
        (0, 0, -1, 1, 600, -1),
        (0, 0, -1, 16, 86400, -1),
        (0, -1, -1, waits[0], 3600, -1),
        *[(0, 0, -1, 4, 1200, -1)] * 3,  # an array
        (0, -1, -1, waits[1], 3600, -1),  # an array that waits
        (late, 0, long, 4, 1800, 1),
        (late, 0, 0, 1, 1800, 0),  # failed
        (late, 0, last, 2, 60, 0),  # reached its limit
        (late, 1, 0, waits[1], 1800, 5),  # cancelled while it waited
        (late, -1, -1, waits[1], -1, -1),  # has the limit of its partition
        (late, 1, 0, 2, 1800, 5),  # cancelled while it ran
    ]
    ids = [trace.words["job_id"][k] for k in trace.jobs["job_id"]]
    assert ids[3:8] == ["8", "4_1", "4_2", "4_3", "7_[1-9]"]
    cleaned = sk.read_trace(
        recorded.path("sacct.txt"), clean=("unknown", "zero-run"), zone="UTC"
    )
    assert sk.replay(cleaned, cluster=64).policy == "easy"


def test_an_empty_output_of_sacct_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.touch()
    for zone in (None, "Europe/Berlin"):
        with pytest.raises(ValueError, match=r"sacct\.txt: the file is empty$"):
            sk.read_trace(path, zone=zone)
    path.write_text("Slurm accounting storage is disabled\n")
    with pytest.raises(ValueError, match="zone is for the output of sacct -P, but"):
        sk.read_trace(path, zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("Submit", "Unknown", "Submit: 'Unknown' is no time"),
        ("Start", "2026-11-28T19:00:00", "Start: '2026-11-28T19:00:00' is before"),
        ("End", "2026-11-28T19:10:04", "End: '2026-11-28T19:10:04' is before Start"),
        ("State", "", "State: '' is no state"),
        ("Timelimit", "20", "Timelimit: '20' is no length"),
        ("AllocCPUS", "-16", "AllocCPUS: '-16' is no whole number"),
        ("Timelimit", None, "12 fields, but 13 headings"),
    ],
)
def test_malformed_sacct(
    tmp_path: Path, recorded: Recorded, field: str, value: str | None, message: str
) -> None:
    path = tmp_path / "jobs.txt"
    lines = recorded.text("sacct.txt").splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("11|"))
    names, cells = lines[0].split("|"), lines[at].split("|")
    cells[names.index(field)] = value or ""
    lines[at] = "|".join(cells[:-1] if value is None else cells)
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=rf"jobs\.txt, line {at + 1}") as caught:
        sk.read_trace(path)
    assert message in str(caught.value)
    if value is not None:
        assert sk.read_trace(path, errors="skip").skipped == 1
    lines[0] = lines[0].replace("Submit", "Sent")
    path.write_text("\n".join(lines[:2]))
    with pytest.raises(ValueError, match=r"jobs\.txt, line 1: there is no Submit"):
        sk.read_trace(path)


def test_fractions_and_trailing_separators(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_text(
        "JobIDRaw|Submit|Start|ElapsedRaw|State|AllocTRES|TimelimitRaw|\n"
        "7|100|150|60|COMPLETED|billing=9,cpu=2K,mem=4G|30|\n"
    )
    fields = ["wait", "run_time", "allocated", "requested_time"]
    assert sk.read_trace(path).jobs[fields].tolist() == [(50, 60, 2048, 1800)]
    with pytest.raises(ValueError, match="zone is for the output of sacct"):
        sk.read_trace(tmp_path / "a.swf", zone="UTC")


def test_processors_have_one_unit(tmp_path: Path) -> None:
    """A cancelled job of 16 CPUs on 2 nodes has 16 processors, not 2."""
    path = tmp_path / "jobs"
    path.write_text(
        "JobID|Submit|Start|End|State|AllocCPUS|NNodes|ReqCPUS|TimelimitRaw\n"
        "1|100|Unknown|150|CANCELLED|0|2|16|UNLIMITED\n"
    )
    fields = ["allocated", "requested", "requested_time"]
    assert sk.read_trace(path).jobs[fields].tolist() == [(-1, 16, -1)]
    given = path.read_text()
    path.write_text(given.replace("UNLIMITED", "30m"))
    with pytest.raises(ValueError, match="line 2, TimelimitRaw: '30m' is no whole"):
        sk.read_trace(path)
    path.write_text(given.replace("AllocCPUS", "Comment"))
    assert sk.read_trace(path).jobs[fields].tolist() == [(2, -1, -1)]


def test_commands_of_sacct(recorded: Recorded) -> None:
    words = ("--clean", "unknown", "--clean", "zero-run")
    path = recorded.path("sacct.txt")
    for command, *more in (("trace",), ("replay", "--cluster", 64)):
        done = run(command, path, *words, *more)
        assert done.exit_code == 0, done.stderr
        assert "local dates are read as UTC" in done.stderr
        assert "waiting job arrays, each read as one job: 1" in done.stderr
        zoned = ("--zone", "Europe/Berlin")
        done = run(command, path, *words, *more, *zoned)
        assert "read as UTC" not in done.stderr
        assert done.exit_code == 0, done.stderr
    refused(run("trace", path, "--zone", "Mars"), "'Mars' is not known")
