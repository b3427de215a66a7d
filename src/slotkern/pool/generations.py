"""Generations of pool files: a pool does not overwrite changes it was not loaded with.

Saving compares the generation in the file, under its lock, with that from which the
pool was loaded, and writes the file atomically with the next one.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.files import FORMATS
from slotkern.files.archive import read_archive, without_padding, write_archive
from slotkern.files.atomic import AnyPath, as_path, lock_file, open_atomic
from slotkern.files.columns import InputError, MemoryLimit
from slotkern.foundation.errors import PoolFileChangedError

__all__ = ["Generation", "generation_of", "generation_of_bytes", "write_pool"]


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


def write_pool(
    pool: Any,
    path: AnyPath,
    arrays: dict[str, NDArray[Any]],
    overwrite: bool,
) -> None:
    """Write the arrays of a pool with its next generation; see `SlotPool.save`."""
    path = as_path(path)
    if path.suffix.lower() in FORMATS.keys() - {".npz"}:  # formats of slots, not pools
        raise ValueError(
            f"{path}: a pool is saved as .npz, not as {path.suffix}; write_slots "
            "writes the free slots alone"
        )
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


def _forget(pool: Any, key: str, loaded: Generation | None) -> None:
    """Restore the generation that a pool had before a save that failed."""
    if loaded is None:
        del pool._generations[key]
    else:
        pool._generations[key] = loaded


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
            found = generation_of(dict(read_archive(file, memory, False, _MARK)))
        except InputError:
            found = None
        if found is None:
            file.seek(0)
            found = generation_of_bytes(file.read())
    return found


_MARK = frozenset({_NUMBER, _DIGEST})


def generation_of(arrays: Mapping[str, NDArray[Any]]) -> Generation | None:
    """Return the generation in the arrays of a file; None for an older format."""
    if not arrays.keys() >= _MARK:
        return None
    number, digest = arrays[_NUMBER], arrays[_DIGEST]
    if number.shape or number.dtype.kind not in "iu" or number < 1:
        raise InputError(f"its generation is {number.tolist()!r:.80}")
    if digest.shape or digest.dtype.kind != "U" or not digest:
        raise InputError(f"the digest of its generation is {digest.tolist()!r:.80}")
    return Generation(int(number), str(digest))


def generation_of_bytes(data: bytes) -> Generation:
    return Generation(0, hashlib.blake2b(data, digest_size=16).hexdigest())


def _digest(arrays: Mapping[str, NDArray[Any]], before: Generation | None) -> str:
    """Return the digest of a state and of the generation that it was made from."""
    known = hashlib.blake2b(repr(before and tuple(before)).encode(), digest_size=16)
    for name, values in arrays.items():
        known.update(f"{name} {values.dtype!r} {values.shape}".encode())
        known.update(without_padding(values).tobytes())
    return known.hexdigest()
