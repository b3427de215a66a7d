"""The commands ``slotkern holes`` and ``slotkern when``.

``holes`` lists how many nodes are free now and for how long; ``when`` forecasts the
start of a job behind a queue. Both print a table or, with ``--json``, one JSON object.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern.foundation.extras import extra
from slotkern.machine.files import TABLES
from slotkern.machine.jobs import read_jobs
from slotkern.replays.forecast import forecast_policies
from slotkern.search.holes import HOLE
from slotkern.search.records import date_columns, strict_json

from .completion import complete_from
from .machine import read_free
from .options import Where, with_options
from .pools import number_or_text
from .results import Output, write_table
from .search_options import AsJson, Plot, SlotsFile
from .tables import forecast_table, format_times, holes_table
from .terminal import show, write
from .windows import check_results

with extra():
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(holes)
    app.command()(when)


def holes(
    slots: SlotsFile,
    at: Annotated[
        str | None,
        typer.Option(help="Start of the windows: a number or a date; by default now."),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(help="Print how long this many nodes are free.")
    ] = None,
    where: Where = None,
    min_performance: Annotated[
        float, typer.Option(help="Minimum performance of every node.")
    ] = 0.0,
    within: Annotated[
        str | None,
        typer.Option(
            help="Column whose value all nodes of a window share, as in rack."
        ),
    ] = None,
    *,
    plot: Plot = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List how many nodes are free now, and for how long.

    Exits with 1 if no node is free, or fewer than --nodes.
    """
    check_results(slots, plot, output)
    free, _ = read_free(slots)
    time: Any = None if at is None else number_or_text(at)
    found = sk.holes(
        free, time, where=where, min_performance=min_performance, within=within
    )
    best = None if nodes is None else found.best_length(nodes)
    if output is not None:
        write_table(output, _columns(found))
    if plot is not None:
        found.plot(path=plot)
    if as_json:
        _print_json(slots, found, nodes, best)
    else:
        show(holes_table(found.frontier, found.clock), repr(found))
        if nodes is not None:
            text = format_times("runtime", [best], found.clock)[0]
            show(f"best length for --nodes {nodes}: {text if best else 'none'}")
    if not len(found) or best == 0:
        raise typer.Exit(1)


def _columns(found: sk.Holes) -> dict[str, Any]:
    """Return the columns of a file: the frontier, with dates if there is a clock."""
    frontier = found.frontier
    columns: dict[str, Any] = {n: frontier[n] for n in frontier.dtype.names or ()}
    if found.clock is not None:
        columns |= date_columns(found.clock, {"end": frontier["end"]})
    return columns


def _print_json(
    slots: Path, found: sk.Holes, nodes: int | None, best: float | None
) -> None:
    """Print the JSON object that docs/json.md describes."""
    columns, clock = {n: found.frontier[n] for n in HOLE.names or ()}, found.clock
    whole: dict[str, Any] = {"slotkern": sk.__version__, "file": str(slots)}
    whole["start"] = found.start
    if clock is not None:
        whole["start_time"] = str(clock.text(found.start))
        columns["end_time"] = clock.text(found.frontier["end"])
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    whole["holes"] = [dict(zip(columns, row, strict=True)) for row in rows]
    if nodes is not None:
        whole["best_length"] = best
    write(json.dumps(strict_json(whole), indent=2, allow_nan=False) + "\n")


@with_options
def when(
    slots: SlotsFile,
    request: sk.Request,
    queue: Annotated[
        Path,
        typer.Option(
            help=f"File of the jobs before this one, {TABLES}, in the "
            "order of the queue. Columns: nodes, walltime or volume; optional: name, "
            "start (of running jobs), user."
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(forecast_policies()),
            help=f"Policy of the scheduler: {', '.join(forecast_policies())}.",
        ),
    ] = "easy",
    history: Annotated[
        Path | None,
        typer.Option(
            help="Trace of past jobs, .swf, .gwf or output of sacct: how long jobs run "
            "as a share of what they request; by default all shares are equally likely."
        ),
    ] = None,
    arrivals: Annotated[
        bool, typer.Option(help="Let jobs of --history be submitted after now.")
    ] = False,
    now: Annotated[
        str | None,
        typer.Option(
            help="Time of the forecast: a number or a date; by default the current "
            "time of the pool, or the first start of a slot."
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Number of simulated runs.")] = 300,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    workers: Annotated[int, typer.Option(help="Number of threads.")] = 1,
    *,
    plot: Plot = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Forecast when a job will start behind the jobs of a queue.

    Running jobs are busy in SLOTS until their requested end, and are in the
    queue with their start.
    """
    check_results(slots, plot, output)
    if arrivals and history is None:
        raise ValueError("--arrivals needs --history: the trace of the jobs")
    free, _ = read_free(slots)
    past = None if history is None else sk.read_trace(history)
    found = sk.forecast(
        free,
        request,
        read_jobs(queue),
        policy=policy,
        history=past,
        arrivals=past if arrivals else None,
        now=None if now is None else number_or_text(now),
        runs=runs,
        seed=seed,
        workers=workers,
    )
    if output is not None:
        columns: dict[str, Any] = {"start": np.sort(found.starts)}
        if found.clock is not None:
            columns |= date_columns(found.clock, columns)
        write_table(output, columns)
    if plot is not None:
        found.plot(path=plot)
    if as_json:
        whole = {"slotkern": sk.__version__, "file": str(slots)} | found.to_dict()
        write(json.dumps(strict_json(whole), indent=2, allow_nan=False) + "\n")
    else:
        show(forecast_table(found), repr(found))
