"""Nodes and jobs in the JSON of Slurm, against the text of the same moment.

The files were printed by Slurm 22.05.8 on a cluster of 9 nodes, with the user renamed
and facts of the recording host removed. Later releases wrap numbers and list states;
`in_later_form` rewrites the files in that form.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slotkern.clusters import Snapshot, read_slurm, read_slurm_files

TEXTS = Path(__file__).parent / "texts"
NOW = 1795823048
NODES, JOBS = ((TEXTS / name).read_text() for name in ("sinfo.json", "squeue.json"))


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


def in_later_form(text: str) -> str:
    """Return JSON with the forms of later plugins for numbers, states and lists."""
    whole = json.loads(text)
    for record in whole.get("nodes", []) + whole.get("jobs", []):
        for name in ("weight", "real_memory", "start_time", "end_time"):
            if name in record:
                value = record[name]
                record[name] = {"set": value > 0, "infinite": False, "number": value}
        if "state" in record:
            flags = record.pop("state_flags")
            record["state"] = [record["state"].upper(), *flags]
            record["active_features"] = record["active_features"].split(",")
        if "job_state" in record:
            record["job_state"] = [record["job_state"]]
    return json.dumps(whole)


@pytest.mark.parametrize("form", [str, in_later_form])
def test_json_and_text_are_the_same_snapshot(form: Callable[[str], str]) -> None:
    plain = [(TEXTS / f"json-{name}.txt").read_text() for name in ("sinfo", "squeue")]
    wanted = read_slurm(*plain, now=NOW, zone="UTC")
    found = read_slurm(form(NODES), form(JOBS), now=NOW, zone="UTC")
    assert facts(found) == facts(wanted)
    assert len(found.busy) == 6  # two of job 1, three on a3, the drained node
    reasons = {row[3] for row in found.busy.tolist()}
    assert {"idle+drain: bad fan", "job 1"} < reasons
    assert list(found.partitions) == ["batch", "fast"]


def test_forms_of_releases_23_11_to_24_11() -> None:
    """Fields as documented for data_parser v0.0.39 to v0.0.42, numbers as objects."""

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


def test_a_completing_job_holds_its_nodes() -> None:
    whole = json.loads(JOBS)
    whole["jobs"] = whole["jobs"][:1]
    for states, spans in ((["COMPLETED"], 0), (["COMPLETED", "COMPLETING"], 2)):
        whole["jobs"][0]["job_state"] = states
        found = read_slurm(NODES, json.dumps(whole), now=NOW, complete=True)
        assert sum(row[3] == "job 1" for row in found.busy.tolist()) == spans


def test_an_unlimited_or_unknown_end_is_busy_for_ever() -> None:
    whole = json.loads(JOBS)
    whole["jobs"] = whole["jobs"][:1]
    for end in (0, None, {"set": True, "infinite": True, "number": 0}):
        whole["jobs"][0]["end_time"] = end
        found = read_slurm(NODES, json.dumps(whole), now=NOW)
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
