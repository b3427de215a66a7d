"""``slotkern free``, ``explain``, ``schedule``, ``info``: in the user's own terms."""

from __future__ import annotations

import math
import platform
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern.extras import EXTRAS, extra
from slotkern.machine.files import read_columns

from .terminal import show

with extra():
    import typer
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

#: Columns of jobs that are numbers, or dates and durations in words.
_SAID = ("walltime", "earliest", "latest", "deadline", "setup", "step", "max_runtime")

__all__ = ["number_or_text", "read_free", "register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("free")(free)
    app.command("explain")(explain)
    app.command("schedule")(schedule)
    app.command("info")(info)


def read_free(path: Path) -> tuple[Any, Any]:
    """Return the slots or the pool in a file, and the array that rows count in."""
    if path.suffix.lower() == ".npz" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            is_pool = {"format.npy", "origin.npy"} <= set(archive.namelist())
        if is_pool:
            pool = sk.SlotPool.load(path)
            return pool, pool.origin
    slots = sk.read_slots(path)
    return slots, slots


def number_or_text(value: str | None) -> float | str | None:
    """Return the number that a text is, or else the text."""
    try:
        return value if value is None else float(value)
    except ValueError:
        return value


def free(
    machine: Annotated[
        Path, typer.Argument(help="The nodes: .csv or .parquet with a column name.")
    ],
    start: Annotated[str, typer.Option(help="Begin of the horizon, as a date.")],
    end: Annotated[str, typer.Option(help="End of the horizon, as a date.")],
    output: Annotated[Path, typer.Option(help="The pool to write: .npz.")],
    busy: Annotated[
        Path | None,
        typer.Option(help="What is busy: .csv or .parquet with node, start, end."),
    ] = None,
    zone: Annotated[
        str | None, typer.Option(help="Of dates without one, as Europe/Berlin.")
    ] = None,
    unit: Annotated[
        str, typer.Option(help="What prices are for: s, min, h or d.")
    ] = "s",
    processors: Annotated[
        str | None,
        typer.Option(help="The column of processors: each becomes a node of its own."),
    ] = None,
) -> None:
    """Write what busy spans leave free on a machine to a pool with names and dates."""
    if output.suffix.lower() != ".npz":
        raise ValueError(f"--output: {output} does not end in .npz")
    table = sk.Machine.read(machine, processors=processors)
    spans = None if busy is None else read_columns(busy, ("node", "start", "end"))
    found = sk.free_slots(table, spans, start=start, end=end, zone=zone, unit=unit)
    sk.SlotPool(found).save(output)
    show(f"{output}: {found!r}")


def explain(
    slots: Annotated[Path, typer.Argument(help="Free slots, or a saved pool.")],
    nodes: Annotated[int, typer.Option(help="How many nodes at once.")],
    volume: Annotated[float | None, typer.Option(help="Work on each node.")] = None,
    walltime: Annotated[
        str | None, typer.Option(help="Instead of a volume: as in 4:00:00.")
    ] = None,
    budget: Annotated[float, typer.Option(help="Most money in total.")] = math.inf,
    min_performance: Annotated[float, typer.Option(help="Least performance.")] = 0.0,
    earliest: Annotated[str, typer.Option(help="No start before: time or date.")] = (
        "-inf"
    ),
    deadline: Annotated[str, typer.Option(help="No finish after: time or date.")] = (
        "inf"
    ),
    where: Annotated[str | None, typer.Option(help="Which slots may serve.")] = None,
    shape: Annotated[str, typer.Option(help="square or ragged.")] = "square",
) -> None:
    """Say why nothing fits a job, or what limits what does; exits with 1 if nothing."""
    free, _ = read_free(slots)
    times: Any = [number_or_text(value) for value in (earliest, deadline)]
    request = sk.Request(
        nodes,
        volume,
        walltime=number_or_text(walltime),
        budget=budget,
        min_performance=min_performance,
        where=where,
        earliest=times[0],
        deadline=times[1],
    )
    why = sk.explain(free, request, shape=shape)  # type: ignore[arg-type]
    show(str(why))
    if not why.fits:
        raise typer.Exit(1)


def schedule(
    slots: Annotated[Path, typer.Argument(help="Free slots, or a saved pool.")],
    jobs: Annotated[
        Path,
        typer.Argument(
            help="A job a row, .csv or .parquet: nodes, volume or walltime, and if "
            "wanted name, budget, earliest, deadline and the other limits."
        ),
    ],
    criterion: Annotated[
        str, typer.Option(help="first, start, finish, runtime or cost.")
    ] = "start",
    shape: Annotated[str, typer.Option(help="square or ragged.")] = "square",
    owner: Annotated[str | None, typer.Option(help="For whom all are booked.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the pool with its bookings: .npz.")
    ] = None,
) -> None:
    """Find and book a window for each job of a table, in its order."""
    if output is not None and output.suffix.lower() != ".npz":
        raise ValueError(f"--output: {output} does not end in .npz")
    free, _ = read_free(slots)
    pool = free if isinstance(free, sk.SlotPool) else sk.SlotPool(free)
    columns = read_columns(jobs, ("name", "where", *_SAID))
    for name in _SAID:
        if name in columns and columns[name].dtype.kind in "UO":
            given = columns[name].tolist()
            columns[name] = np.array([number_or_text(v) for v in given], object)
    done = pool.schedule(columns, criterion, shape=shape, owner=owner)  # type: ignore[arg-type]
    if output is not None:
        pool.save(output)
    table = done.listing()
    fields = table.dtype.names or ()
    names = [n for n in fields if f"{n}_time" not in fields]
    drawn = Table(box=SIMPLE_HEAD)
    for name in names:
        drawn.add_column(Text(name), justify="left")
    for row in table[names].tolist():
        drawn.add_row(*(Text(f"{v:g}" if isinstance(v, float) else v) for v in row))
    show(drawn, f"{int(done.booked.sum())} of {len(done)} jobs booked")
    if not done.booked.any():
        raise typer.Exit(1)


def info() -> None:
    """Show versions and what is installed, for reports of faults."""
    show(f"slotkern {sk.__version__}")
    show(f"Python {platform.python_version()} ({sys.implementation.name})")
    show(f"numpy {np.__version__}")
    show(f"{platform.system()} {platform.machine()}")
    for module, needed in EXTRAS.items():
        there = "installed" if find_spec(module) else f"missing (slotkern[{needed}])"
        show(f"{module}: {there}")
