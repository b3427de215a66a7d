"""The domains of a metascheduler, and the joined pool that follows their changes.

Input: the pools of the domains. Output: `JoinedDomains.pool`, one pool with the free
time of all as it is now. A domain is read again if its array of free slots is another
one than before, which `SlotPool` makes after each change; a ledger reads its log first.
Cost: O(1) for each domain without changes, a look at the log for each ledger, and
O(m log m) for the m slots of all domains after a change.
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
    """A domain: its pool, the version in the joined pool, and its free spans there."""

    def __init__(self, pool: SlotPool) -> None:
        self.pool = pool
        self.seen: NDArray[np.void] | None = None
        self.free: NDArray[np.void] | None = None


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
