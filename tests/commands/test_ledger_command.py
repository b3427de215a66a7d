"""Commands on a ledger instead of a pool file, and the group `ledger`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern.commands import bookings
from tests.support.command_line import refused, run
from tests.support.ledgers import nodes


@pytest.fixture
def site(tmp_path: Path) -> Path:
    sk.SlotPool(nodes()).save(tmp_path / "pool.npz")
    done = run("ledger", "create", tmp_path / "pool.npz", tmp_path / "site.db")
    assert done.exit_code == 0, done.output
    (tmp_path / "jobs.csv").write_text("name,nodes,volume\na,2,5\nb,2,5\n")
    return tmp_path / "site.db"


def test_schedule_stores_its_bookings(site: Path) -> None:
    words = ("schedule", site, site.parent / "jobs.csv", "--token", "night")
    first, again = run(*words), run(*words)
    assert first.exit_code == 0, first.output
    assert first.stdout == again.stdout
    assert "2 of 2 jobs booked" in first.stdout
    assert "not saved" not in first.stdout
    pool = sk.SlotPool.open(site)
    assert pool.version == 2
    assert pool.owners == ["jobs"]
    table = site.parent / "pool2.npz"
    assert run(*words, "--output", table).exit_code == 0
    assert len(sk.SlotPool.load(table).windows()) == 2


def test_a_token_needs_a_ledger(site: Path) -> None:
    pool, jobs = site.parent / "pool.npz", site.parent / "jobs.csv"
    refused(run("schedule", pool, jobs, "--token", "x"), "--token needs a ledger")


def test_find_books_and_release_releases(site: Path) -> None:
    job = ("find", site, "--nodes", 3, "--volume", 5)
    assert run(*job).exit_code == 0
    assert sk.SlotPool.open(site).version == 0
    assert run(*job, "--book", "--owner", "ann", "--name", "x").exit_code == 0
    listed = run("bookings", site)
    assert listed.exit_code == 0
    assert "ann" in listed.stdout
    copy = site.parent / "copy.npz"
    assert run("release", site, "--owner", "ann", "--output", copy).exit_code == 0
    assert len(sk.SlotPool.open(site).windows()) == 1
    assert len(sk.SlotPool.load(copy).windows()) == 0
    assert run("release", site, "--owner", "ann", "--name", "x").exit_code == 0
    assert len(sk.SlotPool.open(site).windows()) == 0
    reserve = ("--nodes", "0", "--start", "5", "--end", "9", "--owner", "m")
    assert run("reserve", site, *reserve).exit_code == 0
    assert run("disable", site, "--nodes", "1,2").exit_code == 0
    assert run("enable", site, "--nodes", "1").exit_code == 0
    pool = sk.SlotPool.open(site)
    assert pool.version == 5
    assert pool.closed["node"].tolist() == [2]
    assert run("explain", site, "--nodes", 5, "--volume", 5).exit_code == 1
    page = site.parent / "page.html"
    assert run("view", site, "--output", page).exit_code == 0
    pool_file = site.parent / "pool.npz"
    words = ("disable", pool_file, "--nodes", "1", "--output", site)
    refused(run(*words), "is a ledger; create it with")


def test_the_group_ledger(site: Path) -> None:
    folder = site.parent
    assert run("ledger", "log", site).exit_code == 1
    run("schedule", site, folder / "jobs.csv", "--token", "n")
    listed = run("ledger", "log", site, "--output", folder / "log.json")
    assert listed.exit_code == 0
    assert listed.stdout.startswith("2 20")
    (call,) = json.loads((folder / "log.json").read_text())
    assert (call["last"], call["token"]) == (2, "n")
    lines = run(
        "ledger", "follow", site, "--since", 0, "--count", 2
    ).stdout.splitlines()
    assert [json.loads(line)["version"] for line in lines] == [1, 2]
    assert run("ledger", "backup", site, folder / "copy.db").exit_code == 0
    assert run("ledger", "export", site, folder / "state.npz").exit_code == 0
    assert len(sk.SlotPool.load(folder / "state.npz").windows()) == 2
    compacted = run("ledger", "compact", site, "--keep", "0")
    assert "2 entries dropped" in compacted.stdout
    checked = run("ledger", "check", site)
    assert checked.exit_code == 0
    assert "sound: version 2" in checked.stdout
    pool = sk.SlotPool.open(folder / "copy.db")
    pool._store.connection.execute("UPDATE entries SET owner = 'eve'")
    broken = run("ledger", "check", folder / "copy.db")
    assert broken.exit_code == 1
    assert "the chain of digests breaks here" in broken.stdout
    pool._store.connection.execute("UPDATE snapshots SET body = x''")
    unreadable = run("ledger", "check", folder / "copy.db")
    assert unreadable.exit_code == 1
    assert "the snapshot 0 cannot be read" in unreadable.stdout


def test_bookings_of_others_are_in_the_list_of_reserve(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = bookings.parse_nodes

    def parse_and_wait(pool: sk.SlotPool, text: str) -> Any:
        assert sk.SlotPool.open(site).place(sk.Request(1, 5)) is not None
        return parse(pool, text)

    monkeypatch.setattr(bookings, "parse_nodes", parse_and_wait)
    span = ("--nodes", "0,1", "--start", "0", "--end", "9", "--owner", "m")
    done = run("reserve", site, *span, "--partly")
    assert done.exit_code == 0, done.output
    assert "not free in the whole span: 0\n" in done.stdout


def test_refusals(site: Path) -> None:
    folder = site.parent
    refused(run("ledger", "check", folder / "pool.npz"), "ends in .db")
    refused(run("ledger", "create", folder / "pool.npz", site), "a file already")
    refused(run("bookings", folder / "none.db"), "no such ledger")
    refused(run("ledger", "check", folder / "none.db"), "no such ledger")
    (folder / "text.db").write_text("text")
    refused(run("bookings", folder / "text.db"), "not a ledger")


def test_busy_is_a_temporary_failure(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = sk.SlotPool.open(site)
    monkeypatch.setattr(
        "slotkern.ledger.sqlite.SqliteStore.turn", lambda self: busy(self)
    )
    done = run("schedule", site, site.parent / "jobs.csv")
    assert done.exit_code == 75
    assert "nothing has changed" in done.stderr
    assert holder.refresh() == 0


def busy(store: object) -> None:
    raise sk.ledger.Busy("the ledger is busy; nothing has changed")
