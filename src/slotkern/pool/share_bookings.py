"""The windows that `HostPool.schedule` booked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import (
    counted_fields,
    has_only_numbers,
    is_counted,
    uses_key,
)
from slotkern._kernels.pool import Bookings
from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA
from slotkern._kernels.shares import BookedJob, HostJob, ShareQueue, form_key
from slotkern._kernels.slots import resolve_times
from slotkern._kernels.windows import Window, WindowTable
from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import one_of
from slotkern.machine.jobs import requests_of
from slotkern.pool.ledger import check_owner, window_rows
from slotkern.pool.share_rows import SharePart, can_search
from slotkern.pool.share_trees import asks_for_tree, check_counts, tree_search
from slotkern.pool.share_windows import share_text, shared

if TYPE_CHECKING:
    from slotkern._kernels.shares import TreeSearch
    from slotkern.foundation.amounts import Amounts
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
        windows: list[ShareWindow | BookedJob | None],
        reasons: list[str],
        names: list[str | None],
        context: SlotContext,
        table: NDArray[np.void],
    ) -> None:
        self._windows, self.reasons, self.names = windows, reasons, names
        self.context, self.table = context, table

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
                self.table[index],
            )
        found = self._windows[index]
        if isinstance(found, BookedJob):
            self._windows[index] = found = found.window()
        return found

    @property
    def booked(self) -> NDArray[np.bool_]:
        """True for each request with a booked window."""
        return np.array([reason == "booked" for reason in self.reasons], bool)

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        table = self.__dict__.get("table")
        if table is not None and name in (table.dtype.names or ()):
            return cast("NDArray[np.float64]", table[name])
        raise AttributeError(f"ShareBookings has no attribute {name!r}")

    def listing(self) -> NDArray[np.void]:
        """Return one row for each request, as `Bookings.listing`, with its share."""
        return window_rows(
            [*self],
            self.context,
            name=self.names,
            reason=self.reasons,
            share=[share_text(window) for window in self],
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


class _Form(NamedTuple):
    """The fields that jobs have in common, in numbers."""

    share: Amounts | None
    demand: NDArray[np.int64] | None
    stacked: bool
    search: TreeSearch | None  # for groups of a tree
    part: SharePart | TreeSearch | None  # for the binding; None: a view is searched

    def window(self, request: Request, table: Bookings, row: int) -> ShareWindow:
        """Return the window that the binding has booked for a request of this form."""
        if self.search is not None:
            return self.search.window_of(table, row, request)
        window = cast(Window, table[row])
        window.name, window.special = request.name, counted_fields(request)
        return shared(window, self.share, None, self.stacked)


def schedule_shares(
    pool: HostPool, requests: Any, criterion: Any, shape: Any, owner: str | None
) -> ShareBookings:
    """Book a window for each request; see `HostPool.schedule`."""
    one_of("criterion", criterion, CRITERIA)
    one_of("shape", shape, ("square", "ragged"))
    if owner is not None:
        check_owner(owner)
    jobs = _checked_jobs(pool, requests, criterion, shape)
    run = _Run(pool, criterion, shape, owner)
    try:
        # Most queues are for the binding only.
        in_binding = [job.part is not None for job in jobs]
        for first, last in _runs(in_binding):
            if in_binding[first]:
                run.schedule(jobs[first:last])
                continue
            for job in jobs[first:last]:
                run.find_and_book(job)
        return run.bookings(jobs)
    except BaseException as error:
        cast(Any, error).bookings = run.bookings(jobs)
        raise


def _checked_jobs(
    pool: HostPool, requests: Any, criterion: str, shape: Any
) -> list[HostJob]:
    """Check all requests, before the first is booked."""
    jobs = []
    forms: dict[Any, _Form] = {}  # of requests without filter and limits
    counted: dict[Any, Any] = {}  # parts of forms, by uses and account
    for i, request in enumerate(requests_of(requests)):
        if not isinstance(request, Request):
            raise TypeError(
                f"requests[{i}] must be a Request, got {type(request).__name__}"
            )
        try:
            key = form_key(request)
            form = forms.get(key)
            if form is None:
                jobs.append(_checked_job(pool, request, criterion, shape))
                if key is not None:
                    forms[key] = jobs[-1].form
                continue
            resolved, part = resolve_times(pool, request, None, True), form.part
            if form.search is not None:
                form.search.check(request)
            if pool._capacities is not None or request.uses is not None:
                uses = uses_key(request)
                if uses is None:
                    part = _counted_part(pool, resolved, form, criterion)
                else:
                    if (key, uses) not in counted:
                        found = _counted_part(pool, resolved, form, criterion)
                        counted[key, uses] = found
                    part = counted[key, uses]
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"requests[{i}]: {error}") from None
        jobs.append(HostJob(request, resolved, form, part))
    return jobs


def _checked_job(
    pool: HostPool, request: Request, criterion: str, shape: Any
) -> HostJob:
    """Check all fields of a request."""
    pool._check_fields(request)
    resolved = resolve_times(pool, request, None, True)
    form = _form(pool, request, criterion, shape)
    part = form.part
    if form.search is not None:
        form.search.check(request)
    if pool._capacities is not None or request.uses is not None:
        part = _counted_part(pool, resolved, form, criterion)
    elif isinstance(part, SharePart) and not can_search(part, resolved):
        part = None
    # An array of a limit has one number for each slot of a view.
    if not any(isinstance(limit.of, np.ndarray) for limit in resolved.limits):
        pool._rows.core.check(resolved)
    return HostJob(request, resolved, form, part)


_EMPTY = WindowTable.of([]).table
#: Criteria by which the first span with enough of all capacities has the best window.
_FIRST = ("start", "finish")


def _form(pool: HostPool, request: Request, criterion: str, shape: Any) -> _Form:
    """Return the form of a request."""
    rows, stacked = pool._rows, request.stack > 1
    share, demand = pool._demand(request)
    if asks_for_tree(request):
        search = tree_search(rows, request, criterion, shape, {})
        return _Form(share, demand, stacked, search, search)
    part = rows.part(demand, request.stack) if rows.can_hold(demand) else None
    return _Form(share, demand, stacked, None, part)


def _counted_part(
    pool: HostPool, request: Request, form: _Form, criterion: str
) -> SharePart | TreeSearch | None:
    """Return the part of a request in a pool with capacities, or with uses."""
    counted = is_counted(pool._capacities, request)
    if form.search is not None:
        if request.whole is not None or not has_only_numbers(request):
            check_counts(request, pool._capacities)
        return form.search
    if not has_only_numbers(request):
        adapter("check_sum")(pool, request)
        return None
    part = cast("SharePart | None", form.part)
    if part is None or not can_search(part, request):
        return None
    # Other criteria compare the windows of all spans, and limits need proofs.
    return None if counted and (criterion not in _FIRST or request.limits) else part


def _runs(values: list[bool]) -> Iterator[tuple[int, int]]:
    """Return first and last index, exclusive, of each run of equal values."""
    first = 0
    while first < len(values):
        try:
            last = values.index(not values[first], first)
        except ValueError:
            last = len(values)
        yield first, last
        first = last


class _Run:
    """A queue that is being booked: the results of its first jobs."""

    def __init__(
        self, pool: HostPool, criterion: Any, shape: Any, owner: str | None
    ) -> None:
        self.pool, self.criterion, self.shape = pool, criterion, shape
        self.owner = owner
        self.windows: list[Any] = []  # ShareWindow, BookedJob or None
        self.reasons: list[str] = []
        self.tables: dict[int, WindowTable] = {}  # totals, by their first window
        self.made: dict[int, ShareWindow] = {}  # booked outside of the binding

    def bookings(self, jobs: list[HostJob]) -> ShareBookings:
        """Return the results so far."""
        for index, window in self.made.items():
            if index >= len(self.reasons):  # stopped before its result was added
                self._add(index, window, "booked")
        names = [job.given.name for job in jobs[: len(self.reasons)]]
        tables = [each.table for each in self.tables.values()]
        table = tables[0] if len(tables) == 1 else np.concatenate([_EMPTY, *tables])
        windows = self.windows[: len(names)]
        return ShareBookings(windows, self.reasons, names, self.pool.context, table)

    def schedule(self, jobs: list[HostJob]) -> None:
        """Search and book jobs in the binding, which records what was booked."""
        queue = ShareQueue(
            self.criterion,
            self.shape,
            jobs,
            self.windows,
            self.reasons,
            self.pool._capacities,
            self.owner,
            self.pool._booked,
            self.pool.context,
        )
        self.tables[len(self.reasons)] = queue.table
        resolved = [job.resolved for job in jobs]
        parts: list[Any] = [job.part for job in jobs]
        self.pool._rows.core.schedule(
            queue, resolved, parts, lambda i: self._reason(jobs[i])
        )

    def find_and_book(self, job: HostJob) -> None:
        """Search and book a job for which a view must be searched."""
        index = len(self.reasons)
        self._find_and_book(job, index)
        window = self.made.get(index)
        self._add(index, window, "booked" if window else self._reason(job))

    def _add(self, index: int, window: ShareWindow | None, reason: str) -> None:
        """Add the result of a request; a repetition replaces it."""
        self.tables[index] = WindowTable.of([window])
        self.windows[index:] = [window]
        self.reasons[index:] = [reason]

    def _find_and_book(self, job: HostJob, index: int) -> None:
        """Book the best window; search again if another thread took a part of it."""
        pool, refused = self.pool, None
        while True:
            version = pool._rows.core.version
            window = pool.find(job.given, self.criterion, shape=self.shape)
            if window is None:
                return
            try:
                pool._book([window], self.owner, self.made, {index: window})
            except ValueError:
                if pool._rows.core.version == version and window == refused:
                    raise
                refused = window
            else:
                return

    def _reason(self, job: HostJob) -> str:
        """Return why a request has no window."""
        pool, how = self.pool, (self.criterion, self.shape)
        rules = pool._capacities
        if (
            rules is not None
            and is_counted(rules, job.resolved)
            and pool._find_under(job.given, *how, rules.with_rules(())) is not None
        ):
            caps = [rule for rule in rules.rules if rule.account is None]
            found = pool._find_under(job.given, *how, rules.with_rules(caps))
            return "cap" if found is None else "quota"
        if asks_for_tree(job.given):
            return "groups"
        return pool._rows.reason(job.resolved, job.form.demand, self.shape)
