"""Tests that slots are read as they were written in every format, bit for bit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from slot_files import COLUMNS, EXACT, HEADER, R1, R2, SMALL, SUFFIXES, npz, read_text

import slotkern as sk
from slotkern.files.slots import (
    from_arrow,
    from_pandas,
    read_slots,
    to_arrow,
    to_pandas,
    write_slots,
)


def assert_same_bits(back: NDArray[Any], slots: NDArray[Any]) -> None:
    assert back.dtype == slots.dtype
    assert back.dtype.isalignedstruct
    for name in slots.dtype.names or ():
        assert back[name].tobytes() == slots[name].tobytes(), name


def assert_same_values(back: NDArray[Any], slots: NDArray[Any]) -> None:
    """Assert equal values and signs of zero; the widths of types may differ."""
    assert back.dtype.names == slots.dtype.names
    for name in slots.dtype.names or ():
        expected, found = slots[name], back[name]
        if expected.dtype.kind == "f":
            assert found.dtype == np.float64
            assert found.tobytes() == expected.astype(np.float64).tobytes(), name
        else:
            assert found.tolist() == expected.tolist(), name


# Text that does not read as a number or bool, because CSV has no types.
WORD = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6
).map(lambda text: "~" + text)
FLOATS = st.floats(allow_nan=True, width=64)
EXTRA = {
    "i1": st.integers(-128, 127),
    "u1": st.integers(0, 255),
    "i2": st.integers(-(2**15), 2**15 - 1),
    "u2": st.integers(0, 2**16 - 1),
    "i4": st.integers(-(2**31), 2**31 - 1),
    "u4": st.integers(0, 2**32 - 1),
    "i8": st.integers(-(2**63), 2**63 - 1),
    "u8": st.integers(0, 2**64 - 1),
    "f2": st.floats(width=16),
    "f4": st.floats(width=32),
    "f8": FLOATS,
    "?": st.booleans(),
    "U9": WORD,
}


@st.composite
def slot_arrays(draw: st.DrawFn, least: int = 0) -> NDArray[Any]:
    """Generate valid slots on distinct nodes, with a column of each type."""
    size = draw(st.integers(least, 6))
    node = draw(
        st.lists(st.integers(0, 2**31 - 1), min_size=size, max_size=size, unique=True)
    )

    def column(values: st.SearchStrategy[Any], dtype: str = "f8") -> NDArray[Any]:
        cells = draw(st.lists(values, min_size=size, max_size=size))
        return np.array(cells, dtype)

    finite = st.floats(allow_nan=False, allow_infinity=False)
    start = column(finite)
    with np.errstate(over="ignore"):
        end = np.where(column(st.booleans(), "?"), np.inf, np.nextafter(start, np.inf))
    positive = st.floats(0, exclude_min=True, allow_infinity=False)
    extra = {f"x{dtype}": column(cells, dtype) for dtype, cells in EXTRA.items()}
    return sk.make_slots(
        node=node,
        start=start,
        end=end,
        performance=column(positive),
        price=column(st.floats(0, allow_infinity=False)),
        **extra,
    )


@pytest.mark.parametrize("suffix", EXACT)
@settings(max_examples=settings.default.max_examples // 10)
@given(slots=slot_arrays())
def test_binary_formats_keep_every_bit(
    suffix: str, slots: NDArray[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"exact{suffix}"
    write_slots(path, slots)
    assert_same_bits(read_slots(path), slots)


@pytest.mark.parametrize("suffix", [s for s in SUFFIXES if s not in EXACT])
@settings(max_examples=settings.default.max_examples // 10)
@given(slots=slot_arrays(least=1))
def test_text_formats_keep_every_value(
    suffix: str, slots: NDArray[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    slots = slots.copy()
    for name in ("xf2", "xf4", "xf8"):
        slots[name][np.isnan(slots[name])] = (
            np.nan
        )  # text formats do not write the payload of NaN
    path = tmp_path_factory.getbasetemp() / f"text{suffix}"
    write_slots(path, slots)
    assert_same_values(read_slots(path), slots)


@settings(max_examples=settings.default.max_examples // 10)
@given(slot_arrays())
def test_arrow_and_pandas_keep_every_bit(slots: NDArray[Any]) -> None:
    assert_same_bits(from_arrow(to_arrow(slots)), slots)
    if len(slots):
        slots = slots.astype(
            [
                (name, f"U{max(map(len, slots[name]))}" if name == "xU9" else dtype)
                for name, (dtype, *_) in slots.dtype.fields.items()
            ]
        )
        slots = sk.make_slots(**{name: slots[name] for name in slots.dtype.names})
        assert_same_bits(from_pandas(to_pandas(slots)), slots)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip_of_a_small_array(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"slots{suffix}"
    write_slots(path, SMALL)
    check = assert_same_bits if suffix in EXACT else assert_same_values
    check(read_slots(path), SMALL)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pools_empty_strided_and_read_only_arrays(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"slots{suffix.upper()}"
    write_slots(path, SMALL[:0])
    assert read_slots(path).shape == (0,)
    wide = np.repeat(SMALL, 2)[::2]
    wide.flags.writeable = False
    write_slots(path, wide)
    assert read_slots(path)["price"].tolist() == SMALL["price"].tolist()
    write_slots(path, sk.SlotPool(SMALL))
    assert read_slots(path)["end"].tolist() == SMALL["end"].tolist()


def test_text_of_several_kinds(tmp_path: Path) -> None:
    slots = sk.make_slots(
        node=[1, 2],
        start=0,
        end=1,
        performance=1,
        price=1,
        raw=np.array([b"a", b"bc"], "S8"),
        any=np.array(["x", "yy"], object),
    )
    expected = {
        ".parquet": ("S8", "O"),
        ".npz": ("S8", "U2"),
        ".csv": ("U2", "U2"),
        ".json": ("U2", "U2"),
        ".jsonl": ("U2", "U2"),
    }
    for suffix, dtypes in expected.items():
        write_slots(tmp_path / f"s{suffix}", slots)
        back = read_slots(tmp_path / f"s{suffix}")
        assert (back.dtype["raw"], back.dtype["any"]) == tuple(map(np.dtype, dtypes))
        text = [c.decode() if isinstance(c, bytes) else c for c in back["raw"].tolist()]
        assert text == ["a", "bc"]
        assert back["any"].tolist() == ["x", "yy"]


def test_json_is_strict_and_one_record_a_line(tmp_path: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    write_slots(tmp_path / "s.json", SMALL)
    text = (tmp_path / "s.json").read_text()
    records = json.loads(text, parse_constant=refuse)
    assert [record["end"] for record in records] == [5.0, "Infinity", 9.0]
    write_slots(tmp_path / "s.jsonl", SMALL)
    lines = (tmp_path / "s.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=refuse) for line in lines] == records
    assert len(text.splitlines()) == len(lines) + 2


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "2,5,9,1,1\n1,0,3,2,0\n",
        HEADER + "2,5,9,1,1\n1,0,3,2,0",
        HEADER.replace("\n", "\r\n") + "2,5,9,1,1\r\n1,0,3,2,0\r\n\r\n",
        "\ufeff" + HEADER + "2,5,9,1,1\n1,0,3,2,0\n",
        "\n\n" + HEADER + "\n2,5,9,1,1\n\n1,0,3,2,0\n\n\n",
        "node, start , end,performance,price\n 2, 5.0,9 ,1,+1\n1.0,0,3e0,2,0\n",
        '"node","start","end","performance","price"\n"2","5","9","1","1"\n1,0,3,2,0\n',
        "price,end,start,performance,node\n1,9,5,1,2\n0,3,0,2,1\n",
    ],
)
def test_csv_variants(tmp_path: Path, text: str) -> None:
    slots = read_text(tmp_path, text)
    assert slots.dtype == sk.SLOT
    assert slots.tolist() == [(1, 0.0, 3.0, 2.0, 0.0), (2, 5.0, 9.0, 1.0, 1.0)]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('5" disk', '5" disk'),
        ('a "b" c', 'a "b" c'),
        ('"5"" disk"', '5" disk'),
        ('"a" b"', 'a b"'),
        ('""', ""),
        ('"a,\nb"', "a,\nb"),
        ('"a\n"', "a\n"),
        ("y" * 200_000, "y" * 200_000),
    ],
)
def test_csv_quotes_are_special_only_at_the_begin_of_a_cell(
    tmp_path: Path, cell: str, expected: str
) -> None:
    for end in ("", "\n", "\r\n\r\n"):
        text = HEADER[:-1] + f",x\n1,0,3,2,0,{cell}\n2,5,9,1,1,{cell}{end}"
        assert read_text(tmp_path, text)["x"].tolist() == [expected] * 2


def test_a_table_of_many_columns(tmp_path: Path) -> None:
    extra = {f"c{i}": [i, i] if i % 2 else ["a", "é"] for i in range(3000)}
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1, **extra)
    for suffix in SUFFIXES:
        write_slots(tmp_path / f"s{suffix}", slots)
        back = read_slots(tmp_path / f"s{suffix}")
        assert back.dtype.names == slots.dtype.names
        assert back.tolist() == slots.tolist()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2"], np.array([1, -2])),
        (["0", "18446744073709551615"], np.array([0, 2**64 - 1], "u8")),
        (["1", "18446744073709551616"], np.array([1, 2.0**64])),
        (["1", "-0"], np.array([1, -0.0])),
        (["1", ".5"], np.array([1, 0.5])),
        (["1e3", "nan"], np.array([1000, np.nan])),
        (["-inf", "Infinity"], np.array([-np.inf, np.inf])),
        (["true", "False"], np.array([True, False])),
        (["true", "1"], np.array(["true", "1"])),
        (["007", "8"], np.array(["007", "8"])),
        (["0x10", "1"], np.array(["0x10", "1"])),
        (["1_0", "1"], np.array(["1_0", "1"])),
        (["a", ""], np.array(["a", ""])),
        (["", ""], np.array(["", ""])),
        (["5", '""'], np.array(["5", ""])),
        (["2024-01-01", "12:00"], np.array(["2024-01-01", "12:00"])),
        ([" a", "b "], np.array([" a", "b "])),
    ],
)
def test_csv_infers_the_type_of_a_further_column(
    tmp_path: Path, cells: list[str], expected: NDArray[Any]
) -> None:
    rows = "".join(f"{i},0,1,1,1,{cell}\n" for i, cell in enumerate(cells))
    column = read_text(tmp_path, HEADER[:-1] + ",x\n" + rows)["x"]
    assert column.dtype == expected.dtype
    assert column.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2.5"], np.array([1, 2.5])),
        (["1", str(2**64 - 1)], np.array([1, 2**64 - 1], "u8")),
        (["-1", str(2**64 - 1)], np.array([-1, 2.0**64])),
        (['"NaN"', '"-Infinity"'], np.array([np.nan, -np.inf])),
        (['"NaN"', '"-inf"'], np.array(["NaN", "-inf"])),
        (["true", "false"], np.array([True, False])),
    ],
)
def test_json_column_types(
    tmp_path: Path, cells: list[str], expected: NDArray[Any]
) -> None:
    rows = [
        record.replace("}", f', "x": {cell}}}')
        for record, cell in zip([R1, R2], cells, strict=True)
    ]
    column = read_text(tmp_path, f"[{','.join(rows)}]", ".json")["x"]
    assert column.dtype == expected.dtype
    assert column.tobytes() == expected.tobytes()


def test_names_in_any_script(tmp_path: Path) -> None:
    slots = sk.make_slots(
        node=[0, 1], start=0, end=9, performance=1, price=1, **{"память": [1.5, 2]}
    )
    for suffix in SUFFIXES:
        path = tmp_path / f"slots{suffix}"
        sk.write_slots(path, slots)
        assert sk.read_slots(path).dtype.names == slots.dtype.names
        assert sk.read_slots(path).tolist() == slots.tolist()


def test_npz_of_another_byte_order_is_read_as_native(tmp_path: Path) -> None:
    columns = COLUMNS | {"load": np.arange(len(SMALL), dtype=">f4")}
    slots = sk.make_slots(**columns)
    foreign = slots.astype(slots.dtype.newbyteorder(">"))
    for text in (npz(**{n: slots[n] for n in slots.dtype.names}), npz(slots=foreign)):
        found = read_text(tmp_path, text, ".npz")
        assert found.dtype["load"] == np.float32
        path = tmp_path / "again.npz"
        sk.write_slots(path, found)
        assert_same_bits(sk.read_slots(path), found)


def test_npz_with_one_array_per_column(tmp_path: Path) -> None:
    order = [2, 0, 1]
    text = npz(**{name: column[order] for name, column in COLUMNS.items()})
    assert_same_bits(read_text(tmp_path, text, ".npz"), SMALL)


def test_arrow_tables_of_other_libraries() -> None:
    table = pa.table(
        {
            "node": pa.array([2, 1], pa.uint8()),
            "start": pa.array([0, 0], pa.int64()),
            "end": pa.array([1, 2], pa.float32()),
            "performance": [1, 1],
            "price": [1, 1],
            "site": pa.array(["a", "b"]).dictionary_encode(),
            "long": pa.array(["a", "b"], pa.large_string()),
            "day": pa.array([0, 1], pa.date32()),
        }
    )
    slots = from_arrow(table)
    assert slots[["node", "site", "long"]].tolist() == [(1, "b", "b"), (2, "a", "a")]
    assert slots.dtype["day"] == np.dtype("M8[D]")
    assert from_arrow(table.to_batches()[0]).tolist() == slots.tolist()
    # Metadata with a narrower type never truncates text.
    field = pa.field("site", pa.string(), metadata={"numpy": "<U1"})
    longer = table.set_column(5, field, pa.array(["ab", "abc"]))
    assert from_arrow(longer)["site"].tolist() == ["abc", "ab"]


def test_pandas_frames_with_other_types() -> None:
    frame = pd.DataFrame(
        {
            "node": pd.array([2, 1], "Int64"),
            "start": [0, 0],
            "end": pd.array([1, 2], "Float64"),
            "performance": 1,
            "price": 1,
            "site": pd.Categorical(["a", "b"]),
            "old": np.array(["a", "b"], object),
            "load": [np.nan, 1],
        },
        index=[7, 7],
    )
    slots = from_pandas(frame)
    assert slots[["node", "site", "old"]].tolist() == [(1, "b", "b"), (2, "a", "a")]
    assert np.isnan(slots["load"][1])
    for changed, message in [
        (frame.drop(columns="end"), "slots: no column 'end'"),
        (frame.rename(columns={"site": "old"}), "slots: column 'old' occurs twice"),
        (frame.rename(columns={"site": 3}), "slots: column 6 is named 3"),
        (frame.assign(end=[1, 0]), "slots, row 1: end 0.0 is not after start 0.0"),
        (frame.assign(end=[1, np.nan]), "slots, row 1: end is nan"),
        (frame.assign(end=pd.array([1, None])), "slots, row 1: end is missing"),
        (frame.assign(site=["a", None]), "slots, row 1: site is missing"),
        (frame.assign(site=["a", 3]), "slots, row 1: site 3 is of type int"),
        (frame.assign(end=["1", "2"]), "slots: column 'end' must hold numbers"),
    ]:
        with pytest.raises(ValueError, match="slots") as caught:
            from_pandas(changed)
        assert str(caught.value).startswith(message)


def test_values_that_are_no_tables_are_refused() -> None:
    with pytest.raises(TypeError, match="frame must be a pandas frame, got int"):
        from_pandas(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="table must be an Arrow table, got int"):
        from_arrow(3)


def test_windows_are_converted_to_arrow_and_pandas() -> None:
    window = sk.find_window(SMALL, sk.Request(2, 1))
    assert window is not None
    assert to_arrow(window)["node"].to_pylist() == [2, 4]
    assert to_pandas(window)["node"].tolist() == [2, 4]


@pytest.mark.parametrize(
    "page", ["README.md", "docs/stability.md", "docs/reference/files.rst"]
)
def test_pages_list_the_formats(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in text] == [], (
        f"list every suffix of slotkern.files.FORMATS in {page}"
    )
