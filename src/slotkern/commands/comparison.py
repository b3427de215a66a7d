"""``slotkern compare``: the best window by each of several criteria, side by side."""

from __future__ import annotations

from typing import Annotated, Any

import slotkern as sk
from slotkern._kernels.slots import has_tariffs
from slotkern.commands.completion import SHAPES, complete_from
from slotkern.commands.machine import read_free
from slotkern.commands.options import with_options
from slotkern.commands.results import Output, write_table
from slotkern.commands.search_options import Plot, SlotsFile
from slotkern.commands.tables import TOTALS, comparison_table
from slotkern.commands.terminal import progress, show
from slotkern.commands.windows import check_results
from slotkern.foundation.checks import one_of
from slotkern.foundation.extras import extra
from slotkern.search.criteria import criterion_names
from slotkern.search.delegated import METHODS
from slotkern.search.records import date_columns, hostlist

with extra():
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


@with_options
def compare(
    slots: SlotsFile,
    request: sk.Request,
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=complete_from(criterion_names()),
            help="Criterion to compare; repeat for several. By default those that need "
            f"no column: {', '.join(sk.CRITERIA)} and, without tariffs, "
            "processor_time.",
        ),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=complete_from(SHAPES),
            help="Shape to compare, ragged or square; by default both.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(METHODS),
            help="exact: the optimum; lite: only the n cheapest slots of each step; "
            "published, published-lite: the algorithms as printed in the papers.",
        ),
    ] = "exact",
    plot: Plot = None,
    output: Output = None,
) -> None:
    """Compare the best windows of a job by several criteria.

    Prints one row per criterion: all totals of the window that is best by it.
    Exits with 1 and an explanation if no window exists.
    """
    check_results(slots, plot, output)
    shapes = [
        one_of("--shape", each, SHAPES) for each in dict.fromkeys(shape or SHAPES)
    ]
    free, table = read_free(slots)
    by_default = sk.CRITERIA if has_tariffs(free) else (*sk.CRITERIA, "processor_time")
    criteria = [*dict.fromkeys(criterion or by_default)]
    searches = [(form, name) for form in shapes for name in criteria]
    found: dict[str, dict[str, Any]] = {form: {} for form in shapes}
    search: Any = sk.find_window  # find_window checks the texts
    with progress("criteria", searches) as steps:
        for form, name in steps:
            how: Any = {"shape": form, "method": method}
            found[form][name] = search(free, request, name, **how)
    windows = [found[form][name] for form, name in searches]
    there = _distinct(found)
    if output is not None:
        write_table(output, _columns(free, searches, windows))
    if plot is not None and there:
        title = (
            f"{slots.name}: {request.nodes} nodes at once, the best by each criterion"
        )
        sk.plot_gantt(table, there, path=plot, title=title)
    if not there:
        first: Any = shapes[0]  # explain checks the text
        show(str(sk.explain(free, request, shape=first)))
        raise typer.Exit(1)
    show(comparison_table(found))


def _distinct(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the distinct windows, each labelled by all criteria it optimizes."""
    windows: dict[Any, Any] = {}
    names: dict[Any, list[str]] = {}
    for form, by_criterion in found.items():
        for name, window in by_criterion.items():
            if window is not None:
                same = form, window.start, window.nodes
                windows[same] = window
                names.setdefault(same, []).append(TOTALS.get(name, name))
    return {
        f"{same[0]} by {', '.join(names[same])}": window
        for same, window in windows.items()
    }


def _columns(free: Any, searches: list[tuple[str, str]], windows: list[Any]) -> Any:
    """Return the columns of a file with one row per shape and criterion."""

    def of_each(name: str) -> list[Any]:
        return [None if window is None else getattr(window, name) for window in windows]

    columns: dict[str, Any] = {
        "shape": [form for form, _ in searches],
        "criterion": [name for _, name in searches],
    }
    columns |= {name: of_each(name) for name in (*TOTALS, "value", "proven", "bound")}
    clock = getattr(free, "clock", None)
    if clock is not None:
        columns |= date_columns(
            clock, {name: columns[name] for name in ("start", "finish")}
        )
    names = [hostlist(each or ()) for each in of_each("names")]
    return columns | {"nodes": names}
