"""Nodes and jobs in the JSON of Slurm's commands, as rows with the headings of text.

Input is the output of ``sinfo --json`` (22.05), ``scontrol show nodes --json`` or
``squeue --json``. Plugins of different releases write the same value in different
forms, which are all read: a number, or an object with ``set``, ``infinite`` and
``number``; a state as a word or as a list of words; features as a text or a list. A
value of any other form is refused. Cost: linear in the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from slotkern.foundation.checks import quote
from slotkern.foundation.hostlists import quoted
from slotkern.machine.slurm_values import Row

__all__ = ["is_json", "job_rows", "node_rows"]

#: The field of each heading. The first two are needed; absent others are missing.
_NODE_FIELDS = {
    "NODELIST": "name",
    "STATE": "state",
    "CPUS": "cpus",
    "MEMORY": "real_memory",
    "WEIGHT": "weight",
    "ACTIVE_FEATURES": "active_features",
    "GRES": "gres",
    "PARTITION": "partitions",
    "REASON": "reason",
}
_JOB_FIELDS = {
    "JOBID": "job_id",
    "STATE": "job_state",
    "NODELIST": "nodes",
    "START_TIME": "start_time",
    "END_TIME": "end_time",
    "USER": "user_name",
    "PARTITION": "partition",
    "SCHEDNODES": "scheduled_nodes",
}


def is_json(text: str) -> bool:
    """Return whether a text is meant to be a JSON object."""
    return text.lstrip().startswith("{")


def node_rows(text: str, source: str) -> list[Row]:
    """Return one row for each node.

    Raises
    ------
    ValueError
        For invalid JSON, errors that Slurm reports in it, and a value of another form;
        the message contains the source, the record and the field.
    """
    rows = []
    for place, record in _records(text, source, "nodes"):
        cells = _cells(place, record, _NODE_FIELDS)
        cells["NODELIST"] = quoted(cells["NODELIST"])
        flags = _text(place, "state_flags", record.get("state_flags"), "+")
        cells["STATE"] = "+".join(
            filter(None, (cells["STATE"].replace(",", "+"), flags))
        )
        rows.append(Row(source, place[1], cells))
    return rows


def job_rows(text: str, source: str) -> list[Row]:
    """Return one row for each job; errors as for `node_rows`.

    A time of 0 is not known. A job that is completing still holds its nodes.
    """
    rows = []
    for place, record in _records(text, source, "jobs"):
        cells = _cells(place, record, _JOB_FIELDS)
        states = cells["STATE"].split(",")
        cells["STATE"] = "COMPLETING" if "COMPLETING" in states else states[0]
        for name in ("START_TIME", "END_TIME"):
            cells[name] = "" if cells[name] in ("0", "UNLIMITED") else cells[name]
        rows.append(Row(source, place[1], cells))
    return rows


def _records(
    text: str, source: str, key: str
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield the place (source, path) and the object of each record under a key."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: no valid JSON: {error}") from None
    if errors := whole.get("errors"):
        raise ValueError(f"{source}: Slurm reports errors: {quote(errors)}")
    records = whole.get(key)
    if not isinstance(records, list):
        advice = {
            "nodes": "sinfo --json of Slurm 22.05, else scontrol show nodes --json",
            "jobs": "squeue --json",
        }
        raise ValueError(
            f"{source}: there is no list {key!r}, but {quote([*whole])}; print it by "
            f"{advice[key]}"
        )
    for k, record in enumerate(records):
        if not isinstance(record, dict):
            raise ValueError(f"{source}, {key}[{k}]: {quote(record)} is no object")
        yield (source, f"{key}[{k}]"), record


def _cells(
    place: tuple[str, str], record: dict[str, Any], fields: dict[str, str]
) -> dict[str, str]:
    cells = {
        heading: _text(place, field, record.get(field))
        for heading, field in fields.items()
    }
    for heading, field in [*fields.items()][:2]:
        if not cells[heading]:
            raise ValueError(f"{', '.join(place)}: there is no {field}")
    return cells


def _text(place: tuple[str, str], field: str, value: Any, between: str = ",") -> str:
    """Return a value as the text that Slurm prints; "" if it is missing."""
    if isinstance(value, dict) and value.keys() >= {"set", "infinite", "number"}:
        if value["infinite"]:
            return "UNLIMITED"
        value = value["number"] if value["set"] else None
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return between.join(value)
    if isinstance(value, str) or (
        isinstance(value, int) and not isinstance(value, bool)
    ):
        return str(value)
    raise ValueError(
        f"{', '.join(place)}, {field}: {quote(value)} is no text, whole number or list "
        "of texts"
    )
