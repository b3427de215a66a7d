"""Site files: the rules of a cluster that its scheduler does not know.

A site file is TOML: guards around bookings, prices and performances of nodes, and the
partitions that may be used. Unknown keys are refused by name.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.expressions.filters import evaluate
from slotkern.files.atomic import AnyPath, as_path
from slotkern.files.columns import InputError, utf8
from slotkern.foundation.checks import meant, number, one_of, quote
from slotkern.machine import Machine
from slotkern.machine.zones import zone_of

__all__ = ["Site", "read_site", "system_zone"]

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_VALUE_KEYS = {"performance", "price"}
_NODE_KEYS = {"where", *_VALUE_KEYS}
#: Values by scheduler that are not the defaults of `Site`. OAR takes some seconds to
#: validate a reservation, and refuses one whose start has passed.
_OF_SYSTEM: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "slurm": {},
    "oar": {"apart": 60.0, "lead": 60.0},
}


@dataclass(frozen=True)
class Site:
    """The rules of a site; times are in seconds.

    Attributes
    ----------
    horizon : float
        How far windows may lie in the future.
    lead : float
        The least time from now to the start of a booking.
    before : float
        Time kept free after each earlier occupant, which may end late.
    after : float
        Time reserved after the job's limit, because jobs start late. Whole minutes.
    timeout : float
        The longest wait for a command of the scheduler, and, if it is over 30, for OAR
        to validate a reservation or to delete a job.
    unit : {"h", "s", "min", "d"}
        The time unit of prices.
    pending : {"respect", "ignore"}
        The treatment of the starts that the scheduler plans for waiting jobs.
    partitions : tuple of str
        The partitions that may be used; all if empty.
    sudo : tuple of str
        Words before the commands that create and delete reservations.
    conf : str
        The path of ``slurm.conf``, for a Slurm that is not the default one.
    zone : str
        The time zone of the cluster; by default that of this computer.
    node : tuple of mapping
        Rules with ``performance`` and ``price``, a number or a column, of the nodes
        that the filter ``where`` selects, by default all; later rules win.
    system : {"", "slurm", "oar"}
        The scheduler; by default the one that answers on this computer.
    group : str
        The property of OAR's nodes whose values are the partitions.
    apart : float
        Time that the scheduler keeps free between any two occupants of a node: OAR's
        ``SCHEDULER_JOB_SECURITY_TIME``. `of_system` and `read_site` set it to 60, and
        `lead` too, for OAR.
    """

    horizon: float = 7 * 86400.0
    lead: float = 15.0
    before: float = 5.0
    after: float = 60.0
    timeout: float = 20.0
    unit: str = "h"
    pending: str = "respect"
    partitions: tuple[str, ...] = ()
    sudo: tuple[str, ...] = ()
    conf: str = ""
    zone: str = ""
    node: tuple[Mapping[str, Any], ...] = ()
    system: str = ""
    group: str = ""
    apart: float = 0.0

    def __post_init__(self) -> None:
        for name in ("horizon", "timeout"):
            number(name, getattr(self, name), above=0)
        for name in ("lead", "before", "after", "apart"):
            number(name, getattr(self, name), least=0)
        if self.after % 60:
            raise ValueError(f"after {self.after:g} is not whole minutes: 0, 60, 120")
        one_of("unit", self.unit, _UNITS)
        one_of("pending", self.pending, ("respect", "ignore"))
        for name in ("partitions", "sudo"):
            _check_texts(name, getattr(self, name))
        for name in ("conf", "zone", "system", "group"):
            if not isinstance(getattr(self, name), str):
                given = quote(getattr(self, name))
                raise TypeError(f"{name} must be a text, got {given}")
        if self.zone:
            zone_of(self.zone)
        if self.system:
            one_of("system", self.system, [*filter(None, _OF_SYSTEM)])
        for name, system in (("conf", "slurm"), ("group", "oar")):
            if getattr(self, name) and self.system not in ("", system):
                raise ValueError(
                    f"{name} {quote(getattr(self, name))} is for system {system!r}, "
                    f"but system is {self.system!r}"
                )
        if not isinstance(self.node, tuple):
            raise TypeError(f"node must be tables [[node]], got {quote(self.node)}")
        for k, rule in enumerate(self.node):
            if not isinstance(rule, Mapping):
                raise TypeError(f"node {k} must be a table, got {quote(rule)}")
            for key in rule:
                _check_key(f"node {k}", key, _NODE_KEYS)
            if not isinstance(rule.get("where", ""), str):
                raise TypeError(f"node {k}: where must be a filter")
            for key in _VALUE_KEYS & rule.keys():
                if not isinstance(rule[key], str):  # else a column of the machine
                    number(f"node {k}: {key}", rule[key], least=0)

    @classmethod
    def of_system(cls, system: str) -> Site:
        """Return the rules of a site without a file, for "slurm" or "oar"."""
        return cls(system=system, **_OF_SYSTEM[system])

    def priced(self, machine: Machine) -> Machine:
        """Return the machine with the performances and prices of the site."""
        given = machine.to_dict()
        plain = {"name": machine.names} | machine.columns
        rows = np.empty(len(machine), [(k, v.dtype) for k, v in plain.items()])
        for key, column in plain.items():
            rows[key] = column
        values = {"performance": np.ones(len(machine)), "price": np.zeros(len(machine))}
        for k, rule in enumerate(self.node):
            hit: NDArray[np.bool_] = np.ones(len(machine), np.bool_)
            if "where" in rule:
                try:
                    hit = np.asarray(evaluate(rule["where"], rows), np.bool_)
                except ValueError as error:
                    raise ValueError(f"site, node {k}: {error}") from None
            for key in values.keys() & rule.keys():
                values[key][hit] = _column(rule[key], rows, f"node {k}: {key}")[hit]
        values["price"] /= _UNITS[self.unit]
        return Machine(given | values, **machine._options())


def system_zone() -> str | None:
    """Return the name of the time zone of this computer; None if it has none."""
    if zone := os.environ.get("TZ", "").lstrip(":"):
        return zone
    parts = Path("/etc/localtime").resolve().parts
    if "zoneinfo" in parts:
        return "/".join(parts[parts.index("zoneinfo") + 1 :]) or None
    return None


def _column(value: Any, rows: NDArray[Any], what: str) -> NDArray[np.float64]:
    if isinstance(value, str):
        names = rows.dtype.names or ()
        if value not in names or rows[value].dtype.kind not in "iufb":
            raise ValueError(
                f"{what}: {value!r} is not a number or a numeric column"
                f"{meant(value, names)}"
            )
        return rows[value].astype(np.float64)
    return np.full(len(rows), float(value))


def _check_key(what: str, key: str, allowed: Any) -> None:
    if key not in allowed:
        raise ValueError(
            f"{what}: unknown key {quote(key)}; known: {', '.join(sorted(allowed))}"
            f"{meant(key, allowed)}"
        )


def _check_texts(name: str, value: Any) -> None:
    if not isinstance(value, tuple) or not all(isinstance(v, str) and v for v in value):
        raise TypeError(f"{name} must be a list of texts, got {quote(value)}")


def read_site(path: AnyPath, system: str = "") -> Site:
    """Read a site file.

    Parameters
    ----------
    path : path
    system : {"", "slurm", "oar"}
        The scheduler, if the file does not name it.

    Raises
    ------
    ValueError, TypeError
        For a file that is not TOML, an unknown key or a wrong value; the message
        contains the file and the key.
    OSError
        If the file cannot be read.
    """
    source = Path(as_path(path))
    try:
        given = tomllib.loads(utf8(source.read_bytes()))
        for key in given:
            _check_key("site", key, [field.name for field in fields(Site)])
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in given.items()
        }
        named = values.get("system") or system
        usual = _OF_SYSTEM.get(named, {}) if isinstance(named, str) else {}
        return Site(**{**usual, **values, "system": named})
    except InputError as fault:
        raise fault.error(str(source), str) from None
    except TypeError as error:
        raise TypeError(f"{source}: {error}") from None
    except ValueError as error:  # includes TOMLDecodeError
        raise ValueError(f"{source}: {error}") from None
