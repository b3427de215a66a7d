"""Commands that list and change the bookings and closures of a pool file."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import refused, run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    machine = sk.Machine.homogeneous(4, price=2)
    span = {"start": "2026-10-24", "end": "2026-10-27", "zone": "Europe/Berlin"}
    pool = sk.SlotPool(sk.free_slots(machine, **span, unit="h"))
    pool.schedule([sk.Request(2, 4, name="a"), sk.Request(1, 2)], owner="alice")
    pool.schedule([sk.Request(4, 3, name="a")], owner="bob")
    path = tmp_path / "pool.npz"
    pool.save(path)
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A pool without clock, machine and bookings."""
    slots = sk.make_slots(node=[3, 5], start=0, end=9, performance=1, price=1)
    path = tmp_path / "plain.npz"
    sk.SlotPool(slots).save(path)
    return path


def test_a_table_names_some_nodes_and_the_file_all(tmp_path: Path) -> None:
    slots = sk.make_slots(node=range(50), start=0, end=9, performance=1, price=1)
    pool, out = tmp_path / "wide.npz", tmp_path / "out.csv"
    wide = sk.SlotPool(slots)
    wide.schedule([sk.Request(50, 4)], owner="all")
    wide.save(pool)
    run("bookings", pool, "--output", out)
    printed = run("bookings", pool).output
    assert "... +38" in printed
    assert "12,13" not in printed
    assert ",".join(map(str, range(50))) in out.read_text()


def test_bookings_are_listed_with_names_and_dates(path: Path) -> None:
    before = path.read_bytes()
    done = run("bookings", path)
    assert done.exit_code == 0
    heading, _, *rows, caption = [
        line.split() for line in done.stdout.split("\n") if line.strip()
    ]
    assert heading == ["owner", "name", "nodes", "cost", "start_time", "finish_time"]
    day = "2026-10-24"
    assert rows == [
        ["alice", "a", "n[0-1]", "16", day, "00:00", day, "04:00"],
        ["alice", "n2", "4", day, "00:00", day, "02:00"],
        ["bob", "a", "n[0-3]", "24", day, "04:00", day, "07:00"],
    ]
    assert caption == ["times", "in", "Europe/Berlin,", "UTC+02:00"]
    mine = run("bookings", path, "--owner", "bob").stdout
    assert "n[0-3]" in mine
    assert "alice" not in mine
    assert path.read_bytes() == before


