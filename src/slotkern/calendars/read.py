"""Busy time from iCalendar files (RFC 5545): events, repeated ones in local time.

Input is a file; output are the columns of a busy list: node, start, end, reason. An
event takes the nodes that its LOCATION names as a hostlist. Days and times without a
zone are local times of the machine. A repeated event keeps its local time of day; its
length is the same number of seconds if it has a DTEND, and the same number of local
days and seconds if it has a DURATION or lasts whole days (section 3.8.5.3).

Every event that may take time does: its DTSTART is its first date even if the rule does
not contain it, and tentative events count. Cancelled and transparent events take none.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from slotkern.files.atomic import AnyPath, as_path
from slotkern.foundation.checks import Source, quote
from slotkern.foundation.extras import extra
from slotkern.machine.calendar import Moments
from slotkern.machine.clock import Clock
from slotkern.machine.frames import FileColumns, check_width, with_column_context
from slotkern.machine.zones import zone_of

from .rules import RecurrenceRule, utc_of

__all__ = ["read_busy", "read_ics"]

#: The most characters of a summary that are kept as the reason of a busy span.
_MOST_REASON = 200
_DAY = dt.timedelta(days=1)
_ZERO = dt.timedelta(0)
#: The properties that are read: those that occur at most once, and the other ones. An
#: invalid one is an error; properties that are not read do not matter.
_SINGLE = (
    *("DTSTART", "DTEND", "DURATION", "UID", "RECURRENCE-ID", "SUMMARY", "LOCATION"),
    *("STATUS", "TRANSP"),
)
_READ = frozenset((*_SINGLE, "RRULE", "RDATE", "EXDATE", "EXRULE"))


class _Time(NamedTuple):
    """A local time in a zone; `is_day` for a date, which is its first instant."""

    local: dt.datetime
    zone: dt.tzinfo
    is_day: bool

    @property
    def utc(self) -> dt.datetime:
        return utc_of(self.local, self.zone)


class _Span(NamedTuple):
    start: dt.datetime
    end: dt.datetime
    nodes: str
    title: str


def read_ics(
    path: AnyPath, *, start: Any, end: Any, zone: Any = None, nodes: str | None = None
) -> FileColumns:
    """Return the busy time of an iCalendar file as a table for `free_slots`.

    Parameters
    ----------
    path : path
        The file, .ics.
    start, end : str, datetime or date
        The horizon: repeated events are expanded within it.
    zone : str or tzinfo, optional
        The zone of days and of times without a zone.
    nodes : str, optional
        The nodes that each event takes, as a hostlist; by default its LOCATION.

    Returns
    -------
    mapping of str to column
        node, start, end and reason (the summary), one row for each span, by start. The
        events that end before the horizon or start after it are left out.

    Raises
    ------
    ValueError, TypeError
        For an invalid file, an unknown zone, a rule that is not supported, an event
        without a start, or without LOCATION and `nodes`; the message contains the file,
        the event, the property and the value.
    OSError
        If the file cannot be read.
    ModuleNotFoundError
        Without the extra ``slotkern[calendars]``.

    Notes
    -----
    An event takes time unless its STATUS is CANCELLED or its TRANSP is TRANSPARENT.
    RRULE, RDATE, EXDATE and RECURRENCE-ID are obeyed. Rules of hours and shorter are
    refused. A rule may have 100,000 dates from its start to the end of the horizon.

    Examples
    --------
    >>> import slotkern as sk
    >>> lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:Course",
    ...          "DTSTART;TZID=Europe/Berlin:20261020T080000",
    ...          "DTEND;TZID=Europe/Berlin:20261020T100000",
    ...          "RRULE:FREQ=WEEKLY;COUNT=2", "LOCATION:n[1-4]", "END:VEVENT",
    ...          "END:VCALENDAR", ""]
    >>> from pathlib import Path
    >>> _ = Path("course.ics").write_text("\\n".join(lines))
    >>> busy = sk.read_ics("course.ics", start="2026-10-01", end="2026-11-01",
    ...                    zone="Europe/Berlin")
    >>> busy["start"].values.tolist()[1]  # UTC; an hour later after the change
    datetime.datetime(2026, 10, 27, 7, 0)
    """
    if nodes is not None:
        if not isinstance(nodes, str):
            raise TypeError(f"nodes must be a hostlist as text, got {quote(nodes)}")
        if not nodes.strip():
            raise ValueError("nodes is empty; without nodes, LOCATION names them")
    clock = Clock._from(start, "start", "s", zone)
    last = clock.time(end, "end")
    if not last > 0:
        raise ValueError(f"end {end} does not lie after start {start}")
    return read_busy(path, clock, 0.0, last, nodes)


def read_busy(
    path: AnyPath,
    clock: Clock | None,
    first: float,
    last: float,
    nodes: str | None = None,
    everywhere: str | None = None,
) -> FileColumns:
    """Return `read_ics` for the horizon [first, last) of a clock.

    Events without a LOCATION take the hostlist `everywhere`, if it is given.
    """
    path = as_path(path)
    if path.suffix.lower() != ".ics":
        raise ValueError(f"{path}: the suffix {path.suffix!r} is not .ics")
    if clock is None:
        raise ValueError(
            f"{path} has dates, but start and end of the horizon are numbers without a "
            "clock; write start= and end= as dates"
        )
    floating = clock.origin.tzinfo if clock.zone is not None else None
    begin = clock.datetime(first)
    until = None if last == np.inf else clock.datetime(last)
    assert begin is not None
    events = [_Event(each, str(path), floating) for each in _events(path)]
    spans = sorted(
        _Span(start, end, nodes or event.nodes(everywhere), event.title)
        for event, start, end in _occurrences(events, until)
        if end > begin and (until is None or start < until)
    )
    titles = [span.title for span in spans]
    width = max((len(span.nodes) for span in spans), default=0)
    with_column_context(str(path), "node", partial(check_width, width), len(spans))
    columns = {
        "node": np.array([span.nodes for span in spans], np.str_),
        "start": _moments(span.start for span in spans),
        "end": _moments(span.end for span in spans),
        "reason": np.array(titles, np.str_),
    }
    source = Source(str(path), lambda row: f"event {quote(titles[row])}")
    return FileColumns(columns, source)


def _moments(instants: Iterable[dt.datetime]) -> Moments:
    plain = [each.replace(tzinfo=None) for each in instants]
    return Moments(np.array(plain, "M8[us]"), True)


def _events(path: Any) -> Iterator[Any]:
    """Yield the events of a file as components of icalendar."""
    with extra():
        from icalendar import Calendar

    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None
    try:
        calendars = Calendar.from_ical(text, multiple=True)
    except Exception as error:  # its parser raises many types for malformed text
        message = f"no valid iCalendar file: {_one_line(error)}"
        raise ValueError(f"{path}: {message}") from None
    if not calendars or any(each.name != "VCALENDAR" for each in calendars):
        raise ValueError(f"{path}: no iCalendar file; it begins with BEGIN:VCALENDAR")
    for calendar in calendars:
        if calendar.walk("VFREEBUSY"):
            raise ValueError(f"{path}: VFREEBUSY is not supported, only VEVENT")
        yield from calendar.walk("VEVENT")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _occurrences(
    events: list[_Event], until: dt.datetime | None
) -> Iterator[tuple[_Event, dt.datetime, dt.datetime]]:
    """Yield each event with the spans that it takes, which start before a limit."""
    replaced: dict[str, set[dt.datetime]] = defaultdict(set)
    repeated = {event.uid: event for event in events if event.replaces is None}
    for event in events:
        if event.replaces is not None:
            event.check_replaces(repeated.get(event.uid))
            replaced[event.uid].add(event.replaces.utc)
    for event in events:
        if event.takes_no_time:
            continue
        gone = set() if event.replaces is not None else replaced.get(event.uid, set())
        for start, end in event.spans(until).items():
            if start not in gone:
                yield event, start, end


class _Event:
    """An event of a calendar, whose properties are checked.

    Attributes
    ----------
    title : str
        The summary, or the UID without one.
    replaces : _Time or None
        The date of a repeated event which this event replaces.
    """

    def __init__(self, component: Any, source: str, floating: dt.tzinfo | None) -> None:
        self._component, self._floating = component, floating
        self.uid = str(component.get("UID", ""))
        self.title = str(component.get("SUMMARY") or self.uid)[:_MOST_REASON]
        self._label = f"{source}, event {quote(self.title)}"
        for name, message in component.errors:
            if name is None or name in _READ:
                raise self._error(name or "a line", _one_line(ValueError(message)))
        for name in _SINGLE:
            if isinstance(component.get(name), list):
                raise self._error(name, "occurs twice")
        start = self._time("DTSTART")
        if start is None:
            raise self._error("DTSTART", "is missing")
        self._start = start
        self.replaces = self._time("RECURRENCE-ID")
        if self.replaces is not None:
            if not self.uid:
                raise self._error("RECURRENCE-ID", "needs the UID of an event")
            if component["RECURRENCE-ID"].params.get("RANGE"):
                raise self._error("RECURRENCE-ID", "RANGE is not supported")
            if "RRULE" in component or "RDATE" in component:
                raise self._error("RECURRENCE-ID", "is not possible with RRULE, RDATE")
        self._days, self._length = self._duration()

    @property
    def takes_no_time(self) -> bool:
        """Return whether the event is cancelled or transparent."""
        return (
            str(self._component.get("STATUS", "")).upper() == "CANCELLED"
            or str(self._component.get("TRANSP", "")).upper() == "TRANSPARENT"
        )

    def check_replaces(self, other: _Event | None) -> None:
        """Raise ValueError if a day replaces a time of another event, or vice versa."""
        if other is not None and self.replaces is not None:
            self._check_kind("RECURRENCE-ID", self.replaces, other._start)

    def nodes(self, everywhere: str | None) -> str:
        """Return the hostlist of LOCATION; without one, the given hostlist."""
        location = str(self._component.get("LOCATION", "")).strip()
        if not location and everywhere is None:
            raise self._error(
                "LOCATION", "is missing: it names the nodes as a hostlist; or set nodes"
            )
        return location or str(everywhere)

    def spans(self, until: dt.datetime | None) -> dict[dt.datetime, dt.datetime]:
        """Return the ends of the spans by their starts, for starts before a limit."""
        ends = {}
        try:
            for each in [self._start, *self._repeated(until)]:
                ends[each.utc] = self._end(each)
            for each, end in self._added():
                ends[each.utc] = self._end(each) if end is None else end
        except OverflowError:
            raise self._error("DTSTART", "a date is after the year 9999") from None
        for each, _ in self._listed("EXDATE"):
            ends.pop(each.utc, None)
        return ends

    def _error(self, name: str, message: str) -> ValueError:
        return ValueError(f"{self._label}: {name}: {message}")

    def _repeated(self, until: dt.datetime | None) -> Iterator[_Time]:
        """Yield the dates of the rule after the first date, which is DTSTART."""
        for name in ("RRULE", "EXRULE"):
            given = self._component.get(name)
            if isinstance(given, list) or (given is not None and name == "EXRULE"):
                raise self._error(name, "only one RRULE is supported, and no EXRULE")
        if "RRULE" not in self._component:
            return
        local, zone, is_day = self._start
        try:
            text = self._component["RRULE"].to_ical().decode()
        except (TypeError, ValueError) as error:  # UNTIL=200609, a time
            raise self._error("RRULE", f"is invalid: {_one_line(error)}") from None
        rule = RecurrenceRule.parse(text, f"{self._label}: RRULE")
        try:
            dates = rule.dates(local, zone, until)
        except ValueError as error:
            raise self._error("RRULE", str(error)) from None
        if dates[:1] != [local] and rule.count is not None:
            dates = dates[: rule.count - 1]  # DTSTART counts as the first date
        for date in dates:
            yield _Time(date, zone, is_day)

    def _added(self) -> Iterator[tuple[_Time, dt.datetime | None]]:
        """Yield the dates of RDATE, and the end of each that is a period."""
        for start, period in self._listed("RDATE"):
            if period is None:
                yield start, None
                continue
            if isinstance(period, dt.timedelta):
                end = start.utc + period
            else:
                end = self._zoned("RDATE", period, start.zone).utc
            if end < start.utc:
                raise self._error("RDATE", f"a period ends at {end}, before its start")
            yield start, end

    def _listed(self, name: str) -> Iterator[tuple[_Time, Any]]:
        """Yield the times of RDATE or EXDATE, and the ends of periods."""
        given = self._component.get(name, [])
        for prop in given if isinstance(given, list) else [given]:
            for item in prop.dts:
                value, end = item.dt, None
                if isinstance(value, tuple):
                    value, end = value
                time = self._of(name, value, prop.params.get("TZID"))
                self._check_kind(name, time, self._start)
                yield time, end

    def _check_kind(self, name: str, time: _Time, start: _Time) -> None:
        """Raise ValueError if one is a day and the other, a DTSTART, a time."""
        if time.is_day != start.is_day:
            value = time.local.date() if time.is_day else time.local
            kinds = ("a time", "a day")
            raise self._error(
                name,
                f"{value} is {kinds[time.is_day]}, but DTSTART is "
                f"{kinds[start.is_day]}",
            )

    def _end(self, start: _Time) -> dt.datetime:
        local = start.local + self._days * _DAY
        return self._zoned("DTSTART", local, start.zone).utc + self._length

    def _duration(self) -> tuple[int, dt.timedelta]:
        """Return the length of the event: local days, and a further time."""
        end, given = self._time("DTEND"), self._component.get("DURATION")
        if end is not None and given is not None:
            raise self._error("DTEND", "is not possible with DURATION")
        if end is None:
            length = getattr(given, "dt", _DAY if self._start.is_day else _ZERO)
            if not isinstance(length, dt.timedelta):
                raise self._error("DURATION", f"{length} is not a duration")
        elif end.is_day != self._start.is_day:
            raise self._error("DTEND", "and DTSTART must both be days, or both times")
        elif end.is_day:
            length = end.local - self._start.local
        else:
            length = end.utc - self._start.utc
        if length < _ZERO:
            raise self._error("DTEND" if end else "DURATION", "is before DTSTART")
        if end is not None and not end.is_day:
            return 0, length
        rest = length - length.days * _DAY
        if rest and self._start.is_day:
            raise self._error("DURATION", f"{length} is not a number of days")
        return length.days, rest

    def _time(self, name: str) -> _Time | None:
        """Return the time of a property; None if the event has none."""
        given = self._component.get(name)
        if given is None:
            return None
        return self._of(name, given.dt, given.params.get("TZID"))

    def _of(self, name: str, value: Any, named: str | None) -> _Time:
        """Return a time of icalendar in the zone that its TZID names."""
        if not isinstance(value, dt.date):
            raise self._error(name, f"{value} is not a date")
        zone = self._floating
        if named is not None:
            zone = self._zone(name, named)
        elif isinstance(value, dt.datetime) and value.tzinfo is not None:
            zone = dt.UTC
        if zone is None:
            raise self._error(
                name, f"{value} has no time zone; set one (zone: Europe/Berlin)"
            )
        return self._zoned(name, value, zone)

    def _zoned(self, name: str, value: dt.date, zone: dt.tzinfo) -> _Time:
        """Return a time in a zone; raise ValueError if its instant does not exist."""
        is_day = not isinstance(value, dt.datetime)
        local = (
            value
            if isinstance(value, dt.datetime)
            else dt.datetime.combine(value, dt.time())
        )
        if local.tzinfo is not None and local.tzname() == "UTC":
            zone = dt.UTC  # written with Z, which is not the zone of a TZID
        local = local.replace(tzinfo=None)
        try:
            utc_of(local, zone)
        except ValueError as error:
            raise self._error(name, str(error)) from None
        return _Time(local, zone, is_day)

    def _zone(self, name: str, named: str) -> dt.tzinfo:
        """Return a zone by its name in the list of the IANA or of Windows."""
        with extra():
            from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

        try:
            return zone_of(WINDOWS_TO_OLSON.get(named, named))
        except ValueError as error:
            raise self._error(name, str(error)) from None
