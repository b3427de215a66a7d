"""Files of pools, which `SlotPool.save` writes and `SlotPool.load` reads.

A pool file is an .npz archive without compression: the original slots, the state, the
clock, machine, tariffs and owners, and a generation. Saving compares generations under
the lock of the file, so that a pool does not overwrite changes that it was not loaded
with.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import NO_CLOSURES, SlotPool, restore_pool
from slotkern._kernels.slots import SPAN, overlap
from slotkern.files import FORMATS
from slotkern.files.archive import read_archive, without_padding, write_archive
from slotkern.files.atomic import AnyPath, as_path, lock_file, open_atomic
from slotkern.files.columns import InputError, MemoryLimit
from slotkern.foundation.errors import PoolFileChangedError
from slotkern.foundation.logger import log
from slotkern.pool.closures import validate_closures
from slotkern.pool.saved import from_arrays, has_tariffs, to_arrays
from slotkern.slots import in_order, validate_slots

__all__ = ["FORMAT", "check_state", "load_pool", "save_pool"]

FORMAT = "slotkern pool 2"
#: The format of pools with tariffs. Versions that do not know it must not load them,
#: because they would charge base prices.
TARIFF_FORMAT = "slotkern pool 3"
#: Older formats that can be loaded; they lack clock, machine and owners.
OLDER = ("slotkern pool 1",)


class Generation(NamedTuple):
    """The version of a saved state.

    Attributes
    ----------
    number : int
        The number of times that any process saved a pool to the file; 0 for a file of
        an older format.
    digest : str
        The digest of the state and of the generation before it; for a file of an older
        format, of its bytes.
    """

    number: int
    digest: str

    def __str__(self) -> str:
        return f"generation {self.number} ({self.digest[:8]})"


_NUMBER, _DIGEST = "generation", "generation digest"


def save_pool(pool: SlotPool, path: AnyPath, overwrite: bool = False) -> None:
    """Write a pool to a file atomically; see `SlotPool.save`."""
    path = as_path(path)
    if path.suffix.lower() in FORMATS.keys() - {".npz"}:  # formats of slots, not pools
        raise ValueError(
            f"{path}: a pool is saved as .npz, not as {path.suffix}; write_slots "
            "writes the free slots alone"
        )
    if pool.origin.dtype.hasobject:
        raise TypeError(
            f"slots of type {pool.origin.dtype} hold objects: cannot be saved"
        )
    origin, state, now, closures = pool._full_state_and_closures()
    closed = closures[closures["end"] > now]
    more = to_arrays(pool)  # raises for objects, before the file is changed
    form = TARIFF_FORMAT if has_tariffs(more) else FORMAT
    heading = {"format": np.array(form), "origin": origin, "now": np.array(now)}
    arrays = heading | state | more
    if len(closed):
        arrays["closed"] = closed
    key = os.path.realpath(path)
    with lock_file(path):
        found, loaded = _generation_at(path), pool._generations.get(key)
        changed = found is not None and loaded is not None and found != loaded
        if changed and not overwrite:
            raise PoolFileChangedError(str(path), str(loaded), str(found))
        before = [each for each in (found, loaded) if each is not None]
        number = 1 + max((each.number for each in before), default=0)
        generation = Generation(number, _digest(arrays, loaded))
        mark = {_NUMBER: np.array(number), _DIGEST: np.array(generation.digest)}
        pool._generations[key] = generation
        try:
            with open_atomic(path) as file:
                write_archive(file, mark | arrays)
        except BaseException:  # Ctrl-C may come after the file has been replaced
            if _generation_at(path) != generation:
                _forget(pool, key, loaded)
            raise


def _forget(pool: SlotPool, key: str, loaded: Generation | None) -> None:
    """Restore the generation that a pool had before a save that failed."""
    if loaded is None:
        del pool._generations[key]
    else:
        pool._generations[key] = loaded


def load_pool(path: AnyPath) -> SlotPool:
    """Return the pool in a file; see `SlotPool.load`."""
    path = as_path(path)
    data = path.read_bytes()
    try:
        # Nothing is compressed: the arrays need no more memory than the file is long.
        arrays = dict(
            read_archive(io.BytesIO(data), MemoryLimit(0, len(data), 1), False)
        )
        for name in ("format", "origin", "now", "free", "booked", "gone"):
            if name not in arrays:
                raise InputError(f"it has no {name!r}")
        if arrays["format"].tolist() not in (TARIFF_FORMAT, FORMAT, *OLDER):
            raise InputError(f"its format is not {TARIFF_FORMAT!r} or {FORMAT!r}")
        if arrays["format"].tolist() in OLDER:
            reason = "an older format, without clock, machine and owners"
            log.info("%s: %s", path, reason)
        generation = _generation(arrays) or _of_bytes(data)
        del data
        origin, state, now = check_state(arrays)
        closures = validate_closures(arrays.get("closed", NO_CLOSURES), state["held"])
        pool = restore_pool(origin, state, now, *from_arrays(arrays), closures=closures)
        pool._generations[os.path.realpath(path)] = generation
        return pool
    except InputError as fault:
        reason = fault.reason
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        reason = str(error) or type(error).__name__
    raise InputError(f"not a complete slotkern pool: {reason}").error(str(path), str)


def _generation_at(path: Path) -> Generation | None:
    """Return the generation of a file; None if there is no regular file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
    except FileNotFoundError:
        return None
    with open(path, "rb") as file:
        try:
            memory = MemoryLimit(0, 1 << 20, 1)
            found = _generation(dict(read_archive(file, memory, False, _MARK)))
        except InputError:
            found = None
        if found is None:
            file.seek(0)
            found = _of_bytes(file.read())
    return found


_MARK = frozenset({_NUMBER, _DIGEST})


def _generation(arrays: Mapping[str, NDArray[Any]]) -> Generation | None:
    """Return the generation in the arrays of a file; None for an older format."""
    if not arrays.keys() >= _MARK:
        return None
    number, digest = arrays[_NUMBER], arrays[_DIGEST]
    if number.shape or number.dtype.kind not in "iu" or number < 1:
        raise InputError(f"its generation is {number.tolist()!r:.80}")
    if digest.shape or digest.dtype.kind != "U" or not digest:
        raise InputError(f"the digest of its generation is {digest.tolist()!r:.80}")
    return Generation(int(number), str(digest))


def _of_bytes(data: bytes) -> Generation:
    return Generation(0, hashlib.blake2b(data, digest_size=16).hexdigest())


def _digest(arrays: Mapping[str, NDArray[Any]], before: Generation | None) -> str:
    """Return the digest of a state and of the generation that it was made from."""
    known = hashlib.blake2b(repr(before and tuple(before)).encode(), digest_size=16)
    for name, values in arrays.items():
        known.update(f"{name} {values.dtype!r} {values.shape}".encode())
        known.update(without_padding(values).tobytes())
    return known.hexdigest()


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
