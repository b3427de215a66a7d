"""Checks of values from a TOML file; errors name the key and the value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from slotkern.foundation import checks

__all__ = [
    "as_count",
    "as_flag",
    "as_list",
    "as_name",
    "as_number",
    "as_records",
    "as_table",
    "as_text",
    "as_texts",
    "only_keys",
    "overlaid",
]


def only_keys(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise ValueError for a key that is not known."""
    known = tuple(known)
    for key in table:
        if key not in known:
            name = f"{where}.{key}" if where else key
            allowed = (
                f"known are {', '.join(known)}" if known else f"{where} has no keys"
            )
            raise ValueError(f"{name}: unknown key; {allowed}")


def as_records(
    key: str, data: Mapping[str, Any], known: Iterable[str]
) -> tuple[Mapping[str, Any], ...]:
    """Return the tables of ``[[key]]``, with their keys checked."""
    records = data.get(key, [])
    if not isinstance(records, list):
        raise ValueError(f"{key}: write it as [[{key}]]")
    for number, record in enumerate(records):
        where = f"{key}[{number}]"
        only_keys(where, as_table(where, record), known)
    return tuple(records)


def as_table(where: str, value: Any) -> Mapping[str, Any]:
    """Return a value if it is a table."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: {_not_a('table', value)}")
    return value


def as_text(where: str, value: Any) -> str:
    """Return a value if it is a non-empty string of one line."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise ValueError(f"{where}: {_not_a('line of text', value)}")
    return value


def as_name(where: str, value: Any, more: str = "") -> str:
    """Return a string of letters, digits, '_' and, after the first, those of `more`."""
    letters = f"A-Za-z0-9_{re.escape(more)}"
    if not re.fullmatch(f"[A-Za-z0-9_][{letters}]*", as_text(where, value)):
        allowed = " and ".join(f"'{letter}'" for letter in ("_", *more))
        raise ValueError(f"{where}: {value!r} may hold letters, digits, {allowed} only")
    return str(value)


def as_list(where: str, value: Any) -> list[Any]:
    """Return a value if it is a non-empty list."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"{where}: {_not_a('list of values', value)}")
    return value


def as_texts(where: str, value: Any) -> list[str]:
    """Return a value if it is a non-empty list of different strings."""
    found = [as_text(where, part) for part in as_list(where, value)]
    for part in found:
        if found.count(part) > 1:
            raise ValueError(f"{where}: names {part!r} twice")
    return found


def as_flag(where: str, value: Any) -> bool:
    """Return a value if it is a boolean."""
    if not isinstance(value, bool):
        raise ValueError(f"{where}: {checks.quote(value)} is not true or false")
    return value


def as_count(
    where: str, value: Any, least: int = 1, most: int | None = 2**31 - 1
) -> int:
    """Return an integer if it is within [least, most]; None: no upper limit."""
    try:
        return checks.integer(where, value, least, most)
    except TypeError as error:  # a wrong type in a file is a wrong value
        raise ValueError(str(error)) from None


def as_number(where: str, value: Any, **limits: Any) -> float:
    """Return a number within limits; see `slotkern.foundation.checks.number`."""
    try:
        return checks.number(where, value, **limits)
    except TypeError as error:
        raise ValueError(str(error)) from None


def overlaid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` overridden by the values of `over`; nested tables are merged."""
    merged = dict(base)
    for key, value in over.items():
        under = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        merged[key] = overlaid(under, value) if both else value  # type: ignore[arg-type]
    return merged


def _not_a(what: str, value: Any) -> str:
    return "is missing" if value is None else f"{checks.quote(value)} is not a {what}"
