"""The common part of the stores of a log: the tables in SQL, and the rules of forks.

A store is a subclass of `TableStore` that adds the connection, the lock of writers and
the commit. Statements have ``?`` for values, and are standard SQL.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import repeat
from pathlib import Path
from typing import Any

from slotkern.ledger.codec import Call, Entry, Head, Step
from slotkern.ledger.errors import Corrupt, LedgerError, OtherFormat
from slotkern.ledger.log import PIECE, PoolSnapshot, Turn

__all__ = [
    "ADD_CALL",
    "ADD_ENTRY",
    "CALL",
    "CLIENT",
    "ENTRY",
    "FORMAT",
    "HEAD",
    "RULES",
    "STEP",
    "TABLES",
    "TableStore",
    "require_rules",
]

FORMAT = 1
#: The rules by which a program cuts booked parts; other rules replay to another state.
RULES = 1

HEAD, ENTRY, STEP, CALL = (", ".join(row._fields) for row in (Head, Entry, Step, Call))
CLIENT = '"user", host, pid, program, since'
ADD_ENTRY = f"INSERT INTO entries({ENTRY}) VALUES ({', '.join('?' * 11)})"
ADD_CALL = f"INSERT INTO calls({CALL}) VALUES ({', '.join('?' * 9)})"

#: The tables whose types have the same names in all stores, but for their widths.
TABLES = """
CREATE TABLE head(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL, tick INTEGER NOT NULL, chain BLOB NOT NULL,
    format INTEGER NOT NULL, pruned INTEGER NOT NULL);
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


def require_rules(name: str, found: Any) -> None:
    """Raise `OtherFormat` for a ledger that was written by other rules of cutting."""
    if str(found) != str(RULES):
        raise OtherFormat(
            f"{name} was written by the rules {found} of cutting parts; this program "
            f"has {RULES}"
        )


