"""Tests of tariffs: integrals, costs, tables, and days by the wall clock."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import subprocess
import sys
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern.machine.files import TABLE_FORMATS

INF = float("inf")


def plain_integral(tariff: sk.Tariff, start: float, length: float) -> float:
    """Return the integral as defined: whole segments are added exactly."""
    b, f = tariff.breakpoints.tolist(), tariff.factors.tolist()
    end = start + length
    i, j = sum(t <= start for t in b), sum(t < end for t in b)
    if j <= i:
        return f[i] * length
    middle = math.fsum(f[k] * (b[k] - b[k - 1]) for k in range(i + 1, j))
    return (f[i] * (b[i] - start) + middle) + f[j] * (end - b[j - 1])


quarters = st.integers(-40, 200).map(lambda k: k / 4)
dyadic = st.integers(0, 12).map(lambda k: k / 4)
real = st.floats(0, 100)


@st.composite
def tariffs(draw, times=quarters, factors=dyadic):
    at = sorted(draw(st.sets(times, max_size=12)))
    size = len(at) + 1
    return sk.Tariff(at, draw(st.lists(factors, min_size=size, max_size=size)))


@given(tariffs(), quarters, quarters.map(abs))
def test_integral_of_exact_numbers_is_exact(tariff, start, length):
    found = tariff.integral(start, length)
    assert found == plain_integral(tariff, start, length)
    edges = np.unique([start, start + length, *tariff.breakpoints])
    inside = edges[(edges >= start) & (edges <= start + length)]
    assert found == sum(tariff.at(inside[:-1]) * np.diff(inside))


@given(tariffs(st.floats(-1e3, 1e3), real), st.floats(-1e3, 1e3), st.floats(0, 1e3))
@example(sk.Tariff([-900, -2e-40, -1e-40, 0, 3], [1, 7, 2, 3, 4, 5]), -2.4e-40, 1)
@settings(max_examples=300)
def test_integral_of_any_numbers_is_the_sum_of_its_segments(tariff, start, length):
    found, plain = tariff.integral(start, length), plain_integral(tariff, start, length)
    # The sum of whole segments is a difference of prefix sums, which have 106 bits.
    prefix = float(np.abs(np.diff(tariff.breakpoints) * tariff.factors[1:-1]).sum())
    assert math.isclose(found, plain, rel_tol=1e-15, abs_tol=2**-100 * prefix)
    columns = tariff.integral([start, start], [length, 0.5 * length])
    assert columns[0] == found
    assert columns[1] == tariff.integral(start, 0.5 * length)


def test_integral_over_a_year_keeps_all_digits():
    random = np.random.default_rng(1)
    tariff = sk.Tariff(1.7e9 + 3600.0 * np.arange(8760), random.random(8761))
    starts, lengths = 1.7e9 + 3e7 * random.random(50), 3e6 * random.random(50)
    assert tariff.integral(starts, lengths).tolist() == [
        plain_integral(tariff, *pair)
        for pair in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]


def test_integral_within_one_segment_is_one_product():
    tariff = sk.Tariff([10], [0.1, 0.7])
    assert tariff.integral(3, 7) == 0.1 * 7  # ends at the breakpoint
    assert tariff.integral(10, 0.3) == 0.7 * 0.3  # begins there
    assert tariff.integral(9.5, 0) == 0
    assert tariff.integral(5, INF) == INF


def test_cases_of_the_kernel():
    tariff = sk.Tariff([0, 1, 2, 3], [1, 1, 2, 2, 0.5])
    assert tariff.breakpoints.tolist() == [1, 3]  # equal neighbours are one
    assert tariff.factors.tolist() == [1, 2, 0.5]
    assert tariff.at([0.5, 1, 3]).tolist() == [1, 2, 0.5]
    assert tariff.integral(0, 4) == 1 + 2 * 2 + 0.5
    assert tariff.mean(0, 4) == 5.5 / 4
    edges, factors = tariff.segments(0.5, 3)
    assert (edges.tolist(), factors.tolist()) == ([0.5, 1, 3], [1, 2])


@pytest.mark.parametrize(
    ("breakpoints", "factors", "message"),
    [
        ([1, 1], [1, 2, 3], r"breakpoints\[1\] is 1: must be ascending"),
        ([INF], [1, 2], r"breakpoints\[0\] is inf: must be finite"),
        ([1], [1, -1], r"factors\[1\] is -1: must be at least 0; add the fees"),
        ([1], [1, math.nan], r"factors\[1\] is nan: must be finite"),
        ([1], [1], "1 breakpoints have 2 factors, got 1"),
    ],
)
def test_wrong_tariffs_are_refused(breakpoints, factors, message):
    with pytest.raises(ValueError, match=message):
        sk.Tariff(breakpoints, factors)
    with pytest.raises(TypeError, match="breakpoints must be a list of numbers"):
        sk.Tariff(["a"], [1, 2])


@pytest.mark.parametrize(
    ("start", "length", "message"),
    [
        (math.nan, 1, "start is nan: must be a number"),
        ([0, math.nan], 1, r"start\[1\] is nan: must be a number"),
        (0, -1, "length is -1: must be at least 0"),
        (0, math.nan, "length is nan: must be at least 0"),
        (0, [[1, 2], [-3, 4]], r"length\[2\] is -3: must be at least 0"),
    ],
)
def test_wrong_spans_are_refused(start, length, message):
    tariff = sk.Tariff([6, 22], [0.5, 1, 0.5])
    tariffs = sk.Tariffs({"night": tariff})
    for function in (
        tariff.integral,
        tariff.mean,
        lambda t, d: tariffs.cost("night", 1, t, d),
        lambda t, d: tariffs.cost("", 1, t, d),
    ):
        with pytest.raises(ValueError, match=message):
            function(start, length)
    with pytest.raises(ValueError, match=r"time\[1\] is nan: must be a number"):
        tariff.at([0, math.nan])


def test_tariffs_are_values():
    tariff = sk.Tariff([6, 22], [0.5, 1, 0.5])
    assert tariff == sk.Tariff([6, 7, 22], [0.5, 1, 1, 0.5])
    assert hash(tariff) == hash(pickle.loads(pickle.dumps(tariff)))
    assert tariff != sk.Tariff([6], [0.5, 1])
    assert tariff != "night"
    assert repr(tariff) == "Tariff(2 changes: 0.5 to 1)"
    assert repr(sk.Tariff([], [2])) == "Tariff(2 at all times)"
    with pytest.raises(ValueError, match="read-only"):
        tariff.factors[0] = 1
    assert tariff.to_pandas()["start"].tolist() == [-INF, 6, 22]


# --- tables


def test_prices_of_a_table():
    table = {"start": [2, 0], "end": [3, 1], "price": [0.5, 2]}
    tariff = sk.Tariff.of_prices(table, outside=1)
    assert tariff.breakpoints.tolist() == [0, 1, 2, 3]
    assert tariff.factors.tolist() == [1, 2, 1, 0.5, 1]
    open_ended = {"start": [-INF, 4], "factor": [1, 3]}
    assert sk.Tariff.of_prices(open_ended) == sk.Tariff([4], [1, 3])
    assert sk.Tariff.of_prices({"start": [4], "price": 3}, outside=1) == sk.Tariff(
        [4], [1, 3]
    )
    always = {"start": [-INF], "end": [INF], "price": [7]}
    assert sk.Tariff.of_prices(always) == sk.Tariff([], [7])


def test_prices_of_a_table_with_dates():
    clock = sk.Clock("2026-10-25", unit="h", zone="Europe/Berlin")
    hours = pd.date_range("2026-10-25", periods=4, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"start": hours, "price": [4, 3, 2, 1]})
    tariff = sk.Tariff.of_prices(frame, clock=clock, outside=9)
    assert tariff.breakpoints.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="prices: start holds dates; give the clock"):
        sk.Tariff.of_prices(frame, outside=9)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"start": [0], "price": [1]}, "there is no price before 0"),
        ({"start": [-INF], "end": [2], "price": [1]}, "no price from 2 on"),
        (
            {"start": [-INF, 3], "end": [2, INF], "price": [1, 1]},
            "no price from 2 to 3",
        ),
        (
            {"start": [0, 1], "end": [2, 3], "price": [1, 1]},
            "row 1: overlaps the span of row 0",
        ),
        ({"start": [0, 0], "price": [1, 1]}, "row 1: starts when row 0 starts"),
        ({"start": [0], "price": [-0.02]}, "row 0: price -0.02 is below 0; add the"),
        ({"start": [5], "end": [4], "price": [1]}, "row 0: the span ends before it"),
        ({"start": [0], "cost": [1]}, "no column 'price'; it has start, cost"),
        ({"start": [0], "price": [1], "factor": [1]}, "both a column"),
        ({"start": np.empty(0), "price": np.empty(0)}, "there is no price"),
    ],
)
def test_wrong_tables_of_prices_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        sk.Tariff.of_prices(table)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (
            {"tariff": ["a", "b"], "start": [-INF, 0], "end": INF, "price": 1},
            ValueError,
            "tariffs, tariff 'b': there is no price before 0",
        ),
        (
            {"tariff": ["a", None], "start": -INF, "price": 1},
            ValueError,
            "tariffs, row 1: tariff is empty, which means no tariff",
        ),
        (
            {"tariff": [7], "start": -INF, "price": 1},
            TypeError,
            "tariffs, row 0: the tariff 7 is no text",
        ),
        ({"start": [0], "price": [1]}, ValueError, "tariffs has no column 'tariff'"),
    ],
)
def test_wrong_tables_of_tariffs_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        sk.Tariffs.from_table(table)


def test_tariffs_of_a_table_keep_their_order():
    table = {"tariff": ["z", "a", "z"], "start": [5, -INF, -INF], "price": [3, 2, 1]}
    found = sk.Tariffs.from_table(table)
    assert [*found] == ["z", "a"]
    assert found == {"z": sk.Tariff([5], [1, 3]), "a": sk.Tariff([], [2])}
    one_price = {"tariff": ["a", "b"], "start": -INF, "price": 2}
    both = sk.Tariffs.from_table(one_price)
    assert both == dict.fromkeys("ab", sk.Tariff([], [2]))


names = st.text(min_size=1, max_size=3).filter(lambda name: name[-1] != "\0")


@given(st.dictionaries(names, tariffs(), max_size=4))
def test_tables_and_dicts_give_the_same_tariffs(given_tariffs):
    found = sk.Tariffs(given_tariffs)
    assert sk.Tariffs.from_table(found.to_table()) == found
    assert sk.Tariffs.from_dict(found.to_dict()) == found
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("suffix", TABLE_FORMATS)
def test_tariffs_of_a_file(tmp_path, suffix):
    path = tmp_path / f"tariffs{suffix}"
    tariffs = sk.Tariffs({"7": sk.Tariff([6], [1, 2]), "b": sk.Tariff([], [0.25])})
    tariffs.write(path)
    assert sk.Tariffs.read(path) == tariffs
    frame = pd.DataFrame(tariffs.to_table())
    assert sk.Tariffs.from_table(frame) == tariffs
    with pytest.raises(ValueError, match=r"the suffix '.npz' is not one of"):
        tariffs.write(tmp_path / "tariffs.npz")


def test_tariffs_of_a_file_with_dates(tmp_path):
    clock = sk.Clock("2026-10-24", unit="h", zone="Europe/Berlin")
    path = tmp_path / "tariffs.csv"
    path.write_text(
        "tariff,start,factor\nnight,-inf,0.5\nnight,2026-10-24 06:00,1\n"
        "night,2026-10-25 22:00,0.5\nday,,2\n"
    )
    tariffs = sk.Tariffs.read(path, clock=clock)
    assert tariffs["night"] == sk.Tariff([6, 47], [0.5, 1, 0.5])
    assert tariffs["day"] == sk.Tariff([], [2])
    path.write_text("tariff,start,factor\na,1,2\na,5,-1\n")
    with pytest.raises(ValueError, match=r"tariffs.csv, line 3: factor -1 is below 0"):
        sk.Tariffs.read(path)


# --- costs


def test_costs_by_name():
    tariffs = sk.Tariffs({"a": sk.Tariff([1], [1, 2]), "b": sk.Tariff([], [3])})
    names = np.array(["b", "", "a", "a"])
    found = tariffs.cost(names, [1, 2, 3, 4], 0.5, [1, 1, 1, 0.5])
    assert found.tolist() == [3, 2, 3 * 1.5, 4 * 0.5]
    assert tariffs.cost("a", 0.1, 0, 2) == 0.1 * 3
    assert tariffs.codes(names).tolist() == [1, -1, 0, 0]
    assert tariffs.cost([], 1, 0, 1).tolist() == []
    with pytest.raises(ValueError, match=r"tariff: there is no tariff 'c'; there are"):
        tariffs.cost("c", 1, 0, 1)
    with pytest.raises(ValueError, match=r"tariff, row 2: .*'B'.*did you mean 'b'\?"):
        tariffs.codes(["a", "b", "B"])
    with pytest.raises(TypeError, match="tariff must be names of tariffs, got int64"):
        tariffs.codes([1])


def test_names_of_tariffs():
    one = sk.Tariff([], [1])
    with pytest.raises(ValueError, match="an empty name means no tariff"):
        sk.Tariffs({"": one})
    with pytest.raises(ValueError, match="ends in a NUL"):
        sk.Tariffs({"a\0": one})
    with pytest.raises(TypeError, match="the name of a tariff must be text, got 1"):
        sk.Tariffs({1: one})
    with pytest.raises(TypeError, match="'a' must be a Tariff, got 1"):
        sk.Tariffs({"a": 1})
    with pytest.raises(TypeError, match="must be a mapping of names to Tariff"):
        sk.Tariffs(one)
    assert repr(sk.Tariffs({"a": one, "b": one})) == "Tariffs(a, b)"
    assert repr(sk.Tariffs({})) == "Tariffs()"


# --- days


ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # changes its clocks by half an hour
    "Pacific/Apia",  # skipped a day
    "Asia/Kolkata",
    "UTC",
)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@given(
    zone=st.sampled_from(ZONES),
    day=st.integers(0, 5000),
    length=st.integers(1, 200),
    times=st.dictionaries(
        st.integers(0, 1439), st.integers(1, 5), min_size=1, max_size=4
    ),
    days=st.none() | st.sampled_from(["mon-fri", "sat,sun", "fri-mon,wed", "thu"]),
)
@example("Europe/Berlin", 2854, 72, {360: 3, 1320: 1}, None)  # 25 October 2026
@example("Pacific/Apia", -2560, 72, {360: 3, 1320: 1}, "mon-fri")  # 30 December 2011
@example("Australia/Lord_Howe", 2646, 60, {105: 3, 130: 1}, None)  # 5 April 2026
@settings(max_examples=30, deadline=None)
def test_daily_tariffs_follow_the_wall_clock(zone, day, length, times, days):
    """Compare with a walk by minutes, each by its own wall time."""
    info = ZoneInfo(zone)
    start = dt.datetime(2019, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=day, minutes=7)
    clock = sk.Clock(start, unit="min", zone=zone)
    table = {f"{m // 60:02}:{m % 60:02}": f for m, f in times.items()}
    outside = None if days is None else 7
    end = start + dt.timedelta(hours=length)
    tariff = sk.Tariff.daily(
        table, clock=clock, start=start, end=end, days=days, outside=outside
    )
    chosen = {
        None: range(7),
        "mon-fri": range(5),
        "sat,sun": (5, 6),
        "fri-mon,wed": (4, 5, 6, 0, 2),
        "thu": (3,),
    }[days]
    found = tariff.at(np.arange(60 * length)).tolist()
    for minute, factor in enumerate(found):
        wall = (start + dt.timedelta(minutes=minute)).astimezone(info)
        earlier = [m for m in times if m <= 60 * wall.hour + wall.minute]
        expected = times[max(earlier or times)]
        assert factor == (expected if wall.weekday() in chosen else 7), wall
    assert tariff.at([-0.5, 60 * length]).tolist() == (
        [found[0], found[-1]] if days is None else [7, 7]
    )


def test_a_night_when_clocks_are_put_back_has_nine_hours():
    clock = sk.Clock("2026-10-24", unit="h", zone="Europe/Berlin")
    span = {"start": "2026-10-24", "end": "2026-10-26"}
    night = sk.Tariff.daily({"06:00": 3, "22:00": 1}, clock=clock, **span)
    assert night.breakpoints.tolist() == [6, 22, 31, 47]
    assert night.integral(22, 9) == 9
    begun = sk.Tariff.daily({"6:00": 3, "22:00": 1}, clock=clock, outside=9, **span)
    assert begun.breakpoints.tolist() == [0, 6, 22, 31, 47, 49]
    assert begun.factors.tolist() == [9, 1, 3, 1, 3, 1, 9]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factors": {"24:00": 1}}, "'24:00' is no time of day"),
        ({"factors": {"noon": 1}}, "'noon' is no time of day"),
        ({"factors": {"6:00": 1, "06:00": 2}}, "the time '06:00' occurs twice"),
        ({"factors": {"06:00": -1}}, "must not be negative"),
        ({"days": "mon-fry", "outside": 1}, "days: 'mon-fry' is not made of mon"),
        ({"days": "mon-fri"}, "needs the factor of the other days"),
        ({"clock": sk.Clock("2026-01-01T00:00Z")}, "needs the zone of its wall clock"),
        ({"end": 0}, "does not lie after"),
        ({"end": 1e10}, "longer than 100,000 days"),
    ],
)
def test_wrong_days_are_refused(options, message):
    given_ = {
        "factors": {"06:00": 1},
        "clock": sk.Clock("2026-01-01", zone="UTC"),
        "start": 0,
        "end": 100_000,
    }
    with pytest.raises(ValueError, match=message):
        sk.Tariff.daily(**(given_ | options))


@pytest.mark.parametrize(
    "call",
    [
        'sk.Tariff.of_prices({"start": [0], "price": [1]}, outside=1)',
        'sk.Tariff.daily({"06:00": 1}, clock=clock(), start=0, end=1)',
    ],
)
def test_the_first_call_of_a_process_may_make_a_tariff(call):
    """The packages of tariffs and machines import each other."""
    code = f"""
import slotkern as sk
def clock():
    return sk.Clock("2026-01-01", zone="UTC")
assert sk.Tariff([], [1]) == {call}
"""
    subprocess.run([sys.executable, "-c", code], check=True)
