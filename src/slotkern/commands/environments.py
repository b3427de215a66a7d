"""The commands ``slotkern generate`` and ``slotkern slots-from-trace``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import slotkern as sk
from slotkern.commands.completion import complete_from
from slotkern.commands.results import check_not_input
from slotkern.commands.terminal import show
from slotkern.environment import PRESETS
from slotkern.extras import extra
from slotkern.files.slots import format_of

with extra():
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(generate)
    app.command("slots-from-trace")(slots_from_trace)


def generate(
    output: Annotated[Path, typer.Option(help="Where to write the slots.")],
    preset: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(PRESETS),
            help="The papers' environments: aep, square, placement, vo.",
        ),
    ] = "aep",
    nodes: Annotated[int | None, typer.Option(help="How many nodes.")] = None,
    interval: Annotated[
        int | None, typer.Option(help="Length of the scheduling interval.")
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="Least and greatest share of local tasks on a node, as in 0.1:0.5.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same slots.")] = 0,
) -> None:
    """Write the free slots of a random environment to a file."""
    format_of(output)  # before the work: another suffix is refused
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
    """The two numbers of LOW:HIGH."""
    try:
        low, high = map(float, load.split(":"))
    except ValueError:
        raise ValueError(f"--load: {load!r} is not LOW:HIGH, as in 0.1:0.5") from None
    return low, high


def slots_from_trace(
    trace: Annotated[
        Path, typer.Argument(help="A trace: .swf or .gwf, or either packed (.gz).")
    ],
    at: Annotated[
        str,
        typer.Option(
            help="First second of the trace to look at; or a date, as in "
            "'1996-11-20 18:00', where its header says when it begins."
        ),
    ],
    horizon: Annotated[
        str, typer.Option(help="How many seconds from there; or as in 12h.")
    ],
    output: Annotated[Path, typer.Option(help="Where to write the slots.")],
    processors: Annotated[
        int | None,
        typer.Option(help="Size of the machine, if not what the trace says."),
    ] = None,
    performance: Annotated[
        str,
        typer.Option(
            help="A number for all processors, or at random: uniform:LOW:HIGH."
        ),
    ] = "1",
    price: Annotated[
        str,
        typer.Option(
            help="Likewise, or market:LEVEL:EXPONENT:DEVIATION by performance."
        ),
    ] = "0",
    seed: Annotated[int, typer.Option(help="Seed of the laws.")] = 0,
) -> None:
    """Write the free slots that a workload trace leaves on its machine.

    Jobs stand where the trace records them; one that does not fit starts as soon as it
    can, and is counted as delayed. Speeds and prices are in no trace: every processor
    has performance 1 and price 0, unless you say otherwise.
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
