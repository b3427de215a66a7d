"""The contract between a shared pool and the store of its log.

Every store follows these rules:

- Versions of entries are 1, 2, 3, ... without gaps, assigned under the lock that a
  `Turn` holds until its commit. So a reader of one version has read all before it.
- `Turn.commit` stores all calls that the turn gathered, or none of them. The
  turn of a killed process ends with the process.
- Tokens are unique; a second end or confirmation of a booking is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from slotkern.ledger.codec import Call, Entry, Head, chain

__all__ = ["PIECE", "PoolSnapshot", "Store", "Turn"]

#: Number of entries or calls that a store reads at once: they fit in a cache of 1 MB.
PIECE = 1000

_new: Any = tuple.__new__
_COLUMNS = len(Entry._fields) - 1  # without the version


class PoolSnapshot(NamedTuple):
    """The state of the pool at a version, the time it was made, and its bytes."""

    version: int
    at: int
    chain: bytes
    body: bytes


class Turn:
    """The right to append calls: nobody else appends meanwhile.

    Attributes
    ----------
    gathered : list of (Call, entries)
        The calls of this turn.
    """

    def __init__(
        self,
        head: Head,
        clock: Callable[[], int],
        find: Callable[[str], Call | None],
        store: Callable[[Turn], None],
    ) -> None:
        self._start, self._clock, self._find, self._store = head, clock, find, store
        self.gathered: list[tuple[Call, list[Entry]]] = []
        self._tokens: dict[str, Call] = {}  # of the gathered calls

    @property
    def head(self) -> Head:
        """The head of the log, including the calls that were gathered in this turn."""
        if not self.gathered:  # a gathered call and its head change in one step
            return self._start
        head: Head = _new(Head, (*self._end(), *self._start[3:]))
        return head

    def _end(self) -> tuple[int, int, bytes]:
        """Return the version, tick and chain of the head."""
        if not self.gathered:
            return self._start[:3]
        call, _ = self.gathered[-1]
        return call.last, call.at, call.chain

    def now(self) -> int:
        """Return the ledger time: the store's clock, never before the last call."""
        return max(self._end()[1], self._clock())

    def call(self, token: str) -> Call | None:
        """Return the call of a token, also one that was gathered."""
        return self._tokens.get(token) or self._find(token)

    def append(
        self,
        client: int,
        what: str,
        rows: list[tuple[Any, ...]],
        at: int,
        token: str | None = None,
        asked: bytes | None = None,
        answer: str | None = None,
    ) -> tuple[Call, list[Entry]]:
        """Gather a call at a ledger time; `rows` are its entries without versions."""
        version, _, before = self._end()
        # `_new` takes a third of the time, and needs all columns.
        entries = [
            _new(Entry, (i, *row)) if len(row) == _COLUMNS else Entry(i, *row)
            for i, row in enumerate(rows, version + 1)
        ]
        last = version + len(rows)
        fields = (last, version + 1, at, client, what, token, asked, answer)
        call = _new(Call, (*fields, chain(before, fields, entries)))
        if token is not None:
            self._tokens[token] = call
        self.gathered.append((call, entries))
        return call, entries

    def commit(self) -> None:
        """Store all that was gathered, and end the turn."""
        self._store(self)


class Store(Protocol):
    """A log and its snapshots. Methods may be called by one thread at a time."""

    lock: Any  # an RLock that protects the store and its pool
    name: str  # the place in messages, without a password
    readonly: bool
    durable: str

    @property
    def where(self) -> Path | str:
        """The place by which the ledger is opened."""
        ...

    def head(self) -> Head: ...

    def kind(self) -> str:
        """Return what the ledger books: "" whole nodes, "shares" shares of nodes."""
        ...

    def entries(self, first: int, last: int) -> Iterator[list[Entry]]:
        """Yield the entries from `first` to `last`, ascending, in pieces."""
        ...

    def steps(self, first: int, last: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the columns of `Step` of entries, ascending, in pieces.

        The rows are plain tuples: replay converts most of them by columns.
        """
        ...

    def call(self, token: str) -> Call | None: ...

    def call_at(self, last: int) -> Call | None: ...

    def calls(self, first: int, last: int) -> Iterator[Call]:
        """Yield the calls that end at versions from `first` to `last`, ascending."""
        ...

    def clients(self) -> dict[int, tuple[str, str, int, str, int]]:
        """Return user, host, process id, program and time of each client."""
        ...

    def snapshots(self) -> Iterator[PoolSnapshot]:
        """Yield the snapshots, the newest first."""
        ...

    def turn(self, known: int = 0) -> AbstractContextManager[Turn]:
        """Hold the lock of writers; what is not committed in the block is dropped.

        `known` is the version of the caller, who will read what came after it.
        """
        ...

    def flush(self, repeated: bool = False) -> None:
        """Return when all commits of this process survive the loss of power.

        `repeated`: also commits of other processes, which may have ended before theirs.
        """
        ...

    def register(self, user: str) -> int:
        """Add this process to the clients, in a turn of its own; return its number."""
        ...

    def rollback(self) -> None:
        """Drop what a failed commit has written, and hold the lock of writers again.

        Then reading decides what was stored, also if a session was lost.
        """
        ...

    def abandon(self) -> None:
        """End a turn without a commit, also if there is none."""
        ...

    def put_snapshot(self, snapshot: PoolSnapshot) -> None: ...

    def prune(self, before: int) -> int:
        """Drop the log up to the newest snapshot made by a time; return the entries."""
        ...

    def backup(self, path: Path) -> None: ...

    def clock(self) -> int: ...

    def close(self) -> None: ...
