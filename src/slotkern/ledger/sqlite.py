"""The log in one SQLite file in WAL mode, for the processes of one machine.

A commit is written under the lock without a flush; `SqliteStore.flush` flushes the WAL
after the lock has been released, so that one flush serves the commits of many
processes. This is sound because the WAL is written in the order of commits, because a
checkpoint flushes it before it copies pages, and because it remains the same file while
a connection is open.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from slotkern.files.atomic import flush_folder, new_draft
from slotkern.ledger.errors import Busy, Corrupt, LedgerError, OtherFormat
from slotkern.ledger.gate import Gate, refuse_remote
from slotkern.ledger.log import PoolSnapshot, Turn
from slotkern.ledger.tables import (
    ADD_CALL,
    ADD_ENTRY,
    CALL,
    CLIENT,
    ENTRY,
    FORMAT,
    HEAD,
    RULES,
    TABLES,
    TableStore,
    require_rules,
)

__all__ = ["SqliteStore", "copy_tables", "create"]

APPLICATION = 0x534C4B4C  # "SLKL"

_WAL_LIMIT = 1 << 26

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE clients(
    id INTEGER PRIMARY KEY, user TEXT NOT NULL, host TEXT, pid INTEGER, program TEXT,
    since INTEGER);
{TABLES}"""


def create(path: Path, snapshot: bytes, meta: Mapping[str, str]) -> None:
    """Create a ledger with a first snapshot; FileExistsError if there is a file."""
    refuse_remote(path)
    if path.exists():  # the link below is the check that counts
        raise FileExistsError(17, "there is a file already", str(path))
    with _draft(path) as (draft, connection):
        connection.execute("PRAGMA journal_mode = WAL")
        now = time.time_ns() // 1000
        values: dict[str, Any] = {"id": os.urandom(16).hex(), "created": now}
        values |= {"rules": RULES, **meta}
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", values.items())
        connection.execute("INSERT INTO head VALUES (1, 0, 0, x'', ?, 0)", [FORMAT])
        connection.execute(
            "INSERT INTO snapshots VALUES (0, ?, x'', ?)", (now, snapshot)
        )
        connection.execute("COMMIT")
        connection.close()
        _publish(draft, path, os.link)


def copy_tables(path: Path, read: Callable[[str], Iterable[Sequence[Any]]]) -> None:
    """Write the rows of another store to a new file; an existing one is replaced.

    `read` returns the rows of a SELECT.
    """
    path = path.resolve()
    refuse_remote(path)
    tables = {"meta": "name, value", "head": f"one, {HEAD}", "calls": CALL}
    tables |= {"clients": f"id, {CLIENT}", "entries": ENTRY}
    tables["snapshots"] = ", ".join(PoolSnapshot._fields)
    with _draft(path) as (draft, connection):
        connection.executescript(f"PRAGMA journal_mode = WAL; BEGIN; {_SCHEMA}")
        for table, columns in tables.items():
            marks = ", ".join("?" * (columns.count(",") + 1))
            connection.executemany(
                f"INSERT INTO {table}({columns}) VALUES ({marks})",
                read(f"SELECT {columns} FROM {table}"),
            )
        connection.execute("COMMIT")
        connection.close()
        _publish(draft, path, os.replace)


