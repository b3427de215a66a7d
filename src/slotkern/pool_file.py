"""Files of pools: what `SlotPool.save` writes and `SlotPool.load` reads."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._pool import SlotPool
from ._pool_state import restored
from ._spans import SPAN, overlap
from .files import FORMATS
from .files.archive import read_archive, write_archive
from .files.columns import Fault, Room
from .files.whole import AnyPath, as_path, open_whole
from .machine.saved import recalled, told
from .notes import log
from .slots import in_order, validate_slots

__all__ = ["FORMAT", "load_pool", "save_pool"]

FORMAT = "slotkern pool 2"
#: Read as well: without clock, machine and owners.
OLDER = ("slotkern pool 1",)


def save_pool(pool: SlotPool, path: AnyPath) -> None:
    """Write a pool to a file, whole or not at all; see `SlotPool.save`."""
    path = as_path(path)
    if path.suffix.lower() in FORMATS.keys() - {".npz"}:  # it would not be one
        raise ValueError(
            f"{path}: a pool is saved as .npz, not as {path.suffix}; write_slots "
            "writes the free slots alone"
        )
    if pool.origin.dtype.hasobject:
        raise TypeError(
            f"slots of type {pool.origin.dtype} hold objects: cannot be saved"
        )
    origin, state, now = pool._whole()
    heading = {"format": np.array(FORMAT), "origin": origin, "now": np.array(now)}
    more = told(
        pool
    )  # before the file is opened: a machine may hold what cannot be saved
    with open_whole(path) as file:
        write_archive(file, heading | state | more)


def load_pool(path: AnyPath) -> SlotPool:
    """Return the pool in a file; see `SlotPool.load`."""
    path = as_path(path)
    data = path.read_bytes()
    try:
        # Nothing in it is packed: it takes no more memory than it is long.
        arrays = dict(read_archive(io.BytesIO(data), Room(0, len(data), 1), False))
        for name in ("format", "origin", "now", "free", "booked", "gone"):
            if name not in arrays:
                raise Fault(f"it has no {name!r}")
        if arrays["format"].tolist() not in (FORMAT, *OLDER):
            raise Fault(f"its format is not {FORMAT!r}")
        if arrays["format"].tolist() in OLDER:
            reason = "an older format, without clock, machine and owners"
            log.info("%s: %s", path, reason)
        del data
        origin, state, now = _checked(arrays)
        return restored(origin, state, now, *recalled(arrays))
    except Fault as fault:
        reason = fault.reason
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        reason = str(error) or type(error).__name__
    raise Fault(f"not a whole slotkern pool: {reason}").error(str(path), str)


def _checked(
    arrays: dict[str, NDArray[Any]],
) -> tuple[NDArray[Any], dict[str, NDArray[Any]], float]:
    """Return origin, state and now, once it is sure that they can be a pool."""
    origin, now = arrays["origin"], arrays["now"]
    if origin.ndim != 1 or not {"node", "start"} <= set(origin.dtype.names or ()):
        raise Fault(f"origin has the type {origin.dtype!s:.80}")
    validate_slots(in_order(origin, "start", "node"))
    if now.shape or now.dtype != np.float64 or np.isnan(now):
        raise Fault(f"now is {now.tolist()!r:.80}")
    state = {"gone": _cast("gone", arrays["gone"], np.dtype(np.int32))}
    for name in ("free", "booked"):
        state[name] = _cast(name, arrays[name], SPAN)
    if not np.isin(state["gone"], origin["node"]).all():
        raise Fault("a removed node is unknown")
    spans = np.concatenate([state["free"], state["booked"]])
    if not ((spans["row"] >= 0) & (spans["row"] < len(origin))).all():
        raise Fault("a span is of no row")
    slots = origin.take(spans["row"])
    inside = (
        (spans["node"] == slots["node"])
        & (slots["start"] <= spans["start"])
        & (spans["start"] < spans["end"])
        & (spans["end"] <= slots["end"])
    )
    if not inside.all():
        raise Fault("a span lies outside its slot")
    if overlap(
        *(in_order(state[name], "node", "start") for name in ("free", "booked"))
    ):
        raise Fault("spans overlap")
    return origin, state, float(now)


def _cast(name: str, values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return what may only be of another byte order in the dtype."""
    if values.ndim != 1 or values.dtype.newbyteorder("=") != dtype:
        raise Fault(f"{name} has the type {values.dtype!s:.80}")
    return values.astype(dtype)
