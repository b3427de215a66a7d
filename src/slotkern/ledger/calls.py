"""Calls: the one way to change a shared pool, and what a ledger keeps of them.

A call gets the lock of writers (a turn), replays what others have done, changes the
pool in memory, and appends its entries to the log. So nobody comes between a search and
its booking. The log is flushed after the lock has been released. If a call fails after
memory has changed, the pool is loaded again from the log, which decides what was
stored.
"""

from __future__ import annotations

import getpass
import heapq
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.windows import Window
from slotkern.files.atomic import AnyPath, as_path
from slotkern.foundation.checks import integer, number, quote
from slotkern.ledger.codec import BOOKING_KINDS, Call, Entry, token_digest
from slotkern.ledger.errors import LedgerError, TokenUsed, Unknown
from slotkern.ledger.log import PoolSnapshot, Store, Turn
from slotkern.ledger.replay import FollowedPool, given
from slotkern.machine.calendar import duration_of
from slotkern.machine.clock import is_number

if TYPE_CHECKING:
    from slotkern.ledger.check import Report

__all__ = ["Change", "Done", "LoggedPool", "microseconds"]

_REFUSALS = (ValueError, TypeError, LookupError, PermissionError)
_LONGEST = 365_250 * 86_400.0  # seconds: later dates may exceed those of datetime
_INTERRUPTED = "a call of this turn was interrupted: nothing is stored"


class Done(NamedTuple):
    """A finished call and its entries; no call if nothing changed."""

    call: Call | None
    entries: list[Entry]
    repeated: bool = False


#: The result of a change: columns of entries, booked windows, the rest of the answer.
Change = tuple[list[tuple[Any, ...]], list[Window], str | None]


class _Group:
    """Calls that are stored together, in a turn that `stack` ends."""

    def __init__(self, most: float, within: float, atomic: bool) -> None:
        self.most, self.within, self.atomic = most, within, atomic
        self.stack = ExitStack()
        self.turn: Turn | None = None
        self.end = np.inf
        self.repeated = False


