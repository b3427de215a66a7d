"""Files of pools of shared nodes: the state of the rows as arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slotkern.files.columns import InputError
from slotkern.pool.generations import write_pool
from slotkern.pool.saved import (
    capacities_of,
    from_arrays,
    has_capacities,
    to_arrays,
)
from slotkern.pool.share_rows import ShareReservation, ShareRows
from slotkern.pool.share_spans import SPAN, closed_type
from slotkern.pool.share_windows import share_window

if TYPE_CHECKING:
    from slotkern.files.atomic import AnyPath
    from slotkern.machine.capacity import Capacity
    from slotkern.pool.host_pool import HostPool

__all__ = ["HOST_FORMATS", "host_pool_of", "save_host_pool", "state_arrays"]

HOST_FORMAT = "slotkern host pool 1"
#: The format of pools with capacities or quotas, which older versions would not keep.
_CAPACITY_FORMAT = "slotkern host pool 2"
#: All formats of pools of shared nodes.
HOST_FORMATS = HOST_FORMAT, _CAPACITY_FORMAT

#: Fields of the spans of a file; each table has a table of amounts.
_TABLES = ("free", "booked", "reserved")


def save_host_pool(pool: HostPool, path: AnyPath, overwrite: bool = False) -> None:
    """Write a pool to a file atomically; see `HostPool.save`."""
    arrays = to_arrays(cast(Any, pool))
    form = _CAPACITY_FORMAT if has_capacities(arrays) else HOST_FORMAT
    arrays = {"format": np.array(form)} | arrays
    arrays |= state_arrays(pool._rows)
    owned = pool._owned_windows()
    if owned:
        windows = [window for window, _ in owned]
        shares = [pool._rows.vector(window.share) for window in windows]
        arrays["window share"] = np.array(shares, np.int64)
        arrays["window counted"] = np.array([w.counts is not None for w in windows])
        arrays["window counts"] = np.concatenate(
            [np.array(w.counts or [1] * len(w), np.int64) for w in windows]
        )
    write_pool(pool, path, arrays, overwrite)


def state_arrays(rows: ShareRows) -> dict[str, NDArray[Any]]:
    """Return the state of rows as arrays."""
    state = {**rows.core.state()}
    state.pop("closed", None)  # saved with its owners
    found = {f"rows {name}": np.asarray(values) for name, values in state.items()}
    for name in _TABLES:
        found[f"rows {name}"] = _times(state[name])
    reserved = rows.reservations
    found["reserved owner"] = np.array([each.owner for each in reserved], np.str_)
    found["reserved size"] = np.array([len(r.spans) for r in reserved], np.int64)
    if reserved:  # in the order of their owners; the rows have another one
        found["rows reserved"] = np.concatenate([_times(r.spans) for r in reserved])
        found["rows reserved_amounts"] = np.concatenate([r.amounts for r in reserved])
    found["closed"] = rows.closed
    return found


def _times(spans: NDArray[np.void]) -> NDArray[np.void]:
    """Return spans with the fields row, start and end alone."""
    found = np.empty(len(spans), SPAN)
    for name in SPAN.names or ():
        found[name] = spans[name]
    return found


def host_pool_of(arrays: Mapping[str, NDArray[Any]]) -> HostPool:
    """Return the pool of a file.

    Raises
    ------
    InputError, ValueError, TypeError
        If the arrays are not those of a pool.
    """
    from slotkern.pool.host_pool import HostPool

    context, owned = from_arrays(arrays)
    if context is None or context.machine is None or context.machine.capacity is None:
        raise InputError("it has no machine with capacity")
    machine = context.machine
    state = {
        name.removeprefix("rows "): values
        for name, values in arrays.items()
        if name.startswith("rows ")
    }
    _check_state(state, machine.capacity)
    closed = arrays.get("closed", np.empty(0, closed_type(1)))
    known = "owner" in (closed.dtype.names or ())
    widest = closed.dtype["owner"].itemsize // 4 if known else 0
    if closed.ndim != 1 or closed.dtype != closed_type(widest):
        raise InputError(f"closed has the type {closed.dtype!s:.80}")
    if not ((closed["node"] >= 0) & (closed["node"] < len(machine))).all():
        raise InputError("a closed node is out of range")
    state["closed"] = np.empty(len(closed), SPAN)
    for name, field in (("row", "node"), ("start", "start"), ("end", "end")):
        state["closed"][name] = closed[field]
    rows = ShareRows.restored(machine, context.clock, state)
    rows.reservations = _reservations(arrays, state)
    rows.closures = [tuple(each[:4]) for each in closed.tolist()]
    pool = HostPool.__new__(HostPool)
    pool._set(machine, context.clock, rows)
    pool._capacities = capacities_of(arrays)
    for window, owner in _windows(arrays, owned, machine.capacity):
        window.context = pool.context
        pool._booked[object()] = window, owner
    return pool


def _check_state(state: Mapping[str, Any], capacity: Capacity) -> None:
    """Check the arrays of the rows: types, sizes, and ranges of nodes and amounts."""
    nodes, resources = capacity.amounts.shape
    if "now" not in state or state["now"].shape or state["now"].dtype != np.float64:
        raise InputError("its current time is not a number")
    for name in _TABLES:
        spans, amounts = state.get(name), state.get(f"{name}_amounts")
        if spans is None or amounts is None:
            raise InputError(f"it has no {name!r}")
        if spans.ndim != 1 or spans.dtype != SPAN:
            raise InputError(f"{name} has the type {spans.dtype!s:.80}")
        if amounts.dtype != np.int64 or amounts.shape != (len(spans), resources):
            raise InputError(f"the amounts of {name} do not match its spans")
        if not ((spans["row"] >= 0) & (spans["row"] < nodes)).all():
            raise InputError(f"{name} has a node out of range")
        if not (spans["start"] < spans["end"]).all():
            raise InputError(f"{name} has a span that ends before it starts")
        if ((amounts < 0) | (amounts > capacity.amounts[spans["row"]])).any():
            raise InputError(f"{name} has amounts out of the capacity of a node")


def _reservations(
    arrays: Mapping[str, NDArray[Any]], state: Mapping[str, NDArray[Any]]
) -> list[ShareReservation]:
    owners, sizes = arrays.get("reserved owner"), arrays.get("reserved size")
    if owners is None or sizes is None or len(owners) != len(sizes):
        raise InputError("its reservations do not match their owners")
    spans, amounts = state["reserved"], state["reserved_amounts"]
    edges = np.concatenate([[0], np.cumsum(sizes)])
    if edges[-1] != len(spans) or (sizes < 1).any():
        raise InputError("its reservations do not match their sizes")
    return [
        ShareReservation(owner, spans[a:b], amounts[a:b])
        for owner, a, b in zip(owners.tolist(), edges[:-1], edges[1:], strict=True)
    ]


def _windows(
    arrays: Mapping[str, NDArray[Any]], owned: Any, capacity: Capacity
) -> list[Any]:
    """Return the owned windows with their shares."""
    if not owned:
        return []
    names = ("window share", "window counted", "window counts")
    shares, counted, counts = (arrays.get(name) for name in names)
    if shares is None or counted is None or counts is None:
        raise InputError("its windows have no shares")
    parts = sum(len(window) for window, _ in owned)
    if len(shares) != len(owned) or len(counted) != len(owned) or len(counts) != parts:
        raise InputError("the shares of its windows do not match them")
    found, first = [], 0
    for i, (window, owner) in enumerate(owned):
        share = dict(capacity.share(shares[i]))
        data = window.to_dict() | {"share": share or None}
        if counted[i]:
            mine = counts[first : first + len(window)].tolist()
            for part, count in zip(data["slots"], mine, strict=True):
                part["count"] = count
        found.append((share_window(data), owner))
        first += len(window)
    return found
