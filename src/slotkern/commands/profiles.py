"""The criterion ``profile(NAME)`` of commands, and its file.

A profile is a function of time, such as the grams of CO2 for each kilowatt-hour, whose
integral over a window is minimized. It is a column of the file of ``--profile``, or a
tariff of the pool.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern.foundation.checks import meant, quote
from slotkern.foundation.extras import extra
from slotkern.machine.files import TABLES, read_columns
from slotkern.machine.frames import FileColumns
from slotkern.search.criteria import Minimize
from slotkern.tariffs.tables import tariff_of_table

with extra():
    import typer

__all__ = ["Profile", "criterion_of"]

Profile = Annotated[
    Path | None,
    typer.Option(
        help=f"File of a profile over time: {TABLES} with columns start, "
        "optionally end, and values such as carbon, in grams per kilowatt-hour. "
        "--criterion 'profile(carbon)' then minimizes the integral of that column over "
        "the window, 'profile(carbon, kw)' multiplied by the column kw of SLOTS."
    ),
]

_CALL = re.compile(
    r"(minimize\()?profile\(\s*([^,()]+?)\s*(?:,\s*([^,()]+?)\s*)?\)(\))?"
)
_VALUES = ("factor", "price")


def criterion_of(text: str, path: Path | None, slots: Any) -> str | Minimize:
    """Return the criterion of the text of ``--criterion``.

    `slots` are the slots of the search: the file must have values for all of their
    time, and their clock converts its dates.

    Raises
    ------
    ValueError
        For a file without a criterion of its values, and as `Tariff.of_prices`.
    OSError
        If the file cannot be read.
    """
    call = _CALL.fullmatch(text.strip())
    if call is None or (call[1] is None) != (call[4] is None):
        if path is not None:
            raise ValueError(
                f"--profile {path} needs --criterion 'profile(NAME)', with the name of "
                f"a column of the file, got --criterion {quote(text)}"
            )
        return text
    name, weight = call[2], call[3]
    profile = name if path is None else _read(path, name, slots)
    return sk.minimize(sk.profile(profile, weight))


def _read(path: Path, name: str, slots: Any) -> sk.Tariff:
    columns = read_columns(path)
    value = name
    if name not in columns and name == path.stem:  # the file is named after its values
        value = next((each for each in _VALUES if each in columns), name)
    if value not in columns or value in ("start", "end"):
        known = [each for each in columns if each not in ("start", "end")]
        raise ValueError(
            f"--criterion profile({name}): {path} has no column {quote(name)}; it has "
            f"{', '.join(known) or 'none'}{meant(name, known)}"
        )
    table = {each: columns[each] for each in ("start", "end") if each in columns}
    table["factor"] = columns[value]
    rows, clock = getattr(slots, "slots", slots), getattr(slots, "clock", None)
    ends = rows["end"][np.isfinite(rows["end"])]
    span = float(rows["start"].min(initial=np.inf)), float(ends.max(initial=-np.inf))
    source = FileColumns(table, columns.source)
    return sk.Tariff(*tariff_of_table(source, str(path), clock, None, span))
