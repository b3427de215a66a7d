"""Prices by time, as segments that cover the horizon of each node."""

from __future__ import annotations

import numpy as np

from .gaps import PriceSegments, check_size, gaps
from .nodes import Machine, numbers_of
from .span_tables import Horizon, SpanTable, numbers_of_spans

__all__ = ["price_segments"]


def price_segments(
    table: SpanTable, machine: Machine, horizon: Horizon
) -> PriceSegments:
    """Return node, begin and price of segments that cover each node's horizon.

    Raises
    ------
    ValueError, TypeError
        As `numbers_of_spans`, and for prices that are negative or overlap.
    """
    columns = table.columns
    if "price" not in columns:
        raise ValueError(f"prices has no column 'price'; it has {', '.join(columns)}")
    price = numbers_of(np.atleast_1d(columns["price"]), "prices", "price")
    if (price < 0).any():
        row = int((price < 0).argmax())
        raise ValueError(f"prices, row {row}: price {price[row]} is not at least 0")
    everywhere = "node" not in columns
    if everywhere:
        everyone = {"node": np.zeros(len(price), np.int64)}
        table = table._replace(columns=columns | everyone)
    node, start, end, given = numbers_of_spans(table, machine, horizon)
    first, last = horizon.first, horizon.last
    price = price[given] if len(price) > 1 else np.broadcast_to(price, len(start))
    rows = np.lexsort((start, node))
    rows = rows[end[rows] > start[rows]]  # an empty span overlaps nothing
    node, start, end = node[rows], start[rows], end[rows]
    clash = (node[1:] == node[:-1]) & (end[:-1] > start[1:])
    if clash.any():
        k = int(clash.argmax())
        one, other = sorted(given[rows[k : k + 2]].tolist())
        raise ValueError(f"prices, row {other}: overlaps the span of row {one}")
    if everywhere:
        size = len(machine)
        within = (start < last) & (end > first)
        start, end, rows = start[within], end[within], rows[within]
        check_size(size * (len(start) + 1), "price segments of all nodes")
        node = np.repeat(np.arange(size, dtype=np.int32), len(start))
        start, end, rows = np.tile(start, size), np.tile(end, size), np.tile(rows, size)
    price = price[rows]
    # Time that the table does not cover has the price of the machine.
    rest, rest_start, _ = gaps(len(machine), node, start, end, first, last)
    seen = (start < last) & (end > first) & (start < end)
    node = np.concatenate((node[seen], rest))
    begin = np.concatenate((start[seen].clip(min=first), rest_start))
    price = np.concatenate((price[seen], machine.price[rest]))
    order = np.lexsort((begin, node))
    node, begin, price = node[order], begin[order], price[order]
    new = np.ones(len(node), np.bool_)  # merge neighbours of equal price
    new[1:] = (node[1:] != node[:-1]) | (price[1:] != price[:-1])
    return node[new], begin[new], price[new]
