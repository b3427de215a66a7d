"""``slotkern demo``: the best windows in a random environment, side by side."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import slotkern as sk
from slotkern.commands.tables import comparison_table
from slotkern.commands.terminal import show
from slotkern.extras import extra
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
    folder: Annotated[Path, typer.Option(help="Where the picture is saved.")] = Path(
        "out"
    ),
    seed: Annotated[int, typer.Option(help="Of the random environment.")] = 23,
) -> None:
    """Find the best windows in a random environment, compare and draw them.

    The environment and the job are those of Toporkov et al. (AEP, section 3.1).
    """
    environment = sk.generate_environment("aep", seed=seed)
    job = sk.Request(nodes=5, volume=310, budget=1500)
    pool = sk.SlotPool(environment.slots)
    show(
        f"{environment.nodes.size} nodes with {environment.slots.size} free slots in "
        f"[0, {environment.horizon:g}): sk.generate_environment('aep', seed={seed})",
        f"A job wants {job.nodes} nodes at once, {job.volume:g} units of work on each, "
        f"for at most {job.budget:,g}: sk.Request(5, 310, budget=1500)",
        "Ragged: each part ends when it is done; square: all parts end together.",
    )
    best = search_all(pool, job)  # the first time modules are loaded, too
    begin = perf_counter()
    search_all(pool, job)
    spent = perf_counter() - begin
    show(
        f"{len(SHAPES) * len(CRITERIA)} searches took {spent * 1e3:.2f} ms: the best "
        "window by each criterion, and along a row what it costs in terms of the others"
    )
    show(comparison_table(best))
    picture = folder / "gantt.png"
    show(f"Drawing three of them: {picture}")
    folder.mkdir(parents=True, exist_ok=True)
    sk.plot_gantt(
        environment,
        {f"best by {name}": best["ragged"][name] for name in DRAWN},
        tasks=environment.tasks,
        horizon=environment.horizon,
        nodes="used",
        path=picture,
        title="The best ragged window by each of three criteria",
    )
    show("Your own nodes and times: slotkern free --help, slotkern find --help")


def search_all(pool: sk.SlotPool, job: sk.Request) -> dict[str, dict[str, Any]]:
    """The best windows by every criterion, for either shape."""
    return {
        shape: {name: sk.find_window(pool, job, name, shape=shape) for name in CRITERIA}
        for shape in SHAPES
    }
