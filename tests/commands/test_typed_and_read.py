"""Input and output for people: durations, dates, separators, escapes, suggestions."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

import slotkern as sk
from slotkern.commands.main import app
from slotkern.commands.terminal import fit_to_width
from slotkern.machine.calendar import duration_of
from slotkern.search.explanation import _format_money

EVIL = ("n\x1b[2J\x1b[31mRED", "x\u202egnp", "j\x1b]0;pwned\x1b\\", "o\x9b31m")


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """A pool of two nodes with control characters in their names, and a booking."""
    machine = sk.Machine({"name": list(EVIL[:2]), "price": [1.0, 2.0]})
    free = sk.free_slots(
        machine, start="2026-10-24", end="2026-10-26", zone="UTC", unit="h"
    )
    booked = sk.SlotPool(free)
    job = sk.Request(2, walltime="1h", name=EVIL[2])
    booked.book(booked.find(job, required=True), owner=EVIL[3])
    booked.save(tmp_path / "pool.npz")
    return tmp_path / "pool.npz"


@pytest.mark.parametrize(
    ("option", "value"),
    [("walltime", "90"), ("setup", "4"), ("step", "0.5"), ("max-runtime", "1e3")],
)
def test_a_duration_without_a_unit_is_refused(
    pool: Path, tmp_path: Path, option: str, value: str
) -> None:
    words = {"walltime": "1h", option: value}
    options = [part for name, each in words.items() for part in (f"--{name}", each)]
    for command in ("find", "alternatives", "explain", "compare"):
        done = run(command, pool, "--nodes", "1", *options)
        assert done.exit_code == 2
        assert f"--{option}: '{value}' " in done.stderr
        assert done.stderr.count("\n") == 1
    # 0 and inf need no unit; without a clock all durations are numbers.
    zero = ("--walltime", "1h", "--setup", "0", "--max-runtime", "UNLIMITED")
    assert run("find", pool, "--nodes", "1", *zero).exit_code == 0
    plain = tmp_path / "slots.csv"
    plain.write_text("node,start,end,performance,price\n0,0,9,1,1\n")
    assert run("find", plain, "--nodes", "1", "--walltime", "4").exit_code == 0


def test_no_control_character_reaches_the_terminal(pool: Path) -> None:
    job = ("--nodes", "2", "--walltime", "1h")
    for words in (
        ("bookings", pool),
        ("find", pool, *job),
        ("alternatives", pool, *job),
        ("compare", pool, *job),
        ("explain", pool, *job, "--where", f"name == '{EVIL[1]}'"),
        ("find", f"{EVIL[0]}.npz", *job),
        ("release", pool, "--owner", EVIL[1]),
        ("release", pool, "--owner", EVIL[3]),
    ):
        done = run(*words)
        printed = (done.stdout + done.stderr).replace("\n", "")
        assert printed.isprintable(), words
    assert "o\\x9b31m" in run("bookings", pool).stdout + done.stdout


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0 days 04:00:00", 14400),
        ("1 days 06:00:00", 108_000),
        ("1 day, 6:00:00", 108_000),
        ("2 days, 0:00:01", 172_801),
        ("2 days", 172_800),
        ("1 days 00:00:00.250000", 86_400.25),
    ],
)
def test_durations_as_python_and_pandas_print_them(text: str, seconds: float) -> None:
    assert duration_of(text).ns == seconds * 10**9
    assert sk.Clock("2026-10-24", zone="UTC").duration(text) == seconds


def test_words_of_slurm_for_no_limit() -> None:
    with pytest.raises(ValueError, match="walltime: 'UNLIMITED' is no length of time"):
        sk.Request(1, walltime="UNLIMITED")
    jobs = {
        "nodes": [1],
        "walltime": ["1h"],
        "deadline": ["INFINITE"],
        "max_runtime": ["Unlimited"],
    }
    free = sk.free_slots(
        sk.Machine({"name": ["a"]}), start="2026-10-24", end="2026-10-26", zone="UTC"
    )
    assert sk.SlotPool(free).schedule(jobs, owner="a").reasons == ["booked"]


def test_tables_with_bars_between_columns(tmp_path: Path) -> None:
    nodes, busy, out = (tmp_path / name for name in ("n.csv", "b.csv", "o.npz"))
    nodes.write_text("name|price|note\nn[1-2]|1|a,b\nn3|2|\n")
    busy.write_text("node|start|end|\nn[1-2]|2026-10-24T19:00:00|Unknown|\n")
    horizon = ("--start", "2026-10-24", "--end", "2026-10-26", "--zone", "UTC")
    done = run("free", nodes, "--busy", busy, *horizon, "--output", out)
    assert done.exit_code == 0, done.stderr
    slots = sk.SlotPool.load(out).slots
    assert slots["end"].tolist() == [19 * 3600] * 2 + [48 * 3600]
    assert slots["note"].tolist() == ["a,b", "a,b", ""]
    busy.write_text("node|start|end\n\nn1|soon|\n")
    done = run("free", nodes, "--busy", busy, *horizon, "--output", out)
    assert "line 3: 'soon' is no date" in done.stderr


@pytest.mark.parametrize(
    ("zone", "day", "first"),
    [
        ("Africa/Cairo", "2026-04-24", "2026-04-24 01:00:00+03:00"),
        ("Asia/Beirut", "2026-03-29", "2026-03-29 01:00:00+03:00"),
        ("America/Havana", "2026-03-08", "2026-03-08 01:00:00-04:00"),
        ("America/Havana", "2026-11-01", "2026-11-01 00:00:00-04:00"),
        ("America/Santiago", "2026-09-06", "2026-09-06 01:00:00-03:00"),
        ("Europe/Berlin", "2026-10-25", "2026-10-25 00:00:00+02:00"),
    ],
)
def test_a_bare_date_is_the_day_s_first_moment(zone: str, day: str, first: str) -> None:
    clock = sk.Clock("2026-01-01", zone=zone)
    date = dt.date.fromisoformat(day)
    for given in (day, date, np.datetime64(day, "D")):
        assert str(clock.datetime(clock.time(given))) == first
        assert clock.times([given]).tolist() == [clock.time(given)]
    if "00:00:00" not in first:
        with pytest.raises(ValueError, match="does not exist"):
            clock.time(f"{day} 00:00")
        with pytest.raises(ValueError, match="does not exist"):
            clock.times([f"{day} 00:00"])


def test_numbers_of_numpy_in_a_list_are_numbers() -> None:
    machine = sk.Machine({"name": ["a"], "big": [np.bool_(True)]})
    ends = list(np.array([1.0, 2.0, 3.0]))
    busy = {"node": ["a"] * 3, "start": [0, np.int64(1), 2.5], "end": ends}
    free = sk.free_slots(machine, busy, start=0, end=9)
    assert free.slots[["start", "end"]].tolist() == [(2.0, 2.5), (3.0, 9.0)]
    assert free.slots["big"].tolist() == [True, True]


@pytest.mark.parametrize("unit", ["s", "min", "h", "d"])
def test_suggested_changes_are_sufficient(unit: str) -> None:
    """Each suggested change makes the request feasible when it is typed as printed."""
    rng = np.random.default_rng(42)
    clock = sk.Clock("2026-10-24", zone="Europe/Berlin", unit=unit)
    checked = 0
    for _ in range(40):
        speeds, prices = rng.uniform(0.5, 4, 3), rng.uniform(0.1, 9, 3)
        machine = sk.Machine(
            {"name": ["a", "b", "c"], "performance": speeds, "price": prices}
        )
        free = sk.free_slots(machine, start="2026-10-24", end="2026-10-26", clock=clock)
        job = sk.Request(
            int(rng.integers(1, 4)),
            walltime=f"{rng.integers(1, 10_000)}s",
            **{
                "budget": {"budget": 1e-9},
                "deadline": {"deadline": "2026-10-24 00:00:01"},
                "max_runtime": {"max_runtime": "1us"},
            }[rng.choice(["budget", "deadline", "max_runtime"])],
        )
        for shape in ("square", "ragged"):
            why = sk.explain(free, job, shape=shape)
            for row in why.to_pandas().itertuples():
                text = row.fits_with
                if text != "none" and row.limit != "nodes":
                    value = float(text) if row.limit == "budget" else text
                    changed = job.replace(**{row.limit: value})
                    assert sk.find_window(free, changed, shape=shape), (text, why)
                    assert text in str(why)
                    checked += 1
    assert checked > 40


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (310.3999999999998, "310.40"),
        (435.00000000000006, "435"),
        (333.3333333, "333.34"),
        (0.0012345678, "0.00123457"),
        (24.0, "24"),
        (0.0, "0"),
        (1e300, "1e+300"),
    ],
)
def test_amounts_that_people_type(amount: float, text: str) -> None:
    assert _format_money(amount) == text


def test_all_nodes_qualify() -> None:
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=9, performance=[1, 2, 3], price=[1, 2, 9]
    )

    def first(**more: Any) -> str:
        return str(sk.explain(slots, sk.Request(1, 5, **more))).splitlines()[1]

    assert first() == "all 3 nodes qualify"
    assert first(min_performance=2) == (
        "3 nodes have slots, 2 of them have performance >= 2"
    )
    assert first(min_performance=2, max_price=5) == (
        "3 nodes have slots, 2 of them have performance >= 2, "
        "1 of them passes the filter and the limits on slots"
    )
    assert first(max_price=5) == (
        "3 nodes have slots, 2 of them pass the filter and the limits on slots"
    )


def wide_pool(path: Path) -> Path:
    machine = sk.Machine(
        {
            "name": ["node[001-024]"],
            "performance": [3.0],
            "price": [1.0],
            "memory": [64],
            "rack": ["r1"],
        }
    )
    free = sk.free_slots(
        machine, start="2026-10-24", end="2026-11-26", zone="Europe/Berlin", unit="h"
    )
    sk.SlotPool(free).save(path)
    return path


def test_one_record_for_a_window_everywhere(tmp_path: Path) -> None:
    pool = wide_pool(tmp_path / "pool.npz")
    job = ("--nodes", "2", "--walltime", "1:00:01")
    files = [tmp_path / f"out.{ending}" for ending in ("csv", "json", "parquet")]
    for file in files:
        done = run("find", pool, *job, "--json", "--output", file)
        assert done.exit_code == 0, done.stderr
    window = json.loads(done.stdout)["window"]
    (first, _) = window["slots"]
    assert first["name"] == "node001"
    assert first["start_time"] == window["start_time"] == "2026-10-24T00:00:00+02:00"
    table = pq.read_table(files[2])
    for names in (
        csv.DictReader(io.StringIO(files[0].read_text())).fieldnames or (),
        json.loads(files[1].read_text())[0],
        table.column_names,
    ):
        assert set(names) == {"window", *first}
    (row, _) = json.loads(files[1].read_text())
    assert row == {"window": 1} | first
    # The Python result has the same names for the same fields.
    found = sk.SlotPool.load(pool).find(sk.Request(2, walltime="1:00:01"), "finish")
    record = found.to_dict()
    assert {name: record[name] for name in window if name != "slots"} | {
        "slots": window["slots"]
    } == window
    assert record["slots"][0].items() <= first.items()


def test_printed_times_are_in_whole_seconds(tmp_path: Path) -> None:
    pool = wide_pool(tmp_path / "pool.npz")
    done = run("find", pool, "--nodes", "24", "--walltime", "24:00:01")
    assert "2026-10-24 08:00   8:00:00" in done.stdout
    assert "finish 2026-10-24 08:00:00+02:00" in done.stdout
    assert done.stdout.rstrip().endswith("processor time 192 node hours")
    compared = run("compare", pool, "--nodes", "1", "--walltime", "1:00:01").stdout
    assert "2026-10-24 00:20*   0:20:00*" in compared


def test_a_wide_table_fits_the_terminal() -> None:
    table = Table("node", "finish", "memory", "site", box=None, caption="the end")
    table.add_row("n1", "2026-10-24", "64", "a" * 30)
    console = Console(width=40, file=io.StringIO())
    fit_to_width(table, console)
    console.print(table)
    assert [column.header for column in table.columns] == ["node", "finish", "memory"]
    assert str(table.caption).startswith("the end\ncolumns hidden")
    assert "narrow terminal: site; a file or a pipe gets all" in str(table.caption)
    narrow = Console(width=10, file=io.StringIO())
    fit_to_width(table, narrow)
    narrow.print(table)
    text = narrow.file.getvalue()  # type: ignore[attr-defined]
    assert [column.header for column in table.columns] == ["node", "finish"]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 10
