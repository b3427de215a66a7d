"""The commands ``slotkern find``, ``front``, ``alternatives`` and ``explain``."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern._request import REQUEST_FIELDS
from slotkern.commands import tables
from slotkern.commands.completion import SHAPES, complete_from
from slotkern.commands.machine import (
    has_clock,
    is_bare,
    is_pool,
    number_or_text,
    read_free,
)
from slotkern.commands.pools import Force, lock_for_update
from slotkern.commands.results import (
    Html,
    Output,
    check_output,
    check_page,
    date_columns,
    part_columns,
    window_record,
    write_page,
    write_table,
)
from slotkern.commands.terminal import show, write
from slotkern.criteria import known_criteria
from slotkern.extras import extra
from slotkern.machine.durations import duration_of
from slotkern.machine.moments import moment_of
from slotkern.search import METHODS

with extra():
    import typer

__all__ = ["SlotsFile", "check_results", "register", "with_request"]

# The options of both commands.
SlotsFile = Annotated[
    Path,
    typer.Argument(
        help="Free slots: .csv, .parquet, .json, .jsonl or .npz; or a saved pool, as "
        "`slotkern free` writes it, which has names and dates."
    ),
]
Nodes = Annotated[int, typer.Option(help="How many nodes at once.")]
Volume = Annotated[float | None, typer.Option(help="Work on each node.")]
Walltime = Annotated[
    str | None,
    typer.Option(
        help="Instead of a volume: how long a node of performance 1 works, as in "
        "4:00:00, 1-12:00:00 or 2h30m; a number of time units if the slots have no "
        "clock."
    ),
]
Budget = Annotated[float, typer.Option(help="Most money in total.")]
Shape = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(SHAPES),
        help="square: all parts finish together; or ragged.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(METHODS),
        help="exact; lite: the n cheapest of each step; published, published-lite: "
        "the papers' algorithms.",
    ),
]
LeastPerformance = Annotated[float, typer.Option(help="Least performance of a node.")]
Earliest = Annotated[
    str,
    typer.Option(
        help="No start before this time: a number, or a date where the slots have a "
        "clock."
    ),
]
Deadline = Annotated[
    str, typer.Option(help="No finish after this time: likewise a number or a date.")
]
MaxPrice = Annotated[float, typer.Option(help="Most money per time unit of one slot.")]
Setup = Annotated[
    str,
    typer.Option(
        help="Constant part of a part's length, charged like the work: a duration as "
        "for --walltime."
    ),
]
Step = Annotated[
    str, typer.Option(help="Lengths of parts are rounded up to multiples of this.")
]
Latest = Annotated[str, typer.Option(help="No start after this time or date.")]
MaxRuntime = Annotated[str, typer.Option(help="Most time from start to finish.")]
Where = Annotated[
    str | None,
    typer.Option(help="Which slots may serve, as in \"memory >= 64 and site == 'a'\"."),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        help='A limit on a sum over the parts, as in "sum(storage) >= 500" or '
        '"sum(power * length) <= 12"; may be given several times.',
    ),
]
Placement = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(("slot-start", "any")),
        help="slot-start, or any: for sums of values, any start.",
    ),
]
Span = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(("window", "group")),
        help="window, or group: the papers' looser square windows.",
    ),
]
Gap = Annotated[
    float, typer.Option(help="For sums of values: a relative distance that will do.")
]
MaxWork = Annotated[
    int | None,
    typer.Option(help="For sums of values, under limits: the most units of work."),
]
Seed = Annotated[int, typer.Option(help="For methods that draw at random.")]
Plot = Annotated[Path | None, typer.Option(help="Draw it: .png, .svg or .pdf.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object (see docs/json.md).")
]
#: The criteria of a front that need no column.
FRONT_CRITERIA = ("start", "finish", "runtime", "cost", "processor_time")
CRITERION_HELP = (
    f"{', '.join(known_criteria())}, the name of a numeric column, whose sum is "
    "maximized, or minimize(column)."
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(find)
    app.command()(front)
    app.command()(alternatives)
    app.command()(explain)


def build_request(
    nodes: Nodes,
    volume: Volume = None,
    walltime: Walltime = None,
    budget: Budget = math.inf,
    min_performance: LeastPerformance = 0.0,
    earliest: Earliest = "-inf",
    deadline: Deadline = "inf",
    max_price: MaxPrice = math.inf,
    setup: Setup = "0",
    step: Step = "0",
    latest: Latest = "inf",
    max_runtime: MaxRuntime = "inf",
    where: Where = None,
    limits: Limits = None,
) -> sk.Request:
    """The request that a command's options make, times as numbers or in words."""
    if (volume is None) == (walltime is None):
        raise ValueError("one of --volume and --walltime is needed, and only one")
    date_columns = {"earliest": earliest, "latest": latest, "deadline": deadline}
    lengths = {"setup": setup, "step": step, "max_runtime": max_runtime}
    times: dict[str, Any] = {
        name: number_or_text(text) for name, text in (date_columns | lengths).items()
    }
    for name, said in times.items():
        if isinstance(said, str):
            meaning: Any = duration_of if name in lengths else moment_of
            meaning(said, f"--{name.replace('_', '-')}")
    return sk.Request(
        nodes,
        volume,
        walltime=number_or_text(walltime),
        budget=budget,
        min_performance=min_performance,
        max_price=max_price,
        where=where,
        limits=limits,
        **times,
    )


