"""``slotkern demo``: the best windows in a random environment, as table and picture."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import slotkern as sk
from slotkern.commands.tables import comparison_table
from slotkern.commands.terminal import show
from slotkern.files.atomic import make_folder
from slotkern.foundation.extras import extra
from slotkern.typing import Shape

with extra():
    import typer

__all__ = ["register"]

CRITERIA: tuple[Any, ...] = (*sk.CRITERIA, "processor_time")
SHAPES: tuple[Shape, ...] = ("ragged", "square")
DRAWN = ("finish", "runtime", "cost")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    folder: Annotated[Path, typer.Option(help="Folder of the picture.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the random environment.")] = 23,
) -> None:
    """Show an example: find, compare and draw windows in a random environment.

    Environment and job follow Toporkov et al. (AEP, section 3.1).
    """
    picture = make_folder(folder) / "gantt.png"
    environment = sk.generate_environment("aep", seed=seed)
    job = sk.Request(nodes=5, volume=310, budget=1500)
    pool = sk.SlotPool(environment.slots)
    show(
        f"{environment.nodes.size} nodes with {environment.slots.size} free slots in "
        f"[0, {environment.horizon:g}): sk.generate_environment('aep', seed={seed})",
        f"The job needs {job.nodes} nodes at the same time, {job.volume:g} units of "
        f"work on each, for at most {job.budget:,g}: sk.Request(5, 310, budget=1500)",
        "Ragged: each part ends when its work is done; square: all parts end together.",
    )
    best = search_all(pool, job)  # not timed: the first search also imports modules
    begin = perf_counter()
    search_all(pool, job)
    spent = perf_counter() - begin
    show(
        f"{len(SHAPES) * len(CRITERIA)} searches took {spent * 1e3:.2f} ms. Each row: "
        "the totals of the window that is best by one criterion."
    )
    show(comparison_table(best))
    show(f"Drawing three of them: {picture}")
    sk.plot_gantt(
        environment,
        {f"best by {name}": best["ragged"][name] for name in DRAWN},
        tasks=environment.tasks,
        horizon=environment.horizon,
        nodes="used",
        path=picture,
        title="The best ragged window by each of three criteria",
    )
    show("For your own nodes and times, see: slotkern free --help, find --help")


def search_all(pool: sk.SlotPool, job: sk.Request) -> dict[str, dict[str, Any]]:
    """Return the best window by every criterion, for each shape."""
    return {
        shape: {name: sk.find_window(pool, job, name, shape=shape) for name in CRITERIA}
        for shape in SHAPES
    }
