"""`SharedPool`: a pool that several processes change at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import numpy as np

from slotkern._kernels.pool import Bookings, SlotPool, bookings_from_windows
from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import quote
from slotkern.ledger.administration import AdministeredPool
from slotkern.ledger.calls import Change, Done, microseconds
from slotkern.ledger.codec import (
    BOOKING_KINDS,
    booking_row,
    expiring_row,
    job_text,
    nodes_row,
    pack_window,
    plain,
    to_json,
    unpack_window,
)
from slotkern.ledger.errors import Expired, NotYours, Taken
from slotkern.machine.jobs import Compound, requests_of
from slotkern.pool.closures import close_gaps
from slotkern.pool.ledger import reservation

if TYPE_CHECKING:
    from slotkern.typing import BuiltIn, Criterion, Shape, Time

__all__ = ["Booking", "SharedPool"]


class Booking(NamedTuple):
    """A window that is booked in a ledger.

    Attributes
    ----------
    id : int
        The number of the booking: the version of its entry in the log. Negative for
        bookings from before the ledger.
    window : Window
    owner : str
    token : str or None
    expires : datetime or None
        The end of a hold that is not confirmed, in UTC.
    repeated : bool
        True if the token was known: the answer is that of the earlier call.
    """

    id: int
    window: Window
    owner: str
    token: str | None = None
    expires: datetime | None = None
    repeated: bool = False


class SharedPool(AdministeredPool):
    """A pool that several processes change at the same time: a `SlotPool` with a log.

    `SlotPool.share` creates its ledger and `SlotPool.open` opens it. All searches work
    as in any pool, in the memory of this process. Each change includes the changes of
    others before it, and is stored before it returns.

    Attributes
    ----------
    version : int
        The number of entries of the log that the pool contains.
    user : str
        The user in the list of calls, and the owner of bookings without one.
    durable : str
        What stored calls survive: "disk" loss of power, "crash" the end of processes.

    Notes
    -----
    The pool is as new as the last call that changed it, or `refresh`. Threads may share
    it. After a fork, parent and child open the ledger again by themselves. `copy` and
    pickles give a plain `SlotPool`, for experiments. `save` writes the current state.

    Examples
    --------
    >>> import slotkern as sk
    >>> from tempfile import mkdtemp
    >>> file = mkdtemp() + "/site.db"
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2)
    >>> pool = sk.SlotPool(slots).share(file)
    >>> booking = pool.place(sk.Request(2, 4), owner="ann", token="job 7")
    >>> other = sk.SlotPool.open(file)
    >>> other.place(sk.Request(2, 4), owner="ann", token="job 7").repeated
    True
    >>> other.release(booking)
    1
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files or the session; a later call opens them again."""
        with self._store.lock:
            self._refuse_in_group("closing")
            self._store.close()

    def handle(self) -> int:
        """Raise TypeError: changes of compiled code would be missing in the log."""
        raise TypeError(
            "a shared pool has no handle, because the log would miss the changes of "
            "compiled code; use copy()"
        )

    # --- bookings

    @overload
    def place(
        self,
        request: Request,
        criterion: Criterion = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        token: str | None = None,
        hold: float | str | None = None,
        max_work: int | None = None,
    ) -> Booking | None: ...
    @overload
    def place(
        self,
        request: Compound,
        criterion: Criterion = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        token: str | None = None,
        hold: float | str | None = None,
        max_work: int | None = None,
    ) -> list[Booking] | None: ...
    def place(
        self,
        request: Request | Compound,
        criterion: Criterion = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        token: str | None = None,
        hold: float | str | None = None,
        max_work: int | None = None,
    ) -> Booking | list[Booking] | None:
        """Find and book the best window; nobody comes between search and booking.

        Parameters
        ----------
        request, criterion, shape
            As for `find`.
        owner : str, optional
            By default `user`.
        token : str, optional
            Makes it safe to repeat the call after any failure: the same token with the
            same request returns the same booking, with ``repeated=True``.
        hold : float (seconds) or duration, optional
            The booking ends after this time unless `confirm` was called.
        max_work : int, optional
            As for `find`. Not part of the request that a token identifies.

        Returns
        -------
        Booking, list of Booking, or None
            For a job of several parts a booking for each window of its plan, which is
            booked whole. None if no window exists; then nothing is stored, also not the
            token.

        Raises
        ------
        slotkern.UndecidedError
            If the search spent `max_work` without an answer.
        slotkern.ledger.Busy
            If other writers held the lock for longer than `patience`.
        slotkern.ledger.TokenUsed
            If the token belongs to another request.
        slotkern.ledger.Unknown
            If the store did not respond: repeat the call with the same token.
        slotkern.ledger.LedgerError
            If the call could not be stored, as on a full disk.
        """
        single = isinstance(request, Request)
        if not single and not isinstance(request, Compound):
            raise TypeError(f"request must be a Request, got {quote(request)}")
        owner, delay = self._owner(owner), _delay(hold)
        how = to_json([owner, plain(criterion), shape, delay])
        what = f'{{"do":"place","how":{how},"request":{job_text(request)}}}'

        def change(now: int) -> Change:
            job: Any = request
            found: Any = self.find(job, criterion, shape=shape, max_work=max_work)
            if found is None:
                return [], [], None
            windows = [found] if isinstance(found, Window) else [*found.windows]
            SlotPool.book(self, windows, owner)
            end = _end(now, delay)
            return [booking_row(each, owner, end) for each in windows], windows, None

        found = self._answer(self._call(what, change, token), token)
        if not found:
            return None
        return found[0] if single else found

    @overload  # type: ignore[override]  # the base returns None
    def book(
        self,
        window: Window,
        owner: str | None = None,
        *,
        token: str | None = None,
        hold: float | str | None = None,
    ) -> Booking: ...
    @overload
    def book(
        self,
        window: Iterable[Window | None],
        owner: str | None = None,
        *,
        token: str | None = None,
        hold: float | str | None = None,
    ) -> list[Booking]: ...
    def book(
        self,
        window: Window | Iterable[Window | None],
        owner: str | None = None,
        *,
        token: str | None = None,
        hold: float | str | None = None,
    ) -> Booking | list[Booking]:
        """Book windows that were found before, all or none; see `place`.

        Raises
        ------
        slotkern.ledger.Taken
            If a part is no longer free. A subclass of ValueError.
        """
        if window is None:
            raise TypeError("there is no window to book: the search returned None")
        single = isinstance(window, Window)
        windows = (
            [window]
            if isinstance(window, Window)
            else [each for each in window if each is not None]
        )
        for each in windows:
            if not isinstance(each, Window):
                raise TypeError(f"only windows can be booked, got {quote(each)}")
        found = self._book_part(windows, owner, hold, token)
        return found[0] if single else found

    def _book_part(
        self,
        windows: list[Window],
        owner: str | None,
        hold: float | str | None,
        token: str | None,
        part: dict[str, Any] | None = None,
    ) -> list[Booking]:
        """Book windows; `part` describes the booking that they belong to."""
        owner, delay = self._owner(owner), _delay(hold)
        rows = [booking_row(each, owner) for each in windows]
        how = {"do": "book", "how": [owner, delay], "windows": len(rows)}
        what = to_json(how if part is None else how | {"part": part})
        content = b"".join(to_json(row[3]).encode() + row[-1] for row in rows)

        def change(now: int) -> Change:
            self._book(windows, owner)
            end = _end(now, delay)
            return [expiring_row(row, end) for row in rows], windows, None

        return self._answer(self._call(what, change, token, content), token)

    def schedule(
        self,
        requests: Any,
        criterion: BuiltIn = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        token: str | None = None,
    ) -> Bookings:
        """Find and book a window for each request, in order, as one call.

        As `SlotPool.schedule`; the owner is by default `user`, all bookings are stored
        together, and the token is that of the whole list. The plan of a job of several
        parts is booked whole.
        """
        owner = self._owner(owner)
        jobs = requests if isinstance(requests, list | tuple) else requests_of(requests)
        jobs = list(jobs)
        how = [owner, criterion, shape]
        what = to_json({"do": "schedule", "how": how, "jobs": len(jobs)})
        content = b""
        if token is not None:
            known = (Request, Compound)
            texts = [job_text(job) if isinstance(job, known) else "" for job in jobs]
            content = to_json(texts).encode()
        result: list[Bookings] = []

        def change(_now: int) -> Change:
            done = SlotPool.schedule(self, jobs, criterion, shape=shape, owner=owner)
            result.append(done)
            windows = _windows_of(done)
            rows = [booking_row(window, owner) for window in windows]
            return rows, windows, _answer_of(done)

        done = self._call(what, change, token, content)
        if not done.repeated:
            return result[0]
        assert done.call is not None
        answer = json.loads(done.call.answer or "")
        windows = iter([each.window for each in self._answer(done, token)])
        reason = np.array(answer["reason"], np.uint8)
        items: list[Any] = []
        for i, code in enumerate(answer["reason"]):
            plan = answer["plans"].get(str(i))
            if plan is not None:
                parts = tuple(islice(windows, len(plan["roles"])))
                items.append(adapter("plan_of_outline")(parts, plan))
            else:
                items.append(next(windows) if code == 0 else None)
        return bookings_from_windows(
            items, reason, criterion, shape, answer["names"], self.context
        )

    def reserve(
        self,
        nodes: Any,
        start: Time,
        end: Time,
        *,
        owner: str | None = None,
        partly: bool = False,
        rule: str | None = None,
    ) -> list[Window]:
        """Book given nodes for a given time; see `SlotPool.reserve`."""
        owner = self._owner(owner)
        what = {"do": "reserve", "how": [owner, partly], "nodes": plain(nodes)}
        if rule is not None:
            what["rule"] = rule
        windows: list[Window] = []

        def change(_now: int) -> Change:
            found, gaps = reservation(self, nodes, start, end, partly, rule)
            self._book(found, owner)
            windows.extend(found)
            rows = [booking_row(window, owner) for window in found]
            if len(gaps):
                close_gaps(self, gaps, owner)
                spans = {name: gaps[name].tolist() for name in ("start", "end")}
                rows.append(nodes_row("cover", gaps["node"], owner, **spans))
            return rows, found, None

        self._call(to_json(what | {"start": start, "end": end}), change)
        return windows

    def confirm(self, booking: Booking | int, *, owner: str | None = None) -> Booking:
        """Turn a hold into a booking without an end.

        Raises
        ------
        slotkern.ledger.Expired
            If the hold has ended, or the booking was released. A LookupError.
        slotkern.ledger.NotYours
            If `owner` is given and is not the owner. A PermissionError.
        """
        i = booking.id if isinstance(booking, Booking) else booking
        if not isinstance(i, int) or isinstance(i, bool):
            raise TypeError(
                f"only holds and their ids can be confirmed, got {quote(booking)}"
            )
        confirmed: list[Booking] = []

        def change(now: int) -> Change:
            found = self._bookings.get(i)
            if (
                found is None
                or not self._is_open(i)
                or (found.expires is not None and found.expires <= now)
            ):
                raise Expired(
                    f"there is no hold {i}, or it has ended; nothing has changed"
                )
            self._check_owner(i, owner)
            confirmed.append(Booking(i, found.window, found.owner))
            if found.expires is None:
                return [], [], None
            self._bookings[i] = found._replace(expires=None)
            return [("confirm", i)], [], None

        self._call(to_json({"do": "confirm", "of": i, "owner": owner}), change)
        return confirmed[0]

    def release(  # type: ignore[override]  # the base returns None
        self,
        window: Booking | Window | int | str,
        *,
        name: str | None = None,
        owner: str | None = None,
        token: str | None = None,
    ) -> int:
        """Release a booking, or all windows and reservations of an owner.

        Parameters
        ----------
        window : Booking, its id, Window, or str
            A text is the name of an owner.
        name : str, optional
            Only the owner's windows of jobs with this name.
        owner : str, optional
            Raises an error if the booking belongs to somebody else.
        token : str, optional
            As for `place`.

        Returns
        -------
        int
            The number of released windows.

        Raises
        ------
        LookupError
            If there is no such booking.
        ValueError
            If an owner has no bookings.
        slotkern.ledger.NotYours
            If `owner` is given and is not the owner. A PermissionError.

        Notes
        -----
        The owner protects against mistakes, not against people who can write the log.
        """
        of: Any = window
        if isinstance(window, Booking):
            of = window.id
        elif isinstance(window, Window):
            of = pack_window(window).hex()
        elif not isinstance(window, int | str) or isinstance(window, bool):
            raise TypeError(
                "only bookings, their ids, windows and owners can be released, got "
                f"{quote(window)}"
            )
        if name is not None and not isinstance(window, str):
            raise TypeError("name selects among an owner's windows: give the owner")
        what = to_json({"do": "release", "of": of, "name": name, "owner": owner})

        def change(_now: int) -> Change:
            if isinstance(window, str):
                return self._release_all(window, name, owner), [], None
            i = self._numbers.get(window) if isinstance(window, Window) else of
            if i is None or not self._is_open(i):
                known = quote(window) if i is None else f"booking {i}"
                raise LookupError(f"{known} is not booked; nothing has changed")
            self._check_owner(i, owner)
            SlotPool.release(self, self._bookings[i].window)
            self._forget(i)
            return [("release", i)], [], None

        done = self._call(what, change, token)
        return sum(entry.kind == "release" for entry in done.entries)

    def _release_all(
        self, whose: str, name: str | None, owner: str | None
    ) -> list[tuple[Any, ...]]:
        if owner is not None and owner != whose:
            raise NotYours(f"{quote(whose)} is not {quote(owner)}; nothing has changed")
        numbers = [
            i
            for i, each in self._bookings.items()
            if each.owner == whose
            and (name is None or each.window.name == name)
            and self._is_open(i)
        ]
        closed = self.closed
        covered = ~closed["disabled"] & (closed["owner"] == whose)
        SlotPool.release(self, whose, name=name)  # raises if there is nothing
        rows: list[tuple[Any, ...]] = []
        if name is None and covered.any():
            rows.append(("uncover", None, whose))
        for i in numbers:
            self._forget(i)
            rows.append(("release", i))
        return rows

    def open_bookings(self, owner: str | None = None) -> list[Booking]:
        """Return the bookings that have neither ended nor passed, with their ids.

        Parameters
        ----------
        owner : str, optional
            Only the bookings of this owner.

        Returns
        -------
        list of Booking
            In the order of their ids, without tokens.
        """
        with self._store.lock:
            found = sorted(self._bookings.items())
        return [
            Booking(i, each.window, each.owner, None, _date(each.expires))
            for i, each in found
            if self._is_open(i) and owner in (None, each.owner)
        ]

    def bookings_of(self, token: str) -> list[Booking] | None:
        """Return the bookings of an earlier call by its token.

        Parameters
        ----------
        token : str

        Returns
        -------
        list of Booking or None
            Without those that were released or have expired; `expires` is None for
            those that were confirmed. Bookings that are past are included. None if no
            call with this token is stored.

        Raises
        ------
        slotkern.ledger.Busy
            If other writers held the lock for longer than `patience`.

        Notes
        -----
        Holds that are due end first, as before each change.
        """
        found = self._part_of(token)
        return None if found is None else found[0]

    def _part_of(self, token: str) -> tuple[list[Booking], dict[str, Any]] | None:
        """Return the bookings of a token, and the booking that they belong to."""
        with self._guarded():
            self._ready()
            self._refuse_in_group("a lookup of a token")
            self.register(self.user)
            with self._turn() as turn:
                call = turn.call(token)
                entries = [] if call is None else self._entries_of(turn, call)
            if call is None:
                return None
            made = self._answer(Done(call, entries, True), token)
            there = [
                each
                for each in made
                if each.id in self._bookings or each.window.finish <= self.now
            ]
            return there, json.loads(call.what).get("part") or {}

    # --- helpers

    def _check_owner(self, i: int, owner: str | None) -> None:
        whose = self._bookings[i].owner
        if owner is not None and whose != owner:
            raise NotYours(
                f"booking {i} belongs to {quote(whose)}, not to {quote(owner)}; "
                "nothing has changed"
            )

    def _book(self, windows: list[Window], owner: str) -> None:
        try:
            SlotPool.book(self, windows, owner)
        except ValueError as error:
            raise Taken(f"{error}; nothing has changed") from None

    def _answer(self, done: Done, token: str | None) -> list[Booking]:
        found = []
        for entry in done.entries:
            if entry.kind not in BOOKING_KINDS:
                continue
            known = self._bookings.get(entry.version)
            if known is not None:
                window, expires = known.window, known.expires
            else:  # it has ended meanwhile
                window = unpack_window(entry.body or b"", entry.name, self.context)
                expires = entry.expires
            owner, date = entry.owner or "", _date(expires)
            found.append(
                Booking(entry.version, window, owner, token, date, done.repeated)
            )
        return found


def _windows_of(done: Bookings) -> list[Window]:
    """Return the booked windows, those of a plan in the order of its parts."""
    windows: list[Window] = []
    plans = done.plans or {}
    for i, window in enumerate(done):
        if window is not None:
            windows += plans[i].windows if i in plans else [window]
    return windows


def _answer_of(done: Bookings) -> str:
    """Return the part of the result of `schedule` that entries do not contain."""
    plans = {i: plan.outline() for i, plan in (done.plans or {}).items()}
    answer = {"reason": done.reason.tolist(), "names": done.names, "plans": plans}
    return to_json(answer)


def _delay(hold: float | str | None) -> int | None:
    return None if hold is None else microseconds("hold", hold)


def _date(expires: int | None) -> datetime | None:
    return None if expires is None else datetime.fromtimestamp(expires / 1e6, UTC)


def _end(now: int, delay: int | None) -> int | None:
    """Return the ledger time at which a hold ends; None for a booking."""
    return None if delay is None else now + delay
