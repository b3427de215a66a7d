"""Hourly prices and carbon intensities with the shape of a day-ahead market.

The price of an hour is the sum of a season, two peaks of the day, a cheap night, the
dip of solar power at noon, a discount on weekends, wind as an autoregressive process,
and noise. Days and weeks follow the wall clock of the zone. The amplitudes are chosen,
not fitted: the prices of a year have a mean of about 0.08 and a mean spread of about
0.08 within a day.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import hint_keywords, integer, number
from slotkern.machine.clock import Clock

__all__ = ["generate_prices"]

#: The most hours of one table: 100 years.
MAX_HOURS = 876_600
_HOUR = 3600.0


@hint_keywords
def generate_prices(
    start: Any,
    end: Any,
    *,
    zone: str,
    seed: int = 0,
    fees: float = 0.0,
) -> dict[str, NDArray[Any]]:
    """Generate hourly prices and carbon intensities for examples and experiments.

    Parameters
    ----------
    start, end : date or str
        The span [start, end); the last hour may end after `end`.
    zone : str
        The zone whose wall clock days and weeks follow, such as ``"Europe/Berlin"``.
    seed : int
        The seed of wind and noise.
    fees : float
        An amount that is added to each price. Prices below 0 become 0: tariffs are at
        least 0, so add the fees that make what you pay positive.

    Returns
    -------
    dict of ndarray
        A table for `Tariff.of_prices` and `free_slots`: ``start`` and ``end`` (text
        with offsets), ``price`` (per kilowatt-hour, rounded to 0.00001) and ``carbon``
        (gram of CO2 per kilowatt-hour, rounded to 1).

    Raises
    ------
    ValueError, TypeError
        For dates and a zone that are not valid, and more than 100 years.

    Notes
    -----
    Synthetic: season, day, week, sun and wind have the shape of a market; no hour is
    that of a real one. The same arguments give the same table on every platform up to
    the last bit of sine and exponential functions, before the rounding. O(hours).

    Examples
    --------
    >>> import slotkern as sk
    >>> table = sk.generate_prices("2026-05-04", "2026-05-05", zone="Europe/Berlin")
    >>> len(table["price"]), str(table["start"][0]), table["price"][:3].tolist()
    (24, '2026-05-04T00:00:00+02:00', [0.07419, 0.06305, 0.0555])
    """
    seed, fees = integer("seed", seed, least=0), number("fees", fees)
    clock = Clock._from(start, "start", "s", zone)
    seconds = clock.time(end, "end")
    if not 0 < seconds <= MAX_HOURS * _HOUR:
        raise ValueError(f"end {end} must lie after start {start}, at most 100 years")
    hours = np.arange(int(np.ceil(seconds / _HOUR)) + 1) * _HOUR
    texts = clock.text(hours)
    wall = np.array([text[:19] for text in texts[:-1].tolist()], "M8[s]")
    random = np.random.Generator(np.random.PCG64(seed))
    price, carbon = _shapes(wall, random)
    return {
        "start": texts[:-1],
        "end": texts[1:],
        "price": np.round(np.maximum(price + fees, 0.0), 5),
        "carbon": np.round(carbon),
    }


def _shapes(
    wall: NDArray[np.datetime64], random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the market price and the carbon intensity of hours by their wall time."""
    day = wall.astype("M8[D]")
    hour = (wall - day).astype("m8[s]").astype(np.float64) / _HOUR
    of_year = (day - wall.astype("M8[Y]")).astype("m8[D]").astype(np.float64)
    weekend = (day.astype(np.int64) + 3) % 7 >= 5  # 1970-01-01 was a Thursday

    def peak(at: float, width: float) -> NDArray[np.float64]:
        """Return a bump around an hour of the day, also across midnight."""
        away = np.abs(hour - at)
        bump: NDArray[np.float64] = np.exp(
            -((np.minimum(away, 24 - away) / width) ** 2)
        )
        return bump

    year = 2 * np.pi * of_year / 365
    light = 0.055 * np.maximum(0, np.sin(year - 2 * np.pi * 80 / 365)) + 0.015
    sun = light * peak(13, 2.8)
    demand = 0.022 * peak(8, 2.2) + 0.040 * peak(19, 2.5) - 0.025 * peak(3, 3.0)
    week = np.where(weekend, -0.018, 0.004)
    shocks, wind = random.normal(0, 0.0035, len(wall)), np.empty(len(wall))
    now = 0.0
    for k, shock in enumerate(shocks.tolist()):  # less wind: a higher price
        now = 0.985 * now + shock
        wind[k] = now
    noise = random.normal(0, 0.004, len(wall))
    price = 0.085 + 0.02 * np.cos(year) + demand - sun + week + wind + noise
    carbon = 420 + 600 * demand - 4500 * sun + 3500 * wind
    return price, np.maximum(carbon, 25.0)
