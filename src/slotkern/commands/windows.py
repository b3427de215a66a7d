"""The commands ``slotkern find``, ``front``, ``alternatives`` and ``explain``.

Each reads a file of slots, builds a request from its options, runs one search and
prints the result as a table or, with ``--json``, as one JSON object. `with_request`
gives every command the same options for the request. Exit code 1 means that no window
exists; the explanation is printed.
"""

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
from slotkern.foundation.extras import extra
from slotkern.machine.durations import duration_of
from slotkern.machine.moments import moment_of
from slotkern.search.criteria import criterion_names
from slotkern.search.delegated import METHODS

with extra():
    import typer

__all__ = ["SlotsFile", "check_results", "register", "with_request"]

# The options that several commands share.
SlotsFile = Annotated[
    Path,
    typer.Argument(
        help="File of free slots: .csv, .parquet, .json, .jsonl or .npz; or a saved "
        "pool as written by `slotkern free`, which has node names and dates."
    ),
]
Nodes = Annotated[int, typer.Option(help="Number of nodes used at the same time.")]
Volume = Annotated[
    float | None,
    typer.Option(help="Work on each node, in units of performance x time."),
]
Walltime = Annotated[
    str | None,
    typer.Option(
        help="Run time on a node of performance 1, instead of --volume: 4:00:00, "
        "1-12:00:00 or 2h30m; a number of time units if the slots have no clock."
    ),
]
Budget = Annotated[float, typer.Option(help="Maximum total cost of the window.")]
Shape = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(SHAPES),
        help="square: all parts end together; ragged: each part ends when its work "
        "is done.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(METHODS),
        help="exact: the optimum; lite: only the n cheapest slots of each step; "
        "published, published-lite: the algorithms as printed in the papers.",
    ),
]
LeastPerformance = Annotated[float, typer.Option(help="Minimum performance of a node.")]
Earliest = Annotated[
    str,
    typer.Option(
        help="Earliest start: a number, or a date such as 2026-12-01T08:00 if the "
        "slots have a clock."
    ),
]
Deadline = Annotated[str, typer.Option(help="Latest finish: a number or a date.")]
MaxPrice = Annotated[float, typer.Option(help="Maximum price of a slot per time unit.")]
Setup = Annotated[
    str,
    typer.Option(
        help="Constant time added to the length of each part and charged like work: "
        "a duration as for --walltime."
    ),
]
Step = Annotated[
    str,
    typer.Option(
        help="Round the length of each part up to a multiple of this duration; 0 for "
        "no rounding."
    ),
]
Latest = Annotated[str, typer.Option(help="Latest start: a number or a date.")]
MaxRuntime = Annotated[
    str, typer.Option(help="Maximum time from start to finish: a duration.")
]
Where = Annotated[
    str | None,
    typer.Option(
        help="Filter of the slots, such as \"memory >= 64 and site == 'a'\"; by "
        "default all slots are used."
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        help='Bound on a sum over the parts, such as "sum(storage) >= 500" or '
        '"sum(power * length) <= 12"; repeat for several bounds.',
    ),
]
Placement = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(("slot-start", "any")),
        help="Starts considered for a sum of values. slot-start: starts of slots; "
        "any: every time.",
    ),
]
Span = Annotated[
    str,
    typer.Option(
        autocompletion=complete_from(("window", "group")),
        help="Length of a square window. window: that of its slowest node; group: it "
        "may be that of any slower slot available at its start, as in the papers.",
    ),
]
Gap = Annotated[
    float,
    typer.Option(
        help="Relative distance from the optimum at which a search for a sum of values "
        "may stop; 0 for the proven optimum."
    ),
]
MaxWork = Annotated[
    int | None,
    typer.Option(
        help="Maximum units of counted work of a search for a sum of values or under "
        "limits; by default 50,000,000, about a second."
    ),
]
Seed = Annotated[
    int, typer.Option(help="Seed of the published methods that draw windows at random.")
]
Plot = Annotated[
    Path | None, typer.Option(help="Write a picture of the result: .png, .svg or .pdf.")
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object instead of tables (see docs/json.md)."
    ),
]
#: Criteria of a front that need no column of the slots.
FRONT_CRITERIA = ("start", "finish", "runtime", "cost", "processor_time")
CRITERION_HELP = (
    f"{', '.join(criterion_names())}, the name of a numeric column, whose sum is "
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
    """Build the request from a command's options; times stay numbers or texts.

    Raises
    ------
    ValueError
        If not exactly one of --volume and --walltime is given, or a text is neither a
        date nor a duration, whichever its option takes.
    """
    if (volume is None) == (walltime is None):
        raise ValueError("one of --volume and --walltime is needed, and only one")
    date_columns = {"earliest": earliest, "latest": latest, "deadline": deadline}
    lengths = {"setup": setup, "step": step, "max_runtime": max_runtime}
    times: dict[str, Any] = {
        name: number_or_text(text) for name, text in (date_columns | lengths).items()
    }
    for name, value in times.items():
        if isinstance(value, str):
            check: Any = duration_of if name in lengths else moment_of
            check(value, f"--{name.replace('_', '-')}")
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
    """Raise ValueError for a duration without a unit if the slots have a clock.

    The unit would be a guess: the clock's own unit, or minutes as in Slurm.
    """
    if not has_clock(path):
        return
    for name in ("walltime", "setup", "step", "max_runtime"):
        if is_bare(number_or_text(given[name])):
            duration_of(given[name], f"--{name.replace('_', '-')}")


def with_request(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `request` of a command by the options of a request.

    The options are those of `build_request`; they follow the command's first parameter,
    the file.
    """
    request_options = inspect.signature(build_request, eval_str=True)
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def run(**options: Any) -> None:
        given = {name: options.pop(name) for name in request_options.parameters}
        request = build_request(**given)
        refuse_bare_durations(options["slots"], given)
        command(request=request, **options)

    options = [p for p in own.parameters.values() if p.name != "request"]
    options[1:1] = request_options.parameters.values()  # after the file
    # A parameter without a default may follow one with a default: typer passes names.
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
            autocompletion=complete_from(criterion_names()),
            help=f"Objective to optimize: {CRITERION_HELP}",
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
            help="File of the result: .csv, .json or .parquet. With --book also .npz: "
            "write the pool there and leave SLOTS unchanged."
        ),
    ] = None,
    as_json: AsJson = False,
    book: Annotated[
        bool,
        typer.Option(
            "--book",
            help="Book the window and save the pool to its file; needs --owner.",
        ),
    ] = False,
    owner: Annotated[
        str | None, typer.Option(help="Owner of the booking, with --book.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the booking, with --book: listed by `slotkern bookings`, "
            "selected by `slotkern release --name`; by default no name."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Find the best window of a job, and book it with --book.

    Prints the parts of the window: node, start, end and cost of each. Exits
    with 1 and an explanation if no window exists.
    """
    for option, value in (("--name", name), ("--owner", owner)):
        if value is not None and not book:
            raise ValueError(
                f"{option} {value!r} needs --book, which makes the booking"
            )
    if name is not None:
        request = request.replace(name=name)
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
            show(
                f"not proven optimal; no window has a better value than {window.bound}"
            )
        if window.proven_over != "all starts":
            show(f"optimal over the {window.proven_over} only (see --placement)")
        if target is not None:
            show(f"{target}: booked for {owner}" + (f", name {name}" if name else ""))
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
            help=f"Two criteria, such as cost,finish: {', '.join(FRONT_CRITERIA)}, "
            "the name of a numeric column (its sum is maximized), or minimize(column).",
        ),
    ] = "cost,finish",
    shape: Shape = "square",
    most: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of windows, at least 2, spread over the front; by "
            "default all."
        ),
    ] = None,
    gap: Gap = 0.0,
    max_work: MaxWork = None,
    plot: Plot = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Find the Pareto front of a job: all trade-offs between two criteria.

    A window is on the front if no other window is at least as good by both
    criteria and better by one. Exits with 1 and an explanation if no window
    exists.
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
    """Describe in one line whether the front is complete."""
    by = " and ".join(found.by)
    if found.complete:
        return f"complete front by {by}: no window of the job dominates one of these"
    if not found.proven.all():
        return f"front by {by} not proven: a search reached --max-work; increase it"
    gaps = int((~np.isnan(found.between).all(axis=1)).sum())
    return f"{gaps} of {len(found) - 1} gaps of the front by {by} may hold more windows"


