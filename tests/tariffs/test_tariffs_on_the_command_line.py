"""Tests of ``slotkern free --prices`` and ``--tariffs``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import refused, run

import slotkern as sk

DAY = ("--start", "2026-10-24", "--end", "2026-10-26", "--zone", "Europe/Berlin")
PRICES = """start,end,price
2026-10-24 00:00,2026-10-24 22:00,0.30
2026-10-24 22:00,2026-10-25 06:00,0.12
"""
TARIFFS = """tariff,start,factor
night,,0.5
night,2026-10-24 06:00,1
night,2026-10-24 22:00,0.5
flat,,2
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "machine.csv"
    path.write_text("name,price,tariff\na,0.4,night\nb,0.4,flat\nc,0.5,\n")
    return path


def test_tariffs_of_a_file(machine: Path, tmp_path: Path) -> None:
    tariffs, pool = tmp_path / "t.csv", tmp_path / "pool.npz"
    tariffs.write_text(TARIFFS)
    how = ("free", machine, *DAY, "--unit", "h", "--tariffs", tariffs)
    done = run(*how, "--output", pool)
    assert done.exit_code == 0, done.stderr
    found = sk.SlotPool.load(pool)
    assert found.slots[["node", "tariff"]].tolist() == [
        (0, "night"),
        (1, "flat"),
        (2, ""),
    ]
    assert found.context.tariffs == sk.Tariffs(  # type: ignore[union-attr]
        {"night": sk.Tariff([6, 22], [0.5, 1, 0.5]), "flat": sk.Tariff([], [2])}
    )
    done = run(*how, "--output", pool, "--output", tmp_path / "slots.csv")
    assert "only pools, .npz, keep tariffs" in done.stderr
    tariffs.write_text("start,factor\n2026-10-25 06:00,1\n")
    refused(run(*how, "--output", pool), "no price from 2026-10-24 00:00:00+02:00 to")
    tariffs.write_text(TARIFFS.replace("0.5", "-1"))
    refused(run(*how, "--output", pool), "t.csv, line 2: factor -1 is below 0")
    tariffs.write_text(TARIFFS.replace("night", "nite"))
    refused(run(*how, "--output", pool), "there is no tariff 'night'; there are nite")


def test_prices_of_a_file(tmp_path: Path) -> None:
    machine, prices = tmp_path / "machine.csv", tmp_path / "spot.csv"
    machine.write_text("name,price\na,0.4\nb,0.4\n")
    prices.write_text(PRICES)
    pool = tmp_path / "pool.npz"
    how = ("free", machine, *DAY, "--output", pool)
    done = run(*how, "--prices", prices)
    assert done.exit_code == 0, done.stderr
    assert "no --unit is given: prices are per second" in done.stderr
    found = sk.SlotPool.load(pool)
    tariffs = found.context.tariffs  # type: ignore[union-attr]
    assert tariffs["price"].factors.tolist() == [0.3, 0.12, 0.4]
    done = run(*how, "--tariffs", prices)
    refused(done, "spot.csv: there is no price from 2026-10-25 06:00:00+01:00 to")
    refused(run(*how, "--tariffs", prices, "--prices", prices), "both given")
    prices.write_text(PRICES.replace("0.12", "-0.12"))
    refused(run(*how, "--prices", prices), "spot.csv, line 3: price -0.12 is not at")
    prices.write_text(PRICES.replace("24 22:00,2026-10-25", "24 21:00,2026-10-25"))
    refused(run(*how, "--prices", prices), "line 3: overlaps the span of line 2")


def test_free_without_the_tariffs_of_the_machine(machine: Path, tmp_path: Path) -> None:
    done = run("free", machine, *DAY, "--output", tmp_path / "pool.npz")
    refused(done, "row 0: the node has the tariff 'night', but no tariffs are given")


