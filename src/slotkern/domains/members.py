"""The domains of a metascheduler, and the joined pool that follows their changes.

Input: the pools of the domains. Output: `JoinedDomains.pool`, one pool with the free
time of all as it is now. Each pool counts its changes and logs the nodes that they
concern (pool/change_log.hpp); a ledger reads its log first. Before a search, the free
time of these nodes is replaced in the joined pool. If the log does not reach back so
far, or the time of the domain has advanced, all nodes of the domain are compared. The
joined pool is built again only if a domain has got slots.
Cost: O(1) for each domain without changes, a look at the log for each ledger, and
O(log m) for each changed span, for the m slots of all domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import SlotPool
from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.domains.joined import JoinedSlots
from slotkern.foundation.checks import meant, quote
from slotkern.ledger.shared import SharedPool
from slotkern.pool.ledger import time_of

if TYPE_CHECKING:
    from slotkern.machine import Clock, Machine
    from slotkern.tariffs import Tariffs
    from slotkern.typing import Time

__all__ = ["JoinedDomains"]


class _Domain:
    """A domain: its pool, and the version of it that the joined pool contains."""

    def __init__(self, pool: SlotPool) -> None:
        self.pool = pool
        self.seen: int | None = None


class JoinedDomains(HasTable):
    """Pools by the names of their domains, and their free time as one pool."""

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

    def copy(self) -> Self:
        """Return independent domains in the same state, all in this process."""
        return type(self)({name: pool.copy() for name, pool in self._pools().items()})

    # --- time

    @property
    def now(self) -> float:
        """The latest current time of the domains."""
        return max(pool.now for pool in self._pools().values())

    def advance(self, now: Time) -> None:
        """Advance all domains whose current time is before `now`; see `SlotPool`."""
        time = time_of(self.clock, now, "now")
        for pool in self._pools().values():
            if pool.now < time:
                pool.advance(time)

    # --- the joined pool

    @property
    def origin(self) -> NDArray[np.void]:
        """The slots of all domains, free or not; rows of windows refer to it."""
        return self.pool.origin

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
        """The domains that have changed since the last search."""
        for each in self._domains.values():
            if isinstance(each.pool, SharedPool):
                each.pool.refresh()
        return [
            name
            for name, each in self._domains.items()
            if each.pool._version != each.seen
        ]

    @property
    def pool(self) -> SlotPool:
        """The joined pool, which follows the domains; up to date when it is read."""
        stale = self.stale
        pools = self._pools()
        if not self._slots.is_of(pools):
            self._replace_slots(JoinedSlots(pools))
        for name in stale:
            _check_rules(name, pools[name])
        if self._pool is None:
            self._pool = self._build()
        elif stale:
            try:
                self._update(self._pool, stale)
            except BaseException:  # some nodes may have been replaced
                self._pool = None
                raise
        return self._pool

    def _build(self) -> SlotPool:
        """Return a joined pool with the free time of all domains."""
        free, versions = [], {}
        for name, each in self._domains.items():
            versions[name], _, spans = each.pool._free_since(0)
            free.append(self._slots.free(name, spans))
        pool = self._slots.pool(free)
        for name, each in self._domains.items():
            each.seen = versions[name]
        return pool

    def _update(self, pool: SlotPool, stale: list[str]) -> None:
        """Bring the joined pool up to date with these domains."""
        for name in stale:
            each = self._domains[name]
            version, nodes, spans = each.pool._free_since(each.seen or 0)
            self._slots.update(pool, name, nodes, spans)
            each.seen = version

    def _free(self) -> tuple[NDArray[np.void], NDArray[np.int64] | None]:
        """Return the free slots as they are now, and their rows of `origin`."""
        return self.pool._free()

    def require_original_rows(self, name: str) -> None:
        """Raise ValueError for an array if a domain has changed; see `SlotPool`."""
        self.pool.require_original_rows(name)

    @property
    def slots(self) -> NDArray[np.void]:
        """The free slots of all domains as they are now."""
        return self.pool.slots


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