class LoggedPool(FollowedPool):
    """A pool whose changes are calls of a log.

    Attributes
    ----------
    user : str
        The user in the list of calls, and the owner of bookings without one.
    durable : str
        What stored calls survive: "disk" loss of power, "crash" the end of processes.
    """

    def __init__(self, store: Store, user: str | None = None) -> None:
        self.user = _user_of_process() if user is None else user
        self.durable = store.durable
        self._group: _Group | None = None
        self._clients: dict[str, int] = {}  # number of each registered user
        super().__init__(store)

    @property
    def is_stale(self) -> bool:
        """True after a call that failed midway: the next one loads the pool again."""
        return self._stale

    def _ready(self) -> None:
        """Load the pool again after a fork or an interrupted call."""
        if self._process != os.getpid():
            self._process, self._clients = os.getpid(), {}
            self._stale |= self._group is not None
            self._group = None
        group = self._group
        if not self._stale:
            return
        if group is None:
            self._load()
        elif group.atomic:
            raise LedgerError(_INTERRUPTED)
        else:
            self._finish(group)
            self._load()

    def _call(
        self,
        what: str,
        change: Callable[[int], Change],
        token: str | None = None,
        content: bytes = b"",
    ) -> Done:
        """Make a change in a turn and store it, or return what its token did before.

        `change` gets the ledger time. If it raises one of `_REFUSALS`, it has changed
        nothing. `content` is the part of the request that `what` does not contain.
        """
        if token is not None and not isinstance(token, str):
            raise TypeError(f"token must be text, got {quote(token)}")
        with self._store.lock:
            try:
                self._ready()
                group = self._group
                if self.user not in self._clients:
                    self.register(self.user)  # refused in a group
                if group is not None:
                    turn = self._turn_of(group)
                    done = self._append(turn, what, change, token, content)
                    self._stale = False
                    group.repeated |= done.repeated
                    full = len(turn.gathered) >= group.most
                    if full or time.monotonic() >= group.end:
                        self._finish(group)
                    return done
                with self._turn() as turn:
                    done = self._append(turn, what, change, token, content)
                    if turn.gathered:
                        self._commit(turn)
                        self._stale = False
            except BaseException as error:
                self._recover(error)
                raise
        if done.call is not None:
            self._flush(done.repeated)
        return done

    @contextmanager
    def _guarded(self, ends_group: bool = False) -> Iterator[None]:
        """Hold the thread lock; after an error make memory agree with the log."""
        with self._store.lock:
            try:
                yield
            except BaseException as error:
                if ends_group:
                    self._group = None
                self._recover(error)
                raise

    def _recover(self, error: BaseException) -> None:
        """Make memory agree with the log after an error.

        Ctrl-C may come between any two statements, so that nothing is known about
        memory and the lock of writers after it.
        """
        if not isinstance(error, Exception):
            self._stale = True
        if self._stale and self._group is None:
            with suppress(Exception):  # else the next call loads the pool
                self._store.abandon()
                self._load()

    def register(self, *users: str) -> None:
        """Add users to the clients of the ledger, unless they are registered.

        A program that books for several people sets `user` before each call. In a
        group, `user` must have been registered before it.
        """
        with self._store.lock:
            for user in users:
                if user not in self._clients:
                    self._refuse_in_group("registering a user")
                    self._clients[user] = self._store.register(user)

    @contextmanager
    def _turn(self) -> Iterator[Turn]:
        """Get a turn, replay what others have done, and end the holds that are due."""
        while True:
            with self._store.turn(self.version) as turn:
                self._catch_up(turn.head)
                now = turn.now()
                if self._holds and self._holds[0][0] <= now:
                    self._append(turn, '{"do":"expire"}', self._expire)
                    if turn.gathered:
                        self._commit(turn)
                        self._stale = False
                    continue  # the call itself gets a turn of its own
                yield turn
                return

    def _append(
        self,
        turn: Turn,
        what: str,
        change: Callable[[int], Change],
        token: str | None = None,
        content: bytes = b"",
    ) -> Done:
        asked = None
        if token is not None:
            asked = token_digest(what, content)
            old = turn.call(token)
            if old is not None:
                if old.asked != asked:
                    raise TokenUsed(
                        f"the token {quote(token)} belongs to another request, at "
                        f"version {old.last}; nothing has changed"
                    )
                return Done(old, self._entries_of(turn, old), True)
        self._stale = True  # until the caller has stored what the turn gathered
        try:
            now = turn.now()
            rows, windows, answer = change(now)
        except _REFUSALS as error:
            done = getattr(error, "bookings", None)
            self._stale = done is not None and bool(done.booked.any())
            raise
        if not rows:
            self._stale = False
            return Done(None, [])
        client = self._clients[self.user]
        call, entries = turn.append(client, what, rows, now, token, asked, answer)
        if windows:
            booked = [entry for entry in entries if entry[1] in BOOKING_KINDS]
            numbers, expiries = [e.version for e in booked], [e.expires for e in booked]
            owners = [given(entry.owner) for entry in booked]
            self._record(numbers, owners, expiries, windows)
        self.version, self._chain = call.last, call.chain
        return Done(call, entries)

    def _entries_of(self, turn: Turn, call: Call) -> list[Entry]:
        for other, entries in turn.gathered:
            if other.last == call.last:
                return entries
        pieces = self._store.entries(call.first, call.last)
        return [entry for piece in pieces for entry in piece]

    def _commit(self, turn: Turn) -> None:
        """Store what a turn has gathered; if that fails, find out what was stored."""
        self._stale, head = True, turn.head
        try:
            turn.commit()
        except BaseException as error:
            try:
                self._store.rollback()
                self._load()
                call = self._store.call_at(head.version)
            except Exception as second:
                raise Unknown(
                    f"it is not known whether version {head.version} was stored "
                    f"({second}); repeat the call with its token"
                ) from error
            if not isinstance(error, Exception):
                raise
            if call is None or call.chain != head.chain:
                raise LedgerError(f"nothing was stored: {error}") from error

    def _flush(self, repeated: bool = False) -> None:
        try:
            self._store.flush(repeated)
        except OSError as error:
            raise Unknown(
                f"the call is stored, but may not survive the loss of power: {error}"
            ) from error

    def _expire(self, now: int) -> Change:
        rows: list[tuple[Any, ...]] = []
        while self._holds and self._holds[0][0] <= now:
            expires, i = heapq.heappop(self._holds)
            if self._is_open(i) and self._bookings[i].expires == expires:
                self._release_booking(i)
                rows.append(("expire", i))
        return rows, [], None

    # --- groups

    def group(self, *, most: int = 500, within: float = 0.005) -> Any:
        """Return a context manager in whose block calls are stored together.

        Parameters
        ----------
        most : int
            The number of calls after which they are stored.
        within : float
            The time in seconds after which they are stored.

        Notes
        -----
        The block holds the lock: other writers wait. After `most` calls or `within`
        seconds the lock is released until the next call. The results of its calls are
        certain only after its end: a killed process loses the calls that were not
        stored. After an exception the calls that returned are stored, unless it is a
        `LedgerError`.
        """
        return self._grouped(_Group(most, within, atomic=False))

    def turn(self) -> Any:
        """Return a context manager that stores all calls of its block, or none."""
        return self._grouped(_Group(np.inf, np.inf, atomic=True))

    @contextmanager
    def _grouped(self, group: _Group) -> Iterator[Self]:
        try:
            with self._store.lock:
                self._refuse_in_group("a block")
                with self._guarded(ends_group=True):
                    self._ready()
                    self.register(self.user)
                    with group.stack:
                        self._group = group
                        turn = self._turn_of(group)
                        try:
                            yield self
                        except BaseException:
                            self._stale |= group.atomic and bool(turn.gathered)
                            raise
                        finally:
                            self._group = None
                            self._finish(group)
                    if self._stale:
                        self._load()
                        if group.atomic:
                            raise LedgerError(_INTERRUPTED)
        finally:
            self._flush(group.repeated)

    def _turn_of(self, group: _Group) -> Turn:
        """Return the turn of a group; a new one if its calls have been stored."""
        if group.turn is None:
            group.stack.close()  # an interrupt may have prevented it
            group.turn = group.stack.enter_context(self._turn())
            group.end = time.monotonic() + group.within
        return group.turn

    def _finish(self, group: _Group) -> None:
        """Store what a group has gathered and end its turn.

        The calls of `turn` are stored only if all have ended. The next call gets
        another turn, also after an error: this one has lost its lock and transaction.
        """
        stale, turn = self._stale, group.turn
        try:
            if turn is not None and turn.gathered and not (stale and group.atomic):
                self._commit(turn)
                self._stale = stale
        finally:
            group.turn = None
            group.stack.close()

    def _refuse_in_group(self, what: str) -> None:
        """Raise an error in a group or a turn, whose lock `what` would release."""
        if self._group is not None and self._process == os.getpid():
            raise LedgerError(
                f"{what} is not possible: this pool is in a group or a turn already"
            )

    # --- the stored log

    def refresh(self) -> int:
        """Read the changes of other processes; return the number of new entries."""
        with self._guarded():
            before = self.version
            self._ready()
            if self._group is None:
                self._catch_up(self._store.head())
            return self.version - before

    def follow(
        self, since: int | None = None, *, poll: float = 0.01
    ) -> Iterator[Entry]:
        """Yield the entries of the log as they come, without end.

        Parameters
        ----------
        since : int, optional
            The version after which to begin; by default the current one.
        poll : float
            Seconds between two reads of the ledger.
        """
        last = self.version if since is None else since
        while True:
            self.refresh()
            found = self.entries_after(last)
            yield from found
            if found:
                last = found[-1].version
            else:
                time.sleep(poll)

    def entries_after(self, version: int) -> list[Entry]:
        """Return the next entries that this pool has read, at most 1,000.

        Raises
        ------
        LookupError
            If `compact` has dropped some of them.
        """
        with self._store.lock:
            first = max(version, self._store.head().pruned) + 1
            found = next(self._store.entries(first, self.version), [])
            pruned = self._store.head().pruned  # another process may drop some now
        if version < pruned:
            raise LookupError(
                f"the entries after version {version} were dropped, up to {pruned}"
            )
        return found

    def calls(
        self,
        *,
        user: str | None = None,
        since: int = 0,
        token: str | None = None,
        most: int | None = None,
    ) -> NDArray[np.void]:
        """Return the calls that changed the pool, as a table.

        Parameters
        ----------
        user : str, optional
            Only the calls of this user.
        since : int
            Only calls after this version.
        token : str, optional
            Only the call of this token.
        most : int, optional
            The number of calls after which the table ends; `since` continues it.

        Returns
        -------
        structured array
            first and last: the versions of the entries; time in UTC, user, host, pid,
            token, and what: the request as JSON.
        """
        since = integer("since", since)
        if most is not None:
            integer("most", most, 1)
        with self._store.lock:
            head = self._store.head()  # of clients that are registered now
            clients = self._store.clients()
            found = (
                (c.first, c.last, c.at, *clients[c.client][:3], c.token or "", c.what)
                for c in self._store.calls(max(since, head.pruned) + 1, head.version)
                if user in (None, clients[c.client][0]) and token in (None, c.token)
            )
            rows = [*islice(found, most)]
        names = ("first", "last", "time", "user", "host", "pid", "token", "what")
        kinds: dict[str, Any] = {"first": "i8", "last": "i8", "pid": "i8"}
        kinds["time"] = "M8[us]"
        columns = {
            name: np.array([row[i] for row in rows], kinds.get(name, np.str_))
            for i, name in enumerate(names)
        }
        table = np.empty(len(rows), [(n, c.dtype) for n, c in columns.items()])
        for name, column in columns.items():
            table[name] = column
        return table

    def snapshot(self) -> int:
        """Store the state, so that opening need not replay what came before.

        Returns
        -------
        int
            The version of the snapshot.
        """
        with self._guarded():
            self._refuse_in_group("a snapshot")
            self.refresh()
            held = {i: b for i, b in self._bookings.items() if self._is_open(i)}
            body = self._pack(held)
            self._unpack(body)  # what cannot be read is not stored
            found = PoolSnapshot(self.version, self._store.clock(), self._chain, body)
            self._store.put_snapshot(found)
        return found.version

    def compact(self, keep: float | str = "30d") -> int:
        """Drop the log, and its tokens, up to the last snapshot older than `keep`.

        Parameters
        ----------
        keep : float (seconds) or duration

        Returns
        -------
        int
            The number of dropped entries. Bookings are not affected.
        """
        age = microseconds("keep", keep)
        with self._guarded():
            self.snapshot()
            return self._store.prune(self._store.clock() - age)

    def backup(self, path: AnyPath) -> None:
        """Write a copy to a file, as of one moment, also while others write.

        The copy of a ledger in a database is a ledger in a file, too. An existing file
        is replaced. Never copy the file of a ledger by other means
        while it is in use: the copy may be unreadable.
        """
        with self._store.lock:
            self._store.backup(as_path(path))

    def check(self) -> Report:
        """Check the whole log without the code that wrote it.

        Returns
        -------
        Report
            Counts, and the violations: none if the ledger is sound.
        """
        from slotkern.ledger.check import check_ledger

        return check_ledger(self._store.where)


def _user_of_process() -> str:
    """Return the name of the user; the number of one without a name, in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def microseconds(name: str, value: float | str) -> int:
    """Convert seconds or a duration to microseconds, at most 1000 years."""
    if is_number(value):
        seconds = number(name, value)
    else:
        seconds = duration_of(value, name).ns / 1e9
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(f"{name} must be from 0 to 1000 years, got {quote(value)}")
    return round(seconds * 1e6)
