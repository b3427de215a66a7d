"""The JSON of OAR: spans of jobs and reservations, nodes, and malformed texts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from slotkern.clusters import ClusterError, NameTakenError, OarCluster, Site, read_oar

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


def test_the_order_of_nodes_is_that_of_their_numbers() -> None:
    """OAR prints the records in another order each time."""
    records = {str(k): node(f"n{k}") for k in range(1, 13)}
    mixed = dict(sorted(records.items()))
    assert list(mixed) != list(records)
    names = [f"n{k}" for k in range(1, 13)]
    assert read_oar(json.dumps(mixed), "", now=NOW).machine.names.tolist() == names


def test_nodes_of_jobs_that_are_unknown_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "slotkern")
    there = {"1": {"network_address": "gone2"}}
    resa = {"reservation": "Scheduled", "reserved_resources": there, "state": "Waiting"}
    found = spans(
        job(1, assigned_network_address=["a1", "gone"]),
        job(2, state="Terminated", assigned_network_address=["gone3"]),
        job(3, state="Waiting", startTime=0),
        job(4, startTime=NOW + 60, **resa),
        job(5, types=["inner=4"], assigned_network_address=["gone4"]),
    )
    assert [row[:1] + row[3:] for row in found] == [(0, "job 1", "anna")]
    assert [record.message for record in caplog.records] == [
        "waiting jobs without planned nodes, left out: 1",
        "nodes of jobs that are not among the nodes, left out: 2",
    ]


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
        ('{"1": {}, "1": {}}', "", "oarnodes: no valid JSON: the key '1' occurs twice"),
        ('{"1": {"state": "Alive"}}', "", "'1', network_address: None is no text"),
        ('{"1": {"network_address": " "}}', "", "network_address: ' ' is no name of a"),
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


def test_a_job_without_a_number_is_refused() -> None:
    lost = job(1)
    del lost["Job_Id"]
    with pytest.raises(ValueError, match="oarstat, '1': Job_Id is missing"):
        spans(lost)


def test_blanks_are_no_jobs() -> None:
    assert spans() == []
    assert len(read_oar(NODES, "\n" * 10**6, now=NOW).busy) == 2


def reservation(number: int, owner: str, node: str = "a1") -> dict[str, Any]:
    return job(
        number,
        owner=owner,
        name="run1",
        startTime=NOW + 3600,
        types=["container"],
        reservation="Scheduled",
        state="Waiting",
        reserved_resources={"1": {"network_address": node}},
    )


@pytest.mark.parametrize(
    ("before", "after", "deleted"),
    [
        ([], [reservation(7, "anna")], ""),
        ([], [reservation(7, "bert")], "7\n"),
        ([], [reservation(7, "anna", "a2")], "7\n"),
        ([], [reservation(3, "bert"), reservation(7, "anna")], "7\n"),
        ([], [reservation(3, "anna"), reservation(7, "anna")], "7\n"),
        ([reservation(3, "bert"), reservation(4, "bert")], [], ""),
        ([reservation(3, "anna"), reservation(4, "bert")], [], ""),
    ],
)
def test_a_call_deletes_no_reservation_but_its_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
    deleted: str,
) -> None:
    jobs, later, gone = (tmp_path / name for name in ("jobs", "later", "gone"))
    jobs.write_text(numbered(before))
    later.write_text(numbered(after))
    gone.touch()
    for name, line in (
        ("oarstat", f"cat {jobs}"),
        ("oarsub", f"cp {later} {jobs}; echo OAR_JOB_ID=7"),
        ("oardel", f'echo "$@" >> {gone}'),
    ):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    cluster = OarCluster(Site(zone="UTC"))
    first = (before or after)[0]
    given = ("run1", ["a1"], NOW + 3600, NOW + 4200, "anna")
    if first == reservation(first["Job_Id"], "anna"):
        assert cluster.reserve(*given).nodes == ("a1",)
    else:
        with pytest.raises(NameTakenError):
            cluster.reserve(*given)
    assert gone.read_text() == deleted


def test_a_deletion_may_have_been_requested_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "oardel"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    cluster = OarCluster(Site(zone="UTC"))
    for reason in ("This job was already killed", "You are not the right user"):
        program.write_text(f'#!/bin/sh\necho "Cannot frag 7 ; {reason}." >&2; exit 1\n')
        program.chmod(0o755)
        if "already" in reason:
            cluster._delete(7)
        else:
            with pytest.raises(ClusterError, match="oardel: Cannot frag 7 ; You are"):
                cluster._delete(7)


def test_a_program_that_may_not_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "oarstat"
    program.write_text("no program")
    program.chmod(0o644 if os.getuid() else 0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=r"oarstat: \w+"):
        OarCluster(Site(zone="UTC")).bookings()
