"""Factors that repeat every day, by the wall clock of a time zone.

Between two changes of the zone's offset the wall clock runs evenly, so the changes of
the factor are whole numbers of days apart. At each change of the offset the factor is
that of the new wall time: an hour that occurs twice has its factors twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import number, quote
from slotkern.machine.calendar import Moments
from slotkern.machine.clock import Clock
from slotkern.machine.zones import offsets_of, segments

__all__ = ["daily_changes", "is_daily"]

_DAY = 86_400
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
#: 1970-01-01 was a Thursday.
_FIRST_WEEKDAY = 3
#: The most days of one tariff, about 270 years.
_MOST_DAYS = 100_000


def is_daily(given: Any) -> bool:
    """Return True for a mapping whose keys are times of day."""
    return (
        isinstance(given, Mapping)
        and bool(given)
        and all(isinstance(key, str) and _TIME.fullmatch(key.strip()) for key in given)
    )


def daily_changes(
    factors: Mapping[str, float],
    clock: Any,
    start: Any,
    end: Any,
    days: str | None,
    outside: float | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return breakpoints and factors; see `Tariff.daily`."""
    seconds, values = _times_of_day(factors)
    if not isinstance(clock, Clock):
        raise TypeError(f"clock must be a Clock, got {quote(clock)}")
    if clock._zone is None:
        raise ValueError(
            'a daily tariff needs the zone of its wall clock: Clock(..., zone="UTC")'
        )
    weekdays = _weekdays(days)
    if outside is not None:
        outside = number("outside", outside, least=0)
    elif not weekdays.all():
        raise ValueError(f"days={days!r} needs the factor of the other days, outside=")
    first = number("start", clock.time(start, "start"))
    last = number("end", clock.time(end, "end"))
    if not first < last:
        raise ValueError(f"end {end} does not lie after start {start}")
    low, high = clock.utc([first, last]).astype("M8[s]").astype(np.int64).tolist()
    if high - low > _MOST_DAYS * _DAY:
        raise ValueError(
            f"a daily tariff of {(high - low) // _DAY:,} days is longer than "
            f"{_MOST_DAYS:,} days; choose an earlier end"
        )
    utc, wall = _changes(clock._zone, low, high + 1, np.append(0, seconds))
    day, second = np.divmod(wall, _DAY)
    found = values[np.searchsorted(seconds, second, "right") - 1]
    other = ~weekdays[(day + _FIRST_WEEKDAY) % 7]
    found = np.where(other, 0.0 if outside is None else outside, found)
    at = clock.times(Moments(utc.view("M8[s]"), True), "daily")
    begun = int((at <= first).sum())  # the first change is not after the start
    inside = slice(begun, int((at < last).sum()))
    edges, kept = at[inside], found[begun - 1 : inside.stop]
    if outside is None:
        return edges, kept
    return (
        np.concatenate(([first], edges, [last])),
        np.concatenate(([outside], kept, [outside])),
    )


def _changes(
    zone: Any, low: int, high: int, seconds: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the seconds (UTC and wall) in [low, high) at which a factor may change.

    These are `low`, the changes of the offset, and the given seconds of all days.
    """
    years = np.array([low, high]).astype("M8[s]").astype("M8[Y]").astype(np.int64)
    turns = [segments(zone, year + 1970).at for year in range(years[0], years[1] + 1)]
    inner: NDArray[np.int64] = np.unique(np.concatenate(turns))
    cuts = np.append(low, inner[(inner > low) & (inner < high)])
    offsets = offsets_of(cuts.view("M8[s]"), zone)
    utc, wall = [], []
    for begin, end, offset in zip(
        cuts, np.append(cuts[1:], high), offsets, strict=True
    ):
        days = np.arange((begin + offset) // _DAY, (end + offset) // _DAY + 1)
        local = np.unique(days[:, np.newaxis] * _DAY + seconds)
        local = local[(local > begin + offset) & (local < end + offset)]
        wall.append(np.append(begin + offset, local))
        utc.append(wall[-1] - offset)
    return np.concatenate(utc), np.concatenate(wall)


def _times_of_day(
    factors: Mapping[str, float],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the seconds of the day and the factors, ascending."""
    if not isinstance(factors, Mapping) or not factors:
        raise TypeError(
            "factors must be a mapping of times of day to factors, such as "
            f'{{"06:00": 0.30, "22:00": 0.12}}, got {quote(factors)}'
        )
    found: dict[int, float] = {}
    for text, factor in factors.items():
        parts = _TIME.fullmatch(text.strip()) if isinstance(text, str) else None
        hours, minutes, seconds = map(int, parts.groups("0")) if parts else (24, 0, 0)
        if hours > 23 or minutes > 59 or seconds > 59:
            raise ValueError(
                f"factors: {quote(text)} is no time of day such as '06:00'"
            )
        second = 3600 * hours + 60 * minutes + seconds
        if second in found:
            raise ValueError(f"factors: the time {quote(text)} occurs twice")
        found[second] = number(f"factors[{text!r}]", factor, least=0)
    ordered = sorted(found)
    return np.array(ordered, np.int64), np.array([found[s] for s in ordered])


def _weekdays(days: str | None) -> NDArray[np.bool_]:
    """Return True for each day, from Monday, that a text such as "mon-fri" has."""
    if days is None:
        return np.ones(7, np.bool_)
    found = np.zeros(7, np.bool_)
    for part in str(days).lower().replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            raise ValueError(
                f"days: {quote(days)} is not made of {', '.join(_DAYS)} and spans of "
                "them such as 'mon-fri'"
            )
        low, high = _DAYS.index(first), _DAYS.index(last or first)
        found[np.arange(low, high + 1 + 7 * (high < low)) % 7] = True
    return found
