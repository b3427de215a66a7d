"""Replay: the state of a pool follows the entries of a log.

`FollowedPool` is the base of `SharedPool` and `SharedHostPool`. It has the state of the
log at `version`, in the memory of this process. Replay is deterministic: the same
entries give the same spans bit for bit.

The classes of this package that end in `Pool` add a log to a plain pool, which is
another base of the shared pool: `SlotPool` or `HostPool`. They change it by the methods
of that class, `_plain`, because their own methods of these names write to the log.
"""

from __future__ import annotations

import gc
import heapq
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any, ClassVar

from slotkern._kernels.windows import Window, columns_of_rows, run_of_rows
from slotkern.ledger.codec import (
    BOOKING_KINDS,
    END_KINDS,
    Head,
    Step,
    unpack_windows,
)
from slotkern.ledger.errors import Corrupt, OtherFormat
from slotkern.ledger.log import Store
from slotkern.ledger.snapshots import Open
from slotkern.pool.caps import replace_rules
from slotkern.pool.saved import rules_from_lists

__all__ = ["FollowedPool", "given"]

#: The number of bookings above which past ones are dropped from memory.
_PURGE = 64

#: New objects above which a collection takes longer than the replay of some entries.
_MANY_OBJECTS = 10_000

#: Errors of invalid bytes; the last two are those of large numbers and nested JSON.
_INVALID = (ValueError, TypeError, LookupError, OverflowError, RecursionError)

_KIND, _OWNER = map(Step._fields.index, ("kind", "owner"))
_BOOKED = tuple(map(Step._fields.index, ("version", "name", "expires", "body")))


