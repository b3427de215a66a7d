"""Recurrence rules of iCalendar, expanded in local time (RFC 5545, section 3.3.10).

Input is the text of a rule and the first local time; output are local times, and spans
in numbers of a clock. A date keeps its local time of day when the clocks change. A
local time that the change skips is taken with the offset before the change, and the
first of two equal local times counts (RFC 5545, section 3.3.5). dateutil expands the
rule without a zone; only the comparison with UNTIL and with the limit is made in UTC.

Cost: one step of dateutil for each day, week, month or year from the first date to the
first one after the end or the limit, and at most 300,000 steps to notice that a rule
has no dates at all, as on 30 February. Rules of hours and shorter, which a change of
the clocks would distort, are refused.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from slotkern.foundation.checks import meant, quote
from slotkern.foundation.extras import extra
from slotkern.machine.clock import Clock

__all__ = ["RecurrenceRule", "repeated_spans", "utc_of"]

#: The most dates of a rule, counted from its first.
_MOST = 100_000
#: Years after which the dates and weekdays of the Gregorian calendar are the same.
_CYCLE = 400
#: How often a weekday may occur in a month; dateutil has no days for greater numbers.
_MOST_IN_MONTH = 5
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
#: The least and the greatest number of each list; True: also counted from the end.
_LISTS = {
    "BYMONTH": (1, 12, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYWEEKNO": (1, 53, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_LISTS)
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
_SIGNED = re.compile(r"([+-]?)([0-9]{1,3})")
_WEEKDAY = re.compile(r"([+-]?(?:[1-9]|[1-4][0-9]|5[0-3]))?(?:MO|TU|WE|TH|FR|SA|SU)")
_UNTIL = re.compile(r"[0-9]{8}(?:T[0-9]{6}(Z?))?")


def utc_of(local: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """Return the instant of a local time; the first one if it occurs twice.

    Raises
    ------
    ValueError
        If the instant is before the year 1 or after 9999.
    """
    try:
        return local.replace(tzinfo=zone).astimezone(dt.UTC)
    except OverflowError:
        raise ValueError(f"{local} in {zone} is out of range") from None


@dataclass(frozen=True)
class RecurrenceRule:
    """A checked recurrence rule.

    Attributes
    ----------
    text : str
        The rule in capitals.
    pattern : str
        The rule without its end, as dateutil expands it.
    count : int or None
        The number of dates.
    until : datetime or None
        The last possible date: with a zone an instant, else a local time.
    """

    text: str
    pattern: str
    count: int | None
    until: dt.datetime | None

    @property
    def _interval(self) -> int:
        match = re.search(r"INTERVAL=([0-9]+)", self.pattern)
        return int(match[1]) if match else 1

    @classmethod
    def parse(cls, text: str, name: str = "rule") -> RecurrenceRule:
        """Check a rule such as ``FREQ=WEEKLY;BYDAY=TU;COUNT=10``.

        Parameters
        ----------
        text : str
        name : str
            The name of the rule in errors.

        Raises
        ------
        ValueError, TypeError
            For an unknown part, a part that occurs twice, and a value out of range; the
            message contains the name, the part and the value.
        """
        if not isinstance(text, str):
            raise TypeError(f"{name} must be text, got {quote(text)}")
        text = text.strip().upper()
        if not text.isprintable():
            raise ValueError(f"{name}: {quote(text)} has control characters")
        parts: dict[str, str] = {}
        for word in text.split(";"):
            key, equals, value = word.partition("=")
            if not equals or not value:
                raise ValueError(f"{name}: {quote(word)} is not PART=VALUE")
            if key not in _PARTS:
                raise ValueError(
                    f"{name}: {quote(key)} is none of {', '.join(_PARTS)}"
                    f"{meant(key, _PARTS)}"
                )
            if key in parts:
                raise ValueError(f"{name}: {key} occurs twice")
            parts[key] = value
        for key, value in parts.items():
            _check(name, key, value, parts)
        if "FREQ" not in parts:
            raise ValueError(f"{name}: {quote(text)} has no FREQ")
        if "COUNT" in parts and "UNTIL" in parts:
            raise ValueError(f"{name}: COUNT and UNTIL exclude each other")
        count, until = parts.pop("COUNT", None), parts.pop("UNTIL", None)
        return cls(
            text,
            ";".join(map("=".join, parts.items())),
            None if count is None else int(count),
            None if until is None else _until(name, until),
        )

    def dates(
        self, start: dt.datetime, zone: dt.tzinfo, limit: dt.datetime | None
    ) -> list[dt.datetime]:
        """Return the local times of the rule, from its start to its end or a limit.

        Parameters
        ----------
        start : datetime
            The first local time, without a zone, in whole seconds. It is in the result
            only if it follows the rule.
        zone : tzinfo
        limit : datetime or None
            An instant; the result has only times before it.

        Raises
        ------
        ValueError
            If neither the rule nor the time has an end, and for more than 100,000
            dates.
        """
        with extra():
            from dateutil.rrule import rrulestr

        if limit is None and self.until is None and self.count is None:
            raise ValueError(f"{self.text:.80} has no end: add COUNT or UNTIL")
        last = self.until
        if last is not None and last.tzinfo is None:
            last = utc_of(last, zone)
        ends = [end for end in (last, limit) if end is not None]
        # A day later, because two local times an hour apart can be one instant.
        stop = min((_local(end, zone) for end in ends), default=dt.datetime.max)
        found: list[dt.datetime] = []
        probe = rrulestr(self.pattern, dtstart=_last_equal(start, self._interval))
        if next(iter(probe), None) is None:
            return found
        for date in rrulestr(self.pattern, dtstart=start).replace(until=stop):
            instant = utc_of(date, zone)
            if (last is not None and instant > last) or (limit and instant >= limit):
                continue
            found.append(date)
            if len(found) == self.count:
                break
            if len(found) > _MOST:
                raise ValueError(
                    f"{self.text:.80} has more than {_MOST:,} dates since {start}; let "
                    "it begin later, or add COUNT or UNTIL"
                )
        return found


def _last_equal(start: dt.datetime, interval: int) -> dt.datetime:
    """Return the last start from which a rule has the same dates for a whole period.

    The dates of a rule repeat every 400 * interval years. dateutil searches for a date
    up to the year 9999, so a rule without dates costs at most two periods from here. A
    start that is less than two periods before that year is its own result.
    """
    period = _CYCLE * interval
    later = max((dt.MAXYEAR - start.year) // period - 1, 0)
    return start.replace(year=start.year + later * period)


def _local(instant: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """Return a local time at least an hour, and at most two days, after an instant."""
    try:
        return instant.astimezone(zone).replace(tzinfo=None) + dt.timedelta(days=1)
    except OverflowError:
        return dt.datetime.max


def _check(name: str, key: str, value: str, parts: dict[str, str]) -> None:
    """Check the value of one of the parts of a rule."""
    wrong = f"{name}: {key}={quote(value)} is not allowed"
    if key == "FREQ" and value not in _FREQUENCIES:
        raise ValueError(
            f"{name}: FREQ={value:.40} is none of {', '.join(_FREQUENCIES)}"
            f"{meant(value, _FREQUENCIES)}"
        )
    if (key in ("INTERVAL", "COUNT") and not _NUMBER.fullmatch(value)) or (
        key == "WKST" and (not _WEEKDAY.fullmatch(value) or len(value) != 2)
    ):
        raise ValueError(wrong)
    if key in _LISTS:
        low, high, signed = _LISTS[key]
        for word in value.split(","):
            match = _SIGNED.fullmatch(word)
            if match is None or not low <= int(match[2]) <= high:
                raise ValueError(f"{name}: {key}={word:.40} is not {low} to {high}")
            if match[1] and not signed:
                raise ValueError(wrong)
    if key == "BYDAY":
        frequency = parts.get("FREQ")
        in_month = frequency == "MONTHLY" or "BYMONTH" in parts
        for word in value.split(","):
            match = _WEEKDAY.fullmatch(word)
            if match is None or (match[1] and frequency not in ("MONTHLY", "YEARLY")):
                raise ValueError(
                    f"{name}: BYDAY={word:.40} is not MO, TU, WE, TH, FR, SA or SU; a "
                    "number before it needs FREQ=MONTHLY or YEARLY"
                )
            if match[1] and in_month and abs(int(match[1])) > _MOST_IN_MONTH:
                raise ValueError(
                    f"{name}: BYDAY={word:.40}: a month has at most {_MOST_IN_MONTH} "
                    "of each weekday"
                )


def _until(name: str, value: str) -> dt.datetime:
    """Return the last possible date of UNTIL; a day lasts until its last second."""
    match = _UNTIL.fullmatch(value)
    try:
        if match is None:
            raise ValueError
        form = "%Y%m%dT%H%M%S" if "T" in value else "%Y%m%d"
        found = dt.datetime.strptime(value.rstrip("Z"), form)
    except ValueError:
        raise ValueError(
            f"{name}: UNTIL={value:.40} is no date such as 20261224 or 20261224T180000Z"
        ) from None
    if "T" not in value:
        return found.replace(hour=23, minute=59, second=59)
    return found.replace(tzinfo=dt.UTC) if match[1] else found


def repeated_spans(
    clock: Clock | None, first: float, last: float, text: str
) -> list[tuple[float, float]]:
    """Return the spans of a rule, each as long as [first, last), in time order.

    Parameters
    ----------
    clock : Clock
        Its zone is that of the rule.
    first, last : float
        The first span in numbers of the clock; it must follow the rule.
    text : str
        The rule, which has an end.

    Raises
    ------
    ValueError, TypeError
        For an invalid rule, a clock without a zone, a first span that does not follow
        the rule, and spans that overlap.
    """
    rule = RecurrenceRule.parse(text)
    if clock is None or clock.zone is None:
        raise ValueError(
            "rule repeats local times and needs a clock with a time zone; give zone= "
            "when the free slots are made"
        )
    start, end = (clock.datetime(time) for time in (first, last))
    assert start is not None
    assert end is not None
    assert start.tzinfo is not None
    if start.microsecond:
        raise ValueError(f"rule: the start {start} is not a whole second")
    local = start.replace(tzinfo=None)
    dates = rule.dates(local, start.tzinfo, None)
    if not dates or dates[0] != local:
        first_date = f"; its first date is {dates[0]}" if dates else ""
        raise ValueError(
            f"rule: the start {start} does not follow {text:.80}{first_date}"
        )
    starts = sorted({utc_of(date, start.tzinfo) for date in dates[1:]})
    length = end.astimezone(dt.UTC) - start.astimezone(dt.UTC)
    spans = [(first, last)]
    for date in starts:
        spans.append((clock.time(date), clock.time(date + length)))
        if spans[-1][0] < spans[-2][1]:
            raise ValueError(
                f"rule: {text:.80} repeats before a span of {length} ends, at "
                f"{date.astimezone(start.tzinfo)}"
            )
    return spans
