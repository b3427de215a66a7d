"""Tests of the memory limit: compressed files, and text as wide as its longest cell."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from memory_peak import peak_of
from slot_files import COLUMNS, HEADER, R1, R2, SMALL, read_text

import slotkern as sk
from slotkern.files.slots import from_arrow, from_pandas, read_slots, write_slots

MANY = 20_000


def packed(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


def array_of(header: dict[str, Any], data: bytes = b"") -> bytes:
    """Return an archive with one array that has the given header."""
    text = repr(header).encode() + b"\n"
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        start = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
        archive.writestr("slots.npy", start + text + data)
    return sink.getvalue()


def repeated(text: str) -> bytes:
    site = pa.DictionaryArray.from_arrays(np.zeros(MANY, np.int32), [text])
    table = pa.table(
        {name: pa.array([1.0] * MANY) for name in ("start", "performance", "price")}
        | {"node": np.arange(MANY), "end": [2.0] * MANY, "site": site}
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def lines(text: str) -> str:
    records = [
        {"node": i, "start": 0, "end": 1, "performance": 1, "price": 1, "site": "a"}
        for i in range(MANY)
    ]
    records[7]["site"] = text
    return "\n".join(map(json.dumps, records))


def rows(text: str) -> str:
    cells = [f"{i},0,1,1,1,{text if i == 7 else 'a'}\n" for i in range(MANY)]
    return HEADER[:-1] + ",site\n" + "".join(cells)


def zeros(count: int) -> bytes:
    return packed(**{name: np.zeros(count) for name in COLUMNS})


@pytest.mark.parametrize(
    ("suffix", "make", "message"),
    [
        (".npz", lambda: packed(slots=np.zeros(10**7, sk.SLOT)), "400,000,192 bytes"),
        (".parquet", lambda: repeated("x" * 100_000), "site is so long"),
        (".jsonl", lambda: lines("x" * 100_000), ", line 8: site is so long here that"),
        (".json", lambda: f"[{lines('x' * 9**6)}]".replace("\n", ",\n"), ", line 8: "),
        (
            ".csv",
            lambda: rows("x" * 100_000),
            ", line 9: site is so long here that its",
        ),
        (".csv", lambda: rows("é" * 100_000), "8,000,000,000 bytes in memory, which"),
    ],
)
def test_files_beyond_the_memory_limit_are_refused(
    tmp_path: Path, suffix: str, make: Callable[[], Any], message: str
) -> None:
    error, peak = peak_of(read_text, tmp_path, make(), suffix)
    assert isinstance(error, ValueError)
    assert "max_bytes" in str(error)
    assert message in str(error)
    assert str(error).startswith(str(tmp_path / f"slots{suffix}"))
    assert len(str(error)) < 500
    assert peak < 300_000_000


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"shape": (2**62,)}, "holds 0 bytes, not (4611686018427387904,) of"),
        ({"shape": (10**4000,)}, "has the shape (1000"),
        ({"shape": (2**62, 2**62, 0, 2**62)}, "no valid header"),
        ({"shape": (-1,)}, "has the shape (-1,)"),
        ({"shape": 3}, "has the shape 3"),
        ({"shape": (2**40,), "descr": "|S0"}, "not (1099511627776,) of"),
        ({"shape": (1,), "descr": "|O"}, "Object arrays cannot be read"),
        ({"shape": (0,), "descr": [("a", "<f8", (2**40,))]}, "not a valid npz file"),
        ({"shape": (1,), "descr": "<f9"}, "no valid header"),
        ({"shape": (1,), "descr": None}, "holds 0 bytes, not (1,) of"),
    ],
)
def test_archives_with_false_headers_are_refused(
    tmp_path: Path, header: dict[str, Any], message: str
) -> None:
    whole = {"descr": "<f8", "fortran_order": False} | header
    with pytest.raises(ValueError, match="slots") as caught:
        read_text(tmp_path, array_of(whole), ".npz")
    path = tmp_path / "slots.npz"
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value) or "not a valid" in str(caught.value)


def test_archives_without_arrays_are_refused(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("slots", b"no array")
    with pytest.raises(ValueError, match=r"not a valid npz file: 'slots' is no array"):
        read_text(tmp_path, sink.getvalue(), ".npz")


def test_a_scalar_column_of_too_many_rows_is_refused(tmp_path: Path) -> None:
    columns = {name: np.ones(MANY) for name in COLUMNS if name in sk.SLOT.names}
    columns |= {
        "node": np.arange(MANY),
        "end": np.array(2.0),
        "x": np.array("x" * 9999),
    }
    with pytest.raises(ValueError, match="20,000 slots would take 8"):
        read_text(tmp_path, packed(**columns), ".npz")


def test_the_limit_can_be_raised(tmp_path: Path) -> None:
    path = tmp_path / "slots.npz"
    path.write_bytes(text := zeros(500_000))
    assert len(text) < 50_000
    with pytest.raises(ValueError, match="max_bytes"):
        read_slots(path, max_bytes=1000)
    with pytest.raises(ValueError, match="end 0"):
        read_slots(path, max_bytes=10**8)
    for wrong in (1.5, "1", True, None):
        with pytest.raises(TypeError, match="max_bytes must be an integer"):
            read_slots(path, max_bytes=wrong)  # type: ignore[arg-type]
    # The limit does not apply to files that are not compressed.
    write_slots(path, SMALL)
    assert len(read_slots(path, max_bytes=0)) == 3


def test_long_text_from_memory() -> None:
    texts = ["a"] * MANY
    texts[7] = "x" * 100_000
    frame = pd.DataFrame(
        {"node": np.arange(MANY), "start": 0, "end": 1, "performance": 1, "price": 1}
    )
    with pytest.raises(ValueError, match="slots, row 7: site is so long"):
        from_pandas(frame.assign(site=texts))
    with pytest.raises(ValueError, match="slots, row 7: site is so long"):
        from_arrow(pa.Table.from_pandas(frame.assign(site=texts)))


def test_long_text_within_the_limit_is_read(tmp_path: Path) -> None:
    text = "x" * 1_000_000
    for suffix in (".json", ".jsonl"):
        joint = f'{R1[:-1]}, "x": "{text}"}}\n{R2[:-1]}, "x": ""}}'
        joint = joint if suffix == ".jsonl" else f"[{joint}]".replace("\n", ",")
        assert read_text(tmp_path, joint, suffix)["x"].tolist() == [text, ""]
