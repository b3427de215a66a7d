"""``slotkern ledger``: create, list, follow, shrink, check and copy ledgers.

All other commands accept a ledger, a file .db or a URL, instead of a pool file: what
they book is stored in it. `holds` has the commands for bookings by their ids.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import slotkern as sk
from slotkern.foundation.extras import extra
from slotkern.ledger.codec import entry_record

from . import holds, places, serve
from .flags import Application
from .holds import LedgerPlace
from .machine import read_free
from .pools import number_or_text, require_ledger
from .results import Output, check_output, check_page, write_table
from .terminal import show

with extra():
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = Application(
        name="ledger", help="Manage ledgers: pools that several processes change."
    )
    for command in (create, log, follow, compact, check, backup, export, serve.token):
        group.command()(command)
    holds.register(group)
    app.add_typer(group)


def create(
    slots: Annotated[
        Path,
        typer.Argument(
            parser=places.path,
            help="Saved pool, .npz; a file of free slots; or another ledger.",
        ),
    ],
    ledger: LedgerPlace,
) -> None:
    """Create a ledger from a pool with its bookings, or from free slots.

    The current state of another ledger is copied without its log.
    """
    require_ledger(ledger)
    free, _ = read_free(slots)
    pools = sk.SlotPool, sk.HostPool
    pool = free.copy() if isinstance(free, pools) else sk.SlotPool(free)
    shared = pool.share(places.where_of(ledger))
    show(f"{ledger}: ledger of {len(shared.windows()):,} bookings")


def log(
    ledger: LedgerPlace,
    user: Annotated[
        str | None, typer.Option(help="List only the calls of this user.")
    ] = None,
    since: Annotated[int, typer.Option(help="List only calls after this version.")] = 0,
    output: Output = None,
) -> None:
    """List the calls that changed a ledger: version, time in UTC, user, request.

    Exits with 1 if there is none.
    """
    check_output(output, [ledger])
    table = _open(ledger).calls(user=user, since=since)
    if output is not None:
        columns = {name: table[name] for name in table.dtype.names or ()}
        columns["time"] = table["time"].astype(str)
        write_table(output, columns)
    for call in table:
        print(call["last"], f"{call['time']}Z", call["user"], call["what"])
    if not table.size:
        raise typer.Exit(1)


def follow(
    ledger: LedgerPlace,
    since: Annotated[
        int | None,
        typer.Option(help="Start after this version; by default with the next entry."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="Stop after this number of entries.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            help="Instead of lines: keep an interactive page of the pool up to date in "
            "this file, .html. A browser that shows it loads it again.",
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(help="Seconds between two pages, at least 1.")
    ] = 2.0,
) -> None:
    """Print the entries of a ledger as they come: one JSON object per line.

    With --html, write a page whenever the ledger has changed.
    """
    check_page(html)
    pool = _open(ledger)
    if html is not None:
        _follow_page(pool, ledger, html, every, since, count)
        return
    if count == 0:
        return
    try:
        for i, entry in enumerate(pool.follow(since), 1):
            print(json.dumps(entry_record(entry)))
            sys.stdout.flush()
            if i == count:
                return
    except LookupError as error:  # the entries were dropped
        raise ValueError(f"{ledger}: {error}") from None


def _follow_page(
    pool: sk.SharedPool,
    ledger: Path,
    page: Path,
    every: float,
    since: int | None,
    count: int | None,
) -> None:
    first = pool.version if since is None else since
    written = None
    while True:
        if pool.version != written:
            written = pool.version
            title = f"{ledger.name}, version {written}"
            sk.view(pool, title=title).save(page, refresh=every)
            show(f"{page}: version {written}")
            sys.stdout.flush()
        if count is not None and written - first >= count:
            return
        time.sleep(every)
        pool.refresh()


def compact(
    ledger: LedgerPlace,
    keep: Annotated[
        str, typer.Option(help="Age of the entries to keep: a duration.")
    ] = "30d",
) -> None:
    """Drop old entries and their tokens; bookings are not affected."""
    require_ledger(ledger)
    age = number_or_text(keep)
    count = sk.SlotPool.open(places.where_of(ledger)).compact(
        keep if age is None else age
    )
    show(f"{ledger}: {count:,} entries dropped")


def check(ledger: LedgerPlace) -> None:
    """Check all rows of a ledger by code that does not write it.

    Exits with 1 if there is a violation.
    """
    from slotkern.ledger.check import check_ledger

    require_ledger(ledger)
    report = check_ledger(places.where_of(ledger))  # also of one that cannot be opened
    print(f"{ledger}: {report}")
    if not report:
        raise typer.Exit(1)


def backup(
    ledger: LedgerPlace,
    output: Annotated[Path, typer.Argument(help="File of the copy, .db.")],
) -> None:
    """Write a copy of a ledger as of one moment, also while others write.

    The copy is a file, also of a ledger in a database.
    """
    require_ledger(output)
    _open(ledger).backup(output)
    show(f"{output}: copy of {ledger}")


def export(
    ledger: LedgerPlace,
    output: Annotated[Path, typer.Argument(help="Pool file, .npz.")],
) -> None:
    """Write the current state of a ledger as a pool file."""
    _open(ledger).save(output)
    show(f"{output}: state of {ledger}")


def _open(ledger: Path) -> sk.SharedPool:
    """Open a ledger to read it."""
    require_ledger(ledger)
    return sk.SlotPool.open(places.where_of(ledger), readonly=True)
