"""Conversion of clock, machine, tariffs and owners of a pool to arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import CapacityRule, Caps
from slotkern._kernels.windows import PART, Window
from slotkern.files.columns import InputError
from slotkern.foundation.context import SlotContext
from slotkern.machine.clock import Clock
from slotkern.machine.nodes import Machine, quoted_names
from slotkern.tariffs.mapping import Tariffs

if TYPE_CHECKING:
    from slotkern._kernels.pool import SlotPool

__all__ = [
    "capacities_of",
    "from_arrays",
    "has_capacities",
    "has_tariffs",
    "rules_from_lists",
    "rules_to_lists",
    "to_arrays",
]

_COLUMN, _LEVELS = "machine ", "levels of machine"
#: The array of the capacities and quotas of a pool, as JSON.
_CAPACITIES = "capacities"
#: The array of the special fields of the owned windows, as JSON.
_SPECIAL = "window special"
#: The arrays of the table of tariffs, by its columns.
_TARIFF = {"tariff": "tariff name", "start": "tariff start", "factor": "tariff factor"}
_NUMBERS = ("start", "finish", "runtime", "cost", "processor_time", "value", "bound")


def to_arrays(pool: SlotPool) -> dict[str, NDArray[Any]]:
    """Convert clock, machine, tariffs and owned windows of a pool to arrays.

    Raises
    ------
    TypeError
        If a column of the machine contains Python objects.
    """
    found: dict[str, NDArray[Any]] = {}
    if pool.clock is not None:
        found["clock"] = np.array(json.dumps(pool.clock.to_dict()))
    if pool.machine is not None:
        for name, column in (
            pool.machine.to_dict() | {"name": pool.machine.names}
        ).items():
            if column.dtype.hasobject:
                raise TypeError(
                    f"machine: column {name!r} holds objects: cannot be saved"
                )
            found[_COLUMN + name] = column
        if pool.machine.levels:
            found[_LEVELS] = np.array(pool.machine.levels)
        if pool.machine.capacity is not None:
            sharing = pool.machine._options()
            del sharing["levels"]  # an array of their own
            found["capacity"] = np.array(json.dumps(sharing))
    tariffs = (pool.context or SlotContext()).tariffs
    if tariffs is not None:
        table = tariffs.to_table()
        found |= {array: table[column] for column, array in _TARIFF.items()}
    owned = pool._owned_windows()
    if owned:
        windows = [window for window, _ in owned]
        found["owner"] = np.array([owner for _, owner in owned])
        for name in ("name", "criterion", "shape"):
            found[f"window {name}"] = np.array(
                [getattr(window, name) or "" for window in windows]
            )
        found["window proven"] = np.array([window.proven for window in windows])
        found["window numbers"] = np.array(
            [[getattr(window, name) for name in _NUMBERS] for window in windows]
        )
        found["window size"] = np.array([len(window) for window in windows])
        parts = np.concatenate([window.slots for window in windows])
        found["window parts"] = np.empty(len(parts), PART)
        for name in PART.names or ():  # windows of shares have a further field
            found["window parts"][name] = parts[name]
        found["window length"] = np.array(
            [part["length"] for w in windows for part in w.to_dict()["slots"]]
        )
        if any(window.special for window in windows):
            found[_SPECIAL] = np.array([json.dumps(w.special) for w in windows])
    capacities = pool._capacities
    if capacities is not None:
        found[_CAPACITIES] = np.array(
            json.dumps(
                {
                    "rules": rules_to_lists(capacities.rules),
                    "windows": [
                        [window.to_dict(), *charge]
                        for window, charge in capacities.charged()
                    ],
                    "now": capacities.now,
                }
            )
        )
    return found


def has_capacities(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether arrays of `to_arrays` contain capacities or quotas."""
    return _CAPACITIES in arrays


