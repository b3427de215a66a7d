"""Requests for groups of a tree of levels, such as three racks of one switch.

Levels are columns of the machine whose groups nest. `tree_search` converts a request to
the search of the binding: the groups of all levels, how many are taken, and what each
part takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import NODES
from slotkern._kernels.shares import TreeSearch
from slotkern.expressions.groups import check_nesting, groups_of
from slotkern.foundation.checks import one_of, quote
from slotkern.pool.share_rows import ShareRows, is_free_of_times
from slotkern.pool.share_windows import ShareWindow

if TYPE_CHECKING:
    from slotkern._kernels.caps import Caps
    from slotkern._kernels.request import Request

__all__ = ["Tree", "asks_for_tree", "check_counts", "make_tree", "tree_search"]


class NodeLevel(NamedTuple):
    """The groups of a level: their number, and the first node of the group of each."""

    groups: int
    first: NDArray[np.intp]


class Tree(NamedTuple):
    """Nested groups of nodes.

    Attributes
    ----------
    levels : tuple of str
        The columns, from the coarsest to the finest.
    nodes : list of int
        All nodes; those of an innermost group are adjacent.
    first : list of list of int
        For each level: the first group of the next level in each group, at the finest
        level its first place in `nodes`; one more entry ends the last group.
    """

    levels: tuple[str, ...]
    nodes: list[int]
    first: list[list[int]]


def asks_for_tree(request: Request) -> bool:
    """Return whether a request has the field ``tree`` or ``whole``."""
    special = request.special
    return special is not None and ("tree" in special or "whole" in special)


def check_counts(request: Request, capacities: Caps | None) -> None:
    """Raise ValueError for uses that depend on the choice of groups."""
    for name, of in (request.uses or {}).items():
        if isinstance(of, str):
            raise ValueError(
                f"uses[{name!r}] is the sum {of!r}, but tree and whole support whole "
                "numbers only"
            )
    rules = () if capacities is None else capacities.rules_of(request)
    if request.whole is not None and any(rule.what == NODES for rule, _ in rules):
        raise ValueError(
            f"whole={request.whole!r} has a number of nodes that depends on the choice "
            "of groups, which a quota on nodes does not count: define a capacity, name "
            "it in uses, and limit that"
        )


def make_tree(
    counts: dict[str, int],
    whole: str | None,
    hosts: NDArray[Any],
    known: dict[str, NodeLevel],
) -> Tree:
    """Return the tree of some levels; groups are in the order of their first nodes.

    Parameters
    ----------
    counts : dict of str to int
        The levels with the numbers of their groups, in any order.
    whole : str or None
        The finest level, if its groups are taken whole.
    hosts : structured array
        One row for each node.
    known : dict of str to NodeLevel
        The groups of levels; those of other levels are added.

    Raises
    ------
    ValueError
        For an unknown column, an empty cell, levels that cross, and a level of `counts`
        that is not coarser than `whole`.

    Notes
    -----
    O(m log m) for the first tree of a level, O(m) for another if the nodes are sorted.
    """
    columns = [*counts, *([] if whole is None else [whole])]
    for level in columns:
        if level not in known:
            known[level] = _level(level, hosts)
    # If levels have equal groups, one that asks for several groups is the outer one.
    levels = sorted(counts, key=lambda level: (known[level].groups, -counts[level]))
    if whole is not None:
        if whole in counts or (
            levels and known[levels[-1]].groups > known[whole].groups
        ):
            check_nesting(columns, hosts, "the tree")
            raise ValueError(
                f"whole={whole!r} must be a finer level than those of tree, which are "
                f"{', '.join(levels)}"
            )
        levels.append(whole)
    keys = [known[level].first for level in levels]
    nodes = np.lexsort(keys[::-1])  # stable: the nodes of a group ascend
    borders = np.zeros(len(nodes), bool)
    borders[:1] = True
    starts = []
    for level, key in zip(levels, keys, strict=True):
        ordered = key[nodes]
        borders[1:] |= ordered[1:] != ordered[:-1]
        starts.append(np.flatnonzero(borders))
        if len(starts[-1]) != known[level].groups:  # one lies in two coarser groups
            check_nesting(columns, hosts, "the tree")
    places = [
        [*np.searchsorted(finer, own).tolist(), len(finer)]
        for own, finer in pairwise(starts)
    ]
    places.append([*starts[-1].tolist(), len(nodes)])
    return Tree(tuple(levels), nodes.tolist(), places)


def _level(level: str, hosts: NDArray[Any]) -> NodeLevel:
    """Return the groups of a level."""
    of_row, groups = groups_of(level, hosts)
    first = np.empty(groups, np.intp)
    first[of_row[::-1]] = np.arange(len(hosts))[::-1]  # the last write remains
    return NodeLevel(groups, first[of_row])


def tree_search(
    rows: ShareRows,
    request: Request,
    criterion: Any,
    shape: str,
    options: Mapping[str, Any],
) -> TreeSearch:
    """Return the search for requests with the tree, share and stack of this one.

    Raises
    ------
    ValueError, TypeError
        As `make_tree`; also for nodes of unlike performance, and for criteria, options
        and fields that trees do not support.
    """
    one_of("criterion of a request with tree or whole", criterion, _CRITERIA)
    one_of("shape", shape, ("square", "ragged"))
    for name in options:
        raise ValueError(f"tree and whole do not support the option {name}")
    if request.limits:
        raise ValueError(
            "tree and whole do not support limits; the tree itself says which groups "
            f"take parts: {request.limits[0]}"
        )
    if not is_free_of_times(request):
        raise ValueError(
            "where of a request with tree or whole cannot read start or end, got "
            f"{quote(request.where)}"
        )
    special = request.special or {}
    key = tuple(map(special.get, ("tree", "whole", "share", "stack")))
    found = rows.searches.get(key)
    if found is None:
        if len(rows.searches) >= _MAX_SEARCHES:
            rows.searches.clear()
        found = rows.searches[key] = _new_search(rows, request)
    return found


#: Nodes have one performance, so that both order windows by start.
_CRITERIA = ("start", "finish")
#: The number of different trees, shares and stacks that rows remember.
_MAX_SEARCHES = 256


def _new_search(rows: ShareRows, request: Request) -> TreeSearch:
    counts, whole = dict(request.tree or {}), request.whole
    tree = make_tree(counts, whole, rows.hosts, rows.levels)
    index = rows.trees.get(tree.levels)
    if index is None:
        index = rows.core.add_tree(tree.nodes, tree.first)
        rows.trees[tree.levels] = index
    capacity = rows.capacity
    demand, share, amounts = None, None, capacity.amounts
    if request.share is not None:
        demand = capacity.demand(request.share)
        share, amounts = capacity.share(demand), demand[None, :]
    return TreeSearch(
        rows.core,
        index,
        np.ascontiguousarray(amounts, np.int32),
        rows.prices(demand),
        [counts[level] for level in tree.levels if level != whole],
        whole is not None,
        request.stack,
        share,
        ShareWindow,
    )
