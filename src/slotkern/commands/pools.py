"""Pools in files that commands change: one writer at a time, from load to save."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from slotkern.checks import visible
from slotkern.extras import extra
from slotkern.files.whole import hold_file

with extra():
    import typer

__all__ = ["Force", "alone", "is_saved"]

Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Save also over a pool file that another program changed meanwhile; its "
        "changes are lost.",
    ),
]


@contextmanager
def alone(read: Path, writes: Iterable[Path | None]) -> Iterator[None]:
    """Hold the lock of a pool file that a command reads and then replaces.

    Two commands that change one file take turns, so that both changes are kept. Prints
    a line on standard error if this command has to wait.
    """
    if not any(path and _same(path, read) for path in writes):
        yield
        return

    def waits() -> None:
        print(f"{visible(read)}: another command changes it; waiting", file=sys.stderr)

    with hold_file(read, waits):
        yield


def is_saved(writes: Iterable[Path | None]) -> bool:
    """Return whether one of these files is that of a pool."""
    return any(path and path.suffix.lower() == ".npz" for path in writes)


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)
