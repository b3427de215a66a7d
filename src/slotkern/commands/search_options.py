"""Options that the commands which search for windows share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from slotkern.commands import places
from slotkern.commands.completion import SHAPES, complete_from
from slotkern.commands.results import Html, Output
from slotkern.files import SUFFIXES
from slotkern.foundation.extras import extra
from slotkern.search.criteria import criterion_names
from slotkern.search.delegated import METHODS

with extra():
    import typer

__all__ = [
    "CRITERION_HELP",
    "AsJson",
    "Gap",
    "MaxWork",
    "Method",
    "Placement",
    "Plot",
    "SearchResults",
    "Seed",
    "Shape",
    "SlotsFile",
    "Span",
]

SlotsFile = Annotated[
    Path,
    typer.Argument(
        parser=places.path,
        help=f"File of free slots: {SUFFIXES}; a saved pool as written by "
        "`slotkern free`, which has node names and dates; or a ledger, .db or a URL.",
    ),
]
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


@dataclass(frozen=True)
class SearchResults:
    """The outputs of a search."""

    plot: Plot = None
    html: Html = None
    output: Output = None
    as_json: AsJson = False


CRITERION_HELP = (
    f"{', '.join(criterion_names())}, the name of a numeric column, whose sum is "
    "maximized, minimize(column), or profile(name), the integral of a tariff of SLOTS "
    "or of a column of --profile, which is minimized."
)
