"""Tests of generated prices: hours of the wall clock, shape, reproducibility."""

from __future__ import annotations

import numpy as np
import pytest

import slotkern as sk

YEAR = {"start": "2026-01-01", "end": "2027-01-01", "zone": "Europe/Berlin"}


def test_a_year_of_prices() -> None:
    table = sk.generate_prices(**YEAR)
    assert table["start"].shape == (8760,)
    assert (table["start"][1:] == table["end"][:-1]).all()
    assert len(np.unique(table["start"])) == 8760  # also when clocks are put back
    prices = table["price"]
    assert prices.min() == 0
    assert 0.07 < prices.mean() < 0.09
    days = prices.reshape(-1, 24)
    assert 0.07 < np.ptp(days, axis=1).mean() < 0.09
    assert 0.1 < np.corrcoef(prices, table["carbon"])[0, 1] < 1
    weekday = np.arange(365) % 7  # 2026-01-01 is a Thursday
    weekend = np.isin(weekday, (2, 3))
    assert days[weekend].mean() < days[~weekend].mean()


def test_prices_are_reproducible_and_have_fees() -> None:
    table, again = sk.generate_prices(**YEAR), sk.generate_prices(**YEAR)
    other = sk.generate_prices(**YEAR, seed=1)
    assert all((table[name] == again[name]).all() for name in table)
    assert (table["price"] != other["price"]).mean() > 0.9
    paid = sk.generate_prices(**YEAR, fees=0.15)["price"]
    above = table["price"] > 0
    assert np.allclose(paid[above], table["price"][above] + 0.15, atol=1e-9)
    assert paid[~above].max() <= 0.15


def test_generated_prices_are_a_tariff() -> None:
    clock = sk.Clock("2026-01-01", unit="h", zone="Europe/Berlin")
    table = sk.generate_prices(**YEAR)
    tariff = sk.Tariff.of_prices(table, clock=clock, outside=1)
    assert tariff.at(np.arange(8760.0)).tolist() == table["price"].tolist()
    assert tariff.at([-1, 8760]).tolist() == [1, 1]


def test_wrong_spans_of_prices_are_refused() -> None:
    with pytest.raises(ValueError, match="must lie after start 2026-01-01"):
        sk.generate_prices("2026-01-01", "2026-01-01", zone="UTC")
    with pytest.raises(ValueError, match="at most 100 years"):
        sk.generate_prices("2026-01-01", "2226-01-01", zone="UTC")
    with pytest.raises(ValueError, match="zone 'Moon' is not known"):
        sk.generate_prices("2026-01-01", "2026-01-02", zone="Moon")
