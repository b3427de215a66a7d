"""Durations in text and in types of Python, numpy and pandas, as exact nanoseconds.

The forms of Slurm's ``--time`` are accepted except the ambiguous ones: a bare number
and ``4:00`` are refused, because they mean minutes in Slurm and hours or seconds
elsewhere.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import numpy as np

from slotkern._moments import Duration, parse_quickly
from slotkern.foundation.checks import quote

__all__ = ["NO_LIMIT", "Duration", "duration_of"]

_NANOSECONDS = {
    "d": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "min": 60 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_CLOCK = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]+)?)")
#: The output of Python and pandas for timedeltas: 1 day, 6:00:00 and 0 days 04:00:00.
_PRINTED = re.compile(r"([0-9]+) days?(?:,? +([0-9]+:[0-9]{1,2}:[0-9.]+))?")
#: Slurm's words for the absence of a limit.
NO_LIMIT = ("INFINITE", "UNLIMITED")
_DAYS = re.compile(r"([0-9]+)-([0-9]{1,2})(?::([0-9]{1,2}))?")
_UNITS = re.compile(rf"({_NUMBER}) *(d|h|min|ms|us|ns|m|s)(?![a-z]) *")
_ISO = re.compile(
    rf"P(?:({_NUMBER})D)?(?:T(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?"
)


def duration_of(value: Any, name: str = "duration") -> Duration:
    """Parse a timedelta or a text to a `Duration`.

    Parameters
    ----------
    value : timedelta, numpy timedelta64, pandas Timedelta or str
        Text: ``4:00:00`` and ``1-12:00:00`` (hours, minutes, seconds; days before a
        hyphen; also ``1-12`` and ``1-12:30``), ``2h30m``, ``1.5 h``, ``90min``,
        ``PT4H``, and the output of Python and pandas: ``1 day, 6:00:00``,
        ``0 days 04:00:00``.
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
    quick = parse_quickly(value, True)
    return read_duration(value, name) if quick is None else quick  # type: ignore[return-value]


def read_duration(value: Any, name: str = "duration") -> Duration:
    """Parse a duration of any form, without the fast path of `duration_of`."""
    if isinstance(value, str):
        ns = _of_text(value, name)
    elif isinstance(value, np.timedelta64):
        ns = _of_numpy(value, name)
    elif isinstance(value, (dt.timedelta, dt.datetime)) and value != value:
        raise ValueError(
            f"{name} is missing (NaT)"
        )  # the NaT of pandas is a timedelta and a datetime
    elif isinstance(value, dt.timedelta):
        ns = value // dt.timedelta(microseconds=1) * 1000
        ns += (
            int(getattr(value, "nanoseconds", 0)) % 1000
        )  # a pandas Timedelta has them
    else:
        raise TypeError(
            f"{name} must be a timedelta, a text such as '4:00:00' or '2h30m', or a "
            f"number; got {quote(value)}"
        )
    if ns < 0:
        raise ValueError(f"{name} must not be negative, got {quote(value)}")
    return Duration(ns, value)


def _of_numpy(value: np.timedelta64, name: str) -> int:
    if np.isnat(value):
        raise ValueError(f"{name} is missing (NaT)")
    unit, step = np.datetime_data(value.dtype)
    scales = {**_NANOSECONDS, "D": _NANOSECONDS["d"], "W": 7 * _NANOSECONDS["d"]}
    if unit not in scales:
        raise ValueError(f"{name}: {value!r} has no unit from weeks to nanoseconds")
    return int(value.astype(np.int64)) * step * scales[unit]


def _of_text(text: str, name: str) -> int:
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
        parts = [(number, unit) for number, unit in _UNITS.findall(word)]
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
        ns, rest = divmod(int(whole + digits) * _NANOSECONDS[unit], 10 ** len(digits))
        if rest:
            raise ValueError(f"{name}: {quote(text)} is finer than a nanosecond")
        total += ns
    return total
