"""``slotkern cluster show``, ``when``, ``book`` and others, and ``slotkern watch``.

The commands read and book the Slurm or OAR that answers on this computer, or that of a
site file. Exit code 1 means that no window exists, that there is no such booking, or
that a booking has a problem.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import sys
import time
from dataclasses import dataclass
from itertools import count as numbers
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.clusters import (
    ClusterBooking,
    ClusterPlan,
    PlannedWindow,
    SiteAccess,
    book_all,
    check_booking,
    forecast_start,
    open_cluster,
)
from slotkern.clusters import book as book_one
from slotkern.foundation.checks import integer, number, one_of
from slotkern.foundation.extras import extra
from slotkern.foundation.hostlists import abridge, fold
from slotkern.machine import Clock
from slotkern.machine.calendar import duration_of
from slotkern.machine.slurm_values import epoch_clock
from slotkern.replays.forecast import forecast_policies
from slotkern.traces.read import is_sacct_file

from .completion import complete_from
from .flags import Application
from .options import with_options
from .pools import number_or_text
from .results import (
    CALENDARS,
    Html,
    Listing,
    check_output,
    check_page,
    write_listing,
    write_page,
)
from .tables import forecast_table, free_table, metrics_table, window_table
from .terminal import log_to_stderr, show

with extra():
    import typer

__all__ = ["register"]

SiteFile = Annotated[
    Path | None,
    typer.Option(
        "--site",
        help="Site file, .toml: scheduler, guards, prices, partitions; by default the "
        "scheduler that answers here, with prices 0.",
    ),
]
IsOar = Annotated[
    bool | None,
    typer.Option(
        "--oar/--slurm",
        help="The scheduler of the cluster; by default that of the site file, or the "
        "one that answers here.",
    ),
]
Nodes = Annotated[int, typer.Option(help="Number of nodes used at the same time.")]
Walltime = Annotated[
    str,
    typer.Option(
        help="Run time on a node of performance 1: 4:00:00, 2h30m, 1-12:00:00."
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(help="Partition; by default the best of those that the site allows."),
]
Budget = Annotated[float, typer.Option(help="Maximum cost of the reserved time.")]
Earliest = Annotated[str | None, typer.Option(help="Earliest start: a date.")]
Deadline = Annotated[
    str | None, typer.Option(help="Latest end of the reservation: a date.")
]
Where = Annotated[
    str | None,
    typer.Option(
        help="Filter of the nodes, such as 'feature_avx512 and memory >= 64000'; by "
        "default all."
    ),
]


@dataclass(frozen=True)
class QueueOptions:
    """The options of ``slotkern cluster when --queue``."""

    policy: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(forecast_policies()),
            help="Policy of the scheduler, with --queue; by default conservative.",
        ),
    ] = None
    history: Annotated[
        Path | None,
        typer.Option(
            help="Trace of past jobs, such as the output of sacct, with --queue; by "
            "default all shares of the requested times are equally likely."
        ),
    ] = None
    runs: Annotated[
        int | None,
        typer.Option(help="Number of simulated runs, with --queue; by default 300."),
    ] = None

    def check_unused(self) -> None:
        """Raise ValueError for an option that has an effect with --queue alone."""
        for name, value in vars(self).items():
            if value is not None:
                raise ValueError(f"--{name} {value} is for --queue")

    def keywords(self, zone: str | None) -> dict[str, Any]:
        """Return the keywords of `slotkern.forecast`; the cluster has the zone."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        if self.history is not None:
            dates = zone if is_sacct_file(self.history) else None
            given["history"] = sk.read_trace(self.history, zone=dates)
        return given


CRITERIA = ("start", "finish", "cost")
#: Most seconds between two pages of `watch`: a page that is older helps nobody, and
#: browsers count at most 24 days.
_LONGEST_WAIT = 86400
Name = Annotated[str, typer.Option(help="Name of the reservation and its job.")]


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = Application(
        name="cluster",
        help="Read, plan on and book the cluster of this computer: Slurm or OAR.",
    )
    for command in (show_cluster, when, book, bookings, check, release):
        name = "show" if command is show_cluster else None
        group.command(name)(command)
    app.add_typer(group)
    app.command()(watch)


