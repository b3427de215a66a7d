"""``slotkern bench``; and streams of jobs: a repeated one is faster than others."""

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
    bench = Application(help="Measure the searches on this machine.")
    bench.callback()(_group)
    bench.command()(scaling)
    app.add_typer(bench, name="bench")


def _group() -> None:
    """Without it, typer would take the only command for the whole."""


def stream(
    count: int,
    seed: int | Sequence[int],
    *,
    nodes: int = 5,
    volume: float = 310.0,
    budget: float = 1500.0,
) -> list[sk.Request]:
    """Return requests around a base job: volumes and budgets within a fifth of it.

    Parameters
    ----------
    count : int
        How many.
    seed : int or sequence of int
        The same seed, the same jobs.
    nodes, volume, budget
        The base job; by default that of the study ``aep``.

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
        int, typer.Option(min=1, help="Environments for each size.")
    ] = 20,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the environments.")] = 0,
    far: Annotated[
        bool,
        typer.Option(
            "--far",
            help="Nodes to 200,000, slots to a million and jobs to 500 nodes instead: "
            "as many jobs as --cycles says in one environment of each size.",
        ),
    ] = False,
) -> None:
    """Print working times by nodes and by interval, the paper's beside this machine's.

    The tables are Tables 1 and 2 of the paper on AEP, as ``reproduce aep`` prints
    them, with the power of nodes or interval that fits the times best. The paper's
    algorithms are timed as compiled loops alone. With --far,
    times of searches in pools prepared once, beside the papers' algorithm while one
    search takes it no longer than a second.
    """
    from slotkern.files.atomic import make_folder
    from slotkern.studies import load_study
    from slotkern.studies.figures import draw_times
    from slotkern.studies.report import print_times
    from slotkern.studies.times import measure_times

    make_folder(out)  # before, and not after, all has been measured
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
