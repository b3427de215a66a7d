"""Fields of a request that are not numbers and that only some searches support.

`SPECIAL_FIELDS` is the list of them: a request stores those that differ from their
defaults in `Request.special`, which is None without any, and each search calls
`refuse_special` with the fields that it supports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from slotkern.foundation.amounts import Amounts, amounts_by_name, amounts_of
from slotkern.foundation.checks import integer, quote

__all__ = [
    "SPECIAL_FIELDS",
    "SpecialField",
    "level_name",
    "refuse_special",
    "special_values",
]


class SpecialField(NamedTuple):
    """A field of `Request` that only some searches support.

    Attributes
    ----------
    kind : {"text", "integer", "amounts"}
        The type of a cell in a table of jobs; amounts by name are columns such as
        ``share.cores``, or one column of mappings.
    default : object
        The value that sets no condition.
    check : function
        Returns the value as it is stored, immutable and hashable; raises ValueError or
        TypeError with the name of the field and the value.
    needs : str
        The searches that support it, after "needs", for the error of all others.
    text : str
        The description of the field in the documentation.
    """

    kind: Literal["text", "integer", "amounts"]
    default: Any
    check: Callable[[Any], Any]
    needs: str
    text: str


def level_name(value: Any, what: str = "within") -> str:
    """Check the name of a level: a column that a group rule can name.

    Examples
    --------
    >>> level_name("rack")
    'rack'
    >>> level_name("rack 1")
    Traceback (most recent call last):
        ...
    ValueError: within must be one name of a column such as rack, got 'rack 1'
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} must be the name of a column, got {quote(value)}")
    if not value.isidentifier():
        raise ValueError(
            f"{what} must be one name of a column such as rack, got {quote(value)}"
        )
    return value


_RULES = "a search by first, start, finish, runtime or cost with the method exact"
_SHARED = (
    "find, schedule or explain of a HostPool: HostPool(free_slots(machine, ...)) of a "
    "machine with capacity="
)

_TREES = (
    "find or schedule of a HostPool by start or finish: HostPool(free_slots(machine, "
    "...)) of a machine with capacity="
)

_COUNTED = "a pool with capacities or quotas: SlotPool(slots, caps=), quota"


def _uses_of(value: Any) -> Amounts | None:
    """Check amounts of capacities; a text is a column that is summed over the nodes."""
    if value is None:
        return None
    if isinstance(value, str):
        pieces = [piece.partition("=") for piece in value.split(",")]
        terms = {key.strip(): of.strip() for key, _, of in pieces}
        if len(terms) < len(pieces) or all(map(_is_number, terms.values())):
            return amounts_of("uses", value)
        value = terms
    if not isinstance(value, Mapping):
        return amounts_of("uses", value)
    value = {key: _amount_or_column(of) for key, of in value.items()}
    counts = {key: of for key, of in value.items() if not isinstance(of, str)}
    found: dict[str, Any] = amounts_by_name("uses", counts)
    for key, of in value.items():
        if isinstance(of, str):
            if not isinstance(key, str) or not key or not of.strip():
                raise ValueError(
                    f"uses[{key!r}] must be a whole number or a column, got {quote(of)}"
                )
            found[key] = of
    if not found:
        return amounts_of("uses", value)  # raises
    return Amounts({key: found[key] for key in value if key in found})


def _is_number(text: str) -> bool:
    return not text or not isinstance(_amount_or_column(text), str)


def _amount_or_column(of: Any) -> Any:
    """Return the number in a text; other values as they are."""
    if not isinstance(of, str):
        return of
    try:
        return float(of)
    except ValueError:
        return of


def _tree_of(value: Any) -> Amounts | None:
    """Check numbers of groups by level."""
    if value is None:
        return None
    found = amounts_of("tree", value)
    for level in found:
        level_name(level, "a level of tree")
    return found


def _account_of(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value or value == "*":
        raise TypeError(f"account must be text, not empty or '*', got {quote(value)}")
    return value


SPECIAL_FIELDS: dict[str, SpecialField] = {
    "within": SpecialField(
        "text",
        None,
        lambda value: None if value is None else level_name(value),
        _RULES,
        "Column whose value is the same on all nodes, such as rack.",
    ),
    "share": SpecialField(
        "amounts",
        None,
        lambda value: None if value is None else amounts_of("share", value),
        _SHARED,
        "Amounts that each part takes of its node, instead of the whole node.",
    ),
    "stack": SpecialField(
        "integer",
        1,
        lambda value: integer("stack", value, least=1, most=2**20),
        _SHARED,
        "Maximum number of parts on one node.",
    ),
    "tree": SpecialField(
        "amounts",
        None,
        _tree_of,
        _TREES,
        "Numbers of groups by level that take equal parts.",
    ),
    "whole": SpecialField(
        "text",
        None,
        lambda value: None if value is None else level_name(value, "whole"),
        _TREES,
        "Column whose groups are taken whole: nodes is the number of such groups.",
    ),
    "uses": SpecialField(
        "amounts",
        None,
        _uses_of,
        _COUNTED,
        "Amounts of the pool's capacities, such as licences, from start to finish.",
    ),
    "account": SpecialField(
        "text",
        None,
        _account_of,
        _COUNTED,
        "Account whose quotas count the window; by default the owner of its booking.",
    ),
}


def special_values(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Check given special fields; return those that differ from their defaults.

    Raises
    ------
    ValueError, TypeError
        For an invalid value, and for fields that contradict each other.
    """
    found = {}
    for name, field in SPECIAL_FIELDS.items():
        if name in given and (value := field.check(given[name])) != field.default:
            found[name] = value
    if "stack" in found and "share" not in found:
        raise ValueError(
            f"stack={found['stack']} needs share=: whole nodes hold one part each"
        )
    if "whole" in found and "share" in found:
        raise ValueError(
            f"whole={found['whole']!r} takes all of each node; omit share="
        )
    if "within" in found and not found.keys().isdisjoint(("tree", "whole")):
        raise ValueError(
            f"within={found['within']!r} is a level of the tree: write "
            f"tree={{{found['within']!r}: 1}}"
        )
    return found or None


def refuse_special(request: Any, who: str, supported: Iterable[str] = ()) -> None:
    """Raise ValueError for a request with a special field that a search lacks.

    Parameters
    ----------
    request : Request
    who : str
        The name of the search, for the error.
    supported : iterable of str
        The names of the special fields that the search supports. The other group rules,
        which are limits, are supported like ``within``.
    """
    given = request.special or {}
    names = given if "within" in given or not request.rules else [*given, "within"]
    for name in names:
        if name not in supported:
            text = " and ".join(rule.text for rule in request.rules)
            if name in given:
                text = f"{name}={quote(given[name])}"
            at = f"{request.name}: " if request.name else ""
            raise ValueError(
                f"{at}{who} does not support {text}; it needs "
                f"{SPECIAL_FIELDS[name].needs}"
            )
