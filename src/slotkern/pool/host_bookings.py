"""The bookings of a `HostPool`, with their owners.

The rows hold what is booked, without owners; this class records the owner of each
window. Threads may call all methods: the dictionary of owned windows is changed by
single operations and read as a copy. A change of several steps is undone if one of
them is refused or interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.windows import Window
from slotkern.display import HasPlot
from slotkern.pool.closures import windows_within
from slotkern.pool.ledger import check_owner, window_rows
from slotkern.pool.share_windows import ShareWindow, nearest, share_text, shared

if TYPE_CHECKING:
    from slotkern._kernels.caps import Caps
    from slotkern._kernels.shares import BookedJob
    from slotkern.foundation.context import SlotContext
    from slotkern.pool.share_rows import ShareRows

__all__ = ["HostBookings"]

Owned = tuple[ShareWindow, str]
"""A window and its owner."""


def _made(pair: tuple[ShareWindow | BookedJob, str]) -> Owned:
    """Return a window, created now if it is of a queue, and its owner."""
    window, owner = pair
    return window if isinstance(window, ShareWindow) else window.window(), owner


class HostBookings(HasPlot):
    """Base class of `HostPool`: windows are booked, listed and released."""

    _rows: ShareRows
    _capacities: Caps | None
    # In the order of the bookings; keys have no meaning.
    _booked: dict[object, tuple[ShareWindow | BookedJob, str]]

    @property
    def context(self) -> SlotContext:
        """The clock and machine of the pool."""
        raise NotImplementedError

    @property
    def now(self) -> float:
        """The current time: nothing is free before it."""
        return self._rows.now

    @property
    def booked(self) -> NDArray[np.void]:
        """Booked parts that are not past: node, start, end, owner and the amounts."""
        return self._rows.booked(self._owned_windows())

    @property
    def owners(self) -> list[str]:
        """The owners of windows or reservations that are not past."""
        booked = [owner for _, owner in self._owned_windows()]
        return list(dict.fromkeys(booked + self._rows.reserving()))

    def windows(self, owner: str | None = None) -> list[ShareWindow]:
        """Return the windows of an owner (None: all owners) that are not past."""
        return [w for w, other in self._owned_windows() if owner in (None, other)]

    def _owned_windows(self) -> list[Owned]:
        """Return pairs of a window that is not past and its owner, by booking."""
        now = self.now
        return [pair for _, pair in self._owned_items() if pair[0].finish > now]

    def _owned_items(self) -> list[tuple[object, Owned]]:
        """Return the items of `_booked`; windows of queues are created now."""
        return [(key, _made(pair)) for key, pair in [*self._booked.items()]]

    def book(
        self, window: Window | Iterable[Window | None], owner: str | None = None
    ) -> None:
        """Take the shares of a window, or of all windows of a sequence.

        Parameters
        ----------
        window : Window, or sequence of Window and None
            Of this pool; those of a sequence are booked all or none. A window of whole
            nodes may also come from a search of ``pool.slots``.
        owner : str, optional
            Owner of the windows; see `bookings`, `windows` and `release`. By default
            the account of each, if its request has one.

        Raises
        ------
        ValueError
            If a share is not free; the message contains the node and time, and the pool
            is unchanged. Also if a capacity or a quota has less than a window uses.
        """
        self._book(self._checked(window), owner, {}, {})

    def _book(
        self,
        windows: list[ShareWindow],
        owner: str | None,
        record: dict[Any, Any],
        items: dict[Any, Any],
    ) -> None:
        """Book windows and add items to `record`: all, or nothing at an exception."""
        if owner is not None:
            check_owner(owner)
        owned: dict[object, Owned] = {
            object(): (each, who)
            for each in windows
            if (who := owner or each.account) is not None
        }
        capacities = self._capacities
        take = partial(self._take, windows, [(self._booked, owned), (record, items)])
        if capacities is not None:
            capacities.book([*windows], take)
            return
        take()
        if self._capacities is not None:  # set by another thread meanwhile
            self._capacities.count([*windows])

    def _take(
        self,
        windows: list[ShareWindow],
        records: list[tuple[dict[Any, Any], dict[Any, Any]]],
    ) -> None:
        """Take the amounts of windows and add items to records, all or none."""
        pieces = self._rows.pieces(windows)
        done: list[None] = []
        try:  # no interrupt between a booking and its None: both happen in `extend`
            done.extend(map(self._rows.core.book, *pieces))
            for record, items in records:
                record.update(items)
        except BaseException:
            for record, items in records:
                for key in items:
                    record.pop(key, None)
            for piece in reversed([*zip(*pieces, strict=True)][: len(done)]):
                self._rows.core.release(*piece)
            raise

    def _checked(self, window: Any) -> list[ShareWindow]:
        """Return windows as those of shares."""
        if window is None:
            raise TypeError(
                "there is no window to book: the search returned None; call explain "
                "for the reason"
            )
        given = [window] if isinstance(window, Window) else window
        if not isinstance(given, Iterable):
            raise TypeError(f"only windows can be booked, got {type(given).__name__}")
        found = []
        for each in given:
            if each is None:
                continue
            if not isinstance(each, Window):
                raise TypeError(
                    f"only windows can be booked, got {type(each).__name__}"
                )
            found.append(each if isinstance(each, ShareWindow) else shared(each, None))
        return found

    def release(self, window: Window | str, *, name: str | None = None) -> None:
        """Give the shares of a window back, or those of all windows of an owner.

        Parameters
        ----------
        window : Window or str
            A booked window, or an owner.
        name : str, optional
            Only the owner's windows of jobs with this name.

        Raises
        ------
        ValueError
            If the window is not booked, or was given back before: of two equal
            bookings each can be released once. Also for an owner without bookings. The
            pool is then unchanged.
        """
        if isinstance(window, str):
            self._release_owner(window, name)
            return
        if name is not None:
            raise TypeError("name selects windows of an owner; give one")
        windows = self._checked(window)
        if len(windows) != 1:
            raise ValueError(
                f"release takes one window or an owner, got {len(windows)}"
            )
        owned: dict[object, Owned] = {}
        key = self._key_of(windows[0])
        while key is not None and not owned:
            if (pair := self._booked.pop(key, None)) is not None:
                owned[key] = _made(pair)
            else:  # another thread released this one of several equal windows
                key = self._key_of(windows[0])
        charged = [window for window, _ in owned.values()]
        if self._capacities is not None and not owned:
            charged = windows
            if not self._is_charged(windows[0]):
                others = self._capacities.windows_from(windows[0].start)
                charged = [nearest(windows[0], cast("list[Any]", others)) or windows[0]]
        self._give_back(windows, owned, charged)

    def _give_back(
        self,
        windows: list[ShareWindow],
        owned: dict[object, Owned],
        charged: list[ShareWindow],
    ) -> None:
        """Release windows, all or none; `owned` are those taken from `_booked`.

        `charged` are the windows as the capacities of the pool count them.
        """
        release = partial(self._release_rows, windows, owned)
        if self._capacities is None:
            release()
        else:
            self._capacities.release([*charged], release)

    def _release_rows(
        self, windows: list[ShareWindow], owned: dict[object, Owned]
    ) -> None:
        pieces = self._rows.pieces(windows)
        done: list[None] = []
        try:
            done.extend(map(self._rows.core.release, *pieces))
        except BaseException:
            for piece in reversed([*zip(*pieces, strict=True)][: len(done)]):
                self._rows.core.book(*piece)
            self._booked.update(owned)
            raise

    def _key_of(self, window: ShareWindow) -> object | None:
        """Return the key of the owned window that is nearest to a window, or None.

        None also if the capacities count this very window, and no owner has it.
        """
        items = self._owned_items()
        found = nearest(window, [other for _, (other, _) in items])
        if found is not None and (found != window or found.special != window.special):
            found = None if self._is_charged(window) else found
        return next((key for key, (other, _) in items if other is found), None)

    def _is_charged(self, window: ShareWindow) -> bool:
        """Return whether the capacities count an equal window with the same charge."""
        parts = len(window) if window.counts is None else sum(window.counts)
        charge = parts, window.uses, window.account
        return self._capacities is not None and any(
            other.start == window.start and other == window and known == charge
            for other, known in self._capacities.charged()
        )

    def _release_owner(self, owner: str, name: str | None) -> None:
        keys = [
            key
            for key, (window, other) in self._owned_items()
            if other == owner
            and window.finish > self.now
            and name in (None, window.name)
        ]
        covered = name is None and self._rows.has_reservations(owner)
        if not keys and not covered:
            of = "" if name is None else f" for {name!r}"
            raise ValueError(f"{owner!r} has nothing booked{of} in this pool")
        popped = {key: self._booked.pop(key, None) for key in keys}
        owned = {key: _made(pair) for key, pair in popped.items() if pair is not None}
        windows = [window for window, _ in owned.values()]
        self._give_back(windows, owned, windows)
        if covered:
            self._rows.end_reservations(owner)

    def bookings(self, *, nodes: Any = None, during: Any = None) -> NDArray[np.void]:
        """Return the windows of all owners as a table.

        Parameters
        ----------
        nodes, during : optional
            As for `SlotPool.bookings`.

        Returns
        -------
        structured array
            The columns of `SlotPool.bookings`, and ``share``: what each part takes, as
            text.
        """
        pairs = self._owned_windows()
        if nodes is not None or during is not None:
            within = cast(Any, windows_within)
            pairs = within(self, pairs, nodes, during)
        windows = [window for window, _ in pairs]
        shares = [share_text(window) for window in windows]
        owners = [owner for _, owner in pairs]
        names = [window.name for window in windows]
        return window_rows(
            windows, self.context, owner=owners, name=names, share=shares
        )
