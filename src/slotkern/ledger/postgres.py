"""The log in one schema of a PostgreSQL database, for processes of any machine.

The lock of writers is the row of `head`, which a turn locks for update until its
commit. Time is that of the server. A commit returns when the server has flushed it.

A commit that fails leaves its outcome open: the session that was lost may still be
about to commit. It holds the lock of `head` until it has ended, so `rollback` gets this
lock in a new session before anybody asks whether the call was stored.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from slotkern.foundation.extras import extra
from slotkern.ledger.codec import Call, Head
from slotkern.ledger.errors import Busy, Corrupt, LedgerError
from slotkern.ledger.log import PIECE, PoolSnapshot, Turn
from slotkern.ledger.places import Address, parse_url
from slotkern.ledger.tables import (
    ADD_CALL,
    ADD_ENTRY,
    CALL,
    CLIENT,
    ENTRY,
    FORMAT,
    HEAD,
    RULES,
    STEP,
    TABLES,
    TableStore,
    require_rules,
)

with extra():
    import psycopg
    from psycopg.pq import TransactionStatus

__all__ = ["PostgresStore", "connect", "create", "ledger_errors"]

_SCHEMA = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE clients(
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "user" TEXT NOT NULL, host TEXT,
    pid BIGINT, program TEXT, since BIGINT);
""" + re.sub(
    "INTEGER|REAL|BLOB",
    lambda m: {"INTEGER": "BIGINT", "REAL": "FLOAT8", "BLOB": "BYTEA"}[m[0]],
    TABLES,
)
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
#: Milliseconds after which the server ends the turn of a client that does not respond.
_LONGEST_PAUSE = 60_000
#: The number of rows above which COPY is faster than one INSERT for each.
_FEW = 40


@contextlib.contextmanager
def ledger_errors(name: str) -> Iterator[None]:
    """Raise the errors of PostgreSQL in the block as `LedgerError`."""
    try:
        yield
    except psycopg.errors.UndefinedTable as error:
        raise Corrupt(f"{name} is no ledger, or was removed") from error
    except psycopg.Error as error:
        raise LedgerError(f"{name}: PostgreSQL: {_text(error)}") from error


def connect(address: Address) -> psycopg.Connection[Any]:
    """Return a new session in the schema of a pool, in autocommit mode."""
    try:
        connection = psycopg.connect(
            address.url, autocommit=True, application_name=f"slotkern {os.getpid()}"
        )
    except psycopg.Error as error:
        raise LedgerError(
            f"{address.name}: no connection to PostgreSQL: {_text(error)}"
        ) from error
    connection.execute(
        f'SET search_path = "{address.pool}"; SET client_encoding = UTF8'.encode()
    )
    return connection


def create(url: str, snapshot: bytes, meta: Mapping[str, str]) -> None:
    """Create the schema of a ledger; FileExistsError if there is one of its name."""
    address = parse_url(url)
    own: dict[str, Any] = {"id": os.urandom(16).hex(), "rules": RULES}
    with contextlib.closing(connect(address)) as connection:
        try:
            with connection.transaction():
                connection.execute(f'CREATE SCHEMA "{address.pool}"'.encode())
                connection.execute(_SCHEMA.encode())
                connection.execute(
                    f"INSERT INTO meta SELECT 'created', {_NOW}".encode()
                )
                for item in {**own, **meta}.items():
                    connection.execute("INSERT INTO meta VALUES (%s, %s::text)", item)
                connection.execute(
                    "INSERT INTO head VALUES (1, 0, 0, '', %s, 0)", [FORMAT]
                )
                connection.execute(
                    f"INSERT INTO snapshots SELECT 0, {_NOW}, '', %s".encode(),
                    [snapshot],
                )
        except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
            reason = "there is a schema of this name already"
            raise FileExistsError(17, reason, address.name) from None
        except psycopg.Error as error:
            raise LedgerError(
                f"{address.name}: nothing was written: {_text(error)}"
            ) from error


