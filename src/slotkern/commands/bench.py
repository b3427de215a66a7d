"""``slotkern bench``: search times on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from slotkern.commands.flags import Application
from slotkern.commands.terminal import show, stdout_console
from slotkern.foundation.extras import extra

with extra():
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    bench = Application(help="Measure search times on this machine.")
    bench.callback()(_group)
    bench.command()(scaling)
    app.add_typer(bench, name="bench")


def _group() -> None:
    """Keep `scaling` a subcommand: typer would otherwise merge the only one."""


def scaling(
    cycles: Annotated[
        int, typer.Option(min=1, help="Number of random environments per size.")
    ] = 20,
    out: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the random environments.")] = 0,
    far: Annotated[
        bool,
        typer.Option(
            "--far",
            help="Measure larger sizes instead: up to 200,000 nodes, a million slots "
            "and jobs of 500 nodes, with --cycles jobs in one environment per size.",
        ),
    ] = False,
) -> None:
    """Print search times by number of nodes and length of the interval.

    Prints Tables 1 and 2 of the paper on AEP: published times, times on this
    machine, and the exponent of growth that fits them best. The published
    algorithms are timed as compiled loops, without overhead of Python. With
    --far, prints times of searches in prepared pools, and of the published
    algorithm up to one second per search.
    """
    from slotkern.files.atomic import make_folder
    from slotkern.studies import load_study
    from slotkern.studies.figures import draw_times
    from slotkern.studies.report import print_times
    from slotkern.studies.times import measure_times

    make_folder(out)  # fails before the measurements, not after them
    if far:
        from slotkern.commands import growth

        measured = growth.measure_growth(growth.AXES, cycles, seed)
        with stdout_console(width=150) as console:
            for one in measured:
                console.print(growth.growth_sheet(one).to_rich())
        growth.draw_growth(measured, out / "growth.png")
        return show(str(out / "growth.png"))
    study = load_study("aep", seed=seed)
    times = measure_times(study, twins=True, cycles=cycles)
    with stdout_console(width=150) as console:
        print_times(times, console)
    show(*map(str, draw_times(study, times, out)))
