"""``slotkern generate`` and ``slotkern slots-from-trace``: files of free slots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import slotkern as sk
from slotkern.commands.completion import complete_from
from slotkern.commands.results import check_not_input
from slotkern.commands.terminal import show
from slotkern.environment import PRESETS
from slotkern.files import SUFFIXES
from slotkern.files.slots import format_of
from slotkern.foundation.extras import extra

with extra():
    import typer

__all__ = ["register"]

SLOTS_FILE = f"File of the slots: {SUFFIXES}."


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(generate)
    app.command("slots-from-trace")(slots_from_trace)


def generate(
    output: Annotated[Path, typer.Option(help=SLOTS_FILE)],
    preset: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(PRESETS),
            help=f"Environment of the papers: {', '.join(PRESETS)}.",
        ),
    ] = "aep",
    nodes: Annotated[
        int | None, typer.Option(help="Number of nodes; by default that of the preset.")
    ] = None,
    interval: Annotated[
        int | None,
        typer.Option(
            help="Length of the scheduling interval in time units; by default that of "
            "the preset."
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="Range of the share of each node's time that local tasks use, such as "
            "0.1:0.5; by default that of the preset.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed; equal seeds give equal slots.")] = 0,
) -> None:
    """Write the free slots of a random environment to a file."""
    format_of(output)  # raises for an unknown suffix before the work
    shares = None if load is None else _shares(load)
    environment = sk.generate_environment(
        preset, nodes=nodes, interval=interval, load=shares, seed=seed
    )
    sk.write_slots(output, environment.slots)
    show(
        f"{output}: {environment.slots.size:,} free slots of "
        f"{environment.nodes.size:,} nodes in [0, {environment.horizon:,g}), "
        f"{environment.tasks.size:,} local tasks"
    )


def _shares(load: str) -> tuple[float, float]:
    """Return the two numbers of LOW:HIGH."""
    try:
        low, high = map(float, load.split(":"))
    except ValueError:
        raise ValueError(f"--load: {load!r} is not LOW:HIGH, such as 0.1:0.5") from None
    return low, high


def slots_from_trace(
    trace: Annotated[
        Path, typer.Argument(help="Workload trace: .swf or .gwf, also with .gz.")
    ],
    at: Annotated[
        str,
        typer.Option(
            help="Start of the slots: seconds from the start of the trace, or a date "
            "such as '1996-11-20 18:00' if the header contains the start time."
        ),
    ],
    horizon: Annotated[
        str,
        typer.Option(help="Length of the horizon: seconds, or a duration such as 12h."),
    ],
    output: Annotated[Path, typer.Option(help=SLOTS_FILE)],
    processors: Annotated[
        int | None,
        typer.Option(help="Number of processors; by default MaxProcs of the trace."),
    ] = None,
    performance: Annotated[
        str,
        typer.Option(
            help="Performance of the processors: one number for all, or random: "
            "uniform:LOW:HIGH."
        ),
    ] = "1",
    price: Annotated[
        str,
        typer.Option(
            help="Price per second of the processors: one number for all, "
            "uniform:LOW:HIGH, or market:LEVEL:EXPONENT:DEVIATION by performance."
        ),
    ] = "0",
    seed: Annotated[
        int, typer.Option(help="Seed of random performances and prices.")
    ] = 0,
) -> None:
    """Write the free slots of the machine of a workload trace to a file.

    Jobs are placed at their recorded starts; a job that does not fit starts
    at the first time at which it fits, and is counted as delayed. Traces
    contain no performances or prices: set them with --performance and
    --price.
    """
    from slotkern.traces.free_slots import slots_from_trace as free_slots

    format_of(output)
    check_not_input(output, [trace])
    found = free_slots(
        trace,
        at,
        horizon,
        processors=processors,
        performance=performance,
        price=price,
        seed=seed,
    )
    sk.write_slots(output, found.slots)
    show(
        f"{output}: {found.slots.size:,} free slots of {found.processors:,} processors "
        f"in [{found.start:,.10g}, {found.end:,.10g}); {found.jobs:,} jobs placed, "
        f"{found.delayed:,} of them delayed, {found.skipped:,} skipped"
    )
