"""Dates in text and in types of Python, numpy and pandas, as exact integers of UTC.

A date with an offset is one instant. A date without one is a local time and needs a
time zone, in which it may denote no instant (clocks are put forward) or two (clocks are
put back); both are refused unless a fold selects one of the two.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from slotkern._moments import Moment, parse_quickly
from slotkern.foundation.checks import quote, row_label

__all__ = [
    "Moment",
    "Moments",
    "instant_of",
    "instants",
    "moment_of",
    "moments_of",
    "zone_of",
]

EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400
#: The first and last second (UTC) that `datetime` can represent in every zone.
_FIRST, _LAST = -62_135_424_000, 253_402_128_000
_FRACTION = re.compile(r"(?<=[.,])([0-9]{6})([0-9]+)")
_ENDLESS = 2**62
#: Reasons for which a local time is refused.
_NO_ZONE = (
    "has no time zone; set one (zone: Europe/Berlin), or end the times in Z or +01:00"
)
_SKIPPED = "does not exist in {}: the clocks are put forward"
_TWICE = (
    "occurs twice in {}, when the clocks are put back; write it with its offset, as in "
    "+01:00"
)
_DAY_ALONE = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}")
_TOO_FINE = "is finer than a nanosecond"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
#: Further units of numpy: seconds per unit, and units per nanosecond.
_SECONDS = {"W": 7 * _DAY, "D": _DAY, "h": 3600, "m": 60}
_FINE = {"ps": 10**3, "fs": 10**6, "as": 10**9}


class Moments(NamedTuple):
    """A column of times: datetime64 of UTC if `aware`, otherwise of local time.

    The unit is s, ms, us or ns.
    """

    values: NDArray[np.datetime64]
    aware: bool
    fold: NDArray[np.bool_] | None = None
    #: True if all are days without a time, which denote their first instant.
    days: bool = False


def zone_of(zone: Any) -> dt.tzinfo:
    """Convert a name such as "Europe/Berlin" or "+02:00" to a time zone."""
    if isinstance(zone, dt.tzinfo):
        # A pytz zone as a tzinfo has its first offset, local mean time: use its name.
        named = getattr(zone, "zone", None)
        return zone_of(named) if isinstance(named, str) else zone
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
            f"zone {zone!r} is not known; names are as in 'Europe/Berlin' or '+02:00' "
            "(if the system has no list of zones, pip install tzdata)"
        ) from None


# --- one time


def moment_of(value: Any, name: str = "time") -> Moment:
    """Parse a date, a text or a numpy datetime64 to a `Moment`.

    Raises
    ------
    TypeError, ValueError
        For any other value; the message contains the name and the value.
    """
    quick = parse_quickly(value, False)
    return read_moment(value, name) if quick is None else quick  # type: ignore[return-value]


def read_moment(value: Any, name: str = "time") -> Moment:
    """Parse a date of any form, without the fast path of `moment_of`."""
    if isinstance(value, str):
        return _of_text(value, name)
    if isinstance(value, np.datetime64):
        return Moment(_of_numpy(value, name), False, None, value)
    if isinstance(value, dt.datetime):
        return _of_datetime(value, name)
    if isinstance(value, dt.date):
        days = (value - EPOCH.date()).days
        return Moment(days * _DAY * 10**9, False, None, value)
    raise TypeError(
        f"{name} must be a date, a text such as '2026-10-25 18:00', or a number; got "
        f"{quote(value)}"
    )


def _of_text(text: str, name: str) -> Moment:
    digits = _FRACTION.search(text)
    try:
        value = dt.datetime.fromisoformat(_FRACTION.sub(r"\1", text).strip())
    except ValueError:
        raise ValueError(
            f"{name}: {quote(text)} is no date such as '2026-10-25', "
            "'2026-10-25 18:00' or '2026-10-25T18:00:00+01:00'"
        ) from None
    found = _of_datetime(value, name)
    fold = found.fold if found.aware else None  # text without an offset has no fold
    rest = digits[2] if digits else ""
    if rest[3:].strip("0"):
        raise ValueError(f"{name}: {quote(text)} {_TOO_FINE}")
    return Moment(found.ns + int(rest[:3].ljust(3, "0") or 0), found.aware, fold, text)


def _of_datetime(value: dt.datetime, name: str) -> Moment:
    if value != value:
        raise ValueError(f"{name} is missing (NaT)")
    more = int(getattr(value, "nanosecond", 0))  # a pandas Timestamp has them
    if value.tzinfo is None or value.utcoffset() is None:
        wall = value.replace(tzinfo=None)
        return Moment(_ns(wall) + more, False, bool(value.fold), value)
    utc = value.astimezone(dt.UTC)
    if utc.astimezone(value.tzinfo).replace(tzinfo=None) != value.replace(tzinfo=None):
        raise ValueError(f"{name}: {value} does not exist: the clocks are put forward")
    return Moment(_ns(utc.replace(tzinfo=None)) + more, True, None, value)


def _ns(naive: dt.datetime) -> int:
    fields = naive.timetuple()[:6]  # plain datetime, also from a pandas Timestamp
    since = dt.datetime(*fields, naive.microsecond) - EPOCH
    return since // _MICROSECOND * 1000


def _of_numpy(value: np.datetime64, name: str) -> int:
    if np.isnat(value):
        raise ValueError(f"{name} is missing (NaT)")
    values, fault = _in_base_unit(np.array([value]))
    if fault is not None:
        raise ValueError(f"{name}: {_format_datetime64(value)} {fault[1]}")
    return int(values.view(np.int64)[0]) * _NANOSECONDS[_unit_of(values)]


def instant_of(moment: Moment, zone: dt.tzinfo | None, name: str) -> int:
    """Convert a moment to nanoseconds since 1970 (UTC); see `instants`."""
    if moment.aware:
        return moment.ns
    if zone is None:
        raise ValueError(f"{name}: {moment.text} {_NO_ZONE}")
    try:
        wall = EPOCH + dt.timedelta(microseconds=moment.ns // 1000)
        first, second = (
            wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)
        )
    except OverflowError:  # beyond datetime: use the offset at its last valid date
        edge = dt.datetime.min if moment.ns < 0 else dt.datetime.max
        wall = edge + dt.timedelta(days=2 if moment.ns < 0 else -2)
        first = second = wall.replace(tzinfo=zone).utcoffset()
    assert first is not None
    assert second is not None
    if first != second and _is_day(moment.text):  # the first instant of the day
        return moment.ns - first // _MICROSECOND * 1000 - _late(moment.ns, zone)
    if first < second:
        raise ValueError(f"{name}: {moment.text} {_SKIPPED.format(zone)}")
    if first > second and moment.fold is None:
        raise ValueError(f"{name}: {moment.text} {_TWICE.format(zone)}")
    offset = second if moment.fold else first
    return moment.ns - offset // _MICROSECOND * 1000


def _is_day(given: Any) -> bool:
    """Return whether the given value is a day without a time."""
    if isinstance(given, str):
        return bool(_DAY_ALONE.fullmatch(given.strip()))
    if isinstance(given, np.datetime64):
        return np.datetime_data(given.dtype)[0] in ("D", "W", "M", "Y")
    return isinstance(given, dt.date) and not isinstance(given, dt.datetime)


def _late(ns: int, zone: dt.tzinfo) -> int:
    """Return the nanoseconds from the start of the skipped hour to a time within it."""
    wall = np.array([ns // 10**9])
    year = int(wall.astype("M8[s]").astype("M8[Y]").astype(np.int64)[0]) + 1970
    at, offsets = segments(zone, min(max(year, 0), 9999))
    begins, ends = at[1:] + offsets[:-1], at[1:] + offsets[1:]
    inside = (begins <= wall) & (wall < ends)
    return int((wall - begins)[inside].sum()) * 10**9


# --- many times


def moments_of(values: Any, name: str) -> Moments:
    """Parse a column of dates; missing values become NaT.

    Raises
    ------
    TypeError, ValueError
        For an invalid value, and if some times have a zone and others none; the message
        contains the column, the row and the value.
    """
    if isinstance(values, Moments):
        return values
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} has {column.ndim} dimensions instead of one")
    if column.dtype.kind == "M":
        values, fault = _in_base_unit(column)
        if fault is not None:
            row, reason = fault
            at = f"{name}, {row_label(name, row)}"
            raise ValueError(f"{at}: {_format_datetime64(column[row])} {reason}")
        unit = np.datetime_data(column.dtype)[0]
        return Moments(values, False, days=unit in ("D", "W", "M", "Y"))
    if column.dtype.kind == "U" or column.dtype == object:
        found = _plain_text(column)
        return _one_by_one(column, name) if found is None else found
    raise TypeError(f"{name} must be a column of dates, got dtype {column.dtype}")


def _unit_of(values: NDArray[np.datetime64]) -> str:
    return np.datetime_data(values.dtype)[0]


def _format_datetime64(value: np.datetime64) -> str:
    try:
        return str(value)
    except OverflowError:  # numpy cannot format such years
        unit, step = np.datetime_data(value.dtype)
        return f"datetime64({int(value.astype(np.int64)) * step}, {unit!r})"


def _in_base_unit(
    column: NDArray[Any],
) -> tuple[NDArray[np.datetime64], tuple[int, str] | None]:
    """Convert times to s, ms, us or ns; also return the first row that fails, and why.

    The arithmetic is done here in integers, because numpy wraps or raises on overflow,
    depending on its version.
    """
    unit, step = np.datetime_data(column.dtype)
    if unit == "generic":  # only NaT has no unit
        return column.astype("M8[us]"), None
    base = unit if unit in _NANOSECONDS else "ns" if unit in _FINE else "s"
    # Months and years become days by numpy, which overflows beyond 2**50.
    far = np.zeros(len(column), np.bool_)
    if unit in ("Y", "M"):
        far = np.abs(column.astype(np.int64).astype(np.float64) * step) > 2.0**50
        far &= ~np.isnat(column)
        column = column.copy()
        column[far] = 0
        unit, step, column = "D", 1, column.astype("M8[D]")
    counts = column.astype(np.int64)
    there = ~np.isnat(column)
    exact = Fraction(step * _SECONDS.get(unit, 1), _FINE.get(unit, 1))
    fine = there & (counts % exact.denominator != 0)
    counts //= exact.denominator
    most = (2**63 - 1) // exact.numerator
    far |= there & ((counts > most) | (counts < -most))
    counts = np.where(there & ~far, counts, 0) * exact.numerator
    fault = None
    if (far | fine).any():
        row = int((far | fine).argmax())
        reason = f"is out of the range of {base}" if far[row] else _TOO_FINE
        fault = row, reason
    values = counts.view(f"M8[{base}]")
    values[~there] = "NaT"
    return values, fault


def _plain_text(column: NDArray[Any]) -> Moments | None:
    """Parse text that all has or all lacks a zone; None if it needs the slow path."""
    texts = column.tolist()
    if column.dtype == object and not set(map(type, texts)) <= {str}:
        return None
    if any(map(_FRACTION.search, texts)):
        return None
    there = np.fromiter((not _missing(text) for text in texts), np.bool_, len(texts))
    try:
        found = list(map(dt.datetime.fromisoformat, column[there].tolist()))
    except ValueError:
        return None
    zones = {value.tzinfo for value in found}
    values = np.full(len(column), "NaT", "M8[us]")
    if zones <= {None}:
        values[there] = np.array(found, "M8[us]")
        return Moments(values, False, days=all(map(_is_day, column[there].tolist())))
    if None in zones:
        return None
    epoch = EPOCH.replace(tzinfo=dt.UTC)
    since = np.array([value - epoch for value in found], "m8[us]")
    values[there] = np.datetime64(0, "us") + since
    return Moments(values, True)


def _one_by_one(column: NDArray[Any], name: str) -> Moments:
    """Parse a column of mixed forms; errors contain the first row that differs."""
    nat = np.iinfo(np.int64).min
    found: list[int] = []
    folds: list[bool] = []
    first: tuple[int, Moment] | None = None
    for row, value in enumerate(column):
        if _missing(value):
            found.append(nat * 1000)
            folds.append(False)
            continue
        quick: Any = parse_quickly(value, False)  # fast path: no text for errors
        at = "" if quick else f"{name}, {row_label(name, row)}"
        moment: Moment = quick or read_moment(value, at)
        if first is None:
            first = row, moment
        elif moment.aware != first[1].aware:
            with_zone, without = (
                ((row, moment), first) if moment.aware else (first, (row, moment))
            )
            at, other = (row_label(name, each[0]) for each in (without, with_zone))
            raise ValueError(
                f"{name}, {at}: {without[1].text} has no time zone, but "
                f"{with_zone[1].text} in {other} has one"
            )
        found.append(moment.ns)
        folds.append(bool(moment.fold))
    fine = any(ns % 1000 for ns in found)
    scaled = found if fine else [ns // 1000 for ns in found]
    try:
        ticks = np.array(
            [nat if ns == nat * 1000 else ns for ns in scaled] if fine else scaled,
            np.int64,
        )
    except OverflowError:
        row = next(i for i, ns in enumerate(scaled) if abs(ns) >= 2**63)
        at = f"{name}, {row_label(name, row)}"
        raise ValueError(
            f"{at}: {column[row]} is out of the range of nanoseconds"
        ) from None
    values = ticks.view("M8[ns]" if fine else "M8[us]")
    aware = first is not None and first[1].aware
    # Only datetimes have a fold; it is used if all values are datetimes.
    has_fold = [] if aware else [isinstance(v, dt.datetime) for v in column]
    fold = np.array(folds) if has_fold and all(has_fold) else None
    days = not aware and all(_is_day(v) for v in column if not _missing(v))
    return Moments(values, aware, fold, days)


def _missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or bool(
        isinstance(value, (float, dt.datetime, np.datetime64)) and value != value
    )


# --- zones


class _Same(NamedTuple):
    """A zone as a cache key, compared by identity: dateutil zones have no hash."""

    zone: dt.tzinfo

    def __hash__(self) -> int:
        return id(self.zone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.zone is other.zone


def segments(zone: dt.tzinfo, year: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the offset changes of a zone around a year.

    The arrays contain the second (UTC) from which each offset holds, and the offsets in
    seconds.
    """
    return _segments(_Same(zone), year)


