"""Tests of WindowTable."""

import copy
import pickle

import numpy as np
import pytest

import slotkern as sk
from slotkern import WindowTable


@pytest.fixture
def windows():
    slots = sk.make_slots(
        node=[0, 1, 2], start=[0, 0, 4], end=20, performance=[1, 2, 4], price=[1, 3, 5]
    )
    requests = [sk.Request(1, 4), sk.Request(2, 4), sk.Request(3, 4)]
    found = [sk.find_window(slots, request, "cost") for request in requests]
    return [found[0], None, found[1], found[2]]


def test_table_is_a_sequence_of_windows_and_none(windows):
    table = WindowTable.of(windows)
    assert len(table) == 4
    assert list(table) == windows
    assert table[-1] == windows[-1]
    assert table[1] is None
    assert table == windows
    assert table != windows[:-1]
    assert table.index(windows[2]) == 2
    assert table.count(None) == 1
    assert (table.criterion, table.shape) == ("cost", "square")
    assert repr(table) == "WindowTable(4 square windows by cost)"


def test_slices_have_the_same_type(windows):
    table = WindowTable.of(windows)
    for index in (slice(1, 3), [1, 2], np.array([False, True, True, False])):
        some = table[index]
        assert type(some) is WindowTable
        assert some == windows[1:3]
        assert some.first.tolist() == [0, 0, 2]
        assert (some.criterion, some.shape) == ("cost", "square")
    assert table[::-1] == windows[::-1]
    assert len(table[5:]) == 0
    assert len(table[5:].parts) == 0


def test_columns_contain_values_of_windows(windows):
    table = WindowTable.of(windows)
    for name in ("start", "finish", "runtime", "cost", "processor_time", "value"):
        expected = [np.nan if w is None else getattr(w, name) for w in windows]
        np.testing.assert_array_equal(getattr(table, name), expected)
        np.testing.assert_array_equal(table.table[name], expected)
    assert table.first.tolist() == [0, 1, 1, 3, 6]
    for i, window in enumerate(windows):
        if window is not None:
            part = table.parts[table.first[i] : table.first[i + 1]]
            np.testing.assert_array_equal(part, window.slots)
    assert not table.parts.flags.writeable
    assert table.proven.tolist() == [True, True, True, True]
    np.testing.assert_array_equal(table.bound, table.value)


def test_table_contains_bounds_and_proofs():
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=20, performance=1, price=1, q=[1.0, 2.0, 3.0]
    )
    lite = sk.find_window(slots, sk.Request(1, 4), "q", method="lite")
    sure = sk.find_window(slots, sk.Request(1, 4), "q")
    table = WindowTable.of([sure, lite, None])
    assert [w and w.proven for w in table] == [True, False, None]
    assert table.proven.tolist()[:2] == [True, False]
    assert table.bound.tolist()[:2] == [sure.bound, lite.bound]
    assert table[1:] == [lite, None]


def test_copies_and_pickles_are_equal(windows):
    table = WindowTable.of(windows)
    for other in (copy.copy(table), pickle.loads(pickle.dumps(table))):
        assert other == table
        assert (other.criterion, other.shape) == (table.criterion, table.shape)
    empty = WindowTable.of([], criterion="cost", shape="ragged")
    assert repr(pickle.loads(pickle.dumps(empty))) == repr(empty)


def test_conversion_to_frames(windows):
    pandas = pytest.importorskip("pandas")
    table = WindowTable.of(windows)
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame) == [*table.table.dtype.names, "nodes"]
    assert frame["nodes"].tolist() == ["0", "", "0, 1", "0, 1, 2"]
    assert frame["cost"].isna().tolist() == [False, True, False, False]
    pytest.importorskip("pyarrow")
    assert table.to_arrow().num_rows == 4


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (4, "index 4 is out of range for 4 windows"),
        ([0, 9], "index 9 is out of range for 4 windows"),
        (np.array([True]), r"a mask must have shape \(4,\), got \(1,\)"),
        (np.array([0.5]), "index must be integers or a mask, got an array of float64"),
    ],
)
def test_invalid_indices_are_rejected(windows, index, words):
    with pytest.raises(IndexError, match=words):
        WindowTable.of(windows)[index]


def test_invalid_members_are_rejected(windows):
    with pytest.raises(
        TypeError, match=r"windows\[1\] must be a Window or None, got int"
    ):
        WindowTable.of([windows[0], 3])
    with pytest.raises(TypeError, match="cannot be created directly"):
        WindowTable()