class TableStore:
    """The tables of a log; see `slotkern.ledger.log.Store` for the contract."""

    where: Path | str
    name: str

    def __init__(self, durable: str, patience: float, readonly: bool) -> None:
        self.durable, self.patience, self.readonly = durable, patience, readonly
        self.lock = threading.RLock()
        self.in_turn = self.lost = False
        _STORES.add(self)

    # --- what a store adds

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        """Return all rows of a statement; `LedgerError` if it fails."""
        raise NotImplementedError

    def _change(self, statement: str, *values: Any) -> int:
        """Execute a statement of a turn; return the number of rows it changed."""
        raise NotImplementedError

    def _end(self) -> None:
        """Commit the transaction of a turn."""
        raise NotImplementedError

    def _require_same_place(self) -> None:
        """Raise `Corrupt` if another ledger is at the place of this one."""

    def turn(self, known: int = 0) -> AbstractContextManager[Turn]:
        """Hold the lock of writers; what is not committed in the block is dropped."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop the connection without closing it: in the child of a fork."""
        raise NotImplementedError

    def _require_writable(self) -> None:
        if self.readonly:
            raise LedgerError(f"{self.name} was opened with readonly=True")

    def _require_found(self) -> None:
        """Raise `LedgerError` in a child that was forked in a turn of its thread."""
        if self.lost:
            raise LedgerError(
                f"{self.name}: the process forked during a call or a group of "
                "another thread; open the ledger in the child"
            )

    # --- reading

    def head(self) -> Head:
        """Return the head, without the lock."""
        return self._checked(Head(*self._rows(f"SELECT {HEAD} FROM head")[0]))

    def _checked(self, head: Head) -> Head:
        self._require_same_place()
        if head.format != FORMAT:
            raise OtherFormat(
                f"{self.name} now has format {head.format}; this program knows "
                f"{FORMAT}: restart it in the new version"
            )
        return head

    def entries(self, first: int, last: int) -> Iterator[list[Entry]]:
        """Yield the entries from `first` to `last` in pieces."""
        return map(_named, self._pieces(ENTRY, "entries", "version", first, last))

    def steps(self, first: int, last: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the columns of `Step` of the entries from `first` to `last`."""
        return self._pieces(STEP, "entries", "version", first, last)

    def _pieces(
        self, columns: str, table: str, key: str, first: int, last: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows with keys from `first` to `last`, by keys, in pieces.

        Each statement has its own last key instead of a LIMIT: with the statistics of
        a table that has grown, PostgreSQL would sort all rows up to `last` each time.
        """
        statement = f"SELECT {columns} FROM {table} WHERE {key} BETWEEN ? AND ?"
        statement += f" ORDER BY {key}"
        for start in range(first, last + 1, PIECE):
            if rows := self._rows(statement, start, min(start + PIECE - 1, last)):
                yield rows

    def call(self, token: str) -> Call | None:
        """Return the call of a token."""
        rows = self._rows(f"SELECT {CALL} FROM calls WHERE token = ?", token)
        return Call(*rows[0]) if rows else None

    def call_at(self, last: int) -> Call | None:
        """Return the call that ends at a version."""
        rows = self._rows(f"SELECT {CALL} FROM calls WHERE last = ?", last)
        return Call(*rows[0]) if rows else None

    def calls(self, first: int, last: int) -> Iterator[Call]:
        """Yield the calls that end at versions from `first` to `last`."""
        for rows in self._pieces(CALL, "calls", "last", first, last):
            yield from map(Call._make, rows)

    def clients(self) -> dict[int, tuple[str, str, int, str, int]]:
        """Return user, host, process id, program and time of each client."""
        rows = self._rows(f"SELECT id, {CLIENT} FROM clients")
        return {row[0]: row[1:] for row in rows}

    def kind(self) -> str:
        """Return what the ledger books: "" whole nodes, "shares" shares of nodes."""
        rows = self._rows("SELECT value FROM meta WHERE name = 'kind'")
        return str(rows[0][0]) if rows else ""

    # --- writing

    def put_snapshot(self, snapshot: PoolSnapshot) -> None:
        """Store a snapshot, and drop those that are not needed any more."""
        with self.turn() as turn:
            if snapshot.version < turn.head.pruned:
                return  # another process has dropped this part of the log meanwhile
            call = self.call_at(snapshot.version)
            if call is not None and call.chain != snapshot.chain:
                raise Corrupt(f"{self.name} is not the ledger of this snapshot")
            self._change("DELETE FROM snapshots WHERE version = ?", snapshot.version)
            self._change("INSERT INTO snapshots VALUES (?, ?, ?, ?)", *snapshot)
            rows = self._rows("SELECT version, at FROM snapshots ORDER BY version")
            kept = _kept(rows, turn.head.pruned)
            marks = ", ".join("?" * len(kept))
            self._change(f"DELETE FROM snapshots WHERE version NOT IN ({marks})", *kept)
            self._end()

    def prune(self, before: int) -> int:
        """Drop the log up to the newest snapshot made by a time; return the entries."""
        with self.turn() as turn:
            newest = "SELECT max(version) FROM snapshots WHERE at <= ?"
            version = self._rows(newest, before)[0][0]
            if version is None or version <= turn.head.pruned:
                return 0
            count = self._change("DELETE FROM entries WHERE version <= ?", version)
            self._change("DELETE FROM calls WHERE last <= ?", version)
            self._change("DELETE FROM snapshots WHERE version < ?", version)
            self._change("UPDATE head SET pruned = ?", version)
            self._end()
            self._shrink(count)
        return count

    def _shrink(self, count: int) -> None:
        """Give the space of `count` dropped entries back, within the turn."""

    # --- forks

    def before_fork(self) -> None:
        """Acquire all locks, so that the child gets a store at rest."""
        self.lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Release the locks."""
        self.lock.release()

    def after_fork_in_child(self) -> None:
        """Make new locks, and leave the connection to the parent."""
        self.lock = threading.RLock()
        if self.in_turn:  # in the forking thread
            self.lost, self.in_turn = True, False
        self.forget()


def _named(rows: list[Any]) -> list[Entry]:
    """Return tuples as entries; three times as fast as `Entry._make`."""
    return [*map(tuple.__new__, repeat(Entry), rows)]


_DAY = 86_400 * 10**6


def _kept(snapshots: list[tuple[int, int]], base: int) -> list[int]:
    """Return the base, the first snapshot of each day, and the newest two."""
    days: dict[int, int] = {}
    for version, at in snapshots:
        days.setdefault(at // _DAY, version)
    newest = [version for version, _ in snapshots[-2:]]
    return sorted({base, *days.values(), *newest})


_STORES: weakref.WeakSet[TableStore] = weakref.WeakSet()
_locked: list[TableStore] = []


def _before_fork() -> None:
    for store in list(_STORES):
        store.before_fork()
        _locked.append(store)


def _after_fork_in_parent() -> None:
    while _locked:
        _locked.pop().after_fork_in_parent()


def _after_fork_in_child() -> None:
    for store in list(_STORES):
        store.after_fork_in_child()
    _locked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
