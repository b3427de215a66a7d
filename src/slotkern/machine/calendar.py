"""Dates and durations of Python, numpy, pandas and text, as exact nanoseconds.

A date with an offset is one instant. A date without one is a local time and needs a
time zone, in which it may denote no instant (clocks are put forward) or two (clocks are
put back); both are refused unless a fold selects one of the two. The offsets of a zone
are sampled once for each year in use (`segments`), for single dates and for columns.

The forms of Slurm's ``--time`` are durations except the ambiguous ones: a bare number
and ``4:00`` are refused, because they mean minutes in Slurm and hours or seconds
elsewhere.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_right
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import quote, row_label

from .zones import EPOCH, by_year, segments, year_of

__all__ = [
    "NO_LIMIT",
    "Duration",
    "Moment",
    "Moments",
    "duration_of",
    "instant_of",
    "instants",
    "moment_of",
    "moments_of",
]

_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400
_FRACTION = re.compile(r"(?<=[.,])([0-9]{6})([0-9]+)")
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
#: Nanoseconds per unit of numpy and of text, which has also d and min.
_LENGTHS = _NANOSECONDS | {unit: each * 10**9 for unit, each in _SECONDS.items()}
_LENGTHS |= {"d": _LENGTHS["D"], "min": _LENGTHS["m"]}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_CLOCK = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]+)?)")
#: The output of Python and pandas for timedeltas: 1 day, 6:00:00 and 0 days 04:00:00.
_PRINTED = re.compile(r"([0-9]+) days?(?:,? +([0-9]+:[0-9]{1,2}:[0-9.]+))?")
#: Slurm's words for the absence of a limit.
NO_LIMIT = ("INFINITE", "UNLIMITED")
_DAYS = re.compile(r"([0-9]+)-([0-9]{1,2})(?::([0-9]{1,2}))?")
#: The units of text that are words; each may end in s.
_WORDS = {"week": "W", "day": "d", "hour": "h", "minute": "min", "second": "s"}
_UNITS = re.compile(
    rf"({_NUMBER}) *((?:{'|'.join(_WORDS)})s?|d|h|min|ms|us|ns|m|s)(?![a-z]) *"
)
_ISO = re.compile(
    rf"P(?:({_NUMBER})D)?(?:T(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?"
)


class Moment(NamedTuple):
    """A point in time: nanoseconds since 1970 in UTC if `aware`, else in local time."""

    ns: int
    aware: bool
    #: Selects one of two equal local times, as in `datetime`; None: not specified.
    fold: bool | None
    given: Any

    def __str__(self) -> str:
        return str(self.given)


class Duration(NamedTuple):
    """A length of time in nanoseconds."""

    ns: int
    given: Any

    def __str__(self) -> str:
        return str(self.given)


class Moments(NamedTuple):
    """A column of times: datetime64 of UTC if `aware`, otherwise of local time.

    The unit is s, ms, us or ns.
    """

    values: NDArray[np.datetime64]
    aware: bool
    fold: NDArray[np.bool_] | None = None
    #: True if all are days without a time, which denote their first instant.
    days: bool = False


# --- one time


def moment_of(value: Any, name: str = "time") -> Moment:
    """Parse a date, a text or a numpy datetime64 to a `Moment`.

    Raises
    ------
    TypeError, ValueError
        For any other value; the message contains the name and the value.
    """
    if isinstance(value, str):
        return _of_text(value, name)
    if isinstance(value, dt.datetime):
        ns, aware = _of_datetime(value, name)
        return Moment(ns, aware, None if aware else bool(value.fold), value)
    if isinstance(value, np.datetime64):
        return Moment(_of_numpy(value, name), False, None, value)
    if isinstance(value, dt.date):
        days = (value - EPOCH.date()).days
        return Moment(days * _DAY * 10**9, False, None, value)
    raise TypeError(
        f"{name} must be a date, a text such as '2026-10-25 18:00', or a number; got "
        f"{quote(value)}"
    )


def _of_text(text: str, name: str) -> Moment:
    # `datetime` ignores digits after the sixth, so these are read here.
    digits = _FRACTION.search(text) if "." in text or "," in text else None
    plain = _FRACTION.sub(r"\1", text) if digits else text
    try:
        when = dt.datetime.fromisoformat(plain.strip())
    except ValueError:
        raise ValueError(
            f"{name}: {quote(text)} is no date such as '2026-10-25', "
            "'2026-10-25 18:00' or '2026-10-25T18:00:00+01:00'"
        ) from None
    ns, aware = _of_datetime(when, name)
    if digits:
        if digits[2][3:].strip("0"):
            raise ValueError(f"{name}: {quote(text)} {_TOO_FINE}")
        ns += int(digits[2][:3].ljust(3, "0"))
    return Moment(ns, aware, None, text)


def _of_datetime(value: dt.datetime, name: str) -> tuple[int, bool]:
    """Return nanoseconds since 1970, and whether they are of UTC."""
    if value != value:
        raise ValueError(f"{name} is missing (NaT)")
    zone, offset = value.tzinfo, value.utcoffset()
    wall, more = value, 0
    if type(value) is not dt.datetime:  # a pandas Timestamp also has nanoseconds
        fields = value.timetuple()[:6]
        wall = dt.datetime(*fields, value.microsecond)
        more = int(getattr(value, "nanosecond", 0))
    elif zone is not None:
        wall = value.replace(tzinfo=None)
    since = wall - EPOCH
    if offset is None:
        return since // _MICROSECOND * 1000 + more, False
    since -= offset
    if zone is not None and type(zone) is not dt.timezone:
        try:
            back = zone.fromutc((wall - offset).replace(tzinfo=zone))
        except OverflowError:  # UTC has another year than 1 to 9999: no clocks change
            back = wall
        if back.replace(tzinfo=None) != wall:
            raise ValueError(
                f"{name}: {value} does not exist: the clocks are put forward"
            )
    return since // _MICROSECOND * 1000 + more, True


def _of_numpy(value: np.datetime64, name: str) -> int:
    ns = _in_nanoseconds(value)
    if ns is not None and abs(ns) < 2**63:  # NaT is -2**63
        return ns
    if np.isnat(value):
        raise ValueError(f"{name} is missing (NaT)")
    values, fault = _in_base_unit(np.array([value]))
    if fault is not None:
        raise ValueError(f"{name}: {_format_datetime64(value)} {fault[1]}")
    return int(values.view(np.int64)[0]) * _NANOSECONDS[_unit_of(values)]


def _in_nanoseconds(value: np.datetime64 | np.timedelta64) -> int | None:
    """Return the nanoseconds of a value in weeks to nanoseconds, else None."""
    unit, step = np.datetime_data(value.dtype)
    per = _LENGTHS.get(unit)
    return None if per is None else int(value.view(np.int64)) * step * per


def _is_day(given: Any) -> bool:
    """Return whether the given value is a day without a time."""
    if isinstance(given, str):
        return bool(_DAY_ALONE.fullmatch(given.strip()))
    if isinstance(given, np.datetime64):
        return np.datetime_data(given.dtype)[0] in ("D", "W", "M", "Y")
    return isinstance(given, dt.date) and not isinstance(given, dt.datetime)


# --- one length of time


def duration_of(value: Any, name: str = "duration") -> Duration:
    """Parse a timedelta or a text to a `Duration`.

    Parameters
    ----------
    value : timedelta, numpy timedelta64, pandas Timedelta or str
        Text: ``4:00:00`` and ``1-12:00:00`` (hours, minutes, seconds; days before a
        hyphen; also ``1-12`` and ``1-12:30``), ``2h30m``, ``1.5 h``, ``90min``, the
        words ``2 hours 30 minutes`` (weeks to seconds), ``PT4H``, and the output of
        Python and pandas: ``1 day, 6:00:00``, ``0 days 04:00:00``.
    name : str
        The name of the value in errors.

    Raises
    ------
    TypeError, ValueError
        For any other text or type, an ambiguous text (``4:00``, ``90``), and a negative
        duration; the message contains the name and the value.

    Examples
    --------
    >>> duration_of("1-12:00:00").ns // 10**9
    129600
    """
    if isinstance(value, str):
        ns = _length_of_text(value, name)
    elif isinstance(value, np.timedelta64):
        ns = _length_of_numpy(value, name)
    elif isinstance(value, (dt.timedelta, dt.datetime)) and value != value:
        # The NaT of pandas is a timedelta and a datetime.
        raise ValueError(f"{name} is missing (NaT)")
    elif isinstance(value, dt.timedelta):
        ns = value // _MICROSECOND * 1000
        # A pandas Timedelta also has nanoseconds.
        ns += int(getattr(value, "nanoseconds", 0)) % 1000
    else:
        raise TypeError(
            f"{name} must be a timedelta, a text such as '4:00:00' or '2h30m', or a "
            f"number; got {quote(value)}"
        )
    if ns < 0:
        raise ValueError(f"{name} must not be negative, got {quote(value)}")
    return Duration(ns, value)


def _length_of_numpy(value: np.timedelta64, name: str) -> int:
    if np.isnat(value):
        raise ValueError(f"{name} is missing (NaT)")
    ns = _in_nanoseconds(value)
    if ns is None:
        raise ValueError(f"{name}: {value!r} has no unit from weeks to nanoseconds")
    return ns


def _length_of_text(text: str, name: str) -> int:
    word = text.strip()
    if match := _PRINTED.fullmatch(word):
        word = f"{match[1]}-{match[2]}" if match[2] else f"{match[1]}d"
    if word.upper() in NO_LIMIT:
        raise ValueError(
            f"{name}: {quote(text)} is no length of time; give the longest time that "
            "the job may take, for a window has an end"
        )
    parts: list[tuple[str | None, str]] = []
    if match := _CLOCK.fullmatch(word):
        days, hours, minutes, seconds = match.groups()
        if int(minutes) > 59 or float(seconds) >= 60 or (days and int(hours) > 23):
            raise ValueError(
                f"{name}: {quote(text)} is no time of hours:minutes:seconds"
            )
        parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    elif match := _DAYS.fullmatch(word):
        parts = [(match[1], "d"), (match[2], "h"), (match[3], "min")]
        if int(match[2]) > 23 or int(match[3] or 0) > 59:
            raise ValueError(f"{name}: {quote(text)} is no time of days-hours:minutes")
    elif (match := _ISO.fullmatch(word)) and any(match.groups()):
        parts = [*zip(match.groups(), ("d", "h", "min", "s"), strict=True)]
    elif word and not _UNITS.sub("", word):
        found = _UNITS.findall(word)
        parts = [(number, _WORDS.get(unit.rstrip("s"), unit)) for number, unit in found]
        units = [unit.replace("min", "m") for _, unit in parts]
        if len(set(units)) < len(units):
            raise ValueError(f"{name}: {quote(text)} has a unit twice")
    elif re.fullmatch(r"[0-9.]+(:[0-9.]+)?", word):
        raise ValueError(
            f"{name}: {quote(text)} could be hours, minutes or seconds; write it as "
            "'4:00:00', '4h' or '4min'"
        )
    else:
        raise ValueError(
            f"{name}: {quote(text)} is no duration such as '4:00:00', '1-12:00:00', "
            "'2h30m' or '90min'"
        )
    total = 0
    for number, unit in parts:
        whole, _, digits = (number or "0").partition(".")
        ns, rest = divmod(int(whole + digits) * _LENGTHS[unit], 10 ** len(digits))
        if rest:
            raise ValueError(f"{name}: {quote(text)} is finer than a nanosecond")
        total += ns
    return total


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
        found = _of_text_and_datetimes(column.tolist())
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


def _of_text_and_datetimes(column: list[Any]) -> Moments | None:
    """Convert text and datetimes together; None for other values and for errors."""
    kinds = {type(value) for value in column} - {type(None)}
    if not kinds <= {str, dt.datetime}:
        return None
    texts = kinds != {dt.datetime}
    there = np.array(
        [not _missing(value) for value in column] if texts else column, "?"
    )
    whole = bool(there.all())
    given = column if whole else [v for v in column if not _missing(v)]
    found = given
    if texts:
        try:
            found = [v if type(v) is dt.datetime else _from_iso(v) for v in given]
        except ValueError:
            return None
    values = np.full(len(column), "NaT", "M8[us]")
    zones = {type(value.tzinfo) for value in found}
    if zones <= {type(None)}:
        values[there] = _microseconds(found, EPOCH)
        if texts:
            return Moments(values, False, days=all(map(_is_day, given)))
        # The fold is used only if all values are datetimes.
        fold = np.array([value.fold for value in found], np.bool_) if whole else None
        return Moments(values, False, fold)
    if zones == {dt.timezone}:
        values[there] = _microseconds(found, EPOCH.replace(tzinfo=dt.UTC))
        return Moments(values, True)
    if not zones <= {ZoneInfo, dt.timezone}:
        return None
    # The rows of each zone are converted together.
    rows = np.flatnonzero(there)
    by_zone: dict[Any, list[int]] = {}
    for k, value in enumerate(found):
        by_zone.setdefault(value.tzinfo, []).append(k)
    for zone, some in by_zone.items():
        mine = [found[k] for k in some]
        # The difference of two dates of one zone is that of their local times.
        wall = _microseconds(mine, EPOCH.replace(tzinfo=zone))
        fold = np.array([value.fold for value in mine], np.bool_)
        try:
            values[rows[some]] = instants(Moments(wall, False, fold), zone, "")
        except ValueError:  # such as a local time that does not exist
            return None
    return Moments(values, True)


def _from_iso(text: str) -> dt.datetime:
    """Parse a text without digits that `datetime` ignores; else raise ValueError."""
    if ("." in text or "," in text) and _FRACTION.search(text):
        raise ValueError
    return dt.datetime.fromisoformat(text)


def _microseconds(found: list[dt.datetime], epoch: dt.datetime) -> NDArray[Any]:
    # Faster than the conversion of datetimes by numpy.
    since = [(value - epoch) // _MICROSECOND for value in found]
    return np.array(since, np.int64).view("M8[us]")


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
        try:
            moment = moment_of(value)
        except (ValueError, TypeError):  # again, with the row in the error
            moment = moment_of(value, f"{name}, {row_label(name, row)}")
        if first is None:
            first = row, moment
        elif moment.aware != first[1].aware:
            with_zone, without = (
                ((row, moment), first) if moment.aware else (first, (row, moment))
            )
            at, other = (row_label(name, each[0]) for each in (without, with_zone))
            raise ValueError(
                f"{name}, {at}: {without[1]} has no time zone, but "
                f"{with_zone[1]} in {other} has one"
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


# --- local times


def instant_of(moment: Moment, zone: dt.tzinfo | None, name: str) -> int:
    """Convert a moment to nanoseconds since 1970 (UTC); see `instants`."""
    if moment.aware:
        return moment.ns
    if zone is None:
        raise ValueError(f"{name}: {moment} {_NO_ZONE}")
    second = moment.ns // 10**9
    at, offsets, begins, ends, _ = segments(zone, year_of(second))
    first, last = bisect_right(ends, second), bisect_right(begins, second) - 1
    if first != last:
        day = _is_day(moment.given)
        if first > last:
            if not day:
                raise ValueError(f"{name}: {moment} {_SKIPPED.format(zone)}")
            return int(at[first]) * 10**9  # the first instant of the day
        if moment.fold is None and not day:
            raise ValueError(f"{name}: {moment} {_TWICE.format(zone)}")
        first = last if moment.fold else first
    return moment.ns - int(offsets[first]) * 10**9


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
    for year, some in by_year(seconds[there]):
        mine = there[some]
        at, offsets, *local, _ = segments(zone, year)
        begins, ends = map(np.array, local)
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
