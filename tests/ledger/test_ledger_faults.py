"""Ledgers on disks that are full, fail, or flush late; groups after such errors."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import slotkern as sk
from slotkern import ledger
from tests.support.ledgers import assert_followed, new_ledger, reopened, state_of

JOB = sk.Request(1, 1)


@pytest.fixture
def pool(tmp_path: Path) -> sk.SharedPool:
    return new_ledger(tmp_path, 4, 1e4)


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

    def fail() -> None:
        monkeypatch.undo()
        if stored:
            end()
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

    def fail() -> None:
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


def test_errors_of_sqlite_are_errors_of_ledgers(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pool._store.where
    pool.schedule([JOB] * 50)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("slotkern.ledger.opening.SNAPSHOT_AFTER", 1)
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


def test_the_wal_is_limited(pool: sk.SharedPool) -> None:
    found = pool._store.connection.execute("PRAGMA journal_size_limit").fetchone()
    assert found == (1 << 26,)
