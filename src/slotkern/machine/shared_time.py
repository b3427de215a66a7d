"""Free amounts of shared nodes by time: capacities less what busy spans take.

Inputs are busy spans with a vector of amounts each; the result has one row for each
node and maximal span in which nothing changes. Amounts below 0, where spans take more
than a node has, become 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import column_label

from .capacity import Capacity, amounts_column
from .span_tables import Spans, SpanTable

__all__ = ["free_amounts", "row_type", "taken_amounts"]


def row_type(names: tuple[str, ...]) -> np.dtype[Any]:
    """Return the type of rows of free amounts: node, start, end and the resources."""
    times = [("node", "i4"), ("start", "f8"), ("end", "f8")]
    return np.dtype([*times, *((name, "i8") for name in names)])


def taken_amounts(
    capacity: Capacity, table: SpanTable, spans: Spans
) -> NDArray[np.int64]:
    """Return what each busy span takes: shape (spans, R).

    A span takes the amounts in the columns of the table that have the names of the
    resources; an empty cell or a missing column is 0. Without such columns, or with
    empty cells in all of them, it takes the whole node.
    """
    whole = capacity.amounts[spans.node]
    named = [name for name in capacity.names if name in table.columns]
    if not named or not len(spans.node):
        return whole
    taken = np.zeros_like(whole)
    given = np.zeros(len(whole), bool)
    for name in named:
        column = np.atleast_1d(np.asarray(table.columns[name]))
        label = column_label(table.what, name)
        found = amounts_column(column, label, name, missing=-1)
        cells = np.broadcast_to(found, spans.row.max() + 1)[spans.row]
        given |= cells >= 0
        taken[:, capacity.names.index(name)] = cells.clip(min=0)
    return np.where(given[:, None], taken, whole)


def free_amounts(
    capacity: Capacity,
    spans: Spans,
    taken: NDArray[np.int64],
    first: float,
    last: float,
) -> NDArray[np.void]:
    """Return the free amounts by node and time within [first, last).

    Returns
    -------
    structured array
        Rows of `row_type`, sorted by (node, start); they cover the horizon of each
        node, and neighbours of a node differ in an amount.
    """
    nodes, resources = capacity.amounts.shape
    inside = (spans.start < spans.end) & (spans.start < last) & (spans.end > first)
    inside &= taken.any(axis=1)
    node, taken = spans.node[inside], taken[inside]
    start, end = spans.start[inside].clip(min=first), spans.end[inside].clip(max=last)
    every = np.arange(nodes, dtype=np.int32)
    # Changes of the free amounts: the capacity at the first time, then each span.
    at = np.concatenate((every, node, node))
    when = np.concatenate((np.full(nodes, first), start, end))
    change = np.concatenate((capacity.amounts, -taken, taken))
    order = np.lexsort((when, at))
    at, when, change = at[order], when[order], change[order]
    total = np.cumsum(change, axis=0)
    final = np.ones(len(at), bool)  # of several changes at one time, the last
    final[:-1] = (at[1:] != at[:-1]) | (when[1:] != when[:-1])
    # All spans end by the last time, so a node's changes sum to its capacity.
    before = np.cumsum(capacity.amounts, axis=0) - capacity.amounts
    free = (total - before[at]).clip(min=0)
    at, when, free = at[final], when[final], free[final]
    within = when < last
    at, when, free = at[within], when[within], free[within]
    new = np.ones(len(at), bool)
    new[1:] = (at[1:] != at[:-1]) | (free[1:] != free[:-1]).any(axis=1)
    at, when, free = at[new], when[new], free[new]
    rows = np.empty(len(at), row_type(capacity.names))
    rows["node"], rows["start"], rows["end"] = at, when, last
    rows["end"][:-1] = np.where(at[1:] == at[:-1], when[1:], last)
    for k in range(resources):
        rows[capacity.names[k]] = free[:, k]
    return rows
