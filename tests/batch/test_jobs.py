"""Tables of jobs from files and data frames; errors name every bad cell."""

from __future__ import annotations

import datetime as dt
import json
import math

import numpy as np
import pandas as pd
import polars as pl
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
    assert sk.Batch.from_jobs(frame) == EXPECTED
    assert sk.Batch.from_jobs(table) == EXPECTED
    assert sk.Batch.from_jobs(COLUMNS) == EXPECTED
    assert sk.Batch.from_jobs(EXPECTED) is EXPECTED
    for suffix in ("csv", "parquet", "json"):
        assert sk.read_batch(tmp_path / f"jobs.{suffix}") == EXPECTED
    slots = sk.make_slots(node=[0, 1, 2], start=0, end=40, performance=1, price=1)
    assert len(sk.schedule_batch(slots, frame)) == 3


def test_a_table_may_have_any_field_of_a_request():
    limits = {"setup": 2.0, "step": 5.0, "latest": 7.0, "max_runtime": 9.0}
    columns = {"nodes": [1], "volume": [4.0], **{k: [v] for k, v in limits.items()}}
    (request,) = sk.Batch.from_jobs(columns).requests
    assert request == sk.Request(1, 4, **limits)


def test_jobs_may_have_textual_times(tmp_path):
    earliest = dt.datetime(2026, 10, 25, 0, 0, tzinfo=dt.UTC)
    columns = {
        "nodes": [2, 1],
        "walltime": ["4:00:00", "90min"],
        "reference": [2.0, None],
        "earliest": [earliest, None],
        "latest": ["2026-10-26", ""],
    }
    asked = (
        sk.Request(2, walltime="4:00:00", reference=2, earliest=earliest,
                   latest="2026-10-26"),
        sk.Request(1, walltime="90min"),
    )  # fmt: skip
    clock = sk.Clock("2026-10-24", zone="Europe/Berlin", unit="h")
    free = sk.free_slots(
        sk.Machine.homogeneous(3, performance=2), start=0, end=72, clock=clock
    )
    expected = sk.Batch(asked).resolve_times(free)
    for table in (
        columns,
        pd.DataFrame(columns),
        pa.table(columns),
        pl.DataFrame(columns),
    ):
        assert sk.Batch.from_jobs(table).resolve_times(free) == expected
    schedule = sk.schedule_batch(free, columns)
    assert [str(w.start_time) for w in schedule] == [
        "2026-10-25 02:00:00+02:00",
        "2026-10-24 00:00:00+02:00",
    ]
    assert [w.runtime for w in schedule] == [4.0, 0.75]
    assert sk.Batch.from_jobs({"a": asked[0]}).names == ("a",)
    (tmp_path / "j.csv").write_text("nodes,walltime\n1,90min\n2,4:00:00\n")
    read = sk.read_batch(tmp_path / "j.csv").requests
    assert read == (
        sk.Request(1, walltime="90min"),
        sk.Request(2, walltime="4:00:00"),
    )
    (tmp_path / "j.csv").write_text("nodes,walltime\n1,90\n2,4.5\n")
    read = sk.read_batch(tmp_path / "j.csv").requests
    assert read == (sk.Request(1, walltime=90), sk.Request(2, walltime=4.5))
    (tmp_path / "j.csv").write_text("nodes,walltime\n1,90\n2,4:00:00\n")
    with pytest.raises(ValueError, match="line 2: walltime: '90' could be hours"):
        sk.read_batch(tmp_path / "j.csv")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_and_durations_of_numpy_keep_their_unit(unit):
    jobs = {
        "nodes": np.array([1, 1]),
        "walltime": np.array([3_600, 60], "m8[s]").astype(f"m8[{unit}]"),
        "earliest": np.array(["2026-10-25", "NaT"], f"M8[{unit}]"),
    }
    clock = sk.Clock("2026-10-24", zone="UTC")
    free = sk.free_slots(sk.Machine.homogeneous(2), start=0, end=10**6, clock=clock)
    tables = [jobs, pd.DataFrame(jobs)]
    if unit != "s":  # polars has no such unit
        tables.append(pl.DataFrame(jobs))
    for table in tables:
        first, second = sk.Batch.from_jobs(table).resolve_times(free).requests
        assert (first.volume, first.earliest) == (3_600, 86_400)
        assert (second.volume, second.earliest) == (60, -math.inf)
        done = sk.SlotPool(free).schedule(table, "start")
        assert done.start.tolist() == [86_400, 0]
        assert done.runtime.tolist() == [3_600, 60]


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
        ({"nodes": None}, "jobs has no column 'nodes'; it has name"),
    ],
)
def test_errors_name_the_wrong_cell(change, message):
    columns = {k: v for k, v in {**COLUMNS, **change}.items() if v is not None}
    with pytest.raises((ValueError, TypeError), match=message):
        sk.Batch.from_jobs(columns)


def test_errors_name_the_wrong_file(tmp_path):
    for name, text, message in [
        ("a.csv", "", "the file is empty"),
        ("b.csv", "nodes,volume\n1\n", "line 2: 1 cells, not 2"),
        ("c.csv", "nodes,nodes\n1,2\n", "column 'nodes' occurs twice"),
        ("d.json", "{}", "a list of objects"),
        ("e.json", "[1]", "row 0 is no object: 1"),
        ("g.csv", "nodes;volume\n1;2\n", "separated by ';', not by commas"),
        ("h.json", "[", "no JSON"),
        (
            "i.csv",
            "nodes,volume\n1,1\n\ntwo,1\n",
            "line 4, column 'nodes': 'two' is no",
        ),
        ("j.csv", "nodes,volume\n1,1\n0,1\n", "line 3: nodes must be at least 1"),
        (
            "k.csv",
            'name,nodes,volume\n"a\nb",1,1\nc,1,1\nc,1,1\n',
            "line 5, column 'name': 'c' is the name of line 4",
        ),
        ("l.json", '[{"nodes": "x", "volume": 1}]', "row 0, column 'nodes': 'x' is"),
        ("f.txt", "", "the suffix '.txt' is not one of .csv, .json, .parquet"),
    ]:
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(ValueError, match=message) as error:
            sk.read_batch(path)
        assert str(path) in str(error.value)


def test_a_batch_checks_names_and_criteria():
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
