"""Tests of requests with dates and walltimes, pools with clocks, windows with dates."""

from __future__ import annotations

import datetime as dt
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk
from slotkern.machine.jobs import requests_of

ZONE = "Europe/Berlin"


@pytest.fixture
def free():
    machine = sk.Machine.homogeneous(4, price=0.5, memory=[1, 2, 3, 4])
    return sk.free_slots(machine, start="2026-10-24", end="2026-10-27", zone=ZONE)


JOB = sk.Request(
    2, walltime="4:00:00", earliest="2026-10-25 00:00", budget=2e4, name="weather"
)
PLAIN = sk.Request(2, 14400, earliest=86400, budget=2e4)


def test_a_dated_request_finds_what_its_numbers_find(free):
    pool = sk.SlotPool(free)
    window = pool.find(JOB)
    assert window == sk.SlotPool(free.slots).find(PLAIN)
    assert (window.start, window.runtime) == (86400, 14400)
    assert window.start_time.isoformat() == "2026-10-25T00:00:00+02:00"
    assert window.finish_time.isoformat() == "2026-10-25T03:00:00+01:00"
    assert window.duration == dt.timedelta(hours=4)
    assert window.names == ("n0", "n1")
    assert window.name == "weather"
    assert "start=2026-10-25 00:00:00+02:00" in repr(window)
    for same in (pickle.loads(pickle.dumps(window)), pool.find(JOB)):
        assert (same.name, same.start_time) == ("weather", window.start_time)
        assert same == window


#: All functions of a request and slots.
CALLS = {
    "find_window": lambda slots, job: sk.find_window(slots, job),
    "cost": lambda slots, job: sk.find_window(slots, job, "cost", shape="ragged"),
    "value": lambda slots, job: sk.find_window(slots, job, "memory"),
    "lite": lambda slots, job: sk.find_window(slots, job, "cost", method="lite"),
    "published": lambda slots, job: sk.find_window(slots, job, method="published"),
    "where": lambda slots, job: sk.find_window(slots, job.replace(where="memory > 1")),
    "find_windows": lambda slots, job: sk.find_windows(slots, [job] * 2, threads=2)[1],
    "windows by value": lambda slots, job: sk.find_windows(slots, [job], "memory")[0],
    "first": lambda slots, job: sk.find_alternatives(slots, job)[1],
    "alternatives": lambda slots, job: sk.find_alternatives(slots, job, "cost")[1],
    "batch": lambda slots, job: sk.schedule_batch(slots, [job]).windows[0],
    "backfilling": lambda slots, job: sk.schedule_batch(
        slots, [job], sk.Backfilling()
    ).windows[0],
    "schedule": lambda slots, job: sk.SlotPool(slots).schedule([job])[0],
    "cycles": lambda slots, job: sk.run_cycles(slots, [job], [0], length=9e4).schedules[
        0
    ][0],
}


@pytest.mark.parametrize("call", CALLS)
def test_all_functions_accept_requests_with_dates(free, call):
    found = CALLS[call](free, JOB)
    assert found is not None
    assert found == CALLS[call](free, PLAIN)
    if call != "cycles":  # its slots are one array per cycle, without a clock
        assert found.start_time == dt.datetime.fromisoformat(
            free.clock.text([found.start])[0]
        )
    with pytest.raises(ValueError, match="walltime is '4:00:00', but these"):
        CALLS[call](free.slots, JOB)


def test_values_at_steps_and_explanations_take_dates(free):
    dated, plain = (sk.step_values(free, job, "memory") for job in (JOB, PLAIN))
    assert np.array_equal(dated, plain)
    late = JOB.replace(deadline="2026-10-25 02:30+01:00")
    why = sk.explain(free, late)
    assert not why.fits
    assert (
        why.changes()
        == sk.explain(free.slots, PLAIN.replace(deadline=86400 + 3.5 * 3600)).changes()
    )
    assert "can hold a part of walltime 4:00:00" in str(why)
    assert "it fits with a deadline of 2026-10-25 03:00:00+01:00" in str(why)
    with pytest.raises(ValueError, match="have no clock"):
        sk.explain(free.slots, JOB)
    with pytest.raises(ValueError, match="have no clock"):
        sk.step_values(free.slots, JOB, "memory")


