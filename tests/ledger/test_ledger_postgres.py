"""Ledgers in PostgreSQL: lost sessions, crashes of the server, URLs."""

from __future__ import annotations

import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern import ledger
from slotkern.ledger import tables
from slotkern.ledger.places import parse_url
from tests.support.ledgers import assert_followed, new_ledger, reopened, state_of
from tests.support.postgres import Cluster, missing, temporary_cluster

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
JOB = sk.Request(1, 1)
numbers = count(1)


@pytest.fixture
def url(cluster: Cluster) -> str:
    return f"{cluster.url}?pool=lost{next(numbers)}"


@pytest.fixture
def pool(url: str) -> sk.SharedPool:
    return new_ledger(url, 4, 1e4)


def execute(pool: sk.SharedPool, statement: str) -> list[Any]:
    """Execute a statement in a session of its own."""
    from slotkern.ledger.postgres import connect

    with connect(pool._store._address) as session:
        cursor = session.execute(statement)
        return cursor.fetchall() if cursor.description else []


def end_session(pool: sk.SharedPool) -> None:
    """End the session of a pool, as a server that restarts does."""
    pid = pool._store.connection.info.backend_pid
    execute(pool, f"SELECT pg_terminate_backend({pid}, 5000)")


def lose(pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch, stored: bool) -> None:
    """Let the next commit lose its session, before or after it was stored."""
    from psycopg import OperationalError

    commit = pool._store._commit

    def fail(turn: Any) -> None:
        monkeypatch.setattr(pool._store, "_commit", commit)
        if stored:
            commit(turn)
        end_session(pool)
        if not stored:
            commit(turn)
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(pool._store, "_commit", fail)


