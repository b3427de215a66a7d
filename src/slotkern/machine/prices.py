"""Prices by time: the tariff and the base price of each node of a machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import quote, row_label
from slotkern.tariffs.daily import is_daily
from slotkern.tariffs.mapping import Tariffs
from slotkern.tariffs.tables import (
    changes_of_spans,
    read_tariffs,
    tariff_of_table,
    tariffs_of_table,
)
from slotkern.tariffs.tariff import Tariff

from .frames import FileColumns
from .gaps import PriceSegments, check_size
from .nodes import Machine, numbers_of
from .span_tables import Horizon, SpanTable, numbers_of_spans

__all__ = ["NodePrices", "node_prices", "price_segments"]


class NodePrices(NamedTuple):
    """The prices of the nodes of a machine.

    Attributes
    ----------
    tariffs : Tariffs or None
        None if no price changes with time.
    code : ndarray of int32, shape (N,)
        The place of each node's tariff; -1 for none.
    price : ndarray of float64, shape (N,)
        The base price of each node, which its tariff multiplies.
    """

    tariffs: Tariffs | None
    code: NDArray[np.int32]
    price: NDArray[np.float64]

    def names(self) -> NDArray[np.str_]:
        """Return the name of each node's tariff; empty for none."""
        return np.array([*(self.tariffs or ()), ""])[self.code]


def node_prices(
    machine: Machine,
    horizon: Horizon,
    prices: SpanTable | None,
    tariffs: Any,
    outside: float | None = None,
) -> NodePrices:
    """Return the prices of nodes under a table of prices or under tariffs.

    Tables of tariffs have the factor `outside` at times for which they have none.

    Raises
    ------
    ValueError, TypeError
        As `numbers_of_spans`, for prices that are negative or overlap, for tariffs
        without a price at some time of the horizon, and for names without a tariff.
    """
    if prices is not None and tariffs is not None:
        raise ValueError(
            "prices and tariffs are both given; write the prices as a tariff, such as "
            "tariffs={'spot': prices}"
        )
    if tariffs is not None:
        return _of_tariffs(machine, horizon, tariffs, outside)
    if outside is not None:
        raise ValueError(
            f"outside={outside!r} needs tariffs=: it is their factor at times for "
            "which a table has none (--outside needs --tariffs on the command line)"
        )
    named = machine.columns.get("tariff")
    if named is not None and (named != "").any():
        node = int((named != "").argmax())
        raise ValueError(
            f"machine, row {node}: the node has the tariff {quote(named[node])}, but "
            "no tariffs are given; give them, tariffs= (--tariffs on the command line)"
        )
    if prices is not None:
        return _of_prices(machine, horizon, prices)
    return NodePrices(None, np.full(len(machine), -1, np.int32), machine.price)


def price_segments(prices: NodePrices, horizon: Horizon) -> PriceSegments:
    """Return node, begin and price of segments that cover each node's horizon."""
    first, last = horizon.first, horizon.last
    every = [t.segments(first, last) for t in (prices.tariffs or {}).values()]
    every.append((np.array([first, last]), np.ones(1)))
    count = np.array([len(factors) for _, factors in every])[prices.code]
    check_size(int(count.sum()), "price segments of all nodes")
    begin = np.concatenate([every[code][0][:-1] for code in prices.code.tolist()])
    factor = np.concatenate([every[code][1] for code in prices.code.tolist()])
    node = np.repeat(np.arange(len(count), dtype=np.int32), count)
    return node, begin, prices.price[node] * factor


def _of_tariffs(
    machine: Machine, horizon: Horizon, given: Any, outside: float | None
) -> NodePrices:
    if isinstance(given, Tariff):
        raise TypeError(
            "tariffs must be a mapping of names to Tariff or tables, got "
            f"{quote(given)}"
        )
    if is_daily(given):
        raise TypeError(
            "tariffs must be a mapping of names to Tariff or tables, got times of day: "
            "give the tariff a name, as in tariffs={'night': {'06:00': 1, ...}}"
        )
    if isinstance(given, Mapping) and not isinstance(given, FileColumns):
        made = {
            name: _tariff(name, each, horizon, outside) for name, each in given.items()
        }
    else:
        span = horizon.first, horizon.last
        changes = tariffs_of_table(given, "tariffs", horizon.clock, outside, span)
        made = {name: Tariff(*each) for name, each in changes.items()}
    tariffs = Tariffs(made)
    named = machine.columns.get("tariff")
    if named is None and len(tariffs) != 1:
        raise ValueError(
            f"the machine has no column 'tariff', which names one of the "
            f"{len(tariffs)} tariffs for each node"
        )
    names = next(iter(tariffs)) if named is None else named
    code = np.broadcast_to(tariffs.codes(names, "machine: tariff"), len(machine))
    return NodePrices(tariffs, code, machine.price)


