"""Tests of questions that people ask about prices that change while a job runs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import slotkern as sk

WEEK = {"start": "2026-11-30", "end": "2026-12-07", "zone": "Europe/Berlin"}
DAYS = {"start": "2026-05-04 08:00", "end": "2026-05-05 20:00", "zone": "UTC"}
NIGHT = {
    "start": ["2026-05-04 08:00", "2026-05-04 20:00", "2026-05-05 06:00"],
    "end": ["2026-05-04 20:00", "2026-05-05 06:00", "2026-05-05 20:00"],
    "price": [1.0, 0.5, 1.0],
}


def week_of_prices() -> pd.DataFrame:
    """Return hourly prices with an evening peak and cheap weekends."""
    rng = np.random.default_rng(4)
    hours = pd.date_range(
        "2026-11-30", "2026-12-07", freq="h", tz="Europe/Berlin", inclusive="left"
    )
    base = 0.9 + 0.35 * np.sin((hours.hour - 9) / 24 * 2 * np.pi)
    base += 0.15 * ((hours.hour >= 17) & (hours.hour <= 20))
    base -= 0.2 * (hours.day_of_week >= 5)
    price = np.round(np.asarray(base) + rng.normal(0, 0.08, len(hours)), 4)
    price = np.clip(price, 0.05, None)
    return pd.DataFrame(
        {"start": hours, "end": hours + pd.Timedelta("1h"), "price": price}
    )


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_cheapest_six_hours_for_four_machines(shape: str) -> None:
    """Hourly prices; every start at a whole hour is tried by hand."""
    prices = week_of_prices()
    machine = sk.Machine({"name": [f"vm-{z}-{i}" for z in "abc" for i in range(4)]})
    free = sk.free_slots(machine, prices=prices, unit="h", **WEEK)
    job = sk.Request(4, walltime="6h")
    sums = np.concatenate(([0.0], prices["price"].cumsum()))
    best = int(np.argmin(sums[6:] - sums[:-6]))
    cheapest = sk.find_window(free, job, "cost", shape=shape)
    assert cheapest is not None
    assert cheapest.start == best == 144
    assert cheapest.cost == pytest.approx(4 * (sums[best + 6] - sums[best]), rel=1e-12)
    assert round(cheapest.cost, 2) == 9.12
    earliest = sk.find_window(free, job, "start", shape=shape)
    assert earliest is not None
    assert (earliest.start, round(earliest.cost, 2)) == (0, 14.03)
    assert sk.find_window(sk.SlotPool(free), job, "cost", shape=shape) == cheapest
    # Free time that is cut at each change holds no part of six hours.
    cut = sk.free_slots(machine, prices=prices, unit="h", cut=True, **WEEK)
    assert sk.find_window(cut, job, "cost", shape=shape) is None
    hour = sk.Request(4, walltime="1h")
    whole, split = (sk.find_window(each, hour, "cost") for each in (free, cut))
    assert whole is not None
    assert split is not None
    assert (whole.start, whole.cost) == (split.start, split.cost)
    assert whole.nodes == split.nodes


def test_a_table_of_prices_does_not_delay_the_earliest_start() -> None:
    machine = sk.Machine.homogeneous(8, prefix="node")
    free = sk.free_slots(machine, prices=NIGHT, unit="h", **DAYS)
    plain = sk.free_slots(machine, unit="h", **DAYS)
    for job in (
        sk.Request(5, walltime="6h", earliest="2026-05-04 16:00"),
        sk.Request(5, walltime="13h"),
    ):
        found, expected = (sk.find_window(each, job, "start") for each in (free, plain))
        assert found is not None
        assert expected is not None
        assert (found.start, found.nodes) == (expected.start, expected.nodes)
    long = sk.Request(5, walltime="13h")
    cheapest = sk.find_window(free, long, "cost")
    assert cheapest is not None
    assert cheapest.start_time.hour == 17  # it ends when the night ends, at 06:00
    assert cheapest.cost == 5 * (3 * 1.0 + 10 * 0.5)
    budget = sk.find_window(free, long.replace(budget=45.0), "start")
    assert budget is not None
    assert budget.start == 7  # five hours at 1 and eight at 0.5
    assert budget.cost == 5 * (5 * 1.0 + 8 * 0.5)


def test_own_criterion_and_tariff_agree() -> None:
    """The bill of a job, as a criterion with the cumulated prices, is its cost."""
    prices = week_of_prices()
    machine = sk.Machine.homogeneous(12)
    free = sk.free_slots(machine, prices=prices, unit="h", **WEEK)
    tariff = free.tariffs["price"]  # type: ignore[index]
    for start in (0.0, 12.75, 144.0, 161.5):
        hours = np.arange(math.floor(start), math.ceil(start + 6))
        ends, begins = np.minimum(hours + 1, start + 6), np.maximum(hours, start)
        bill = float(prices["price"].to_numpy()[hours] @ (ends - begins))
        assert tariff.integral(start, 6) == pytest.approx(bill, rel=1e-12)


def test_a_job_ends_within_the_forecast() -> None:
    """The last half hour is the greenest: a job of 3 h starts at most 3 h before."""
    half_hours = np.arange(96) / 2
    carbon = {"start": half_hours, "factor": np.linspace(300, 20, 96)}
    tariff = sk.Tariff.of_prices(carbon, outside=300)
    machine = sk.Machine.homogeneous(1, price=1)
    free = sk.free_slots(machine, start=0.8, end=48, tariffs={"carbon": tariff})
    window = sk.find_window(free, sk.Request(1, walltime=3), "cost")
    assert window is not None
    assert (window.start, window.finish) == (45, 48)


def test_a_job_that_starts_now_is_charged_from_now() -> None:
    """At 12:48 a job of 194 minutes spans parts of two half hours."""
    half_hours = 30.0 * np.arange(48)
    factors = 100 + np.arange(48.0) % 7
    free = sk.free_slots(
        sk.Machine.homogeneous(1, price=1),
        start=768,  # minutes: 12:48
        end=962,
        tariffs={"carbon": sk.Tariff(half_hours[1:], factors)},
    )
    window = sk.find_window(free, sk.Request(1, walltime=194), "start")
    assert window is not None
    minutes = np.arange(768, 962)
    assert window.cost == pytest.approx(factors[minutes // 30].sum(), rel=1e-14)


def test_quarter_hours_across_midnight_and_the_end_of_summer_time() -> None:
    """The cheapest two hours are contiguous and may span two days."""
    span = {"start": "2026-10-24 18:00", "end": "2026-10-25 12:00"}
    clock = sk.Clock("2026-10-24 18:00", unit="h", zone="Europe/Berlin")
    tariff = sk.Tariff.daily(
        {"00:00": 2, "01:00": 9, "03:00": 5, "23:00": 1}, clock=clock, **span
    )
    free = sk.free_slots(
        sk.Machine.homogeneous(2, price=1),
        clock=clock,
        tariffs={"spot": tariff},
        **span,
    )
    window = sk.find_window(free, sk.Request(2, walltime="2h"), "cost")
    assert window is not None
    assert str(window.start_time) == "2026-10-24 23:00:00+02:00"
    assert window.cost == 2 * (1 + 2)
    assert tariff.integral(7, 3) == 27  # 01:00 to 03:00 has three hours that night
