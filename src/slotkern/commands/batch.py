"""``slotkern batch``: one window per job of a queue, under one or several policies.

Prints a row per job for one policy, or a row of means per policy for several. Pictures
and files are those of the first policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from slotkern.batch import Batch, Schedule, schedule_batch
from slotkern.batch.jobs import located_jobs
from slotkern.batch.policies import policy_of
from slotkern.batch.scheduling import MEASURES
from slotkern.commands.completion import SHAPES, complete_from
from slotkern.commands.machine import read_free
from slotkern.commands.options import with_options
from slotkern.commands.results import (
    Html,
    Output,
    check_output,
    check_page,
    write_page,
    write_table,
)
from slotkern.commands.tables import (
    DATED,
    abbreviate_nodes,
    add_times,
    format_column,
    format_times,
)
from slotkern.commands.terminal import escaped_text, progress, show
from slotkern.files import SUFFIXES
from slotkern.foundation.context import SlotContext
from slotkern.foundation.extras import extra
from slotkern.machine.files import TABLES
from slotkern.machine.jobs import read_jobs
from slotkern.search.records import date_columns

with extra():
    import typer
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

#: Policies; those that end in a colon are followed by numbers.
POLICY_WORDS = ("css", "slicer:", "conservative", "easy", "bsf:", "optimal")

__all__ = [
    "ChoiceOptions",
    "UnchangedSlots",
    "batch",
    "comparison",
    "register",
    "write_schedule",
]

UnchangedSlots = Annotated[
    Path,
    typer.Argument(
        help=f"File of free slots: {SUFFIXES}; or a saved pool, which is not changed."
    ),
]


@dataclass(frozen=True)
class ChoiceOptions:
    """The choice of alternatives of `schedule_batch`, for each batch."""

    minimize: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(MEASURES),
            help="Total to minimize over all jobs of a batch: time, cost, start, "
            "finish, runtime or a column of the slots; time if neither this nor "
            "--maximize is given.",
        ),
    ] = None
    maximize: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(MEASURES), help="Total to maximize instead."
        ),
    ] = None
    under: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(MEASURES), help="Total bounded by --limit."
        ),
    ] = "cost"
    limit: Annotated[
        float | None,
        typer.Option(
            help="Maximum of the --under total for a whole batch; by default the "
            "mean over the alternatives of each job, summed (eq. 5 of the paper)."
        ),
    ] = None
    shape: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(SHAPES),
            help="ragged: each part ends when its work is done; square: all parts end "
            "together.",
        ),
    ] = "ragged"


@dataclass(frozen=True)
class BatchChoiceOptions(ChoiceOptions):
    """The choice for one batch, with the meaning of budgets."""

    alternatives: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(("amp", "alp")),
            help="Meaning of a budget. amp: maximum cost of the window; alp: maximum "
            "price of every single slot.",
        ),
    ] = "amp"


@dataclass(frozen=True)
class ScheduleResults:
    """The outputs of ``slotkern batch``."""

    plot: Annotated[
        Path | None,
        typer.Option(help="Write a picture of the schedule: .png, .svg or .pdf."),
    ] = None
    curve: Annotated[
        Path | None,
        typer.Option(
            help="Write a picture of the best total for every limit: .png, .svg or "
            ".pdf."
        ),
    ] = None
    html: Html = None
    output: Output = None


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(batch)


@with_options
def batch(
    slots: UnchangedSlots,
    jobs: Annotated[
        Path,
        typer.Argument(
            help=f"File with one row per job: {TABLES}. Columns: nodes, "
            "volume or walltime; optional: name, criterion, order, budget and other "
            "limits."
        ),
    ],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=complete_from(POLICY_WORDS),
            help="Policy: css, slicer:K, slicer:SIZE+SIZE, conservative, easy, bsf:N, "
            "bsf:N:K, optimal or optimal:GAP; by default css. Repeat to compare "
            "policies.",
        ),
    ] = None,
    options: BatchChoiceOptions,
    execute: Annotated[
        bool,
        typer.Option(
            help="Simulate the schedule with random true run times: reserved time x "
            "uniform on [0.2, 1].",
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(help="Seed of the true run times, with --execute.")
    ] = 0,
    results: ScheduleResults,
) -> None:
    """Schedule a batch: one window for each job, under one or several policies.

    Prints one row per job; with several policies, one row of means per
    policy. --plot, --curve, --html and --output refer to the first policy.
    The slots are not changed. Exits with 1 if no job is scheduled.
    """
    words = policy or ["css"]
    policies = [policy_of(word) for word in words]
    check_output(results.output, [slots, jobs])
    check_page(results.html)
    rows = read_jobs(jobs)
    queue, (free, _) = Batch.from_jobs(rows), read_free(slots)
    schedule: Any = schedule_batch  # it checks the texts
    with located_jobs(rows, queue), progress("policies", policies) as steps:
        schedules = [schedule(free, queue, each, **vars(options)) for each in steps]
    first = schedules[0]
    if results.plot is not None:
        from slotkern.plotting.batch import plot_schedule

        plot_schedule(first, path=results.plot)
    if results.curve is not None:
        from slotkern.plotting.batch import plot_trade_off

        plot_trade_off(first, path=results.curve)
    write_page(results.html, first, title=f"{jobs.name} on {slots.name}, {words[0]}")
    if results.output is not None:
        write_schedule(first, results.output)
    if len(schedules) > 1:
        show(comparison(words, schedules, seed if execute else None))
    else:
        show(jobs_table(first, seed if execute else None), summary(first))
    if not first.scheduled.any():
        raise typer.Exit(1)


def summary(schedule: Schedule) -> str:
    """Return the totals of a schedule and its distance from the bound, in two lines."""
    totals = schedule.totals()
    names = ("cost", "processor_time")
    clock: Any = (schedule.windows.context or SlotContext()).clock
    sums = "   ".join(
        f"{name.replace('_', ' ')} {format_times(name, [totals[name]], clock)[0]}"
        for name in names
    )
    done = int(schedule.scheduled.sum())
    text = f"{done} of {len(schedule)} jobs scheduled   {sums}"
    value, bound = schedule.value, schedule.bound
    if done and np.isfinite(bound) and value:
        figures = [format_times(schedule.target, [x], clock)[0] for x in (value, bound)]
        text += (
            f"\n{schedule.target.replace('_', ' ')} {figures[0]}; bound for any "
            f"schedule of these jobs: {figures[1]} "
            f"({abs(value - bound) / abs(value):.1%} away)"
        )
    return text


def jobs_table(schedule: Schedule, seed: int | None) -> Table:
    """One row a job."""
    table = Table(box=SIMPLE_HEAD)
    columns: dict[str, list[str]] = {
        "job": list(schedule.batch.names),
        "alternatives": format_column(schedule.count),
    }
    windows = schedule.windows
    times = {"start": windows.start, "finish": windows.finish}
    if seed is not None:
        run = schedule.execute(seed=seed)
        times |= {"real start": run.start, "real finish": run.finish}
    add_times(table, columns, times, windows.context.clock if windows.context else None)
    columns["cost"] = format_column(windows.cost)
    columns["nodes"] = [
        "" if window is None else abbreviate_nodes(window.names or window.nodes)
        for window in schedule
    ]
    if not schedule.scheduled.all():
        columns["why not"] = [
            reason if window is None else ""
            for window, reason in zip(schedule, schedule.reasons, strict=True)
        ]
    for name in columns:
        left = name in ("job", "nodes", "why not")
        table.add_column(escaped_text(name), justify="left" if left else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(escaped_text, row))
    return table


def comparison(words: list[str], schedules: list[Schedule], seed: int | None) -> Table:
    """One row a policy: means over the scheduled jobs."""
    rows: list[dict[str, float]] = []
    for schedule in schedules:
        means = schedule.means()
        row = {
            "jobs": float(schedule.scheduled.sum()),
            "alternatives": float(len(schedule.alternatives)),
            **{name.replace("_", " "): means[name] for name in means},
        }
        if seed is not None:
            run = schedule.execute(seed=seed)
            ran = run.started
            row["real start"] = float(run.start[ran].mean()) if ran.any() else np.nan
            row["real time"] = (
                float(run.processor_time[ran].mean()) if ran.any() else np.nan
            )
        rows.append(row)
    table = Table(box=SIMPLE_HEAD, caption="means over the scheduled jobs")
    table.add_column("policy", justify="left", no_wrap=True)
    for name in rows[0]:
        table.add_column(name, justify="right")
    clock = (schedules[0].windows.context or SlotContext()).clock
    texts = [
        _format_means(name, [row[name] for row in rows], clock) for name in rows[0]
    ]
    for word, *cells in zip(words, *texts, strict=True):
        table.add_row(escaped_text(word), *cells)
    return table


def _format_means(heading: str, means: list[float], clock: Any) -> list[str]:
    """Format means; with a clock, as dates and durations in whole seconds."""
    alike = {"real start": "start", "real time": "processor_time"}
    name = alike.get(heading, heading.replace(" ", "_"))
    if clock is None or name not in DATED:
        return format_column(means)
    second = 1 / clock.timedelta(1.0).total_seconds()
    return format_times(name, np.rint(np.array(means) / second) * second, clock)


def write_schedule(schedule: Schedule, path: Path) -> None:
    """Write a file with one row per part of each job, and one row per failed job.

    Parameters
    ----------
    schedule : Schedule
    path : Path
        .csv, .json or .parquet. Columns: job, reason, node, start, end, cost; with a
        machine also name, with a clock also start_time and end_time.
    """
    windows, parts = schedule.windows, schedule.windows.parts
    count = np.diff(windows.first)
    job = np.repeat(np.arange(len(schedule)), np.maximum(count, 1))
    there = count[job] > 0
    columns: dict[str, Any] = {
        "job": [schedule.batch.names[i] for i in job.tolist()],
        "reason": [schedule.reasons[i] for i in job.tolist()],
    }

    def of_parts(values: Any) -> list[Any]:
        cells = np.full(len(job), None, object)
        cells[there] = values.tolist()
        return list(cells)

    names = ("node", "start", "end", "cost")
    columns |= {name: of_parts(parts[name]) for name in names}
    context = windows.context or SlotContext()
    if context.machine is not None:
        columns["name"] = of_parts(context.machine.names[parts["node"]])
    if context.clock is not None:
        for name in ("start", "end"):
            times = np.full(len(job), np.nan)
            times[there] = parts[name]
            columns |= date_columns(context.clock, {name: times})
    write_table(path, columns)
