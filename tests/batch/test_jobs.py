"""Tables of jobs: read from files and frames, and every bad cell named."""

from __future__ import annotations

import json
import math

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slotkern as sk

COLUMNS = {
    "name": ["b", "a", "c"],
    "nodes": [2, 1, 3],
    "volume": [8.0, 4.0, 6.0],
    "budget": [30.0, None, 9.0],
    "criterion": ["cost", None, "start"],
    "order": [2, 1, 3],
}
EXPECTED = sk.Batch(
    [sk.Request(1, 4), sk.Request(2, 8, budget=30), sk.Request(3, 6, budget=9)],
    ["a", "b", "c"],
    ["finish", "cost", "start"],
)


def rows():
    return [{name: column[i] for name, column in COLUMNS.items()} for i in range(3)]


def test_every_kind_of_table_is_the_same_batch(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    table = pa.table(COLUMNS)
    frame.to_csv(tmp_path / "jobs.csv", index=False)
    pq.write_table(table, tmp_path / "jobs.parquet")
    (tmp_path / "jobs.json").write_text(json.dumps(rows()))
    assert sk.Batch.of(frame) == EXPECTED
    assert sk.Batch.of(table) == EXPECTED
    assert sk.Batch.of(COLUMNS) == EXPECTED
    assert sk.Batch.of(EXPECTED) is EXPECTED
    for suffix in ("csv", "parquet", "json"):
        assert sk.read_batch(tmp_path / f"jobs.{suffix}") == EXPECTED
    slots = sk.make_slots(node=[0, 1, 2], start=0, end=40, performance=1, price=1)
    assert len(sk.schedule_batch(slots, frame)) == 3


def test_a_table_may_have_any_field_of_a_request():
    limits = {"setup": 2.0, "step": 5.0, "latest": 7.0, "max_runtime": 9.0}
    columns = {"nodes": [1], "volume": [4.0], **{k: [v] for k, v in limits.items()}}
    (request,) = sk.Batch.of(columns).requests
    assert request == sk.Request(1, 4, **limits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": [1, 2, 3]}, "unknown column 'colour'; jobs have name"),
        ({"nodes": [2, 1.5, 3]}, "row 1, column 'nodes': 1.5 is no integer"),
        ({"volume": [8, "many", 6]}, "row 1, column 'volume': 'many' is no number"),
        ({"volume": [8, None, 6]}, "row 1, column 'volume': is empty"),
        ({"volume": [8, 4, -6]}, "row 2: volume must be positive"),
        ({"name": ["a", "b", "a"]}, "row 2, column 'name': 'a' is the name of row 0"),
        ({"criterion": ["cost", "best", ""]}, "row 1, column 'criterion': must be"),
        ({"where": ["", "", "import os"]}, "row 2: "),
        ({"nodes": [2, True, 3]}, "row 1, column 'nodes': True is no number"),
        ({"nodes": None}, "column 'nodes' is missing"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    columns = {k: v for k, v in {**COLUMNS, **change}.items() if v is not None}
    with pytest.raises((ValueError, TypeError), match=message):
        sk.Batch.of(columns)


def test_files_that_are_wrong_are_named(tmp_path):
    for name, text, message in [
        ("a.csv", "", "the file is empty"),
        ("b.csv", "nodes,volume\n1\n", "row 0 has 1 cells for 2 columns"),
        ("c.csv", "nodes,nodes\n1,2\n", "column 'nodes' stands twice"),
        ("d.json", "{}", "a list of objects"),
        ("e.json", "[1]", "row 0 is no object: 1"),
        ("f.txt", "", "jobs are read from .csv, .json or .parquet"),
    ]:
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(ValueError, match=message) as error:
            sk.read_batch(path)
        assert str(path) in str(error.value)


def test_a_batch_checks_what_stands_beside_its_requests():
    jobs = [sk.Request(1, 1)] * 2
    assert sk.Batch(jobs).names == ("job 1", "job 2")
    assert sk.Batch(jobs).requests[0].budget == math.inf
    for names, criteria, message in [
        (["a"], None, "names must have one entry for each of 2 requests"),
        ("ab", None, "names must have one entry"),
        (["a", 1], None, r"names\[1\] must be text, got 1"),
        (None, ["cost"], "criteria must have one entry for each of 2"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            sk.Batch(jobs, names, criteria)
    with pytest.raises(TypeError, match=r"requests\[0\] must be a Request, got int"):
        sk.Batch([3])
