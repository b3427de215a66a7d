"""Pools in files that commands change: one writer at a time, from load to save."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import slotkern as sk
from slotkern.checks import visible
from slotkern.extras import extra
from slotkern.files.atomic import lock_file
from slotkern.machine.durations import NO_LIMIT

with extra():
    import typer

__all__ = [
    "Force",
    "has_pool_file",
    "lock_for_update",
    "number_or_text",
    "parse_nodes",
    "parse_span",
]

Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Save also over a pool file that another program changed meanwhile; its "
        "changes are lost.",
    ),
]


def number_or_text(value: str | None) -> float | str | None:
    """Return the number that a text is, or else the text; Slurm's words are inf."""
    if value is not None and value.strip().upper() in NO_LIMIT:
        return math.inf
    try:
        return value if value is None else float(value)
    except ValueError:
        return value


@contextmanager
def lock_for_update(read: Path, writes: Iterable[Path | None]) -> Iterator[None]:
    """Hold the lock of a pool file that a command reads and then replaces.

    Two commands that change one file take turns, so that both changes are kept. Prints
    a line on standard error if this command has to wait.
    """
    if not any(path and _is_same_file(path, read) for path in writes):
        yield
        return

    def waits() -> None:
        print(f"{visible(read)}: another command changes it; waiting", file=sys.stderr)

    with lock_file(read, waits):
        yield


def has_pool_file(writes: Iterable[Path | None]) -> bool:
    """Return whether one of these files is that of a pool."""
    return any(path and path.suffix.lower() == ".npz" for path in writes)


def parse_nodes(pool: sk.SlotPool, text: str) -> Any:
    """Return what an option says of nodes: names of the machine, or ids."""
    if pool.machine is not None:
        return text
    ids = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in ids):
        raise ValueError(
            f"--nodes: {text!r} is no list of ids such as 0,3,4, and this pool has no "
            "machine with names"
        )
    return [int(word) for word in ids]


def parse_span(text: str) -> Any:
    """Return the start and end that an option tells, None for one that is left out."""
    words = [word.strip() for word in text.split("/")]
    if len(words) != 2:
        raise ValueError(f"--during: {text!r} is no span START/END")
    return tuple(number_or_text(word) if word else None for word in words)


def _is_same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)