def _access(path: Path | None, is_oar: bool | None) -> SiteAccess:
    return open_cluster(path, {None: "", True: "oar", False: "slurm"}[is_oar])


def _request(
    nodes: int, walltime: str, where: str | None = None, **given: Any
) -> sk.Request:
    duration_of(walltime, "--walltime")
    times: dict[str, Any] = {
        name: number_or_text(given[name])
        for name in ("earliest", "deadline")
        if given.get(name) is not None
    }
    for name, value in times.items():
        if isinstance(value, float) and math.isfinite(value):
            raise ValueError(f"--{name}: {given[name]} is not a date")
    budget = given.get("budget", math.inf)
    return sk.Request(nodes, walltime=walltime, where=where, budget=budget, **times)


def show_cluster(site: SiteFile = None, oar: IsOar = None, html: Html = None) -> None:
    """Show the partitions, and when which nodes are free."""
    check_page(html)
    access = _access(site, oar)
    plan = ClusterPlan.of_snapshot(access.cluster.read(), access.site)
    snapshot = plan.snapshot
    columns: dict[str, list[str]] = {"nodes": [], "limit": [], "free now": []}
    for name, free in plan.free.items():
        each = snapshot.partitions[name]
        columns["nodes"].append(f"{len(each.nodes):,}")
        limit = "none" if each.limit == math.inf else str(dt.timedelta(0, each.limit))
        columns["limit"].append(limit)
        lead = math.ceil(access.site.lead)
        columns["free now"].append(f"{int((free.slots['start'] <= lead).sum()):,}")
    everything = snapshot.free_slots(None, access.site.horizon)
    show(repr(snapshot), metrics_table("partition", plan.free, columns))
    show(free_table(everything))
    write_page(html, everything, None, f"cluster at {snapshot.clock.origin}")


@with_options
def when(
    nodes: Nodes,
    walltime: Walltime,
    site: SiteFile = None,
    oar: IsOar = None,
    partition: Partition = None,
    budget: Budget = math.inf,
    earliest: Earliest = None,
    deadline: Deadline = None,
    where: Where = None,
    html: Html = None,
    queue: Annotated[
        bool,
        typer.Option(
            "--queue",
            help="Forecast when the job starts behind all waiting jobs, without a "
            "reservation, in place of the windows.",
        ),
    ] = False,
    *,
    given: QueueOptions,
) -> None:
    """Find the earliest and the cheapest window, and the front between them.

    Exits with 1 and the reason for each partition if no window exists.
    """
    check_page(html)
    request = _request(
        nodes, walltime, where, budget=budget, earliest=earliest, deadline=deadline
    )
    if queue:
        if html is not None:
            raise ValueError(f"--html {html} is not for --queue, which has no window")
        _show_forecast(_access(site, oar), request, partition, given)
        return
    given.check_unused()
    access = _access(site, oar)
    plan = ClusterPlan.of_snapshot(access.cluster.read(), access.site)
    first = plan.find(request, "start", partition)
    cheapest = plan.find(request, "cost", partition)
    front = plan.front(request, partition)
    if first is None or cheapest is None:
        _explain_none(plan, request, partition)
    free = plan.free[first.partition]
    show(
        f"earliest, partition {first.partition}:",
        window_table(free.slots, first.window),
    )
    show(_line("earliest", first), _line("cheapest", cheapest))
    for k, each in enumerate(front, 1):
        show(_line(f"front {k}", each))
    title = f"{nodes} nodes for {walltime} in partition {first.partition}"
    everything = plan.snapshot.free_slots(None, access.site.horizon)
    write_page(html, everything, first.window, title)


