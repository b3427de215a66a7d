"""Searches for requests that use a sum over their nodes of a capacity, such as power.

``uses={"power": "watts"}`` uses the sum of the column `watts` over the parts. The
amount depends on the chosen nodes, so the spans of time with enough are not known
before. For each level A of the free amount, a search for windows of at most A, in the
spans with at least A free, is an ordinary one: a limit ``sum(watts) <= A`` and the
constant use A. The least free amount during a window is one of the levels, so the best
of these windows is the best of all. One search for each level.
"""

from __future__ import annotations

import math
from typing import Any

from slotkern._kernels.caps import Caps
from slotkern._kernels.request import MAX_LIMITS, Request
from slotkern._kernels.search import CRITERIA, find_under
from slotkern._kernels.windows import Window
from slotkern.expressions.groups import rules_of
from slotkern.expressions.limits import uses_of
from slotkern.foundation.amounts import MAX_AMOUNT, Amounts
from slotkern.search.criteria import is_maximized

__all__ = ["check_sum", "find_by_sums"]


def check_sum(pool: Any, request: Request) -> tuple[str, str]:
    """Return the capacity and the term of the use of a request that is a sum.

    Raises
    ------
    ValueError
        For two uses that are sums, for a column with negative numbers or other values
        than numbers, and for a request that no limit can be added to: one with group
        rules, or with the most limits on sums.
    """
    assert request.uses is not None
    sums = {name: of for name, of in request.uses.items() if isinstance(of, str)}
    if len(sums) > 1:
        raise ValueError(
            f"uses: only one can be a sum over the nodes, got {', '.join(sums)}"
        )
    ((name, of),) = sums.items()
    if rules_of(request):
        raise ValueError(
            f"uses[{name!r}] is the sum {of!r}, which is not supported together with "
            "group rules (within, distinct, most)"
        )
    if len(request.limits) >= MAX_LIMITS:
        raise ValueError(
            f"uses[{name!r}] is the sum {of!r}, with which a request has at most "
            f"{MAX_LIMITS - 1} limits, got {len(request.limits)}"
        )
    weights, by_length = uses_of(of, pool.origin)
    if by_length:
        raise ValueError(
            f"uses[{name!r}] is {of!r}, but an amount in use does not depend on the "
            "length; limits can"
        )
    negative = (weights < 0).nonzero()[0]
    if len(negative):
        row = negative[0]
        raise ValueError(f"uses[{name!r}]: {of} of row {row} is negative")
    return name, of


def find_by_sums(
    pool: Any,
    request: Request,
    criterion: Any,
    shape: str,
    capacities: Caps | None,
    options: Any,
) -> Window | None:
    """Return the best window for a request with a use that is a sum, or None.

    Raises
    ------
    ValueError
        If the pool has no such capacity, and as `check_sum`.
    """
    name, of = check_sum(pool, request)
    if capacities is None:
        raise ValueError(f"uses: the pool has no capacity {name!r}")
    asked = request.uses or {}
    others: dict[str, Any] = {key: of for key, of in asked.items() if key != name}
    table = pool.origin

    def search(uses: dict[str, int], limits: Any) -> Window | None:
        part = request.replace(uses=uses or None, limits=limits)
        window: Window | None = find_under(
            pool, part, criterion, shape=shape, capacities=capacities, options=options
        )
        if window is not None:
            weights = uses_of(of, table[window.slots["row"]]).weight
            amount = math.ceil(math.fsum(weights.tolist()))
            found = {**others, name: amount} if amount else others
            special = {**(request.special or {}), "uses": Amounts(found)}
            if not found:
                del special["uses"]
            window.special = special
        return window

    rules = [rule for rule, _ in capacities.rules_of(request) if rule.what == name]
    if not rules:  # the error of an unknown capacity
        return search({**others, name: 1}, request.limits)
    plain = search(others, request.limits)  # stores bounds, which limits do not
    if plain is None or _keeps(plain, name, rules, request, capacities.now):
        return plain
    levels = {
        MAX_AMOUNT if limit is None else min(limit - used, MAX_AMOUNT)
        for rule in rules
        for _, end, limit, used in rule.spans(request.account)
        if end > capacities.now
    }
    sign = -1 if _is_maximized(criterion) else 1
    best: Window | None = None
    for level in sorted((each for each in levels if each >= 0), reverse=True):
        limits = [*request.limits, f"sum({of}) <= {level}"]
        window = search({**others, name: level} if level else others, limits)
        if window is not None and (
            best is None or _key(window, sign) < _key(best, sign)
        ):
            best = window
    return best


def _keeps(window: Window, name: str, rules: Any, request: Request, now: float) -> bool:
    """Return whether all rules have enough for a window."""
    amount = (window.uses or {}).get(name, 0)
    return all(
        limit is None or limit - used >= amount or not amount
        for rule in rules
        for start, end, limit, used in rule.spans(request.account)
        if start < window.finish and end > max(window.start, now)
    )


def _is_maximized(criterion: Any) -> bool:
    named = isinstance(criterion, str) and criterion in CRITERIA
    return not named and is_maximized(criterion)


def _key(window: Window, sign: int) -> tuple[Any, ...]:
    return sign * window.value, window.start, window.cost, window.nodes
