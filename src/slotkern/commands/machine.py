"""``slotkern free``, ``schedule`` and ``info``; reading of slots or pools by suffix.

``free`` makes a pool with node names and dates from a list of nodes and their busy
spans; ``schedule`` books a window for each job of a table.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern.clusters.files import read_slurm_files
from slotkern.clusters.site import Site, read_site
from slotkern.foundation.checks import quote, row_label
from slotkern.foundation.extras import extra
from slotkern.foundation.logger import log
from slotkern.machine.files import TABLES, read_columns
from slotkern.machine.frames import FileColumns
from slotkern.machine.jobs import located_errors, read_jobs, requests_of
from slotkern.search.records import date_columns, listing_columns
from slotkern.tariffs.tables import factors_of_columns, read_tariffs

from . import places
from .about import info_lines
from .completion import SHAPES, complete_from
from .pools import (
    Force,
    has_pool_file,
    is_ledger,
    load_pool,
    lock_for_update,
    number_or_text,
)
from .results import (
    CALENDARS,
    RESULTS,
    Html,
    check_output,
    check_page,
    write_page,
    write_table,
)
from .tables import free_table, listing_table
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


def read_free(path: Path, target: Path | None = None) -> tuple[Any, Any]:
    """Return the slots or the pool of a file, and the array its rows refer to."""
    if is_pool(path):
        pool = load_pool(path, target)
        return pool, pool.origin
    slots = sk.read_slots(path)
    return slots, slots


def is_pool(path: Path) -> bool:
    """Return whether a file is a ledger, or by its members a saved pool."""
    if is_ledger(path):
        return True
    if path.suffix.lower() != ".npz" or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
    return "format.npy" in names and bool({"origin.npy", "rows free.npy"} & names)


def has_clock(path: Path) -> bool:
    """Return whether a file is a pool with a clock, without loading the pool."""
    if not is_pool(path):
        return False
    if is_ledger(path):
        return load_pool(path).clock is not None
    with zipfile.ZipFile(path) as archive:
        return "clock.npy" in archive.namelist()


def is_bare(value: float | str | None) -> bool:
    """Return whether a duration is a number without a unit; 0 and inf need none."""
    return isinstance(value, float) and 0 < value < math.inf


def free(
    machine: Annotated[
        Path | None,
        typer.Argument(
            help=f"File of the nodes: {TABLES}. Column: name; optional: "
            "performance, price and others. Not with --sinfo."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Start of the horizon: a date. With --sinfo by default the time of "
            "the texts."
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            help="End of the horizon: a date. With --sinfo by default a week after "
            "the start."
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of the pool, .npz, with names and dates for other commands; or "
            f"of the free slots alone: {RESULTS}. Repeat for several "
            "files. With --sinfo by default none: the free slots are only listed."
        ),
    ] = None,
    busy: Annotated[
        Path | None,
        typer.Option(
            help=f"File of busy spans: {TABLES} with columns node, start, end; "
            "or a calendar, .ics, whose events name their nodes as LOCATION, else take "
            "all; by default all nodes are free."
        ),
    ] = None,
    available: Annotated[
        Path | None,
        typer.Option(
            help="File of the spans in which nodes can be used at all, such as nights: "
            "a table or a calendar, as for --busy; by default all time."
        ),
    ] = None,
    busy_nodes: Annotated[
        str | None,
        typer.Option(
            help="Nodes that each event of a calendar takes: names or a hostlist; by "
            "default its LOCATION."
        ),
    ] = None,
    sinfo: Annotated[
        Path | None,
        typer.Option(
            help="File with the output of `sinfo`, such as `sinfo -N -l`, or of "
            "`scontrol -o show node`, or `sinfo --json` of Slurm 22.05: the nodes, "
            "instead of MACHINE."
        ),
    ] = None,
    squeue: Annotated[
        Path | None,
        typer.Option(
            help="File with the output of `squeue -l` or `squeue -a -o "
            "'%i|%T|%N|%S|%e|%u|%P|%Y'`, or `squeue --json`: the jobs, with --sinfo."
        ),
    ] = None,
    reservations: Annotated[
        Path | None,
        typer.Option(
            help="File with the output of `scontrol show reservation`, with --sinfo."
        ),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(
            help="Site file, .toml, with --sinfo: its rules of nodes are the prices "
            "and performances of the nodes, unit is that of the prices, zone and "
            "horizon are the defaults of --zone and --end."
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            help="Time zone of dates without an offset, such as Europe/Berlin; "
            "without it, dates need an offset."
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(("s", "min", "h", "d")),
            help="Time unit of prices: s, min, h or d; by default s.",
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help=f"File of prices by time: {TABLES} with columns start, end, "
            "price and, if not for all nodes, node. At other times a node has its "
            "price in MACHINE."
        ),
    ] = None,
    tariffs: Annotated[
        Path | None,
        typer.Option(
            help=f"File of factors of the price by time: {TABLES} with columns "
            "start, factor (or price), optionally end and, if there are several "
            "tariffs, tariff, which the column tariff of MACHINE names. A start is a "
            "date, or a time of day such as 06:00 for all days. A missing start is "
            "the beginning of time."
        ),
    ] = None,
    outside: Annotated[
        float | None,
        typer.Option(
            help="Factor at times for which --tariffs has none, such as those after "
            "the last day-ahead price; by default such a file is refused."
        ),
    ] = None,
    processors: Annotated[
        str | None,
        typer.Option(
            help="Column with the number of processors per node: each processor "
            "becomes a node; by default none."
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            help="Columns whose values are groups of nodes, from the finest to the "
            "coarsest, such as rack,site; checked, and shown in pages. --within and "
            "--limit accept any column."
        ),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            help="Columns of MACHINE that jobs share, such as cores,gpus,memory: the "
            "pool then plans shares of nodes. Columns of BUSY "
            "with these names are what a span takes of its node."
        ),
    ] = None,
    html: Html = None,
) -> None:
    """Write the free time of a machine to a pool with node names and dates.

    The machine is a table with its busy spans, or a cluster as Slurm's
    commands print it: --sinfo, --squeue, --reservations. Assumptions are
    printed on standard error: missing prices, prices per second, busy spans
    without an end or outside the horizon.
    """
    reads = [machine, busy, available, prices, tariffs]
    reads += [sinfo, squeue, reservations, site]
    check_outputs(output, reads)
    check_page(html)
    if sinfo is not None:
        given: dict[str, Any] = {"MACHINE": machine, "--busy": busy}
        given |= {"--available": available, "--busy-nodes": busy_nodes}
        given |= {"--processors": processors, "--capacity": capacity}
        given |= {"--levels": levels}
        _refuse_given(given, "with --sinfo")
        advice = (
            "with --sinfo; write the prices and their unit into a site file, --site"
        )
        _refuse_given({"--unit": unit, "--prices": prices}, advice)
        with log_to_stderr():
            found = _free_of_texts(
                (sinfo, squeue, reservations),
                site,
                tariffs,
                start=start,
                end=end,
                zone=zone,
                outside=outside,
            )
    else:
        given = {"--squeue": squeue, "--reservations": reservations, "--site": site}
        _refuse_given(given, "without --sinfo")
        needed: dict[str, Any] = {"MACHINE": machine, "--start": start, "--end": end}
        needed["--output"] = output
        if lacking := [name for name, value in needed.items() if not value]:
            raise ValueError(f"{lacking[0]} is needed, or --sinfo")
        assert machine is not None
        with log_to_stderr():
            found = _free_of_tables(
                *(machine, busy, prices, tariffs),
                available=available,
                busy_nodes=busy_nodes,
                start=start,
                end=end,
                zone=zone,
                unit=unit,
                processors=processors,
                outside=outside,
                capacity=capacity,
                levels=levels,
            )
    if found.tariffs is not None and any(
        path.suffix.lower() != ".npz" for path in output or ()
    ):
        with log_to_stderr():
            log.info("only pools, .npz, keep tariffs; other files have base prices")
    if output is None and html is None:
        show(free_table(found), "not saved: save the free slots with --output pool.npz")
    slots = found.slots
    columns = {"name": found.machine.names[slots["node"]]}
    columns |= {name: slots[name] for name in slots.dtype.names or ()}
    if found.clock is not None:
        columns |= date_columns(found.clock, {n: slots[n] for n in ("start", "end")})
    shared = found.machine.capacity is not None
    write_outputs(output, sk.HostPool(found) if shared else sk.SlotPool(found), columns)
    title = "free slots"
    if sinfo is not None and found.clock is not None:
        title = f"cluster at {found.clock.origin}"
    write_page(html, found, None, title)
    for path in output or ():
        show(f"{path}: {found!r}")
    if html is not None:
        show(f"{html}: {found!r}")


def _words(text: str | None) -> list[str]:
    """Return the words of a text that commas separate."""
    return [] if text is None else [word.strip() for word in text.split(",")]


def _free_of_tables(
    machine: Path,
    busy: Path | None,
    prices: Path | None,
    tariffs: Path | None,
    *,
    available: Path | None,
    busy_nodes: str | None,
    unit: str | None,
    processors: str | None,
    outside: float | None,
    capacity: str | None,
    levels: str | None,
    **horizon: Any,
) -> sk.FreeSlots:
    names = None
    if capacity is not None:
        names = _words(capacity)
    table = sk.Machine.read(
        machine, processors=processors, capacity=names, levels=_words(levels)
    )
    spans = _busy_spans(busy, busy_nodes, **horizon)
    priced = None if prices is None else _read_spans(prices)
    if unit is None and (table.price.any() or priced is not None):
        log.info("no --unit is given: prices are per second")
    options: dict[str, Any] = {"prices": priced, "outside": outside}
    options["tariffs"] = _factors(tariffs, table, "the column price of MACHINE")
    options["available"] = _busy_spans(available, None)
    return sk.free_slots(table, spans, unit=unit or "s", **horizon, **options)


def _free_of_texts(
    texts: tuple[Path, Path | None, Path | None],
    site: Path | None,
    tariffs: Path | None,
    *,
    start: str | None,
    end: Any,
    zone: str | None,
    outside: float | None,
) -> sk.FreeSlots:
    """Return the free slots of pasted texts, with the prices of a site file."""
    rules = Site() if site is None else read_site(site)
    snapshot = read_slurm_files(*texts, zone=zone or rules.zone or None)
    machine = rules.priced(snapshot.machine)
    if not machine.price.any() and tariffs is None:
        log.info("every price is 0; give the nodes prices in a site file, --site")
    if site is not None and start is None and end is None:
        end = rules.horizon
    factors = _factors(tariffs, machine, "the prices of the site file, --site")
    priced = replace(snapshot, machine=machine)
    return priced.free_slots(start, end, tariffs=factors, outside=outside)


def _factors(path: Path | None, machine: sk.Machine, prices: str) -> Any:
    """Return the tariffs of a file, which multiply the prices of the nodes."""
    if path is None:
        return None
    if not machine.price.any():
        log.info(
            "every cost is 0: tariffs multiply %s, which are 0 or missing; write 1 to "
            "charge the tariff itself",
            prices,
        )
    factors = read_tariffs(path)
    daily = _times_of_day(factors, path.stem)
    if daily is not None:
        return daily
    # A file without the column has one tariff, which gets the name of the file.
    return factors if "tariff" in factors else {path.stem: factors}


def _read_spans(path: Path) -> FileColumns:
    return read_columns(path, ("node", "start", "end"))


def _busy_spans(path: Path | None, nodes: str | None, **horizon: Any) -> Any:
    """Return the busy spans of a file; a calendar alone may lack the nodes."""
    is_calendar = path is not None and path.suffix.lower() in CALENDARS
    if nodes is not None and not is_calendar:
        raise ValueError(f"--busy-nodes {nodes} needs a calendar, --busy NAME.ics")
    if path is None or not is_calendar:
        return path and _read_spans(path)
    if nodes is None:  # `free_slots` has the nodes of an event without LOCATION
        return path
    return sk.read_ics(path, nodes=nodes, **horizon)


_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")


def _times_of_day(table: FileColumns, stem: str) -> dict[str, Any] | None:
    """Return factors by tariff and time of day; None for a table with other starts."""
    starts = table.get("start")
    if not isinstance(starts, np.ndarray) or "end" in table:
        return None
    if not starts.size or not all(isinstance(each, dt.time) for each in starts):
        _refuse_mixed_starts(table.source, starts.tolist())
        return None
    names = np.broadcast_to(table.get("tariff", stem), len(starts))
    factors = factors_of_columns(table, table.source)
    found: dict[str, Any] = {}
    rows = zip(names.tolist(), starts.tolist(), factors.tolist(), strict=True)
    for row, (name, start, factor) in enumerate(rows):
        place = f"{table.source}, {row_label(table.source, row)}"
        if not name:
            raise ValueError(f"{place}: tariff is empty, which means no tariff")
        text, times = f"{start:%H:%M:%S}", found.setdefault(name, {})
        if text in times:
            raise ValueError(f"{place}: the time {text} occurs twice")
        times[text] = factor
    return found


def _refuse_mixed_starts(source: str, starts: list[Any]) -> None:
    """Raise an error for the first start that is not a time of day if others are."""
    valid = [bool(_TIME_OF_DAY.fullmatch(str(start).strip())) for start in starts]
    if any(valid) and not all(valid):
        row = valid.index(False)
        raise ValueError(
            f"{source}, {row_label(source, row)}: start {quote(starts[row])} is no "
            f"time of day, as {quote(starts[valid.index(True)])} is; give times of day "
            "such as 06:00 alone, or dates alone"
        )


def _refuse_given(options: dict[str, Any], when: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option} {value} is not possible {when}")


def schedule(
    slots: Annotated[
        Path,
        typer.Argument(
            parser=places.path,
            help="File of free slots, a saved pool, .npz, or a ledger, .db or a URL, "
            "which stores the bookings.",
        ),
    ],
    jobs: Annotated[
        Path,
        typer.Argument(
            help=f"File with one row per job: {TABLES}. Columns: nodes, "
            "volume or walltime; optional: name, budget, earliest, deadline and other "
            "limits."
        ),
    ],
    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(sk.CRITERIA),
            help=f"Objective of each search: {', '.join(sk.CRITERIA)}.",
        ),
    ] = "start",
    shape: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(SHAPES),
            help="square: all parts end together; ragged: each part ends when its work "
            "is done.",
        ),
    ] = "square",
    owner: Annotated[
        str | None,
        typer.Option(
            help="Owner of all bookings; by default the name of JOBS without suffix."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="With a ledger: a text by which a repeated command gets its first "
            "answer."
        ),
    ] = None,
    html: Html = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of the pool with its bookings, .npz; or of a table with one row "
            f"per job: {RESULTS}. Repeat for several files."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Find and book a window for each job of a table, in the order of its rows.

    Prints one row per job. A ledger stores the bookings. Otherwise they are
    saved only if --output names a pool file, .npz: SLOTS itself or another
    file. Exits with 1 if no job is booked.
    """
    stored = is_ledger(slots)
    if token is not None and not stored:
        raise ValueError(f"--token needs a ledger, .db, got {slots}")
    # --output may replace the pool that is read, as in `release`.
    check_outputs(output, [jobs] if is_pool(slots) else [jobs, slots])
    check_page(html)
    with lock_for_update(slots, output or ()):
        free, _ = read_free(slots, slots if stored else None)
        made = (sk.SlotPool, sk.HostPool)
        pool: Any = free if isinstance(free, made) else sk.SlotPool(free)
        rows = read_jobs(jobs)
        requests = requests_of(rows)
        booking_owner = (
            jobs.stem if owner is None else owner
        )  # `release` needs an owner
        how: dict[str, Any] = {"shape": shape, "owner": booking_owner}
        if stored:
            how["token"] = token
        with located_errors(rows, requests):
            done = pool.schedule(requests, criterion, **how)
        table = done.listing()
        write_outputs(output, pool, listing_columns(table, pool.clock), force)
    write_page(html, pool, done, f"{jobs.name} on {slots.name}")
    count = f"{int(done.booked.sum())} of {len(done)} jobs booked"
    if done.booked.any() and not stored and not has_pool_file(output or ()):
        target = slots if is_pool(slots) else "pool.npz"
        count += f", but not saved: save them with --output {target}"
    show(listing_table(table, pool.clock), count)
    if not done.booked.any():
        raise typer.Exit(1)


def info() -> None:
    """Print versions, installed extras and CPU kernels, for bug reports."""
    show(*info_lines())


def check_outputs(paths: list[Path] | None, reads: Sequence[Path | None]) -> None:
    """Raise an error for an output that cannot be written, before the work starts."""
    for path in paths or ():
        check_output(path, reads, [".npz"])


def write_outputs(
    paths: list[Path] | None, pool: Any, columns: Any, force: bool = False
) -> None:
    """Write the pool to each .npz file, the table to each other one."""
    for path in paths or ():
        if path.suffix.lower() == ".npz":
            pool.save(path, overwrite=force)
        else:
            write_table(path, columns)