def _tariff(name: Any, given: Any, horizon: Horizon, outside: float | None) -> Tariff:
    """Return a tariff that is given as one, as a table, or by times of day."""
    if isinstance(given, Tariff):
        return given
    span = horizon.first, horizon.last
    if is_daily(given):
        if horizon.clock is None:
            raise ValueError(
                f"tariffs[{name!r}] has times of day, but the horizon has no clock: "
                "write start= and end= as dates"
            )
        first, last = span
        return Tariff.daily(given, clock=horizon.clock, start=first, end=last)
    if isinstance(given, str | os.PathLike):
        given = read_tariffs(given)
    what = f"tariffs[{name!r}]"
    return Tariff(*tariff_of_table(given, what, horizon.clock, outside, span))


def _of_prices(machine: Machine, horizon: Horizon, table: SpanTable) -> NodePrices:
    """Return base price 1 and a tariff for each node of the table."""
    what, columns = table
    if "price" not in columns:
        raise ValueError(f"{what} has no column 'price'; it has {', '.join(columns)}")
    price = numbers_of(np.atleast_1d(columns["price"]), what, "price")
    if (price < 0).any():
        row = int((price < 0).argmax())
        raise ValueError(
            f"{what}, {row_label(what, row)}: price {price[row]} is not at least 0; "
            "add the fees to each price"
        )
    everywhere = "node" not in columns
    if everywhere:
        everyone = {"node": np.zeros(len(price), np.int64)}
        table = table._replace(columns=columns | everyone)
    node, start, end, given = numbers_of_spans(table, machine, horizon)
    price = price[given] if len(price) > 1 else np.broadcast_to(price, len(start))
    rows = np.lexsort((start, node))
    rows = rows[end[rows] > start[rows]]  # an empty span overlaps nothing
    node = node[rows]
    clash = (node[1:] == node[:-1]) & (end[rows[:-1]] > start[rows[1:]])
    if clash.any():
        k = int(clash.argmax())
        one, other = sorted(given[rows[k : k + 2]].tolist())
        raise ValueError(
            f"{what}, {row_label(what, other)}: overlaps the span of "
            f"{row_label(what, one)}"
        )
    codes = np.full(len(machine), -1, np.int32)
    tariffs: dict[Tariff, int] = {}
    known: dict[tuple[bytes, float], int] = {}

    def tariff_of(mine: NDArray[np.intp], rest: float) -> int:
        """Return the code of these rows, with another price at all other times."""
        key = given[mine].tobytes(), rest
        if key not in known:
            spans = start[mine], end[mine], price[mine]
            span = horizon.first, horizon.last
            changes = changes_of_spans(*spans, what, horizon.clock, rest, span)
            known[key] = tariffs.setdefault(Tariff(*changes), len(tariffs))
        return known[key]

    if everywhere and len(rows):
        kinds, inverse = np.unique(machine.price, return_inverse=True)
        codes[:] = np.array([tariff_of(rows, rest) for rest in kinds.tolist()])[inverse]
    elif len(rows):
        ids, firsts = np.unique(node, return_index=True)
        for each, mine in zip(ids.tolist(), np.split(rows, firsts[1:]), strict=True):
            codes[each] = tariff_of(mine, float(machine.price[each]))
    if not tariffs:
        return NodePrices(None, codes, machine.price)
    one = len(tariffs) == 1
    names = ["price"] if one else [f"price {k + 1}" for k in range(len(tariffs))]
    return NodePrices(
        Tariffs(dict(zip(names, tariffs, strict=True))),
        codes,
        np.where(codes >= 0, 1.0, machine.price),
    )
