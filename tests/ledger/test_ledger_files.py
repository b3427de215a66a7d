"""Files of ledgers: drafts, exchanged files, other formats, remote file systems."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern import ledger
from slotkern.ledger import sqlite
from slotkern.ledger.gate import file_system, refuse_remote
from slotkern.ledger.sqlite import SqliteStore
from tests.support.ledgers import assert_followed, new_ledger, reopened, state_of

JOB = sk.Request(1, 1)


@pytest.fixture
def pool(tmp_path: Path) -> sk.SharedPool:
    return new_ledger(tmp_path, 4, 1e4)


def test_an_older_copy_under_a_running_pool(
    pool: sk.SharedPool, tmp_path: Path
) -> None:
    pool.place(JOB)
    pool.backup(tmp_path / "old.db")
    pool.place(JOB)
    path = pool._store.where
    pool.close()
    shutil.copy(tmp_path / "old.db", path)
    with pytest.raises(ledger.Corrupt, match="went back from version 2 to 1"):
        pool.place(JOB)
    other = sk.SlotPool.open(path)
    for name in "xy":
        other.place(JOB.replace(name=name))
    with pytest.raises(ledger.Corrupt, match="not the ledger that was read"):
        pool.refresh()
    with pytest.raises(ledger.Corrupt, match="not the ledger"):
        pool.snapshot()
    assert_followed(other)


def test_a_ledger_in_use_is_not_replaced(pool: sk.SharedPool, tmp_path: Path) -> None:
    path = pool._store.where
    pool.place(JOB)
    (tmp_path / "link.db").symlink_to(path)
    for target in (path, tmp_path / "link.db"):
        with pytest.raises(FileExistsError, match=r"in use: .*site\.db-wal"):
            pool.backup(target)
    path.unlink()  # the log of a killed process remains
    with pytest.raises(FileExistsError, match="left from a removed ledger"):
        sk.SlotPool(pool.slots).share(path)
    assert not [*tmp_path.glob(".*")]


def test_a_log_that_nobody_uses_prevents_no_backup(
    pool: sk.SharedPool, tmp_path: Path
) -> None:
    copy, log = tmp_path / "copy.db", tmp_path / "copy.db-wal"
    pool.backup(copy)
    reader = sk.SlotPool.open(copy, readonly=True)
    with pytest.raises(FileExistsError, match="in use"):
        pool.backup(copy)
    reader.close()
    assert log.exists()  # a reader may not remove it
    pool.place(JOB)
    pool.backup(copy)
    assert not log.exists()
    assert sk.SlotPool.open(copy, readonly=True).version == pool.version


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_the_draft_of_a_killed_process_is_removed(
    pool: sk.SharedPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = sk.SlotPool(pool.slots)
    for call in (pool.backup, plain.share):
        monkeypatch.setattr(sqlite, "_publish", lambda *_: os._exit(9))
        child = os.fork()
        if not child:
            call(tmp_path / "copy.db")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        monkeypatch.undo()
        drafts = [*tmp_path.glob(".*.tmp")]
        assert len(drafts) == 1
        Path(f"{drafts[0]}-wal").write_bytes(b"of the killed process")
        assert not (tmp_path / "copy.db").exists()
        call(tmp_path / "copy.db")
        assert not [*tmp_path.glob(".*")]
        (tmp_path / "copy.db").unlink()


def test_drafts_that_cannot_be_written(
    pool: sk.SharedPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call in (pool.backup, sk.SlotPool(pool.slots).share):
        with pytest.raises(FileNotFoundError, match=r"none/site\.db'$"):
            call(tmp_path / "none" / "site.db")
    real = sqlite3.connect

    def small(*given: Any, **options: Any) -> sqlite3.Connection:
        connection = real(*given, **options)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    for call in (pool.backup, sk.SlotPool(pool.slots).share):
        with pytest.raises(ledger.LedgerError, match=r"copy\.db: nothing was written"):
            call(tmp_path / "copy.db")
    assert not [*tmp_path.glob(".*"), *tmp_path.glob("copy*")]


def test_a_link_to_a_ledger_has_its_lock(
    pool: sk.SharedPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link.db").symlink_to(pool._store.where)
    monkeypatch.chdir(tmp_path)
    other = sk.SlotPool.open("link.db", patience=0)
    monkeypatch.chdir("/")
    with pool.turn(), pytest.raises(ledger.Busy):
        other.place(JOB)
    other.close()
    other.place(JOB)
    assert_followed(pool)


@pytest.mark.parametrize("replaced", [True, False])
def test_another_file_under_a_running_pool(
    pool: sk.SharedPool, tmp_path: Path, replaced: bool
) -> None:
    path = pool._store.where
    pool.backup(tmp_path / "old.db")
    pool.place(JOB)
    path.unlink()
    if replaced:
        (tmp_path / "old.db").rename(path)
    for call in (pool.refresh, lambda: pool.place(JOB)):
        with pytest.raises(ledger.Corrupt, match="was removed, or another file"):
            call()


def test_other_files_are_refused(pool: sk.SharedPool, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sk.SlotPool.open(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("text")
    with pytest.raises(ledger.OtherFormat, match="is not a ledger"):
        sk.SlotPool.open(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "sql.db").execute("CREATE TABLE t(x)")
    with pytest.raises(ledger.OtherFormat, match="is not a ledger"):
        sk.SlotPool.open(tmp_path / "sql.db")


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("PRAGMA user_version = 2", "has format 2"),
        ("UPDATE meta SET value = 2 WHERE name = 'rules'", "rules 2 of cutting"),
        ("INSERT INTO entries(version, kind) VALUES (2, 'tariff')", "kind 'tariff'"),
    ],
)
def test_ledgers_of_newer_programs(
    pool: sk.SharedPool, statement: str, match: str
) -> None:
    pool.place(JOB)
    pool._store.connection.execute(statement)
    if "entries" in statement:
        pool._store.connection.execute("UPDATE head SET version = 2, chain = x'01'")
        with pytest.raises(ledger.OtherFormat, match=match):
            pool.place(JOB)
    with pytest.raises(ledger.OtherFormat, match=match):
        reopened(pool)


def test_a_migration_under_a_running_pool(pool: sk.SharedPool) -> None:
    pool._store.connection.execute("UPDATE head SET format = 2")
    for call in (pool.refresh, lambda: pool.place(JOB)):
        with pytest.raises(ledger.OtherFormat, match="restart it"):
            call()


def test_kinds_that_may_be_skipped(pool: sk.SharedPool) -> None:
    other = reopened(pool)
    with pool._store.turn() as turn:
        turn.append(1, "{}", [("x-new",)], 1)
        turn.commit()
    assert other.refresh() == 1
    assert other.place(JOB) is not None


def test_a_snapshot_that_is_stored_during_opening(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SqliteStore.snapshots

    def later(store: SqliteStore) -> Any:
        if store is not pool._store:
            for _ in range(3):
                pool.place(JOB)
                pool.snapshot()
        return real(store)

    monkeypatch.setattr(SqliteStore, "snapshots", later)
    other = reopened(pool)
    assert (other.version, state_of(other)) == (3, state_of(pool))


def test_pages_that_cannot_be_read_are_errors_of_ledgers(
    pool: sk.SharedPool, tmp_path: Path
) -> None:
    pool.schedule([JOB] * 300)
    pool.backup(tmp_path / "copy.db")
    (size,) = pool._store.connection.execute("PRAGMA page_size").fetchone()
    whole = (tmp_path / "copy.db").read_bytes()
    bad, failed = tmp_path / "bad.db", 0
    for start in range(size, len(whole), size):
        bad.write_bytes(whole[:start] + b"\xff" * size + whole[start + size :])
        try:
            with sk.SlotPool.open(bad, readonly=True) as other:
                next(other.follow(since=0))
        except ledger.LedgerError:
            failed += 1
        for name in ("bad.db-wal", "bad.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
    assert failed > 5


def test_missing_and_contradicting_entries(pool: sk.SharedPool) -> None:
    other = reopened(pool)
    booking = pool.place(JOB)
    pool.place(JOB)
    entries = "DELETE FROM entries WHERE version = 1"
    pool._store.connection.execute(entries)
    with pytest.raises(ledger.Corrupt, match="are missing"):
        other.refresh()
    assert booking is not None
    pool._store.connection.execute(
        "INSERT INTO entries SELECT 1, kind, of, owner, name, start, finish, nodes, "
        "cost, expires, body FROM entries WHERE version = 2"
    )
    with pytest.raises(ledger.Corrupt, match="version 1 to 2 cannot be replayed"):
        reopened(pool)


@pytest.mark.parametrize(
    "body",
    ["row -1", f"row {-(2**63)}", "[" * 100_000, '{"nodes":[' + "9" * 30 + "]}"],
)
def test_an_entry_of_an_invalid_body_is_named(pool: sk.SharedPool, body: str) -> None:
    pool.place(JOB)
    pool.disable([0], 100, 200)
    connection = pool._store.connection
    version, data = 1, bytearray()
    if body.startswith("row"):
        (found,) = connection.execute("SELECT body FROM entries WHERE version = 1")
        data += found[0]
        first = 8 + int.from_bytes(data[2:4], "little") + 56
        data[first : first + 8] = struct.pack("<q", int(body[4:]))
    else:
        version, data = 2, bytearray(body.encode())
    update = "UPDATE entries SET body = ? WHERE version = ?"
    connection.execute(update, (bytes(data), version))
    with pytest.raises(ledger.Corrupt, match="cannot be replayed"):
        reopened(pool)
    assert not pool.check()


def test_sqlite_refuses_a_second_end(pool: sk.SharedPool) -> None:
    pool.place(JOB)
    pool.release(1)
    with pytest.raises(sqlite3.IntegrityError):
        pool._store.connection.execute(
            "INSERT INTO entries(version, kind, of) VALUES (9, 'expire', 1)"
        )


def test_remote_file_systems_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "1 0 0:1 / / rw - ext4 /dev/a rw\n"
        "2 1 0:2 / /home\\040x rw - nfs4 server:/home rw\n"
        "3 1 0:3 / /data rw - fuse.sshfs x rw\n"
        "4 2 0:4 / /home\\040x/local rw - xfs /dev/b rw\n"
        "5 1 0:5 / /größe\\134x rw - cifs //server/x rw\n",
        encoding="utf-8",
    )
    found = {
        "/home x/site.db": "nfs4",
        "/home x/local/site.db": "xfs",
        "/homes/site.db": "ext4",
        "/data/site.db": "fuse.sshfs",
        "/größe\\x/site.db": "cifs",
    }
    for path, kind in found.items():
        assert file_system(Path(path), str(mounts)) == kind
    assert file_system(tmp_path, str(tmp_path / "none")) == ""
    for kind in ("nfs4", "fuse.sshfs", "fuse"):
        monkeypatch.setattr("slotkern.ledger.gate.file_system", lambda _, k=kind: k)
        with pytest.raises(ledger.Elsewhere, match=f"type {kind}.* local disk"):
            refuse_remote(tmp_path)


def test_files_of_a_group_may_be_written_by_the_group(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        pool = new_ledger(tmp_path)
    finally:
        os.umask(before)
    pool.place(JOB)
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o664, path