class FollowedPool:
    """A pool in memory that follows a log. Its changes are methods of shared pools.

    Attributes
    ----------
    version : int
        The last entry that the pool contains.
    replayed : int
        The number of entries that were replayed to open it.
    """

    version: int
    _plain: ClassVar[Any]  # the class of the pool without a log

    def __init__(self, store: Store) -> None:
        self._store = store
        self._process = os.getpid()
        # True while memory may differ from the log: then the pool must be loaded again.
        self._stale = True
        self.replayed = self._load()

    @property
    def _itself(self) -> Any:
        """This pool, with the attributes of its plain class."""
        return self

    # --- what depends on the plain class

    def _replace_state(self, pool: Any) -> None:
        """Replace the state of the plain pool by that of another."""
        raise NotImplementedError

    @staticmethod
    def _unpack(body: bytes) -> tuple[Any, dict[int, Open]]:
        """Return the pool and the open bookings of a snapshot."""
        raise NotImplementedError

    def _pack(self, bookings: dict[int, Open]) -> bytes:
        """Return the bytes of a snapshot."""
        raise NotImplementedError

    def _release_booking(self, number: int) -> None:
        """Release the window of a booking, and drop the booking."""
        raise NotImplementedError

    def _apply_special(self, entry: Step) -> bool:
        """Replay an entry of a kind of this pool; return False for another kind."""
        raise NotImplementedError

    # --- replay

    def _load(self) -> int:
        """Load the newest valid snapshot and replay the entries after it."""
        self._stale = True
        fault: Exception | None = None
        for snapshot in self._store.snapshots():
            try:
                with _no_collections():
                    pool, bookings = self._unpack(snapshot.body)
            except _INVALID as error:
                fault = error  # an older snapshot, and more entries to replay
                continue
            break
        else:
            raise Corrupt(f"{self._store.name}: no snapshot can be read: {fault}")
        self._replace_state(pool)
        self._bookings: dict[int, Open] = {}
        self._open_all(bookings)
        self._holds = [
            (each.expires, i) for i, each in bookings.items() if each.expires
        ]
        heapq.heapify(self._holds)
        self._purge_at = _PURGE
        self.version, self._chain = snapshot.version, snapshot.chain
        # The head is read after the snapshot: others may have stored both meanwhile.
        count = self._catch_up(self._store.head())
        self._stale = False
        return count

    def _catch_up(self, head: Head) -> int:
        """Replay the entries up to `head`; return their number."""
        where = self._store.name
        if head.version < self.version:
            raise Corrupt(
                f"{where} went back from version {self.version} to {head.version}: an "
                "older copy was put in its place; open it again"
            )
        if self.version < head.pruned:
            return self._load()
        before: bytes | None = head.chain
        if head.version != self.version:
            call = self._store.call_at(self.version)
            before = call and call.chain
        if before is not None and before != self._chain:
            raise Corrupt(
                f"{where} is not the ledger that was read up to version {self.version}:"
                " a copy was put in its place; open it again"
            )
        if head.version == self.version:
            return 0
        start, self._stale = self.version, True
        with _no_collections():
            for piece in self._store.steps(start + 1, head.version):
                last = self.version + len(piece)
                if (piece[0][0], piece[-1][0]) != (self.version + 1, last):
                    break
                self._apply(piece)
                self.version = last
        if self.version != head.version:
            if self._store.head().pruned > self.version:  # since `head` was read
                return self._load()
            raise Corrupt(f"{where}: entries after version {self.version} are missing")
        self._chain = head.chain
        self._stale = False
        return self.version - start

    def _apply(self, rows: list[tuple[Any, ...]]) -> None:
        """Replay entries: adjacent bookings of an owner in one call of the kernel.

        The rows have the columns of `Step`.
        """
        begin = 0
        while begin < len(rows):
            end = begin + 1
            try:
                if rows[begin][_KIND] in BOOKING_KINDS:
                    end = run_of_rows(rows, begin, _KIND, _OWNER)
                    self._apply_bookings(rows, begin, end)
                else:
                    self._apply_change(Step._make(rows[begin]))
            except _INVALID as error:
                if isinstance(error, OtherFormat):
                    raise
                raise Corrupt(
                    f"{self._store.name}: an entry from version {rows[begin][0]} to "
                    f"{rows[end - 1][0]} cannot be replayed: {error}"
                ) from error
            begin = end

    def _apply_bookings(
        self, rows: list[tuple[Any, ...]], begin: int, end: int
    ) -> None:
        owner = rows[begin][_OWNER]
        if owner is None:
            raise ValueError("a booking without an owner")
        columns = columns_of_rows(rows, begin, end, _BOOKED)
        numbers, names, expiries, bodies = columns
        if None in bodies:
            raise ValueError("a booking without a window")
        windows = unpack_windows(bodies, names, self._itself.context)
        self._plain.book(self, windows, owner)
        self._record(numbers, [owner] * len(windows), expiries, windows)

    def _record(
        self,
        numbers: Sequence[int],
        owners: Sequence[str],
        expiries: Sequence[int | None],
        windows: Sequence[Window],
    ) -> None:
        """Remember the windows that were booked, by the numbers of their entries."""
        columns = zip(windows, owners, expiries, strict=True)
        opened = map(tuple.__new__, repeat(Open), columns)
        self._open_all(dict(zip(numbers, opened, strict=True)))
        if expiries.count(None) == len(expiries):
            return
        for expires, number in zip(expiries, numbers, strict=True):
            if expires is not None:
                heapq.heappush(self._holds, (expires, number))

    def _open_all(self, bookings: dict[int, Open]) -> None:
        """Add bookings; they were booked last, in this order."""
        self._bookings.update(bookings)

    def _forget(self, number: int) -> Window:
        return self._bookings.pop(number).window

    def _apply_change(self, entry: Step) -> None:
        kind = entry.kind
        if kind in END_KINDS:
            self._release_booking(_number(entry))
        elif kind == "confirm":
            number = _number(entry)
            self._bookings[number] = self._bookings[number]._replace(expires=None)
        elif kind == "advance":
            self._plain.advance(self, given(entry.start))
            self._drop_past()
        elif kind == "caps":
            rules = json.loads(given(entry.body))["rules"]
            replace_rules(self._itself, rules_from_lists(rules))
        elif kind == "disable":
            data = json.loads(given(entry.body))
            span = data["start"], data["end"]
            self._plain.disable(self, data["nodes"], *span, given(entry.owner))
        elif kind == "enable":
            self._plain.enable(self, json.loads(given(entry.body))["nodes"])
        elif (
            not self._apply_special(entry)
            and kind != "note"
            and not kind.startswith("x-")
        ):
            raise OtherFormat(
                f"{self._store.name}: version {entry.version} is of the kind {kind!r}, "
                "which this program does not know: restart it in its new version"
            )

    def _is_open(self, number: int) -> bool:
        """Return whether a booking has neither ended nor passed."""
        found = self._bookings.get(number)
        return found is not None and found.window.finish > self._itself.now

    def _drop_past(self) -> None:
        if len(self._bookings) > self._purge_at:
            for number in [i for i in self._bookings if not self._is_open(i)]:
                self._forget(number)
            self._purge_at = _PURGE + 2 * len(self._bookings)


_paused = False  # a replay has disabled the collector


@contextmanager
def _no_collections() -> Iterator[None]:
    """Pause the garbage collector while entries are replayed.

    They make no cycles, and each collection would walk all windows of the pool. At the
    end many new objects join the oldest generation, where the first collection after
    the pause would have put them after a walk over all of them. If an interrupt comes
    before the collector is enabled again, the next replay enables it.
    """
    global _paused
    was_enabled = _paused = gc.isenabled() or _paused
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > _MANY_OBJECTS and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
            _paused = False


def given(value: Any) -> Any:
    """Return a column that this kind of entry must have."""
    if value is None:
        raise ValueError("a column is missing")
    return value


def _number(entry: Step) -> int:
    number: int = given(entry.of)
    return number
