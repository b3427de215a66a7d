"""`Domains`: search and book over the pools of several domains as over one pool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import Bookings, SlotPool
from slotkern._kernels.windows import Window
from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.domains.booking import (
    CONFLICTS,
    DomainBooking,
    Part,
    book_parts,
    release_part,
)
from slotkern.domains.joined import JoinedSlots
from slotkern.foundation.checks import meant, quote
from slotkern.foundation.logger import log
from slotkern.ledger.shared import SharedPool
from slotkern.pool.ledger import reservation

if TYPE_CHECKING:
    from slotkern._kernels.request import Request
    from slotkern._kernels.search import Alternatives
    from slotkern.machine import Clock, Machine
    from slotkern.tariffs import Tariffs
    from slotkern.typing import BuiltIn, Criterion, Shape, Time

__all__ = ["Domains"]

#: Attempts to search and book before a conflict is raised.
TRIES = 5
#: The time in seconds after which parts end that a killed process has not confirmed.
HOLD = 60.0

_T = TypeVar("_T")


class _Domain:
    """A domain: its pool, the version in the joined pool, and its free spans there."""

    def __init__(self, pool: SlotPool) -> None:
        self.pool = pool
        self.seen: NDArray[np.void] | None = None
        self.free: NDArray[np.void] | None = None


class Domains(HasTable):
    """Domains(domains)

    Pools of several domains, searched and booked as one pool.

    A domain is a `SlotPool` of this process, or a `SharedPool`: a ledger, also on
    another machine. Its local manager changes it meanwhile. A window may have parts in
    several domains, which are booked all or none.

    Parameters
    ----------
    domains : mapping of str to SlotPool
        The names of the domains and their pools.

    Attributes
    ----------
    pool : SlotPool
        The joined pool with the free time of all domains as it is now, for functions
        that take slots. Book by `book`: the domains do not see changes of this pool.
    slots : structured array
        The free slots of `pool`, with the column ``domain``.
    clock, machine, tariffs
        Of all domains. Node ``n001`` of domain ``cern`` is ``cern/n001``; without a
        machine the names of nodes are their ids.
    stale : list of str
        The domains that have changed since the last search.

    Raises
    ------
    TypeError
        For a domain that is not a `SlotPool`.
    ValueError
        For names that are empty or contain ``/``; for domains with different clocks,
        columns, levels or tariffs of one name; for a domain with capacities or quotas.

    See Also
    --------
    slotkern.clusters.book_all : One common start on several clusters of Slurm.

    Notes
    -----
    *Searches* give exactly the windows of one pool with the slots of all domains. Ties
    that a pool breaks by the lower node id go to the domain that was added first, then
    to the lower id in it. Functions that
    take slots accept `Domains` and copy its free slots; pass ``domains.pool`` to use
    its prepared structures. The levels of machines, and the column ``host``, contain
    names of the domain as well (``cern/rack1``), so groups never span domains.

    *Group rules* may name the level ``domain``: ``within="domain"``, or
    ``limits="most(domain) <= 2"``.

    *Cost.* Before a search, domains whose free time has changed are read again, and the
    joined pool is built again in O(m log m) for m slots of all domains. Otherwise a
    search takes the time of one in a `SlotPool`.

    Examples
    --------
    >>> import slotkern as sk
    >>> def site(nodes, price):
    ...     return sk.SlotPool(sk.make_slots(
    ...         node=range(nodes), start=0, end=9, performance=1, price=price))
    >>> domains = sk.Domains({"cern": site(2, 3), "jinr": site(2, 1)})
    >>> window = domains.find(sk.Request(3, 4), "cost")
    >>> window.names
    ('cern/0', 'jinr/0', 'jinr/1')
    >>> booking = domains.book(window, "ann")
    >>> {name: part.nodes for name, part in booking.parts.items()}
    {'cern': (0,), 'jinr': (0, 1)}
    >>> domains.find(sk.Request(2, 4, within="domain"), "cost").start
    4.0
    >>> domains.release(booking)
    """

    def __init__(self, domains: Mapping[str, SlotPool]) -> None:
        if not isinstance(domains, Mapping) or not domains:
            raise TypeError(
                "domains must be a mapping of names to pools, one or more, got "
                f"{quote(domains)}"
            )
        for name, pool in domains.items():
            _check_domain(name, pool)
        self._domains = {name: _Domain(pool) for name, pool in domains.items()}
        self._slots = JoinedSlots(domains)
        self._pool: SlotPool | None = None

    # --- the domains

    def __getitem__(self, name: str) -> SlotPool:
        """Return the pool of a domain."""
        if name not in self._domains:
            raise KeyError(
                f"{quote(name)} is not one of {', '.join(self._domains)}"
                f"{meant(name, self._domains)}"
            )
        return self._domains[name].pool

    def __iter__(self) -> Iterator[str]:
        return iter(self._domains)

    def __len__(self) -> int:
        return len(self._domains)

    def __contains__(self, name: object) -> bool:
        return name in self._domains

    def __repr__(self) -> str:
        nodes = {name: len(each.pool.nodes) for name, each in self._domains.items()}
        return f"Domains({', '.join(f'{n}: {k:,} nodes' for n, k in nodes.items())})"

    def _as_table(self) -> Table:
        """Return the free slots of all domains as a table for display."""
        return Table.from_array(repr(self), self.slots, context=self._slots.context)

    def add(self, name: str, pool: SlotPool) -> None:
        """Add a domain after the others; errors as for `Domains`."""
        _check_domain(name, pool)
        if name in self._domains:
            raise ValueError(f"there is a domain {name!r} already")
        slots = JoinedSlots(self._pools() | {name: pool})
        self._domains[name] = _Domain(pool)
        self._replace_slots(slots)

    def remove(self, name: str) -> SlotPool:
        """Remove a domain and return its pool; its bookings stay in it."""
        pool = self[name]
        if len(self._domains) == 1:
            raise ValueError(f"{name!r} is the last domain and cannot be removed")
        del self._domains[name]
        self._replace_slots(JoinedSlots(self._pools()))
        return pool

    def _pools(self) -> dict[str, SlotPool]:
        return {name: each.pool for name, each in self._domains.items()}

    def _replace_slots(self, slots: JoinedSlots) -> None:
        """Take over other joined slots, and read all domains again."""
        self._slots, self._pool = slots, None
        for each in self._domains.values():
            each.seen = None

    # --- the joined pool

    @property
    def clock(self) -> Clock | None:
        """The clock of all domains."""
        clock: Clock | None = self._slots.context.clock
        return clock

    @property
    def machine(self) -> Machine:
        """The nodes of all domains."""
        machine: Machine = self._slots.context.machine
        return machine

    @property
    def tariffs(self) -> Tariffs | None:
        """The tariffs of all domains."""
        tariffs: Tariffs | None = self._slots.context.tariffs
        return tariffs

    @property
    def stale(self) -> list[str]:
        """The domains that have changed since the joined pool was built."""
        for each in self._domains.values():
            if isinstance(each.pool, SharedPool):
                each.pool.refresh()
        return [
            name
            for name, each in self._domains.items()
            if each.pool._free()[0] is not each.seen
        ]

    @property
    def pool(self) -> SlotPool:
        """The joined pool as it is now."""
        stale = self.stale
        pools = self._pools()
        if not self._slots.is_of(pools):
            self._replace_slots(JoinedSlots(pools))
            stale = [*pools]
        for name in stale:
            each = self._domains[name]
            _check_rules(name, each.pool)
            each.seen = each.pool._free()[0]  # before the spans, which may be newer
            each.free = self._slots.free(name, each.pool)
        if stale or self._pool is None:
            free = [each.free for each in self._domains.values()]
            self._pool = self._slots.pool([each for each in free if each is not None])
        return self._pool

    @property
    def slots(self) -> NDArray[np.void]:
        """The free slots of all domains as they are now."""
        return self.pool.slots

    # --- searches

    def find(
        self,
        request: Request,
        criterion: Criterion = "start",
        *,
        shape: Shape = "square",
        **options: Any,
    ) -> Window | None:
        """Return the best window over all domains; see `SlotPool.find`."""
        found: Any = self.pool.find(request, criterion, shape=shape, **options)
        window: Window | None = found
        return window

    def find_alternatives(
        self, request: Request, criterion: Criterion = "first", **options: Any
    ) -> Alternatives:
        """Return alternatives over all domains; see `slotkern.find_alternatives`."""
        return self.pool.find_alternatives(request, criterion, **options)

    # --- bookings

    def book(
        self,
        window: Any,
        owner: str | None = None,
        *,
        hold: float | str = HOLD,
    ) -> Any:
        """Book windows in their domains, all or none.

        Parameters
        ----------
        window : Window, or sequence of Window and None
            Windows that were found in these domains; a `Schedule` of a batch.
        owner : str, optional
            By default the `user` of a ledger, and nobody in other pools.
        hold : float (seconds) or duration
            If several domains take part: the time after which ledgers end parts that
            were not confirmed because this process was killed.

        Returns
        -------
        DomainBooking, or list of DomainBooking for a sequence

        Raises
        ------
        ValueError
            If a part is no longer free; a note of the error names the domain. No domain
            has changed then. Also for a window that was found before a domain was
            added, removed or got slots: search again.
        slotkern.ledger.LedgerError
            If a ledger could not store its part.
        """
        if window is None:
            raise TypeError("there is no window to book: the search returned None")
        single = isinstance(window, Window)
        whole = [window] if single else [each for each in window if each is not None]
        split = [self._split(each) for each in whole]
        by_domain: dict[str, list[Window]] = {}
        for name in self._domains:
            parts = [each[name] for each in split if name in each]
            if parts:
                by_domain[name] = parts
        made = book_parts(self._pools(), by_domain, owner, hold)
        parts_of = {name: iter(parts) for name, parts in made.items()}
        booked = [
            DomainBooking(each, {name: next(parts_of[name]) for name in parts}, owner)
            for each, parts in zip(whole, split, strict=True)
        ]
        return booked[0] if single else booked

    def place(
        self,
        request: Request,
        criterion: Criterion = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        hold: float | str = HOLD,
    ) -> DomainBooking | None:
        """Find and book the best window; search again if a local manager was quicker.

        Parameters
        ----------
        request, criterion, shape
            As for `find`.
        owner, hold
            As for `book`.

        Returns
        -------
        DomainBooking or None
            None if no window exists.

        Raises
        ------
        ValueError, slotkern.ledger.LedgerError
            As for `book`, after five attempts.
        """

        def search() -> Window | None:
            return self.find(request, criterion, shape=shape)

        booked: DomainBooking | None = self._book_found(search, owner, hold)[1]
        return booked

    def schedule(
        self,
        requests: Any,
        criterion: BuiltIn = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        hold: float | str = HOLD,
    ) -> Bookings:
        """Find and book a window for each request, in order, all or none.

        Parameters and result are those of `SlotPool.schedule`; `hold` is that of
        `book`. If a local manager was quicker, all requests are searched again.
        """
        jobs = requests if isinstance(requests, Mapping) else list(requests)

        def search() -> Bookings:
            return self.pool.copy().schedule(jobs, criterion, shape=shape)

        return self._book_found(search, owner, hold)[0]

    def reserve(
        self,
        nodes: Any,
        start: Time,
        end: Time,
        *,
        owner: str | None = None,
        hold: float | str = HOLD,
    ) -> list[DomainBooking]:
        """Book given nodes for a given time, all or none; see `SlotPool.reserve`.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names such as ``cern/n001``, or ids in the joined pool.
        start, end : float, date or str
        owner, hold
            As for `book`.
        """
        windows, _ = reservation(self.pool, nodes, start, end, partly=False)
        booked: list[DomainBooking] = self.book(windows, owner, hold=hold)
        return booked

    def release(
        self, window: DomainBooking | Window | str, *, name: str | None = None
    ) -> None:
        """Release a booking in all its domains, or all windows of an owner.

        Parameters
        ----------
        window : DomainBooking, Window or str
            A booking, its window, or the name of an owner.
        name : str, optional
            Only the owner's windows of jobs with this name.

        Raises
        ------
        ValueError
            If no domain has it. Domains that have released it already are skipped.
        """
        if isinstance(window, str):
            owned = [
                each.pool
                for each in self._domains.values()
                if window in each.pool.owners
            ]
            if not owned:
                raise ValueError(f"{quote(window)} has booked nothing in any domain")
            for pool in owned:
                pool.release(window, name=name)
            return
        if name is not None:
            raise TypeError("name selects among an owner's windows: give the owner")
        parts: Mapping[str, Part]
        if isinstance(window, DomainBooking):
            parts = window.parts
        elif isinstance(window, Window):
            parts = self._split(window)
        else:
            raise TypeError(
                "only bookings, windows and owners can be released, got "
                f"{quote(window)}"
            )
        released = 0
        for domain, part in parts.items():
            try:
                release_part(self[domain], part)
            except (LookupError, ValueError) as error:
                log.info("%s: %s", domain, error)
            else:
                released += 1
        if not released:
            raise ValueError(f"{quote(window)} is booked in no domain")

    def _book_found(
        self, search: Callable[[], _T], owner: str | None, hold: float | str
    ) -> tuple[_T, Any]:
        """Book what a search returns; after a conflict search again.

        Returns what was found, and its bookings; None if nothing was found.
        """
        for left in reversed(range(TRIES)):
            found = search()
            if found is None:
                break
            try:
                return found, self.book(found, owner, hold=hold)
            except CONFLICTS as error:
                if not left:
                    raise
                log.info("%s; searched again", error)
        return found, None

    def _split(self, window: Window) -> dict[str, Window]:
        """Return the part of a window in each of its domains, as they number nodes."""
        if not isinstance(window, Window):
            raise TypeError(f"only windows can be booked, got {quote(window)}")
        if window.machine is not self.machine:
            raise ValueError(
                f"{quote(window)} was not found in these domains as they are now: "
                "search again"
            )
        data = window.to_dict()
        nodes = np.array([part["node"] for part in data["slots"]], np.int32)
        rows = self._slots.rows_at(nodes, window.start)
        found = {}
        for name, mine in self._slots.split(nodes).items():
            local_rows, ids = self._slots.local(name, rows[mine], nodes[mine])
            parts = [
                part | {"row": row, "node": node}
                for part, row, node in zip(
                    data["slots"][mine], local_rows, ids, strict=True
                )
            ]
            lengths = [part["length"] for part in parts]
            totals = {
                "runtime": max(lengths),
                "finish": window.start + max(lengths),
                "cost": math.fsum(part["cost"] for part in parts),
                "processor_time": math.fsum(lengths),
            }
            found[name] = Window.from_dict(data | totals | {"slots": parts})
            found[name].context = self._domains[name].pool.context
        return found


def _check_domain(name: Any, pool: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a domain must be text, got {quote(name)}")
    if not name or "/" in name:
        raise ValueError(
            f"the name of a domain must not be empty or contain '/', got {name!r}"
        )
    if not isinstance(pool, SlotPool):
        raise TypeError(
            f"domain {name!r} must be a SlotPool or SharedPool, got {quote(pool)}"
        )
    _check_rules(name, pool)


def _check_rules(name: str, pool: SlotPool) -> None:
    if pool._capacities is not None:
        raise ValueError(
            f"domain {name!r} has capacities or quotas, which searches over domains do "
            "not keep"
        )
