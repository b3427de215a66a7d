"""Options that travel as one value: a request, or a record of options.

The options of a request are its numeric and special fields, with nodes, walltime,
filter and limits; `with_options` gives them to every command that has a request.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import slotkern as sk
from slotkern._kernels.request import FIELDS, RequestField
from slotkern.commands.machine import has_clock, is_bare, number_or_text
from slotkern.foundation.amounts import EXAMPLES
from slotkern.foundation.extras import extra
from slotkern.foundation.special_fields import SPECIAL_FIELDS, SpecialField
from slotkern.machine.calendar import duration_of, moment_of

with extra():
    import typer

__all__ = ["with_options"]

Nodes = Annotated[int, typer.Option(help="Number of nodes used at the same time.")]
Walltime = Annotated[
    str | None,
    typer.Option(
        help="Run time on a node of performance 1, instead of --volume: 4:00:00, "
        "1-12:00:00 or 2h30m; a number of time units if the slots have no clock."
    ),
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
        '"sum(power * length) <= 12", or on how the nodes spread over groups, such as '
        '"distinct(rack) <= 2" or "most(rack) <= 4"; repeat for several bounds.',
    ),
]

#: The forms of an option for a field of a request, by kind.
_FORMS = {
    "number": "",
    "time": ": a number, or a date such as 2026-12-01T08:00 if the slots have a clock",
    "duration": ": a duration as for --walltime",
}


def _option_of(field: RequestField) -> inspect.Parameter:
    """Return the option for a numeric field of a request."""
    summary = field.text.split(". ")[0].removesuffix(".").replace("`", "")
    annotation: Any = float if field.kind == "number" else str
    if field.name == "volume":
        annotation = float | None
        summary += ", in units of performance x time"
    option = typer.Option(help=f"{summary}{_FORMS[field.kind]}.")
    default = field.default if field.kind == "number" else f"{field.default:g}"
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if field.name == "volume" else default,
        annotation=Annotated[annotation, option],
    )


def _option_of_special(name: str, field: SpecialField) -> inspect.Parameter:
    """Return the option for a special field of a request."""
    text = field.text.split(". ")[0].removesuffix(".").replace("`", "")
    if field.kind == "amounts":
        text += f", such as {EXAMPLES[name]}"
    kinds = {"integer": int, "amounts": list[str] | None}  # amounts may be repeated
    annotation: Any = kinds.get(field.kind, str | None)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[annotation, typer.Option(help=f"{text}.")],
    )


def request_options() -> dict[str, inspect.Parameter]:
    """Return the options of a request, in the order of the help."""
    fields = {name: _option_of(field) for name, field in FIELDS.items()}
    others = inspect.signature(_other_options, eval_str=True).parameters
    special = {
        name: _option_of_special(name, field) for name, field in SPECIAL_FIELDS.items()
    }
    names = ("nodes", "volume", "walltime", *fields, "where", "limits", *special)
    every = fields | dict(others) | special
    return {name: every[name] for name in dict.fromkeys(names)}


def _other_options(
    *,
    nodes: Nodes,
    walltime: Walltime = None,
    where: Where = None,
    limits: Limits = None,
) -> None:
    """Declare the options of other types."""


def build_request(given: dict[str, Any]) -> sk.Request:
    """Build the request from a command's options; times stay numbers or texts.

    Raises
    ------
    ValueError
        If not exactly one of --volume and --walltime is given, or a text is neither a
        date nor a duration, whichever its option takes.
    """
    if (given["volume"] is None) == (given["walltime"] is None):
        raise ValueError("one of --volume and --walltime is needed, and only one")
    fields = given | {"walltime": number_or_text(given["walltime"])}
    for name, field in FIELDS.items():
        if field.kind != "number":
            value = fields[name] = number_or_text(given[name])
            if isinstance(value, str):
                check: Any = moment_of if field.kind == "time" else duration_of
                check(value, f"--{name.replace('_', '-')}")
    for name, special in SPECIAL_FIELDS.items():
        if special.kind == "amounts":
            fields[name] = ",".join(given[name]) if given[name] else None
    return sk.Request(**fields)


def refuse_bare_durations(path: Path, given: dict[str, Any]) -> None:
    """Raise ValueError for a duration without a unit if the slots have a clock.

    The unit would be a guess: the clock's own unit, or minutes as in Slurm.
    """
    if not has_clock(path):
        return
    durations = (name for name in FIELDS if FIELDS[name].kind == "duration")
    for name in ("walltime", *durations):
        if is_bare(number_or_text(given[name])):
            duration_of(given[name], f"--{name.replace('_', '-')}")


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace parameters of a command that are records by the options of the records.

    A parameter of type `Request` is replaced by `request_options`; it follows the file.
    One of a dataclass is replaced by a parameter for each of its fields.
    """
    own = inspect.signature(command, eval_str=True)
    records: dict[str, tuple[Any, list[str]]] = {}  # type and options by parameter
    named: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        kind, more = parameter.annotation, [parameter]
        if kind is sk.Request:
            more = list(request_options().values())
        elif is_dataclass(kind):
            hints = get_type_hints(kind, include_extras=True)
            more = [
                parameter.replace(
                    name=field.name,
                    annotation=hints[field.name],
                    default=inspect.Parameter.empty
                    if field.default is MISSING
                    else field.default,
                )
                for field in fields(kind)
            ]
        if more != [parameter]:
            records[name] = kind, [each.name for each in more]
        # One without a default may follow one with a default: typer passes names.
        named += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in more]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        for name, (kind, names) in records.items():
            given = {option: options.pop(option) for option in names}
            if kind is sk.Request:
                options[name] = build_request(given)
                refuse_bare_durations(options["slots"], given)
            else:
                options[name] = kind(**given)
        command(**options)

    run.__signature__ = own.replace(parameters=named)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in named}
    return run
