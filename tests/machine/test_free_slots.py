"""Tests of machines from tables, and of the free slots around busy spans."""

from __future__ import annotations

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk
from slotkern.machine.files import TABLE_FORMATS
from slotkern.machine.gaps import gaps

FRAMES = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "stream": lambda columns: Stream(pa.table(columns)),
    "rows": lambda columns: pl.DataFrame(columns).to_dicts(),
}


class Stream:
    """A table that only offers the Arrow PyCapsule interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", FRAMES)
def test_machines_from_all_kinds_of_tables(kind):
    columns = {"name": ["anna", "bert"], "price": [1.0, 2.5], "os": ["x", "y"]}
    machine = sk.Machine(FRAMES[kind](columns))
    assert machine.names.tolist() == ["anna", "bert"]
    assert machine.performance.tolist() == [1, 1]
    assert machine.price.tolist() == [1, 2.5]
    assert machine.columns["os"].tolist() == ["x", "y"]
    assert machine == sk.Machine(columns) == pickle.loads(pickle.dumps(machine))
    assert machine != sk.Machine(columns | {"price": [1, 3]})
    assert machine.ids(["bert", "anna", "bert"]).tolist() == [1, 0, 1]
    assert machine.ids(np.array([1, 0])).tolist() == [1, 0]


SUFFIXES = (".csv", ".parquet", ".json")


def test_the_formats_of_tables_are_tested():
    assert {*SUFFIXES} == {*TABLE_FORMATS}


def test_machines_from_files(tmp_path):
    columns = {"name": ["007", "é"], "performance": [2, 4.5], "memory": [64, 128]}
    csv, parquet, json = (tmp_path / f"m{suffix}" for suffix in SUFFIXES)
    csv.write_text("name,performance,memory\n007,2,64\né,4.5,128\n", encoding="utf-8")
    pq.write_table(pa.table(columns), parquet)
    json.write_text(pd.DataFrame(columns).to_json(orient="records"), encoding="utf-8")
    assert sk.Machine.read(csv) == sk.Machine.read(parquet) == sk.Machine(columns)
    assert sk.Machine.read(json) == sk.Machine(columns)
    with pytest.raises(ValueError, match=r"m.csv has no column 'host'; it has"):
        sk.Machine.read(csv, name="host")
    with pytest.raises(ValueError, match=r"the suffix '.txt' is not one of"):
        sk.Machine.read(tmp_path / "m.txt")
    csv.write_text("name\na,b\n")
    with pytest.raises(ValueError, match=r"m.csv, line 2: 2 cells, not 1"):
        sk.Machine.read(csv)
    with pytest.raises(FileNotFoundError):
        sk.Machine.read(tmp_path / "none.csv")


def test_processors_are_rows_with_a_host():
    table = {"name": ["a", "b"], "cores": [2, 1], "price": [1, 3]}
    machine = sk.Machine(table, processors="cores")
    assert machine.names.tolist() == ["a/0", "a/1", "b/0"]
    assert machine.columns["host"].tolist() == ["a", "a", "b"]
    assert machine.price.tolist() == [1, 1, 3]
    free = sk.free_slots(machine, start=0, end=10)
    window = sk.SlotPool(free).find(sk.Request(1, 5, where="host == 'b'"))
    assert window.names == ("b/0",)
    assert len(sk.Machine(table, processors=3)) == 6


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        ({"host": ["a"]}, ValueError, "machine has no column 'name'; it has host"),
        ({"name": ["a", "b", "a"]}, ValueError, "row 2: 'a' is the name of row 0"),
        ({"name": ["a", ""]}, ValueError, "machine, row 1: the name is empty"),
        ({"name": ["a", None]}, TypeError, "machine, row 1: the name None is no text"),
        ({"name": []}, ValueError, "a machine has 1 to .* nodes, not 0"),
        ({"name": [1.5]}, TypeError, "names must be text"),
        (
            {"name": ["a", "b"], "performance": [1, 0]},
            ValueError,
            "machine, row 1: performance 0.0 is not positive",
        ),
        (
            {"name": ["a", "b"], "price": [1, -2]},
            ValueError,
            "machine, row 1: price -2.0 is not at least 0",
        ),
        (
            {"name": ["a", "b"], "price": [1, np.nan]},
            ValueError,
            "machine, row 1: price nan is not finite",
        ),
        (
            {"name": ["a"], "price": ["0,4"]},
            TypeError,
            "machine, row 0: price '0,4' is not a number",
        ),
        (
            {"name": ["a", "b"], "price": [0.4, None]},
            TypeError,
            "machine, row 1: price is empty or NaN, not a number",
        ),
        (
            {"name": ["a", "b", "c"], "performance": ["1", "2", "fast"]},
            TypeError,
            "machine, row 2: performance 'fast' is not a number",
        ),
        (
            {"name": ["a", "b"], "performance": ["1", "2"]},
            TypeError,
            "machine, row 0: performance '1' is text, not a number",
        ),
        ({"name": ["a", " "]}, ValueError, "machine, row 1: the name is empty"),
        ({"name": np.empty(0)}, ValueError, "a machine has 1 to .* nodes, not 0"),
        ({"name": ["a"], "start": [1]}, ValueError, "'start' is one of the slots"),
        ({"name": ["a", "b"], "os": ["x"]}, ValueError, "different numbers of rows"),
        ([{"name": "a"}, {"nam": "b"}], ValueError, "machine, row 1: has nam; row 0"),
        (["a"], TypeError, "machine, row 0: not a mapping: 'a'"),
        (17, TypeError, "machine must be a table"),
    ],
)
def test_bad_machines(table, error, words):
    with pytest.raises(error, match=words):
        sk.Machine(table)


def test_unknown_nodes_are_refused():
    machine = sk.Machine.homogeneous(3)
    for nodes, words in (
        (["n0", "n9"], "row 1: 'n9' is no node"),
        ([0, 3], "row 1: 3 is no node"),
        ([-1], "row 0: -1 is no node"),
        (np.array(["n1", None], object), "row 1: None is no node"),
    ):
        with pytest.raises(ValueError, match=words):
            machine.ids(nodes)
    with pytest.raises(TypeError, match="must be names or ids"):
        machine.ids([1.5])
    with pytest.raises(ValueError, match="nodes must be at least 1"):
        sk.Machine.homogeneous(0)


times = st.integers(-3, 13).map(float)


@given(
    spans=st.lists(st.tuples(st.integers(0, 2), times, times), max_size=12),
    endless=st.booleans(),
)
def test_gaps_are_the_complement_of_spans(spans, endless):
    last = np.inf if endless else 10.0
    node, start, end = (np.array(c) for c in zip(*spans, (0, 5.0, 5.0), strict=True))
    found = {
        (n, time)
        for n, a, b in zip(*gaps(3, node, start, end, 0.0, last), strict=True)
        for time in np.arange(a, min(b, 20), 0.5)
    }
    assert found == {
        (n, time)
        for n in range(3)
        for time in np.arange(0, min(last, 20), 0.5)
        if not any(m == n and a <= time < b for m, a, b in spans)
    }


@given(
    busy=st.lists(st.tuples(st.integers(0, 2), times, times), max_size=6),
    changes=st.lists(
        st.tuples(st.integers(0, 2), times, times, st.sampled_from([1.0, 4.0])),
        max_size=6,
    ),
)
@example([], [(0, 2.0, 6.0, 4.0), (0, 3.0, 3.0, 1.0)])
def test_prices_by_node_and_time(busy, changes):
    machine = sk.Machine.homogeneous(3, price=1)
    busy = [(n, *sorted(t)) for n, *t in busy]
    changes = [(n, *sorted((a, b)), p) for n, a, b, p in changes]
    changes = [
        row
        for i, row in enumerate(changes)
        if all(o[0] != row[0] or o[2] <= row[1] or o[1] >= row[2] for o in changes[:i])
    ]
    slots = sk.free_slots(
        machine,
        {c: [row[i] for row in busy] for i, c in enumerate(("node", "start", "end"))},
        start=0,
        end=10,
        prices={
            c: np.array([row[i] for row in changes], float if i else int)
            for i, c in enumerate(("node", "start", "end", "price"))
        },
        cut=True,
    ).slots
    prices = np.full((3, 20), np.nan)  # one price per half unit of time
    for slot in slots:
        prices[slot["node"], int(2 * slot["start"]) : int(2 * slot["end"])] = slot[
            "price"
        ]
    for n in range(3):
        for half in range(20):
            time = half / 2
            expected = [p for m, a, b, p in changes if m == n and a <= time < b] or [1]
            if any(m == n and a <= time < b for m, a, b in busy):
                expected = [np.nan]
            assert np.array_equal(prices[n, half], expected[0], equal_nan=True)
    for a in slots:  # adjacent slots differ in price
        same = slots[(slots["node"] == a["node"]) & (slots["start"] == a["end"])]
        assert (same["price"] != a["price"]).all()


def test_one_price_list_for_all_nodes():
    machine = sk.Machine.homogeneous(2, price=3)
    night = {
        "start": ["2026-10-24 22:00"],
        "end": ["2026-10-25 06:00"],
        "price": [1.0],
    }
    free = sk.free_slots(
        machine,
        start="2026-10-24",
        end="2026-10-26",
        zone="Europe/Berlin",
        unit="h",
        prices=night,
        cut=True,
    )
    assert free.slots[["node", "start", "end", "price"]].tolist() == [
        *((n, 0, 22, 3) for n in (0, 1)),
        *((n, 22, 31, 1) for n in (0, 1)),  # nine hours: the clocks are put back
        *((n, 31, 49, 3) for n in (0, 1)),
    ]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("zone", [None, dt.UTC])
def test_busy_spans_from_all_kinds_of_tables(kind, zone):
    def when(hour):
        return dt.datetime(2026, 10, 25, hour, tzinfo=zone)

    machine = sk.Machine.homogeneous(2, memory=[64, 128])
    columns = {
        "node": ["n1", "n0", "n1", "n1"],
        "start": [when(6), when(4), when(5), when(9)],
        "end": [when(8), when(5), when(7), None],
        "user": ["u", "v", "w", "x"],
    }
    free = sk.free_slots(
        machine,
        FRAMES[kind](columns),
        start="2026-10-25T00:00Z",
        end="2026-10-25T12:00Z",
        clock=sk.Clock("2026-10-25T00:00Z", unit="h", zone="UTC"),
    )
    assert free.slots[["node", "start", "end", "memory"]].tolist() == [
        (0, 0, 4, 64),
        (1, 0, 5, 128),
        (0, 5, 12, 64),
        (1, 8, 9, 128),
    ]
    assert free.machine is machine
    assert repr(free).startswith("FreeSlots(4 slots of 2 nodes, hours since 2026-10-25")


@pytest.mark.parametrize("name", ["busy.csv", "busy.parquet"])
def test_busy_spans_from_files(tmp_path, name):
    pytest.importorskip("pyarrow")
    busy = {"node": ["n0", "n[1-2]"], "start": [1.0, 2.0], "end": [3.0, 5.0]}
    frame, path = pd.DataFrame(busy), tmp_path / name
    if name.endswith("csv"):
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    machine = sk.Machine.homogeneous(4)
    from_file = sk.free_slots(machine, path, start=0, end=9)
    assert from_file.slots.tolist() == (
        sk.free_slots(machine, busy, start=0, end=9).slots.tolist()
    )
    with pytest.raises(ValueError, match=r"suffix '\.txt' is not one of \.csv"):
        sk.free_slots(machine, tmp_path / "busy.txt", start=0, end=9)


def test_a_scalar_column_holds_for_all_rows():
    machine = sk.Machine.homogeneous(2, price=3)
    busy = {"node": "n0", "start": [1.0, 3.0], "end": 5.0}
    free = sk.free_slots(machine, busy, start=0, end=9)
    assert free.slots[["node", "start", "end"]].tolist() == [
        (0, 0, 1),
        (1, 0, 9),
        (0, 5, 9),
    ]
    prices = {"start": [1.0, 3.0], "end": [3.0, 4.0], "price": 7.0, "node": "n1"}
    free = sk.free_slots(machine, busy, start=0, end=9, prices=prices, cut=True)
    mine = free.slots[free.slots["node"] == 1]
    assert mine[["start", "end", "price"]].tolist() == [(0, 1, 3), (1, 4, 7), (4, 9, 3)]


def test_a_number_that_names_another_row_is_refused():
    day = {"start": 0, "end": 9}
    ones = sk.Machine({"name": [1, 2, 3]})  # pandas reads numeric names as integers
    assert ones.names.tolist() == ["1", "2", "3"]
    busy = {"node": [1, 3], "start": [0.0, 0.0], "end": [9.0, 9.0]}
    words = "busy: node, row 0: 1 is a number, .* but node '1' is row 0; write names as"
    with pytest.raises(ValueError, match=words):
        sk.free_slots(ones, busy, **day)
    free = sk.free_slots(ones, busy | {"node": ["1", "3"]}, **day)
    assert free.slots["node"].tolist() == [1]
    zeros = sk.Machine({"name": ["0", "1", "2", "n3"]})
    assert zeros.ids([2, 0, 3]).tolist() == [2, 0, 3]  # names and rows are equal


def test_an_idle_machine_without_end_of_horizon():
    machine = sk.Machine.homogeneous(2)
    free = sk.free_slots(machine, start=0, end=np.inf)
    assert free.slots[["start", "end"]].tolist() == [(0, np.inf)] * 2
    assert free.clock is None
    empty = {"node": [], "start": [], "end": []}
    for nothing in (empty, [], {}, pd.DataFrame()):
        assert sk.free_slots(machine, nothing, start=0, end=9).slots.size == 2
    full = {"node": ["n0", "n1"], "start": [-5.0, 0.0], "end": [99.0, np.nan]}
    assert sk.free_slots(machine, full, start=0, end=9).slots.size == 0


DAY = {"start": "2026-10-25", "end": "2026-10-26", "zone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("busy", "options", "error", "words"),
    [
        ({"node": ["x"]}, {}, ValueError, "busy: node, row 0: 'x' is no node"),
        ({"node": [0.5]}, {}, TypeError, "busy: node must be names or ids"),
        ({"stop": [1]}, {}, None, ""),
        (
            {"start": ["2026-10-25 09:00"], "end": ["2026-10-25 08:00"]},
            {},
            ValueError,
            r"busy, row 0: the span ends at 2026-10-25 08:00:00\+01:00, before",
        ),
        (
            {"start": ["2026-10-25 02:30"]},
            {},
            ValueError,
            "busy: start, row 0: .* occurs twice in Europe/Berlin",
        ),
        (
            {"end": ["2026-10-25T12:00Z"]},
            {},
            ValueError,
            "busy: the times of end have a zone, those of start have none",
        ),
        (
            {"start": ["24.10.2026 18:00"]},
            {},
            ValueError,
            "busy: start, row 0: '24.10.2026 18:00' is no date such as '2026-10-25'",
        ),
        (
            {"start": [1.79e9]},
            {},
            TypeError,
            "busy: start holds numbers, but start and",
        ),
        (
            {},
            {"start": 0, "end": 5, "zone": None},
            TypeError,
            "busy: start holds dates",
        ),
        ({}, {"end": 5}, TypeError, "must both be dates or both numbers"),
        ({}, {"end": "2026-10-24"}, ValueError, "end 2026-10-24 does not lie after"),
        ({}, {"clock": sk.Clock("2026-10-25T00Z")}, ValueError, "zone is for a clock"),
        ({}, {"zone": None}, ValueError, "start: 2026-10-25 has no time zone"),
        ({"start": [""]}, {}, ValueError, "busy: start, row 0: a time is missing"),
        ({"start": [None]}, {}, ValueError, "busy: start, row 0: a time is missing"),
    ],
)
def test_bad_spans(busy, options, error, words):
    machine = sk.Machine.homogeneous(2)
    good = {"node": ["n0"], "start": ["2026-10-25 06:00"], "end": ["2026-10-25 07:00"]}
    if error is None:
        assert sk.free_slots(machine, good | busy, **DAY, **options).slots.size == 3
        return
    with pytest.raises(error, match=words):
        sk.free_slots(machine, good | busy, **{**DAY, **options})


def test_bad_prices():
    machine = sk.Machine.homogeneous(2)
    span = {"node": ["n0", "n1", "n0"], "start": [0, 0, 4], "end": [5, 5, 9]}
    for prices, words in (
        (span | {"price": [1, 2, 3]}, "prices, row 2: overlaps the span of row 0"),
        (span, "prices has no column 'price'"),
        (span | {"price": [1, -2, 3]}, "prices, row 1: price -2.0 is not at least 0"),
        ({"price": [1], "start": [0]}, "prices has no column 'end'"),
    ):
        with pytest.raises(ValueError, match=words):
            sk.free_slots(machine, start=0, end=9, prices=prices)
    with pytest.raises(TypeError, match="machine must be a Machine, got list"):
        sk.free_slots([], start=0, end=9)
    with pytest.raises(ValueError, match="busy has no column 'node'; it has start"):
        sk.free_slots(machine, {"start": [0]}, start=0, end=9)


@pytest.mark.parametrize("empty", ["", " ", None, np.nan])
def test_a_missing_end_is_busy_forever(empty):
    machine = sk.Machine.homogeneous(2)
    start = ["2026-10-25 06:00", "2026-10-25 09:00"]
    busy = {"node": ["n0", "n1"], "start": start, "end": ["2026-10-25 07:00", empty]}
    free = sk.free_slots(machine, busy, **DAY)
    assert free.slots["node"].tolist() == [0, 1, 0]
    assert free.slots["end"][1] == 10 * 3600  # the clocks are put back that night


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
@pytest.mark.parametrize("kind", [str, object])
def test_empty_text_is_a_missing_time(zone, kind):
    clock = sk.Clock("2026-10-25", zone="UTC")
    given = [f"2026-10-25 0{k}:00{zone}" for k in range(4)]
    times = clock.times(np.array(given, kind), "t")
    given[1] = ""
    found = clock.times(np.array(given, kind), "t", missing=-1)
    assert found[[0, 2, 3]].tolist() == times[[0, 2, 3]].tolist()
    assert found[1] == -1
    with pytest.raises(ValueError, match="t, row 1: a time is missing"):
        clock.times(np.array(given, kind), "t")


def test_an_unknown_end_is_busy_forever() -> None:
    machine = sk.Machine.homogeneous(2)
    busy = {"node": ["n0", "n1"], "end": ["Unknown", "2026-10-24T20:00:00"]}
    busy["start"] = ["2026-10-24T19:00:00"] * 2
    horizon = {"start": "2026-10-24T18:00", "end": "2026-10-24T22:00"}
    free = sk.free_slots(machine, busy, **horizon, zone="UTC")
    spans = [(0, 0.0, 3600.0), (1, 0.0, 3600.0), (1, 7200.0, 14400.0)]
    assert free.slots[["node", "start", "end"]].tolist() == spans
    numbers = {"node": [0, 1], "start": [5, 5], "end": ["Unknown", "7"]}
    free = sk.free_slots(machine, numbers, start=0, end=9)
    spans = [(0, 0.0, 5.0), (1, 0.0, 5.0), (1, 7.0, 9.0)]
    assert free.slots[["node", "start", "end"]].tolist() == spans
    busy["end"][1] = "soon"
    with pytest.raises(ValueError, match="soon"):
        sk.free_slots(machine, busy, **horizon, zone="UTC")


def test_prices_that_cut_into_too_many_slots_are_refused() -> None:
    machine = sk.Machine.homogeneous(2000)
    hours = np.arange(8760.0)
    prices = {"start": hours, "end": hours + 1, "price": hours % 24}
    with pytest.raises(ValueError, match=r"17,520,000 price segments .* 8,388,608"):
        sk.free_slots(machine, start=0, end=8760, prices=prices, cut=True)
    free = sk.free_slots(machine, start=0, end=24, prices=prices, cut=True)
    assert len(free) == 2000 * 24
    # Many price segments split many spans of the same node.
    busy = {"node": np.zeros(0, np.int64), "start": [], "end": []}
    assert len(sk.free_slots(machine, busy, start=0, end=24)) == 2000


# --- available time


def spans(draw_nodes=3):
    times = st.tuples(st.integers(-4, 24), st.integers(-4, 24)).map(sorted)
    return st.lists(st.tuples(st.integers(0, draw_nodes - 1), times), max_size=8)


def as_table(rows):
    return {
        "node": [node for node, _ in rows],
        "start": [first for _, (first, _) in rows],
        "end": [last for _, (_, last) in rows],
    }


@given(busy=spans(), available=spans())
def test_free_time_is_available_and_not_busy(busy, available):
    machine = sk.Machine.homogeneous(3, capacity="cores", cores=4)
    tables = {"busy": as_table(busy), "available": as_table(available)}
    free = sk.free_slots(machine, start=0, end=20, **tables)

    def covered(rows, node, hour):
        return any(n == node and a <= hour and hour + 1 <= b for n, (a, b) in rows)

    for node in range(3):
        for hour in range(20):
            expected = covered(available, node, hour) and not covered(busy, node, hour)
            for rows in (free.slots, free.amounts[free.amounts["cores"] == 4]):
                mine = rows[rows["node"] == node]
                found = (mine["start"] <= hour) & (mine["end"] >= hour + 1)
                assert found.any() == expected


def test_errors_of_available_time_name_the_table():
    machine = sk.Machine.homogeneous(2)
    table = {"node": ["n0", "n7"], "start": [0, 0], "end": [5, 5]}
    with pytest.raises(ValueError, match="available: node, row 1: 'n7' is no node"):
        sk.free_slots(machine, start=0, end=9, available=table)
    assert len(sk.free_slots(machine, start=0, end=9, available=[])) == 0
