"""Pool files and ledgers that commands change, and the options that refer to pools.

A command that reads a pool file and replaces it locks the file from load to save, so
that concurrent commands run one after the other and no booking is lost.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import slotkern as sk
from slotkern.files.atomic import lock_file
from slotkern.foundation.checks import visible
from slotkern.foundation.extras import extra
from slotkern.machine.calendar import NO_LIMIT

from .places import LedgerUrl, where_of

with extra():
    import typer

__all__ = [
    "Force",
    "has_pool_file",
    "is_ledger",
    "load_pool",
    "lock_for_update",
    "number_or_text",
    "parse_nodes",
    "parse_span",
    "require_ledger",
    "require_whole_nodes",
    "store_pool",
]

Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Overwrite the pool file even if another program changed it since it was "
        "loaded; those changes are lost.",
    ),
]


def number_or_text(value: str | None) -> float | str | None:
    """Return a text as a number if it is one; Slurm's words for no limit are inf.

    Any other text (a date or a duration) and None are returned unchanged.
    """
    if value is not None and value.strip().upper() in NO_LIMIT:
        return math.inf
    try:
        return value if value is None else float(value)
    except ValueError:
        return value


@contextmanager
def lock_for_update(read: Path, writes: Iterable[Path | None]) -> Iterator[None]:
    """Hold the lock of the pool file `read` if it is one of the files to be written.

    Prints a line on standard error if another command holds the lock, and waits.
    """
    if is_ledger(read) or not any(
        path and _is_same_file(path, read) for path in writes
    ):
        yield
        return

    def waits() -> None:
        print(
            f"{visible(read)}: another command is changing this file; waiting for it",
            file=sys.stderr,
        )

    with lock_file(read, waits):
        yield


def is_ledger(path: Path) -> bool:
    """Return whether a place is that of a ledger: a file, .db, or a URL."""
    return path.suffix.lower() == ".db"


def require_ledger(path: Path) -> None:
    """Raise ValueError for a name without the suffix of ledgers."""
    if not is_ledger(path):
        raise ValueError(
            f"{path}: the name of a ledger ends in .db, or is a URL "
            "postgresql://user@host/database?pool=name"
        )


def require_whole_nodes(place: Path, pool: sk.SlotPool | sk.HostPool) -> None:
    """Raise ValueError for a ledger of shares of nodes."""
    if isinstance(pool, sk.HostPool):
        raise ValueError(
            f"{place} books shares of nodes, which a service does not support; use the "
            "commands find, schedule and release, or HostPool.open"
        )


def load_pool(path: Path, target: Path | None = None) -> sk.SlotPool:
    """Return the pool of a pool file or of a ledger.

    With a `target`, the pool will be changed. Unless that is the ledger itself, the
    result is a copy.
    """
    if not is_ledger(path):
        return sk.SlotPool.load(path)
    if target is None:  # who may write a file must, to read its WAL
        readonly = isinstance(path, LedgerUrl) or not os.access(path, os.W_OK)
        return sk.SlotPool.open(where_of(path), readonly=readonly)
    pool = sk.SlotPool.open(where_of(path))
    return pool if target == path else pool.copy()


def store_pool(
    pool: sk.SlotPool | sk.HostPool, read: Path, target: Path, force: bool
) -> None:
    """Save a pool that was loaded from `read`; a ledger has stored all changes."""
    if not is_ledger(target):
        pool.save(target, overwrite=force)
    elif target != read:
        raise ValueError(
            f"--output: {target} is a ledger; create it with `slotkern ledger create`"
        )


def has_pool_file(writes: Iterable[Path | None]) -> bool:
    """Return whether one of these names has the suffix of a pool file, .npz."""
    return any(path and path.suffix.lower() == ".npz" for path in writes)


def parse_nodes(pool: sk.SlotPool, text: str) -> Any:
    """Return the nodes of --nodes: text for a pool with names, else a list of ids."""
    if pool.machine is not None:
        return text
    ids = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in ids):
        raise ValueError(
            f"--nodes: {text!r} is no list of ids such as 0,3,4; names are allowed "
            "only for a pool with a machine"
        )
    return [int(word) for word in ids]


def parse_span(text: str) -> Any:
    """Return the start and end of START/END; None for an omitted one."""
    words = [word.strip() for word in text.split("/")]
    if len(words) != 2:
        raise ValueError(
            f"--during: {text!r} is no span START/END such as 2026-12-01/2026-12-02; "
            "write 2026-12-01/ for a span without end"
        )
    return tuple(number_or_text(word) if word else None for word in words)


def _is_same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)