def test_times_of_day_of_a_file(machine: Path, tmp_path: Path) -> None:
    tariffs, pool = tmp_path / "night.csv", tmp_path / "pool.npz"
    how = ("free", machine, *DAY, "--unit", "h", "--tariffs", tariffs)
    how += ("--output", pool)
    tariffs.write_text(
        "tariff,start,factor\nnight,06:00,1\nnight,22:00,0.5\nflat,00:00,2\n"
    )
    done = run(*how)
    assert done.exit_code == 0, done.stderr
    assert sk.SlotPool.load(pool).context.tariffs == sk.Tariffs(  # type: ignore[union-attr]
        {"night": sk.Tariff([6, 22, 31, 47], [0.5, 1, 0.5, 1, 0.5])}
        | {"flat": sk.Tariff([], [2])}
    )
    tariffs.write_text("start,price\n06:00,1\n06:00,2\n")
    refused(run(*how), "night.csv, line 3: the time 06:00:00 occurs twice")
    tariffs.write_text("start,end,price\n06:00,22:00,1\n")
    refused(run(*how), "start, line 2 must be a date")
    for rows, message in {
        "start,price\n06:00,1\n22:00,-2\n": "line 3: price -2 is below 0",
        "start,price\n06:00,1\n22:00,x\n": "line 3: price 'x' is not a number",
        "start,price,factor\n06:00,1,2\n": " has both a column 'price' and 'factor'",
        "tariff,start,price\na,06:00,1\n,22:00,2\n": "line 3: tariff is empty",
    }.items():
        tariffs.write_text(rows)
        refused(run(*how), f"{tariffs}", message)
    machine.write_text("name,price\na,0.4\n")
    tariffs.write_text("start,price\n06:00,1\n22:00,0.5\n")
    assert run(*how).exit_code == 0
    assert [*sk.SlotPool.load(pool).context.tariffs] == ["night"]  # type: ignore


def test_comparison_and_front_under_tariffs(machine: Path, tmp_path: Path) -> None:
    tariffs, pool = tmp_path / "t.csv", tmp_path / "pool.npz"
    tariffs.write_text(TARIFFS)
    run("free", machine, *DAY, "--unit", "h", "--tariffs", tariffs, "--output", pool)
    job = (pool, "--nodes", "2", "--walltime", "6h")
    done = run("compare", *job)  # by default without sums of values
    assert done.exit_code == 0, done.stderr
    refused(run("front", *job, "--by", "cost,finish"), "--most on the command line")


HOURS = """start,end,price,carbon
2026-10-24 00:00,2026-10-24 12:00,0.3,400
2026-10-24 12:00,2026-10-24 18:00,0.2,100
2026-10-24 18:00,2026-10-25 12:00,0.1,500
"""


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    path = tmp_path / "hours.csv"
    path.write_text(HOURS)
    (tmp_path / "m.csv").write_text("name,price,kw\na,0.4,1\nb,0.4,1\nc,0.4,2\n")
    return path


def test_prices_outside_the_table(hours: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool.npz"
    how = ("free", tmp_path / "m.csv", *DAY, "--unit", "h", "--output", pool)
    refused(run(*how, "--tariffs", hours), "no price from 2026-10-25 12:00:00+01:00 to")
    refused(run(*how, "--outside", "0.5"), "outside=0.5 needs tariffs=")
    done = run(*how, "--tariffs", hours, "--outside", "0.5")
    assert done.exit_code == 0, done.stderr
    tariffs = sk.SlotPool.load(pool).context.tariffs
    assert tariffs is not None
    assert tariffs["hours"].at([11.9, 36.9, 37]).tolist() == [0.3, 0.1, 0.5]


def test_profiles_of_a_file(hours: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool.npz"
    span = ("--start", "2026-10-24", "--end", "2026-10-25 12:00")
    how = ("free", tmp_path / "m.csv", *span, "--zone", "Europe/Berlin", "--unit", "h")
    assert run(*how, "--tariffs", hours, "--output", pool).exit_code == 0
    job = (pool, "--nodes", "2", "--walltime", "3h")
    find = ("find", *job, "--json", "--criterion")

    def start(*options: object) -> str:
        done = run(*find, *options)
        assert done.exit_code == 0, done.stderr
        return str(json.loads(done.stdout)["window"]["start_time"])

    noon, evening = "2026-10-24T12:00:00+02:00", "2026-10-24T18:00:00+02:00"
    assert start("profile(carbon)", "--profile", hours) == noon
    assert start("minimize(profile(carbon, kw))", "--profile", hours) == noon
    assert start("profile(hours)") == evening  # a tariff of the pool
    for name, message in (
        ("profile(carbn)", "has no column 'carbn'; it has price, carbon; did you mean"),
        ("cost", "needs --criterion 'profile(NAME)'"),
    ):
        refused(run(*find, name, "--profile", hours), message)
    refused(run(*find, "profile(carbon)"), "the slots have no tariff 'carbon'")
    done = run(
        *("alternatives", *job, "--criterion", "profile(carbon)"),
        *("--profile", hours, "--most", "2", "--json"),
    )
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["windows"]
    assert found[0]["start_time"] == noon
    hours.write_text(HOURS.replace("10-25 12", "10-25 11"))
    refused(
        run(*find, "profile(carbon)", "--profile", hours),
        "hours.csv: there is no price from 2026-10-25 11:00:00+01:00 to",
    )
