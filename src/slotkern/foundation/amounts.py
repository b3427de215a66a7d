"""Amounts by name: hashable mappings of text to whole numbers, as shares of nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from slotkern.foundation.checks import quote

__all__ = [
    "EXAMPLES",
    "MAX_AMOUNT",
    "Amounts",
    "amounts_by_name",
    "amounts_of",
    "unit_hint",
    "whole_number",
]

#: Amounts as text for each field of a request, in messages and help.
EXAMPLES = {
    "share": "cores=16,gpus=2",
    "uses": "matlab=2,power=500",
    "tree": "switch=1,rack=3",
}
#: The largest amount and capacity of one node: sums of them fit in int32.
MAX_AMOUNT = 2**27 - 1


class Amounts(dict[str, int]):
    """An immutable dict of amounts above 0: hashable, and equal to a dict of the same.

    Examples
    --------
    >>> share = amounts_of("share", {"cores": 16, "gpus": 0})
    >>> share, share == {"cores": 16}
    ({'cores': 16}, True)
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return Amounts, (dict(self),)

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        raise TypeError("the amounts of a request cannot be changed; see replace")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


def amounts_of(name: str, given: Any) -> Amounts:
    """Check a mapping of names to whole numbers, and drop the amounts of 0.

    Parameters
    ----------
    name : str
        The name of the mapping in errors.
    given : mapping of str to int, or str
        A text has the form ``cores=16,gpus=2``.

    Raises
    ------
    ValueError, TypeError
        For a value that is not a mapping, an amount that is not a whole number from 0
        to `MAX_AMOUNT`, and a mapping without an amount above 0.
    """
    if isinstance(given, str):
        given = _parsed(name, given)
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{name} must be a mapping of names to amounts, such as "
            f"{{'cores': 16}}; got {quote(given)}"
        )
    found = amounts_by_name(name, given)
    if not found:
        raise ValueError(f"{name} takes nothing: {quote(dict(given))}")
    return Amounts(found)


def amounts_by_name(name: str, given: Mapping[Any, Any]) -> dict[str, int]:
    """Check the names and amounts of a mapping, and drop the amounts of 0."""
    found = {}
    for key, value in given.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"{name} has the key {quote(key)}, which is not a name")
        amount = whole_number(f"{name}[{key!r}]", value)
        if amount:
            found[key] = amount
    return found


def _parsed(name: str, text: str) -> dict[str, int]:
    """Parse amounts such as ``cores=16,gpus=2``."""
    found: dict[str, int] = {}
    for piece in text.split(","):
        key, equals, amount = (each.strip() for each in piece.partition("="))
        try:
            value = float(amount)
        except ValueError:
            equals = ""
        if not (key and equals):
            example = EXAMPLES.get(name, EXAMPLES["share"])
            raise ValueError(
                f"{name} must be amounts such as {example!r}, got {quote(piece)} in "
                f"{quote(text)}"
            )
        if key in found:
            raise ValueError(f"{name} has {key!r} twice: {quote(text)}")
        found[key] = whole_number(f"{name}[{key!r}]", value)
    return found


def whole_number(name: str, value: Any) -> int:
    """Check that a value is a whole number from 0 to `MAX_AMOUNT`; 16.0 is 16."""
    is_bool = isinstance(value, bool) or value.__class__.__name__ in ("bool_", "bool")
    if is_bool or isinstance(value, (str, bytes, complex)):
        raise TypeError(f"{name} must be a whole number, got {quote(value)}")
    try:
        exact = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a whole number, got {quote(value)}") from None
    except OverflowError:
        exact = math.inf
    if not exact >= 0:
        raise ValueError(f"{name} must not be negative, got {quote(value)}")
    if exact > MAX_AMOUNT or not exact.is_integer():
        raise ValueError(
            f"{name} is {quote(value)}, but amounts are whole numbers up to "
            f"{MAX_AMOUNT:,}; {unit_hint(name, exact)}"
        )
    return int(exact)


def unit_hint(name: str, value: float) -> str:
    """Propose a unit in which a value becomes a whole number, or a smaller one."""
    memory = any(word in name.lower() for word in ("mem", "ram", "disk", "storage"))
    if value > MAX_AMOUNT:
        return f"use a larger unit{', such as MB' if memory else ''}"
    return f"use a smaller unit{', such as MB' if memory else ', such as thousandths'}"
