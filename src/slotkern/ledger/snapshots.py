"""Snapshots: the state of a pool and its open bookings as the bytes of an .npz file."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import NO_CLOSURES, SlotPool, restore_pool
from slotkern._kernels.windows import Window
from slotkern.files.columns import InputError
from slotkern.ledger.codec import (
    pack_arrays,
    pack_window,
    unpack_arrays,
    unpack_windows,
)
from slotkern.pool.closures import validate_closures
from slotkern.pool.file import check_state
from slotkern.pool.host_pool import HostPool
from slotkern.pool.saved import (
    capacities_of,
    from_arrays,
    has_capacities,
    has_tariffs,
    to_arrays,
)

__all__ = [
    "Open",
    "bookings_before",
    "bookings_of",
    "first_snapshot",
    "open_arrays",
    "pack_pool",
    "unpack_pool",
]

_FORMAT = "slotkern ledger snapshot 1"
#: The format of pools with tariffs; see `slotkern.pool.file.TARIFF_FORMAT`.
_TARIFF_FORMAT = "slotkern ledger snapshot 2"
#: The format of pools with capacities or quotas.
_CAPACITY_FORMAT = "slotkern ledger snapshot 3"


class Open(NamedTuple):
    """A booking that has not ended; `expires` is None unless it is a hold."""

    window: Window
    owner: str
    expires: int | None = None


def first_snapshot(pool: SlotPool) -> bytes:
    """Return the snapshot of a pool that becomes a ledger.

    Its bookings get the numbers -1, -2, and so on, because no entry made them.

    Raises
    ------
    ValueError
        If parts are booked without an owner.
    """
    return pack_pool(pool, bookings_before(pool))


def bookings_before(pool: SlotPool | HostPool) -> dict[int, Open]:
    """Return the bookings of a pool that becomes a ledger; see `first_snapshot`."""
    if len(pool.booked) and (pool.booked["owner"] == "").any():
        raise ValueError(
            "parts are booked without an owner, so that nobody could release them: "
            "book them with owner="
        )
    pairs = enumerate(pool._owned_windows(), 1)
    return {-i: Open(window, owner) for i, (window, owner) in pairs}


def pack_pool(pool: SlotPool, bookings: Mapping[int, Open]) -> bytes:
    """Return the bytes of a pool and its open bookings by number."""
    origin, state, now, closures = pool._full_state_and_closures()
    none = {name: rows[:0] for name, rows in state.items()}
    bare = restore_pool(origin[:0], none, -np.inf, pool.context)
    if pool._capacities is not None:
        bare._capacities = pool._capacities.copy()
    more = to_arrays(bare)
    form = _TARIFF_FORMAT if has_tariffs(more) else _FORMAT
    form = _CAPACITY_FORMAT if has_capacities(more) else form
    arrays: dict[str, Any] = {"format": np.array(form), "origin": origin}
    arrays |= {"now": np.array(now)} | state | more
    closed = closures[closures["end"] > now]
    if len(closed):
        arrays["closed"] = closed
    return pack_arrays(arrays | open_arrays(bookings))


def open_arrays(bookings: Mapping[int, Open]) -> dict[str, NDArray[Any]]:
    """Return open bookings as arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    values = [*bookings.values()]
    bodies = [pack_window(each.window) for each in values]
    arrays["open"] = np.array([*bookings], np.int64)
    arrays["open owner"] = np.array([each.owner for each in values], np.str_)
    arrays["open name"] = np.array([each.window.name or "" for each in values], np.str_)
    arrays["open expires"] = np.array([each.expires or 0 for each in values], np.int64)
    arrays["open size"] = np.array([len(body) for body in bodies], np.int64)
    arrays["open bodies"] = np.frombuffer(b"".join(bodies), np.uint8)
    return arrays


def bookings_of(arrays: Mapping[str, NDArray[Any]], context: Any) -> dict[int, Open]:
    """Return the open bookings of the arrays of `open_arrays`."""
    data, ends = arrays["open bodies"].tobytes(), arrays["open size"].cumsum().tolist()
    bodies = [data[a:b] for a, b in pairwise([0, *ends])]
    names = [name or None for name in arrays["open name"].tolist()]
    windows = unpack_windows(bodies, names, context)
    keys = ("open", "open owner", "open expires")
    columns = (arrays[key].tolist() for key in keys)
    return {
        number: Open(window, owner, expires or None)
        for window, number, owner, expires in zip(windows, *columns, strict=True)
    }


def unpack_pool(body: bytes) -> tuple[SlotPool, dict[int, Open]]:
    """Return the pool and the open bookings of a snapshot.

    Raises
    ------
    ValueError, TypeError, KeyError
        If the bytes are not a snapshot of this format, or contradict themselves.
    """
    arrays = unpack_arrays(body)
    formats = _FORMAT, _TARIFF_FORMAT, _CAPACITY_FORMAT
    if arrays["format"].tolist() not in formats:
        raise ValueError("a snapshot of another format")
    try:
        origin, state, now = check_state(arrays)
        context, _ = from_arrays(arrays)
        capacities = capacities_of(arrays)
    except InputError as fault:
        raise ValueError(fault.reason) from None
    closures = validate_closures(arrays.get("closed", NO_CLOSURES), state["held"])
    bookings = bookings_of(arrays, context)
    owned = [(each.window, each.owner) for each in bookings.values()]
    pool = restore_pool(
        *(origin, state, now, context, owned),
        closures=closures,
        capacities=capacities,
    )
    return pool, bookings