def _show_forecast(
    access: SiteAccess, request: sk.Request, partition: str | None, given: QueueOptions
) -> None:
    """Print by when the job starts in 10, 50 and 90% of the runs, and the promise."""
    with log_to_stderr():
        there = access.cluster.queue()
        keywords = given.keywords(there.snapshot.zone)
        found = forecast_start(there, access.site, request, partition, **keywords)
    show(forecast_table(found), repr(found))


def _explain_none(
    plan: ClusterPlan, request: sk.Request, partition: str | None
) -> NoReturn:
    """Print for each partition why it has no window, and exit with 1."""
    for name, why in plan.explain(request, partition).items():
        show(f"partition {name}: {why}")
    if not plan.free:
        show("no partition is up")
    raise typer.Exit(1)


def _line(what: str, planned: PlannedWindow) -> str:
    window = planned.window
    return (
        f"{what}: start {window.start_time}   finish {window.finish_time}   cost "
        f"{window.cost:.2f}   partition {planned.partition}   nodes "
        f"{abridge(planned.nodes)}"
    )


def book(
    name: Name,
    nodes: Nodes,
    walltime: Walltime,
    site: Annotated[
        list[Path] | None,
        typer.Option(
            help="Site file, .toml; by default the scheduler that answers here. Repeat "
            "to book several sites at the same time: all or none."
        ),
    ] = None,
    oar: IsOar = None,
    partition: Partition = None,
    budget: Budget = math.inf,
    earliest: Earliest = None,
    deadline: Deadline = None,
    where: Where = None,
    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(CRITERIA),
            help="Objective: start, finish or cost; with several sites start.",
        ),
    ] = "start",
    user: Annotated[
        str | None,
        typer.Option(help="User of the reservation; by default the one who runs this."),
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(help="Batch script of the job, submitted into the reservation."),
    ] = None,
) -> None:
    """Reserve the best window, and submit its job with --script.

    The same command again makes no second reservation and no second job.
    Exits with 1 and the reason for each partition if no window exists.
    """
    request = _request(
        nodes, walltime, where, budget=budget, earliest=earliest, deadline=deadline
    )
    one_of("--criterion", criterion, CRITERIA)
    owner = _current_user() if user is None else user
    if script is not None and not script.is_file():
        raise ValueError(f"--script {script} is not a file")
    if len(site or ()) > 1:
        for option, value in (("--script", script), ("--partition", partition)):
            if value is not None:
                raise ValueError(f"{option} {value} is for one site")
        if oar is not None:
            option = "--oar" if oar else "--slurm"
            raise ValueError(
                f"{option} is for one site; write the key system in each site file"
            )
        if criterion != "start":
            raise ValueError(
                f"--criterion {criterion} is for one site; several sites are booked at "
                "their earliest common start"
            )
        with log_to_stderr():
            sites = {str(path): _access(path, None) for path in site or ()}
            done = book_all(sites, name, request, user=owner)
        if done is None:
            show("No window fits on all sites at the same time.")
            raise typer.Exit(1)
        for path, made in done.items():
            show(f"{path}: {_described(made, sites[path])}")
        return
    with log_to_stderr():
        access = _access(site[0] if site else None, oar)
        found = book_one(
            access,
            name,
            request,
            user=owner,
            criterion=criterion,
            partition=partition,
            command=() if script is None else (str(script.resolve()),),
        )
    if found is None:
        _explain_none(
            ClusterPlan.of_snapshot(access.cluster.read(), access.site),
            request,
            partition,
        )
    show(_described(found, access))


def _current_user() -> str:
    """Return the name of the user that runs this process."""
    import pwd  # Windows has no such module, and no Slurm either

    return pwd.getpwuid(os.geteuid()).pw_name


def _clock(access: SiteAccess) -> Clock:
    """Return the clock of bookings, whose times are seconds since 1970."""
    return epoch_clock(access.cluster.zone)


