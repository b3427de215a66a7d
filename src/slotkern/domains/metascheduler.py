"""`Domains`: search and book over the pools of several domains as over one pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern._kernels.pool import Bookings
from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.domains.booking import (
    DomainBooking,
    Ledger,
    Part,
    book_parts,
    ledgers_of,
    release_part,
)
from slotkern.domains.members import JoinedDomains
from slotkern.domains.placing import HOLD, Placing
from slotkern.foundation.checks import quote
from slotkern.foundation.logger import log
from slotkern.ledger.bookings import Booking
from slotkern.ledger.errors import LedgerError
from slotkern.pool.ledger import reservation

if TYPE_CHECKING:
    from slotkern._kernels.search import Alternatives
    from slotkern.typing import BuiltIn, Criterion, Shape, Time

__all__ = ["Domains"]


class Domains(JoinedDomains, Placing):
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

    *Cost.* Before a search, the free time of the nodes that have changed is replaced in
    the joined pool, in O(log m) a span for m slots of all domains. After `advance` all
    nodes of the domain are compared, and after `add_slots` the joined pool is built
    again in O(m log m). Otherwise a search takes the time of one in a `SlotPool`.

    *Threads.* One thread at a time may use a `Domains`.

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

    # --- searches

    def find(
        self,
        request: Request,
        criterion: Criterion = "finish",
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
            has changed then. Also for a window with nodes of a domain that was removed.
        slotkern.ledger.LedgerError
            If a ledger could not store its part.
        """
        return self._book(window, owner, hold, None)

    def _book(
        self,
        window: Any,
        owner: str | None,
        hold: float | str,
        token: str | None,
        asked: str | None = None,
    ) -> Any:
        """Book windows as `book` does, in ledgers by the token of the request asked."""
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
        made = book_parts(self._pools(), by_domain, owner, hold, token, asked)
        parts_of = {name: iter(parts) for name, parts in made.items()}
        booked = [
            DomainBooking(each, {name: next(parts_of[name]) for name in parts}, owner)
            for each, parts in zip(whole, split, strict=True)
        ]
        return booked[0] if single else booked

    def _find(self, request: Request, criterion: Any, shape: Any) -> Window | None:
        return self.find(request, criterion, shape=shape)

    def _ledgers(self, asked: str | None) -> dict[str, Ledger]:
        ledgers = ledgers_of(self._pools())
        for name in self._domains:
            if name not in ledgers:
                raise ValueError(
                    f"domain {name!r} is a pool of this process, which keeps no "
                    "tokens: share it as a ledger (SlotPool.share)"
                )
        return ledgers

    def _repeated(
        self, parts: Mapping[str, list[Booking]], token: str
    ) -> DomainBooking:
        """Return the booking of an earlier call from its parts in all ledgers."""
        _ = self.pool  # the slots of all domains as they are now
        mine = {name: parts[name][0] for name in self._domains if name in parts}
        window = self._slots.join({name: each.window for name, each in mine.items()})
        owner = next(iter(mine.values())).owner
        return DomainBooking(window, {**mine}, owner, token, True)

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

        found = self._book_found(search, owner, hold)[0]
        assert found is not None
        return found

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
        slotkern.ledger.LedgerError
            If a ledger cannot be read or written: repeat the call.
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
            except LedgerError:
                raise  # some are also a ValueError, but the part may still be booked
            except (LookupError, ValueError) as error:
                log.info("%s: %s", domain, error)
            else:
                released += 1
        if not released:
            raise ValueError(f"{quote(window)} is booked in no domain")

    def _split(self, window: Window) -> dict[str, Window]:
        """Return the part of a window in each of its domains, as they number nodes."""
        if not isinstance(window, Window):
            raise TypeError(f"only windows can be booked, got {quote(window)}")
        if window.machine is None:
            raise ValueError(f"{quote(window)} was not found in these domains")
        nodes = np.array(window.nodes, np.int32)
        if window.machine is not self.machine:  # found before domains or nodes came
            nodes = self.machine.ids(list(window.names), "nodes of the window")
        found = self._slots.split(window, nodes)
        for name, part in found.items():
            part.context = self._domains[name].pool.context
        return found
