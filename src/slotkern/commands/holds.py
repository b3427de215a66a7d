"""``slotkern ledger hold``, ``confirm``, ``release``, ``bookings``: bookings by id."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import slotkern as sk
from slotkern.foundation.extras import extra
from slotkern.pool.ledger import window_rows

from . import places
from .completion import complete_from, format_count
from .options import with_options
from .pools import number_or_text, require_ledger
from .results import CALENDARS, Listing, check_output, write_listing
from .search_options import Shape
from .tables import listing_table, totals, window_table
from .terminal import show

with extra():
    import typer

__all__ = ["LedgerPlace", "register", "show_id"]

LedgerPlace = Annotated[
    Path,
    typer.Argument(
        parser=places.path,
        help="File of the ledger, .db, or postgresql://user@host/database?pool=name.",
    ),
]
Ids = Annotated[list[int], typer.Argument(help="Ids of bookings: `ledger bookings`.")]
Whose = Annotated[
    str | None,
    typer.Option(help="Owner: an error if the booking belongs to somebody else."),
]
Token = Annotated[
    str | None,
    typer.Option(help="A text by which a repeated command gets its first answer."),
]


def register(group: typer.Typer) -> None:
    """Add the commands to the group ``ledger``."""
    for command in (bookings, hold, confirm, release):
        group.command()(command)


def bookings(
    ledger: LedgerPlace,
    owner: Annotated[
        str | None, typer.Option(help="List only the bookings of this owner.")
    ] = None,
    output: Listing = None,
) -> None:
    """List the bookings of a ledger with their ids and the ends of holds.

    Exits with 1 if there is none.
    """
    check_output(output, [ledger], CALENDARS)
    with _open(ledger, readonly=True) as pool:
        found = pool.open_bookings(owner)
        clock = pool.clock
        table = window_rows(
            [each.window for each in found],
            pool.context,
            id=[each.id for each in found],
            owner=[each.owner for each in found],
            name=[each.window.name for each in found],
            expires=[each.expires and _date(each.expires) for each in found],
        )
    if output is not None:
        write_listing(output, table, clock)
    show(listing_table(table, clock))
    if not found:
        raise typer.Exit(1)


@with_options
def hold(
    slots: LedgerPlace,
    request: sk.Request,
    duration: Annotated[
        str,
        typer.Option(
            "--for",
            help="Time after which the booking ends unless it is confirmed: 10min; a "
            "number is in seconds.",
        ),
    ],
    owner: Annotated[
        str | None, typer.Option(help="Owner of the booking; by default the user.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the booking.")] = None,
    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(sk.CRITERIA),
            help=f"Objective of the search: {', '.join(sk.CRITERIA)}.",
        ),
    ] = "start",
    shape: Shape = "square",
    token: Token = None,
) -> None:
    """Find and book a window that ends by itself unless it is confirmed.

    Prints the parts of the window, and the id for `ledger confirm`. Exits
    with 1 and an explanation if no window exists.
    """
    request = request if name is None else request.replace(name=name)
    how: dict[str, Any] = {"criterion": criterion, "shape": shape, "owner": owner}
    how |= {"token": token, "hold": number_or_text(duration)}
    with _open(slots) as pool:
        booking = pool.place(request, **how)
        if booking is None:
            show(str(sk.explain(pool, request, shape=shape)))  # type: ignore[call-overload]
            raise typer.Exit(1)
        show(window_table(pool.origin, booking.window), totals(booking.window))
    show_id(slots, booking)


def confirm(ledger: LedgerPlace, ids: Ids, owner: Whose = None) -> None:
    """Turn holds into bookings without an end: all, or none if one has ended."""
    with _open(ledger) as pool, pool.turn():
        for i in ids:
            pool.confirm(i, owner=owner)
    show(f"{ledger}: {format_count(len(ids), 'hold')} confirmed")


def release(
    ledger: LedgerPlace, ids: Ids, owner: Whose = None, token: Token = None
) -> None:
    """Release bookings by their ids: all, or none if one is not booked.

    A token is for one id.
    """
    if token is not None and len(ids) != 1:
        raise ValueError(f"--token is for one id, got {len(ids)} ids")
    try:
        with _open(ledger) as pool, pool.turn():
            for i in ids:
                pool.release(i, owner=owner, token=token)
    except LookupError as error:  # no such booking
        raise ValueError(f"{ledger}: {error}") from None
    show(f"{ledger}: {format_count(len(ids), 'booking')} released")


def show_id(place: object, booking: sk.Booking) -> None:
    """Print the id and owner of a booking, and the end of a hold."""
    until = "" if booking.expires is None else f" until {_date(booking.expires)}"
    word = "booked" if booking.expires is None else "held"
    show(f"{place}: {word} for {booking.owner}{until}, id {booking.id}")


def _date(date: datetime) -> str:
    return date.astimezone().isoformat(" ", "seconds")


def _open(ledger: Path, readonly: bool = False) -> sk.SharedPool:
    require_ledger(ledger)
    return sk.SlotPool.open(places.where_of(ledger), readonly=readonly)
