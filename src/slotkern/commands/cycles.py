"""``slotkern cycles``: jobs that arrive over time, scheduled in one batch per cycle.

Reads slots and jobs with their arrival times, calls `run_cycles` and prints one row per
job. Local tasks of the nodes reserve their time in the first cycle after they arrive.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np

from slotkern import SlotPool
from slotkern.batch import Cycles, run_cycles
from slotkern.batch.jobs import flow_of, located_jobs
from slotkern.batch.policies import policy_of
from slotkern.commands.batch import POLICY_WORDS, ChoiceOptions, UnchangedSlots
from slotkern.commands.completion import complete_from
from slotkern.commands.machine import is_bare, number_or_text, read_free
from slotkern.commands.options import with_options
from slotkern.commands.results import check_output, check_page, write_page, write_table
from slotkern.commands.search_options import SearchResults
from slotkern.commands.tables import (
    abbreviate_nodes,
    add_times,
    format_column,
    format_times,
)
from slotkern.commands.terminal import escaped_text, show, write
from slotkern.foundation.checks import number, row_label
from slotkern.foundation.extras import extra
from slotkern.machine.clock import Clock, is_number
from slotkern.machine.files import TABLES, read_columns
from slotkern.machine.jobs import read_jobs
from slotkern.search.records import DateColumn, strict_json

with extra():
    import typer
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

__all__ = ["cycles", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(cycles)


@dataclass(frozen=True)
class CycleTimes:
    """The times of the cycles, as texts."""

    length: Annotated[
        str,
        typer.Option(
            help="Time between cycles: a number of time units such as 600, or a "
            "duration such as 1h if the slots have a clock."
        ),
    ]
    count: Annotated[
        int | None,
        typer.Option(
            "--cycles",
            help="Number of cycles; by default until all jobs have arrived.",
        ),
    ] = None
    horizon: Annotated[
        str | None,
        typer.Option(
            help="Maximum time from the start of a cycle to the finish of its windows; "
            "by default unlimited."
        ),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            help="Time of the first cycle; by default the current time of the pool, "
            "or 0."
        ),
    ] = None


@dataclass(frozen=True)
class CycleResults(SearchResults):
    """The outputs of ``slotkern cycles``."""

    plot: Annotated[
        Path | None,
        typer.Option(help="Write a picture of all cycles: .png, .svg or .pdf."),
    ] = None


@with_options
def cycles(
    slots: UnchangedSlots,
    jobs: Annotated[
        Path,
        typer.Argument(
            help=f"File with one row per job: {TABLES}. Columns: "
            "arrival, nodes, volume or walltime; optional: share (true run time / "
            "reserved time), name, criterion, order, budget and other limits."
        ),
    ],
    times: CycleTimes,
    *,
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(POLICY_WORDS),
            help="Policy: css, slicer:K, slicer:SIZE+SIZE, conservative, easy, bsf:N, "
            "bsf:N:K, optimal or optimal:GAP.",
        ),
    ] = "css",
    options: ChoiceOptions,
    local: Annotated[
        Path | None,
        typer.Option(
            help=f"File of local tasks of the nodes: {TABLES}. Columns: node, "
            "start, end; optional: arrival, the time from which the cycles see the "
            "task."
        ),
    ] = None,
    results: CycleResults,
) -> None:
    """Schedule jobs that arrive over time, in one batch per cycle.

    Prints one row per job. A job without a window is tried again in the next
    cycle. The slots are not changed. Exits with 1 if no job is scheduled.
    """
    rule = policy_of(policy)
    check_output(results.output, [slots, jobs, local])
    check_page(results.html)
    rows = read_jobs(jobs)
    batch, arrivals, shares = flow_of(rows)
    free, _ = read_free(slots)
    pool = free if isinstance(free, SlotPool) else SlotPool(free)
    known = _times(arrivals, pool.clock)
    length = _span("--length", times.length, pool.clock)
    horizon = None
    if times.horizon is not None:
        horizon = _span("--horizon", times.horizon, pool.clock)
    start = _moment("--start", number_or_text(times.start), pool.clock)
    update = None if local is None else _local_tasks(local, pool.clock)
    with located_jobs(rows, batch):  # errors about jobs alone
        flow = run_cycles(
            pool,
            batch,
            known,
            length=length,
            cycles=times.count,
            horizon=horizon,
            policy=rule,
            options=lambda _: vars(options),
            update=update,
            lengths=shares,
            start=start,
        )
    if results.plot is not None:
        from slotkern.plotting.batch import plot_cycles

        plot_cycles(flow, path=results.plot)
    names = list(batch.names)
    if results.html is not None:
        write_page(results.html, flow, title=f"{jobs.name} on {slots.name}, {policy}")
    if results.output is not None:
        _write(flow, names, pool.clock, results.output)
    if results.as_json:
        whole = _object(flow, names, slots, jobs, policy)
        write(json.dumps(whole, indent=2, allow_nan=False) + "\n")
    else:
        done = int((flow.cycle >= 0).sum())
        show(
            _table(flow, names, pool.clock),
            f"{done} of {len(names)} jobs scheduled in {len(flow.schedules)} cycles",
        )
    if not (flow.cycle >= 0).any():
        raise typer.Exit(1)


def _span(option: str, text: str, clock: Clock | None) -> Any:
    """Return the duration of an option in time units of the slots."""
    value = number_or_text(text)
    if is_number(value):
        if clock is not None and is_bare(value):
            clock.duration(text, option)  # raises: a number has no unit
        return value
    if clock is None:
        raise ValueError(
            f"{option}: {text!r} is a duration, but the slots have no clock; give a "
            "number of time units of the slots"
        )
    return clock.duration(value, option)


def _moment(option: str, value: Any, clock: Clock | None) -> Any:
    """Return a time or date as a number of the slots' clock; None stays None."""
    if value is None or is_number(value):
        return value
    if clock is None:
        raise ValueError(
            f"{option}: {value!r} is a date, but the slots have no clock; give a "
            "number in time units of the slots"
        )
    return clock.time(value, option)


