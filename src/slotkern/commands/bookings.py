"""``slotkern bookings``, ``release``, ``reserve``, ``disable``, ``enable``, ``view``:
the bookings and the closed nodes in the file of a pool.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.extras import extra

from .completion import format_count
from .pools import Force, lock_for_update, number_or_text, parse_nodes, parse_span
from .results import (
    Output,
    check_output,
    check_page,
    listing_columns,
    write_page,
    write_table,
)
from .tables import listing_table
from .terminal import show

with extra():
    import typer

__all__ = ["register"]

PoolFile = Annotated[
    Path,
    typer.Argument(
        help="A saved pool, as `slotkern free` and `slotkern schedule` write it."
    ),
]

Target = Annotated[
    Path | None,
    typer.Option(
        "--output", help="Write the pool here, .npz, and leave POOL as it is."
    ),
]
Nodes = Annotated[
    str,
    typer.Option(
        help="Nodes: names or a hostlist such as n[001-004,007] of the machine, or ids "
        "with commas."
    ),
]
Start = Annotated[str, typer.Option(help="Begin of the span: a date or a number.")]
End = Annotated[str, typer.Option(help="End of the span: a date or a number.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (bookings, release, reserve, disable, enable, view):
        app.command()(command)


def bookings(
    pool: PoolFile,
    owner: Annotated[
        str | None, typer.Option(help="Only what is booked for this owner.")
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="Only windows with a part on one of these nodes: names, a hostlist, "
            "or ids with commas."
        ),
    ] = None,
    during: Annotated[
        str | None,
        typer.Option(
            help="Only windows with a part in this span, START/END: dates or numbers, "
            "of which either may be left out."
        ),
    ] = None,
    output: Output = None,
) -> None:
    """List what is booked in a saved pool: for whom, where, when and at what cost.

    Exits with 1 when nothing is booked.
    """
    check_output(output, [pool])
    booked = sk.SlotPool.load(pool)
    some = owner is not None or nodes is not None or during is not None
    table = booked.bookings(
        nodes=None if nodes is None else parse_nodes(booked, nodes),
        during=None if during is None else parse_span(during),
    )
    if owner is not None and (table.size or nodes is during is None):
        table = table[_rows_of_owner(owner, table, pool)]
    if output is not None:
        write_table(output, listing_columns(table, booked.clock))
    if table.size:
        show(listing_table(table))
    nobodys = 0 if some else int((booked.booked["owner"] == "").sum())
    if nobodys:
        have = "has" if nobodys == 1 else "have"
        show(f"{pool}: {format_count(nobodys, 'booked part')} {have} no owner")
    elif not table.size:
        show(f"{pool}: nothing {'like this ' if some else ''}is booked")
        raise typer.Exit(1)


def release(
    pool: PoolFile,
    owner: Annotated[str, typer.Option(help="Whose windows.")],
    name: Annotated[
        str | None, typer.Option(help="Only those of the jobs of this name.")
    ] = None,
    output: Target = None,
    force: Force = False,
) -> None:
    """Give back what is booked for an owner, as far as it is not past.

    The pool is written in its place, whole or not at all.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked = sk.SlotPool.load(pool)
        table = booked.bookings()
        chosen = table["owner"] == owner
        if owner not in booked.owners:
            _rows_of_owner(owner, table, pool)  # raises
        if name is not None:
            chosen &= table["name"] == name
            if not chosen.any():
                raise ValueError(f"{pool}: {owner!r} has booked nothing for {name!r}")
        booked.release(owner, name=name)
        booked.save(target, overwrite=force)
    told = f"{chosen.sum():,} of {len(table):,} windows released"
    show(listing_table(table[chosen]), f"{target}: {told}")


def reserve(
    pool: PoolFile,
    nodes: Nodes,
    start: Start,
    end: End,
    owner: Annotated[str, typer.Option(help="For whom, as in maintenance.")],
    partly: Annotated[
        bool,
        typer.Option(
            "--partly",
            help="Take what is free of the span, and what becomes free of it later.",
        ),
    ] = False,
    output: Target = None,
    force: Force = False,
) -> None:
    """Book given nodes for a given time, as for maintenance.

    The pool is written in its place, whole or not at all.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked = sk.SlotPool.load(pool)
        given = parse_nodes(booked, nodes)
        times: Any = number_or_text(start), number_or_text(end)
        windows = booked.reserve(given, times[0], times[1], owner=owner, partly=partly)
        booked.save(target, overwrite=force)
    parts = sum(len(window) for window in windows)
    show(f"{target}: {format_count(parts, 'part')} reserved for {owner}")


def disable(
    pool: PoolFile,
    nodes: Nodes,
    start: Annotated[
        str | None, typer.Option(help="From this date or number on; else from now on.")
    ] = None,
    end: Annotated[
        str | None, typer.Option(help="Until this date or number; else for ever.")
    ] = None,
    owner: Annotated[str, typer.Option(help="Who or what closes the nodes.")] = "down",
    output: Target = None,
    force: Force = False,
) -> None:
    """Close nodes, as after a failure, and list the bookings that this hits.

    The bookings stay: `slotkern release` gives them back. What is released on a closed
    node is not free before `slotkern enable`. The pool is written in its place, whole
    or not at all.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked = sk.SlotPool.load(pool)
        given = parse_nodes(booked, nodes)
        times: Any = number_or_text(start), number_or_text(end)
        booked.disable(given, times[0], times[1], owner)
        span = (booked.now if start is None else times[0], times[1])
        if span[0] == -np.inf:
            span = (None, span[1])
        table = booked.bookings(nodes=given, during=span)
        booked.save(target, overwrite=force)
    if table.size:
        show(listing_table(table))
    show(
        f"{target}: {format_count(len(table), 'booking')} on the nodes that "
        "are disabled"
    )


def enable(
    pool: PoolFile, nodes: Nodes, output: Target = None, force: Force = False
) -> None:
    """Open nodes that were disabled: what is not booked of their time is free again.

    The pool is written in its place, whole or not at all.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked = sk.SlotPool.load(pool)
        booked.enable(parse_nodes(booked, nodes))
        booked.save(target, overwrite=force)
    show(f"{target}: {nodes} enabled")


def view(
    pool: PoolFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page to write: .html.")
    ],
) -> None:
    """Write a page that shows what is free and booked in a saved pool."""
    check_page(output, "--output")
    write_page(output, sk.SlotPool.load(pool), None, pool.name)
    show(f"{output}: {pool.name}")


def _rows_of_owner(owner: str, table: NDArray[Any], path: Path) -> NDArray[np.bool_]:
    """Which bookings are an owner's: one at least."""
    mine: NDArray[np.bool_] = table["owner"] == owner
    if not mine.any():
        known = ", ".join(dict.fromkeys(table["owner"].tolist()))
        told = f"what is booked is of {known}" if known else "nor has anybody"
        raise ValueError(f"{path}: {owner!r} has nothing booked; {told}")
    return mine
