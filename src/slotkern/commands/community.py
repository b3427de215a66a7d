"""``slotkern community``: simulate a community of schedulers and compare scenarios.

Every scenario runs the same workloads, one per seed. The table has one column per
scenario: means over the seeds of the metrics of each run, times in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from slotkern.commands.completion import complete_from, format_count
from slotkern.commands.options import with_options
from slotkern.commands.results import PICTURES, check_folder
from slotkern.commands.tables import format_column, metrics_table
from slotkern.commands.terminal import progress, show
from slotkern.communities.result import CommunityRun, compare_communities
from slotkern.communities.scenarios import (
    SCENARIOS,
    Centralized,
    Community,
    Independent,
)
from slotkern.communities.simulate import simulate_community
from slotkern.communities.workload import (
    PRESETS,
    CommunityWorkload,
    community_from_trace,
    generate_community,
)
from slotkern.files.atomic import make_folder
from slotkern.foundation.checks import integer
from slotkern.foundation.extras import extra
from slotkern.traces.read import read_trace

with extra():
    import typer
    from rich.table import Table

__all__ = ["community", "register"]

#: Metrics of the table: heading and factor of each.
SHOWN_METRICS = {
    "completion": ("completed %", 100.0),
    "response": ("response", 1.0),
    "waiting": ("waiting", 1.0),
    "slowdown": ("slowdown", 1.0),
    "own": ("own node %", 100.0),
    "utilization": ("utilization %", 100.0),
    "request_others": ("requests", 1.0),
    "accept_request": ("accepts", 1.0),
    "inform": ("informs", 1.0),
    "accept_inform": ("better found %", 100.0),
    "assign_inform": ("moved %", 100.0),
    "messages": ("messages", 1.0),
}
SCENARIO_HELP = (
    "Scenario to simulate: ind, cen, dec-g, dec-p; cen:FALLBACK (most-free, "
    "least-load, central-fcfs, central-scan); dec:K for K neighbours. Repeat to "
    "compare; by default ind, cen, dec-g and dec-p."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(community)


@dataclass(frozen=True)
class GeneratedOptions:
    """The options of `generate_community`."""

    preset: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(PRESETS),
            help=f"Preset of the generated workload: {', '.join(PRESETS)}.",
        ),
    ] = "casa"
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of generated jobs; by default that of the preset."
        ),
    ] = None
    nodes: Annotated[int, typer.Option(min=1, help="Number of generated nodes.")] = 26


@dataclass(frozen=True)
class TraceOptions:
    """The options of `community_from_trace`."""

    homes: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(("partition", "origin_site", "user")),
            help="Nodes made from a trace: one per partition, origin_site or user; or "
            "a number of equal nodes.",
        ),
    ] = "partition"
    sample: Annotated[
        int, typer.Option(min=1, help="Use every K-th job of a trace; 1 uses all.")
    ] = 1
    squeeze: Annotated[
        float,
        typer.Option(
            help="Factor on the times between submissions of a trace; below 1 raises "
            "the load."
        ),
    ] = 1.0
    windows: Annotated[
        float,
        typer.Option(
            help="Share of the nodes and jobs of a trace with label 1, from 0 to 1; "
            "the others have label 0."
        ),
    ] = 0.0


@dataclass(frozen=True)
class MessageOptions:
    """The options of `Community`."""

    loss: Annotated[float, typer.Option(help="Probability that a message is lost.")] = 0
    latency: Annotated[
        float, typer.Option(help="Latency of a message, in seconds.")
    ] = 0.1
    retries: Annotated[
        int,
        typer.Option(
            min=0, help="Number of further attempts for a job without an offer."
        ),
    ] = 0


@with_options
def community(
    *,
    trace: Annotated[
        Path | None,
        typer.Argument(
            help="Workload trace: .swf or .gwf, also with .gz; by default the workload "
            "is generated."
        ),
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=complete_from((*SCENARIOS, "cen:", "dec:")),
            help=SCENARIO_HELP,
        ),
    ] = None,
    generated: GeneratedOptions,
    taken: TraceOptions,
    messages: MessageOptions,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of workloads, one per seed.")
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Folder of the pictures, which show the first seed."),
    ] = None,
) -> None:
    """Simulate schedulers that negotiate jobs (CASA), and compare scenarios.

    Prints means over the seeds, with the standard error of the waiting time;
    times are in seconds.
    """
    check_folder("--plot", plot, PICTURES)
    chosen = {
        name: _scenario(name, messages) for name in dict.fromkeys(scenario or SCENARIOS)
    }
    rows = None if trace is None else read_trace(trace)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
    common: dict[str, list[float]] = {name: [] for name in chosen}
    failures: dict[str, dict[str, int]] = {name: {} for name in chosen}
    first: dict[str, CommunityRun] = {}
    each_run = [(k, name) for k in range(seed, seed + seeds) for name in chosen]
    with progress("runs", each_run) as steps:
        for k, mine in groupby(steps, key=itemgetter(0)):
            work: CommunityWorkload
            if rows is None:
                work = generate_community(**vars(generated), seed=k)
            else:
                work = community_from_trace(
                    rows,
                    **vars(taken) | {"homes": _homes(taken.homes)},
                    offset=k % taken.sample,
                    seed=k,
                )
            runs = {
                name: simulate_community(work.jobs, work.nodes, chosen[name], seed=k)
                for _, name in mine
            }
            shared = compare_communities(list(runs.values()))
            for name, run in runs.items():
                found[name].append(run.metrics())
                common[name].append(run.metrics(shared)["waiting"])
                for reason, count in run.failures().items():
                    failures[name][reason] = failures[name].get(reason, 0) + count
            first = first or runs
    if plot is not None:
        from slotkern.plotting.communities import plot_communities, plot_flow

        folder = make_folder(plot)
        title = (
            "One run of each" if seeds == 1 else f"Seed {seed}, the first of {seeds}"
        )
        plot_communities(first, title=title, path=folder / "communities.png")
        for name, run in first.items():
            file = folder / f"flow-{name.replace(':', '-')}.png"
            plot_flow(run, title=name, path=file)
    one = next(iter(first.values()))
    heading = (
        f"{format_count(len(one), 'job')} on {format_count(len(one.nodes), 'node')}, "
    )
    heading += format_count(seeds, "seed")
    show(heading + ". Times in seconds.", _table(found, common), *_failed(failures))


def _scenario(
    text: str, messages: MessageOptions
) -> Independent | Centralized | Community:
    name, _, rest = text.partition(":")
    if name == "cen" and rest:
        return Centralized(rest)  # type: ignore[arg-type]
    neighbours: Any = {"dec-g": "all", "dec-p": 6}.get(text)
    if name == "dec" and rest:
        try:
            neighbours = integer("dec", int(rest), least=1)
        except ValueError:
            raise ValueError(
                f"--scenario: {text!r} is not dec:K with a number K of neighbours >= 1"
            ) from None
    if neighbours is not None:
        return Community(neighbours, **vars(messages))
    if text not in SCENARIOS:
        names = ", ".join(SCENARIOS)
        raise ValueError(
            f"--scenario: {text!r} is none of {names}, cen:FALLBACK, dec:K"
        )
    return SCENARIOS[text]


def _homes(text: str) -> str | int:
    try:
        return int(text)
    except ValueError:
        return text


def _table(
    found: dict[str, list[dict[str, float]]], common: dict[str, list[float]]
) -> Table:
    """Return the table with one column per scenario, which fits 80 columns."""
    rows = {}
    for metric, (heading, scale) in SHOWN_METRICS.items():
        values = [[each[metric] for each in runs] for runs in found.values()]
        rows[heading] = format_column([scale * float(np.mean(each)) for each in values])
        if metric == "waiting":
            rows["waiting +-"] = format_column([_error(each) for each in values])
            rows["waiting, median"] = format_column(
                [float(np.median(each)) for each in values]
            )
            shared = [float(np.mean(each)) for each in common.values()]
            rows["waiting, common jobs"] = format_column(shared)
    cells = zip(*rows.values(), strict=True)
    return metrics_table("", rows, dict(zip(found, cells, strict=True)))


def _error(values: list[float]) -> float:
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def _failed(failures: dict[str, dict[str, int]]) -> list[str]:
    return [
        f"{name}: failed: "
        + ", ".join(f"{reason} {count:,}" for reason, count in sorted(why.items()))
        for name, why in failures.items()
        if why
    ]
