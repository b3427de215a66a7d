"""The command that lists and changes the capacities and quotas of a pool file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import refused, run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    machine = sk.Machine.homogeneous(4, price=2)
    span = {"start": "2026-10-26", "end": "2026-10-29", "zone": "Europe/Berlin"}
    path = tmp_path / "pool.npz"
    sk.SlotPool(sk.free_slots(machine, **span, unit="h")).save(path)
    return path


def test_capacities_and_quotas_are_set_and_listed(path: Path, tmp_path: Path) -> None:
    assert "no capacities and no quotas" in run("caps", path).stdout
    day = ("--start", "2026-10-26 08:00", "--end", "2026-10-26 18:00")
    assert run("caps", path, "--set", "matlab=9").exit_code == 0
    done = run("caps", path, "--set", "matlab=2", *day)
    assert done.exit_code == 0, done.output
    quota = "nodes=1 each when=Mon-Fri 08:00-18:00"
    assert run("caps", path, "--quota", quota).exit_code == 0
    assert run("caps", path, "--quota", "matlab=4 account=ann").exit_code == 0
    lines = run("caps", path).stdout.splitlines()
    assert sum("matlab" in line for line in lines) == 4
    assert sum("Mon-Fri 08:00-18:00" in line for line in lines) == 7
    pool = sk.SlotPool.load(path)
    job = sk.Request(1, walltime="4h", uses={"matlab": 4}, account="ann")
    assert pool.find(job, "start").start == 0
    late = pool.find(job.replace(earliest="2026-10-26 05:00"), "start")
    assert late.start == 18
    other = tmp_path / "other.npz"
    run("caps", path, "--quota", "matlab=none account=ann", "--output", other)
    assert "ann" not in run("caps", other).stdout
    assert "ann" in run("caps", path).stdout


def test_a_table_of_licences_and_jobs_that_use_them(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "licences.csv"
    table.write_text(
        "start,end,amount\n2026-10-26 08:00,2026-10-26 18:00,2\n"
        "2026-10-26 18:00,2026-10-27,6\n"
    )
    done = run("caps", path, "--set", f"matlab={table}")
    assert done.exit_code == 0, done.output
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "name,nodes,walltime,uses.matlab,account\n"
        "a,1,4h,2,ann\nb,1,4h,2,ann\nc,1,4h,5,bob\nd,1,4h,,bob\n"
    )
    done = run("schedule", path, jobs, "--output", path, "--criterion", "start")
    assert done.exit_code == 0, done.output
    pool = sk.SlotPool.load(path)
    starts = {window.name: window.start for window in pool.windows()}
    assert starts == {"a": 8, "b": 12, "c": 18, "d": 0}
    found = run(
        *("find", path, "--nodes", 1, "--walltime", "2h", "--criterion", "start"),
        *("--uses", "matlab=2", "--account", "ann", "--json"),
    )
    answer = json.loads(found.stdout)
    assert answer["window"]["uses"] == answer["request"]["uses"] == {"matlab": 2}
    assert answer["window"]["start"] == 16
    why = run("explain", path, "--nodes", 1, "--walltime", "4h", "--uses", "matlab=7")
    assert "matlab: 0 in all, none is taken until 2026-10-26 08:00" in why.stdout
    assert "without the capacity of matlab" in why.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "matlab"), "--set: 'matlab' is no capacity such as matlab=10"),
        (("--set", "matlab=ten"), "'ten' is no whole number and no .csv"),
        (("--set", "matlab=1.5"), "amount of matlab is 1.5"),
        (("--quota", "nodes"), "--quota: 'nodes' is no quota"),
        (("--quota", "nodes=some"), "--quota: 'some' is no whole number"),
        (("--quota", "gpus=2"), "a quota limits 'nodes'; got 'gpus'"),
        (("--start", "2026-10-26"), "--start 2026-10-26 needs --set or --quota"),
    ],
)
def test_bad_options_are_refused(
    path: Path, options: tuple[str, ...], message: str
) -> None:
    before = path.read_bytes()
    refused(run("caps", path, *options), message)
    assert path.read_bytes() == before


def test_capacities_of_a_pool_of_shared_nodes(tmp_path: Path) -> None:
    machine = sk.Machine({"name": ["a", "b"], "cores": 4}, capacity="cores")
    path = tmp_path / "hosts.npz"
    sk.HostPool(sk.free_slots(machine, start=0, end=48)).save(path)
    done = run("caps", path, "--set", "matlab=2", "--quota", "nodes=1 account=ann")
    assert done.exit_code == 0, done.output
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "name,nodes,volume,share.cores,uses.matlab,account\n"
        "a,1,4,1,2,bob\nb,1,4,1,1,bob\nc,1,4,1,,ann\nd,2,4,1,,ann\n"
    )
    done = run("schedule", path, jobs, "--output", path)
    assert "quota" in done.stdout
    pool = sk.SlotPool.load(path)
    assert [w.start for w in pool.windows() if w.account == "bob"] == [0, 4]
    assert [w.name for w in pool.windows() if w.account == "ann"] == ["c"]
    how = ("--nodes", 1, "--volume", 4, "--share", "cores=1", "--uses", "matlab=2")
    found = run("find", path, *how, "--criterion", "start", "--json")
    assert json.loads(found.stdout)["window"]["start"] == 8
    assert "matlab: 2 in all" in run("explain", path, *how).stdout
