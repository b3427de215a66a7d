"""Time zones by name, and the spans of time in which their offsets from UTC hold."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import quote

__all__ = [
    "EPOCH",
    "Segments",
    "by_year",
    "offsets_of",
    "segments",
    "year_of",
    "zone_of",
]

EPOCH = dt.datetime(1970, 1, 1)
_SECOND = dt.timedelta(seconds=1)
_DAY = 86_400
#: The first and last second (UTC) that `datetime` can represent in every zone.
_FIRST, _LAST = -62_135_424_000, 253_402_128_000
#: After the last second of any date.
_ENDLESS = 2**62


def zone_of(zone: Any) -> dt.tzinfo:
    """Convert a name such as "Europe/Berlin" or "+02:00" to a time zone.

    Raises
    ------
    TypeError, ValueError
        For an unknown name, and for a fixed offset with a fraction of a second.
    """
    if isinstance(zone, dt.tzinfo):
        # A pytz zone as a tzinfo has its first offset, local mean time: use its name.
        named = getattr(zone, "zone", None)
        if isinstance(named, str):
            return zone_of(named)
        if _is_fixed(zone):
            segments(zone, 1970)  # raises for a fraction of a second
        return zone
    if not isinstance(zone, str):
        raise TypeError(f"zone must be the name of a time zone, got {quote(zone)}")
    if re.fullmatch(r"[+-][0-9]{2}:?[0-9]{2}", zone):
        fixed = dt.datetime.strptime(zone, "%z").tzinfo
        assert fixed is not None
        return fixed
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"zone {quote(zone)} is not known; names are as in 'Europe/Berlin' or "
            "'+02:00' (if the system has no list of zones, pip install tzdata)"
        ) from None


class Segments(NamedTuple):
    """The offsets of a zone around a year, in order of time, all in seconds.

    Offset i holds from ``at[i]`` (UTC), and from ``begins[i]`` to ``ends[i]`` in local
    time. A local time in no segment does not exist; one in two occurs twice.
    """

    at: NDArray[np.int64]
    offsets: NDArray[np.int64]
    begins: list[int]
    ends: list[int]
    zone: dt.tzinfo  # kept, so that no other zone gets its address


#: By address of the zone, for zones of dateutil have no hash, and year.
_known: dict[tuple[int, int], Segments] = {}


def segments(zone: dt.tzinfo, year: int) -> Segments:
    """Return the offsets of a zone in a year and two days around it, from a cache.

    Years before 1 and after 9998 have the offsets of the first and last dates.

    Raises
    ------
    ValueError
        If an offset is not a whole number of seconds.
    """
    found = _known.get((id(zone), year))
    if found is None:
        if not 0 <= year <= 9999:
            return segments(zone, 0 if year < 0 else 9999)
        if len(_known) >= 1024:
            _known.clear()
        found = _known[id(zone), year] = _sample(zone, year)
    return found


def _sample(zone: dt.tzinfo, year: int) -> Segments:
    """Sample offsets every six hours; locate changes between samples by bisection."""

    def offset(second: int) -> int:
        utc = (EPOCH + dt.timedelta(seconds=second)).replace(tzinfo=dt.UTC)
        found = utc.astimezone(zone).utcoffset()
        assert found is not None
        if found % _SECOND:
            raise ValueError(
                f"zone {zone} has an offset of {found} from UTC; offsets must be whole "
                "seconds, so convert such dates to UTC first"
            )
        return found // _SECOND

    if 0 < year < 9999:
        dates = (np.datetime64(f"{y:04d}-01-01", "s") for y in (year, year + 1))
        first, last = (int(date.astype(np.int64)) for date in dates)
    elif year < 1:
        first, last = _FIRST, _FIRST + 366 * _DAY
    else:
        first, last = _LAST - 366 * _DAY, _LAST
    low = min(max(first - 2 * _DAY, _FIRST), _LAST)
    high = max(min(last + 2 * _DAY, _LAST), _FIRST)
    if _is_fixed(zone):
        high = low
    at, offsets = [-_ENDLESS], [offset(low)]
    for end in range(low + _DAY // 4, high + 1, _DAY // 4):
        if (now := offset(end)) != offsets[-1]:
            before, after = end - _DAY // 4, end
            while after - before > 1:
                middle = (before + after) // 2
                if offset(middle) == now:
                    after = middle
                else:
                    before = middle
            at.append(after)
            offsets.append(now)
    begins = [each + offset for each, offset in zip(at, offsets, strict=True)]
    until = [*at[1:], _ENDLESS]
    ends = [each + offset for each, offset in zip(until, offsets, strict=True)]
    return Segments(
        np.array(at, np.int64), np.array(offsets, np.int64), begins, ends, zone
    )


def _is_fixed(zone: dt.tzinfo) -> bool:
    return isinstance(zone, dt.timezone) or zone == ZoneInfo("UTC")


def year_of(second: Any) -> Any:
    """Return the year of seconds since 1970, or the one whose `segments` include them.

    Years have their mean length here, which errs by at most one day.
    """
    return 1970 + second // _DAY * 400 // 146_097


def by_year(seconds: NDArray[np.int64]) -> Iterable[tuple[int, NDArray[np.intp]]]:
    """Yield each year of an array of seconds, and the rows in it."""
    years = year_of(seconds).clip(0, 9999)
    for year in np.unique(years):
        yield int(year), np.flatnonzero(years == year)


def offsets_of(utc: NDArray[np.datetime64], zone: dt.tzinfo) -> NDArray[np.int64]:
    """Return the offsets of a zone at instants, in seconds."""
    # Rounded down: offsets change at whole seconds.
    seconds = utc.astype("M8[s]").astype(np.int64)
    if _is_fixed(zone):
        return np.full(len(utc), segments(zone, 1970).offsets[0])
    found = np.zeros(len(utc), np.int64)
    for year, rows in by_year(seconds):
        known = segments(zone, year)
        held = np.searchsorted(known.at, seconds[rows], "right") - 1
        found[rows] = known.offsets[held]
    return found
