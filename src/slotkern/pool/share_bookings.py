"""The windows that `HostPool.schedule` booked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA
from slotkern._kernels.windows import WindowTable
from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.foundation.checks import one_of
from slotkern.machine.jobs import requests_of
from slotkern.pool.ledger import check_owner, window_rows
from slotkern.pool.share_trees import asks_for_tree, tree_search
from slotkern.pool.share_windows import share_text

if TYPE_CHECKING:
    from slotkern._kernels.shares import TreeSearch
    from slotkern.foundation.context import SlotContext
    from slotkern.pool.host_pool import HostPool
    from slotkern.pool.share_windows import ShareWindow

__all__ = ["ShareBookings", "schedule_shares"]


class ShareBookings(HasTable, Sequence["ShareWindow | None"]):
    """ShareBookings()

    The windows that `HostPool.schedule` booked, and reasons for requests without one.

    A sequence of `ShareWindow` or None.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time, value : ndarray of float64, shape (k,)
        Totals of each window; NaN if nothing was booked.
    booked : ndarray of bool, shape (k,)
        True if a window was booked.
    reasons : list of str
        ``booked``; ``share``: no node can hold the share; ``groups``: the groups of its
        tree are never free together within its limits; or a word of `Bookings.reasons`.
    names : list
        The name of each request, or None.
    """

    def __init__(
        self,
        windows: list[ShareWindow | None],
        reasons: list[str],
        names: list[str | None],
        context: SlotContext,
    ) -> None:
        self._windows, self.reasons, self.names = windows, reasons, names
        self.context = context
        self.table = WindowTable.of(windows).table

    def __len__(self) -> int:
        return len(self._windows)

    @overload
    def __getitem__(self, index: int) -> ShareWindow | None: ...
    @overload
    def __getitem__(self, index: slice) -> ShareBookings: ...
    def __getitem__(self, index: int | slice) -> ShareWindow | ShareBookings | None:
        if isinstance(index, slice):
            return ShareBookings(
                self._windows[index],
                self.reasons[index],
                self.names[index],
                self.context,
            )
        return self._windows[index]

    @property
    def booked(self) -> NDArray[np.bool_]:
        """True for each request with a booked window."""
        return np.array([window is not None for window in self._windows], bool)

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        table = self.__dict__.get("table")
        if table is not None and name in (table.dtype.names or ()):
            return cast("NDArray[np.float64]", table[name])
        raise AttributeError(f"ShareBookings has no attribute {name!r}")

    def listing(self) -> NDArray[np.void]:
        """Return one row for each request, as `Bookings.listing`, with its share."""
        return window_rows(
            self._windows,
            self.context,
            name=self.names,
            reason=self.reasons,
            share=[share_text(window) for window in self._windows],
        )

    def _as_table(self) -> Table:
        return Table.from_array(
            repr(self),
            self.listing(),
            context=self.context,
            times=("start", "finish"),
        )

    def __repr__(self) -> str:
        return f"ShareBookings({int(self.booked.sum())} of {len(self)} booked)"


def schedule_shares(
    pool: HostPool, requests: Any, criterion: str, shape: Any, owner: str | None
) -> ShareBookings:
    """Book a window for each request; see `HostPool.schedule`."""
    one_of("criterion", criterion, CRITERIA)
    one_of("shape", shape, ("square", "ragged"))
    if owner is not None:
        check_owner(owner)
    asked = requests_of(requests)
    searches: list[TreeSearch | None] = []
    for i, request in enumerate(asked):
        if not isinstance(request, Request):
            raise TypeError(
                f"requests[{i}] must be a Request, got {type(request).__name__}"
            )
        try:
            searches.append(_checked(pool, request, criterion, shape))
        except ValueError as error:
            raise ValueError(f"requests[{i}]: {error}") from None
    windows: list[ShareWindow | None] = []
    reasons: list[str] = []
    try:
        for request, search in zip(asked, searches, strict=True):
            window: ShareWindow | None
            if search is not None:
                window = search.schedule(request, criterion, shape, pool._booked, owner)
            else:
                window = _find_and_book(pool, request, criterion, shape, owner)
            reason = "booked"
            if window is None:
                reason = (
                    "groups"
                    if search is not None
                    else _reason(pool, request, criterion, shape)
                )
            windows.append(window)
            reasons.append(reason)
    except BaseException as error:
        cast(Any, error).bookings = _bookings(pool, windows, reasons, asked)
        raise
    return _bookings(pool, windows, reasons, asked)


def _checked(
    pool: HostPool, request: Request, criterion: str, shape: Any
) -> TreeSearch | None:
    """Check a request; return its search if it asks for a tree."""
    if not asks_for_tree(request):
        pool._asked(request)
        return None
    pool._check_fields(request)
    search = tree_search(pool._rows, request, criterion, shape, {})
    search.check(request)
    return search


def _reason(pool: HostPool, request: Request, criterion: Any, shape: Any) -> str:
    """Return why a request without a tree has no window."""
    resolved, _, demand = pool._asked(request)
    return pool._rows.reason(resolved, demand, criterion, shape)


def _find_and_book(
    pool: HostPool, request: Request, criterion: Any, shape: Any, owner: str | None
) -> ShareWindow | None:
    """Book the best window; search again if another thread took a part of it."""
    while True:
        version = pool._rows.core.version
        window = pool.find(request, criterion, shape=shape)
        if window is None:
            return None
        try:
            pool.book(window, owner)
        except ValueError:
            if pool._rows.core.version == version:
                raise
        else:
            return window


def _bookings(
    pool: HostPool,
    windows: list[ShareWindow | None],
    reasons: list[str],
    asked: list[Request],
) -> ShareBookings:
    names = [request.name for request in asked[: len(reasons)]]
    return ShareBookings(windows[: len(reasons)], reasons, names, pool.context)
