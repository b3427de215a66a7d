"""The commands ``slotkern find``, ``front``, ``alternatives``, ``explain``, ``starts``.

Each reads a file of slots, builds a request from its options, runs one search and
prints the result as a table or, with ``--json``, as one JSON object. `with_options`
gives every command the same options for the request. Exit code 1 means that no window
exists; the explanation is printed.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern.commands import tables
from slotkern.commands.answers import print_answer
from slotkern.commands.completion import complete_from
from slotkern.commands.holds import show_id
from slotkern.commands.machine import is_pool, read_free
from slotkern.commands.options import with_options
from slotkern.commands.pools import (
    Force,
    is_ledger,
    lock_for_update,
    number_or_text,
    store_pool,
)
from slotkern.commands.profiles import Profile, criterion_of
from slotkern.commands.results import (
    RESULTS,
    Output,
    check_output,
    check_page,
    write_page,
    write_table,
)
from slotkern.commands.search_options import (
    CRITERION_HELP,
    AsJson,
    Gap,
    MaxWork,
    Method,
    Placement,
    Plot,
    SearchResults,
    Seed,
    Shape,
    SlotsFile,
    Span,
)
from slotkern.commands.terminal import show
from slotkern.foundation.extras import extra
from slotkern.fronts.goals import EXACT_CRITERIA
from slotkern.pool.share_windows import text_of
from slotkern.search.criteria import criterion_names
from slotkern.search.records import date_columns, hostlist, part_columns, window_record

with extra():
    import typer

__all__ = ["check_results", "register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(find)
    app.command()(front)
    app.command()(alternatives)
    app.command()(explain)
    app.command()(starts)


@dataclass(frozen=True)
class FindOptions:
    """The options of `find_window`."""

    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(criterion_names()),
            help=f"Objective to optimize: {CRITERION_HELP}",
        ),
    ] = "finish"
    shape: Shape = "square"
    method: Method = "exact"
    placement: Placement = "slot-start"
    span: Span = "window"
    gap: Gap = 0.0
    max_work: MaxWork = None
    seed: Seed = 0


@dataclass(frozen=True)
class FindResults(SearchResults):
    """The outputs of ``slotkern find``."""

    output: Annotated[
        Path | None,
        typer.Option(
            help=f"File of the result: {RESULTS}. With --book also .npz: "
            "write the pool there and leave SLOTS unchanged."
        ),
    ] = None
    title: Annotated[
        str | None,
        typer.Option(
            help="Title of the picture and of the page; by default the name of the "
            "file and the number of nodes."
        ),
    ] = None


@dataclass(frozen=True)
class BookingOptions:
    """The booking of a found window; errors name the option that needs --book."""

    book: Annotated[
        bool,
        typer.Option(
            "--book",
            help="Book the window and save the pool to its file; needs --owner.",
        ),
    ] = False
    owner: Annotated[
        str | None, typer.Option(help="Owner of the booking, with --book.")
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the booking, with --book: listed by `slotkern bookings`, "
            "selected by `slotkern release --name`; by default no name."
        ),
    ] = None
    hold: Annotated[
        str | None,
        typer.Option(
            help="With --book and a ledger: the booking ends after this time, such as "
            "10min, unless `slotkern ledger confirm` comes before."
        ),
    ] = None
    force: Force = False

    def __post_init__(self) -> None:
        options = {"--name": self.name, "--owner": self.owner, "--hold": self.hold}
        for option, value in options.items():
            if value is not None and not self.book:
                raise ValueError(
                    f"{option} {value!r} needs --book, which makes the booking"
                )


@with_options
def find(
    slots: SlotsFile,
    request: sk.Request,
    options: FindOptions,
    results: FindResults,
    booking: BookingOptions,
    profile: Profile = None,
) -> None:
    """Find the best window of a job, and book it with --book.

    Prints the parts of the window: node, start, end and cost of each. Exits
    with 1 and an explanation if no window exists.
    """
    shape, plot, output = options.shape, results.plot, results.output
    owner, name, hold = booking.owner, booking.name, booking.hold
    if name is not None:
        request = request.replace(name=name)
    target = _pool_to_book(slots, owner, output) if booking.book else None
    if target is not None and target == output:
        output = None
    check_results(slots, plot, output, results.html)
    with lock_for_update(slots, [target]):
        free, table = read_free(slots, target)
        # In a turn, nobody changes a ledger between search and booking.
        shared = target is not None and is_ledger(target)
        if hold is not None and not shared:
            raise ValueError(f"--hold needs a ledger, .db or a URL, got {slots}")
        with free.turn() if shared else nullcontext():
            criterion = criterion_of(options.criterion, profile, free)
            found = vars(options) | {"criterion": criterion}
            window = _search(free, request, found)
            if target is not None and window is not None:
                how = {} if hold is None else {"hold": number_or_text(hold)}
                booked = free.book(window, owner, **how)
                store_pool(free, slots, target, booking.force)
    why = None if window is not None else _explain(free, request, shape)
    if window is not None:
        title = results.title
        if title is None:
            title = f"{slots.name}: {request.nodes} nodes at once, {shape}"
        # The text of the option names a profile of a file; its object has no name.
        label = window.name or f"best by {options.criterion}"
        if plot is not None:
            shown = free if isinstance(free, sk.HostPool) else table
            sk.plot_gantt(shown, {label: window}, path=plot, title=title)
        write_page(results.html, free, {label: window}, title)
    if output is not None:
        windows = [] if window is None else [window]
        write_table(output, part_columns(free, table, windows))
    if results.as_json:
        print_answer(
            slots,
            (options.criterion, shape, options.method),
            request,
            window=None if window is None else window_record(free, table, window),
            explanation=None if why is None else _record(why),
        )
    elif window is not None:
        show(tables.window_table(table, window), tables.totals(window))
        if options.criterion not in (*sk.CRITERIA, "processor_time"):
            value = tables.format_column([window.value])[0]
            show(f"{options.criterion} {value}")
        if getattr(window, "share", None):
            show(f"each part takes {text_of(window.share)} of its node")
        if not window.proven:
            show(
                f"not proven optimal; no window has a better value than {window.bound}"
            )
        if window.proven_over != "all starts":
            show(f"optimal over the {window.proven_over} only (see --placement)")
        if shared:
            show_id(target, booked)
        elif target is not None:
            show(f"{target}: booked for {owner}" + (f", name {name}" if name else ""))
    else:
        show(str(why))
    if window is None:
        raise typer.Exit(1)


def _search(free: Any, request: sk.Request, options: dict[str, Any]) -> Any:
    """Return the window of `find_window`, which checks the texts."""
    if isinstance(free, sk.HostPool):
        return free._find_window(request, **options)
    search: Any = sk.find_window
    return search(free, request, **options)


@dataclass(frozen=True)
class FrontOptions:
    """The options of `pareto`."""

    shape: Shape = "square"
    most: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of windows, at least 2, spread over the front; by "
            "default all. Under tariffs a front of cost needs it."
        ),
    ] = None
    gap: Gap = 0.0
    max_work: MaxWork = None


@with_options
def front(
    slots: SlotsFile,
    request: sk.Request,
    *,
    by: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(EXACT_CRITERIA),
            help=f"Two criteria, such as cost,finish: {', '.join(EXACT_CRITERIA)}, "
            "the name of a numeric column (its sum is maximized), or minimize(column).",
        ),
    ] = "cost,finish",
    options: FrontOptions,
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
    shape = options.shape
    names: Any = tuple(name.strip() for name in by.split(","))
    search: Any = sk.pareto  # pareto checks the texts
    found = search(free, request, names, **vars(options))
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
        print_answer(
            slots,
            (",".join(found.by), shape, "exact"),
            request,
            windows=points,
            complete=found.complete,
            between=found.to_dict()["between"],
            explanation=None if why is None else _record(why),
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
    return columns | {"nodes": [hostlist(window.names) for window in found]}


@dataclass(frozen=True)
class AlternativesOptions:
    """The options of `find_alternatives`."""

    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(criterion_names()),
            help="Window taken next. first: all windows in one sweep; otherwise the "
            f"best one in the remaining free time by {CRITERION_HELP}",
        ),
    ] = "first"
    shape: Shape = "square"
    method: Method = "exact"
    most: Annotated[
        int | None, typer.Option(help="Maximum number of windows; by default all.")
    ] = None
    max_work: MaxWork = None

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise ValueError(f"--most must be at least 1, got {self.most}")


@with_options
def alternatives(
    slots: SlotsFile,
    request: sk.Request,
    options: AlternativesOptions,
    *,
    pareto: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_from(sk.CRITERIA),
            help="Return only the alternatives that no other alternative dominates by "
            "these criteria, such as cost,finish. For the Pareto front of the job, see "
            "`slotkern front`.",
        ),
    ] = None,
    profile: Profile = None,
    results: SearchResults,
) -> None:
    """Find several windows of a job that share no slot time.

    Prints one row per window and marks the best value of each column. Exits
    with 1 and an explanation if no window exists.
    """
    check_results(slots, results.plot, results.output, results.html)
    free, table = read_free(slots)
    criterion, shape, method = options.criterion, options.shape, options.method
    how: Any = {"shape": shape, "method": method}
    how["criterion"] = criterion_of(criterion, profile, free)
    if options.max_work is not None:
        how["max_work"] = options.max_work
    found = sk.find_alternatives(free, request, limit=options.most, **how)
    if pareto is not None:
        names: Any = (name.strip() for name in pareto.split(","))
        found = found.pareto(*names)
    why = None if found else _explain(free, request, shape)
    if found:
        what = f"{len(found)} alternatives of {request.nodes} nodes, {shape}"
        if results.plot is not None:
            sk.plot_gantt(
                table, found, path=results.plot, title=f"{slots.name}: {what}"
            )
        write_page(results.html, free, found, f"{slots.name}: {what}")
    if results.output is not None:
        write_table(results.output, part_columns(free, table, [*found]))
    if results.as_json:
        print_answer(
            slots,
            (criterion, shape, method),
            request,
            windows=[window_record(free, table, window) for window in found],
            explanation=None if why is None else _record(why),
        )
    elif why is None:
        show(tables.alternatives_table(found))
    else:
        show(str(why))
    if not found:
        raise typer.Exit(1)


@with_options
def explain(
    slots: SlotsFile,
    request: sk.Request,
    shape: Shape = "square",
    *,
    as_json: AsJson = False,
) -> None:
    """Explain why a job has no window, or which of its limits are tight.

    Exits with 1 if no window exists.
    """
    free, _ = read_free(slots)
    why = _explain(free, request, shape)
    if as_json:
        print_answer(
            slots, ("first", shape, "exact"), request, explanation=_record(why)
        )
    else:
        show(str(why))
    if not why.fits:
        raise typer.Exit(1)


@with_options
def starts(
    slots: SlotsFile,
    request: sk.Request,
    shape: Shape = "square",
    *,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List when a job can begin: all its possible starts, as intervals.

    A window exists for each start in one of the intervals, and for no
    other. Exits with 1 and an explanation if there are none.
    """
    check_results(slots, None, output)
    free, _ = read_free(slots)
    options: Any = {"shape": shape}
    found = sk.starts(free, request, **options)
    why = None if len(found) else _explain(free, request, shape)
    if output is not None:
        columns: dict[str, Any] = {name: found[name] for name in ("first", "last")}
        if free.clock is not None:
            columns |= date_columns(free.clock, columns)
        write_table(output, columns)
    if as_json:
        names = found.dtype.names or ()
        rows = [dict(zip(names, row, strict=True)) for row in found.tolist()]
        print_answer(
            slots,
            ("start", shape, "exact"),
            request,
            starts=rows,
            explanation=None if why is None else _record(why),
        )
    elif why is None:
        show(tables.starts_table(found, free.clock))
    else:
        show(str(why))
    if not len(found):
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


def _record(why: sk.Explanation) -> dict[str, Any]:
    return why.to_dict() | {"text": str(why)}