def test_other_limits_accept_dates_and_durations(free):
    request = sk.Request(
        2,
        walltime="1:15:00",
        setup="10min",
        step=dt.timedelta(minutes=30),
        earliest="2026-10-25",
        latest="2026-10-25 02:30+01:00",
        max_runtime="PT2H",
    )
    plain = sk.Request(
        2,
        4500,
        setup=600,
        step=1800,
        earliest=86400,
        latest=86400 + 3.5 * 3600,
        max_runtime=7200,
    )
    window = sk.find_window(free, request)
    assert window == sk.find_window(free, plain)
    assert window.duration == dt.timedelta(minutes=90)
    assert request.latest == "2026-10-25 02:30+01:00"
    assert (request.setup, request.max_runtime) == ("10min", "PT2H")
    assert request.replace() == request
    with pytest.raises(ValueError, match="only the clock of slots converts"):
        request.length(1)
    why = sk.explain(free, request.replace(max_runtime="1h"))
    assert "with a runtime of 1:30:00" in str(why)
    for changes, words in (
        ({"latest": "2026-10-24 23:00"}, "earliest 2026-10-25 lies after latest 2026"),
        ({"max_runtime": "0h"}, "max_runtime must be positive, got 0.0"),
        ({"latest": "2026-03-29 02:30"}, "latest: .* does not exist in Europe/Berlin"),
    ):
        with pytest.raises(ValueError, match=words):
            sk.find_window(free, request.replace(**changes))
    with pytest.raises(ValueError, match="step: '30' could be hours, minutes"):
        request.replace(step="30")


def test_one_request_for_pools_of_different_clocks(free):
    hours = sk.free_slots(
        free.machine, start="2026-10-20", end="2026-10-27", zone=ZONE, unit="h"
    )
    for slots, start, unit in (
        (free, 86400, 3600),
        (hours, 120, 1),
        (free, 86400, 3600),
    ):
        window = sk.find_window(slots, JOB.replace(budget=np.inf))
        assert (window.start, window.runtime) == (start, 4 * unit)
        window = sk.SlotPool(slots).find(JOB.replace(budget=np.inf))
        assert window.start_time.isoformat() == "2026-10-25T00:00:00+02:00"


@given(
    walltime=st.integers(1, 10**6),
    reference=st.sampled_from([1.0, 2.0, 0.5, 3.7]),
)
def test_a_walltime_is_a_volume(walltime, reference):
    number = sk.Request(1, walltime=walltime, reference=reference)
    assert number == sk.Request(1, walltime * reference)
    request = sk.Request(
        1, walltime=dt.timedelta(seconds=walltime), reference=reference
    )
    machine = sk.Machine.homogeneous(1, performance=reference)
    free = sk.free_slots(machine, start="2026-10-24", end="2026-12-24", zone="UTC")
    assert sk.find_window(free, request) == sk.find_window(free, number)
    assert sk.find_window(free, number).runtime == pytest.approx(walltime, rel=1e-15)


