"""`SharedHostPool`: a pool of shares of nodes that several processes change.

Entries are those of a `SharedPool`, with windows of shares. Equal jobs on one node have
equal windows, so bookings are released by their numbers and not by their windows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.windows import Window, WindowTable
from slotkern.files.columns import InputError
from slotkern.ledger.bookings import BookedPool
from slotkern.ledger.calls import Change, Done
from slotkern.ledger.codec import (
    Step,
    body_row,
    pack_arrays,
    plain,
    to_json,
    unpack_arrays,
)
from slotkern.ledger.replay import given
from slotkern.ledger.snapshots import Open, bookings_before, bookings_of, open_arrays
from slotkern.pool.host_pool import HostPool
from slotkern.pool.saved import to_arrays
from slotkern.pool.share_bookings import ShareBookings
from slotkern.pool.share_files import host_pool_of, state_arrays
from slotkern.pool.share_spans import SPAN
from slotkern.pool.share_windows import ShareWindow, nearest

if TYPE_CHECKING:
    from slotkern.ledger.log import Store
    from slotkern.machine.spans import FreeSlots
    from slotkern.typing import Time

__all__ = ["SharedHostPool", "first_host_snapshot"]

_FORMAT = "slotkern ledger snapshot of shares 1"


class SharedHostPool(BookedPool[ShareBookings], HostPool):  # type: ignore[misc]  # other results
    """A pool of shares of nodes that several processes change: a `HostPool` with a log.

    `HostPool.share` creates its ledger and `HostPool.open` opens it. Calls, tokens,
    holds and owners are those of `SharedPool`; searches are those of `HostPool`.

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
    `copy` and pickles give a plain `HostPool`. If several
    bookings have equal windows, `release` of a window releases the last one, with
    ``owner=`` the last one of the owner; their ids distinguish them.

    Examples
    --------
    >>> import slotkern as sk
    >>> from tempfile import mkdtemp
    >>> file = mkdtemp() + "/site.db"
    >>> machine = sk.Machine({"name": ["anna"], "cores": [64]}, capacity="cores")
    >>> pool = sk.HostPool(sk.free_slots(machine, start=0, end=24)).share(file)
    >>> job = sk.Request(1, 4, share={"cores": 16})
    >>> booking = pool.place(job, owner="ann", token="job 7")
    >>> other = sk.HostPool.open(file)
    >>> other.place(job, owner="ann", token="job 7").repeated
    True
    >>> other.amounts["cores"].tolist(), other.release(booking)
    ([48, 64], 1)
    """

    _plain = HostPool

    def __init__(self, store: Store, user: str | None = None) -> None:
        self._keys: dict[int, object] = {}  # of each booking among the owned windows
        # The numbers of the bookings by their starts, once somebody has asked for one.
        self._starting: dict[float, dict[int, None]] | None = None
        BookedPool.__init__(self, store, user)

    def __reduce__(self) -> Any:
        return _itself, (self.copy(),)

    def reserve(
        self,
        nodes: Any,
        start: Time,
        end: Time,
        *,
        share: Mapping[str, int] | None = None,
        owner: str = "reserved",
        partly: bool = False,
        rule: str | None = None,
    ) -> None:
        """Withhold a share of nodes for a time; see `HostPool.reserve`."""
        what = {"do": "reserve", "how": [owner, partly, share], "nodes": plain(nodes)}
        if rule is not None:
            what["rule"] = rule

        def change(_now: int) -> Change:
            how: Any = {"share": share, "owner": owner, "partly": partly, "rule": rule}
            HostPool.reserve(self, nodes, start, end, **how)
            spans, amounts = self._rows.reservations[-1][1:]
            body = pack_arrays({"spans": spans, "amounts": amounts})
            return [body_row("cover", body, owner)], [], None

        self._call(to_json(what | {"start": start, "end": end}), change)

    def add_slots(self, free: FreeSlots) -> None:
        """Add free amounts in new time; see `HostPool.add_slots`."""

        def add() -> dict[str, NDArray[Any]]:
            HostPool.add_slots(self, free)
            return {"amounts": given(free.amounts)}

        self._add(add)

    # --- the plain pool

    def _scheduled(self, done: Done, result: Any) -> ShareBookings:
        if not done.repeated:
            return cast("ShareBookings", result)
        assert done.call is not None
        answer = json.loads(done.call.answer or "")
        windows = iter([each.window for each in self._answer(done, None)])
        found: list[Any] = [
            next(windows) if reason == "booked" else None
            for reason in answer["reasons"]
        ]
        table = WindowTable.of(found).table
        how = answer["reasons"], answer["names"], self.context, table
        return ShareBookings(found, *how)

    def _schedule_plain(
        self, jobs: list[Any], criterion: Any, shape: Any, owner: str
    ) -> tuple[ShareBookings, list[Window], str]:
        done = HostPool.schedule(self, jobs, criterion, shape=shape, owner=owner)
        windows: list[Window] = [window for window in done if window is not None]
        return done, windows, to_json({"reasons": done.reasons, "names": done.names})

    def _replace_state(self, pool: HostPool) -> None:
        self.machine, self.clock, self.tariffs = pool.machine, pool.clock, None
        self._rows, self._capacities = pool._rows, pool._capacities
        self._booked, self._generations = pool._booked, {}
        self._keys, self._starting = {}, None

    @staticmethod
    def _unpack(body: bytes) -> tuple[HostPool, dict[int, Open]]:
        return unpack_host_pool(body)

    def _pack(self, bookings: dict[int, Open]) -> bytes:
        return pack_host_pool(self, bookings)

    def _open_all(self, bookings: dict[int, Open]) -> None:
        super()._open_all(bookings)
        last = [*islice(reversed(self._booked), len(bookings))]
        self._keys.update(zip(bookings, reversed(last), strict=True))
        if self._starting is not None:
            self._add_starts(bookings)

    def _add_starts(self, bookings: Mapping[int, Open]) -> None:
        assert self._starting is not None
        for number, booking in bookings.items():
            self._starting.setdefault(booking.window.start, {})[number] = None

    def _own_window(self, window: Window) -> Window:
        return self._checked(window)[0]

    def _number_of(self, window: Window, owner: str | None) -> int | None:
        assert isinstance(window, ShareWindow)
        if self._starting is None:
            self._starting = {}
            self._add_starts(self._bookings)
        alike = self._starting.get(window.start, {})
        of_all = {i: self._bookings[i].window for i in alike}
        own = {i: w for i, w in of_all.items() if self._bookings[i].owner == owner}
        for found_in in (own, of_all):
            windows = cast("list[ShareWindow]", [*found_in.values()])
            found = nearest(window, windows)
            if found is not None:
                last = reversed(found_in)  # several may be bookings of one object
                return next(i for i in last if found_in[i] is found)
        return None

    def _forget(self, number: int) -> Window:
        self._keys.pop(number, None)
        window = super()._forget(number)
        if self._starting is not None:
            same = self._starting[window.start]
            del same[number]
            if not same:
                del self._starting[window.start]
        return window

    def _release_booking(self, number: int) -> None:
        window = cast(ShareWindow, self._bookings[number].window)
        key = self._keys[number]
        owned = {key: (window, self._booked.pop(key)[1])}
        self._give_back([window], owned, [window])
        self._forget(number)

    def _has_covered(self, owner: str) -> bool:
        return self._rows.has_reservations(owner)

    def _apply_special(self, entry: Step) -> bool:
        kind = entry.kind
        if kind == "uncover":
            self._rows.end_reservations(given(entry.owner))
        elif kind == "cover":
            arrays = unpack_arrays(given(entry.body))
            spans, amounts = arrays["spans"].astype(SPAN), arrays["amounts"]
            self._rows.reserve(spans, amounts, given(entry.owner))
        elif kind == "add":
            self._rows.add(unpack_arrays(given(entry.body))["amounts"])
        else:
            return False
        return True


def _itself(pool: HostPool) -> HostPool:
    """Return a pool: the plain one that a pickle of a shared pool contains."""
    return pool


# --- snapshots


def first_host_snapshot(pool: HostPool) -> bytes:
    """Return the snapshot of a pool that becomes a ledger; see `first_snapshot`."""
    return pack_host_pool(pool, bookings_before(cast(Any, pool)))


def pack_host_pool(pool: HostPool, bookings: Mapping[int, Open]) -> bytes:
    """Return the bytes of a pool and its open bookings by number.

    The capacity of the nodes is an array of its own, for the check.
    """
    bare = HostPool.__new__(HostPool)
    bare._set(pool.machine, pool.clock, pool._rows)
    bare._capacities = pool._capacities
    arrays: dict[str, NDArray[Any]] = {"format": np.array(_FORMAT)}
    arrays |= to_arrays(cast(Any, bare)) | state_arrays(pool._rows)
    arrays["resources"] = np.array(pool.resources, np.str_)
    arrays["resource amounts"] = pool.capacity.amounts
    return pack_arrays(arrays | open_arrays(bookings))


def unpack_host_pool(body: bytes) -> tuple[HostPool, dict[int, Open]]:
    """Return the pool and the open bookings of a snapshot.

    Raises
    ------
    ValueError, TypeError, KeyError
        If the bytes are not a snapshot of this format, or contradict themselves.
    """
    arrays = unpack_arrays(body)
    if arrays["format"].tolist() != _FORMAT:
        raise ValueError("a snapshot of another format")
    try:
        pool = host_pool_of(arrays)
    except InputError as fault:
        raise ValueError(fault.reason) from None
    bookings = bookings_of(arrays, pool.context)
    for window, owner, _ in bookings.values():
        pool._booked[object()] = cast(ShareWindow, window), owner
    return pool, bookings
