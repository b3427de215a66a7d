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
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from slotkern.files.atomic import flush_folder, new_draft
from slotkern.ledger.codec import Call, Entry, Head
from slotkern.ledger.errors import Busy, Corrupt, LedgerError, OtherFormat
from slotkern.ledger.gate import Gate, refuse_remote
from slotkern.ledger.log import PIECE, PoolSnapshot, Turn

__all__ = ["SqliteStore", "create"]

APPLICATION = 0x534C4B4C  # "SLKL"
FORMAT = 1
#: The rules by which a program cuts booked parts; other rules replay to another state.
RULES = 1

_WAL_LIMIT = 1 << 26
_HEAD, _ENTRY, _CALL = (", ".join(row._fields) for row in (Head, Entry, Call))

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE head(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL, tick INTEGER NOT NULL, chain BLOB NOT NULL,
    format INTEGER NOT NULL, pruned INTEGER NOT NULL);
CREATE TABLE clients(
    id INTEGER PRIMARY KEY, user TEXT NOT NULL, host TEXT, pid INTEGER, program TEXT,
    since INTEGER);
CREATE TABLE calls(
    last INTEGER PRIMARY KEY, first INTEGER NOT NULL, at INTEGER NOT NULL,
    client INTEGER NOT NULL, what TEXT NOT NULL, token TEXT, asked BLOB, answer TEXT,
    chain BLOB NOT NULL);
CREATE UNIQUE INDEX token_of_call ON calls(token) WHERE token IS NOT NULL;
CREATE TABLE entries(
    version INTEGER PRIMARY KEY, kind TEXT NOT NULL, of INTEGER, owner TEXT, name TEXT,
    start REAL, finish REAL, nodes INTEGER, cost REAL, expires INTEGER, body BLOB);
CREATE UNIQUE INDEX end_of_booking ON entries(of) WHERE kind IN ('release', 'expire');
CREATE UNIQUE INDEX confirmation ON entries(of) WHERE kind = 'confirm';
CREATE TABLE snapshots(
    version INTEGER PRIMARY KEY, at INTEGER NOT NULL, chain BLOB NOT NULL,
    body BLOB NOT NULL);
