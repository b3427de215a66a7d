"""Tests that Arrow gets a copy of the data, which its threads may release at exit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slotkern as sk
from slotkern.machine.files import read_columns

SLOTS = "node,start,end,performance,price\n0,0,9,1,1\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("read", [sk.read_slots, read_columns, sk.Machine.read])
def test_readers_pass_arrow_a_copy_of_the_data(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Path], Any],
    suffix: str,
) -> None:
    shared: list[bool] = []
    path = tmp_path / f"slots{suffix}"
    if read == sk.Machine.read:
        text = "name,price\na,1\n"
        table = pa.table({"name": ["a"], "price": [1.0]})
    else:
        text = SLOTS
        table = pa.table({name: [1.0] for name in SLOTS.splitlines()[0].split(",")})
        table = table.set_column(2, "end", [[9.0]])
    if suffix == ".csv":
        path.write_text(text)
    else:
        pq.write_table(table, path)
    real = pa.BufferReader

    def watched(source: Any) -> Any:
        # Bytes of Python are immutable; a copy in memory of Arrow is mutable.
        shared.append(not (isinstance(source, pa.Buffer) and source.is_mutable))
        return real(source)

    monkeypatch.setattr(pa, "BufferReader", watched)
    assert len(read(path)) > 0
    assert shared
    assert not any(shared)
