"""Tests of invalid files: each raises one error, and failed writes leave no file."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from slot_files import COLUMNS, EXACT, HEADER, R1, R2, SMALL, SUFFIXES, npz, read_text

import slotkern as sk
from slotkern.files.slots import (
    from_arrow,
    read_slots,
    to_arrow,
    write_slots,
)

GOOD = "4,9,12,1,1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("\n \n", ": the file is empty"),
        ("\r\n\r\n", ": the file is empty"),
        (HEADER + "4,5,3,1,1\n", ", line 2: end 3.0 is not after start 5.0"),
        (HEADER + GOOD + "\n4,5,3,1,1\n", ", line 4: end 3.0 is not after start 5.0"),
        (HEADER + GOOD + "4,1,x,1,1\n", ", line 3: end 'x' is not a number"),
        (HEADER + GOOD + "4,1,,1,1\n", ", line 3: end is empty"),
        (HEADER + GOOD + "4,1, ,1,1\n", ", line 3: end is empty"),
        (HEADER + GOOD + '4,1,"",1,1\n', ", line 3: end is empty"),
        (HEADER + GOOD + "4,1,1_0,1,1\n", ", line 3: end '1_0' is not a number"),
        (HEADER + GOOD + "4,1,2,1\n", ", line 3: 4 cells, not 5"),
        (HEADER + GOOD + "4,1,2,1,1,1\n", ", line 3: 6 cells, not 5"),
        (HEADER + GOOD + "4,1,nan,1,1\n", ", line 3: end is nan"),
        (HEADER + GOOD + "5,inf,inf,1,1\n", ", line 3: start inf"),
        (HEADER + GOOD + "4.5,1,2,1,1\n", ", line 3: node 4.5 is not an integer"),
        (HEADER + GOOD + "-1,1,2,1,1\n", ", line 3: node -1.0 is not an integer"),
        (HEADER + GOOD + "2147483648,1,2,1,1\n", ", line 3: node 2147483648.0 is not"),
        (HEADER + GOOD + "5,1,2,0,1\n", ", line 3: performance 0.0"),
        (HEADER + GOOD + "5,1,2,inf,1\n", ", line 3: performance inf"),
        (HEADER + GOOD + "5,1,2,1,-1\n", ", line 3: price -1.0"),
        (HEADER + "4,9,12,2,1\n4,1,2,1,1\n", ", line 2: performance 2.0"),
        (HEADER + "4,9,12,1,1\n" + "4,1,10,1,1\n", "; see line 3"),
        (
            "node,start,end,price\n1,2,3,4\n",
            ": no column 'performance'; there are node",
        ),
        ("node,node,end,price\n1,2,3,4\n", ": column 'node' occurs twice"),
        (HEADER[:-1] + ",x, x\n", ": column 'x' occurs twice"),
        ("," + HEADER, ": column 1 has no name"),
        (HEADER + GOOD + '4,1,2,1,"1\n', ", line 3: a quoted cell is not closed"),
        (HEADER + GOOD + '4,1,2,1,"1', ", line 3: a quoted cell is not closed"),
        (HEADER + GOOD + '4,1,2,"1,1\n"\n1,', ", line 3: 4 cells, not 5"),
        (HEADER + GOOD + '4,1,2,1,"1\n\n', ", line 3: a quoted cell is not closed"),
        (HEADER + '4,1,2,1,"\n9,9,9,"', ", line 2: price '9,9,9,' is not a number"),
        (HEADER[:-1] + ",x\n1,2,3,4,5,a\0\n", "line 2: x 'a\\x00' ends with a null"),
        (HEADER[:-1] + ',"x\n1,2,3,4,5,6\n', ", line 1: a quoted cell is not closed"),
        (
            HEADER[:-1] + f",x\n1,2,3,4,5,{'y' * 200_000}\n1,2,3,4,5\n",
            ", line 3: 5 cells, not 6",
        ),
        (
            HEADER[:-1] + f",x\n1,2,3,4,5,{'y' * 200_000}\n1,9,3,4,5,6\n",
            ", line 3: end 3.0 is not after start 9.0",
        ),
        (
            HEADER[:-1] + ',x\n1,2,3,4,5,5" disk\r\r1,9,3,4,5,""\r',
            ", line 4: end 3.0 is not after start 9.0",
        ),
        (HEADER[:-1] + ",x\n1,2,3,4,5,6\n2,2,3,4,5,\n", ", line 3: x is empty"),
        (HEADER[:-1] + ',x\n1,2,3,4,5,"a\nb"\n2,2,1,4,5,a\n', ", line 4: end 1.0"),
        (
            HEADER.encode() + GOOD.encode() + b"\xff\n",
            ", line 3: byte 0xff is not UTF-8",
        ),
        (HEADER.encode("utf-16"), ", line 1: byte 0xff is not UTF-8"),
        (bytes(range(128)) * 10, "there are"),
        (b"\0" * 4096, ": no column 'node'"),
        ("x" * 200_000, ": no column 'node'; there are xxx"),
    ],
)
def test_csv_errors_name_the_line(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(ValueError, match="slots") as caught:
        read_text(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "slots.csv"))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_complete_error_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i + 10},{i},100,1,1\n" for i in range(15))
    Path("slots.csv").write_text(HEADER + rows + "4,5,3,1,1\n")
    with pytest.raises(ValueError, match="node 4") as caught:
        read_slots("slots.csv")
    assert str(caught.value) == (
        "slots.csv, line 17: end 3.0 is not after start 5.0 (node 4)"
    )


@settings(max_examples=settings.default.max_examples // 5)
@given(bad=st.integers(0, 199), field=st.sampled_from(HEADER.strip().split(",")))
def test_invalid_lines_are_located(
    bad: int, field: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "bad.csv"
    rows = [[str(i), str(200 - i), "900", "1", "1"] for i in range(200)]
    rows[bad][HEADER.strip().split(",").index(field)] = "1e"
    path.write_text(HEADER + "".join(",".join(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=f"line {bad + 2}: {field} '1e' is not"):
        read_slots(path)


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (R2.replace("9", "-1"), "end -1.0 is not after start 0.0"),
        (R2.replace("9", "null"), "end null is not a number"),
        (R2.replace("9", '"9"'), 'end "9" is not a number'),
        (R2.replace("9", "true"), "end true is not a number"),
        (R2.replace("9", "[1]"), "end [1] is not a number"),
        (R2.replace("9", "1" + "0" * 400), "end is an integer too large"),
        (R2.replace("9", "NaN"), "end is nan"),
        (R2.replace("2", "2.5"), "node 2.5 is not an integer"),
        (R2.replace("2", '"Infinity"'), "node inf is not an integer"),
        (R2.replace("end", "start"), "column 'start' occurs twice"),
        (R2.replace("end", "ende"), "no column 'end'"),
        (R2.replace("}", ', "x": 1}'), "the first record has no column 'x'"),
        (R2.replace('"end": 9, ', ""), "no column 'end'"),
        ("[1]", "not an object"),
        ("7", "not an object"),
        ("{}", "no column"),
        (R2[:-3], "not JSON: "),
        (R2.replace("9", "9 9"), "not JSON: Expecting ',' delimiter at character"),
        (R2.replace("9", "9" * 5000), "digits"),
        (R2.replace("9", "[" * 100_000), "nested too deeply"),
    ],
)
def test_json_errors_name_the_line(
    tmp_path: Path, suffix: str, record: str, message: str
) -> None:
    good = R1.replace("1", "7", 1)
    if suffix == ".json":
        text = f"[\n{R1},\n\n{record},\n{good}]"
    else:
        text = f"\n{R1}\r\n\n{record}\n{good}\n"
    with pytest.raises(ValueError, match="slots") as caught:
        read_text(tmp_path, text, suffix)
    assert str(caught.value).startswith(str(tmp_path / f"slots{suffix}"))
    assert message in str(caught.value)
    if message not in ("nested too deeply", "digits") or suffix == ".jsonl":
        assert ", line 4: " in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", '"a"'], 'x "a" is not a number'),
        (['"a"', "1"], "x 1 is not a string"),
        (["true", "1"], "x 1 is not true or false"),
        (["1", "null"], "x null is not a number"),
        (["null", "null"], "x null is not a number, a string, true or false"),
        (["1", "[1]"], "x [1] is not a number"),
    ],
)
def test_json_columns_have_one_type(
    tmp_path: Path, cells: list[str], message: str
) -> None:
    rows = [
        record.replace("}", f', "x": {cell}}}')
        for record, cell in zip([R1, R2], cells, strict=True)
    ]
    with pytest.raises(ValueError, match=r"line [12]: ") as caught:
        read_text(tmp_path, "\n".join(rows), ".jsonl")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        (".json", "", "the file is empty"),
        (".json", "{}", "not an array of objects"),
        (".json", "3", "not an array of objects"),
        (".json", "[" + R1, "line 1: not JSON"),
        (".json", b"[\n\xff]", "line 2: byte 0xff is not UTF-8"),
        (".jsonl", "", "the file is empty"),
        (".jsonl", f"{R1},{R2}\n", "line 1: not JSON: Extra data"),
        (".jsonl", f"{R1}\n,\n{R2}\n", "line 2: not JSON"),
    ],
)
def test_json_files_of_another_form(
    tmp_path: Path, suffix: str, text: str | bytes, message: str
) -> None:
    with pytest.raises(ValueError, match="slots") as caught:
        read_text(tmp_path, text, suffix)
    assert message in str(caught.value)


@pytest.mark.parametrize("suffix", EXACT)
@settings(max_examples=settings.default.max_examples // 3)
@given(data=st.data())
def test_damaged_binary_files_give_one_error(
    suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A truncated or overwritten file raises an error, or is read without loss."""
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    write_slots(path, SMALL)
    sound = path.read_bytes()
    if data.draw(st.booleans()):
        broken = sound[: data.draw(st.integers(0, len(sound) - 1))]
    else:
        at = data.draw(st.integers(0, len(sound) - 1))
        broken = sound[:at] + bytes([sound[at] ^ data.draw(st.integers(1, 255))])
        broken += sound[at + 1 :]
    path.write_bytes(broken)
    try:
        back = read_slots(path)
    except ValueError as error:
        problem: str | None = str(error)
    else:
        problem = None
        assert len(broken) == len(sound)
        for name in set(sk.SLOT.names).intersection(back.dtype.names):
            assert back[name].tobytes() == SMALL[name].tobytes()
    assert problem is None or re.fullmatch(re.escape(str(path)) + "[:,] .+", problem)