def _times(arrivals: list[tuple[str, Any]], clock: Clock | None) -> list[float]:
    return [
        number(
            place,
            _moment(
                place, number_or_text(time) if isinstance(time, str) else time, clock
            ),
        )
        for place, time in arrivals
    ]


def _local_tasks(path: Path, clock: Clock | None) -> Callable[[int, SlotPool], None]:
    """Return the update callback that reserves each local task after its arrival."""
    table = read_columns(path, ("node", "start", "end", "arrival"))
    name = table.source
    for title in ("node", "start", "end"):
        if title not in table:
            raise ValueError(
                f"{name} has no column {title!r}; it has {', '.join(table)}"
            )
    columns = {title: np.asarray(table[title]).tolist() for title in table}
    columns.setdefault("arrival", [None] * len(columns["node"]))

    def moment(title: str, i: int) -> float | None:
        cell = columns[title][i]
        if cell is None or str(cell).strip() in ("", "nan"):
            return None
        value = number_or_text(cell) if isinstance(cell, str) else cell
        at = f"{name}, {row_label(name, i)}, column {title!r}"
        return cast("float", _moment(at, value, clock))

    tasks = []
    for i, node in enumerate(columns["node"]):
        first, last = moment("start", i), moment("end", i)
        if first is None or last is None:
            raise ValueError(f"{name}, {row_label(name, i)}: start or end is empty")
        arrival = moment("arrival", i)
        tasks.append((-math.inf if arrival is None else arrival, i, node, first, last))
    tasks.sort(key=lambda task: task[:2], reverse=True)

    def update(cycle: int, pool: SlotPool) -> None:
        while tasks and tasks[-1][0] <= pool.now:
            _, i, node, first, last = tasks.pop()
            if last <= pool.now:
                continue  # already over
            one = node if pool.machine is not None else _id(node, name, i)
            try:
                pool.reserve([one], first, last, owner="local", partly=True)
            except (ValueError, TypeError) as error:
                raise type(error)(f"{name}, {row_label(name, i)}: {error}") from None

    return update


def _id(node: Any, name: str, row: int) -> int:
    try:
        return int(node)
    except ValueError:
        raise ValueError(
            f"{name}, {row_label(name, row)}, column 'node': {node!r} is no node id, "
            "and the slots have no machine with names"
        ) from None


