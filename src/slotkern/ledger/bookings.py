"""Bookings of a ledger: windows that are found, booked, held, confirmed and released.

`BookedPool` is the last base of the shared pools before their plain pool.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, overload

from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.foundation.checks import quote
from slotkern.ledger.administration import AdministeredPool
from slotkern.ledger.calls import Change, Done, microseconds
from slotkern.ledger.codec import (
    BOOKING_KINDS,
    booking_row,
    expiring_row,
    how_text,
    job_text,
    pack_window,
    to_json,
    unpack_window,
)
from slotkern.ledger.errors import Expired, NotYours, Taken
from slotkern.machine.jobs import Compound, requests_of

if TYPE_CHECKING:
    from slotkern.typing import BuiltIn, Criterion, Shape

__all__ = ["BookedPool", "Booking"]


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


#: The result of `schedule` of a plain pool.
Scheduled = TypeVar("Scheduled")


class BookedPool(AdministeredPool, Generic[Scheduled]):
    """A pool of a log whose windows are booked and released by calls."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files or the session; a later call opens them again."""
        with self._store.lock:
            self._refuse_in_group("closing")
            self._store.close()

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
        owner, delay = self._owner(owner), delay_of(hold)
        how = how_text(owner, criterion, shape, delay)
        what = f'{{"do":"place","how":{how},"request":{job_text(request)}}}'

        def change(now: int) -> Change:
            job: Any = request
            effort = {} if max_work is None else {"max_work": max_work}
            found: Any = self._itself.find(job, criterion, shape=shape, **effort)
            if found is None:
                return [], [], None
            windows = [found] if isinstance(found, Window) else [*found.windows]
            end = _end(now, delay)
            # Before anything changes: a criterion may have no place in a row.
            rows = [booking_row(each, owner, end) for each in windows]
            self._plain.book(self, windows, owner)
            return rows, windows, None

        found = self._answer(self._call(what, change, token), token)
        if not found:
            return None
        return found[0] if single else found

    @overload
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
        windows = [*map(self._own_window, windows)]
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
        owner, delay = self._owner(owner), delay_of(hold)
        rows = [booking_row(each, owner) for each in windows]
        how = {"do": "book", "how": [owner, delay], "windows": len(rows)}
        what = to_json(how if part is None else how | {"part": part})
        content = b"".join(to_json(row[3]).encode() + row[-1] for row in rows)

        def change(now: int) -> Change:
            self._book_found(windows, owner)
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
    ) -> Scheduled:
        """Find and book a window for each request, in order, as one call.

        As `schedule` of the plain pool; the owner is by default `user`, all bookings
        are stored together, and the token is that of the whole list. The plan of a job
        of several parts is booked whole.
        """
        how = requests, criterion, shape, owner, token
        return self._scheduled(*self._schedule(*how))

    def _schedule(
        self, requests: Any, criterion: Any, shape: Any, owner: str | None, token: Any
    ) -> tuple[Done, Any]:
        """Make the call of `schedule`; return it and the result of the plain pool.

        The result is None if the token was known.
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
        result: list[Any] = []

        def change(_now: int) -> Change:
            done = self._schedule_plain(jobs, criterion, shape, owner)
            result.append(done[0])
            rows = [booking_row(window, owner) for window in done[1]]
            return rows, done[1], done[2]

        done = self._call(what, change, token, content)
        return done, result[0] if result else None

    def _scheduled(self, done: Done, result: Any) -> Scheduled:
        """Return the result of `schedule`, also of an earlier call with the token."""
        raise NotImplementedError

    def _schedule_numbered(
        self, requests: Any, criterion: Any, shape: Any, owner: str | None, token: Any
    ) -> tuple[Any, list[int]]:
        """Schedule; return the result and the number of each booked window, in order.

        The numbers are those of the entries: after a release an equal window may be
        booked by somebody else.
        """
        done, result = self._schedule(requests, criterion, shape, owner, token)
        kinds = BOOKING_KINDS
        numbers = [entry.version for entry in done.entries if entry.kind in kinds]
        return self._scheduled(done, result), numbers

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

    def release(
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
            window = self._own_window(window)
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
            i = self._number_of(window, owner) if isinstance(window, Window) else of
            if i is None or not self._is_open(i):
                known = quote(window) if i is None else f"booking {i}"
                raise LookupError(f"{known} is not booked; nothing has changed")
            self._check_owner(i, owner)
            self._release_booking(i)
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
        covered = name is None and self._has_covered(whose)
        self._plain.release(self, whose, name=name)  # raises if there is nothing
        rows: list[tuple[Any, ...]] = []
        if covered:
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
            made, now = self._answer(Done(call, entries, True), token), self._itself.now
            there = [
                each
                for each in made
                if each.id in self._bookings or each.window.finish <= now
            ]
            return there, json.loads(call.what).get("part") or {}

    # --- what depends on the plain class

    def _schedule_plain(
        self, jobs: list[Any], criterion: Any, shape: Any, owner: str
    ) -> tuple[Any, list[Window], str]:
        """Return the result of the plain pool, its windows, and the answer to store."""
        raise NotImplementedError

    def _own_window(self, window: Window) -> Window:
        """Return a window as the plain pool books it."""
        return window

    def _number_of(self, window: Window, owner: str | None) -> int | None:
        """Return the number of the booking of a window, or None.

        If bookings of several owners have equal windows, one of `owner` is returned.
        """
        raise NotImplementedError

    def _has_covered(self, owner: str) -> bool:
        """Return whether reservations of an owner withhold what nobody has booked."""
        raise NotImplementedError

    # --- helpers

    def _check_owner(self, i: int, owner: str | None) -> None:
        whose = self._bookings[i].owner
        if owner is not None and whose != owner:
            raise NotYours(
                f"booking {i} belongs to {quote(whose)}, not to {quote(owner)}; "
                "nothing has changed"
            )

    def _book_found(self, windows: list[Window], owner: str) -> None:
        try:
            self._plain.book(self, windows, owner)
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
                context = self._itself.context
                window = unpack_window(entry.body or b"", entry.name, context)
                expires = entry.expires
            owner, date = entry.owner or "", _date(expires)
            found.append(
                Booking(entry.version, window, owner, token, date, done.repeated)
            )
        return found


def delay_of(hold: float | str | None) -> int | None:
    return None if hold is None else microseconds("hold", hold)


def _date(expires: int | None) -> datetime | None:
    return None if expires is None else datetime.fromtimestamp(expires / 1e6, UTC)


def _end(now: int, delay: int | None) -> int | None:
    """Return the ledger time at which a hold ends; None for a booking."""
    return None if delay is None else now + delay