def test_bookings_are_written_to_a_file(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "booked.json"
    assert run("bookings", path, "--owner", "bob", "--output", table).exit_code == 0
    (row,) = json.loads(table.read_text())
    assert (row["owner"], row["nodes"], row["start"]) == ("bob", "n0,n1,n2,n3", 4)
    assert row["start_time"] == "2026-10-24T04:00:00+02:00"


def test_a_pool_without_clock_and_machine(plain: Path, tmp_path: Path) -> None:
    table = tmp_path / "booked.csv"
    done = run("bookings", plain, "--output", table)
    assert done.exit_code == 1
    assert done.stdout == f"{plain}: no bookings\n"
    assert table.read_text() == "owner,name,nodes,start,finish,cost\n"
    pool = sk.SlotPool.load(plain)
    pool.book(pool.find(sk.Request(2, 3)))
    pool.save(plain)
    done = run("bookings", plain)
    assert done.exit_code == 0
    assert done.stdout == f"{plain}: 2 booked parts have no owner\n"
    pool.schedule([sk.Request(2, 3)], owner="eve")
    pool.save(plain)
    printed = run("bookings", plain).stdout
    assert "eve            3,5         3        6      6" in printed
    assert "2 booked parts have no owner" in printed
    assert "disabled" not in printed
    assert run("disable", plain, "--nodes", "3", "--end", "7").exit_code == 0
    assert f"{plain}: 3 disabled for down until 7\n" in run("bookings", plain).stdout


def test_release_of_all_bookings_of_an_owner(path: Path) -> None:
    done = run("release", path, "--owner", "alice")
    assert done.exit_code == 0
    assert "n[0-1]" in done.stdout
    assert f"{path}: 2 of 3 windows released" in done.stdout
    pool = sk.SlotPool.load(path)
    assert pool.owners == ["bob"]
    assert pool.booked["owner"].tolist() == ["bob"] * 4
    assert run("release", path, "--owner", "bob").exit_code == 0
    pool = sk.SlotPool.load(path)
    assert pool.slots.tolist() == pool.origin.tolist()


def test_release_of_one_job_to_another_file(path: Path, tmp_path: Path) -> None:
    before, other = path.read_bytes(), tmp_path / "other.npz"
    words = ("release", path, "--owner", "alice", "--name", "a", "--output", other)
    assert f"{other}: 1 of 3 windows released" in run(*words).stdout
    assert path.read_bytes() == before
    left = sk.SlotPool.load(other).bookings()
    assert left[["owner", "name"]].tolist() == [("alice", ""), ("bob", "a")]


def test_a_schedule_without_an_owner_can_be_released(
    plain: Path, tmp_path: Path
) -> None:
    jobs = tmp_path / "night.csv"
    jobs.write_text("name,nodes,volume\nocean,2,4\n")
    assert run("schedule", plain, jobs, "--output", plain).exit_code == 0
    assert "night   ocean   3,5" in run("bookings", plain).stdout
    assert run("release", plain, "--owner", "night").exit_code == 0
    assert sk.SlotPool.load(plain).booked.size == 0


def test_unknown_files_and_owners_are_named(path: Path, tmp_path: Path) -> None:
    before, odd = path.read_bytes(), tmp_path / "odd.npz"
    slots = tmp_path / "slots.npz"
    sk.write_slots(slots, sk.SlotPool.load(path).slots)
    odd.write_text("none")
    for words in (("bookings",), ("release", "--owner", "bob")):
        refused(run(*words, tmp_path / "none.npz"), tmp_path / "none.npz", "No such")
        refused(run(*words, odd), odd, "not a complete slotkern pool")
        refused(run(*words, slots), slots, "not a complete slotkern pool")
    for command in ("bookings", "release"):
        message = (
            f"{path}: owner 'eve' has no bookings; owners with bookings: alice, bob"
        )
        refused(run(command, path, "--owner", "eve"), message)
    message = f"{path}: 'bob' has no booking named 'b'"
    refused(run("release", path, "--owner", "bob", "--name", "b"), message)
    refused(run("release", path), "--owner")
    words = ("release", path, "--owner", "bob", "--output")
    refused(run(*words, tmp_path / "a.csv"), "a pool is saved as .npz")
    refused(
        run(*words, tmp_path / "no" / "a.npz"), tmp_path / "no" / "a.npz", "No such"
    )
    refused(run("bookings", path, "--output", "a.txt"), "a.txt does not end in")
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_pool_as_it_was(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    refused(run("release", path, "--owner", "bob"), f"{path}: No space left on device")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["pool.npz"]


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_two_commands_at_once_keep_the_bookings_of_both(plain: Path) -> None:
    jobs = plain.with_name("jobs.csv")
    jobs.write_text("nodes,volume\n2,4\n")
    words = [sys.executable, "-m", "slotkern", "schedule", plain, jobs]
    both = [
        subprocess.Popen(
            [*map(str, words), "--owner", owner, "--output", str(plain)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for owner in ("alice", "bob")
    ]
    for done in both:
        out, err = done.communicate(timeout=1500)
        assert done.returncode == 0, err
        assert "1 of 1 jobs booked\n" in out
    table = sk.SlotPool.load(plain).bookings()
    assert sorted(table["owner"].tolist()) == ["alice", "bob"]
    assert sorted(table["start"].tolist()) == [0, 4]


def test_unsaved_bookings_are_reported(plain: Path) -> None:
    jobs, slots = plain.with_name("jobs.csv"), plain.with_name("slots.csv")
    jobs.write_text("nodes,volume\n2,4\n")
    sk.write_slots(slots, sk.SlotPool.load(plain).slots)
    printed = "1 of 1 jobs booked, but not saved: save them with --output "
    assert printed + f"{plain}\n" in run("schedule", plain, jobs).stdout
    assert printed + "pool.npz\n" in run("schedule", slots, jobs).stdout
    table = plain.with_name("table.csv")
    assert printed in run("schedule", plain, jobs, "--output", table).stdout
    assert "not saved" not in run("schedule", plain, jobs, "--output", plain).stdout
    jobs.write_text("nodes,volume\n3,4\n")
    assert "not saved" not in run("schedule", plain, jobs).stdout


def test_a_node_that_fails_and_comes_back(path: Path) -> None:
    done = run("disable", path, "--nodes", "n[0-1]", "--start", "2026-10-24 05:00")
    assert done.exit_code == 0, done.stderr
    assert "bob" in done.stdout
    assert "alice" not in done.stdout
    assert "1 booking on these nodes" in done.stdout
    hit = run("bookings", path, "--nodes", "n0", "--during", "2026-10-24 05:00/")
    assert hit.stdout.count("bob") == 1
    early = run("bookings", path, "--nodes", "n0", "--during", "/2026-10-24 04:00")
    assert "bob" not in early.stdout
    none = run("bookings", path, "--nodes", "n3", "--during", "0/4")
    assert none.exit_code == 1
    assert none.stdout == f"{path}: no matching bookings\n"
    off = f"{path}: n[0-1] disabled for down from 2026-10-24 05:00:00+02:00\n"
    assert run("bookings", path).stdout.endswith(off)
    run("release", path, "--owner", "bob")
    pool = sk.SlotPool.load(path)
    assert pool.find(sk.Request(4, 1, earliest=5)) is None
    assert run("enable", path, "--nodes", "n0,n1").exit_code == 0
    pool = sk.SlotPool.load(path)
    assert pool.find(sk.Request(4, 1, earliest=5)).start == 5
    refused(run("enable", path, "--nodes", "n0"), "node 'n0' is not disabled")
    refused(run("bookings", path, "--during", "soon"), "--during: 'soon' is no span")


def test_a_span_is_reserved(path: Path, plain: Path) -> None:
    words = ("reserve", path, "--owner", "works", "--nodes", "n[0-3]")
    span = ("--start", "2026-10-24 02:00", "--end", "2026-10-24 05:00")
    refused(run(*words, *span), "is not free", "partly")
    done = run(*words, *span, "--partly")
    assert done.exit_code == 0, done.stderr
    assert f"{path}: 2 parts reserved for works" in done.stdout
    assert f"{path}: not free in the whole span: n[0-3]" in done.stdout
    run("release", path, "--owner", "alice")
    assert sk.SlotPool.load(path).find(sk.Request(4, 3)).start == 7
    run("release", path, "--owner", "works")
    assert sk.SlotPool.load(path).find(sk.Request(4, 3)).start == 0
    words = ("reserve", plain, "--owner", "works", "--start", 1, "--end", 2)
    refused(run(*words, "--nodes", "n3"), "--nodes: 'n3' is no list of ids")
    done = run(*words, "--nodes", "3, 5")
    assert "2 parts reserved" in done.stdout
    assert "not free" not in done.stdout


def test_find_books_its_window(plain: Path, tmp_path: Path) -> None:
    job = ("find", plain, "--nodes", 2, "--volume", 4, "--book")
    before = plain.read_bytes()
    refused(run(*job), "--book needs --owner")
    other = tmp_path / "other.npz"
    done = run(*job, "--owner", "ann", "--output", other)
    assert f"{other}: booked for ann" in done.stdout, done.stderr
    assert plain.read_bytes() == before
    assert f"{plain}: booked for ann" in run(*job, "--owner", "ann").stdout
    assert run(*job, "--owner", "bob").exit_code == 0
    assert run(*job, "--owner", "eve").exit_code == 1
    assert sk.SlotPool.load(plain).bookings()["owner"].tolist() == ["ann", "bob"]
    slots = tmp_path / "slots.csv"
    sk.write_slots(slots, sk.SlotPool.load(plain).slots)
    refused(
        run("find", slots, *job[2:], "--owner", "ann"), "--book needs a saved pool, got"
    )


def test_a_page_of_a_pool(path: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    assert run("view", path, "-o", page).exit_code == 0
    assert "alice" in page.read_text(encoding="ascii")
    titled = run("view", path, "-o", page, "--title", "Next <week>")
    assert titled.exit_code == 0
    assert "<title>Next &lt;week&gt;</title>" in page.read_text()
    assert '"title":"Next \\u003cweek\\u003e"' in page.read_text()
    refused(run("view", path, "-o", tmp_path / "plan.png"), "--output: ", ".html")