def test_npz_errors(tmp_path: Path) -> None:
    pickled = io.BytesIO()
    np.savez(pickled, **(COLUMNS | {"site": np.array([1, "a", None], object)}))
    doubled = io.BytesIO(npz(**COLUMNS))
    with zipfile.ZipFile(doubled, "a") as archive, pytest.warns(match="Duplicate name"):
        archive.writestr("node.npy", archive.read("node.npy"))
    plain = io.BytesIO()
    np.save(plain, SMALL["start"])
    lacking = {name: COLUMNS[name] for name in COLUMNS if name != "price"}
    for text, message in [
        (b"", ": the file is empty"),
        (b"PK\x03\x04", ": not a valid npz file: "),
        (b"rubbish", ": not a valid npz file: it is not a zip archive"),
        (plain.getvalue(), ": not a valid npz file: "),
        (pickled.getvalue(), ": not a valid npz file: Object arrays cannot"),
        (doubled.getvalue(), ": column 'node' occurs twice"),
        (npz(**lacking), ": no column 'price'; there are node, start"),
        (npz(slots=SMALL["end"]), ": slots is of float64, not a structured array"),
        (npz(slots=SMALL[["node", "start", "end"]]), ": no column 'performance'"),
        (
            npz(**(COLUMNS | {"end": SMALL["end"][:2]})),
            ": columns have different numbers",
        ),
        (npz(**(COLUMNS | {"end": SMALL["site"]})), ": column 'end' must hold numbers"),
        (npz(**(COLUMNS | {"x": np.eye(3)})), ": column 'x' has 2 dimensions"),
        (npz(**(COLUMNS | {"end": [5, 0.1, 9]})), ", row 1: end 0.1 is not after"),
        (npz(**(COLUMNS | {"node": [4, 2.5, 4]})), ", row 1: node 2.5 is not an int"),
    ]:
        with pytest.raises(ValueError, match="slots") as caught:
            read_text(tmp_path, text, ".npz")
        assert str(tmp_path / "slots.npz") + message in str(caught.value)


