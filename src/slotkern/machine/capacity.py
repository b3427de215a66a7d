"""Capacities of the nodes of a machine that jobs share, and the prices of shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.amounts import (
    MAX_AMOUNT,
    Amounts,
    amounts_of,
    unit_hint,
    whole_number,
)
from slotkern.foundation.checks import meant, number, quote, row_label

__all__ = ["Capacity", "amounts_column", "capacity_of"]


class Capacity(NamedTuple):
    """The resources of each node that parts can share.

    Attributes
    ----------
    names : tuple of str
        The resources, such as cores, gpus and memory; R of them.
    amounts : ndarray of int64, shape (N, R)
        The capacity of each node.
    prices : dict of str to str or float, or None
        The price of one unit of each resource for one time unit: a number, or the name
        of a column of the machine. None: by the node's price.
    grain : Amounts
        The units to which demands are rounded up; other resources have the unit 1.
    """

    names: tuple[str, ...]
    amounts: NDArray[np.int64]
    prices: dict[str, str | float] | None
    grain: Mapping[str, int]

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Return the amounts as one column for each resource."""
        return dict(zip(self.names, self.amounts.T.copy(), strict=True))

    def demand(self, share: Mapping[str, int]) -> NDArray[np.int64]:
        """Return a share as a vector of amounts, rounded up to the grain.

        Raises
        ------
        ValueError
            For a resource that the machine does not share.
        """
        found = np.zeros(len(self.names), np.int64)
        for name, amount in share.items():
            if name not in self.names:
                raise ValueError(
                    f"share has {name!r}, but the nodes share {', '.join(self.names)}"
                    f"{meant(name, self.names)}"
                )
            unit = self.grain.get(name, 1)
            found[self.names.index(name)] = -(-amount // unit) * unit
        return found

    def share(self, demand: NDArray[Any]) -> Amounts:
        """Return a vector of amounts as a share."""
        pairs = zip(self.names, demand.tolist(), strict=True)
        return Amounts({name: amount for name, amount in pairs if amount})


def capacity_of(
    names: Any, columns: Mapping[str, NDArray[Any]], prices: Any, grain: Any, what: str
) -> Capacity | None:
    """Check the capacity of a machine with these columns; None without any.

    Raises
    ------
    ValueError, TypeError
        For an unknown column, a capacity that is not a whole number, a node without
        any, and invalid prices or grains; the message contains the row and the value.
    """
    if names is None:
        if prices is not None or grain is not None:
            given = "prices" if prices is not None else "grain"
            raise ValueError(f"{given} needs capacity=, the columns that nodes share")
        return None
    listed = [names] if isinstance(names, str) else [*names]
    if not listed:
        raise ValueError("capacity names no column; omit it for whole nodes")
    for name in listed:
        _check_name("capacity", name, columns, what)
        if listed.count(name) > 1:
            raise ValueError(f"capacity has {name!r} twice")
    amounts = np.stack([amounts_column(columns[n], what, n) for n in listed], axis=1)
    empty = ~amounts.any(axis=1)
    if empty.any():
        place = row_label(what, int(empty.argmax()))
        raise ValueError(f"{what}, {place}: the node has no {' and no '.join(listed)}")
    units: Mapping[str, int] = {} if grain is None else amounts_of("grain", grain)
    for name in units:
        _check_listed("grain", name, listed)
    paid = None if prices is None else _prices(prices, listed, columns, what)
    return Capacity(tuple(listed), amounts, paid, units)


def amounts_column(
    column: NDArray[Any], what: str, name: str, missing: int | None = None
) -> NDArray[np.int64]:
    """Convert a column to whole numbers; errors contain the row and propose a unit.

    Empty cells become `missing`; they are errors if it is None.
    """
    if column.dtype.kind in "iu":
        found = column.astype(np.float64)
    elif column.dtype.kind == "f":
        found = column
    else:
        cells = column.tolist()
        found = np.empty(len(cells))
        for row, cell in enumerate(cells):
            found[row] = _cell(cell, f"{what}, {row_label(what, row)}: {name}", missing)
    absent = np.isnan(found) if missing is not None else np.zeros(len(found), bool)
    found = np.where(absent, 0, found)
    wrong = ~((found >= 0) & (found <= MAX_AMOUNT) & (found == np.floor(found)))
    if wrong.any():
        row = int(wrong.argmax())
        at, value = f"{what}, {row_label(what, row)}", found[row]
        if np.isnan(value):
            raise ValueError(f"{at}: {name} is missing; write 0 for none")
        if value < 0:
            raise ValueError(f"{at}: {name} is {value:g}, which is negative")
        raise ValueError(
            f"{at}: {name} is {value:g}, but capacities are whole numbers up to "
            f"{MAX_AMOUNT:,}; {unit_hint(name, value)}"
        )
    return np.where(absent, missing or 0, found).astype(np.int64)


def _cell(cell: Any, at: str, missing: int | None) -> float:
    """Return a cell of objects or text as a number."""
    if cell is None or cell != cell or (isinstance(cell, str) and not cell.strip()):
        return np.nan
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            raise TypeError(f"{at} {quote(cell)} is not a number") from None
    return whole_number(at, cell)


def _check_name(
    argument: str, name: Any, columns: Mapping[str, NDArray[Any]], what: str
) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be names of columns, got {quote(name)}")
    if name not in columns:
        raise ValueError(
            f"{argument}: {what} has no column {name!r}; it has "
            f"{', '.join(columns) or 'none'}{meant(name, columns)}"
        )


def _check_listed(argument: str, name: Any, listed: list[str]) -> None:
    if name not in listed:
        raise ValueError(
            f"{argument} has {quote(name)}, but the nodes share {', '.join(listed)}"
            f"{meant(name, listed)}"
        )


def _prices(
    given: Any, listed: list[str], columns: Mapping[str, NDArray[Any]], what: str
) -> dict[str, str | float]:
    if not isinstance(given, Mapping):
        raise TypeError(
            "prices must be a mapping of resources to prices, such as "
            f"{{'cores': 0.01}}; got {quote(given)}"
        )
    found: dict[str, str | float] = {}
    for name, price in given.items():
        _check_listed("prices", name, listed)
        if isinstance(price, str):
            _check_name(f"prices[{name!r}]", price, columns, what)
            column = columns[price]
            wrong = column.dtype.kind not in "iuf" or not (column >= 0).all()
            if wrong or not np.isfinite(column).all():
                raise ValueError(
                    f"prices[{name!r}]: the column {price!r} must be finite numbers, "
                    "not negative"
                )
            found[name] = price
        else:
            found[name] = number(f"prices[{name!r}]", price, least=0)
    return found
