"""Files of pasted texts, read as a snapshot of a cluster."""

from __future__ import annotations

from typing import Any

from slotkern.files.atomic import AnyPath, as_path

from .snapshot import Snapshot
from .texts import Sources, read_slurm

__all__ = ["read_slurm_files"]

#: The largest size of a text, in bytes.
MAX_BYTES = 2**28


def read_slurm_files(
    sinfo: AnyPath,
    squeue: AnyPath | None = None,
    reservations: AnyPath | None = None,
    **options: Any,
) -> Snapshot:
    """Read a cluster from files with the output of Slurm's commands.

    Parameters
    ----------
    sinfo, squeue, reservations : path
        The texts, as `read_slurm` takes them.
    **options
        The keywords of `read_slurm`: ``now``, ``zone``, ``horizon``.

    Raises
    ------
    ValueError
        For malformed text or a file of more than 256 MB; the message contains the file,
        the line, the field and the value.
    OSError
        If a file cannot be read.
    """
    names = (sinfo, squeue, reservations)
    texts = [None if path is None else _text(path) for path in names]
    paths = ("" if path is None else str(as_path(path)) for path in names)
    assert texts[0] is not None
    return read_slurm(texts[0], texts[1], texts[2], sources=Sources(*paths), **options)


def _text(path: AnyPath) -> str:
    with open(as_path(path), "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{as_path(path)}: more than {MAX_BYTES:,} bytes")
    return data.decode("utf-8-sig", "replace")
