"""Pools of nodes that several jobs share: each part takes amounts of its node.

The rows of a binding hold the free amounts of each node by time. This module adds what
needs no kernel: names, dates, owners, prices of shares, and tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import Caps, counted_fields
from slotkern._kernels.request import Request
from slotkern._kernels.search import find_window
from slotkern._kernels.slots import resolve_times
from slotkern.display.table import Table
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import one_of
from slotkern.foundation.context import SlotContext
from slotkern.foundation.special_fields import refuse_special
from slotkern.machine.spans import FreeSlots
from slotkern.pool import caps as cap_methods
from slotkern.pool.host_changes import HostChanges
from slotkern.pool.ledger import time_of
from slotkern.pool.share_bookings import ShareBookings, schedule_shares
from slotkern.pool.share_rows import ShareRows
from slotkern.pool.share_trees import asks_for_tree, check_counts, tree_search
from slotkern.pool.share_windows import ShareWindow, shared

if TYPE_CHECKING:
    from slotkern.files.atomic import AnyPath
    from slotkern.foundation.amounts import Amounts
    from slotkern.ledger.hosts import SharedHostPool
    from slotkern.machine.clock import Clock
    from slotkern.machine.nodes import Machine
    from slotkern.typing import Criterion, Shape, Time

__all__ = ["HostPool"]

_SPECIAL = ("share", "stack", "within", "tree", "whole", "uses", "account")


class HostPool(HostChanges):
    """HostPool(free, *, caps=None)

    Free amounts of nodes that several jobs share, to be searched, booked and released.

    A `SlotPool` books whole nodes; this pool books parts of them: a number of
    cores, GPUs or MB of memory of each node, for the time of the job. A request without
    a share takes whole nodes.

    Parameters
    ----------
    free : FreeSlots
        Of a machine with capacity: ``free_slots(Machine(table, capacity=["cores",
        "gpus"]), busy, start=, end=)``.
    caps : mapping of str to int or table, optional
        The capacities of the pool, as for `SlotPool`.

    Attributes
    ----------
    machine : Machine
    clock : Clock or None
    resources : tuple of str
        The names of the machine's capacity.
    amounts : structured array
        The free amounts by time: node, start, end and a field for each resource.
    slots : structured array
        The time in which whole nodes are free, as for `SlotPool`.
    now : float
        The last argument of `advance`; -inf initially.
    caps : structured array
        The capacities and quotas over time; see `slotkern.pool.caps.table`.
    owners : list of str
        The owners of windows that are not past.

    Raises
    ------
    ValueError, TypeError
        For free slots of a machine without capacity, and for tariffs.

    Notes
    -----
    All parts of a window start together and take the same share. A square window holds
    its share on each node for as long as on the slowest one. Searches are exact: the
    result is the best window over all sets of parts, as for `find_window`.

    The price of a share is the node's price times its largest part of any resource, or
    the sum of the machine's ``prices``.

    A request with ``tree`` or ``whole`` takes equal parts of groups of levels, such as
    2 nodes in each of 3 racks of one switch, or 3 whole racks of one switch. Its window
    is the earliest, and of the choices of groups at this start the cheapest: each group
    takes its cheapest groups and nodes, of equal cost those that come first on the
    machine. All nodes need the same performance; criteria are start and finish.

    Capacities and quotas are those of `SlotPool`: a quota on nodes counts the parts of
    a window. It does not count requests for whole groups, which are refused, because
    their number of parts is not known before the search.

    Searches of alternatives, batches and replays do not support this pool.

    Examples
    --------
    >>> import slotkern as sk
    >>> nodes = {"name": ["anna", "bert"], "cores": [64, 64], "gpus": [4, 0],
    ...          "price": [4, 1]}
    >>> machine = sk.Machine(nodes, capacity=["cores", "gpus"])
    >>> pool = sk.HostPool(sk.free_slots(machine, start=0, end=24))
    >>> job = sk.Request(1, 4, share={"cores": 16, "gpus": 1})
    >>> window = pool.find(job)
    >>> window.names, window.share, window.cost
    (('anna',), {'cores': 16, 'gpus': 1}, 4.0)
    >>> pool.book(window, owner="ann")
    >>> pool.amounts.tolist()[:2]
    [(0, 0.0, 4.0, 48, 3), (0, 4.0, 24.0, 64, 4)]
    """

    caps = property(cap_methods.table)
    quota = cap_methods.quota
    set_cap = cap_methods.set_cap

    def __init__(
        self, free: FreeSlots, *, caps: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(free, FreeSlots):
            raise TypeError(
                "a HostPool is made of free_slots(machine, ...), got "
                f"{type(free).__name__}"
            )
        if free.machine.capacity is None or free.amounts is None:
            raise ValueError(
                "the machine has no capacity to share: Machine(table, capacity=[...]) "
                "names its columns; whole nodes need a SlotPool"
            )
        if free.tariffs is not None:
            raise ValueError(
                "a HostPool does not support tariffs; use prices that do not change"
            )
        rows = ShareRows.of(free.machine, free.clock, free.amounts)
        self._set(free.machine, free.clock, rows)
        if caps is not None:
            cap_methods.define(self, caps)

    def _set(self, machine: Machine, clock: Clock | None, rows: ShareRows) -> None:
        self.machine, self.clock = machine, clock
        self.tariffs = None
        self._rows = rows
        self._capacities: Caps | None = None
        self._booked = {}
        self._generations: dict[str, Any] = {}

    # --- reading

    @property
    def context(self) -> SlotContext:
        """The clock and machine of the pool."""
        return SlotContext(self.clock, self.machine)

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of what the nodes share."""
        return self.capacity.names

    @property
    def nodes(self) -> NDArray[np.int32]:
        """The node ids, ascending."""
        return np.arange(len(self.machine), dtype=np.int32)

    @property
    def amounts(self) -> NDArray[np.void]:
        """The free amounts by time: node, start, end and a field for each resource."""
        return self._rows.amounts()

    @property
    def slots(self) -> NDArray[np.void]:
        """The time in which whole nodes are free, sorted by (start, node)."""
        return self._rows.slots(None, 1)[0]

    @property
    def origin(self) -> NDArray[np.void]:
        """One slot for each node, over all time: ``Window.slots["row"]`` is its row."""
        hosts = self._rows.hosts.copy()
        hosts["start"], hosts["end"] = self._rows.limits
        return hosts

    def _state(self) -> dict[str, NDArray[Any]]:
        """Return the removed nodes, as `SlotPool._state` does; no node is removed."""
        return {"gone": np.empty(0, np.int32)}

    def __len__(self) -> int:
        return len(self.machine)

    def __repr__(self) -> str:
        when = "" if self.clock is None else f", {self.clock}"
        names = ", ".join(self.resources)
        return f"HostPool({len(self.machine):,} nodes that share {names}{when})"

    def _as_table(self) -> Table:
        """Return the free amounts as a table for display."""
        facts = {"owners": ", ".join(self.owners) or None}
        return Table.from_array(
            repr(self),
            self.amounts,
            context=self.context,
            times=("start", "end"),
            facts=facts,
        )

    # --- searching

    def _find_window(
        self, request: Request, criterion: Any, **options: Any
    ) -> ShareWindow | None:
        """Return `find`, for `find_window`: options with their defaults are dropped."""
        defaults = inspect.signature(find_window).parameters
        given = {
            name: value
            for name, value in options.items()
            if name in ("shape", "required") or value != defaults[name].default
        }
        return self.find(request, criterion, **given)

    def find(
        self,
        request: Request,
        criterion: Criterion = "finish",
        *,
        shape: Shape = "square",
        required: bool = False,
        **options: Any,
    ) -> ShareWindow | None:
        """Return the best window for a request, or None if no window exists.

        Parameters
        ----------
        request : Request
            Its ``share`` is what each part takes of its node, its ``stack`` the most
            parts on one node.
        criterion, shape, required, **options
            As for `find_window`. With ``tree`` or ``whole``: start or finish, without
            options.

        Returns
        -------
        ShareWindow or None
            None also for a share that no node can hold; `explain` reports the reason.

        Raises
        ------
        ValueError, TypeError
            As for `find_window`; also for a share of an unknown resource.
        """
        found = self._find_under(request, criterion, shape, self._capacities, options)
        if found is None and required:
            from slotkern.foundation.errors import NoWindowError

            reason = adapter("explain")(self, request, shape=shape)
            raise NoWindowError(reason, options.get("method", "exact"))
        return found

    def _find_under(
        self,
        request: Request,
        criterion: Any,
        shape: str,
        capacities: Caps | None,
        options: Mapping[str, Any] | None = None,
    ) -> ShareWindow | None:
        """Return `find` under other capacities and quotas than those of the pool."""
        one_of("shape", shape, ("square", "ragged"))
        resolved, share, demand = self._asked(request)
        how = (criterion, shape, options or {})
        found: ShareWindow | None
        if asks_for_tree(request):
            check_counts(resolved, capacities)
            tree = tree_search(self._rows, request, *how)
            search = partial(tree.find, criterion=criterion, shape=shape)
            found = self._rows.find_under(search, resolved, criterion, capacities)
        else:
            found = self._find_parts(resolved, share, demand, capacities, how)
        if found is not None and found.special is None:
            found.special = counted_fields(request)
        return found

    def _find_parts(
        self,
        request: Request,
        share: Amounts | None,
        demand: NDArray[np.int64] | None,
        capacities: Caps | None,
        how: tuple[Any, str, Mapping[str, Any]],
    ) -> ShareWindow | None:
        """Return the best window of parts on any nodes."""
        stack = request.stack
        window, parts = self._rows.find(request, demand, stack, capacities, *how)
        if window is None:
            return None
        window.name, window.context = request.name, self.context
        return shared(window, share, parts, stack > 1)

    def find_windows(
        self, requests: Iterable[Request], criterion: Criterion = "finish", **how: Any
    ) -> list[ShareWindow | None]:
        """Return `find` for each request; nothing is booked."""
        return [self.find(request, criterion, **how) for request in requests]

    def _asked(
        self, request: Request
    ) -> tuple[Request, Amounts | None, NDArray[np.int64] | None]:
        """Return the request in numbers, its share on the grain, and its vector."""
        self._check_fields(request)
        resolved = resolve_times(self, request, None, True)
        return resolved, *self._demand(request)

    def _demand(
        self, request: Request
    ) -> tuple[Amounts | None, NDArray[np.int64] | None]:
        """Return the share of a request on the grain, and its vector."""
        if request.share is None:
            return None, None
        demand = self.capacity.demand(request.share)
        return self.capacity.share(demand), demand

    @staticmethod
    def _check_fields(request: Request) -> None:
        """Raise for fields that no search of this pool supports."""
        if not isinstance(request, Request):
            raise TypeError(
                f"a HostPool finds windows of a Request, got {type(request).__name__}"
            )
        refuse_special(request, "a HostPool", _SPECIAL)
        if isinstance(request.where, np.ndarray):
            raise ValueError(
                "where is an array, but a HostPool has no rows of slots; use an "
                "expression over columns of the machine"
            )

    def schedule(
        self,
        requests: Any,
        criterion: str = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
    ) -> ShareBookings:
        """Find and book a window for each request, in order.

        Parameters
        ----------
        requests, criterion, shape, owner
            As for `SlotPool.schedule`; columns of a table such as ``share.cores`` are
            shares.

        Returns
        -------
        ShareBookings
            One entry for each request. Every exception that stops the call, such as
            KeyboardInterrupt, has what was booked before it as its attribute
            ``bookings``.

        Raises
        ------
        ValueError, TypeError
            For an invalid request; the message contains its name or index.
        """
        return schedule_shares(self, requests, criterion, shape, owner)

    # --- copies

    def copy(self) -> HostPool:
        """Return an independent pool with the same amounts, bookings and owners."""
        other = HostPool.__new__(HostPool)
        other._set(self.machine, self.clock, self._rows.copy())
        if self._capacities is not None:
            other._capacities = self._capacities.copy()
        other._booked = self._booked.copy()
        other._generations = dict(self._generations)
        return other

    __copy__ = copy

    # --- ledgers

    def share(self, where: AnyPath, *, user: str | None = None) -> SharedHostPool:
        """Create a ledger of this pool, which several processes change.

        Parameters and errors are those of `SlotPool.share`.
        """
        return cast("SharedHostPool", adapter("share_pool")(self, where, user))

    @staticmethod
    def open(
        where: AnyPath,
        *,
        user: str | None = None,
        durable: Literal["disk", "crash"] = "disk",
        patience: float = 30.0,
        readonly: bool = False,
    ) -> SharedHostPool:
        """Open a ledger that `share` created.

        Parameters and errors are those of `SlotPool.open`, which opens ledgers of both
        kinds.

        Raises
        ------
        TypeError
            If the ledger books whole nodes.
        """
        pool = adapter("open_ledger")(where, user, durable, patience, readonly)
        if not isinstance(pool, HostPool):
            pool.close()
            raise TypeError(f"{where!s} books whole nodes; open it by SlotPool.open")
        return cast("SharedHostPool", pool)

    # --- figures

    def utilization(
        self, start: Time | None = None, end: Time | None = None
    ) -> dict[str, float]:
        """Return what is taken of each resource as a part of its capacity.

        Parameters
        ----------
        start, end : float, date or str, optional
            The span to evaluate; by default from `now`, or from the first free time, to
            the last end.

        Returns
        -------
        dict of str to float
            From 0 to 1, by resource; amounts of busy spans and of closed time count as
            taken.

        Raises
        ------
        ValueError
            Without `end`, if the free time has no end.
        """
        low, high = self._rows.limits
        first = (
            max(low, self.now) if start is None else time_of(self.clock, start, "start")
        )
        last = high if end is None else time_of(self.clock, end, "end")
        if not np.isfinite(last):
            raise ValueError("the free time has no end: set that of the span, end=")
        if last < first:
            raise ValueError(f"end {end} lies before start {start}")
        free = self._rows.integral(first, last)
        every = self.capacity.amounts.sum(axis=0) * (last - first)
        taken = np.divide(
            every - free, every, out=np.zeros(len(every)), where=every > 0
        )
        return dict(zip(self.resources, taken.clip(0, 1).tolist(), strict=True))

    def free_of(self, resource: str, *, by: str | None = None) -> NDArray[np.void]:
        """Return how much of a resource is free by time.

        Parameters
        ----------
        resource : str
        by : str, optional
            A column of the machine, such as ``"rack"``: one sum for each of its values.

        Returns
        -------
        structured array
            start, end and ``free``, summed over all nodes; with `by` also the group,
            named as the column. Sorted by group and start; neighbours differ.

        Raises
        ------
        ValueError
            For an unknown resource or column.
        """
        one_of("resource", resource, self.resources)
        groups = np.zeros(len(self.machine), np.int64)
        values: NDArray[Any] = np.zeros(1)
        if by is not None:
            one_of("by", by, self.machine.columns)
            values, groups = np.unique(self.machine.columns[by], return_inverse=True)
        return self._rows.free_of(resource, groups, values, by)

    # --- files

    def save(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write the pool to a file for `load`; as for `SlotPool.save`."""
        adapter("save_host_pool")(self, path, overwrite)

    @staticmethod
    def load(path: AnyPath) -> HostPool:
        """Return the pool from a file of `save`, with the errors of `SlotPool.load`."""
        return cast("HostPool", adapter("load_pool")(path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HostPool):
            return NotImplemented
        return (
            self.machine == other.machine
            and self.clock == other.clock
            and self.now == other.now
            and np.array_equal(self.amounts, other.amounts)
            and np.array_equal(self.closed, other.closed)
            and np.array_equal(self.caps, other.caps)
            and self._owned_windows() == other._owned_windows()
        )

    __hash__ = None  # type: ignore[assignment]
