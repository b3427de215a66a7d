"""Facts about the group rules of a request, for `explain`.

The largest number of nodes that start together under the rules alone, and the groups
and the time of the earliest window of so many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slotkern.foundation.checks import visible

if TYPE_CHECKING:
    from slotkern.machine.clock import Clock
    from slotkern.search.relaxations import RelaxedSearches

__all__ = ["GroupFacts", "group_facts"]

#: The largest number of groups that are listed.
_MAX_GROUPS = 6


class GroupFacts(NamedTuple):
    """Facts about the group rules of a request; times are numbers.

    Attributes
    ----------
    group_nodes : int
        The largest number of nodes that start together under the group rules, at any
        cost.
    group_names : list of str
        The groups of these nodes by the level of the first rule, in the earliest window
        of so many; empty if there is none.
    group_start : float or None
        The start of this window.
    """

    group_nodes: int
    group_names: list[str]
    group_start: float | None

    def line(self, level: str | None, rules: str, clock: Clock | None) -> str:
        """Return the facts in words; `level` is that of a single group, else None."""
        where = f"in one {level}" if level is not None else f"under {rules}"
        if self.group_start is None:
            return f"{where} none can start together"
        names = visible(", ".join(self.group_names[:_MAX_GROUPS]))
        if len(self.group_names) > _MAX_GROUPS:
            names += ", ..."
        start = self.group_start
        when = f"{start:.10g}" if clock is None else str(clock.datetime(start))
        verb = "is" if self.group_nodes == 1 else "are"
        most = f"at most {self.group_nodes} {verb} free together"
        return f"{where} {most} ({names}; {when})"


def group_facts(searches: RelaxedSearches, high: int) -> GroupFacts | None:
    """Return the facts of a request with group rules, up to `high` nodes; else None."""
    request = searches.request
    if not request.rules:
        return None
    limits = tuple(limit for limit in request.limits if limit.kind != "sum")
    free = {"limits": limits, "budget": float("inf")}
    most = searches.most_nodes(high, **free)
    window = searches.find("start", nodes=most, **free) if most else None
    if window is None:
        return GroupFacts(0, [], None)
    column = searches.pool.slots[request.rules[0].level]
    groups = sorted(set(column[window.slots["row"]].tolist()))
    return GroupFacts(most, [str(each) for each in groups], window.start)
