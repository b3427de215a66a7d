"""``slotkern trace`` (summary of a workload trace) and ``slotkern replay``."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from slotkern.commands.completion import complete_from, format_count
from slotkern.commands.options import with_options
from slotkern.commands.results import (
    ENDINGS,
    PICTURES,
    RESULTS,
    Html,
    check_folder,
    check_not_input,
    check_output,
    check_page,
    write_page,
    write_table,
)
from slotkern.commands.tables import format_column, metrics_table
from slotkern.commands.terminal import log_to_stderr, progress_bars, show
from slotkern.files.atomic import make_folder, open_atomic
from slotkern.foundation.checks import one_of
from slotkern.foundation.extras import extra
from slotkern.machine.files import TABLES
from slotkern.replays.policies import POLICIES
from slotkern.replays.replay import replay as run_replay
from slotkern.replays.result import Replay
from slotkern.traces.clean import REPAIRS
from slotkern.traces.read import MAX_BYTES, read_trace
from slotkern.traces.summary import trace_summary
from slotkern.traces.trace import Trace

with extra():
    import typer
    from rich.box import SIMPLE_HEAD
    from rich.progress import Progress
    from rich.table import Table

__all__ = ["register"]

File = Annotated[
    Path,
    typer.Argument(
        help="Workload trace: .swf or .gwf, also with .gz; or the output of `sacct -P`."
    ),
]
Clean = Annotated[
    list[str] | None,
    typer.Option(
        autocompletion=complete_from((*REPAIRS, "all")),
        help=f"Repair to apply and count: {', '.join(REPAIRS)}, all; repeat for "
        "several. By default none.",
    ),
]
Errors = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(("raise", "skip")),
        help="Malformed lines. raise: stop with an error; skip: count and ignore them.",
    ),
]
MaxBytes = Annotated[
    int, typer.Option(min=1, help="Maximum size of the uncompressed file, in bytes.")
]

Zone = Annotated[
    str | None,
    typer.Option(
        help="Time zone of the local dates of `sacct`, such as Europe/Berlin; by "
        "default UTC."
    ),
]

#: Metrics of the table and their headings.
SHOWN_METRICS = {
    "wait_mean": "mean wait",
    "wait_median": "median wait",
    "wait_p95": "95% wait",
    "bounded_slowdown_mean": "mean bounded slowdown",
    "bounded_slowdown_p95": "95% bounded slowdown",
    "utilization": "utilization %",
    "queue_max": "longest queue",
    "fairness": "fairness %",
    "makespan": "makespan",
}


@dataclass(frozen=True)
class ReadingOptions:
    """The options of `read_trace`."""

    clean: Clean = None
    errors: Errors = "raise"
    max_bytes: MaxBytes = MAX_BYTES
    zone: Zone = None


@dataclass(frozen=True)
class ReplayOptions:
    """The options of `replay`; some are texts, converted by `values`."""

    cluster: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(("partitions",)),
            help="Number of processors; or partitions: one site per value of field "
            "16; or the sizes of the partitions, such as 1=128,2=64. By default "
            "MaxProcs of the header, else the maximum in use at the same time.",
        ),
    ] = None
    blocked: Annotated[
        list[str] | None,
        typer.Option(
            help="Span without service, START:STOP:PROCESSORS in seconds, or with "
            "dates START/STOP:PROCESSORS, such as 1996-11-20T18:00/1996-11-21:64; "
            "repeat for several."
        ),
    ] = None
    load: Annotated[
        float,
        typer.Option(help="Load factor: divides the times between submissions."),
    ] = 1.0
    more_processors: Annotated[
        int, typer.Option(help="Number of processors to add; negative to remove.")
    ] = 0
    estimates: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(("user", "exact")),
            help="Run time that the scheduler assumes. user: the requested time; "
            "exact: the run time; or a factor on the run time.",
        ),
    ] = "user"
    overrun: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(("kill", "extend")),
            help="Jobs that run longer than requested. kill: end them; extend: let "
            "them run.",
        ),
    ] = "kill"
    width: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(("allocated", "requested")),
            help="Processors of a job: allocated (field 5) or requested (field 8).",
        ),
    ] = "allocated"
    preceding: Annotated[
        bool,
        typer.Option(
            help="Submit a job only after its preceding job and the think time (fields "
            "17, 18), or ignore these fields."
        ),
    ] = True

    prices: Annotated[
        Path | None,
        typer.Option(
            help=f"File of the prices of a processor second over time: {TABLES} "
            "with columns start, price and, optionally, end, in seconds or dates. Adds "
            "the cost of each policy; window policies search under the prices."
        ),
    ] = None

    def values(self) -> dict[str, Any]:
        """Return the arguments of `replay`."""
        return vars(self) | {
            "cluster": _cluster(self.cluster),
            "blocked": [_span(text) for text in self.blocked or ()],
            "estimates": _factor(self.estimates),
        }


@dataclass(frozen=True)
class ReplayResults:
    """The outputs of ``slotkern replay``."""

    plot: Annotated[
        Path | None,
        typer.Option(help="Folder of a picture that compares the policies."),
    ] = None
    html: Html = None
    output: Annotated[
        Path | None,
        typer.Option(
            help="File of the table with all metrics, one row per policy: "
            f"{RESULTS}; or a folder of one .swf per policy, whose wait field "
            "contains the simulated wait."
        ),
    ] = None


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("trace")(show_trace)
    app.command("replay")(replay)


@with_options
def show_trace(
    file: File,
    reading: ReadingOptions,
    *,
    plot: Annotated[
        Path | None,
        typer.Option(help="Write a picture of the load over time: .png, .svg or .pdf."),
    ] = None,
) -> None:
    """Print a summary of a workload trace: jobs, users, processors, load, columns."""
    trace = _read(file, reading)
    found = trace_summary(trace)
    if plot is not None:
        from slotkern.plotting.flows import plot_trace

        plot_trace(trace, path=plot)
    size = found["processors"]
    lines = [
        f"{format_count(found['jobs'], 'job')} of "
        f"{format_count(found['users'], 'user')}, submitted in "
        f"{found['days']:,.1f} days",
        format_count(size, "processor")
        if size
        else "no number of processors in the header",
        f"at most {format_count(found['at_once'], 'processor')} in use at once"
        if found["at_once"]
        else "no job has a recorded run",
    ]
    if math.isfinite(found["load"]):
        lines.append(f"load {100 * found['load']:.1f} %")
    if trace.skipped:
        first = trace.remarks[0] if trace.remarks else ""
        lines.append(
            f"{format_count(trace.skipped, 'line')} skipped, the first: {first}"
        )
    table = Table(box=SIMPLE_HEAD)
    table.add_column("", justify="left")
    names = list(next(iter(found["columns"].values())))
    for name in names:
        table.add_column(name, justify="right")
    for label, values in found["columns"].items():
        table.add_row(label, *format_column([values[name] for name in names]))
    would = [f"{name} {count:,}" for name, count in found["repairs"].items()]
    done = [f"{name} {count:,}" for name, count in trace.repairs.items()]
    if done:
        lines.append(f"cleaned: {', '.join(done)}")
    lines.append(f"--clean would change: {', '.join(would)}")
    show("\n".join(lines), table)


@with_options
def replay(
    file: File,
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=complete_from(POLICIES),
            help=f"Queue policy: {', '.join(POLICIES)}; by default easy. Repeat to "
            "compare.",
        ),
    ] = None,
    options: ReplayOptions,
    reading: ReadingOptions,
    results: ReplayResults,
) -> None:
    """Replay a workload trace under queue policies, and compare their metrics.

    Prints one row per policy; times are in seconds. --html shows the jobs on
    their processors under the first policy.
    """
    plot, output = results.plot, results.output
    check_page(results.html)
    check_folder("--plot", plot, PICTURES)
    check_folder("--output", output, (".swf", ".gwf", ".gz"))
    as_table = output is not None and output.suffix.lower() in ENDINGS
    as_table = as_table and not (output and output.is_dir())
    if as_table:
        check_output(output, [file, options.prices])
    trace = _read(file, reading)
    values = options.values()
    names = policy or ["easy"]
    for name in names:
        one_of("--policy", name, POLICIES)
    if output is not None and not as_table:
        for name in names:
            check_not_input(output / f"{name}.swf", [file])
    done: dict[str, Replay] = {}
    with progress_bars() as shown:
        for name in dict.fromkeys(names):
            bar = shown.add_task(name, total=len(trace))
            report = partial(_advance, shown, bar)
            done[name] = run_replay(trace, policy=name, progress=report, **values)
    if output is not None and as_table:
        rows = [each.metrics() for each in done.values()]
        columns: dict[str, Any] = {"policy": list(done)}
        for key in dict.fromkeys(key for row in rows for key in row):
            columns[key] = [row.get(key, math.nan) for row in rows]
        write_table(output, columns)
    elif output is not None:
        _write_all(
            output, {f"{name}.swf": each.swf_text() for name, each in done.items()}
        )
    if plot is not None:
        from slotkern.plotting.flows import plot_replays

        plot_replays(done, path=make_folder(plot) / "policies.png")
    first = next(iter(done.values()))
    write_page(results.html, first, title=f"{file.name}, {first.policy}")
    show(_heading(trace, first), _table(done, has_prices=options.prices is not None))


def _advance(shown: Progress, bar: Any, submitted: int) -> None:
    shown.update(bar, completed=submitted)


def _read(file: Path, reading: ReadingOptions) -> Trace:
    given: Any = vars(reading) | {"clean": tuple(reading.clean or ())}
    with log_to_stderr():
        return read_trace(file, **given)


def _heading(trace: Trace, done: Replay) -> str:
    sites = len(done.cluster.site)
    where = "" if sites == 1 else f" in {sites} sites"
    size = format_count(int(done.cluster.processors.sum()), "processor")
    text = f"{format_count(len(done), 'job')} on {size}{where}"
    for reason, count in {**trace.repairs, **done.dropped}.items():
        text += f"; {reason}: {count:,}"
    if trace.skipped:
        text += f"; malformed lines skipped: {trace.skipped:,}"
    if done.following:
        text += f"; after the end of a preceding job: {done.following:,}"
    if killed := int(done.killed.sum()):
        text += f"; killed at the requested time: {killed:,}"
    return text + ". Times in seconds."


def _table(done: Mapping[str, Replay], *, has_prices: bool) -> Table:
    """Return the table with one row per policy, with costs if there are prices."""
    found = [each.metrics() for each in done.values()]
    metrics = SHOWN_METRICS | ({"cost": "cost"} if has_prices else {})
    columns = {}
    for name, heading in metrics.items():
        scale = 100.0 if name in ("utilization", "fairness") else 1.0
        columns[heading] = format_column(
            [scale * row.get(name, math.nan) for row in found]
        )
    return metrics_table("policy", done, columns)


def _write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a folder atomically: all are on disk before a rename."""
    make_folder(folder)
    with ExitStack() as stack:
        for name, data in files.items():
            file = stack.enter_context(open_atomic(folder / name))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # errors of writing occur before the first rename


def _cluster(text: str | None) -> Any:
    """Return the cluster of --cluster: a number, columns of partitions, or a text."""
    if text is None:
        return None
    if "=" in text:
        pairs = [pair.partition("=")[::2] for pair in text.split(",")]
        try:
            site, processors = zip(
                *((int(name), int(size)) for name, size in pairs), strict=True
            )
        except ValueError:
            raise ValueError(
                f"--cluster: {text!r} is not PARTITION=PROCESSORS,PARTITION=PROCESSORS"
            ) from None
        return {"site": list(site), "processors": list(processors)}
    try:
        return int(text)
    except ValueError:
        return text


def _factor(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _span(text: str) -> tuple[float | str, float | str, int]:
    span, _, processors = text.rpartition(":")
    start, slash, end = span.partition("/" if "/" in span else ":")
    try:
        number = int(processors)
        return (
            (start, end, number) if slash == "/" else (float(start), float(end), number)
        )
    except ValueError:
        raise ValueError(
            f"--blocked: {text!r} is neither START:STOP:PROCESSORS in seconds nor "
            "START/STOP:PROCESSORS with dates"
        ) from None
