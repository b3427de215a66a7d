"""``slotkern free``, ``schedule``, ``info``: in the user's own terms."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import slotkern as sk
from slotkern.extras import extra
from slotkern.logger import log
from slotkern.machine.files import read_columns
from slotkern.machine.jobs import read_jobs, requests_of

from .about import info_lines
from .completion import SHAPES, complete_from
from .pools import Force, has_pool_file, lock_for_update, number_or_text
from .results import (
    Html,
    check_output,
    check_page,
    date_columns,
    listing_columns,
    write_page,
    write_table,
)
from .tables import listing_table
from .terminal import log_to_stderr, show

with extra():
    import typer

__all__ = [
    "has_clock",
    "is_bare",
    "is_pool",
    "number_or_text",
    "read_free",
    "register",
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("free")(free)
    app.command("schedule")(schedule)
    app.command("info")(info)


def read_free(path: Path) -> tuple[Any, Any]:
    """Return the slots or the pool in a file, and the array that rows count in."""
    if is_pool(path):
        pool = sk.SlotPool.load(path)
        return pool, pool.origin
    slots = sk.read_slots(path)
    return slots, slots


def is_pool(path: Path) -> bool:
    if path.suffix.lower() != ".npz" or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return {"format.npy", "origin.npy"} <= set(archive.namelist())


def has_clock(path: Path) -> bool:
    """Return whether the slots in a file have a clock, without reading them."""
    if not is_pool(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "clock.npy" in archive.namelist()


def is_bare(value: float | str | None) -> bool:
    """Return whether a duration is a number that needs a unit: not 0 nor inf."""
    return isinstance(value, float) and 0 < value < math.inf


def free(
    machine: Annotated[
        Path, typer.Argument(help="The nodes: .csv or .parquet with a column name.")
    ],
    start: Annotated[str, typer.Option(help="Begin of the horizon, as a date.")],
    end: Annotated[str, typer.Option(help="End of the horizon, as a date.")],
    output: Annotated[
        list[Path],
        typer.Option(
            help="The pool to write, .npz, with names and dates for other commands; or "
            "the free slots alone: .csv, .json or .parquet. More than once for several."
        ),
    ],
    busy: Annotated[
        Path | None,
        typer.Option(help="What is busy: .csv or .parquet with node, start, end."),
    ] = None,
    zone: Annotated[
        str | None, typer.Option(help="Of dates without one, as Europe/Berlin.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(("s", "min", "h", "d")),
            help="What prices are for: s, min, h or d; s if not given.",
        ),
    ] = None,
    processors: Annotated[
        str | None,
        typer.Option(help="The column of processors: each becomes a node of its own."),
    ] = None,
) -> None:
    """Write what busy spans leave free on a machine to a pool with names and dates.

    Says on standard error what is taken for granted: no column of prices, prices for
    each second, busy spans without an end or outside the horizon.
    """
    check_outputs(output, [machine, busy])
    with log_to_stderr():
        table = sk.Machine.read(machine, processors=processors)
        spans = None if busy is None else read_columns(busy, ("node", "start", "end"))
        if unit is None and table.price.any():
            log.info("no --unit is given: prices are for each second")
        times: Any = {"start": start, "end": end, "zone": zone, "unit": unit or "s"}
        found = sk.free_slots(table, spans, **times)
    slots = found.slots
    columns = {"name": found.machine.names[slots["node"]]}
    columns |= {name: slots[name] for name in slots.dtype.names or ()}
    if found.clock is not None:
        columns |= date_columns(found.clock, {n: slots[n] for n in ("start", "end")})
    write_outputs(output, sk.SlotPool(found), columns)
    for path in output:
        show(f"{path}: {found!r}")


def schedule(
    slots: Annotated[Path, typer.Argument(help="Free slots, or a saved pool.")],
    jobs: Annotated[
        Path,
        typer.Argument(
            help="A job a row, .csv, .parquet or .json: nodes, volume or walltime, and "
            "if wanted name, budget, earliest, deadline and the other limits."
        ),
    ],
    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(sk.CRITERIA),
            help="first, start, finish, runtime or cost.",
        ),
    ] = "start",
    shape: Annotated[
        str,
        typer.Option(autocompletion=complete_from(SHAPES), help="square or ragged."),
    ] = "square",
    owner: Annotated[
        str | None,
        typer.Option(
            help="For whom all are booked; the name of the table if not given."
        ),
    ] = None,
    html: Html = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write the pool with its bookings, .npz; or a row a job: .csv, .json "
            "or .parquet. More than once for several."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Find and book a window for each job of a table, in its order.

    The bookings are kept only if --output names a pool file, .npz: POOL itself, or
    another file.
    """
    # A pool with its bookings may take the place of the pool, as `release` does it.
    check_outputs(output, [jobs] if is_pool(slots) else [jobs, slots])
    check_page(html)
    with lock_for_update(slots, output or ()):
        free, _ = read_free(slots)
        pool = free if isinstance(free, sk.SlotPool) else sk.SlotPool(free)
        asked = requests_of(read_jobs(jobs))
        whose = jobs.stem if owner is None else owner  # without, no release by owner
        done = pool.schedule(asked, criterion, shape=shape, owner=whose)  # type: ignore[arg-type]
        table = done.listing()
        write_outputs(output, pool, listing_columns(table, pool.clock), force)
    write_page(html, pool, done, f"{jobs.name} on {slots.name}")
    told = f"{int(done.booked.sum())} of {len(done)} jobs booked"
    if done.booked.any() and not has_pool_file(output or ()):
        target = slots if is_pool(slots) else "pool.npz"
        told += f", but not saved: nothing keeps them without --output {target}"
    show(listing_table(table), told)
    if not done.booked.any():
        raise typer.Exit(1)


def info() -> None:
    """Show versions and what is installed, for reports of faults."""
    show(*info_lines())


def check_outputs(paths: list[Path] | None, reads: Sequence[Path | None]) -> None:
    """Refuse what cannot be written or should not be, before there is anything."""
    for path in paths or ():
        check_output(path, reads, [".npz"])


def write_outputs(
    paths: list[Path] | None, pool: sk.SlotPool, columns: Any, force: bool = False
) -> None:
    """Write the pool or the table to each file, by its suffix."""
    for path in paths or ():
        if path.suffix.lower() == ".npz":
            pool.save(path, overwrite=force)
        else:
            write_table(path, columns)
