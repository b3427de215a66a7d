"""The JSON of OAR: spans of jobs and reservations, nodes, and malformed texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slotkern.clusters import read_oar

NOW = 1795837210
INF = float("inf")


def node(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "network_address": name,
        "state": "Alive",
        "type": "default",
        "cluster": name[0],
        "drain": "NO",
    } | fields


def job(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "Job_Id": number,
        "owner": "anna",
        "name": None,
        "state": "Running",
        "startTime": NOW - 100,
        "walltime": 599,
        "reservation": "None",
        "types": [],
        "assigned_network_address": [],
    } | fields


def numbered(records: list[dict[str, Any]]) -> str:
    return json.dumps({str(k): each for k, each in enumerate(records, 1)})


NODES = numbered(
    [
        *(node("a1"), node("a1"), node("a2"), node("b1", drain="YES")),
        *(node("b2", state="Absent"), node("x", type="licence")),
    ]
)


def spans(*jobs: dict[str, Any]) -> list[tuple[Any, ...]]:
    found = read_oar(NODES, numbered([*jobs]), now=NOW, group="cluster")
    return [tuple(row) for row in found.busy.tolist() if "job" in row[3] or row[4]]


def test_nodes_are_counted_and_grouped() -> None:
    found = read_oar(NODES, "", now=NOW, group="cluster")
    assert found.machine.names.tolist() == ["a1", "a2", "b1", "b2"]
    assert found.machine.columns["cpus"].tolist() == [2, 1, 1, 1]
    groups = {name: each.nodes.tolist() for name, each in found.partitions.items()}
    assert groups == {"a": [0, 1], "b": [2, 3]}
    busy = [(row[0], row[2], row[3]) for row in found.busy.tolist()]
    assert busy == [(2, INF, "drained"), (3, INF, "Absent")]
    assert list(read_oar(NODES, "", now=NOW).partitions) == ["default"]


def test_running_jobs_and_reservations_are_busy() -> None:
    there = {"1": {"network_address": "a1"}, "3": {"network_address": "a2"}}
    resa = {"reservation": "Scheduled", "reserved_resources": there, "state": "Waiting"}
    later = NOW + 3600
    assert spans(
        job(1, assigned_network_address=["a1", "gone"]),
        job(2, state="Waiting", startTime=0),
        job(3, name="run1", startTime=later, types=["container"], **resa),
        job(4, types=["inner=3"], assigned_network_address=["a1"]),
        job(5, state="Terminated", assigned_network_address=["a1"]),
        job(6, state="Suspended", assigned_network_address=["a2"]),
        job(7, walltime=None, assigned_network_address=["a2"]),
    ) == [
        (0, NOW - 100, NOW + 500, "job 1", "anna"),
        (0, later, later + 600, "reservation run1", "anna"),
        (1, later, later + 600, "reservation run1", "anna"),
        (1, NOW - 100, INF, "job 6", "anna"),
        (1, NOW - 100, INF, "job 7", "anna"),
    ]


def test_a_job_past_its_end_holds_its_nodes_for_a_minute() -> None:
    late = job(1, startTime=NOW - 9000, assigned_network_address=["a1"])
    assert spans(late) == [(0, NOW - 9000, NOW + 60, "job 1", "anna")]


@pytest.mark.parametrize(
    ("nodes", "jobs", "message"),
    [
        ("{", "", "oarnodes: no valid JSON: "),
        ("[]", "", r"oarnodes: \[\] is no JSON object"),
        ("/!\\ No nodes to display...\n", "", "oarnodes: there is no node"),
        ('{"1": 5}', "", "oarnodes, '1': 5 is no object"),
        ('{"1": {"state": "Alive"}}', "", "'1', network_address: None is no text"),
        ('{"1": {"network_address": "a"}}', "", "'1', state: None is no text"),
        (NODES, numbered([job(1, startTime="x")]), "startTime: 'x' is no whole number"),
        (NODES, numbered([job(1, state=3)]), "oarstat, '1', state: 3 is no text"),
        (NODES, numbered([job(1, assigned_network_address=[1])]), "no names of nodes"),
        (NODES, numbered([job(1, types=["inner=x"])]), "types: 'x' is no whole number"),
        (NODES, numbered([job(1, types=7)]), "types: 7 is no list"),
    ],
)
def test_malformed_json_is_refused(nodes: str, jobs: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_oar(nodes, jobs, now=NOW)
    assert "\n" not in str(caught.value)
