"""Reading and writing of .npz archives; the reader does not trust the file.

In numpy's own reader the file determines how much is allocated, evaluated and unpacked.
Here each size is checked before memory is allocated, and only plain arrays are created.
"""

from __future__ import annotations

import ast
import math
import warnings
import zipfile
from collections.abc import Container, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .columns import InputError, MemoryLimit

_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the methods that numpy writes
_MAX_HEADER = 1 << 20
_PIECE = 1 << 20


def read_archive(
    file: IO[bytes],
    memory: MemoryLimit,
    packed: bool = True,
    only: Container[str] | None = None,
) -> list[tuple[str, NDArray[Any]]]:
    """Read the names and arrays of an .npz file, in the order of the file.

    Parameters
    ----------
    file : binary file
    memory : MemoryLimit
        The limit for the bytes of all arrays together.
    packed : bool
        False refuses compressed members.
    only : container of str, optional
        The names of the arrays to read; the others are skipped.

    Raises
    ------
    InputError
        If the file is not a valid .npz archive, or exceeds the limit.
    """
    try:
        if not zipfile.is_zipfile(file):
            raise InputError("it is not a zip archive")
        with zipfile.ZipFile(file) as archive:
            members = [
                member
                for member in archive.infolist()
                if only is None or member.filename.removesuffix(".npy") in only
            ]
            for member in members:
                if member.compress_type not in _PACKED[: 1 + packed]:
                    raise InputError(
                        f"{member.filename!r:.80} has an unsupported compression"
                    )
                memory.reserve(f"{member.filename!r:.80}", member.file_size)
            return [
                (member.filename.removesuffix(".npy"), _array(archive, member))
                for member in members
            ]
    except InputError:
        raise
    except Exception as error:  # any error of the decompressors
        raise InputError(str(error) or type(error).__name__) from None


def write_archive(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to an .npz file without compression and without pickles."""
    with warnings.catch_warnings():
        # Many fields need format 2.0, other names than Latin-1 3.0; numpy reads both.
        warnings.filterwarnings("ignore", "Stored array in format", UserWarning)
        cleared = {name: without_padding(values) for name, values in arrays.items()}
        np.savez(file, allow_pickle=False, **cleared)


def without_padding(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose padding between fields is zero: a copy if there is any.

    The padding of compiled tables is uninitialized memory, which must not get into
    files, and would give equal arrays different digests.
    """
    dtype = values.dtype
    names = dtype.names or ()
    if not names or sum(dtype[name].itemsize for name in names) == dtype.itemsize:
        return values
    cleared = np.zeros(values.shape, dtype)
    for name in names:
        cleared[name] = values[name]
    return cleared


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return one member as an array (numpy.lib.format describes the bytes)."""
    name = f"{member.filename!r:.80}"
    with archive.open(member) as file:
        start = file.read(8)
        if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
            raise InputError(f"{name} is no array")
        size = int.from_bytes(file.read(2 if start[6] == 1 else 4), "little")
        if size > min(_MAX_HEADER, member.file_size):
            raise InputError(f"{name} has a header of {size:,} bytes")
        header = file.read(size).decode("utf-8" if start[6] == 3 else "latin-1")
        shape, dtype, fortran = _header(name, header)
        left = member.file_size - (10 if start[6] == 1 else 12) - size
        count = math.prod(shape)
        if count * dtype.itemsize != left or (count and not dtype.itemsize):
            raise InputError(
                f"{name} holds {left:,} bytes, not {shape} of {dtype!s:.80}"
            )
        values = np.empty(count, dtype)
        raw = values.view(np.uint8) if left else np.empty(0, np.uint8)
        for first in range(0, left, _PIECE):
            piece = file.read(min(_PIECE, left - first))
            if len(piece) < min(_PIECE, left - first):
                raise InputError(f"{name} is truncated")
            raw[first : first + len(piece)] = np.frombuffer(piece, np.uint8)
        file.read(1)  # zipfile compares the checksum at the end
    return values.reshape(shape, order="F" if fortran else "C")


def _header(name: str, text: str) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Parse a header: return shape, dtype and True for Fortran order."""
    try:
        header = ast.literal_eval(text.strip())
        shape = header["shape"]
        fortran = header["fortran_order"]
        dtype = np.lib.format.descr_to_dtype(header["descr"])
    except Exception as error:  # any error of the parsers
        raise InputError(f"{name} has no valid header: {error}") from None
    if not isinstance(shape, tuple) or not all(
        type(length) is int and 0 <= length < 2**63 for length in shape
    ):
        raise InputError(f"{name} has the shape {shape!r:.80}")
    if dtype.hasobject:
        raise InputError(f"Object arrays cannot be read: {name}")
    return shape, dtype, bool(fortran)
