"""Campaigns: parallel, killed and resumed, on a cluster, in constant memory."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import weakref

import numpy as np
import pyarrow.parquet as parquet
import pytest
from small_study import SMALL, TWINS, contents, load_small, same

from slotkern import studies
from slotkern.studies import campaign as campaign_module


@pytest.fixture
def small(tmp_path):
    return load_small(tmp_path)


def test_workers_and_interruptions_change_nothing(small, tmp_path, monkeypatch):
    studies.run(small, 45, out=tmp_path / "one")
    expected = contents(tmp_path / "one")
    assert len(expected) == 5 + 3 * 3
    studies.run(small, 45, out=tmp_path / "two", workers=2)
    assert same(contents(tmp_path / "two"), expected)
    for file in (tmp_path / "one" / "cycles").iterdir():
        other = tmp_path / "two" / "cycles" / file.name
        assert other.read_bytes() == file.read_bytes()

    write, written = campaign_module._write, []

    def interrupted(*args):
        if len(written) == 4:
            raise KeyboardInterrupt
        written.append(args)
        write(*args)

    monkeypatch.setattr(campaign_module, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        studies.run(small, 45, out=tmp_path / "three")
    assert len(contents(tmp_path / "three")) == 4
    monkeypatch.setattr(campaign_module, "_write", write)
    studies.run(small, 45, out=tmp_path / "three")
    assert same(contents(tmp_path / "three"), expected)


def test_random_windows_are_the_same_for_any_number_of_workers(tmp_path):
    path = tmp_path / "random.toml"
    text = TWINS[: TWINS.index("[[compare]]")]
    random = '{ criterion = "processor_time", method = "published" }'
    path.write_text(
        text.replace("seed = 7", "seed = 7\npublished_cycles = 15")
        + f"random = {random}\n"
    )
    study = studies.load_study(path)
    studies.run(study, 20, out=tmp_path / "one")
    studies.run(study, 20, out=tmp_path / "two", workers=2)
    expected = contents(tmp_path / "one")
    assert len(expected) == 2 + 15
    columns = [part["cost"] for name, part in expected.items() if "published" in name]
    assert len({cost for column in columns for cost in column}) > 15
    assert same(contents(tmp_path / "two"), expected)


def test_finished_chunks_are_not_computed_again(small, tmp_path, monkeypatch):
    studies.run(small, 20, out=tmp_path)
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "cycles").iterdir()}
    studies.run(small, 40, out=tmp_path)
    after = {f: f.stat().st_mtime_ns for f in (tmp_path / "cycles").iterdir()}
    assert before.items() <= after.items()
    assert len(after) > len(before)
    monkeypatch.setattr(campaign_module, "_compute", None)
    studies.run(small, 40, out=tmp_path)


@pytest.mark.parametrize(("first", "then"), [(13, 16), (16, 13), (13, 45)])
def test_a_campaign_with_other_cycles_is_one_data_set(small, tmp_path, first, then):
    """Only one of several last chunks with the same first cycle stays on disk."""
    studies.run(small, first, out=tmp_path / "here")
    studies.run(small, then, out=tmp_path / "here")
    whole = parquet.read_table(tmp_path / "here" / "cycles")
    rows = zip(
        *(whole.column(name).to_pylist() for name in ("setting", "cycle", "algorithm")),
        strict=True,
    )
    assert len(set(rows)) == whole.num_rows
    studies.run(small, then, out=tmp_path / "there")
    here, there = (
        studies.Campaign(small, tmp_path / name, then, small.published_cycles)
        for name in ("here", "there")
    )
    for mine, other in zip(here.all_chunks(), there.all_chunks(), strict=True):
        read, expected = here.read(mine), there.read(other)
        assert read.keys() == expected.keys()
        for name, column in expected.items():
            np.testing.assert_array_equal(read[name], column)


# SIGINT may be ignored by default if the tests run in the background.
RUN_FOREVER = """
import signal, sys
from slotkern import studies
signal.signal(signal.SIGINT, signal.default_int_handler)
studies.run(studies.load_study(sys.argv[1]), 100_000, out=sys.argv[2], workers=2)
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_killed_campaigns_resume_to_the_same_numbers(small, tmp_path, blow):
    out = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_FOREVER, tmp_path / "small.toml", out],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 300
        while len(list(out.glob("cycles/*.parquet"))) < 10:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(process.pid, blow)
        process.wait(300)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    finished = len(contents(out))  # every file there is whole
    assert finished >= 10
    chunks = 10 * finished
    studies.run(small, chunks, out=out)
    studies.run(small, chunks, out=tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    got = contents(out)
    assert same({name: got[name] for name in expected}, expected)


def test_a_terminated_study_leaves_no_workers(small, tmp_path):
    out = tmp_path / "out"
    command = ["study", "small.toml", "--out", "out", "--workers", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "slotkern", *command, "--cycles", "100000"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while not list(out.glob("cycles/*.parquet")):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.terminate()
            # End of the stream: no process is left that could write to it.
            _, printed = process.communicate(timeout=1500)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert b"interrupted; finished cycles are saved in out" in printed


def test_half_written_files_are_not_read(small, tmp_path):
    (tmp_path / ".part-123").mkdir(parents=True)
    name = "base.cycles-0000000-0000010.parquet"
    (tmp_path / ".part-123" / name).write_bytes(b"PAR1 half")
    campaign = studies.run(small, 10, out=tmp_path)
    assert parquet.read_table(tmp_path / "cycles" / name).num_rows == 30
    assert studies.Summary(campaign).estimate(small.settings[0], "cost", "q").count


def test_a_folder_belongs_to_one_study(small, tmp_path):
    studies.run(small, 10, out=tmp_path / "out")
    changed = tmp_path / "changed.toml"
    changed.write_text(SMALL.replace("budget = 300", "budget = 301"))
    with pytest.raises(ValueError, match=r"job\.budget is 300, here 301"):
        studies.run(studies.load_study(changed), 10, out=tmp_path / "out")
    with pytest.raises(ValueError, match="seed is 7, here 8"):
        studies.run(
            studies.load_study(tmp_path / "small.toml", seed=8),
            10,
            out=tmp_path / "out",
        )
    # Options of the report alone may change.
    changed.write_text(SMALL.replace("Nobody knows", "Everybody knows"))
    studies.run(studies.load_study(changed), 10, out=tmp_path / "out")


@pytest.mark.parametrize(
    "wrong",
    [
        {"cycles": 0},
        {"cycles": 1.5},
        {"workers": 0},
        {"workers": -1},
        {"published_cycles": -1},
    ],
)
def test_impossible_campaigns_are_named(small, tmp_path, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        studies.run(small, out=tmp_path, **wrong)


@pytest.mark.parametrize("workers", [1, 2])
def test_memory_does_not_grow_with_the_cycles(small, tmp_path, monkeypatch, workers):
    """No more than a few chunks' arrays are alive at any time."""
    arrays, alive = [], []

    def watched(function):
        def watch(*args):
            result = function(*args)
            for values in (result or args[-1]).values():
                arrays.append(weakref.ref(values))
            alive.append(sum(array() is not None for array in arrays))
            return result

        return watch

    monkeypatch.setattr(campaign_module, "_write", watched(campaign_module._write))
    campaign = studies.run(small, 300, out=tmp_path / "out", workers=workers)
    monkeypatch.setattr(studies.Campaign, "read", watched(studies.Campaign.read))
    summary = studies.Summary(campaign)
    for setting in small.settings:
        summary.estimate(setting, "cost", "cost")
    summary.advantage(small.settings[0], "cost", "first", "cost")
    each = len(small.metrics) + 2
    chunks = 30 + 3 * 15
    assert len(arrays) == each * (chunks + chunks + 30)
    assert max(alive) <= (3 + 2 * workers) * each


def test_a_dask_cluster_gives_the_same_numbers(small, tmp_path):
    distributed = pytest.importorskip("distributed")
    studies.run(small, 45, out=tmp_path / "alone")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len(client.scheduler_info()["workers"]) == 2
        assert cluster.scheduler_address.startswith("tcp://")
        studies.run(small, 45, out=tmp_path / "client", cluster=client)
        studies.run(
            small, 45, out=tmp_path / "address", cluster=cluster.scheduler_address
        )
    expected = contents(tmp_path / "alone")
    assert same(contents(tmp_path / "client"), expected)
    assert same(contents(tmp_path / "address"), expected)