def test_a_session_lost_in_a_commit_that_was_stored(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.place(JOB)
    lose(pool, monkeypatch, stored=True)
    booking = pool.place(JOB, token="t")
    assert booking is not None
    assert (booking.id, booking.repeated) == (2, False)
    assert reopened(pool).place(JOB, owner="ann", token="t") == booking._replace(
        repeated=True
    )
    assert_followed(pool)


def test_a_session_lost_in_a_commit_that_was_not_stored(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.place(JOB)
    before = state_of(pool)
    for rows in (1, 100):
        lose(pool, monkeypatch, stored=False)
        with pytest.raises(ledger.LedgerError, match="nothing was stored"):
            pool.schedule([JOB] * rows, token="t")
        assert state_of(pool) == before
    assert pool.place(JOB, token="t").id == 2  # type: ignore[union-attr]
    assert_followed(pool)


def test_the_outcome_of_a_session_that_is_still_committing(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has lost the connection, the server has not, and commits later."""
    from psycopg import OperationalError

    store = pool._store
    pool.place(JOB)
    old = store.connection
    slow = threading.Thread(target=lambda: (time.sleep(0.3), old.execute("COMMIT")))

    def fail(turn: Any) -> None:
        monkeypatch.undo()
        for call, (entry,) in turn.gathered:
            store._rows(f"{tables.ADD_ENTRY} RETURNING 1", *entry)
            store._rows(f"{tables.ADD_CALL} RETURNING 1", *call)
        head = turn.head
        change = "UPDATE head SET version = ?, tick = ?, chain = ?"
        store._change(change, head.version, head.tick, head.chain)
        store._connection = None
        slow.start()
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(store, "_commit", fail)
    booking = pool.place(JOB, token="t")
    slow.join()
    old.close()
    assert booking is not None
    assert booking.id == 2
    assert booking.window.nodes == (1,)
    assert_followed(pool)


def test_a_store_that_does_not_respond_is_unknown(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.place(JOB)
    with monkeypatch.context() as patch:
        lose(pool, patch, stored=True)
        where = pool._store._address
        end = f"{where.url.replace('127.0.0.1', '127.0.0.2')}"

        def unreachable() -> None:
            pool._store._address = where._replace(url=end)
            raise ledger.LedgerError("no connection")

        patch.setattr(pool._store, "rollback", unreachable)
        with pytest.raises(ledger.Unknown, match="repeat the call with its token"):
            pool.place(JOB, token="t")
        with pytest.raises(ledger.LedgerError, match="no connection to PostgreSQL"):
            pool.place(JOB, token="t")
    pool._store._address = where
    again = pool.place(JOB, token="t")
    assert again is not None
    assert (again.id, again.repeated) == (2, True)
    assert_followed(pool)


def test_idle_sessions_may_end(pool: sk.SharedPool) -> None:
    other = reopened(pool)
    for call in (pool.refresh, pool.calls, lambda: pool.place(JOB), pool.snapshot):
        end_session(pool)
        call()
    assert other.refresh() == 1
    assert_followed(pool)


def test_a_session_that_ends_in_a_group(pool: sk.SharedPool) -> None:
    with pytest.raises(ledger.LedgerError, match="nothing was"), pool.group(within=60):  # noqa: PT012
        pool.place(JOB)
        end_session(pool)
    assert pool.version == 0
    with pytest.raises(ledger.LedgerError), pool.turn():  # noqa: PT012
        pool.place(JOB)
        end_session(pool)
        pool.place(JOB, token="t")
    assert pool.version == 0
    assert pool.place(JOB) is not None
    assert_followed(pool)


def test_a_crash_of_the_server() -> None:
    with temporary_cluster() as cluster:
        pool = new_ledger(f"{cluster.url}?pool=night")
        other = reopened(pool, durable="crash")
        booked = [pool.place(JOB, token=f"{i}") for i in range(5)]
        cluster.stop("immediate")
        with pytest.raises(ledger.LedgerError, match="PostgreSQL"):
            pool.place(JOB)
        cluster.start()
        for i, booking in enumerate(booked):
            again = pool.place(JOB, token=f"{i}")
            assert again == booking._replace(repeated=True)  # type: ignore[union-attr]
        assert other.place(JOB) is not None
        pool.close()
        assert_followed(other)


def test_busy_names_the_holder(pool: sk.SharedPool) -> None:
    other = reopened(pool, patience=0.05)
    with pool.turn():
        pool.place(JOB)
        with pytest.raises(ledger.Busy, match=r"\(process \d+ at .*, idle in trans"):
            other.place(JOB)
        assert other.refresh() == 0
    assert other.place(JOB) is not None


def test_a_reader_cannot_write(pool: sk.SharedPool) -> None:
    reader = reopened(pool, readonly=True)
    with pytest.raises(ledger.LedgerError, match="readonly=True"):
        reader.place(JOB)
    with pytest.raises(ledger.LedgerError, match="read-only transaction"):
        reader._store._change("UPDATE head SET version = 7")
    assert reader.find(JOB) is not None


def test_levels_of_durability(pool: sk.SharedPool) -> None:
    def commit(opened: sk.SharedPool) -> Any:
        return opened._store._rows("SHOW synchronous_commit")[0][0]

    assert commit(pool) == "on"
    weak = reopened(pool, durable="crash")
    assert commit(weak) == "off"
    weak.place(JOB, token="t")
    before = execute(pool, "SELECT pg_current_wal_flush_lsn()")
    assert pool.place(JOB, owner=weak.user, token="t").repeated  # type: ignore
    assert execute(pool, "SELECT pg_current_wal_flush_lsn()") > before


def test_a_server_that_never_flushes_is_refused() -> None:
    with temporary_cluster() as cluster:
        cluster.set("fsync", "off")
        with pytest.raises(ledger.LedgerError, match="use durable='crash'"):
            new_ledger(f"{cluster.url}?pool=night")
        where = f"{cluster.url}?pool=night"
        weak = sk.SlotPool.open(where, durable="crash")
        assert weak.place(JOB) is not None
        assert sk.SlotPool.open(where, readonly=True).version == 1
        weak.close()


def test_removed_and_missing_ledgers(pool: sk.SharedPool, url: str) -> None:
    with pytest.raises(FileExistsError, match="schema of this name"):
        sk.SlotPool(pool.slots).share(url)
    other = url.replace("?pool=", "?pool=no")
    with pytest.raises(FileNotFoundError, match="no such ledger"):
        sk.SlotPool.open(other)
    with pytest.raises(ledger.Corrupt, match="is no ledger"):
        ledger.check.check_ledger(other)
    name = pool._store._address.pool
    execute(pool, f'DROP SCHEMA "{name}" CASCADE')
    for call in (pool.refresh, lambda: pool.place(JOB)):
        with pytest.raises(ledger.Corrupt, match="removed"):
            call()
    assert sk.SlotPool(pool.slots).share(url).place(JOB) is not None


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("UPDATE head SET format = 2", "now has format 2"),
        ("UPDATE meta SET value = '2' WHERE name = 'rules'", "rules 2 of cutting"),
        (
            "INSERT INTO entries(version, kind) VALUES (2, 'tariff'); "
            "UPDATE head SET version = 2",
            "kind 'tariff'",
        ),
    ],
)
def test_ledgers_of_newer_programs(
    pool: sk.SharedPool, statement: str, match: str
) -> None:
    pool.place(JOB)
    execute(pool, statement)
    with pytest.raises(ledger.OtherFormat, match=match):
        reopened(pool)


SABOTAGE = {
    "UPDATE entries SET owner = 'eve' WHERE version = 1": "the chain of digests breaks",
    "DELETE FROM entries WHERE version = 2": "after version 1 are missing",
    "UPDATE head SET version = 2": "the log ends at 3",
    "INSERT INTO entries SELECT 4, kind, of, owner, name, start, finish, nodes, cost, "
    "expires, body FROM entries WHERE version = 1": "the log ends at 3",
    "DELETE FROM snapshots": "no snapshot at version 0",
}


@pytest.mark.parametrize("statement", SABOTAGE)
def test_the_check_reads_the_database(pool: sk.SharedPool, statement: str) -> None:
    for _ in range(3):
        pool.place(JOB)
    assert pool.check()
    execute(pool, statement)
    assert SABOTAGE[statement] in str(pool.check())


def test_the_database_refuses_a_second_end(pool: sk.SharedPool) -> None:
    from psycopg.errors import UniqueViolation

    pool.place(JOB)
    pool.release(1)
    with pytest.raises(UniqueViolation):
        execute(pool, "INSERT INTO entries(version, kind, of) VALUES (9, 'expire', 1)")


def test_a_backup_is_a_file(pool: sk.SharedPool, tmp_path: Path) -> None:
    pool.place(JOB, token="t")
    pool.schedule([JOB] * 100)
    pool.snapshot()
    pool.disable([3], 500, 600)
    pool.backup(tmp_path / "copy.db")
    copied = sk.SlotPool.open(tmp_path / "copy.db", user="ann")
    assert state_of(copied) == state_of(pool)
    assert copied.calls().tolist() == pool.calls().tolist()
    assert copied.place(JOB, token="t").repeated  # type: ignore[union-attr]
    assert_followed(copied)


def test_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_url(
        "postgres://ann:se%40cret@db.site:5433/slots?pool=night&sslmode=x"
    )
    assert found.pool == "night"
    assert found.name == "postgresql://ann@db.site:5433/slots?pool=night"
    assert found.url.startswith("postgresql://ann:se%40cret@db.site:5433/slots?conn")
    assert found.url.endswith("&sslmode=x")
    assert parse_url("postgresql:///slots?pool=a").url.startswith(
        "postgresql:///slots?"
    )
    with pytest.raises(ValueError, match=r"missing; write postgresql://h/d\?pool=NAME"):
        parse_url("postgresql://h/d")
    for pool in ("Night", "pg_x", "", "a-b", "x" * 52):
        with pytest.raises(ValueError, match="is not allowed"):
            parse_url(f"postgresql://h/d?pool={pool}")
    with pytest.raises(ledger.LedgerError, match="no connection to PostgreSQL") as info:
        sk.SlotPool.open("postgresql://a:secret@127.0.0.1:1/d?pool=x")
    assert "secret" not in str(info.value)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "slotkern.ledger.postgres")
    with pytest.raises(ModuleNotFoundError, match=r"slotkern\[postgres\]"):
        sk.SlotPool.open("postgresql://h/d?pool=x")
