"""The capacities and quotas of a pool that delay or prevent a window, for `explain`.

Each figure is the result of an exact search with one rule lifted, or one amount
changed; bisection applies, because feasibility is monotone in an amount.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from slotkern._kernels.caps import NODES, CapacityRule, Caps, describe
from slotkern._kernels.request import Request
from slotkern._kernels.search import find_under
from slotkern._kernels.windows import Window
from slotkern.foundation.errors import UndecidedError
from slotkern.pool.host_pool import HostPool
from slotkern.search.delegated import SearchOptions
from slotkern.search.relaxations import SearchWork

__all__ = ["CapacityFacts", "capacity_facts"]


class Blame(NamedTuple):
    """A rule that a window would break.

    Attributes
    ----------
    what : str
        "nodes" or the capacity.
    account : str
        Empty for a capacity.
    text : str
        The limit and what is used in the first span with too little, in words.
    alone : bool
        Whether the request has a window, or an earlier start, without this rule.
    start : float or None
        The earliest start without this rule; None if there is no window.
    most : int
        The largest amount with which the request fits, below its own; 0 if none, and
        for a use that is a sum over the nodes.
    """

    what: str
    account: str
    text: str
    alone: bool
    start: float | None
    most: int


class CapacityFacts(NamedTuple):
    """The rules that delay or prevent a window.

    Attributes
    ----------
    start : float
        The earliest start without capacities and quotas.
    blamed : tuple of Blame
    fits : bool
        Whether a window keeps all rules.
    earliest : float
        The earliest start that keeps all rules; infinite if there is none.
    """

    start: float
    blamed: tuple[Blame, ...]
    fits: bool
    earliest: float

    def lines(self, clock: Any) -> list[str]:
        """Return one line for each rule with too little."""

        def when(time: Any) -> str:
            if clock is None:
                return repr(time).removesuffix(".0")
            return str(clock.datetime(time))

        found = []
        for each in self.blamed:
            line = each.text
            if each.alone:
                line += f"; without this limit the earliest start is {when(each.start)}"
            found.append(line)
        if self.fits:
            found.append(f"with all limits the earliest start is {when(self.earliest)}")
        return found

    def remedies(self) -> list[str]:
        """Return the changes of one rule or amount with which the request fits."""
        if self.fits:
            return []
        found = []
        for each in self.blamed:
            if each.most and each.what != NODES:
                found.append(f"with uses of {each.most} {each.what}")
            if each.alone:
                kind = "quota" if each.account else "capacity"
                found.append(f"without the {kind} of {each.what}")
        return found


def capacity_facts(
    pool: Any,
    request: Request,
    window: Any,
    shape: str,
    work: SearchWork | None = None,
) -> CapacityFacts | None:
    """Return the rules that delay or prevent a window of a pool; None if none does.

    Parameters
    ----------
    pool : SlotPool, HostPool or other slots
    request : Request
        With times as numbers.
    window : Window or None
        The window of earliest start that keeps all rules.
    shape : str
    work : SearchWork, optional
        Its rest limits each search.
    """
    most_work = None if work is None else work.left
    caps: Caps | None = getattr(pool, "_capacities", None)
    if caps is None:
        return None
    counted = caps.rules_of(request)
    free = _earliest(pool, request, shape, caps.with_rules(()), most_work)
    if (
        not counted
        or free is None
        or (window is not None and free.start >= window.start)
    ):
        return None
    blamed = []
    for rule, amount in counted:
        is_sum = isinstance((request.uses or {}).get(rule.what), str)
        if is_sum:  # known for a window only
            amount = (free.uses or {}).get(rule.what, 0)
        short = _shortage(rule, request, amount, free.start, pool.clock)
        if short is None:
            continue
        others = caps.with_rules([each for each in caps.rules if each is not rule])
        found = _earliest(pool, request, shape, others, most_work)
        lifted = None if found is None else found.start
        alone = lifted is not None and (window is None or lifted < window.start)
        most = 0
        if window is None and rule.what != NODES and not is_sum:
            most = _most(pool, request, shape, caps, rule.what, amount, most_work)
        blamed.append(Blame(rule.what, rule.account or "", short, alone, lifted, most))
    earliest = math.inf if window is None else window.start
    return CapacityFacts(free.start, tuple(blamed), window is not None, earliest)


def _earliest(
    pool: Any, request: Request, shape: Any, caps: Caps, max_work: int | None
) -> Window | None:
    """Return the window of earliest start under other rules."""
    if isinstance(pool, HostPool):
        return pool._find_under(request, "start", shape, caps)
    try:
        options = SearchOptions(shape, max_work=max_work)
        how: Any = {"shape": shape, "capacities": caps, "options": options}
        return find_under(pool, request, "start", **how)
    except UndecidedError:
        return None


def _shortage(
    rule: CapacityRule, request: Request, amount: int, first: float, clock: Any
) -> str | None:
    """Describe the first span from `first` on with less than an amount."""
    for start, end, limit, used in rule.spans(request.account):
        if end > first and limit is not None and limit - used < amount:
            return describe(rule, request.account, start, end, limit, used, clock)
    return None


def _most(
    pool: Any,
    request: Request,
    shape: str,
    caps: Caps,
    what: str,
    amount: int,
    max_work: int | None,
) -> int:
    """Return the largest amount below `amount` with which the request fits."""
    low, high = 0, amount - 1
    while low < high:
        middle = (low + high + 1) // 2
        uses = {**(request.uses or {}), what: middle}
        asked = request.replace(uses=uses)
        if _earliest(pool, asked, shape, caps, max_work) is None:
            high = middle - 1
        else:
            low = middle
    return low