def _windows(flow: Cycles, jobs: int) -> list[Any]:
    """Return the window of each job; None for a job without one."""
    found: list[Any] = [None] * jobs
    for rows, schedule in zip(flow.jobs, flow.schedules, strict=True):
        for job, window in zip(rows.tolist(), schedule.windows, strict=True):
            if window is not None:
                found[job] = window
    return found


def _reasons(flow: Cycles, jobs: int) -> list[str]:
    """Return the reason why each job has no window yet; "" for a scheduled job."""
    found = ["not yet arrived"] * jobs
    for rows, schedule in zip(flow.jobs, flow.schedules, strict=True):
        for job, reason in zip(rows.tolist(), schedule.reasons, strict=True):
            found[job] = "" if reason == "scheduled" else reason
    return found


def _table(flow: Cycles, names: list[str], clock: Clock | None) -> Table:
    """Return the table with one row per job."""
    columns: dict[str, list[str]] = {"job": names}
    number = flow.cycle.astype(float)
    columns["cycle"] = format_column(np.where(number < 0, np.nan, number))
    table = Table(box=SIMPLE_HEAD)
    times = {"start": flow.start, "finish": flow.finish}
    add_times(table, columns, times, clock)
    columns["wait"] = format_times("runtime", flow.wait, clock)
    windows = _windows(flow, len(names))
    columns["nodes"] = [
        "" if window is None else abbreviate_nodes(window.names or window.nodes)
        for window in windows
    ]
    if (flow.cycle < 0).any():
        columns["why not"] = _reasons(flow, len(names))
    for title in columns:
        left = title in ("job", "nodes", "why not")
        table.add_column(escaped_text(title), justify="left" if left else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(escaped_text, row))
    return table


def _write(flow: Cycles, names: list[str], clock: Clock | None, path: Path) -> None:
    """Write a file with a row per part of each job, and one per job without window."""
    rows: list[tuple[Any, ...]] = []
    reasons = _reasons(flow, len(names))
    for job, window in enumerate(_windows(flow, len(names))):
        cycle = None if window is None else int(flow.cycle[job])
        head = (names[job], cycle, reasons[job] or "scheduled")
        if window is None:
            rows.append((*head, None, None, math.nan, math.nan, math.nan))
            continue
        labels = window.names if window.machine is not None else [None] * len(window)
        for part, label in zip(window.slots, labels, strict=True):
            span = float(part["start"]), float(part["end"]), float(part["cost"])
            rows.append((*head, int(part["node"]), label, *span))
    titles = ("job", "cycle", "reason", "node", "name", "start", "end", "cost")
    cells = zip(*rows, strict=True) if rows else ([] for _ in titles)
    columns: dict[str, Any] = dict(zip(titles, map(list, cells), strict=True))
    if all(label is None for label in columns["name"]):
        del columns["name"]
    if clock is not None:
        for title in ("start", "end"):
            times = np.array(columns[title], np.float64)
            columns[f"{title}_time"] = DateColumn(clock, times)
    write_table(path, columns)


def _object(
    flow: Cycles, names: list[str], slots: Path, jobs: Path, policy: str
) -> dict[str, Any]:
    """Return the JSON object that docs/json.md describes."""
    from slotkern import __version__

    reasons, windows = _reasons(flow, len(names)), _windows(flow, len(names))
    columns = {
        name: getattr(flow, name).tolist() for name in ("start", "finish", "wait")
    }
    whole = {
        "slotkern": __version__,
        "file": str(slots),
        "jobs_file": str(jobs),
        "policy": policy,
        "cycles": [
            {
                "time": time,
                "jobs": [names[job] for job in rows.tolist()],
                "scheduled": len(rows) - failed,
                "failures": failed,
            }
            for time, rows, failed in zip(
                flow.times.tolist(), flow.jobs, flow.failures.tolist(), strict=True
            )
        ],
        "jobs": [
            {
                "name": names[job],
                "cycle": None if window is None else int(flow.cycle[job]),
                "reason": reasons[job] or "scheduled",
                **{name: values[job] for name, values in columns.items()},
                "window": None if window is None else window.to_dict(),
            }
            for job, window in enumerate(windows)
        ],
    }
    return cast("dict[str, Any]", strict_json(whole))
