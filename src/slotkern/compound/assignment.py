"""A min-cost assignment of nodes to roles: each role gets its number of nodes.

No node serves two roles. Successive shortest paths on a graph of roles: each step
places one more node by the cheapest chain of moves. A free node enters a role, or
pushes one of its nodes to the next role, and so on. Costs are exact rational numbers
(a float64 is one), so rounding decides nothing.

Cost: N steps for N places, each O(R^2 C) for R roles and C candidates of a role. A role
needs only its N cheapest nodes: the others hold at most N minus its own number of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

__all__ = ["assign"]


def assign(
    counts: Sequence[int], costs: Sequence[Mapping[int, float]]
) -> list[list[int]] | None:
    """Return the nodes of each role with the least total cost, or None if too few.

    Parameters
    ----------
    counts : sequence of int
        The number of nodes of each role.
    costs : sequence of mapping of int to float
        For each role its candidate nodes, and what each costs.

    Returns
    -------
    list of list of int, or None
        The nodes of each role, ascending.

    Examples
    --------
    >>> assign([1, 1], [{0: 1.0, 1: 2.0}, {0: 1.0}])
    [[1], [0]]
    >>> assign([1, 1], [{0: 1.0}, {0: 1.0}]) is None
    True
    """
    places = sum(counts)
    exact: list[dict[int, Fraction]] = []
    for role in costs:
        cheapest = sorted(role, key=lambda node: (role[node], node))[:places]
        exact.append({node: Fraction(role[node]) for node in cheapest})
    roles = range(len(counts))
    role_of: dict[int, int] = {}
    missing = list(counts)
    while any(missing):
        # The cheapest way to bring one more node into each role, by Bellman and Ford.
        cost: list[Fraction | None] = [None] * len(counts)
        step: list[tuple[int, int]] = [(-1, -1)] * len(counts)  # node, its role before
        for r in roles:
            for node, price in exact[r].items():
                if node not in role_of:
                    now = cost[r]
                    if now is None or price < now:
                        cost[r], step[r] = price, (node, -1)
        for _ in roles:
            for node, old in role_of.items():
                base = cost[old]
                if base is None:
                    continue
                for r in roles:
                    if r != old and node in exact[r]:
                        total = base + exact[r][node] - exact[old][node]
                        now = cost[r]
                        if now is None or total < now:
                            cost[r], step[r] = total, (node, old)
        ends = [(c, r) for r in roles if missing[r] and (c := cost[r]) is not None]
        if not ends:
            return None
        r = min(ends)[1]
        missing[r] -= 1
        while r >= 0:
            node, before = step[r]
            role_of[node] = r
            r = before
    return [sorted(node for node, r in role_of.items() if r == k) for k in roles]