class PostgresStore(TableStore):
    """The store of one schema; see `slotkern.ledger.log.Store` for the contract."""

    where: str

    def __init__(
        self,
        url: str,
        durable: str = "disk",
        patience: float = 30.0,
        readonly: bool = False,
    ) -> None:
        super().__init__(durable, patience, readonly)
        self.where, self._address = url, parse_url(url)
        self.name = self._address.name
        self._connection: psycopg.Connection[Any] | None = None
        self._end_session: Any = weakref.finalize(self, int)  # if nobody closes it
        self._time = (0, 0)  # of the server and of this process, at the start of a turn
        self._ahead: _Ahead | None = None
        _ = self.connection

    # --- the connection

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The open session; a new one if it was lost, but never within a turn."""
        connection = self._connection
        if connection is not None and not connection.closed:
            return connection
        if self.in_turn:
            raise LedgerError(f"{self.name}: the connection was lost in a turn")
        self._require_found()
        self._connection = self._open()
        self._end_session.detach()
        self._end_session = weakref.finalize(
            self, _close_here, self._connection, os.getpid()
        )
        return self._connection

    def _open(self) -> psycopg.Connection[Any]:
        connection = connect(self._address)
        try:
            wait = round(min(max(self.patience * 1000, 1), 2**31 - 1))
            settings = [
                f"SET lock_timeout = {wait}",
                f"SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE}",
            ]
            if self.readonly:
                settings.append("SET default_transaction_read_only = on")
            connection.execute("; ".join(settings).encode())
            self._set_durability(connection)
            try:
                rules = connection.execute(
                    "SELECT value FROM meta WHERE name = 'rules'"
                ).fetchone()
            except psycopg.errors.UndefinedTable:
                raise FileNotFoundError(2, "no such ledger", self.name) from None
            require_rules(self.name, *(rules or (None,)))
        except psycopg.Error as error:
            connection.close()
            raise LedgerError(f"{self.name}: PostgreSQL: {_text(error)}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_durability(self, connection: psycopg.Connection[Any]) -> None:
        if self.durable == "crash":
            connection.execute("SET synchronous_commit = off")
            return
        names = "current_setting('fsync'), current_setting('synchronous_commit')"
        row = connection.execute(f"SELECT {names}".encode()).fetchone()
        fsync, commit = row or ("", "")
        if fsync == "off" and not self.readonly:
            raise LedgerError(
                f"{self.name}: the server runs with fsync = off, so that nothing "
                "survives the loss of power; use durable='crash'"
            )
        if commit == "off":
            connection.execute("SET synchronous_commit = on")

    def close(self) -> None:
        """Close the session; a later call opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def forget(self) -> None:
        """Drop the session without closing it."""
        if self._connection is not None:
            _INHERITED.append(self._connection)
        self._connection = None

    # --- reading

    def _execute(self, statement: str, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        """Execute a statement, outside of turns again if the session was lost."""
        query = statement.replace("?", "%s").encode()
        with ledger_errors(self.name):
            connection = self.connection
            try:
                return connection.cursor(binary=True).execute(query, values)
            except psycopg.OperationalError:
                if self.in_turn or not connection.closed:
                    raise
            return self.connection.cursor(binary=True).execute(query, values)

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        rows: list[Any] = self._execute(statement, values).fetchall()
        return rows

    def _change(self, statement: str, *values: Any) -> int:
        count: int = self._execute(statement, values).rowcount
        return count

    def steps(self, first: int, last: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the columns of `Step` of the entries from `first` to `last`."""
        ahead = self._ahead
        if ahead is not None and ahead.known + 1 == first:
            rows = [row for row in ahead.steps if row[0] <= last]
            if rows:
                yield rows
            if len(ahead.steps) < PIECE:
                return
            first += len(rows)
        yield from super().steps(first, last)

    def call_at(self, last: int) -> Call | None:
        """Return the call that ends at a version."""
        ahead = self._ahead
        if ahead is not None and ahead.known == last:
            return ahead.call
        return super().call_at(last)

    def snapshots(self) -> Iterator[PoolSnapshot]:
        """Yield the snapshots, the newest first, each read when it is needed."""
        columns = ", ".join(PoolSnapshot._fields)
        newest = f"SELECT {columns} FROM snapshots WHERE version < ?"
        newest += " ORDER BY version DESC LIMIT 1"
        version = 2**62
        while rows := self._rows(newest, version):
            version = rows[0][0]
            yield PoolSnapshot(*rows[0])

    def clock(self) -> int:
        """Return the microseconds since 1970 of the server's clock."""
        if self.in_turn:
            server, here = self._time
            return server + (time.monotonic_ns() - here) // 1000
        now: int = self._rows(f"SELECT {_NOW}")[0][0]
        return now

    # --- writing

    @contextlib.contextmanager
    def turn(self, known: int = 0) -> Iterator[Turn]:
        """Hold the lock of writers; what is not committed in the block is dropped.

        The call at version `known` and the entries after it are read in the same round
        trip as the lock is acquired.
        """
        self._require_writable()
        try:
            head = self._enter(known)
            yield Turn(self._checked(head), self.clock, self.call, self._commit)
        except psycopg.errors.UndefinedTable as error:
            raise Corrupt(f"{self.name} was removed; open it again") from error
        except psycopg.Error as error:
            raise LedgerError(
                f"{self.name}: nothing was stored: {_text(error)}"
            ) from error
        finally:
            self.abandon()

    def _enter(self, known: int = 0) -> Head:
        """Begin a transaction and lock the head; in a new session if it was lost."""
        self.abandon()  # an interrupt may have come between a turn and its end
        connection = self.connection
        try:
            return self._lock(connection, known)
        except psycopg.errors.LockNotAvailable:
            self.abandon()
            raise Busy(
                f"{self.name}: another writer has held the lock for more than "
                f"{self.patience:g} s{self._holder()}; nothing has changed"
            ) from None
        except psycopg.OperationalError:
            if not connection.closed:
                raise
        return self._lock(self.connection, known)

    def _lock(self, connection: psycopg.Connection[Any], known: int) -> Head:
        statements = [
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            f"SELECT {_NOW}, {HEAD} FROM head FOR UPDATE",
        ]
        if known > 0:
            after = f"version > {known} ORDER BY version LIMIT {PIECE}"
            statements += [
                f"SELECT {CALL} FROM calls WHERE last = {known}",
                f"SELECT {STEP} FROM entries WHERE {after}",
            ]
        cursor = connection.execute("; ".join(statements).encode())
        cursor.nextset()
        now, *head = cursor.fetchall()[0]
        if known > 0:
            cursor.nextset()
            row = cursor.fetchone()
            cursor.nextset()
            steps = cursor.fetchall()
            self._ahead = _Ahead(known, Call(*row) if row else None, steps)
        self._time = now, time.monotonic_ns()
        self.in_turn = True
        return Head(*head)

    def _holder(self) -> str:
        """Return the longest transaction of another client as text."""
        try:
            rows = self._rows(
                "SELECT application_name, coalesce(host(client_addr), 'a socket'), "
                "state, extract(epoch FROM now() - xact_start)::float8 "
                "FROM pg_stat_activity WHERE datname = current_database() "
                "AND xact_start IS NOT NULL AND pid <> pg_backend_pid() "
                "AND starts_with(application_name, 'slotkern') "
                "ORDER BY xact_start LIMIT 1"
            )
        except LedgerError:
            return ""
        if not rows:
            return ""
        program, host, state, age = rows[0]
        return f" (process {program.split()[-1]} at {host}, {state} for {age:.0f} s)"

    def abandon(self) -> None:
        """End a turn without a commit, also if there is none."""
        self.in_turn, self._ahead = False, None
        connection = self._connection
        if connection is None or connection.closed:
            return
        if connection.info.transaction_status != TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()

    def rollback(self) -> None:
        """Drop what a failed commit has written, and lock the head again.

        The outcome is certain then: a lost session has ended if the lock is free.
        """
        with ledger_errors(self.name):
            self._enter()

    def _commit(self, turn: Turn) -> None:
        connection, head = self.connection, turn.head
        if connection.info.transaction_status != TransactionStatus.INTRANS:
            raise LedgerError(f"{self.name}: this turn has ended")
        calls = [call for call, _ in turn.gathered]
        entries = [entry for _, group in turn.gathered for entry in group]
        statements: list[str] = []
        values: list[Any] = []
        if len(entries) + len(calls) <= _FEW:
            statements = [ADD_ENTRY] * len(entries) + [ADD_CALL] * len(calls)
            values = [value for row in (*entries, *calls) for value in row]
        else:
            _copy(connection, "entries", ENTRY, _ENTRY_TYPES, entries)
            _copy(connection, "calls", CALL, _CALL_TYPES, calls)
        statements += ["UPDATE head SET version = ?, tick = ?, chain = ?", "COMMIT"]
        values += [head.version, head.tick, head.chain]
        # One round trip: values are put into the text, which may have many statements.
        query = "; ".join(statements).replace("?", "%s").encode()
        psycopg.ClientCursor(connection).execute(query, values)

    def _end(self) -> None:
        self.connection.execute("COMMIT")

    def flush(self, repeated: bool = False) -> None:
        """Return when all commits survive the loss of power.

        A commit of this store is flushed when it returns. One of another process that
        does not flush its own (`durable="crash"`) is flushed with a later one.
        """
        if repeated and self.durable == "disk" and not self.readonly:
            with self.lock:
                try:
                    self._rows("SELECT pg_logical_emit_message(true, 'slotkern', '')")
                except LedgerError as error:
                    raise OSError(5, str(error)) from error

    def register(self, user: str) -> int:
        """Add this process to the clients."""
        self._require_writable()
        program = os.path.basename(sys.argv[0])
        row = (user, socket.gethostname(), os.getpid(), program)
        statement = f"INSERT INTO clients({CLIENT}) VALUES (?, ?, ?, ?, {_NOW})"
        number: int = self._rows(f"{statement} RETURNING id", *row)[0][0]
        return number

    def backup(self, path: Path) -> None:
        """Write a copy as of one moment: the file of an SQLite ledger."""
        from slotkern.ledger.sqlite import copy_tables

        with (
            ledger_errors(self.name),
            contextlib.closing(connect(self._address)) as reader,
        ):
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

            def read(statement: str) -> Iterator[Any]:
                with reader.cursor("copied", binary=True) as cursor:
                    cursor.itersize = 1000
                    yield from cursor.execute(statement.encode())

            copy_tables(path, read)


class _Ahead(NamedTuple):
    """Rows that were read when a turn began; nobody else changes them in the turn."""

    known: int
    call: Call | None
    steps: list[tuple[Any, ...]]  # the columns of `Step`


#: Sessions of a parent process: closing one in the child would end it in the parent.
_INHERITED: list[Any] = []


def _close_here(connection: psycopg.Connection[Any], process: int) -> None:
    """Close a session in the process that opened it."""
    if os.getpid() == process:
        connection.close()


_ENTRY_TYPES = (
    *("int8", "text", "int8", "text", "text", "float8", "float8", "int8"),
    *("float8", "int8", "bytea"),
)
_CALL_TYPES = (
    *("int8", "int8", "int8", "int8", "text", "text", "bytea", "text", "bytea"),
)


def _copy(
    connection: psycopg.Connection[Any],
    table: str,
    columns: str,
    types: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> None:
    statement = f"COPY {table}({columns}) FROM STDIN (FORMAT BINARY)"
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def _text(error: Exception) -> str:
    """Return an error of PostgreSQL in one line."""
    return " ".join(str(error).split()) or type(error).__name__
