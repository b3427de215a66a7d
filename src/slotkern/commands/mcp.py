"""``slotkern mcp``: a pool or a ledger as tools of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import slotkern as sk
from slotkern.foundation.extras import extra

from . import places
from .machine import read_free
from .pools import is_ledger, require_whole_nodes

with extra():
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(mcp)


def mcp(
    slots: Annotated[
        Path,
        typer.Argument(
            parser=places.path,
            help="Ledger, .db or a URL; saved pool, .npz; or a file of free slots.",
        ),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Let tools book, hold and release.")
    ] = False,
    user: Annotated[
        str | None,
        typer.Option(
            help="Owner of what the tools book, and the one whose bookings they may "
            "release; by default the user of the process."
        ),
    ] = None,
) -> None:
    """Serve tools for agents over standard input and output (MCP).

    The tools find windows, explain, forecast and list bookings. With
    --write they also book, hold, confirm and release on a ledger.
    """
    if write and not is_ledger(slots):
        raise ValueError(
            f"--write: {slots} is not a ledger; `slotkern ledger create` makes one"
        )
    with extra():
        import_module("mcp")  # first, so that an error names the extra of this command
        import anyio

        from slotkern.service.mcp import serve_stdio

    with _open(slots, write) as pool:
        pool.user = pool.user if user is None else user
        anyio.run(serve_stdio, pool, write)


@contextmanager
def _open(slots: Path, write: bool) -> Iterator[sk.SharedPool]:
    """Open a ledger; the slots of a file are a ledger that ends with the command."""
    if is_ledger(slots):
        with sk.SlotPool.open(places.where_of(slots), readonly=not write) as shared:
            require_whole_nodes(slots, shared)
            yield shared
        return
    free, _ = read_free(slots)
    pool = free if isinstance(free, sk.SlotPool) else sk.SlotPool(free)
    with (
        TemporaryDirectory(prefix="slotkern-") as folder,
        pool.share(Path(folder) / "pool.db") as shared,
    ):
        yield shared