def front_columns(found: sk.Front) -> dict[str, Any]:
    """Return the columns of a file with one row per window of a front."""
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
            autocompletion=complete_from(criterion_names()),
            help="Window taken next. first: all windows in one sweep; otherwise the "
            f"best one in the remaining free time by {CRITERION_HELP}",
        ),
    ] = "first",
    shape: Shape = "square",
    method: Method = "exact",
    most: Annotated[
        int | None, typer.Option(help="Maximum number of windows; by default all.")
    ] = None,
    max_work: MaxWork = None,
    pareto: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(sk.CRITERIA),
            help="Return only the alternatives that no other alternative dominates by "
            "these criteria, such as cost,finish. For the Pareto front of the job, see "
            "`slotkern front`.",
        ),
    ] = None,
    plot: Plot = None,
    html: Html = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Find several windows of a job that share no slot time.

    Prints one row per window and marks the best value of each column. Exits
    with 1 and an explanation if no window exists.
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
    """Explain why a job has no window, or which of its limits are tight.

    Exits with 1 if no window exists.
    """
    free, _ = read_free(slots)
    why = _explain(free, request, shape)
    show(str(why))
    if not why.fits:
        raise typer.Exit(1)


def check_results(
    slots: Path, plot: Path | None, output: Path | None, html: Path | None = None
) -> None:
    """Raise ValueError for an output that cannot be written, before the search."""
    check_output(output, [slots])
    check_page(html)
    if plot is not None:
        from slotkern.plotting.style import check_picture_path

        check_picture_path(plot)


