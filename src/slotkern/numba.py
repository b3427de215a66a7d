"""Functions to search a pool and book in it from the user's own numba functions.

They are compiled: call them from an ``@njit`` function, with or without ``cache=True``.
Like every writer, they wait for the pool's lock.

A request is an array of float64 (`request`), and `find` fills a `FoundWindow` of arrays
that `window` allocates; allocate both outside the loop.

Examples
--------
>>> import numba, slotkern as sk, slotkern.numba as sn
>>> @numba.njit
... def place(pool, volumes):
...     window, placed = sn.window(2), 0
...     for volume in volumes:
...         asked = sn.request(2, volume)
...         if sn.find(pool, asked, window, sn.START, sn.SQUARE) == 0:
...             placed += sn.book(pool, window) == 0
...     return placed
>>> pool = sk.SlotPool(
...     sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2)
... )
>>> place(pool.handle(), (4.0, 4.0, 4.0))
2
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import ADDRESSES
from slotkern._kernels.search import CRITERIA
from slotkern.foundation.extras import extra

with extra():
    import llvmlite.binding
    import numba
    from numba import types
    from numba.core.errors import TypingError
    from numba.extending import overload

__all__ = [
    "COST",
    "FINISH",
    "FIRST",
    "RAGGED",
    "RUNTIME",
    "SQUARE",
    "START",
    "FoundWindow",
    "book",
    "find",
    "release",
    "request",
    "window",
]

# Compiled code refers to symbols instead of addresses, so that it can be cached. The
# symbol names contain the interface version: stale cached code fails to link.
for _name, _address in ADDRESSES.items():
    llvmlite.binding.add_symbol(_name, _address)

FIRST, START, FINISH, RUNTIME, COST = (
    list(CRITERIA).index(name)
    for name in ("first", "start", "finish", "runtime", "cost")
)
SQUARE, RAGGED = 0, 1

_FIND, _BOOK, _RELEASE = ADDRESSES

_find: Any = types.ExternalFunction(
    _FIND,
    types.int32(
        types.uintp,
        types.uintp,
        types.int64,
        types.int32,
        types.int32,
        types.uintp,
        types.uintp,
        types.uintp,
        types.uintp,
        types.uintp,
    ),
)
_parts = types.int32(
    types.uintp, types.float64, types.int64, types.uintp, types.uintp, types.uintp
)
_book: Any = types.ExternalFunction(_BOOK, _parts)
_release: Any = types.ExternalFunction(_RELEASE, _parts)

_ARRAYS = {
    "totals": types.float64,
    "rows": types.int64,
    "nodes": types.int32,
    "lengths": types.float64,
    "costs": types.float64,
}


def _check_array(name: str, given: Any, dtype: Any) -> None:
    given = types.unliteral(given)
    if not isinstance(given, types.Array) or (
        (given.ndim, given.dtype, given.layout) != (1, dtype, "C")
    ):
        wanted = f"a contiguous one-dimensional array of {dtype}"
        raise TypingError(f"{name} must be {wanted}, got {given}")


def _is_complete(pool: Any, found: Any) -> Any:
    """Return whether the pool exists and each array of a window holds n parts."""
    raise NotImplementedError("compiled code only")


@overload(_is_complete)
def _compile_is_complete(pool: Any, found: Any) -> Any:
    if not isinstance(types.unliteral(pool), types.Integer):
        raise TypingError(f"pool must be the integer of SlotPool.handle(), got {pool}")
    if getattr(found, "instance_class", None) is not FoundWindow:
        raise TypingError(f"found must be a FoundWindow, got {found}")
    for (name, dtype), given in zip(_ARRAYS.items(), found.types, strict=True):
        _check_array(f"{name} of found", given, dtype)

    def is_complete(
        pool: Any, found: Any
    ) -> Any:  # numba requires the annotations of _is_complete
        n = len(found.nodes)
        return (
            pool != 0
            and n >= 1
            and len(found.totals) >= 5
            and len(found.rows) >= n
            and len(found.lengths) >= n
            and len(found.costs) >= n
        )

    return is_complete


def _is_for_nodes(asked: Any, n: Any) -> Any:
    """Return whether a request is for n nodes."""
    raise NotImplementedError("compiled code only")


@overload(_is_for_nodes)
def _compile_is_for_nodes(asked: Any, n: Any) -> Any:
    _check_array("asked", asked, types.float64)

    def is_for_nodes(asked: Any, n: Any) -> Any:
        return len(asked) >= 2 and asked[0] == n

    return is_for_nodes


class FoundWindow(NamedTuple):
    """A window as arrays, filled by `find`.

    Attributes
    ----------
    totals : ndarray of float64, shape (5,)
        Start, finish, runtime, cost, processor time.
    rows, nodes : ndarray of int64 and int32, shape (n,)
        The row of each part in the pool's original slots, and its node; by node.
    lengths, costs : ndarray of float64, shape (n,)
        The length and the cost of each part.
    """

    totals: NDArray[np.float64]
    rows: NDArray[np.int64]
    nodes: NDArray[np.int32]
    lengths: NDArray[np.float64]
    costs: NDArray[np.float64]


@numba.njit(cache=True)
def request(
    nodes: int,  # the arguments are written by ci/fields.py
    volume: float,
    budget: float = np.inf,
    min_performance: float = 0.0,
    earliest: float = -np.inf,
    deadline: float = np.inf,
    max_price: float = np.inf,
    setup: float = 0.0,
    step: float = 0.0,
    latest: float = np.inf,
    max_runtime: float = np.inf,
    limits: int = 0,
) -> NDArray[np.float64]:
    """Make a request for `find`; the fields are those of `slotkern.Request`.

    `limits` is a number from ``SlotPool.limits_handle``.
    """
    return np.array(
        [
            nodes,
            volume,
            budget,
            min_performance,
            earliest,
            deadline,
            max_price,
            setup,
            step,
            latest,
            max_runtime,
            limits,
        ]
    )


@numba.njit(cache=True)
def window(nodes: int) -> FoundWindow:
    """Allocate the arrays of a window of this many nodes."""
    return FoundWindow(
        np.zeros(5),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int32),
        np.zeros(nodes),
        np.zeros(nodes),
    )


@numba.njit(cache=True)
def find(pool: int, query: Any, found: FoundWindow, criterion: int, shape: int) -> int:
    """Search for the best window; returns 0 if found, and a non-zero status otherwise.

    Parameters
    ----------
    pool : int
        ``SlotPool.handle()`` of a pool that the caller keeps alive.
    asked : ndarray
        A request made by `request`.
    found : FoundWindow
        Arrays made by `window` for the requested number of nodes (otherwise returns
        -1).
    criterion, shape : int
        ``START``, ``COST``, ... and ``SQUARE`` or ``RAGGED``.

    Raises
    ------
    numba.core.errors.TypingError
        At compile time, for arrays of another type or with strides.
    """
    if not _is_complete(pool, found) or not _is_for_nodes(query, len(found.nodes)):
        return -1
    status: int = _find(
        np.uintp(pool),
        query.ctypes.data,
        len(query),
        np.int32(criterion),
        np.int32(shape),
        found.totals.ctypes.data,
        found.rows.ctypes.data,
        found.nodes.ctypes.data,
        found.lengths.ctypes.data,
        found.costs.ctypes.data,
    )
    return status


@numba.njit(cache=True)
def book(pool: int, found: FoundWindow) -> int:
    """Book a found window; returns 0, or a status if a part is not free.

    A failure changes nothing.
    """
    if not _is_complete(pool, found):
        return -1
    status: int = _book(
        np.uintp(pool),
        found.totals[0],
        len(found.nodes),
        found.rows.ctypes.data,
        found.nodes.ctypes.data,
        found.lengths.ctypes.data,
    )
    return status


@numba.njit(cache=True)
def release(pool: int, found: FoundWindow) -> int:
    """Release a booked window; returns 0, or a status if a part is not booked.

    A failure changes nothing.
    """
    if not _is_complete(pool, found):
        return -1
    status: int = _release(
        np.uintp(pool),
        found.totals[0],
        len(found.nodes),
        found.rows.ctypes.data,
        found.nodes.ctypes.data,
        found.lengths.ctypes.data,
    )
    return status
