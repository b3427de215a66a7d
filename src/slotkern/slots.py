"""Slots: the record format `SLOT`; functions that build and validate slot arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern._kernels.slots import SLOT, check_slots
from slotkern.foundation.errors import SlotError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from slotkern.typing import Slots

__all__ = [
    "SLOT",
    "SlotError",
    "in_order",
    "make_slots",
    "row_order",
    "validate_slots",
]


def validate_slots(slots: Slots) -> None:
    """Raise an error that names the first bad row, the field and the value.

    Parameters
    ----------
    slots : structured array, shape (m,)
        The fields of `SLOT` in native types, at any offset; further ones are ignored.

    Raises
    ------
    SlotError
        A ValueError: a negative node id, a start that is not finite, an end that is
        NaN or not after the start, a performance that is not positive and finite or
        differs along a node, a negative or infinite price, rows out of (start, node)
        order, overlapping slots of one node.
    ValueError, TypeError
        A missing field, or one of the wrong type.

    Notes
    -----
    O(m) expected: one pass, with a table from node id to its last slot.
    """
    check_slots(slots)


def make_slots(
    *,
    node: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    performance: ArrayLike,
    price: ArrayLike,
    **extra: ArrayLike,
) -> NDArray[np.void]:
    """Build a sorted, checked slot array from columns.

    Parameters
    ----------
    node : array_like of int
        Node ids, >= 0 and below 2**31.
    start, end : array_like of float
        The free span [start, end) in the user's time units; end may be inf.
    performance : array_like of float
        Work per time unit, > 0, the same for all slots of a node.
    price : array_like of float
        Money per time unit, >= 0.
    **extra : array_like
        Further columns, kept as they are (memory, site, q, ...).

    A column given as one number (or text) has it in every row.

    Returns
    -------
    structured array, shape (m,)
        The fields of `SLOT`, then the extra ones; sorted by (start, node).

    Raises
    ------
    ValueError, TypeError
        For an invalid column or value; the message names the column, or the row (in the
        order given) and the value.

    Notes
    -----
    O(m log m).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[7, 3], start=[5, 0], end=[9, 4], performance=1, price=2
    ... )
    >>> slots["node"]
    array([3, 7], dtype=int32)
    """
    given: dict[str, ArrayLike] = {
        "node": node,
        "start": start,
        "end": end,
        "performance": performance,
        "price": price,
        **extra,
    }
    columns = {name: _column(name, values) for name, values in given.items()}
    lengths = {name: len(c) for name, c in columns.items() if c.ndim == 1}
    size = max(lengths.values(), default=1)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"columns have different numbers of values: {listed}")
    fields: list[Any] = [(name, SLOT[name]) for name in SLOT.names or ()]
    fields += [(name, columns[name].dtype) for name in extra]
    ordered = np.empty(size, np.dtype(fields, align=True))
    order = row_order(
        *(np.broadcast_to(columns[name], size) for name in ("node", "start"))
    )
    # NaN sorts last, so check_slots reports the right row for an invalid start.
    for name, column in columns.items():
        ordered[name] = column[order] if column.ndim else column
    try:
        check_slots(ordered)
    except SlotError as error:
        raise SlotError(
            error.problem, int(order[error.row]), error.field, int(order[error.other])
        ) from None
    return ordered


def in_order(table: NDArray[np.void], first: str, then: str) -> NDArray[np.void]:
    """Return the rows sorted by two fields; the table itself if they are sorted."""
    before, after = table[:-1], table[1:]
    sure = before[first] < after[first]
    sure |= (before[first] == after[first]) & (before[then] <= after[then])
    # For records, take() is 20 times as fast as indexing.
    return table if sure.all() else table.take(row_order(table[then], table[first]))


def row_order(
    then: NDArray[np.generic], first: NDArray[np.generic]
) -> NDArray[np.intp]:
    """Return ``np.lexsort((then, first))``; a radix sort for 2**14 rows and more.

    Both arguments are float64, or integers >= 0. The sort is stable, and NaN comes
    last. The radix sort takes a third of the time of lexsort.
    """
    if len(first) < 2**14:
        return np.lexsort((then, first))
    order = np.arange(len(first))
    for key in (then, first):
        bits = _sortable(key)
        for shift in range(0, 8 * bits.dtype.itemsize, 16):
            digits = (bits >> np.array(shift, bits.dtype)).astype(np.uint16)
            if (digits != digits[0]).any():  # numpy sorts 16-bit integers by radix
                order = order[np.argsort(digits[order], kind="stable")]
    return order


def _sortable(key: NDArray[Any]) -> NDArray[Any]:
    """Map numbers to unsigned integers of the same order; NaN to the largest."""
    if key.dtype.kind != "f":
        return key.astype(f"u{key.dtype.itemsize}")
    plain = key + 0.0  # -0.0 becomes 0.0
    bits = plain.view(np.uint64)
    sign = np.uint64(2**63)
    bits ^= np.where(plain < 0, ~np.uint64(0), sign)
    bits[np.isnan(key)] = ~np.uint64(0)
    return bits


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    """Convert a column to a 0- or 1-dimensional array of the right type."""
    if np.ma.is_masked(values):
        raise ValueError(f"column {name!r} has masked values")
    column = np.asarray(values)
    if column.ndim > 1:
        raise ValueError(f"column {name!r} has {column.ndim} dimensions instead of one")
    if name not in (SLOT.names or ()):
        return column
    if column.dtype.kind not in "iuf" and column.size:
        raise TypeError(f"column {name!r} must hold numbers, got dtype {column.dtype}")
    if name != "node":
        return column.astype(np.float64)
    ids = column.astype(np.float64)
    bad = np.flatnonzero(~((ids >= 0) & (ids < 2**31) & (ids == np.floor(ids))))
    if bad.size:
        row = int(bad[0])
        value = column[()] if column.ndim == 0 else column[row]
        raise SlotError(
            f"node {value} is not an integer from 0 to {2**31 - 1}", row, "node", row
        )
    return column.astype(np.int32)