def test_a_request_preserves_the_given_dates():
    assert JOB.walltime == "4:00:00"
    assert JOB.volume is None
    assert JOB.earliest == "2026-10-25 00:00"
    assert repr(JOB) == (
        "Request(nodes=2, budget=20000.0, earliest='2026-10-25 00:00', "
        "walltime='4:00:00', name='weather')"
    )
    assert pickle.loads(pickle.dumps(JOB)) == JOB == JOB.replace()
    assert hash(JOB) == hash(JOB.replace())
    assert JOB.replace(walltime="5:00:00") != JOB
    assert JOB.replace(volume=7).volume == 7
    assert JOB.replace(volume=7).walltime is None
    assert PLAIN.replace(walltime="1h").volume is None
    dated = PLAIN.replace(deadline="2026-10-25")
    assert (dated.volume, dated.deadline) == (14400, "2026-10-25")
    assert PLAIN.walltime is None


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, TypeError, "needs either a volume or a walltime"),
        ({"volume": 1, "walltime": 2}, TypeError, "either a volume or a walltime"),
        ({"volume": 1, "reference": 2}, TypeError, "reference applies to a walltime"),
        ({"walltime": "4:00"}, ValueError, "walltime: '4:00' could be hours"),
        ({"walltime": "0h"}, ValueError, "walltime must be positive, got '0h'"),
        ({"walltime": 0}, ValueError, "walltime must be positive and finite, got 0"),
        ({"walltime": dt.timedelta(-1)}, ValueError, "walltime must not be negative"),
        ({"walltime": 1, "reference": 0}, ValueError, "reference must be positive"),
        ({"volume": 1, "earliest": "now"}, ValueError, "earliest: 'now' is no date"),
        ({"volume": 1, "deadline": "5"}, ValueError, "deadline: '5' is no date"),
        ({"volume": 1, "deadline": None}, TypeError, "deadline must be a number"),
        ({"volume": 1, "deadline": b"x"}, TypeError, "deadline must be a date"),
        ({"volume": 1, "name": ""}, TypeError, "name must be text, got ''"),
        ({"volume": 1, "name": 7}, TypeError, "name must be text, got 7"),
    ],
)
def test_bad_requests(given, error, words):
    with pytest.raises(error, match=words):
        sk.Request(1, **given)


def test_values_that_only_the_clock_can_refuse(free):
    for changes, words in (
        ({"earliest": "2026-10-25 02:30"}, "earliest: 2026-10-25 02:30 occurs twice"),
        ({"deadline": "2026-03-29 02:30"}, "deadline: .* does not exist"),
        ({"walltime": "1ns"}, "walltime: 1ns is no whole number of microseconds"),
        ({"deadline": "2026-10-24"}, "earliest 2026-10-25 00:00 lies after deadline"),
    ):
        with pytest.raises(ValueError, match=words):
            sk.find_window(free, JOB.replace(**changes))
    naive = sk.SlotPool(free.slots, clock=sk.Clock("2026-10-24T00:00Z"))
    with pytest.raises(ValueError, match="earliest: 2026-10-25 00:00 has no time zone"):
        naive.find(JOB)


def test_pools_keep_clock_and_machine(free, tmp_path):
    pool = sk.SlotPool(free.slots, clock=free.clock, machine=free.machine)
    assert (pool.clock, pool.machine) == (free.clock, free.machine)
    assert sk.SlotPool(free.slots).clock is None
    pool.book(pool.find(JOB))
    pool.save(tmp_path / "pool.npz")
    for same in (
        sk.SlotPool.load(tmp_path / "pool.npz"),
        pickle.loads(pickle.dumps(pool)),
        pool.copy(),
    ):
        assert (same.clock, same.machine) == (free.clock, free.machine)
        assert same.find(JOB).start_time == pool.find(JOB).start_time
    pool.advance("2026-10-25 12:00")
    assert pool.now == 37 * 3600
    pool.remove_node("n0")
    assert pool.nodes.tolist() == [1, 2, 3]
    for terms in ({"clock": "UTC"}, {"machine": 3}):
        with pytest.raises(TypeError, match="must be a"):
            sk.SlotPool(free.slots, **terms)
    with pytest.raises(TypeError, match="now must be a number"):
        sk.SlotPool(free.slots).advance("2026-10-25")