def _pool_to_book(slots: Path, owner: str | None, output: Path | None) -> Path:
    """Return the pool file to write with --book: --output if it ends in .npz."""
    if not is_pool(slots):
        raise ValueError(
            f"--book needs a saved pool, got {slots}: write one with "
            "`slotkern free --output pool.npz`"
        )
    if owner is None:
        raise ValueError("--book needs --owner: the name that the booking is for")
    if output is not None and output.suffix.lower() == ".npz":
        return output
    return slots


def _explain(slots: Any, request: sk.Request, shape: Any) -> sk.Explanation:
    return sk.explain(slots, request, shape=shape)


def _print_json(
    slots: Path, method: tuple[str, str, str], request: sk.Request, **answer: Any
) -> None:
    """Print the JSON object that docs/json.md describes.

    Parameters
    ----------
    slots : Path
        File of the slots, as given.
    method : tuple of str
        Criterion, shape and method.
    request : Request
    **answer
        Further members of the object.
    """
    heading = {"slotkern": sk.__version__, "file": str(slots)}
    heading |= dict(zip(("criterion", "shape", "method"), method, strict=True))
    fields = {name: getattr(request, name) for name in REQUEST_FIELDS}
    fields["limits"] = [limit.text for limit in request.limits]
    if request.walltime is not None:
        fields["walltime"] = request.walltime
    whole = _to_json(heading | {"request": fields} | answer)
    write(json.dumps(whole, indent=2, allow_nan=False) + "\n")


def _to_json(value: Any) -> Any:
    """Return a value in the types of strict JSON; NaN and infinities become null."""
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
