"""``slotkern bookings``, ``release``: what is booked in the file of a pool."""

from __future__ import annotations

from itertools import compress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.extras import extra

from .pools import Force, alone
from .results import Output, check_output, listing_columns, write_table
from .tables import listing_table
from .terminal import show
from .words import counted

with extra():
    import typer

__all__ = ["register"]

PoolFile = Annotated[
    Path,
    typer.Argument(
        help="A saved pool, as `slotkern free` and `slotkern schedule` write it."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(bookings)
    app.command()(release)


def bookings(
    pool: PoolFile,
    owner: Annotated[
        str | None, typer.Option(help="Only what is booked for this owner.")
    ] = None,
    output: Output = None,
) -> None:
    """List what is booked in a saved pool: for whom, where, when and at what cost.

    Exits with 1 when nothing is booked.
    """
    check_output(output, [pool])
    booked = sk.SlotPool.load(pool)
    table = booked.bookings()
    if owner is not None:
        table = table[_of(owner, table, pool)]
    if output is not None:
        write_table(output, listing_columns(table, booked.clock))
    if table.size:
        show(listing_table(table))
    nobodys = 0 if owner is not None else int((booked.booked["owner"] == "").sum())
    if nobodys:
        have = "has" if nobodys == 1 else "have"
        show(f"{pool}: {counted(nobodys, 'booked part')} {have} no owner")
    elif not table.size:
        show(f"{pool}: nothing is booked")
        raise typer.Exit(1)


def release(
    pool: PoolFile,
    owner: Annotated[str, typer.Option(help="Whose windows.")],
    name: Annotated[
        str | None, typer.Option(help="Only those of the jobs of this name.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the pool here, .npz, and leave POOL as it is."),
    ] = None,
    force: Force = False,
) -> None:
    """Give back what is booked for an owner, as far as it is not past.

    The pool is written in its place, whole or not at all.
    """
    target = pool if output is None else output
    with alone(pool, [target]):
        booked = sk.SlotPool.load(pool)
        table = booked.bookings()
        chosen = _of(owner, table, pool)
        if name is not None:
            chosen &= table["name"] == name
            if not chosen.any():
                raise ValueError(f"{pool}: {owner!r} has booked nothing for {name!r}")
        for window in compress(booked.windows(), chosen.tolist()):
            booked.release(window)
        booked.save(target, overwrite=force)
    told = f"{chosen.sum():,} of {len(table):,} windows released"
    show(listing_table(table[chosen]), f"{target}: {told}")


def _of(owner: str, table: NDArray[Any], path: Path) -> NDArray[np.bool_]:
    """Which bookings are an owner's: one at least."""
    mine: NDArray[np.bool_] = table["owner"] == owner
    if not mine.any():
        known = ", ".join(dict.fromkeys(table["owner"].tolist()))
        told = f"what is booked is of {known}" if known else "nor has anybody"
        raise ValueError(f"{path}: {owner!r} has nothing booked; {told}")
    return mine