def test_parquet_and_arrow_errors(tmp_path: Path) -> None:
    table = to_arrow(SMALL)
    none = pa.array([1.0, None, 2.0])
    for changed, message in [
        (table.drop(["price"]), ": no column 'price'; there are node, start"),
        (table.append_column("end", table["end"]), ": column 'end' occurs twice"),
        (table.set_column(2, "end", none), ", row 1: end is missing (null)"),
        (table.append_column("x", none), ", row 1: x is missing (null)"),
        (table.set_column(2, "end", pa.array([9, 0, 9])), ", row 1: end 0.0 is not"),
        (table.set_column(2, "end", pa.array("abc")), ": column 'end' must hold num"),
        (table.append_column("x", pa.array([[1]] * 3)), ": column 'x' is of list"),
        (table.set_column(0, "node", pa.array([4, -2, 4])), ", row 1: node -2 is not"),
    ]:
        with pytest.raises(ValueError, match="slots") as caught:
            from_arrow(changed)
        assert str(caught.value).startswith("slots" + message)
        pq.write_table(changed, tmp_path / "slots.parquet")
        with pytest.raises(ValueError, match="slots") as caught:
            read_slots(tmp_path / "slots.parquet")
        assert str(tmp_path / "slots.parquet") + message in str(caught.value)