def capacities_of(arrays: Mapping[str, NDArray[Any]]) -> Caps | None:
    """Restore the capacities of a pool from arrays of `to_arrays`; None without any."""
    if not has_capacities(arrays):
        return None
    try:
        given = json.loads(str(arrays[_CAPACITIES].tolist()))
        rules = rules_from_lists(given["rules"])
        charges = [
            (Window.from_dict(window), (nodes, uses, account))
            for window, nodes, uses, account in given["windows"]
        ]
        return Caps(rules, charges, float(given["now"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"its capacities are not complete: {error}") from None


def rules_to_lists(rules: Iterable[CapacityRule]) -> list[list[Any]]:
    """Return capacities and quotas as lists for JSON."""
    return [[*rule.key, rule.steps, rule.weekly] for rule in rules]


def rules_from_lists(given: Iterable[Sequence[Any]]) -> list[CapacityRule]:
    """Return the rules of `rules_to_lists`."""
    return [
        CapacityRule(
            *(what, account, each, when),
            [(float(time), amount) for time, amount in steps],
            weekly,
        )
        for what, account, each, when, steps, weekly in given
    ]


def has_tariffs(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether arrays of `to_arrays` contain tariffs."""
    return _TARIFF["tariff"] in arrays


def from_arrays(
    arrays: Mapping[str, NDArray[Any]],
) -> tuple[SlotContext | None, list[tuple[Window, str]]]:
    """Restore clock, machine, tariffs and owned windows from arrays of `to_arrays`.

    Raises
    ------
    InputError, ValueError, TypeError
        If the arrays are not a result of `to_arrays`.
    """
    clock = machine = None
    if "clock" in arrays:
        given = json.loads(str(arrays["clock"].tolist()))
        if not isinstance(given, dict):
            raise InputError("its clock is no JSON object")
        clock = Clock.from_dict(given)
    columns = {
        name.removeprefix(_COLUMN): column
        for name, column in arrays.items()
        if name.startswith(_COLUMN)
    }
    if "name" in columns and columns["name"].dtype.kind == "U":
        columns["name"] = quoted_names(columns["name"])
    if columns:
        levels = arrays.get(_LEVELS, np.empty(0)).tolist()
        sharing = json.loads(str(arrays.get("capacity", np.array("{}")).tolist()))
        if not isinstance(sharing, dict):
            raise InputError("the capacity of its machine is not a JSON object")
        machine = Machine(columns, levels=levels, **sharing)
    tariffs = None
    if has_tariffs(arrays):
        table = {column: arrays.get(name) for column, name in _TARIFF.items()}
        if any(column is None for column in table.values()):
            raise InputError("its tariffs are not complete")
        tariffs = Tariffs.from_table(table)
    context = SlotContext(clock, machine, tariffs)
    none = all(each is None for each in context)
    owned = list(_windows(arrays)) if "owner" in arrays else []
    return None if none else context, owned


def _windows(arrays: Mapping[str, NDArray[Any]]) -> Any:
    owners = arrays["owner"].tolist()
    none = np.empty(0)
    many = {name: arrays.get(f"window {name}", none) for name in _COLUMNS}
    for name in _EACH:
        if len(many[name]) != len(owners):
            raise InputError(
                f"the array {name!r} does not have a value for each window"
            )
    sizes = many["size"].tolist()
    parts, lengths = many["parts"], many["length"].tolist()
    if parts.dtype != PART or not len(parts) == len(lengths) == sum(sizes):
        raise InputError("the parts of its windows do not match their sizes")
    rows = [dict(zip(PART.names or (), row, strict=True)) for row in parts.tolist()]
    specials = arrays.get(_SPECIAL, np.full(len(owners), "null")).tolist()
    first = 0
    for i, owner in enumerate(owners):
        end = first + sizes[i]
        whole = dict(zip(_NUMBERS, many["numbers"][i].tolist(), strict=True))
        for name in ("criterion", "shape", "proven"):
            whole[name] = many[name][i].item()
        whole["name"] = many["name"][i].item() or None
        whole |= json.loads(specials[i]) or {}
        pieces = zip(rows[first:end], lengths[first:end], strict=True)
        whole["slots"] = [part | {"length": length} for part, length in pieces]
        yield Window.from_dict(whole), owner
        first = end


_EACH = ("name", "criterion", "shape", "proven", "numbers", "size")
_COLUMNS = (*_EACH, "parts", "length")
