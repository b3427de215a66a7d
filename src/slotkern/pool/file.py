"""Files of pools, which `SlotPool.save` writes and `SlotPool.load` reads.

A pool file is an .npz archive without compression: the original slots, the state, the
clock, machine, tariffs and owners, and a generation. Saving compares generations under
the lock of the file, so that a pool does not overwrite changes that it was not loaded
with.
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import NO_CLOSURES, SlotPool, restore_pool
from slotkern._kernels.slots import SPAN, overlap
from slotkern.files.archive import read_archive
from slotkern.files.atomic import AnyPath, as_path
from slotkern.files.columns import InputError, MemoryLimit
from slotkern.foundation.logger import log
from slotkern.pool.closures import validate_closures
from slotkern.pool.generations import (
    generation_of,
    generation_of_bytes,
    write_pool,
)
from slotkern.pool.host_pool import HostPool
from slotkern.pool.saved import (
    capacities_of,
    from_arrays,
    has_capacities,
    has_tariffs,
    to_arrays,
)
from slotkern.pool.share_files import HOST_FORMATS, host_pool_of
from slotkern.slots import in_order, validate_slots

__all__ = ["FORMAT", "check_state", "load_pool", "save_pool"]

FORMAT = "slotkern pool 2"
#: The format of pools with tariffs. Versions that do not know it must not load them,
#: because they would charge base prices.
TARIFF_FORMAT = "slotkern pool 3"
#: The format of pools with capacities or quotas, which older versions would not keep.
CAPACITY_FORMAT = "slotkern pool 4"
#: Older formats that can be loaded; they lack clock, machine and owners.
OLDER = ("slotkern pool 1",)


def save_pool(pool: SlotPool, path: AnyPath, overwrite: bool = False) -> None:
    """Write a pool to a file atomically; see `SlotPool.save`."""
    if pool.origin.dtype.hasobject:
        raise TypeError(
            f"slots of type {pool.origin.dtype} hold objects: cannot be saved"
        )
    origin, state, now, closures = pool._full_state_and_closures()
    closed = closures[closures["end"] > now]
    more = to_arrays(pool)  # raises for objects, before the file is changed
    form = TARIFF_FORMAT if has_tariffs(more) else FORMAT
    form = CAPACITY_FORMAT if has_capacities(more) else form
    heading = {"format": np.array(form), "origin": origin, "now": np.array(now)}
    arrays = heading | state | more
    if len(closed):
        arrays["closed"] = closed
    write_pool(pool, path, arrays, overwrite)


def load_pool(path: AnyPath) -> SlotPool | HostPool:
    """Return the pool in a file; see `SlotPool.load`."""
    path = as_path(path)
    data = path.read_bytes()
    try:
        # Nothing is compressed: the arrays need no more memory than the file is long.
        arrays = dict(
            read_archive(io.BytesIO(data), MemoryLimit(0, len(data), 1), False)
        )
        if arrays.get("format", np.array("")).tolist() in HOST_FORMATS:
            hosts = host_pool_of(arrays)
            known = generation_of(arrays) or generation_of_bytes(data)
            hosts._generations[os.path.realpath(path)] = known
            return hosts
        for name in ("format", "origin", "now", "free", "booked", "gone"):
            if name not in arrays:
                raise InputError(f"it has no {name!r}")
        formats = CAPACITY_FORMAT, TARIFF_FORMAT, FORMAT
        if arrays["format"].tolist() not in (*formats, *OLDER):
            raise InputError(
                f"its format is not one of {', '.join(map(repr, formats))}"
            )
        if arrays["format"].tolist() in OLDER:
            reason = "an older format, without clock, machine and owners"
            log.info("%s: %s", path, reason)
        generation = generation_of(arrays) or generation_of_bytes(data)
        del data
        origin, state, now = check_state(arrays)
        closures = validate_closures(arrays.get("closed", NO_CLOSURES), state["held"])
        pool = restore_pool(
            *(origin, state, now, *from_arrays(arrays)),
            closures=closures,
            capacities=capacities_of(arrays),
        )
        pool._generations[os.path.realpath(path)] = generation
        return pool
    except InputError as fault:
        reason = fault.reason
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        reason = str(error) or type(error).__name__
    raise InputError(f"not a complete slotkern pool: {reason}").error(str(path), str)


def check_state(
    arrays: dict[str, NDArray[Any]],
) -> tuple[NDArray[Any], dict[str, NDArray[Any]], float]:
    """Check that arrays describe a valid pool; return origin, state and now."""
    origin, now = arrays["origin"], arrays["now"]
    if origin.ndim != 1 or not {"node", "start"} <= set(origin.dtype.names or ()):
        raise InputError(f"origin has the type {origin.dtype!s:.80}")
    validate_slots(in_order(origin, "start", "node"))
    if now.shape or now.dtype != np.float64 or np.isnan(now):
        raise InputError(f"now is {now.tolist()!r:.80}")
    state = {"gone": _cast("gone", arrays["gone"], np.dtype(np.int32))}
    for name in ("free", "booked"):
        state[name] = _cast(name, arrays[name], SPAN)
    held = arrays.get("held", np.empty(0, SPAN))  # files from before closures lack it
    state["held"] = _cast("held", held, SPAN)
    if not np.isin(state["gone"], origin["node"]).all():
        raise InputError("a removed node is unknown")
    unbooked = np.concatenate([state["free"], state["held"]])
    spans = np.concatenate([unbooked, state["booked"]])
    if not ((spans["row"] >= 0) & (spans["row"] < len(origin))).all():
        raise InputError("a span has no slot: its row is out of range")
    slots = origin.take(spans["row"])
    inside = (
        (spans["node"] == slots["node"])
        & (slots["start"] <= spans["start"])
        & (spans["start"] < spans["end"])
        & (spans["end"] <= slots["end"])
    )
    if not inside.all():
        raise InputError("a span lies outside its slot")
    if overlap(
        *(in_order(table, "node", "start") for table in (unbooked, state["booked"]))
    ):
        raise InputError("spans overlap")
    return origin, state, float(now)


def _cast(name: str, values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert the byte order of an array to that of the dtype; refuse other types."""
    if values.ndim != 1 or values.dtype.newbyteorder("=") != dtype:
        raise InputError(f"{name} has the type {values.dtype!s:.80}")
    return values.astype(dtype)
