"""Tables of jobs, some of several parts: one row for each request.

Rows with the same word in ``together`` are the roles of one job of this name, and rows
with the same word in ``any_of`` its options; ``role`` labels a row in its job. The word
in ``after`` is the name of the job that must have finished before: the stages of a
chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from slotkern._kernels.request import Request
from slotkern.compound.jobs import AnyOf, Chain, Job, Together
from slotkern.foundation.checks import meant, quote, row_label
from slotkern.machine.jobs import Row, request_of_row

__all__ = ["jobs_of_rows"]


class _Unit:
    """A job of the table before chains are made: its rows, its name and predecessor."""

    def __init__(self, row: int, name: str | None) -> None:
        self.row, self.name = row, name
        self.rows: list[int] = []
        self.after: str | None = None
        self.after_row = row  # the first one that names it


def jobs_of_rows(rows: list[Row], name: str) -> list[Job]:
    """Return the jobs of a table, each at the place of its first row.

    Raises
    ------
    ValueError
        For an unknown name in ``after``, a chain with a fork or a cycle, a job of two
        kinds, and ``role`` outside a job; the message has table, row and value.
    """

    def at(row: int, column: str) -> str:
        return f"{name}, {row_label(name, row)}, column {column!r}"

    words = [
        {key: row.pop(key, None) for key in ("together", "any_of", "after", "role")}
        for row in rows
    ]
    units = _units(rows, words, at)
    requests = []
    for i, (row, word) in enumerate(zip(rows, words, strict=True)):
        if word["role"] is not None:
            if word["together"] is None and word["any_of"] is None:
                raise ValueError(
                    f"{at(i, 'role')}: {word['role']!r} labels a part of a job; name "
                    "the job in the column together or any_of"
                )
            row["name"] = word["role"]
        requests.append(request_of_row(row, i, name))
    jobs = [_job_of(unit, requests, words, at) for unit in units]
    return _chains(units, jobs, at)


def _units(rows: list[Row], words: list[dict[str, Any]], at: Any) -> list[_Unit]:
    """Return the jobs in the order of their first rows, with the rows of each."""
    found: dict[Any, _Unit] = {}
    names: dict[str, _Unit] = {}
    for i, (row, word) in enumerate(zip(rows, words, strict=True)):
        group = word["any_of"] or word["together"]
        key = i if group is None else group
        unit = found.get(key)
        if unit is None:
            unit = found[key] = _Unit(i, group or row.get("name"))
            if unit.name is not None:
                if unit.name in names:
                    raise ValueError(
                        f"{at(i, 'name')}: {unit.name!r} is the name of the job of "
                        f"row {names[unit.name].row}"
                    )
                names[unit.name] = unit
        unit.rows.append(i)
        after = word["after"]
        if after is not None:
            if unit.after not in (None, after):
                raise ValueError(
                    f"{at(i, 'after')}: {after!r}, but another row of "
                    f"{unit.name!r} has {unit.after!r}; a job follows one other"
                )
            if unit.after is None:
                unit.after, unit.after_row = after, i
    return list(found.values())


def _job_of(
    unit: _Unit, requests: list[Request], words: list[dict[str, Any]], at: Any
) -> Job:
    """Return the job of some rows."""
    kinds = [(words[i]["any_of"], words[i]["together"]) for i in unit.rows]
    if kinds[0] == (None, None):
        return requests[unit.row]
    options: dict[Any, list[Request]] = {}
    for i, (any_of, together) in zip(unit.rows, kinds, strict=True):
        if (any_of is None) != (kinds[0][0] is None):
            raise ValueError(
                f"{at(i, 'any_of')}: some rows of {unit.name!r} name it in any_of, "
                "others in together"
            )
        key = together if together is not None else ("row", i)
        options.setdefault(key, []).append(requests[i])
    if kinds[0][0] is None:
        return Together(options[unit.name], name=unit.name)
    parts = [
        some[0] if isinstance(key, tuple) else Together(some, name=key)
        for key, some in options.items()
    ]
    return AnyOf(parts, name=unit.name)


def _chains(units: Sequence[_Unit], jobs: list[Job], at: Any) -> list[Job]:
    """Join the jobs that follow each other to chains."""
    place = {unit.name: k for k, unit in enumerate(units) if unit.name is not None}
    later: dict[int, int] = {}
    for k, unit in enumerate(units):
        if unit.after is None:
            continue
        before = place.get(unit.after)
        where = at(unit.after_row, "after")
        if before is None:
            raise ValueError(
                f"{where}: no job has the name {quote(unit.after)}"
                f"{meant(unit.after, map(str, place))}"
            )
        if before in later:
            raise ValueError(
                f"{where}: {unit.after!r} is followed by the job of row "
                f"{units[later[before]].row} already; a chain has no forks"
            )
        later[before] = k
    found: dict[int, Job] = {}
    chained: set[int] = set()
    for k, unit in enumerate(units):
        if unit.after is not None:
            continue
        stages = [k]
        while stages[-1] in later:
            stages.append(later[stages[-1]])
        chained |= set(stages)
        if len(stages) == 1:
            found[k] = jobs[k]
        else:
            found[min(stages)] = Chain([cast("Any", jobs[stage]) for stage in stages])
    for k, unit in enumerate(units):
        if k not in chained:
            raise ValueError(
                f"{at(unit.after_row, 'after')}: {unit.after!r} and the jobs before it "
                "follow each other in a cycle"
            )
    return [found[k] for k in sorted(found)]
