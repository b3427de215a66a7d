"""``slotkern bench``, and streams of different jobs for benchmarks.

A benchmark must not repeat one job: a pool caches bounds, so that a repeated search is
faster than a new one. `stream` therefore varies volume and budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

import slotkern as sk
from slotkern.commands.flags import Application
from slotkern.commands.terminal import show, stdout_console
from slotkern.extras import extra

with extra():
    import typer

__all__ = ["register", "stream"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    bench = Application(help="Measure search times on this machine.")
    bench.callback()(_group)
    bench.command()(scaling)
    app.add_typer(bench, name="bench")


def _group() -> None:
    """Keep `scaling` a subcommand: typer would otherwise merge the only one."""


def stream(
    count: int,
    seed: int | Sequence[int],
    *,
    nodes: int = 5,
    volume: float = 310.0,
    budget: float = 1500.0,
) -> list[sk.Request]:
    """Return requests whose volumes and budgets differ by up to 20% from a base job.

    Parameters
    ----------
    count : int
        Number of requests.
    seed : int or sequence of int
        Seed of the random factors; equal seeds give equal requests.
    nodes, volume, budget
        The base job; by default the job of the study ``aep``.

    Examples
    --------
    >>> import slotkern.commands.bench
    >>> [job.nodes for job in slotkern.commands.bench.stream(3, seed=1)]
    [5, 5, 5]
    """
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.8, 1.2, (count, 2))
    return [
        sk.Request(nodes, volume * size, budget=budget * size * wealth)
        for size, wealth in factors.tolist()
    ]


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