@pytest.mark.parametrize("name", ["slots.txt", "slots", "slots.csv.gz", ".csv"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    for call in (read_slots, lambda path: write_slots(path, SMALL)):
        with pytest.raises(ValueError, match=r"is not one of \.csv, \.parquet"):
            call(tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_system_errors_are_raised_unchanged(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"slots{suffix}"
    with pytest.raises(FileNotFoundError, match=f"slots{suffix}"):
        read_slots(path)
    with pytest.raises(FileNotFoundError, match=f"slots{suffix}"):
        write_slots(tmp_path / "nowhere" / path.name, SMALL)
    path.mkdir()
    with pytest.raises(IsADirectoryError, match=f"slots{suffix}"):
        read_slots(path)
    with pytest.raises(IsADirectoryError, match=f"slots{suffix}"):
        write_slots(path, SMALL)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_invalid_slots_are_not_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"slots{suffix}"
    path.write_text("as before")

    def extra(column: NDArray[Any]) -> NDArray[Any]:
        fields = [*((n, sk.SLOT[n]) for n in sk.SLOT.names), ("x", column.dtype)]
        slots = np.zeros(len(column), fields)
        for name in sk.SLOT.names:
            slots[name] = SMALL[name][: len(column)]
        slots["x"] = column
        return slots

    backwards = SMALL.copy()
    backwards["end"][1] = 0
    for slots, error, message in [
        (backwards, ValueError, "row 1: end 0.0 is not after start 0.1"),
        (SMALL[["node", "start"]], ValueError, "end"),
        (3, TypeError, "slots must be a structured array, got int"),
        (extra(np.array([1j, 2, 3])), TypeError, "column 'x' is complex128"),
        (extra(np.array(["a", 2], object)), TypeError, "column 'x': of objects only"),
    ]:
        with pytest.raises(error, match=message):
            write_slots(path, slots)
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "as before"


def test_a_failing_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "slots.json"
    path.write_text("as before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*slots\.json"):
        write_slots(path, SMALL)
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "as before"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")
def test_written_files_are_ordinary_files(tmp_path: Path) -> None:
    link, target = tmp_path / "link.json", tmp_path / "target.json"
    link.symlink_to(target)
    before = os.umask(0o027)
    try:
        write_slots(link, SMALL)
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
