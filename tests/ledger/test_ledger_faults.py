"""Ledgers under signals, forks, full disks and exchanged files."""

from __future__ import annotations

import linecache
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern import ledger
from slotkern.ledger import sqlite
from slotkern.ledger.gate import file_system, refuse_remote
from slotkern.ledger.sqlite import SqliteStore
from tests.support.ledgers import assert_followed, new_ledger, state_of

JOB = sk.Request(1, 1)
FOLDER = str(Path(ledger.__file__).parent)


@pytest.fixture
def pool(tmp_path: Path) -> sk.SharedPool:
    return new_ledger(tmp_path, 4, 1e4)


def reopened(pool: sk.SharedPool, **options: Any) -> sk.SharedPool:
    return sk.SlotPool.open(pool._store.path, **options)


# --- interruptions


class Interrupt:
    """Raises KeyboardInterrupt at the k-th line that the code of ledgers runs.

    Lines of `with` are not counted: tracing reports them once more before the exit of
    the block, where Python runs no handlers of signals.
    """

    def __init__(self, k: int) -> None:
        self.left = k

    def __call__(self, frame: Any, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not text.lstrip().startswith("with "):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


CALLS = {
    "place": lambda pool, k: pool.place(JOB, token=f"t{k}"),
    "release": lambda pool, k: pool.release(pool.place(JOB)),
    "advance": lambda pool, k: pool.advance(k / 1000),
    "group": lambda pool, k: grouped(pool, "group"),
    "turn": lambda pool, k: grouped(pool, "turn"),
    "refresh": lambda pool, k: pool.refresh(),
}


def grouped(pool: sk.SharedPool, how: str) -> None:
    with getattr(pool, how)():
        pool.place(JOB)
        pool.place(JOB)


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_statement(pool: sk.SharedPool, name: str) -> None:
    pool.schedule([JOB] * 5)
    other = reopened(pool, patience=0.5)
    k, done, step = 0, False, 1 if name == "group" else 2
    while not done:
        k += step
        assert k < 3000
        if name == "refresh":
            other.place(JOB)
        before = sys.gettrace()
        sys.settrace(Interrupt(k))
        try:
            CALLS[name](pool, k)
            done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        other.release(other.place(JOB))  # the lock is free
        pool.refresh()
        other.refresh()
        assert state_of(pool) == state_of(other)
    assert k > 30
    assert_followed(pool)


# --- other processes


def test_a_stopped_holder_makes_others_give_up(pool: sk.SharedPool) -> None:
    code = f"""if True:
        import slotkern as sk
        pool = sk.SlotPool.open({str(pool._store.path)!r})
        with pool.turn():
            pool.place(sk.Request(1, 1))
            print("ready", flush=True)
            input()"""
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        other = reopened(pool, patience=0.05)
        with pytest.raises(ledger.Busy, match=f"process {holder.pid} .* nothing has"):
            other.place(JOB)
        assert other.find(JOB) is not None
        assert other.refresh() == 0
    finally:
        holder.kill()
        holder.communicate()
    assert other.place(JOB) is not None  # a killed holder has no lock
    assert other.version == 1
    assert_followed(other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_of_a_fork_book_by_themselves(pool: sk.SharedPool) -> None:
    pool.place(JOB)
    children = []
    for i in range(4):
        child = os.fork()
        if child == 0:
            try:
                time.sleep(0.1)  # the parent closes the ledger first
                for j in range(5):
                    pool.place(JOB, token=f"{i} {j}")
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    path = pool._store.path
    pool.close()
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert sk.SlotPool.open(path).version == 21
    assert len({*pool.calls()["pid"].tolist()}) == 5
    assert_followed(pool)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_in_a_turn_leaves_it_to_the_parent(pool: sk.SharedPool) -> None:
    with pool.turn():
        pool.place(JOB)
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(ledger.LedgerError):
                pool.place(JOB)
                code = 2
            os._exit(0 if code == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert pool.version == 1
    assert_followed(pool)


def test_threads_share_a_pool(pool: sk.SharedPool) -> None:
    def book() -> None:
        for _ in range(20):
            pool.place(JOB)
            pool.find(JOB)

    threads = [threading.Thread(target=book) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.version == 80
    assert_followed(pool)


# --- the file


def test_a_full_disk_stores_nothing(pool: sk.SharedPool) -> None:
    pool.schedule([JOB] * 50)
    before = state_of(pool)
    pages = pool._store.connection.execute("PRAGMA page_count").fetchone()[0]
    pool._store.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ledger.LedgerError, match=r"nothing was stored: .* full"):
        pool.schedule([JOB] * 500, token="t")
    assert state_of(pool) == before
    assert pool.find(JOB) is not None
    with pytest.raises(ledger.LedgerError, match="nothing was stored"), pool.turn():
        pool.schedule([JOB] * 500)
    assert state_of(pool) == before
    pool._store.connection.execute(f"PRAGMA max_page_count = {10 * pages}")
    assert pool.schedule([JOB] * 500, token="t").booked.all()
    assert_followed(pool)


@pytest.mark.parametrize("stored", [True, False])
def test_the_log_decides_what_a_failed_commit_has_stored(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    end = pool._store._end

    def fail(connection: sqlite3.Connection) -> None:
        monkeypatch.undo()
        if stored:
            end(connection)
        raise sqlite3.OperationalError("disk I/O error")

    pool.place(JOB)
    monkeypatch.setattr(pool._store, "_end", fail)
    if stored:
        assert pool.place(JOB).id == 2  # type: ignore[union-attr]
    else:
        with pytest.raises(ledger.LedgerError, match="nothing was stored: disk I/O"):
            pool.place(JOB)
    assert_followed(pool)


def test_a_group_continues_after_a_failed_commit(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = pool._store._end

    def fail(connection: sqlite3.Connection) -> None:
        monkeypatch.setattr(pool._store, "_end", end)
        raise sqlite3.OperationalError("disk I/O error")

    with pool.group(most=2, within=60):
        pool.place(JOB)
        monkeypatch.setattr(pool._store, "_end", fail)
        with pytest.raises(ledger.LedgerError, match="nothing was stored"):
            pool.place(JOB)
        assert pool.version == 0
        pool.place(JOB)
    assert pool.version == 1
    assert_followed(pool)


def test_a_group_that_waits_in_vain_has_stored_its_calls(pool: sk.SharedPool) -> None:
    other = reopened(pool, patience=0.05)
    with other.group(most=1):
        other.place(JOB)  # is stored, and releases the lock
        with pool.turn(), pytest.raises(ledger.Busy):
            other.place(JOB)
        other.place(JOB)
    assert other.version == 2
    assert_followed(pool)


def test_nothing_releases_the_lock_of_a_group(pool: sk.SharedPool) -> None:
    for block in (pool.group(within=60), pool.turn()):
        with block:
            pool.place(JOB)
            for call in (pool.snapshot, pool.compact, pool.close):
                with pytest.raises(ledger.LedgerError, match="in a group or a turn"):
                    call()
            with pytest.raises(ledger.Busy):
                reopened(pool, patience=0).place(JOB)
    assert pool.version == 2
    assert_followed(pool)


def test_a_store_that_does_not_respond_is_unknown(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    pool.place(JOB)
    monkeypatch.setattr(pool._store, "_end", fail)
    monkeypatch.setattr(pool._store, "rollback", fail)
    with pytest.raises(ledger.Unknown, match="repeat the call with its token"):
        pool.place(JOB, token="t")
    monkeypatch.undo()
    assert pool.place(JOB, token="t").repeated is False  # type: ignore[union-attr]
    monkeypatch.setattr(os, "fdatasync", lambda _: os.close(-1))
    with pytest.raises(ledger.Unknown, match="loss of power"):
        pool.place(JOB, token="u")
    with pytest.raises(ledger.Unknown, match="loss of power"):
        pool.place(JOB, token="u")  # an answer that is repeated is flushed, too
    monkeypatch.undo()
    assert pool.place(JOB, token="u").repeated  # type: ignore[union-attr]
    assert_followed(pool)


def test_flushes_by_level_of_durability(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes: list[int] = []
    monkeypatch.setattr(os, "fdatasync", flushes.append)
    weak = reopened(pool, durable="crash")
    weak.place(JOB)
    assert flushes == []
    pool.place(JOB)
    with pool.group():
        pool.place(JOB)
        pool.place(JOB)
    assert len(flushes) == 2
    with suppress(ZeroDivisionError), pool.group():
        pool.place(JOB)
        raise ZeroDivisionError
    assert len(flushes) == 3  # the call is stored, and as durable as any other
    with pytest.raises(ValueError, match="durable"):
        reopened(pool, durable="none")


def test_a_flush_of_another_thread_before_the_commit(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.place(JOB)
    events: list[str] = []

    def flushes(statement: str) -> None:
        if statement == "COMMIT":
            pool._store.flush(repeated=True)
            events.append("commit")

    monkeypatch.setattr(os, "fdatasync", lambda _: events.append("flush"))
    pool._store.connection.set_trace_callback(flushes)
    pool.place(JOB)
    assert events == ["flush", "commit", "flush"]


def test_closing_waits_for_a_flush(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.place(JOB)
    closing = threading.Thread(target=pool.close)

    def flush(wal: int) -> None:
        monkeypatch.undo()
        closing.start()
        closing.join(0.1)
        os.fstat(wal)  # still open

    monkeypatch.setattr(os, "fdatasync", flush)
    pool.place(JOB)
    closing.join()
    assert_followed(pool)


def test_an_older_copy_under_a_running_pool(
    pool: sk.SharedPool, tmp_path: Path
) -> None:
    pool.place(JOB)
    pool.backup(tmp_path / "old.db")
    pool.place(JOB)
    path = pool._store.path
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
    path = pool._store.path
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
    (tmp_path / "link.db").symlink_to(pool._store.path)
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
    path = pool._store.path
    pool.backup(tmp_path / "old.db")
    pool.place(JOB)
    path.unlink()
    if replaced:
        (tmp_path / "old.db").rename(path)
    for call in (pool.refresh, lambda: pool.place(JOB)):
        with pytest.raises(ledger.Corrupt, match="was removed, or another file"):
            call()


def test_errors_of_sqlite_are_errors_of_ledgers(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pool._store.path
    pool.schedule([JOB] * 50)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("slotkern.ledger.shared.SNAPSHOT_AFTER", 1)
    waiting = reopened(pool, patience=0.01)  # opening needs no lock
    with pytest.raises(ledger.Busy, match="another program has locked the file"):
        waiting.place(JOB)
    other.execute("ROLLBACK")
    (pages,) = waiting._store.connection.execute("PRAGMA page_count").fetchone()
    waiting._store.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ledger.LedgerError, match=r"SQLite: .* full"):
        waiting.snapshot()
    other.execute("DROP TABLE calls")
    with pytest.raises(ledger.LedgerError, match=r"site\.db: SQLite: no such table"):
        waiting.place(JOB)


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


def test_the_wal_is_limited(pool: sk.SharedPool) -> None:
    found = pool._store.connection.execute("PRAGMA journal_size_limit").fetchone()
    assert found == (1 << 26,)


def test_signals_are_not_blocked_while_waiting(pool: sk.SharedPool) -> None:
    other = reopened(pool, patience=60)
    with pool.turn():
        old = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(KeyboardInterrupt):
                other.place(JOB)
        finally:
            signal.signal(signal.SIGALRM, old)
    assert other.place(JOB) is not None
