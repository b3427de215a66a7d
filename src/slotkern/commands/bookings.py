"""``slotkern bookings``, ``release``, ``reserve``, ``disable``, ``enable``, ``view``.

These commands list and change the bookings and the disabled nodes of a pool file. A
command that changes the pool locks the file from load to save (`lock_for_update`) and
replaces it atomically.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.foundation.amounts import amounts_of
from slotkern.foundation.extras import extra
from slotkern.pool.ledger import reservation

from . import places
from .completion import format_count
from .pools import (
    Force,
    load_pool,
    lock_for_update,
    number_or_text,
    parse_nodes,
    parse_span,
    store_pool,
)
from .results import (
    CALENDARS,
    Listing,
    check_output,
    check_page,
    write_listing,
    write_page,
)
from .tables import abbreviate_nodes, listing_table
from .terminal import show

with extra():
    import typer

__all__ = ["register"]

PoolFile = Annotated[
    Path,
    typer.Argument(
        parser=places.path,
        help="Saved pool, .npz, as written by `slotkern free` or `slotkern schedule`; "
        "or a ledger, .db or a URL.",
    ),
]

Target = Annotated[
    Path | None,
    typer.Option(
        "--output",
        parser=places.path,
        help="Write the changed pool to this file, .npz, and leave POOL unchanged; by "
        "default POOL is replaced.",
    ),
]
Nodes = Annotated[
    str,
    typer.Option(
        help="Nodes: names or a hostlist such as n[001-004,007] if the pool has names, "
        "else ids such as 0,3,4."
    ),
]
Start = Annotated[str, typer.Option(help="Start of the span: a date or a number.")]
End = Annotated[str, typer.Option(help="End of the span: a date or a number.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (bookings, release, reserve, disable, enable, view):
        app.command()(command)


def bookings(
    pool: PoolFile,
    owner: Annotated[
        str | None, typer.Option(help="List only the bookings of this owner.")
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="List only windows with a part on one of these nodes: names, a "
            "hostlist, or ids such as 0,3,4."
        ),
    ] = None,
    during: Annotated[
        str | None,
        typer.Option(
            help="List only windows with a part in the span START/END, dates or "
            "numbers; omit either for an open end."
        ),
    ] = None,
    output: Listing = None,
) -> None:
    """List the bookings of a pool: owner, name, nodes, times and cost.

    The last lines list the disabled nodes. Exits with 1 if no booking
    matches.
    """
    check_output(output, [pool], CALENDARS)
    booked = load_pool(pool)
    some = owner is not None or nodes is not None or during is not None
    table = booked.bookings(
        nodes=None if nodes is None else parse_nodes(booked, nodes),
        during=None if during is None else parse_span(during),
    )
    if owner is not None and (table.size or nodes is during is None):
        table = table[_rows_of_owner(owner, table, pool)]
    if output is not None:
        write_listing(output, table, booked.clock)
    if table.size:
        show(listing_table(table, booked.clock))
    for line in [] if some else _disabled_lines(booked):
        show(f"{pool}: {line}")
    unowned = 0 if some else int((booked.booked["owner"] == "").sum())
    if unowned:
        have = "has" if unowned == 1 else "have"
        show(f"{pool}: {format_count(unowned, 'booked part')} {have} no owner")
    elif not table.size:
        show(f"{pool}: no {'matching ' if some else ''}bookings")
        raise typer.Exit(1)


def release(
    pool: PoolFile,
    owner: Annotated[str, typer.Option(help="Owner of the bookings to release.")],
    name: Annotated[
        str | None,
        typer.Option(
            help="Release only the bookings of this name; by default all of the owner."
        ),
    ] = None,
    output: Target = None,
    force: Force = False,
) -> None:
    """Release the bookings of an owner: their remaining time becomes free.

    Lists the released windows. The pool file is replaced atomically.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked = load_pool(pool, target)
        table = booked.bookings()
        chosen = table["owner"] == owner
        if owner not in booked.owners:
            _rows_of_owner(owner, table, pool)  # raises
        if name is not None:
            chosen &= table["name"] == name
            if not chosen.any():
                raise ValueError(
                    f"{pool}: {owner!r} has no booking named {name!r}; list the names "
                    "with `slotkern bookings`"
                )
        booked.release(owner, name=name)
        store_pool(booked, pool, target, force)
    count = f"{chosen.sum():,} of {len(table):,} windows released"
    show(listing_table(table[chosen], booked.clock), f"{target}: {count}")