def test_a_window_with_dates_is_restored_from_json(free):
    for window in (
        sk.find_window(free, JOB),
        sk.find_window(free, PLAIN, "memory"),
        sk.find_window(free, PLAIN.replace(volume=0.1), "cost", shape="ragged"),
    ):
        record = json.loads(json.dumps(window.to_dict()))
        same = sk.Window.from_dict(record)
        assert same == window
        assert same.name == window.name
        assert record["start_time"] == window.start_time.isoformat()
        assert record["slots"][0]["name"] == window.names[0]
    for key in ("start", "bound", "slots"):
        less = {name: value for name, value in record.items() if name != key}
        with pytest.raises(ValueError, match=f"not a window: it has no '{key}'"):
            sk.Window.from_dict(less)
    with pytest.raises(TypeError, match="cost must be a number"):
        sk.Window.from_dict(record | {"cost": "x"})
    with pytest.raises(ValueError, match="there must be slots"):
        sk.Window.from_dict(record | {"slots": []})
    for name, value, kind, message in (
        ("node", 2**31, ValueError, "node must be at most 2147483647, got 2147483648"),
        ("node", -1, ValueError, "node must be at least 0, got -1"),
        ("row", 2**63, ValueError, "row must be at most"),
        ("row", 1.0, TypeError, "row must be an integer, got 1.0"),
    ):
        wrong = record["slots"][0] | {name: value}
        with pytest.raises(kind, match=message):
            sk.Window.from_dict(record | {"slots": [wrong]})


@pytest.mark.parametrize("criterion", ["start", "processor_time"])
def test_tables_of_windows_keep_names_and_clock(free, criterion):
    asked = [JOB.replace(name="a"), sk.Request(5, 10, name="b"), PLAIN]
    found = sk.find_windows(free, asked, criterion)
    assert found.names == ["a", "b", None]
    for same in (found, pickle.loads(pickle.dumps(found))):
        assert same.names == found.names
        assert [w and w.name for w in same] == ["a", None, None]
        assert same[0].start_time == found[0].start_time is not None
        assert same[1:].names == ["b", None]
    assert sk.find_windows(free, [PLAIN], criterion).names is None


def test_alternatives_have_the_name_of_their_request(free):
    for criterion in ("first", "cost"):
        found = sk.find_alternatives(free, JOB.replace(name="a"), criterion, limit=2)
        assert [window.name for window in found] == ["a"] * len(found) != []
        assert pickle.loads(pickle.dumps(found)).names == found.names


def test_schedules_of_named_requests(free):
    jobs = {"a": JOB, "b": sk.Request(5, 10), "c": PLAIN}
    pool = sk.SlotPool(free)
    done = pool.schedule(jobs)
    assert done.names == ["a", "b", "c"]
    table = done.listing()
    assert table["name"].tolist() == ["a", "b", "c"]
    assert table["reason"].tolist() == ["booked", "nodes", "booked"]
    assert table["nodes"].tolist() == ["n0,n1", "", "n2,n3"]
    assert table["start_time"].tolist() == [
        "2026-10-25T00:00:00+02:00",
        "",
        *table["start_time"][:1],
    ]
    assert np.isnan(table["cost"][1])
    assert [w and w.name for w in done] == ["a", None, "c"]
    assert pickle.loads(pickle.dumps(done)).names == done.names
    rows = {
        "name": ["a", "c"],
        "nodes": [2, 2],
        "walltime": ["4:00:00", "4h"],
        "earliest": ["2026-10-25 00:00", None],
        "budget": [2e4, np.nan],
    }
    asked = requests_of(rows)
    assert asked == [JOB.replace(name="a"), sk.Request(2, walltime="4h", name="c")]
    assert sk.SlotPool(free).schedule(rows).names == ["a", "c"]
    with pytest.raises(ValueError, match="jobs, row 1: walltime: '4:00' could be"):
        sk.SlotPool(free).schedule(rows | {"walltime": ["1h", "4:00"]})
    with pytest.raises(ValueError, match="jobs has no column 'nodes'"):
        sk.SlotPool(free).schedule({"name": ["a"]})
