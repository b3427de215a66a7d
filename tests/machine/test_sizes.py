"""Tests of small files that need much memory, and of numbers beyond float64."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slotkern as sk
from slotkern.machine.files import read_columns
from slotkern.machine.jobs import read_jobs, requests_of

WIDE, ROWS = 100_000, 20_000


def test_one_long_cell_that_would_widen_all_rows_is_refused(tmp_path):
    path = tmp_path / "wide.csv"
    lines = ["name,price", "y" * WIDE + ",1", *(f"n{i},1" for i in range(ROWS))]
    path.write_text("\n".join(lines))
    words = r"wide.csv: column 'name' has a text of 100,000 characters; as much"
    with pytest.raises(ValueError, match=words):
        read_columns(path)
    rows = [{"name": "y" * WIDE, "nodes": 1, "volume": 1}]
    rows += [{"name": f"j{i}", "nodes": 1, "volume": 1} for i in range(ROWS)]
    jobs = tmp_path / "wide.json"
    jobs.write_text(json.dumps(rows))
    with pytest.raises(ValueError, match=r"wide.json: column 'name' has a text of"):
        read_jobs(jobs)


def test_repeated_words_of_a_parquet_file_are_counted(tmp_path):
    path = tmp_path / "packed.parquet"
    name = pa.array(["x" * 5000] * ROWS * 4)
    table = {"name": name, "price": [1.0] * len(name)}
    pq.write_table(pa.table(table), path, compression="zstd")
    assert path.stat().st_size < 1_000_000
    with pytest.raises(ValueError, match=r"packed.parquet: column 'name' has a text"):
        read_columns(path)


@pytest.mark.parametrize("field", ["nodes", "volume", "budget", "deadline"])
def test_integers_beyond_float64_are_refused(field):
    row = {"nodes": 1, "volume": 1} | {field: 10**400}
    table = {name: [value] for name, value in row.items()}
    with pytest.raises(ValueError, match=r"is too large|must be at most"):
        requests_of(table)
    with pytest.raises(ValueError, match=r"too large|at most|finite"):
        sk.Request(**row)
