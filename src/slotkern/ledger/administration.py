"""Changes of a ledger other than bookings: capacities, quotas, time and nodes.

Each method of `AdministeredPool` makes the change of the plain pool of the same name as
one call of the log, with the entries that repeat it in other processes. Cost: that of
the plain pool, and one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from slotkern._kernels.windows import Window
from slotkern.ledger.calls import Change, LoggedPool
from slotkern.ledger.codec import (
    body_row,
    nodes_row,
    pack_arrays,
    plain,
    to_json,
)
from slotkern.machine.clock import is_number
from slotkern.pool.caps import has_weeks
from slotkern.pool.ledger import check_owner, ids_of, time_of
from slotkern.pool.saved import rules_to_lists

if TYPE_CHECKING:
    from slotkern.typing import Time

__all__ = ["AdministeredPool"]


class AdministeredPool(LoggedPool):
    """A pool of a log whose capacities, time and nodes change by calls."""

    def _owner(self, owner: str | None) -> str:
        """Return a checked owner; `user` by default."""
        if owner is None:
            return self.user
        check_owner(owner)
        return owner

    # --- capacities

    def set_cap(
        self,
        name: str,
        amount: Any,
        start: Time | None = None,
        end: Time | None = None,
    ) -> None:
        """Set a capacity, such as a number of licences; see `SlotPool.set_cap`."""
        what = {"do": "set_cap", "name": name, "start": start, "end": end}
        what["amount"] = amount if is_number(amount) else "a table"

        def change(_now: int) -> Change:
            self._plain.set_cap(self, name, amount, start, end)
            return [self._rules_row()], [], None

        self._call(to_json(what), change)

    def quota(
        self,
        what: str,
        amount: int | None,
        *,
        account: str = "*",
        each: bool = False,
        when: str | None = None,
    ) -> None:
        """Limit what an account uses at the same time; see `SlotPool.quota`."""
        how = {"account": account, "each": each, "when": when}

        def change(_now: int) -> Change:
            self._plain.quota(self, what, amount, account=account, each=each, when=when)
            return [self._rules_row()], [], None

        text = to_json({"do": "quota", "what": what, "amount": amount} | how)
        self._call(text, change)

    def _rules_row(self) -> tuple[Any, ...]:
        """Return the entry that replaces all capacities and quotas."""
        rules = rules_to_lists(self._itself._capacities.rules)
        return body_row("caps", to_json({"rules": rules}).encode())

    # --- time and nodes

    def _add(self, add: Callable[[], Mapping[str, NDArray[Any]]]) -> None:
        """Add new free time by `add`, which returns the arrays that repeat it."""

        def change(_now: int) -> Change:
            added = [body_row("add", pack_arrays(add()))]
            if has_weeks(self._itself):  # their hours extend over the new time
                added.append(self._rules_row())
            return added, [], None

        self._call('{"do":"add"}', change)

    def advance(self, now: Time) -> None:
        """Advance the current time to `now` or later.

        Unlike `SlotPool.advance`, an earlier time is accepted and changes nothing,
        because another process may have been faster.
        """

        def change(_now: int) -> Change:
            pool = self._itself
            moment = time_of(pool.clock, now, "now")
            if moment <= pool.now:
                return [], [], None
            self._plain.advance(self, moment)
            self._drop_past()
            return [("advance", None, None, None, moment)], [], None

        self._call(to_json({"do": "advance", "now": now}), change)

    def disable(
        self,
        nodes: Any,
        start: Time | None = None,
        end: Time | None = None,
        owner: str = "down",
    ) -> list[Window]:
        """Close nodes for a time; see `SlotPool.disable`."""
        self._owner(owner)
        hit: list[Window] = []

        def change(_now: int) -> Change:
            clock = self._itself.clock
            first = None if start is None else time_of(clock, start, "start")
            last = None if end is None else time_of(clock, end, "end")
            ids = ids_of(self._itself, nodes)
            hit.extend(self._plain.disable(self, ids, first, last, owner))
            return (
                [nodes_row("disable", ids, owner, start=first, end=last)],
                [],
                None,
            )

        what = {"do": "disable", "nodes": plain(nodes), "start": start, "end": end}
        self._call(to_json(what | {"owner": owner}), change)
        return hit

    def enable(self, nodes: Any) -> None:
        """Reopen nodes closed by `disable`; see `SlotPool.enable`."""

        def change(_now: int) -> Change:
            ids = ids_of(self._itself, nodes)
            self._plain.enable(self, nodes)
            return [nodes_row("enable", ids)], [], None

        self._call(to_json({"do": "enable", "nodes": plain(nodes)}), change)