"""


def create(path: Path, snapshot: bytes, clock: str) -> None:
    """Create a ledger with a first snapshot; FileExistsError if there is a file."""
    refuse_remote(path)
    if path.exists():  # the link below is the check that counts
        raise FileExistsError(17, "there is a file already", str(path))
    with _draft(path) as (draft, connection):
        connection.execute("PRAGMA journal_mode = WAL")
        now = time.time_ns() // 1000
        meta = {"id": os.urandom(16).hex(), "created": now, "rules": RULES}
        meta["clock"] = clock
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        connection.execute("INSERT INTO head VALUES (1, 0, 0, x'', ?, 0)", [FORMAT])
        connection.execute(
            "INSERT INTO snapshots VALUES (0, ?, x'', ?)", (now, snapshot)
        )
        connection.execute("COMMIT")
        connection.close()
        _publish(draft, path, os.link)


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


class SqliteStore:
    """The store of one file; see `slotkern.ledger.log.Store` for the contract."""

    def __init__(
        self,
        path: Path,
        durable: str = "disk",
        patience: float = 30.0,
        readonly: bool = False,
    ) -> None:
        path = path.resolve()  # all names of a file have the same lock
        self.path, self.readonly = path, readonly
        self.durable, self.patience = durable, patience
        self.lock = threading.RLock()
        self.in_turn = self.lost = False
        self._connection: sqlite3.Connection | None = None
        self._gate: Gate | None = None
        self._wal: int | None = None
        self._flush_lock = threading.RLock()  # reentrant: a fork closes the files
        self._written = self._flushed = 0
        if not path.exists():  # SQLite would create an empty file
            raise FileNotFoundError(2, "no such ledger", str(path))
        refuse_remote(path)
        _STORES.add(self)
        _ = self.connection

    # --- the connection

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection; opened again after a fork."""
        if self._connection is None:
            if self.lost:
                raise LedgerError(
                    f"{self.path}: the process forked during a call or a group of "
                    "another thread; open the ledger in the child"
                )
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        where = f"{self.path.as_uri()}?mode={'ro' if self.readonly else 'rw'}"
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
                self._file = os.stat(self.path)
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
                if not self.readonly:
                    mode = stat.S_IMODE(os.stat(self.path).st_mode) & 0o666
                    self._gate = Gate(Path(f"{self.path}-turn"), mode)
                    connection.execute("SELECT version FROM head")  # creates the WAL
                    self._wal = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
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
                    13, f"cannot be opened ({error})", str(self.path)
                ) from None
            raise OtherFormat(f"{self.path} is not a ledger: {error}") from None
        if application != APPLICATION:
            raise OtherFormat(f"{self.path} is not a ledger of slotkern")
        if version != FORMAT:
            raise OtherFormat(
                f"{self.path} has format {version}; this program knows {FORMAT}"
            )
        rules = connection.execute("SELECT value FROM meta WHERE name = 'rules'")
        if (found := rules.fetchone()) != (RULES,):
            raise OtherFormat(
                f"{self.path} was written by the rules {found and found[0]} of cutting "
                f"parts; this program has {RULES}"
            )

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
            raise LedgerError(f"{self.path}: SQLite: {error}") from error

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        """Return all rows; SQLite reads, and fails, also after the first one."""
        with self._errors():
            return self.connection.execute(statement, values).fetchall()

    def head(self) -> Head:
        """Return the head, without the lock."""
        head = Head(*self._rows(f"SELECT {_HEAD} FROM head")[0])
        try:
            same = os.path.samestat(os.stat(self.path), self._file)
        except FileNotFoundError:
            same = False
        if not same:
            raise Corrupt(
                f"{self.path} was removed, or another file was put in its place; open "
                "it again"
            )
        if head.format != FORMAT:
            raise OtherFormat(
                f"{self.path} now has format {head.format}; this program knows "
                f"{FORMAT}: restart it in the new version"
            )
        return head

    def entries(self, first: int, last: int | None = None) -> Iterator[list[Entry]]:
        """Yield the entries from `first` to `last` in pieces."""
        end = 2**62 if last is None else last
        while True:
            statement = f"SELECT {_ENTRY} FROM entries WHERE version BETWEEN ? AND ?"
            statement += f" ORDER BY version LIMIT {PIECE}"
            rows = [*map(Entry._make, self._rows(statement, first, end))]
            if rows:
                yield rows
                first = rows[-1].version + 1
            if len(rows) < PIECE:
                return

    def call(self, token: str) -> Call | None:
        """Return the call of a token."""
        rows = self._rows(f"SELECT {_CALL} FROM calls WHERE token = ?", token)
        return Call(*rows[0]) if rows else None

    def call_at(self, last: int) -> Call | None:
        """Return the call that ends at a version."""
        rows = self._rows(f"SELECT {_CALL} FROM calls WHERE last = ?", last)
        return Call(*rows[0]) if rows else None

    def calls(self, first: int = 0) -> Iterator[Call]:
        """Yield the calls that end at `first` or later."""
        statement = f"SELECT {_CALL} FROM calls WHERE last >= ? ORDER BY last"
        return map(Call._make, self._rows(statement, first))

    def clients(self) -> dict[int, tuple[str, str, int, str, int]]:
        """Return user, host, process id, program and time of each client."""
        rows = self._rows("SELECT id, user, host, pid, program, since FROM clients")
        return {row[0]: row[1:] for row in rows}

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
    def turn(self) -> Iterator[Turn]:
        """Hold the locks of writers; what is not committed in the block is dropped."""
        if self.readonly:
            raise LedgerError(f"{self.path} was opened with readonly=True")
        connection = self.connection
        try:
            self.in_turn = True
            assert self._gate is not None
            self._gate.enter(self.patience)
            self._begin(connection)
            yield Turn(self.head(), self.clock, self.call, self._commit)
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path}: nothing was stored: {error}") from error
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
                f"{self.path}: another program has locked the file for more than "
                f"{self.patience:g} s; nothing has changed"
            ) from None

    def _commit(self, turn: Turn) -> None:
        connection, head = self.connection, turn.head
        if not connection.in_transaction:  # without it, each statement would be kept
            raise LedgerError(f"{self.path}: this turn has ended")
        for call, entries in turn.gathered:
            if len(entries) == 1:
                connection.execute(_ADD_ENTRY, entries[0])
            else:
                connection.executemany(_ADD_ENTRY, entries)
            connection.execute(_ADD_CALL, call)
        connection.execute(
            "UPDATE head SET version = ?, tick = ?, chain = ?",
            (head.version, head.tick, head.chain),
        )
        self._end(connection)

    def _end(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
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
            self._end(self.connection)
        assert number is not None
        return number

    def rollback(self) -> None:
        """Drop what a failed commit has written."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def put_snapshot(self, snapshot: PoolSnapshot) -> None:
        """Store a snapshot, and drop those that are not needed any more."""
        with self.turn() as turn:
            if snapshot.version < turn.head.pruned:
                return  # another process has dropped this part of the log meanwhile
            call = self.call_at(snapshot.version)
            if call is not None and call.chain != snapshot.chain:
                raise Corrupt(f"{self.path} is not the ledger of this snapshot")
            self._rows(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", *snapshot
            )
            rows = self._rows("SELECT version, at FROM snapshots ORDER BY version")
            kept = _kept(rows, turn.head.pruned)
            marks = ", ".join("?" * len(kept))
            self._rows(f"DELETE FROM snapshots WHERE version NOT IN ({marks})", *kept)
            self._end(self.connection)

    def prune(self, before: int) -> int:
        """Drop the log up to the newest snapshot made by a time; return the entries."""
        with self.turn() as turn:
            newest = "SELECT max(version) FROM snapshots WHERE at <= ?"
            version = self._rows(newest, before)[0][0]
            if version is None or version <= turn.head.pruned:
                return 0
            entries = "DELETE FROM entries WHERE version <= ?"
            count = self.connection.execute(entries, (version,)).rowcount
            self._rows("DELETE FROM calls WHERE last <= ?", version)
            self._rows("DELETE FROM snapshots WHERE version < ?", version)
            self._rows("UPDATE head SET pruned = ?", version)
            self._end(self.connection)
            try:
                self.connection.execute("VACUUM")  # else the file would not shrink
            except sqlite3.Error as error:
                raise LedgerError(
                    f"{self.path}: {count} entries were dropped, but the file "
                    f"has not become smaller: {error}"
                ) from error
        return count

    def backup(self, path: Path) -> None:
        """Write a copy as of one moment; an existing file is replaced."""
        path = path.resolve()
        with _draft(path) as (draft, target):
            self.connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file
            target.execute("PRAGMA journal_mode = WAL")
            target.close()
            _publish(draft, path, os.replace)


_ADD_ENTRY = f"INSERT INTO entries({_ENTRY}) VALUES ({', '.join('?' * 11)})"
_ADD_CALL = f"INSERT INTO calls({_CALL}) VALUES ({', '.join('?' * 9)})"
_ADD_CLIENT = "INSERT INTO clients(user, host, pid, program, since) VALUES (?,?,?,?,?)"
_DAY = 86_400 * 10**6


def _kept(snapshots: list[tuple[int, int]], base: int) -> list[int]:
    """Return the base, the first snapshot of each day, and the newest two."""
    days: dict[int, int] = {}
    for version, at in snapshots:
        days.setdefault(at // _DAY, version)
    newest = [version for version, _ in snapshots[-2:]]
    return sorted({base, *days.values(), *newest})


# --- forks
#
# A connection must neither be used nor closed in a child of a fork. Another
# connection of the child would also inherit locks that the system has not given to
# the child, so that the parent could delete the WAL. All connections are therefore
# closed before a fork, and opened again at the next use, by parent and child.

_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_INHERITED: list[sqlite3.Connection] = []
_locked: list[SqliteStore] = []


def _before_fork() -> None:
    for store in list(_STORES):
        store.lock.acquire()
        _locked.append(store)
        store._flush_lock.acquire()
        if not store.in_turn:
            store.close()


def _after_fork_in_parent() -> None:
    while _locked:
        store = _locked.pop()
        store._flush_lock.release()
        store.lock.release()


def _after_fork_in_child() -> None:
    for store in list(_STORES):
        store.lock, store._flush_lock = threading.RLock(), threading.RLock()
        if store.in_turn:  # in the forking thread
            store.forget()
            store.lost, store.in_turn = True, False
    _locked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
