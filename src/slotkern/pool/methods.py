"""Methods of `SlotPool` that need no kernel; the compiled class assigns them.

Those of files and ledgers are defined in other modules, and documented here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.slots import SPAN
from slotkern.display.table import Table
from slotkern.foundation.adapters import adapter
from slotkern.pool.closures import booked_spans, close_gaps, windows_within
from slotkern.pool.ledger import check_owner, reservation, window_rows

if TYPE_CHECKING:
    from slotkern._kernels.pool import SlotPool
    from slotkern._kernels.request import Request
    from slotkern._kernels.search import Alternatives
    from slotkern._kernels.windows import Window
    from slotkern.files.atomic import AnyPath
    from slotkern.ledger.shared import SharedPool
    from slotkern.replays.forecast import Forecast
    from slotkern.search.holes import Holes
    from slotkern.typing import Criterion, Shape, Time

__all__ = [
    "as_table",
    "booked",
    "bookings",
    "by_node",
    "find_alternatives",
    "forecast",
    "holes",
    "load",
    "open",
    "reserve",
    "save",
    "share",
    "starts",
]


def as_table(self: SlotPool) -> Table:
    """Return the free slots as a table for display."""
    facts = {
        "booked parts": len(self._state()["booked"]) or None,
        "owners": ", ".join(self.owners) or None,
    }
    times = ("start", "end")
    return Table.from_array(
        repr(self), self.slots, context=self.context, times=times, facts=facts
    )


def booked(self: SlotPool) -> NDArray[np.void]:
    """Booked parts not past, by (node, start): row, node, start, end, owner."""
    spans, owners = booked_spans(self)
    names = SPAN.names or ()
    fields = [*[(name, SPAN[name]) for name in names], ("owner", owners.dtype)]
    table = np.empty(len(spans), fields)
    for name in names:
        table[name] = spans[name]
    table["owner"] = owners
    return table


def bookings(
    self: SlotPool,
    *,
    nodes: Any = None,
    during: tuple[Time | None, Time | None] | None = None,
) -> NDArray[np.void]:
    """Return the windows of all owners as a table with names and dates.

    Parameters
    ----------
    nodes : str, int or sequence of them, optional
        Only windows with a part on one of these nodes, by name or id.
    during : pair of float, date or str, optional
        Only windows with a part that overlaps the span (start, end); None as start or
        end means unbounded. With `nodes`, one part must satisfy both conditions.

    Returns
    -------
    structured array
        One row for each window, in booking order: owner, name (of the request), nodes
        (their names), start, finish, cost; with a clock also start_time and
        finish_time, as text in its zone; account and uses, as in ``matlab=2``, if a
        window has some.

    Raises
    ------
    ValueError, TypeError
        For an unknown node, and for a span that does not end after it starts.
    """
    pairs = self._owned_windows()
    if nodes is not None or during is not None:
        pairs = windows_within(self, pairs, nodes, during)
    owners = [owner for _, owner in pairs]
    return window_rows([window for window, _ in pairs], self.context, owner=owners)


def by_node(self: SlotPool) -> Iterator[tuple[int, NDArray[np.void]]]:
    """Yield pairs of a node id and its free slots, ascending by node."""
    slots = self.slots
    order = np.lexsort((slots["start"], slots["node"]))
    ids, firsts = np.unique(slots["node"][order], return_index=True)
    pieces = np.split(order, firsts[1:])  # a pool without free time gives one, empty
    for node, rows in zip(ids.tolist(), pieces, strict=False):
        yield node, slots[rows]


def find_alternatives(
    self: SlotPool, request: Request, criterion: Criterion = "first", **options: Any
) -> Alternatives:
    """Return `find_alternatives` of this pool, with the same arguments and errors."""
    search = adapter("find_alternatives")
    return cast("Alternatives", search(self, request, criterion, **options))


def forecast(self: SlotPool, request: Request, queue: Any, **options: Any) -> Forecast:
    """Return `forecast` of this pool: when a job will start behind a queue.

    Parameters
    ----------
    request : Request
        The job, which is last in the queue.
    queue : table
        The running and waiting jobs before it.
    **options
        ``policy``, ``history``, ``arrivals``, ``now``, ``runs``, ``seed`` and
        ``workers``, as for `slotkern.forecast`.

    Returns
    -------
    Forecast

    Raises
    ------
    ValueError, TypeError
        As `slotkern.forecast`.
    """
    return cast("Forecast", adapter("forecast")(self, request, queue, **options))


def holes(self: SlotPool, at: Time | None = None, **options: Any) -> Holes:
    """Return `holes` of this pool: how many nodes are free from a time on, how long.

    Parameters
    ----------
    at : float or date, optional
        By default now.
    **options
        ``where``, ``min_performance`` and ``within``, as for `slotkern.holes`.

    Returns
    -------
    Holes

    Raises
    ------
    ValueError, TypeError
        As `slotkern.holes`.
    """
    return cast("Holes", adapter("holes")(self, at, **options))


def starts(
    self: SlotPool, request: Request, *, shape: Shape = "square"
) -> NDArray[np.void]:
    """Return `starts` of this pool: all possible starts of a request, as intervals."""
    found: NDArray[np.void] = adapter("starts")(self, request, shape=shape)
    return found


def reserve(
    self: SlotPool,
    nodes: Any,
    start: Time,
    end: Time,
    *,
    owner: str | None = None,
    partly: bool = False,
    rule: str | None = None,
) -> list[Window]:
    """Book given nodes for a given time, for existing jobs or maintenance.

    Parameters
    ----------
    nodes : str, int or sequence of them
        Names of the machine's nodes, or ids.
    start, end : float, date or str
        The span [start, end), finite.
    owner : str, optional
        Owner of the reservation, as in ``"maintenance"``.
    partly : bool
        True: book the free part of the span and skip the rest. With an owner, the
        reservation also covers the rest: time that is released there later stays
        unavailable until the owner is released.
    rule : str, optional
        A recurrence rule of iCalendar with an end, such as
        ``"FREQ=WEEKLY;BYDAY=TU;COUNT=10"``: the same for each of its dates, at the same
        local time, all or none. The span is its first date. Needs the extra
        ``slotkern[calendars]``.

    Returns
    -------
    list of Window
        One window for each time at which parts start; each can be released separately.

    Raises
    ------
    ValueError, TypeError
        For time that is not free (unless `partly`; the message contains node and time),
        an unknown node, or a span that ends before it starts. The pool is then
        unchanged. With a rule, the message contains the first dates that do not fit;
        also for an invalid rule, one without an end, and one that the span does not
        follow.

    Notes
    -----
    O(m) for m free slots. A part is stored as start and length; if their sum is
    rounded, the part ends about one ulp before `end`, never after it.
    """
    if owner is not None:
        check_owner(owner)
    windows, gaps = reservation(self, nodes, start, end, partly, rule)
    self.book(windows, owner)
    if owner is not None and len(gaps):
        close_gaps(self, gaps, owner)
    return windows


def save(self: SlotPool, path: AnyPath, *, overwrite: bool = False) -> None:
    """Write the pool to a file for `load`.

    The write is atomic: a draft in the same folder is flushed to disk and renamed, so
    after a crash `path` is either unchanged or complete. Symbolic links are followed,
    and an existing file keeps its mode.

    Parameters
    ----------
    path : path
        The file: a numpy archive (.npz) without pickles, format "slotkern pool 2", with
        clock, machine and owners; "slotkern pool 3" for a pool with tariffs, 4 for one
        with capacities or quotas.
    overwrite : bool
        True: replace the file even if it changed since this pool was loaded from it or
        saved to it; changes by other processes are lost.

    Raises
    ------
    PoolFileChangedError
        If this pool was loaded from `path` or saved to it, and the file now has another
        generation, because another process saved to it. The file is unchanged. A
        subclass of ValueError.
    TypeError
        If a field of the slots holds Python objects.
    ValueError
        If the suffix is that of another format of slots, such as .csv.
    OSError
        If the file cannot be written; an existing file is unchanged.

    Notes
    -----
    Each save gives the file a new generation: a number, incremented by one, and a
    digest. A pool and its copies store the generation of each file that the pool was
    loaded from or saved to. A pool that was never loaded from `path` replaces the file.
    Concurrent saves of several processes are serialized by ``flock`` (not on Windows).
    """
    adapter("save_pool")(self, path, overwrite)


def load(path: AnyPath) -> SlotPool:
    """Return the pool from a file of `save`.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    SlotPool
        A pool with equal slots, origin, booked time, owners, clock, machine and `now`.
        Files of format "slotkern pool 1" have no owners, clock or machine.

    Raises
    ------
    ValueError
        If the file is incomplete or has another format; the message contains the path
        and the reason.
    OSError
        If it cannot be read.

    Notes
    -----
    Files are not compressed, and sizes are validated before memory is allocated:
    loading takes at most a few times the length of the file, and O(m log m) time.
    """
    return cast("SlotPool", adapter("load_pool")(path))


def share(self: SlotPool, where: AnyPath, *, user: str | None = None) -> SharedPool:
    """Create a ledger of this pool, which several processes change at the same time.

    Parameters
    ----------
    where : path or URL
        The new file, such as ``site.db``, on a local disk; or a new pool of a database,
        ``postgresql://user@host/database?pool=name`` (extra ``slotkern[postgres]``).
    user : str, optional
        As for `open`.

    Returns
    -------
    SharedPool
        The pool of the new ledger. This pool remains as it is.

    Raises
    ------
    FileExistsError
        If there is a file, or a schema of this name.
    ValueError
        If parts are booked without an owner: nobody could release them; if the URL has
        no valid name of a pool.
    slotkern.ledger.Elsewhere
        For a file system that several machines can write.

    See Also
    --------
    open : Open an existing ledger.
    """
    return cast("SharedPool", adapter("share_pool")(self, where, user))


def open(
    where: AnyPath,
    *,
    user: str | None = None,
    durable: Literal["disk", "crash"] = "disk",
    patience: float = 30.0,
    readonly: bool = False,
) -> SharedPool:
    """Open a ledger that `share` created: a pool that several processes change.

    Parameters
    ----------
    where : path or URL
        The file of the ledger, or ``postgresql://user@host/database?pool=name``.
    user : str, optional
        The user in the list of calls, and the owner of bookings without one; by default
        the user of the process.
    durable : {"disk", "crash"}
        What a booking survives after the call has returned: "disk" the loss of power,
        "crash" only the end of processes.
    patience : float
        Seconds to wait for other writers.
    readonly : bool
        True: the pool can only be read.

    Returns
    -------
    SharedPool
        For a ledger of shares of nodes, of `HostPool.share`, a `SharedHostPool`.

    Raises
    ------
    FileNotFoundError, OSError
        If there is no such file or pool, or it cannot be read.
    ModuleNotFoundError
        For a URL without the extra ``slotkern[postgres]``.
    slotkern.ledger.LedgerError
        For a server that cannot be reached, and for a file that is not a ledger, a
        ledger of another format, one on a file system that several machines can write,
        and one that contradicts itself.
    """
    opened = adapter("open_ledger")(where, user, durable, patience, readonly)
    return cast("SharedPool", opened)