def refuse_bare_durations(path: Path, given: dict[str, Any]) -> None:
    """Refuse a number as a duration if the slots in a file have a clock.

    Its unit would be a guess: hours for whoever knows the clock, minutes for Slurm.
    """
    if not has_clock(path):
        return
    for name in ("walltime", "setup", "step", "max_runtime"):
        if is_bare(number_or_text(given[name])):
            duration_of(given[name], f"--{name.replace('_', '-')}")


def with_request(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of a request in place of its argument `request`."""
    asked = inspect.signature(build_request, eval_str=True)
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def run(**options: Any) -> None:
        about = {name: options.pop(name) for name in asked.parameters}
        request = build_request(**about)
        refuse_bare_durations(options["slots"], about)
        command(request=request, **options)

    options = [p for p in own.parameters.values() if p.name != "request"]
    options[1:1] = asked.parameters.values()  # behind the file
    # One without a default behind one with: typer calls by name.
    named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in options]
    run.__signature__ = own.replace(parameters=named)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in named}
    return run


@with_request
def find(
    slots: SlotsFile,
    request: sk.Request,
    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(known_criteria()),
            help=f"What is best: {CRITERION_HELP}",
        ),
    ] = "finish",
    shape: Shape = "square",
    method: Method = "exact",
    placement: Placement = "slot-start",
    span: Span = "window",
    gap: Gap = 0.0,
    max_work: MaxWork = None,
    seed: Seed = 0,
    plot: Plot = None,
    html: Html = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the result: .csv, .json or .parquet; with --book also "
            "the pool, .npz, in place of POOL."
        ),
    ] = None,
    as_json: AsJson = False,
    book: Annotated[
        bool,
        typer.Option("--book", help="Book the window, and save the pool in its place."),
    ] = False,
    owner: Annotated[
        str | None, typer.Option(help="With --book: for whom it is booked.")
    ] = None,
    force: Force = False,
) -> None:
    """Find the best window for a job among free slots.

    Exits with 1 and the explanation when there is no window.
    """
    target = _pool_to_book(slots, owner, output) if book else None
    if target is not None and target == output:
        output = None
    check_results(slots, plot, output, html)
    how: Any = {"criterion": criterion, "shape": shape, "method": method}
    how |= {"placement": placement, "span": span, "gap": gap, "max_work": max_work}
    with lock_for_update(slots, [target]):
        free, table = read_free(slots)
        window = sk.find_window(free, request, seed=seed, **how)
        if target is not None and window is not None:
            free.book(window, owner)
            free.save(target, overwrite=force)
    why = None if window is not None else _explain(free, request, shape)
    if window is not None:
        title = f"{slots.name}: {request.nodes} nodes at once, {shape}"
        if plot is not None:
            sk.plot_gantt(table, window, path=plot, title=title)
        write_page(html, free, window, title)
    if output is not None:
        windows = [] if window is None else [window]
        write_table(output, part_columns(free, table, windows))
    if as_json:
        _print_json(
            slots,
            (criterion, shape, method),
            request,
            window=None if window is None else window_record(free, table, window),
            explanation=None if why is None else why.to_dict() | {"text": str(why)},
        )
    elif window is not None:
        show(tables.window_table(table, window), tables.totals(window))
        if not window.proven:
            show(f"not proven to be the best; no value is better than {window.bound}")
        if window.proven_over != "all starts":
            show(f"compared: the {window.proven_over} (see --placement)")
        if target is not None:
            show(f"{target}: booked for {owner}")
    else:
        show(str(why))
    if window is None:
        raise typer.Exit(1)


@with_request
def front(
    slots: SlotsFile,
    request: sk.Request,
    by: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(FRONT_CRITERIA),
            help=f"Two criteria, as in cost,finish: {', '.join(FRONT_CRITERIA)}, the "
            "name of a numeric column, whose sum is maximized, or minimize(column).",
        ),
    ] = "cost,finish",
    shape: Shape = "square",
    most: Annotated[
        int | None,
        typer.Option(
            help="No more windows than this, at least 2, spread over the front."
        ),
    ] = None,
    gap: Gap = 0.0,
    max_work: MaxWork = None,
    plot: Plot = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Find the Pareto front of a job: all windows that no other window dominates.

    A window dominates another if it is as good by both criteria and better by one.
    Exits with 1 and the explanation when there is no window.
    """
    check_results(slots, plot, output)
    free, table = read_free(slots)
    how: Any = {"shape": shape, "most": most, "gap": gap, "max_work": max_work}
    names: Any = tuple(name.strip() for name in by.split(","))
    found = sk.pareto(free, request, names, **how)
    why = None if found else _explain(free, request, shape)
    if plot is not None and found:
        title = f"{slots.name}: {request.nodes} nodes at once, {shape}"
        found.plot(path=plot, title=title)
    if output is not None:
        write_table(output, front_columns(found))
    if as_json:
        points = [
            window_record(free, table, window) | {"values": values}
            for window, values in zip(found, found.values.tolist(), strict=True)
        ]
        _print_json(
            slots,
            (",".join(found.by), shape, "exact"),
            request,
            windows=points,
            complete=found.complete,
            between=found.to_dict()["between"],
            explanation=None if why is None else why.to_dict() | {"text": str(why)},
        )
    elif why is None:
        show(tables.front_table(found))
        show(_describe_completeness(found))
    else:
        show(str(why))
    if not found:
        raise typer.Exit(1)


def _describe_completeness(found: sk.Front) -> str:
    """Whether these are all windows of the front, in one line."""
    by = " and ".join(found.by)
    if found.complete:
        return f"the whole front by {by}: no window of the job dominates one of these"
    if not found.proven.all():
        return f"not proven: --max-work ended a search of the front by {by}"
    gaps = int((~np.isnan(found.between).all(axis=1)).sum())
    return f"{gaps} of {len(found) - 1} gaps of the front by {by} may hold more windows"


def front_columns(found: sk.Front) -> dict[str, Any]:
    """Return one row for each window of a front, for a file."""
    columns: dict[str, Any] = {
        name: found.values[:, k]
        for k, name in enumerate(found.by)
        if name not in tables.TOTALS
    }
    columns |= {name: getattr(found.windows, name) for name in tables.TOTALS}
    if found.clock is not None:
        times = {name: columns[name] for name in ("start", "finish")}
        columns |= date_columns(found.clock, times)
    columns["proven"] = found.proven
    return columns | {"nodes": [" ".join(window.names) for window in found]}


@with_request
def alternatives(
    slots: SlotsFile,
    request: sk.Request,
    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(known_criteria()),
            help="Which window is cut out next: first (all of them in one sweep), or "
            f"the best of what is left by {CRITERION_HELP}",
        ),
    ] = "first",
    shape: Shape = "square",
    method: Method = "exact",
    most: Annotated[int | None, typer.Option(help="No more windows than this.")] = None,
    max_work: MaxWork = None,
    pareto: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(sk.CRITERIA),
            help="Keep the alternatives that no other one of them dominates by these "
            "criteria, as in cost,finish. They are disjoint windows, not the job's "
            "Pareto front: see slotkern front.",
        ),
    ] = None,
    plot: Plot = None,
    html: Html = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Find all windows for a job that share no slot time.

    Exits with 1 and the explanation when there is none.
    """
    check_results(slots, plot, output, html)
    if most is not None and most < 1:
        raise ValueError(f"--most must be at least 1, got {most}")
    free, table = read_free(slots)
    how: Any = {"criterion": criterion, "shape": shape, "method": method}
    if max_work is not None:
        how["max_work"] = max_work
    found = sk.find_alternatives(free, request, limit=most, **how)
    if pareto is not None:
        names: Any = (name.strip() for name in pareto.split(","))
        found = found.pareto(*names)
    why = None if found else _explain(free, request, shape)
    if found:
        what = f"{len(found)} alternatives of {request.nodes} nodes, {shape}"
        if plot is not None:
            sk.plot_gantt(table, found, path=plot, title=f"{slots.name}: {what}")
        write_page(html, free, found, f"{slots.name}: {what}")
    if output is not None:
        write_table(output, part_columns(free, table, [*found]))
    if as_json:
        _print_json(
            slots,
            (criterion, shape, method),
            request,
            windows=[window_record(free, table, window) for window in found],
            explanation=None if why is None else why.to_dict() | {"text": str(why)},
        )
    elif why is None:
        show(tables.alternatives_table(found))
    else:
        show(str(why))
    if not found:
        raise typer.Exit(1)


@with_request
def explain(slots: SlotsFile, request: sk.Request, shape: Shape = "square") -> None:
    """Say why nothing fits a job, or what limits what does; exits with 1 if nothing."""
    free, _ = read_free(slots)
    why = _explain(free, request, shape)
    show(str(why))
    if not why.fits:
        raise typer.Exit(1)


def check_results(
    slots: Path, plot: Path | None, output: Path | None, html: Path | None = None
) -> None:
    """Refuse a picture or a file that cannot be, before anything is searched."""
    check_output(output, [slots])
    check_page(html)
    if plot is not None:
        from slotkern.plotting.style import check_picture_path

        check_picture_path(plot)


def _pool_to_book(slots: Path, owner: str | None, output: Path | None) -> Path:
    """Return the file of the pool in which a window is to be booked."""
    if not is_pool(slots):
        raise ValueError(f"--book: {slots} is no saved pool, which could be booked")
    if owner is None:
        raise ValueError("--book needs --owner: whose the window is")
    if output is not None and output.suffix.lower() == ".npz":
        return output
    return slots


def _explain(slots: Any, request: sk.Request, shape: Any) -> sk.Explanation:
    return sk.explain(slots, request, shape=shape)


def _print_json(
    slots: Path, asked: tuple[str, str, str], request: sk.Request, **answer: Any
) -> None:
    """The object that docs/json.md describes."""
    heading = {"slotkern": sk.__version__, "file": str(slots)}
    heading |= dict(zip(("criterion", "shape", "method"), asked, strict=True))
    fields = {name: getattr(request, name) for name in REQUEST_FIELDS}
    fields["limits"] = [limit.text for limit in request.limits]
    if request.walltime is not None:
        fields["walltime"] = request.walltime
    whole = _to_json(heading | {"request": fields} | answer)
    write(json.dumps(whole, indent=2, allow_nan=False) + "\n")


def _to_json(value: Any) -> Any:
    """The same in strict JSON's types; what is not finite becomes null."""
    match value:
        case dict():
            return {str(key): _to_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_to_json(inner) for inner in value]
        case np.ndarray() | np.generic():
            return _to_json(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)