def reserve(
    pool: PoolFile,
    nodes: Nodes,
    start: Start,
    end: End,
    owner: Annotated[
        str, typer.Option(help="Owner of the reservation, such as maintenance.")
    ],
    share: Annotated[
        str | None,
        typer.Option(
            help="Amounts to reserve on each node, such as cores=16,gpus=2, if POOL "
            "plans shares of nodes; by default whole nodes."
        ),
    ] = None,
    partly: Annotated[
        bool,
        typer.Option(
            "--partly",
            help="Reserve the free part of the span now, and the rest when its "
            "bookings are released; by default all nodes must be free.",
        ),
    ] = False,
    rule: Annotated[
        str | None,
        typer.Option(
            help="Reserve each date of this recurrence rule of iCalendar, such as "
            "'FREQ=WEEKLY;BYDAY=TU;COUNT=10', all or none; the span is its first date."
        ),
    ] = None,
    output: Target = None,
    force: Force = False,
) -> None:
    """Reserve given nodes for a given time, for example for maintenance.

    With --partly, lists the nodes that are not free in the whole span. The
    pool file is replaced atomically.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked: Any = load_pool(pool, target)
        given = parse_nodes(booked, nodes)
        times: Any = number_or_text(start), number_or_text(end)
        if isinstance(booked, sk.HostPool):
            amounts = None if share is None else amounts_of("--share", share)
            how: dict[str, Any] = {"owner": owner, "partly": partly, "rule": rule}
            booked.reserve(given, *times, share=amounts, **how)
            store_pool(booked, pool, target, force)
            show(f"{target}: {nodes} reserved for {owner}")
            return
        if share is not None:
            raise ValueError(
                f"--share: {pool} books whole nodes; `slotkern free --capacity` makes "
                "a pool that plans shares"
            )
        is_shared = isinstance(booked, sk.SharedPool)  # others may change it
        with booked.turn() if is_shared else nullcontext():
            gaps = reservation(booked, given, times[0], times[1], partly, rule)[1]
            windows = booked.reserve(
                given, *times, owner=owner, partly=partly, rule=rule
            )
        store_pool(booked, pool, target, force)
    parts = sum(len(window) for window in windows)
    show(f"{target}: {format_count(parts, 'part')} reserved for {owner}")
    if len(gaps):
        names = _names(booked, dict.fromkeys(gaps["node"].tolist()))
        show(f"{target}: not free in the whole span: {abbreviate_nodes(names, ',')}")


def disable(
    pool: PoolFile,
    nodes: Nodes,
    start: Annotated[
        str | None,
        typer.Option(
            help="Start of the closure: a date or a number; by default the pool's own "
            "time, not the computer's; all time if the pool was never advanced."
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            help="End of the closure: a date or a number; by default until `enable`."
        ),
    ] = None,
    owner: Annotated[
        str, typer.Option(help="Reason of the closure, shown as its owner.")
    ] = "down",
    output: Target = None,
    force: Force = False,
) -> None:
    """Disable nodes, for example after a failure, and list the bookings on them.

    The bookings remain; release them with `slotkern release`. Released time
    of a disabled node becomes free only after `slotkern enable`. Give
    --start: no command advances a pool's own time. The pool file is
    replaced atomically.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked = load_pool(pool, target)
        given = parse_nodes(booked, nodes)
        times: Any = number_or_text(start), number_or_text(end)
        booked.disable(given, times[0], times[1], owner)
        span = (booked.now if start is None else times[0], times[1])
        if span[0] == -np.inf:
            span = (None, span[1])
        table = booked.bookings(nodes=given, during=span)
        store_pool(booked, pool, target, force)
    if table.size:
        show(listing_table(table, booked.clock))
    show(
        f"{target}: {nodes} disabled; "
        f"{format_count(len(table), 'booking')} on these nodes"
    )


def enable(
    pool: PoolFile, nodes: Nodes, output: Target = None, force: Force = False
) -> None:
    """Enable nodes that were disabled: their time without bookings is free again.

    The pool file is replaced atomically.
    """
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        booked = load_pool(pool, target)
        booked.enable(parse_nodes(booked, nodes))
        store_pool(booked, pool, target, force)
    show(f"{target}: {nodes} enabled")


def view(
    pool: PoolFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of the page: .html.")
    ],
    title: Annotated[
        str | None,
        typer.Option(
            help="Title and heading of the page; by default the name of POOL."
        ),
    ] = None,
) -> None:
    """Write an interactive page of the free, booked and disabled time of a pool."""
    check_page(output, "--output")
    name = pool.name if title is None else title
    write_page(output, load_pool(pool), None, name)
    show(f"{output}: page of {pool.name}")


def _disabled_lines(pool: sk.SlotPool) -> list[str]:
    """Return a line for each span in which nodes are disabled for the same reason."""
    spans: dict[tuple[str, float, float], list[Any]] = {}
    for node, start, end, owner, disabled in pool.closed.tolist():
        if disabled:
            spans.setdefault((owner, start, end), []).append(node)
    lines = []
    for (owner, *times), nodes in spans.items():
        names = abbreviate_nodes(_names(pool, nodes), ",")
        text = f"{names} disabled for {owner}"
        for word, time in zip(("from", "until"), times, strict=True):
            if np.isfinite(time):
                at = f"{time:g}" if pool.clock is None else pool.clock.datetime(time)
                text += f" {word} {at}"
        lines.append(text)
    return lines


def _names(pool: sk.SlotPool, nodes: Iterable[int]) -> list[Any]:
    """Return the names of nodes if the pool has names, else their ids."""
    machine = pool.machine
    return [k if machine is None else machine.names[k].item() for k in nodes]


def _rows_of_owner(owner: str, table: NDArray[Any], path: Path) -> NDArray[np.bool_]:
    """Return the mask of an owner's bookings; ValueError if there is none."""
    mine: NDArray[np.bool_] = table["owner"] == owner
    if not mine.any():
        owners = ", ".join(dict.fromkeys(table["owner"].tolist()))
        allowed = (
            f"owners with bookings: {owners}" if owners else "no owner has bookings"
        )
        raise ValueError(f"{path}: owner {owner!r} has no bookings; {allowed}")
    return mine
