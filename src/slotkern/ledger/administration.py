"""Changes of a ledger other than bookings: capacities, quotas, time and nodes.

`AdministeredPool` is the base of `SharedPool`. Each method makes the change of
`SlotPool` of the same name as one call of the log, with the entries that repeat it in
other processes. Cost: that of `SlotPool`, and one commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern._kernels.pool import SlotPool
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
from slotkern.pool.closures import disable, enable
from slotkern.pool.ledger import check_owner, ids_of, time_of
from slotkern.pool.saved import rules_to_lists

if TYPE_CHECKING:
    from slotkern.typing import Slots, Time

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
            SlotPool.set_cap(self, name, amount, start, end)
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
            SlotPool.quota(self, what, amount, account=account, each=each, when=when)
            return [self._rules_row()], [], None

        text = to_json({"do": "quota", "what": what, "amount": amount} | how)
        self._call(text, change)

    def _rules_row(self) -> tuple[Any, ...]:
        """Return the entry that replaces all capacities and quotas."""
        assert self._capacities is not None
        rules = rules_to_lists(self._capacities.rules)
        return body_row("caps", to_json({"rules": rules}).encode())

    # --- time and nodes

    def advance(self, now: Time) -> None:
        """Advance the current time to `now` or later.

        Unlike `SlotPool.advance`, an earlier time is accepted and changes nothing,
        because another process may have been faster.
        """

        def change(_now: int) -> Change:
            moment = time_of(self.clock, now, "now")
            if moment <= self.now:
                return [], [], None
            SlotPool.advance(self, moment)
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
            first = None if start is None else time_of(self.clock, start, "start")
            last = None if end is None else time_of(self.clock, end, "end")
            ids = ids_of(self, nodes)
            hit.extend(disable(self, ids, first, last, owner))
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
            ids = ids_of(self, nodes)
            enable(self, nodes)
            return [nodes_row("enable", ids)], [], None

        self._call(to_json({"do": "enable", "nodes": plain(nodes)}), change)

    def remove_node(self, node: int | str) -> None:
        """Remove a node with all its time; see `SlotPool.remove_node`."""

        def change(_now: int) -> Change:
            before = self._state()["gone"]
            SlotPool.remove_node(self, node)
            (i,) = np.setdiff1d(self._state()["gone"], before).tolist()
            body = to_json({"node": i}).encode()
            return [body_row("remove", body)], [], None

        self._call(to_json({"do": "remove", "node": plain(node)}), change)

    def add_slots(self, slots: Slots) -> None:
        """Add free slots; see `SlotPool.add_slots`."""

        def change(_now: int) -> Change:
            rows = len(self.origin)
            SlotPool.add_slots(self, slots)
            body = pack_arrays({"slots": self.origin[rows:]})
            added = [body_row("add", body)]
            if has_weeks(self):  # their hours extend over the new slots
                added.append(self._rules_row())
            return added, [], None

        self._call('{"do":"add"}', change)
