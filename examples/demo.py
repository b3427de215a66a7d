"""The best window by each criterion in one random environment, side by side.

``make demo`` runs this. The environment and the job are those of Toporkov et al. (AEP,
section 3.1): 100 nodes with local tasks, five of which a job wants at once. Every row
of the table is the best window by one criterion; along a row stands what that costs in
terms of the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

import slotkern as sk
from slotkern.commands.tables import comparison_table

CRITERIA = ("first", "start", "finish", "runtime", "cost", "processor_time")
SHAPES = ("ragged", "square")


def main(folder: Path = Path("out"), seed: int = 23) -> None:
    """Print the comparison and save the Gantt picture in `folder`."""
    environment = sk.generate_environment("aep", seed=seed)
    slots = environment.slots
    job = sk.Request(nodes=5, volume=310, budget=1500)
    best = {
        shape: {c: sk.find_window(slots, job, c, shape=shape) for c in CRITERIA}
        for shape in SHAPES
    }

    console = Console(highlight=False)
    console.print(
        f"{environment.nodes.size} nodes with {slots.size} free slots in "
        f"[0, {environment.horizon:g}); the job wants {job.nodes} nodes at once, "
        f"{job.volume:g} units of work on each, for at most {job.budget:,g}. Ragged: "
        "each part ends when it is done; square: all parts end together.",
        markup=False,
    )
    console.print(comparison_table(best))

    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "gantt.png"
    sk.plot_gantt(
        slots,
        [best["ragged"][c] for c in ("finish", "runtime", "cost")],
        tasks=environment.tasks,
        horizon=environment.horizon,
        path=picture,
        title="The best ragged window by each of three criteria",
    )
    print(f"Gantt picture: {picture}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
