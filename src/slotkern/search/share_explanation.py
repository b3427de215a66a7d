"""Explanations of requests for shares of nodes: which resource prevents a window.

The figures of `Explanation` are those of the view of the share. The amount of each
resource is changed by itself; feasibility is monotone in it, so bisection is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import is_counted
from slotkern._kernels.search import find_window
from slotkern.pool.share_trees import asks_for_tree
from slotkern.pool.share_windows import text_of
from slotkern.search.explanation import Explanation, explain_slots
from slotkern.search.relaxations import RelaxedSearches
from slotkern.search.tree_explanation import explain_tree

if TYPE_CHECKING:
    from slotkern._kernels.request import Request
    from slotkern.pool.host_pool import HostPool
    from slotkern.typing import Shape

__all__ = ["ShareExplanation", "explain_share"]


@dataclass(frozen=True)
class ShareExplanation(Explanation):
    """The reasons why a request for shares of nodes has no window.

    Nodes of the inherited figures are parts of nodes if `stack` is above 1.

    Attributes
    ----------
    share : dict of str to int
        What each part takes, rounded up to the grain of the machine.
    stack : int
        The most parts on one node.
    machine_nodes, holders : int
        The number of nodes of the machine, and of those whose capacity holds the share.
    most : dict of str to int
        The largest capacity of any node by resource.
    amounts : dict of str to int
        The resources that each prevent a window alone, and the largest amount of each
        with which the request fits; 0: only without it. Empty if the request fits.
    without_resource : dict of str to int
        The largest number of parts that fit together if they take nothing of one of
        these resources, for shares of several.
    """

    share: dict[str, int] = field(default_factory=dict)
    stack: int = 1
    machine_nodes: int = 0
    holders: int = 0
    most: dict[str, int] = field(default_factory=dict)
    without_resource: dict[str, int] = field(default_factory=dict)
    amounts: dict[str, int] = field(default_factory=dict)

    def changes(self) -> dict[str, float]:
        """Return the smallest change of each limit, as for `Explanation`."""
        found = {f"share.{name}": amount for name, amount in self.amounts.items()}
        return super().changes() | {k: v for k, v in found.items() if v}

    def _format_given(self, asked: Request, name: str) -> str:
        if name.startswith("share."):
            return f"{self.share[name.removeprefix('share.')]}"
        return super()._format_given(asked, name)

    def __str__(self) -> str:
        share = text_of(self.share)
        lines = [f"{self.holders} of {self.machine_nodes} nodes can hold {share}"]
        if not self.holders:
            lines[0] = f"no node can hold {share}"
            lines += [
                f"no node has more than {self.most[name]:,} {name}"
                for name, amount in self.share.items()
                if amount > self.most[name]
            ]
        elif self.slots_total:
            few = self.together < self.request.nodes
            noun = "part" if self.stack > 1 else "node"
            one = self.together == 1
            many = f"at most {self.together} {noun}{'' if one else 's'}"
            if not self.together:
                one, many = True, f"no {noun}"
            verb = ("fit" if self.stack > 1 else "hold") + ("s" if one else "")
            together = " together" if self.together else ""
            of = "" if self.stack > 1 else f" {share}"
            lines.append(
                f"{many} {verb}{of}{together} for {self._length()}"
                f"{self._time_clause()}; {'' if few else 'only '}{self.request.nodes} "
                f"{'is' if self.request.nodes == 1 else 'are'} asked for"
            )
        if self.capacities is not None:
            lines += self.capacities.lines(self.clock)
        if self.cheapest is not None:
            lines.append(self._describe_cheapest(self.cheapest))
        if self.fits:
            return "\n".join(["A window fits.", *lines])
        lines += [
            f"{name} are to blame: without them {fitting} fit"
            for name, fitting in self.without_resource.items()
        ]
        lines.append(self._describe_remedies())
        return "\n".join(["No window fits.", *lines])

    def _remedies(self) -> dict[str, str]:
        parts = "part" if self.stack > 1 else "node"
        parts += "" if self.nearest_nodes == 1 else "s"
        amounts = {f"share.{name}": f"{{}} {name}" for name in self.amounts}
        return super()._remedies() | amounts | {"nodes": f"{{}} {parts} instead"}

    def _length(self) -> str:
        asked = self.asked
        if asked is None or asked.walltime is None:
            return f"volume {self.request.volume:g}"
        return str(asked.walltime)


def explain_share(pool: HostPool, request: Request, shape: Shape) -> Explanation:
    """Explain a request to a pool of shared nodes; see `explain`."""
    if asks_for_tree(request):
        return explain_tree(pool, request, shape)
    resolved, share, demand = pool._asked(request)
    rows, stack = pool._rows, request.stack
    asked = resolved.replace(share=None, stack=1)
    capacities = pool._capacities
    is_counted(capacities, resolved)  # raises for uses that the pool does not have
    view = rows.view(demand, stack, capacities)
    found = explain_slots(view.pool, rows.resolved(asked, view), shape, request, pool)
    if demand is None or share is None:
        return found
    amounts: dict[str, int] = {}
    without: dict[str, int] = {}

    def fits(changed: NDArray[np.int64]) -> bool:
        if not changed.any():
            return False
        each = rows.view(changed, stack, capacities)
        job = rows.resolved(asked, each)
        return find_window(each.pool, job, "first", shape=shape) is not None

    for k, name in enumerate(pool.resources):
        if found.fits or not demand[k]:
            continue
        lifted = demand.copy()
        lifted[k] = 0
        amount = _largest(_candidates(pool, demand, k, stack), lifted, k, fits)
        if not amount and not fits(lifted):
            continue
        amounts[name] = amount
        if lifted.any():
            each = rows.view(lifted, stack, capacities)
            searches = RelaxedSearches(each.pool, rows.resolved(asked, each), shape)
            nodes = len(np.unique(each.slots["node"]))
            without[name] = searches.most_nodes(nodes, budget=np.inf, limits=())
    capacity = pool.capacity.amounts
    most = dict(zip(pool.resources, capacity.max(axis=0).tolist(), strict=True))
    facts: dict[str, Any] = {
        name: getattr(found, name) for name in Explanation.__dataclass_fields__
    }
    return ShareExplanation(
        **facts,
        share=dict(share),
        stack=stack,
        holders=int((capacity >= demand).all(axis=1).sum()),
        machine_nodes=len(capacity),
        most=most,
        without_resource=without,
        amounts=amounts,
    )


def _candidates(
    pool: HostPool, demand: NDArray[np.int64], k: int, stack: int
) -> list[int]:
    """Return the amounts of resource k at which a node's number of parts changes."""
    free = np.unique(pool.amounts[pool.resources[k]])
    parts = np.arange(1, stack + 1)
    every = np.unique(free[:, None] // parts[None, :])
    unit = pool.capacity.grain.get(pool.resources[k], 1)
    every = np.unique(every // unit * unit)
    found: list[int] = every[(every > 0) & (every < demand[k])].tolist()
    return found


def _largest(
    candidates: list[int],
    demand: NDArray[np.int64],
    k: int,
    fits: Callable[[NDArray[np.int64]], bool],
) -> int:
    """Return the largest candidate that fits, by bisection; 0 if none does."""
    low, high = 0, len(candidates)
    while low < high:
        middle = (low + high) // 2
        changed = demand.copy()
        changed[k] = candidates[middle]
        if fits(changed):
            low = middle + 1
        else:
            high = middle
    return candidates[low - 1] if low else 0