@lru_cache(maxsize=1024)
def _segments(same: _Same, year: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return `segments` for a year and two days around it.

    Offsets are sampled every six hours; a change between two samples is located by
    bisection.
    """

    def offset(second: int) -> int:
        utc = (EPOCH + dt.timedelta(seconds=second)).replace(tzinfo=dt.UTC)
        found = utc.astimezone(same.zone).utcoffset()
        assert found is not None
        return found // dt.timedelta(seconds=1)

    first, last = (
        (
            int(np.datetime64(f"{y:04d}-01-01", "s").astype(np.int64))
            for y in (year, year + 1)
        )
        if 0 < year < 9999
        else (_FIRST if year < 1 else _LAST - 366 * _DAY, _LAST)
    )
    low = min(max(first - 2 * _DAY, _FIRST), _LAST)
    high = max(min(last + 2 * _DAY, _LAST), _FIRST)
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
    return np.array(at, np.int64), np.array(offsets, np.int64)


def _by_year(
    values: NDArray[np.datetime64],
) -> Iterable[tuple[int, NDArray[np.intp]]]:
    years = values.astype("M8[Y]").astype(np.int64) + 1970
    for year in np.unique(years):
        yield int(min(max(year, 0), 9999)), np.flatnonzero(years == year)


def offsets_of(utc: NDArray[np.datetime64], zone: dt.tzinfo) -> NDArray[np.int64]:
    """Return the offsets of a zone at instants, in seconds."""
    found = np.zeros(len(utc), np.int64)
    if zone in (dt.UTC, ZoneInfo("UTC")):
        return found
    seconds = utc.astype("M8[s]").astype(
        np.int64
    )  # floor: offsets change at whole seconds
    for year, rows in _by_year(utc):
        at, offsets = segments(zone, year)
        found[rows] = offsets[np.searchsorted(at, seconds[rows], "right") - 1]
    return found


def instants(
    moments: Moments, zone: dt.tzinfo | None, name: str
) -> NDArray[np.datetime64]:
    """Convert times to UTC; local times are interpreted in the given zone.

    Raises
    ------
    ValueError
        For local times if no zone is given, local times that do not exist, and those
        that occur twice unless a fold selects one; the message contains the row and the
        value.
    """
    values = moments.values
    there = np.flatnonzero(~np.isnat(values))
    if moments.aware or not there.size:
        return values

    def fault(row: int, reason: str) -> ValueError:
        return ValueError(f"{name}, {row_label(name, row)}: {values[row]} {reason}")

    if zone is None:
        raise fault(int(there[0]), _NO_ZONE)
    if zone in (dt.UTC, ZoneInfo("UTC")):
        return values
    unit = _unit_of(values)
    # Offsets change at whole seconds, so these decide.
    seconds = values.astype("M8[s]").astype(np.int64)
    shift = np.zeros(len(values), np.int64)
    for year, some in _by_year(values[there]):
        mine = there[some]
        at, offsets = segments(zone, year)
        begins = at + offsets
        ends = np.append(at[1:], _ENDLESS) + offsets
        first = np.searchsorted(ends, seconds[mine], "right")
        last = np.searchsorted(begins, seconds[mine], "right") - 1
        if (gap := first > last).any():
            if not moments.days:
                raise fault(int(mine[gap.argmax()]), _SKIPPED.format(zone))
            late = seconds[mine] - (at + np.append(0, offsets[:-1]))[first]
            values = values.copy()
            values[mine[gap]] -= late[gap].astype("m8[s]").astype(f"m8[{unit}]")
            first = np.where(gap, last, first)
        twice = first < last
        if twice.any() and moments.fold is None and not moments.days:
            raise fault(int(mine[twice.argmax()]), _TWICE.format(zone))
        if moments.fold is not None:
            first = np.where(moments.fold[mine], last, first)
        shift[mine] = offsets[first]
    utc: NDArray[np.datetime64] = values - shift.astype("m8[s]").astype(f"m8[{unit}]")
    wrapped = (utc > values) != (shift < 0)  # int64 overflow
    wrapped[np.isnat(values)] = False
    if wrapped.any():
        raise fault(int(wrapped.argmax()), f"is out of the range of {unit}")
    return utc
