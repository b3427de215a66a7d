"""Commands on a ledger instead of a pool file, and the group `ledger`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern.commands import bookings
from tests.support.command_line import refused, run
from tests.support.ledgers import NewPlace, nodes

Place = Path | str


@pytest.fixture
def site(tmp_path: Path, where: Place) -> Place:
    sk.SlotPool(nodes()).save(tmp_path / "pool.npz")
    done = run("ledger", "create", tmp_path / "pool.npz", where)
    assert done.exit_code == 0, done.output
    (tmp_path / "jobs.csv").write_text("name,nodes,volume\na,2,5\nb,2,5\n")
    return where


def test_schedule_stores_its_bookings(site: Place, tmp_path: Path) -> None:
    words = ("schedule", site, tmp_path / "jobs.csv", "--token", "night")
    first, again = run(*words), run(*words)
    assert first.exit_code == 0, first.output
    assert first.stdout == again.stdout
    assert "2 of 2 jobs booked" in first.stdout
    assert "not saved" not in first.stdout
    pool = sk.SlotPool.open(site)
    assert pool.version == 2
    assert pool.owners == ["jobs"]
    table = tmp_path / "pool2.npz"
    assert run(*words, "--output", table).exit_code == 0
    assert len(sk.SlotPool.load(table).windows()) == 2


def test_a_token_needs_a_ledger(site: Place, tmp_path: Path) -> None:
    pool, jobs = tmp_path / "pool.npz", tmp_path / "jobs.csv"
    refused(run("schedule", pool, jobs, "--token", "x"), "--token needs a ledger")


def test_find_books_and_release_releases(site: Place, tmp_path: Path) -> None:
    job = ("find", site, "--nodes", 3, "--volume", 5)
    assert run(*job).exit_code == 0
    assert sk.SlotPool.open(site).version == 0
    assert run(*job, "--book", "--owner", "ann", "--name", "x").exit_code == 0
    listed = run("bookings", site)
    assert listed.exit_code == 0
    assert "ann" in listed.stdout
    copy = tmp_path / "copy.npz"
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
    page = tmp_path / "page.html"
    assert run("view", site, "--output", page).exit_code == 0
    pool_file = tmp_path / "pool.npz"
    words = ("disable", pool_file, "--nodes", "1", "--output", site)
    refused(run(*words), "is a ledger; create it with")


def test_the_group_ledger(site: Place, tmp_path: Path) -> None:
    assert run("ledger", "log", site).exit_code == 1
    run("schedule", site, tmp_path / "jobs.csv", "--token", "n")
    listed = run("ledger", "log", site, "--output", tmp_path / "log.json")
    assert listed.exit_code == 0
    assert listed.stdout.startswith("2 20")
    (call,) = json.loads((tmp_path / "log.json").read_text())
    assert (call["last"], call["token"]) == (2, "n")
    lines = run(
        "ledger", "follow", site, "--since", 0, "--count", 2
    ).stdout.splitlines()
    assert [json.loads(line)["version"] for line in lines] == [1, 2]
    assert run("ledger", "backup", site, tmp_path / "copy.db").exit_code == 0
    assert run("ledger", "export", site, tmp_path / "state.npz").exit_code == 0
    assert len(sk.SlotPool.load(tmp_path / "state.npz").windows()) == 2
    compacted = run("ledger", "compact", site, "--keep", "0")
    assert "2 entries dropped" in compacted.stdout
    checked = run("ledger", "check", site)
    assert checked.exit_code == 0
    assert "sound: version 2" in checked.stdout
    pool = sk.SlotPool.open(tmp_path / "copy.db")
    pool._store.connection.execute("UPDATE entries SET owner = 'eve'")
    broken = run("ledger", "check", tmp_path / "copy.db")
    assert broken.exit_code == 1
    assert "the chain of digests breaks here" in broken.stdout
    pool._store.connection.execute("UPDATE snapshots SET body = x''")
    unreadable = run("ledger", "check", tmp_path / "copy.db")
    assert unreadable.exit_code == 1
    assert "the snapshot 0 cannot be read" in unreadable.stdout


def test_bookings_of_others_are_in_the_list_of_reserve(
    site: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_holds_and_ids(site: Place, tmp_path: Path) -> None:
    job = ("--nodes", 2, "--volume", 5)
    hold = ("ledger", "hold", site, *job, "--for", "1h", "--token", "t", "--owner", "a")
    held = run(*hold)
    assert held.exit_code == 0, held.output
    assert "held for a until 20" in held.stdout
    assert held.stdout.endswith("id 1\n")
    again = run(*hold)
    assert again.stdout == held.stdout
    other = run("find", site, *job, "--book", "--owner", "b", "--hold", 3600)
    assert other.exit_code == 0, other.output
    assert other.stdout.endswith("id 2\n")
    file = tmp_path / "list.json"
    listed = run("ledger", "bookings", site, "--output", file)
    assert listed.exit_code == 0, listed.output
    rows = json.loads(file.read_text())
    assert [(row["id"], row["owner"], row["start"]) for row in rows] == [
        ("1", "a", 0.0),
        ("2", "b", 0.0),
    ]
    assert all(row["expires"].startswith("20") for row in rows)
    refused(run("ledger", "confirm", site, 1, 2, "--owner", "a"), "belongs to 'b'")
    confirmed = run("ledger", "confirm", site, 1)
    assert "1 hold confirmed" in confirmed.stdout
    assert [b.expires is None for b in sk.SlotPool.open(site).open_bookings()] == [
        True,
        False,
    ]
    refused(run("ledger", "release", site, 1, 7), "7 is not booked")
    refused(run("ledger", "release", site, 1, 2, "--token", "x"), "for one id")
    assert "2 bookings released" in run("ledger", "release", site, 1, 2).stdout
    assert run("ledger", "bookings", site).exit_code == 1
    assert run(
        "ledger", "hold", site, "--nodes", 5, "--volume", 5, "--for", 9
    ).exit_code
    words = ("find", tmp_path / "pool.npz", *job, "--book", "--owner", "b")
    refused(run(*words, "--hold", "1h"), "--hold needs a ledger")
    refused(run("find", site, *job, "--hold", "1h"), "needs --book")


def test_a_page_that_follows(
    site: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    writer = sk.SlotPool.open(site)
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        assert 'http-equiv="refresh" content="3"' in page.read_text()
        if len(naps) > 1:  # the first refresh finds nothing
            writer.place(sk.Request(1, 1))

    monkeypatch.setattr("slotkern.commands.ledger.time.sleep", sleep)
    words = ("ledger", "follow", site, "--html", page, "--every", "2.5")
    done = run(*words, "--count", 2)
    assert done.exit_code == 0, done.output
    lines = [f"{page}: version {i}" for i in range(3)]
    assert done.stdout.splitlines() == lines
    assert naps == [2.5] * 3
    assert "version 2" in page.read_text()
    refused(run(*words[:-1], "0.5"), "refresh must be at least 1, got 0.5")
    refused(run(*words[:4], tmp_path / "page.txt"), "does not end in .html")
    run("ledger", "compact", site, "--keep", "0")
    refused(run("ledger", "follow", site, "--since", 0), "were dropped, up to 2")


def test_ledgers_of_slots_and_of_ledgers(site: Place, new_place: NewPlace) -> None:
    run("find", site, "--nodes", 2, "--volume", 5, "--book", "--owner", "a")
    other = new_place()
    assert run("ledger", "create", site, other).exit_code == 0
    assert [b.owner for b in sk.SlotPool.open(other).open_bookings()] == ["a"]
    assert sk.SlotPool.open(site).version == 1


def test_a_ledger_of_a_file_of_slots(tmp_path: Path) -> None:
    sk.write_slots(tmp_path / "free.csv", nodes())
    assert (
        run("ledger", "create", tmp_path / "free.csv", tmp_path / "x.db").exit_code == 0
    )
    assert len(sk.SlotPool.open(tmp_path / "x.db").slots) == 4


def test_urls_of_no_pool() -> None:
    url = "postgresql://ann:secret@h/d"
    done = run("bookings", url)
    refused(done, "write postgresql://ann@h/d?pool=NAME")
    assert "secret" not in done.output


def test_refusals(site: Place, tmp_path: Path) -> None:
    refused(run("ledger", "check", tmp_path / "pool.npz"), "ends in .db")
    text = "a file already" if isinstance(site, Path) else "schema of this name already"
    refused(run("ledger", "create", tmp_path / "pool.npz", site), text)
    refused(run("bookings", tmp_path / "none.db"), "no such ledger")
    refused(run("ledger", "check", tmp_path / "none.db"), "no such ledger")
    (tmp_path / "text.db").write_text("text")
    refused(run("bookings", tmp_path / "text.db"), "not a ledger")


def test_busy_is_a_temporary_failure(
    site: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = sk.SlotPool.open(site)
    monkeypatch.setattr(type(holder._store), "turn", busy)
    done = run("schedule", site, tmp_path / "jobs.csv")
    assert done.exit_code == 75
    assert "nothing has changed" in done.stderr
    assert holder.refresh() == 0


def busy(store: object, known: int = 0) -> None:
    raise sk.ledger.Busy("the ledger is busy; nothing has changed")
