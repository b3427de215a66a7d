"""Nodes and jobs in the JSON of Slurm, against the text of the same moment.

The files were printed by Slurm 22.05.8 and 24.11.7 (`recorded_texts`). The nodes are
those of ``sinfo --json`` in 22.05, and of ``scontrol show nodes --json`` in 24.11,
whose numbers are objects and whose states and features are lists.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_texts import TEXTS

from slotkern.clusters import Snapshot, read_slurm, read_slurm_files

NOW = 1795893009
#: The file of nodes by version.
NODES = {"22.05": "sinfo.json", "24.11": "nodes.json"}


def text(version: str, name: str) -> str:
    return (TEXTS / version / name).read_text()


def facts(snapshot: Snapshot) -> tuple[Any, ...]:
    """Return the nodes with their columns, and all but the words of busy spans."""
    columns = {
        name: column.tolist() for name, column in snapshot.machine.columns.items()
    }
    spans = sorted(
        (node, start, end, owner)
        for node, start, end, _, owner in snapshot.busy.tolist()
    )
    return snapshot.machine.names.tolist(), columns, spans


@pytest.mark.parametrize("version", NODES)
def test_json_and_text_are_the_same_snapshot(version: str) -> None:
    plain = [text(version, name) for name in ("sinfo-fields.txt", "squeue-epoch.txt")]
    wanted = read_slurm(*plain, now=NOW, zone="UTC")
    given = text(version, NODES[version]), text(version, "squeue.json")
    found = read_slurm(*given, now=NOW, zone="UTC")
    if version == "22.05":  # has no field for the nodes that Slurm plans
        planned = wanted.busy["reason"] == "job 8"
        assert planned.sum() == 2
        wanted = replace(wanted, busy=wanted.busy[~planned])
    assert facts(found) == facts(wanted)
    reasons = {row[3] for row in found.busy.tolist()}
    assert {"idle+drain: memory test", "down: bad disk, State=IDLE x"} < reasons
    assert ("job 8" in reasons) == (version == "24.11")
    assert list(found.partitions) == ["batch", "all", "fast"]


def test_sinfo_of_later_versions_is_refused() -> None:
    """It groups nodes of different features, and has those of the first one."""
    given = text("24.11", "sinfo.json")
    groups = json.loads(given)["sinfo"]
    (mixed,) = (each for each in groups if len(each["nodes"]["nodes"]) == 7)
    assert {"a01", "b01"} < set(mixed["nodes"]["nodes"])
    assert mixed["features"]["active"] == "cpu,slow"  # b01 has avx512
    with pytest.raises(ValueError, match=r"'sinfo', .* scontrol show nodes --json$"):
        read_slurm(given, now=NOW)


def test_forms_that_the_files_lack() -> None:
    """GPUs, several features, and times that are not set, in the form of 24.11."""

    def number(value: int, given: bool = True) -> dict[str, Any]:
        return {"set": given, "infinite": False, "number": value}

    node = {
        "name": "a1",
        "state": ["MIXED", "PLANNED"],
        "cpus": 4,
        "real_memory": 1000,
        "weight": 1,
        "active_features": ["slow", "ib"],
        "gres": "gpu:l40s:4(S:0-1)",
        "partitions": ["batch", "all"],
        "reason": "",
        "free_mem": number(900),
    }
    drained = node | {"name": "a2", "state": ["IDLE", "DRAIN"], "reason": "bad fan"}
    job = {
        "job_id": 525,
        "job_state": ["RUNNING"],
        "nodes": "a1",
        "start_time": number(NOW - 60),
        "end_time": number(NOW + 600),
        "time_limit": number(11),
        "user_name": "anna",
        "partition": "batch",
        "scheduled_nodes": "",
        "job_resources": {"nodes": {"count": 1, "list": "a1", "whole": True}},
    }
    planned = job | {
        "job_id": 526,
        "job_state": ["PENDING"],
        "nodes": "",
        "start_time": number(NOW + 600),
        "end_time": number(NOW + 900),
        "scheduled_nodes": "a1",
        "job_resources": None,
    }
    held = planned | {"job_id": 527, "start_time": number(0, given=False)}
    found = read_slurm(
        json.dumps({"nodes": [node, drained], "errors": [], "warnings": []}),
        json.dumps({"jobs": [job, planned, held], "errors": [], "warnings": []}),
        now=NOW,
    )
    assert found.busy.tolist() == [
        (1, -float("inf"), float("inf"), "idle+drain: bad fan", ""),
        (0, -float("inf"), NOW + 600, "job 525", "anna"),
        (0, NOW + 600, NOW + 900, "job 526", "anna"),
    ]
    assert found.machine.columns["gpus"].tolist() == [4, 4]
    assert found.machine.columns["feature_ib"].tolist() == [True, True]
    assert list(found.partitions) == ["batch", "all"]


def one_job(version: str) -> dict[str, Any]:
    """Return the JSON of jobs with the first one alone, which uses two nodes."""
    whole: dict[str, Any] = json.loads(text(version, "squeue.json"))
    whole["jobs"] = [each for each in whole["jobs"] if each["job_id"] == 1]
    return whole


@pytest.mark.parametrize("version", NODES)
def test_a_completing_job_holds_its_nodes(version: str) -> None:
    whole, nodes = one_job(version), text(version, NODES[version])
    for states, spans in ((["COMPLETED"], 0), (["COMPLETED", "COMPLETING"], 2)):
        whole["jobs"][0]["job_state"] = states
        found = read_slurm(nodes, json.dumps(whole), now=NOW, complete=True)
        assert sum(row[3] == "job 1" for row in found.busy.tolist()) == spans


@pytest.mark.parametrize("version", NODES)
def test_an_unlimited_or_unknown_end_is_busy_for_ever(version: str) -> None:
    whole, nodes = one_job(version), text(version, NODES[version])
    for end in (0, None, {"set": True, "infinite": True, "number": 0}):
        whole["jobs"][0]["end_time"] = end
        found = read_slurm(nodes, json.dumps(whole), now=NOW)
        ends = [row[2] for row in found.busy.tolist() if row[3] == "job 1"]
        assert ends == [float("inf")] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "sinfo.json: no valid JSON: "),
        ("{}", "sinfo.json: there is no list 'nodes', but []"),
        ('{"sinfo": []}', "print it by sinfo --json of Slurm 22.05, else scontrol"),
        ('{"nodes": []}', "sinfo.json: there is no node"),
        ('{"nodes": [7]}', "sinfo.json, nodes[0]: 7 is no object"),
        ('{"nodes": [{"name": "a"}]}', "sinfo.json, nodes[0]: there is no state"),
        ('{"nodes": [{"state": "idle"}]}', "sinfo.json, nodes[0]: there is no name"),
        (
            '{"nodes": [{"name": "a", "state": "idle", "weight": 1.5}]}',
            "sinfo.json, nodes[0], weight: 1.5 is no text, whole number",
        ),
        (
            '{"nodes": [{"name": "a", "state": "idle", "cpus": "x"}]}',
            "sinfo.json, nodes[0], CPUS: 'x' is no whole number",
        ),
        ('{"errors": [{"error": "down"}]}', "Slurm reports errors: "),
    ],
)
def test_malformed_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sinfo.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"\A[^\n]*\Z") as caught:
        read_slurm_files(path, now=NOW)
    assert message in str(caught.value)