def _described(booking: ClusterBooking, access: SiteAccess) -> str:
    clock = _clock(access)
    times = f"{clock.datetime(booking.start)} to {clock.datetime(booking.end)}"
    number = "" if booking.number is None else f", reservation {booking.number}"
    job = "" if booking.job is None else f", job {booking.job}"
    user = f", user {booking.user}" if booking.user else ""
    nodes = abridge(booking.nodes) if booking.nodes else "no nodes"
    return f"{booking.name}: {nodes}, {times}{user}{number}{job}"


def bookings(site: SiteFile = None, oar: IsOar = None, output: Listing = None) -> None:
    """List all reservations of the cluster, each with the job of its name.

    Exits with 1 if there is none.
    """
    check_output(output, [site], CALENDARS)
    access = _access(site, oar)
    found = access.cluster.bookings()
    if output is not None:
        write_listing(output, _listing(found), _clock(access))
    for each in found:
        show(_described(each, access))
    if not found:
        show("no reservations")
        raise typer.Exit(1)


def _listing(found: list[ClusterBooking]) -> NDArray[Any]:
    """Return reservations as a listing of bookings, whose owners are their users."""
    columns = {
        "owner": np.array([each.user for each in found], np.str_),
        "name": np.array([each.name for each in found], np.str_),
        "nodes": np.array([fold(each.nodes) for each in found], np.str_),
        "start": np.array([each.start for each in found], np.float64),
        "finish": np.array([each.end for each in found], np.float64),
        "job": np.array([str(each.job or "") for each in found], np.str_),
    }
    table = np.empty(len(found), [(name, c.dtype) for name, c in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table


def check(name: Name, site: SiteFile = None, oar: IsOar = None) -> None:
    """Check a booking: does it exist, do its nodes work, does nothing overlap it?

    Exits with 1 if there is a problem.
    """
    access = _access(site, oar)
    found, problems = check_booking(access, name)
    if found is not None:
        show(_described(found, access))
    for problem in problems:
        show(f"problem: {problem}")
    if problems:
        raise typer.Exit(1)
    show("no problem")


def release(
    name: Name,
    site: SiteFile = None,
    oar: IsOar = None,
    number: Annotated[
        int | None,
        typer.Option(
            help="Number of the reservation, if OAR has several of this name; see "
            "slotkern cluster bookings."
        ),
    ] = None,
) -> None:
    """Cancel the job of a booking and delete its reservation.

    Exits with 1 if there is no such reservation.
    """
    if not _access(site, oar).cluster.release(name, number):
        show(f"{name}: there is no such reservation")
        raise typer.Exit(1)
    show(f"{name}: released")


def watch(
    page: Annotated[Path, typer.Argument(help="File of the page: .html.")],
    site: SiteFile = None,
    oar: IsOar = None,
    every: Annotated[
        float, typer.Option(help="Seconds between two pages, at least 1.")
    ] = 10.0,
    count: Annotated[
        int | None, typer.Option(help="Stop after this number of pages.")
    ] = None,
) -> None:
    """Keep a page of the cluster up to date while it runs; Ctrl-C ends it.

    A browser that shows the page loads it again. While the cluster cannot be
    read, the title reports that, and the page shows the last state.
    """
    check_page(page, "PAGE")
    if number("--every", every, least=1) > _LONGEST_WAIT:
        raise ValueError(f"--every must be at most {_LONGEST_WAIT}, a day, got {every}")
    if count is not None:
        integer("--count", count, least=1)
    access = _access(site, oar)
    free, date = None, None
    for k in numbers(1):
        try:
            snapshot = access.cluster.read()
            free = snapshot.free_slots(None, access.site.horizon)
            date = snapshot.clock.origin
            title = f"cluster at {date}"
        except ValueError as error:  # no answer, or output that cannot be parsed
            if free is None:
                raise
            title = f"cluster not readable: {error}; its state at {date}"
        sk.view(free, title=title).save(page, refresh=every)
        show(f"{page}: {title}")
        sys.stdout.flush()
        if k == count:
            return
        time.sleep(every)