@contextlib.contextmanager
def _draft(path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """Yield a draft of a file and its connection; remove the draft at the end."""
    with contextlib.ExitStack() as stack:
        try:
            draft, _ = stack.enter_context(new_draft(path))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        # Closed before the file of the draft: that would drop the locks of SQLite.
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            yield draft, connection
        except sqlite3.Error as error:
            raise LedgerError(f"{path}: nothing was written: {error}") from error
        finally:
            connection.close()


def _publish(draft: Path, path: Path, name: Callable[[Path, Path], None]) -> None:
    """Flush a draft and give it the name of a file, by `os.link` or `os.replace`."""
    wal = Path(f"{path}-wal")
    if wal.exists() and path.exists():
        _remove_wal(path)
    if wal.exists():  # SQLite would write its pages into the new file
        reason = "belongs to a ledger that is in use"
        if not path.exists():
            reason = "is left from a removed ledger; remove it unless that is in use"
        raise FileExistsError(17, reason, str(wal))
    try:
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        name(draft, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    flush_folder(path.parent)


def _remove_wal(path: Path) -> None:
    """Let SQLite remove the WAL of a ledger that nothing else has open.

    A process that was killed, or that only read the ledger, leaves its WAL.
    """
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        finally:
            connection.close()


class SqliteStore(TableStore):
    """The store of one file; see `slotkern.ledger.log.Store` for the contract."""

    where: Path

    def __init__(
        self,
        path: Path,
        durable: str = "disk",
        patience: float = 30.0,
        readonly: bool = False,
    ) -> None:
        super().__init__(durable, patience, readonly)
        path = path.resolve()  # all names of a file have the same lock
        self.where, self.name = path, str(path)
        self._connection: sqlite3.Connection | None = None
        self._gate: Gate | None = None
        self._wal: int | None = None
        self._flush_lock = threading.RLock()  # reentrant: a fork closes the files
        self._written = self._flushed = 0
        if not path.exists():  # SQLite would create an empty file
            raise FileNotFoundError(2, "no such ledger", str(path))
        refuse_remote(path)
        _ = self.connection

    # --- the connection

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection; opened again after a fork."""
        if self._connection is None:
            self._require_found()
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        where = f"{self.where.as_uri()}?mode={'ro' if self.readonly else 'rw'}"
        connection = sqlite3.connect(
            where,
            uri=True,
            isolation_level=None,  # Python would begin deferred transactions
            timeout=self.patience,
            check_same_thread=False,
        )
        try:
            with self._errors():
                self._check_marks(connection)
                self._file = os.stat(self.where)
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
                if not self.readonly:
                    mode = stat.S_IMODE(os.stat(self.where).st_mode) & 0o666
                    self._gate = Gate(Path(f"{self.where}-turn"), mode)
                    connection.execute("SELECT version FROM head")  # creates the WAL
                    self._wal = os.open(f"{self.where}-wal", os.O_RDONLY | os.O_CLOEXEC)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_marks(self, connection: sqlite3.Connection) -> None:
        try:
            application, version = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            )
        except sqlite3.DatabaseError as error:
            if "readonly" in str(error) or "unable to open" in str(error):
                raise PermissionError(
                    13, f"cannot be opened ({error})", self.name
                ) from None
            raise OtherFormat(f"{self.name} is not a ledger: {error}") from None
        if application != APPLICATION:
            raise OtherFormat(f"{self.name} is not a ledger of slotkern")
        if version != FORMAT:
            raise OtherFormat(
                f"{self.name} has format {version}; this program knows {FORMAT}"
            )
        rules = connection.execute("SELECT value FROM meta WHERE name = 'rules'")
        require_rules(self.name, *(rules.fetchone() or (None,)))

    def close(self) -> None:
        """Close the files; a later call opens them again."""
        with self._flush_lock:
            if self._connection is not None:
                if self.durable == "disk" and self._wal is not None:
                    os.fdatasync(self._wal)  # another thread may be about to flush
                self._connection.close()
            self._connection = None
            self.forget()

    def forget(self) -> None:
        """Close the lock and the WAL, and drop the connection without closing it."""
        if self._connection is not None:
            _INHERITED.append(self._connection)
        gate, self._gate = self._gate, None
        wal, self._wal = self._wal, None
        self._connection = None
        if gate is not None:
            gate.close()
        if wal is not None:
            os.close(wal)

    # --- reading

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the errors of SQLite in the block as `LedgerError`."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> LedgerError:
        return LedgerError(f"{self.name}: SQLite: {error}")

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        """Return all rows; SQLite reads, and fails, also after the first one."""
        try:  # without the generator of `_errors`: each call reads three times
            return self.connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _change(self, statement: str, *values: Any) -> int:
        with self._errors():
            return self.connection.execute(statement, values).rowcount

    def _require_same_place(self) -> None:
        try:
            same = os.path.samestat(os.stat(self.name), self._file)
        except FileNotFoundError:
            same = False
        if not same:
            raise Corrupt(
                f"{self.name} was removed, or another file was put in its place; open "
                "it again"
            )

    def snapshots(self) -> Iterator[PoolSnapshot]:
        """Yield the snapshots of one moment, the newest first."""
        columns = ", ".join(PoolSnapshot._fields)
        newest = f"SELECT {columns} FROM snapshots ORDER BY version DESC"
        with self._errors():  # reads one by one: most readers need one
            yield from map(PoolSnapshot._make, self.connection.execute(newest))

    def clock(self) -> int:
        """Return microseconds since 1970."""
        return time.time_ns() // 1000

    # --- writing

    @contextlib.contextmanager
    def turn(self, known: int = 0) -> Iterator[Turn]:
        """Hold the locks of writers; what is not committed in the block is dropped."""
        self._require_writable()
        connection = self.connection
        try:
            self.in_turn = True
            assert self._gate is not None
            self._gate.enter(self.patience)
            self._begin(connection)
            yield Turn(self.head(), self.clock, self.call, self._commit)
        except sqlite3.Error as error:
            raise LedgerError(f"{self.name}: nothing was stored: {error}") from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End a turn without a commit, also if there is none."""
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            if self._gate is not None:
                self._gate.leave()
            self.in_turn = False

    def _begin(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:  # an interrupt came between a turn and its end
            connection.execute("ROLLBACK")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            raise Busy(
                f"{self.name}: another program has locked the file for more than "
                f"{self.patience:g} s; nothing has changed"
            ) from None

    def _commit(self, turn: Turn) -> None:
        connection, head = self.connection, turn.head
        if not connection.in_transaction:  # without it, each statement would be kept
            raise LedgerError(f"{self.name}: this turn has ended")
        calls, entries = zip(*turn.gathered, strict=True)
        connection.executemany(ADD_ENTRY, chain.from_iterable(entries))
        connection.executemany(ADD_CALL, calls)
        connection.execute(
            "UPDATE head SET version = ?, tick = ?, chain = ?",
            (head.version, head.tick, head.chain),
        )
        self._end()

    def _end(self) -> None:
        try:
            self.connection.execute("COMMIT")
        finally:  # not before: another thread may flush at any moment
            self._written += 1

    def flush(self, repeated: bool = False) -> None:
        """Flush the WAL to the disk, unless another thread has done so meanwhile."""
        if self.durable != "disk":
            return
        mine = self._written
        with self._flush_lock:
            if (repeated or self._flushed < mine) and self._wal is not None:
                now = self._written
                os.fdatasync(self._wal)
                self._flushed = now

    def register(self, user: str) -> int:
        """Add this process to the clients."""
        program = os.path.basename(sys.argv[0])
        row = (user, socket.gethostname(), os.getpid(), program, self.clock())
        with self.turn():
            number = self.connection.execute(_ADD_CLIENT, row).lastrowid
            self._end()
        assert number is not None
        return number

    def rollback(self) -> None:
        """Drop what a failed commit has written."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _shrink(self, count: int) -> None:
        try:
            self.connection.execute("VACUUM")  # else the file would not shrink
        except sqlite3.Error as error:
            raise LedgerError(
                f"{self.name}: {count} entries were dropped, but the file "
                f"has not become smaller: {error}"
            ) from error

    def backup(self, path: Path) -> None:
        """Write a copy as of one moment; an existing file is replaced."""
        path = path.resolve()
        with _draft(path) as (draft, target):
            self.connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file
            target.execute("PRAGMA journal_mode = WAL")
            target.close()
            _publish(draft, path, os.replace)

    # --- forks
    #
    # A connection must neither be used nor closed in a child of a fork. Another
    # connection of the child would also inherit locks that the system has not given to
    # the child, so that the parent could delete the WAL. All connections are therefore
    # closed before a fork, and opened again at the next use, by parent and child.

    def before_fork(self) -> None:
        """Acquire all locks and close the files, unless the thread is in a turn."""
        super().before_fork()
        self._flush_lock.acquire()
        if not self.in_turn:
            self.close()

    def after_fork_in_parent(self) -> None:
        """Release the locks."""
        self._flush_lock.release()
        super().after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Make new locks, and leave the files to the parent."""
        self._flush_lock = threading.RLock()
        super().after_fork_in_child()


_ADD_CLIENT = f"INSERT INTO clients({CLIENT}) VALUES (?, ?, ?, ?, ?)"
_INHERITED: list[sqlite3.Connection] = []
