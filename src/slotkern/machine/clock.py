"""Clocks: the conversion between dates and time units, exact or refused.

A clock has an origin, a unit and a tick. Dates are converted in integers of ticks since
1970 (UTC); the result is the float64 quotient of two integers, rounded once.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern.display.html import html_of
from slotkern.display.table import Table
from slotkern.foundation.checks import number, one_of, quote, row_label
from slotkern.foundation.context import SlotContext

from .calendar import (
    Duration,
    Moment,
    duration_of,
    instant_of,
    instants,
    moment_of,
    moments_of,
)
from .zones import EPOCH, offsets_of, zone_of

__all__ = ["Clock", "is_number"]

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3_600 * 10**9,
    "d": 86_400 * 10**9,
}
_WORDS = {
    "ns": "nanoseconds",
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "min": "minutes",
    "h": "hours",
    "d": "days",
}
_TICKS = ("s", "ms", "us", "ns")
#: The limit up to which each integer is a float64.
_WHOLE = 2**53


def is_number(value: Any) -> bool:
    """Return whether a value is a number of time units, and no date or duration."""
    dtype = getattr(value, "dtype", None)  # numpy's timedelta64 is an np.integer
    kind = getattr(dtype, "kind", None)
    return (
        isinstance(value, (int, float))
        if kind is None
        else kind in ("i", "u", "f", "b")
    )


@dataclass(frozen=True, init=False, repr=False)
class Clock:
    """Clock(origin, *, unit="s", zone=None, tick=None)

    The calendar date of time 0, and the length of a time unit.

    Parameters
    ----------
    origin : str, datetime, datetime64 or date
        The date of time 0, as in ``"2026-10-24"`` or ``"1996-11-20T18:00:00-05:00"``.
        Without an offset it is a local time of the `zone`.
    unit : {"s", "min", "h", "d", "ms", "us", "ns"}
        The time unit. A day always has 24 hours.
    zone : str or tzinfo, optional
        The time zone of dates without an offset, and of returned dates:
        ``"Europe/Berlin"``, ``"UTC"``, ``"+02:00"``; its offsets from UTC are whole
        seconds. If it is None, dates without an offset are refused, and returned dates
        are UTC.
    tick : {"us", "s", "ms", "ns"}, optional
        The resolution: all dates are multiples of it. The default is ``"us"``, or the
        unit if that is ``"ns"``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and its value.

    Notes
    -----
    *Exact or refused.* A date must be a whole number of ticks, and is refused if the
    nearest float64 does not convert back to the same tick. In seconds, all microseconds
    within 71 years of the origin are accepted, and all milliseconds within 71,000
    years; with nanoseconds, choose an origin within 26 days. A returned date is rounded
    to the nearest tick, because the end of a part, ``start + volume / performance``,
    may lie between two. Sums of whole seconds are exact if the unit is ``"s"``, but not
    in hours, because 20 minutes are not a float64 there.

    *Local times.* A local time that does not exist or occurs twice is refused, unless a
    datetime selects one of the two by ``fold``. The datetime64 of numpy has no zone, so
    it is a local time as well. Leap seconds are not counted.

    Examples
    --------
    >>> import slotkern as sk
    >>> clock = sk.Clock("2026-10-24", zone="Europe/Berlin")
    >>> clock.time("2026-10-26"), clock.duration("4:00:00")  # 25 hours in between
    (176400.0, 14400.0)
    >>> str(clock.datetime(176400))
    '2026-10-26 00:00:00+01:00'
    """

    unit: str
    zone: str | None
    tick: str
    _origin: int = field(repr=False)  # UTC, in ticks since 1970
    _per: int = field(repr=False)  # ticks per unit
    _zone: dt.tzinfo | None = field(repr=False, compare=False)

    def __init__(
        self,
        origin: Any,
        *,
        unit: str = "s",
        zone: Any = None,
        tick: str | None = None,
    ) -> None:
        self._begin(origin, "origin", unit, zone, tick)

    @classmethod
    def _from(cls, start: Any, name: str, unit: str, zone: Any) -> Clock:
        """Return a clock whose origin is another argument, `name` in errors."""
        clock = cls.__new__(cls)
        clock._begin(start, name, unit, zone, None)
        return clock

    def _begin(
        self, origin: Any, name: str, unit: str, zone: Any, tick: str | None
    ) -> None:
        one_of("unit", unit, _UNITS)
        tick = one_of("tick", tick or (unit if unit == "ns" else "us"), _TICKS)
        if _UNITS[tick] > _UNITS[unit]:
            raise ValueError(f"tick {tick!r} is longer than the unit, {unit!r}")
        info = None if zone is None else zone_of(zone)
        if (
            isinstance(origin, dt.datetime)
            and info is None
            and hasattr(origin.tzinfo, "key")
        ):
            info = origin.tzinfo  # a named zone is adopted
        for field_name, value in (
            ("unit", unit),
            ("zone", None if info is None else _name(info)),
            ("tick", tick),
            ("_origin", 0),
            ("_per", _UNITS[unit] // _UNITS[tick]),
            ("_zone", info),
        ):
            object.__setattr__(self, field_name, value)
        if is_number(origin):
            raise TypeError(f"{name} must be a date, got {quote(origin)}")
        moment = moment_of(origin, name)
        object.__setattr__(self, "_origin", self._ticks(moment, name))
        self.datetime(0.0)  # raises if the origin is out of range

    def to_dict(self) -> dict[str, str | None]:
        """Return the clock as a dict for JSON; `from_dict` is the inverse."""
        text = f"{np.datetime_as_string(self.utc(0.0)[()])}Z"
        return {"origin": text, "unit": self.unit, "zone": self.zone, "tick": self.tick}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Clock:
        """Return the clock of a dict that `to_dict` returned."""
        keys = ("unit", "zone", "tick")
        if not given.keys() >= {"origin", *keys}:
            raise ValueError(
                f"not a clock: it has only {', '.join(given) or 'nothing'}"
            )
        return cls(given["origin"], **{key: given[key] for key in keys})

    @property
    def origin(self) -> dt.datetime:
        """The date of time 0, in the clock's zone."""
        found = self.datetime(0.0)
        assert found is not None
        return found

    def __str__(self) -> str:
        zone = f" ({self.zone})" if self.zone else ""
        return f"{_WORDS[self.unit]} since {self.origin.isoformat()}{zone}"

    def __repr__(self) -> str:
        more = f", zone={self.zone!r}" if self.zone else ""
        if self.tick != ("ns" if self.unit == "ns" else "us"):
            more += f", tick={self.tick!r}"
        return f"Clock({self.origin.isoformat()!r}, unit={self.unit!r}{more})"

    def _repr_html_(self) -> str:
        facts = {"zone": self.zone, "tick": self.tick}
        return html_of(Table("Clock", {}, 0, SlotContext(self), facts=facts))

    # --- in

    def time(self, value: Any, name: str = "time") -> float:
        """Convert a date to the number of time units since the origin.

        Parameters
        ----------
        value : str, datetime, pandas Timestamp, datetime64, date or number
            A number is returned unchanged.
        name : str
            The name of the value in errors.

        Raises
        ------
        ValueError, TypeError
            For a value that is not a date, a date without a zone, a local time that
            does not exist or is ambiguous, and a date that float64 cannot hold exactly;
            the message contains the name and the value.
        """
        if not isinstance(value, Moment):
            if is_number(value):
                return number(name, value, finite=False)
            value = moment_of(value, name)
        return self._float(self._ticks(value, name) - self._origin, name, value)

    def duration(self, value: Any, name: str = "duration") -> float:
        """Convert a duration to a number of time units.

        Parameters
        ----------
        value : str, timedelta, pandas Timedelta, timedelta64 or number
            ``"4:00:00"``, ``"1-12:00:00"``, ``"2h30m"``, ``"90min"``; a number
            is returned unchanged.
        name : str
            The name of the value in errors.

        Raises
        ------
        ValueError, TypeError
            As `time`; also for ``"4:00"`` and ``"90"``, which could be hours, minutes
            or seconds.
        """
        if not isinstance(value, Duration):
            if is_number(value):
                return number(name, value, least=0, finite=False)
            value = duration_of(value, name)
        return self._float(self._whole(value.ns, name, value), name, value)

    def times(
        self, values: Any, name: str = "times", *, missing: float | None = None
    ) -> NDArray[np.float64]:
        """Convert a column of dates to numbers of time units since the origin.

        Parameters
        ----------
        values : column
            Datetimes, text, datetime64; a series of pandas or polars, an Arrow column.
        name : str
            The name of the column in errors.
        missing : float, optional
            The number for a missing value; by default missing values are refused.

        Returns
        -------
        ndarray of float64

        Raises
        ------
        ValueError, TypeError
            As `time`, with the row; also if some times have a zone and others none.

        Notes
        -----
        O(k) for k rows; vectorized except for text and objects.
        """
        from .frames import column_of

        moments = moments_of(column_of(values), name)
        utc = instants(moments, self._zone, name)
        gone = np.isnat(utc)
        if gone.any() and missing is None:
            place = row_label(name, int(gone.argmax()))
            raise ValueError(f"{name}, {place}: a time is missing")
        counts, lost = self._counted(np.where(gone, np.datetime64(0, "s"), utc))
        far = np.abs(counts.astype(np.float64) - self._origin) >= 2.0**62
        since = np.where(lost | far, 0, counts) - self._origin
        found = self._floats(since)
        wrong = lost | far | (np.rint(found * self._per).astype(np.int64) != since)
        for row in np.flatnonzero(wrong).tolist():  # far from the origin, or an error
            moment = Moment(moment_of(utc[row]).ns, True, None, str(utc[row]))
            found[row] = self.time(moment, f"{name}, {row_label(name, row)}")
        return np.where(gone, 0.0 if missing is None else missing, found)

    def _counted(
        self, utc: NDArray[np.datetime64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Convert times to ticks; also return which are not a tick or out of range."""
        counts = utc.view(np.int64)
        have, want = _UNITS[np.datetime_data(utc.dtype)[0]], _UNITS[self.tick]
        if have < want:
            ticks, rest = np.divmod(counts, want // have)
            return ticks, rest != 0
        times = have // want
        lost = np.abs(counts.astype(np.float64)) >= 2.0**63 / times
        return np.where(lost, 0, counts) * times, lost

    # --- out

    def datetime(self, time: float) -> dt.datetime | None:
        """Convert a time to a date in the clock's zone; None for inf, -inf and NaN.

        Raises
        ------
        ValueError
            If the date lies beyond the years 1 to 9999.
        """
        if not np.isfinite(time):
            return None
        ticks = self._origin + round(float(time) * self._per)
        try:
            date = (EPOCH + self._length(ticks)).replace(tzinfo=dt.UTC)
            return date.astimezone(self._zone or dt.UTC)
        except OverflowError:
            raise ValueError(f"time {time!r} lies beyond the years 1 to 9999") from None

    def timedelta(self, duration: float) -> dt.timedelta | None:
        """Convert a number of units to a timedelta; None for inf, -inf and NaN.

        Raises
        ------
        ValueError
            For more than 999,999,999 days, the limit of timedelta.
        """
        if not np.isfinite(duration):
            return None
        try:
            return self._length(round(float(duration) * self._per))
        except OverflowError:
            raise ValueError(
                f"duration {duration!r} is longer than 999,999,999 days"
            ) from None

    def least_datetime(self, time: float) -> dt.datetime | None:
        """Return the first date whose time is at least `time`; None if not finite.

        A deadline of this date admits windows that end at `time`, whereas the date that
        `datetime` returns may be up to half a tick earlier.
        """
        found = self.datetime(time)
        while found is not None and self.time(found) < time:
            found += self._step
        return found

    def least_timedelta(self, duration: float) -> dt.timedelta | None:
        """Return the shortest timedelta whose number is not below `duration`."""
        found = self.timedelta(duration)
        while found is not None and self.duration(found) < duration:
            found += self._step
        return found

    @property
    def _step(self) -> dt.timedelta:
        """A tick, or a microsecond if a tick is shorter."""
        return dt.timedelta(microseconds=max(_UNITS[self.tick] // 1000, 1))

    def _length(self, ticks: int) -> dt.timedelta:
        """Convert ticks to a timedelta, rounded to microseconds in integers."""
        return dt.timedelta(microseconds=(ticks * _UNITS[self.tick] + 500) // 1000)

    def utc(self, times: ArrayLike) -> NDArray[np.datetime64]:
        """Convert times to datetime64 of UTC, in ticks; NaT for inf, -inf and NaN.

        Raises
        ------
        ValueError
            If int64 cannot hold the ticks, such as years after 2262 in nanoseconds.
        """
        given = np.asarray(times, np.float64)
        found = np.full(given.shape, "NaT", f"M8[{self.tick}]")
        there = np.isfinite(given)
        since = np.rint(given[there] * self._per)
        # Sums with a term of 2**62 or more may overflow int64: Python ints add them.
        far = (np.abs(since) >= 2.0**62) | (abs(self._origin) >= 2**62)
        near = np.where(far, 0, since).astype(np.int64)
        ticks = near + (0 if far.any() and far.all() else self._origin)
        for row in np.flatnonzero(far).tolist():
            exact = int(since[row]) + self._origin
            if abs(exact) >= 2**63:
                time = float(given[there][row])
                raise ValueError(f"time {time!r} lies beyond the range of {self.tick}")
            ticks[row] = exact
        found[there] = ticks.view(found.dtype)
        return found

    def text(self, times: ArrayLike) -> NDArray[np.str_]:
        """Convert times to text in the clock's zone; empty for inf, -inf and NaN.

        Examples
        --------
        >>> import slotkern as sk
        >>> sk.Clock("2026-10-24", zone="Europe/Berlin").text([3600, 180000]).tolist()
        ['2026-10-24T01:00:00+02:00', '2026-10-26T01:00:00+01:00']
        """
        utc = self.utc(times)
        flat = utc.ravel()
        there = np.flatnonzero(~np.isnat(flat))
        offsets = offsets_of(flat[there], self._zone or dt.UTC)
        local = flat[there] + offsets.astype("m8[s]")
        beyond = (local < flat[there]) != (offsets < 0)  # int64 overflow
        if beyond.any():
            time = float(np.ravel(times)[there[beyond][0]])
            raise ValueError(f"time {time!r} lies beyond the range of {self.tick}")
        seconds = local.view(np.int64) % (_UNITS["s"] // _UNITS[self.tick])
        whole = not seconds.any()
        shown_as = np.datetime_as_string(local, unit="s" if whole else None)
        found = np.zeros(flat.shape, "U40")
        ends = {offset: _offset(offset) for offset in np.unique(offsets).tolist()}
        tails = np.array([ends[offset] for offset in offsets.tolist()], "U9")
        found[there] = np.strings.add(shown_as, tails)
        return found.reshape(utc.shape).astype(
            f"U{max(1, np.strings.str_len(found).max(initial=1))}"
        )

    # --- exact or refused

    def _ticks(self, moment: Moment, name: str) -> int:
        """Convert a moment to ticks since 1970 (UTC)."""
        return self._whole(instant_of(moment, self._zone, name), name, moment)

    def _whole(self, ns: int, name: str, given: Moment | Duration) -> int:
        ticks, rest = divmod(ns, _UNITS[self.tick])
        if rest:
            raise self._too_fine(name, given)
        return ticks

    def _float(self, ticks: int, name: str, given: Moment | Duration) -> float:
        try:
            found = ticks / self._per  # quotient of integers, rounded once
            if round(found * self._per) == ticks:
                return found
        except OverflowError:
            pass
        raise self._inexact(name, given)

    def _floats(self, ticks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Divide many ticks by the ticks per unit, each rounded once."""
        found = ticks / self._per
        for row in np.flatnonzero(
            np.abs(ticks) > _WHOLE
        ).tolist():  # division of an int64 beyond 2**53 rounds twice
            found[row] = int(ticks[row]) / self._per
        return found

    def _too_fine(self, name: str, given: Any) -> ValueError:
        return ValueError(
            f"{name}: {given} is no whole number of {_WORDS[self.tick]}, the clock's "
            "tick; set a finer one with Clock(..., tick=)"
        )

    def _inexact(self, name: str, given: Any) -> ValueError:
        return ValueError(
            f"{name}: {given} cannot be held exactly as {self} in ticks of "
            f"{self.tick}; choose an origin that is nearer, or a coarser tick"
        )


def _name(zone: dt.tzinfo) -> str:
    return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)


def _offset(seconds: int) -> str:
    sign, size = ("-", -seconds) if seconds < 0 else ("+", seconds)
    more = f":{size % 60:02}" if size % 60 else ""
    return f"{sign}{size // 3600:02}:{size // 60 % 60:02}{more}"
