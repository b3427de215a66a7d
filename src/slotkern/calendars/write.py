"""Bookings and windows as iCalendar text (RFC 5545): one event for each window.

Times are in UTC and whole seconds: a start is rounded down and an end up, so an event
covers its booking. LOCATION is the hostlist of the nodes, which `read_ics` reads again.
The same bookings yield the same text: the UID is a digest of the booking, so that a
calendar that is imported again replaces its events.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from hashlib import sha256
from typing import Any

from slotkern._kernels.windows import Window, WindowTable
from slotkern.foundation.checks import number, quote, visible
from slotkern.foundation.extras import extra
from slotkern.foundation.hostlists import expand, fold
from slotkern.machine.clock import Clock
from slotkern.machine.frames import columns_of

__all__ = ["to_ics"]

_SECOND = dt.timedelta(seconds=1)
_TIMES = ("start", "finish")
_KEY = ("owner", "name", "nodes")
_DETAILS = ("cost", "value", "account", "uses", "expires")
#: The columns of windows that are their attributes.
_MEASURES = (*_TIMES, "cost", "value")
_TEXTS = ("owner", "name", *_DETAILS)


def to_ics(bookings: Any, *, clock: Clock | None = None) -> str:
    """Return bookings as the text of an iCalendar file.

    Parameters
    ----------
    bookings : SlotPool, HostPool, SharedPool, Window, sequence of Window, or table
        Windows, such as `Alternatives`, one event each, booked or not; a pool, whose
        bookings with an owner are written; or a table as ``bookings()`` and
        ``listing()`` return: nodes (a hostlist), start, finish, and optionally owner,
        name, cost, account, uses and expires. Rows without nodes are left out.
    clock : Clock, optional
        The clock of a table; a pool and its windows have their own.

    Returns
    -------
    str
        A calendar with one event for each booking, in their order. The summary is the
        owner and the name; an event with an ``expires`` is tentative. The description
        has the cost and, for windows, the value by their criterion.

    Raises
    ------
    ValueError, TypeError
        Without a clock, for a table without one of these columns, and for times that
        are not finite numbers or end before they start.
    ModuleNotFoundError
        Without the extra ``slotkern[calendars]``.

    Examples
    --------
    >>> import slotkern as sk
    >>> free = sk.free_slots(sk.Machine.homogeneous(2), start="2026-12-01",
    ...                      end="2026-12-02", zone="UTC")
    >>> pool = sk.SlotPool(free)
    >>> _ = pool.reserve("n1", "2026-12-01 08:00", "2026-12-01 10:00", owner="anna")
    >>> print(sk.to_ics(pool).replace("\\r", "").partition("DTSTART")[2][:16])
    :20261201T080000
    """
    windows = _windows_of(bookings)
    if windows is not None:
        if clock is not None:
            raise ValueError("clock is for a table; windows have their own")
        clock = windows[0].clock
        bookings = {
            "name": [window.name or "" for window in windows],
            "nodes": [fold(list(map(str, window.names))) for window in windows],
            **{name: [getattr(w, name) for w in windows] for name in _MEASURES},
        }
    elif hasattr(bookings, "bookings"):
        if clock is not None:
            raise ValueError("clock is for a table; a pool has its own")
        bookings, clock = bookings.bookings(), bookings.clock
    if clock is None:
        raise ValueError(
            "a calendar needs dates, but these bookings have no clock; make the pool "
            "with one, as by SlotPool(slots, clock=Clock(origin, zone=...)), or give "
            "the clock= of a table"
        )
    if not isinstance(clock, Clock):
        raise TypeError(f"clock must be a Clock, got {quote(clock)}")
    columns = columns_of(bookings, "bookings")
    if lacking := [name for name in ("nodes", *_TIMES) if name not in columns]:
        raise ValueError(f"bookings has no column {quote(lacking[0])}")
    return _text(columns, clock)


def _windows_of(given: Any) -> list[Window] | None:
    """Return the windows of a window or of a sequence of them; None for others."""
    if isinstance(given, Window):
        return [given]
    if not isinstance(given, (WindowTable, list, tuple)) or not len(given):
        return None
    windows = list(given)
    return windows if all(isinstance(each, Window) for each in windows) else None


def _text(columns: dict[str, Any], clock: Clock) -> str:
    with extra():
        from icalendar import Calendar

    calendar = Calendar()
    calendar.add("PRODID", "-//slotkern//slotkern//EN")
    calendar.add("VERSION", "2.0")
    repeated: Counter[str] = Counter()
    for row in range(len(columns["nodes"])):
        cells = {name: column[row] for name, column in columns.items()}
        if not str(cells["nodes"]):
            continue
        start, end = (_date(clock, name, row, cells[name]) for name in _TIMES)
        if end < start:
            raise ValueError(f"bookings: finish, row {row}: {end} is before {start}")
        key = "\0".join(str(cells.get(name, "")) for name in _KEY) + start.isoformat()
        repeated[key] += 1  # parts of shared nodes may be equal
        digest = sha256(f"{key}\0{repeated[key]}".encode()).hexdigest()
        event = _event(cells, start, end)
        event.add("UID", f"{digest[:32]}@slotkern")
        calendar.add_component(event)
    return str(calendar.to_ical().decode())


def _date(clock: Clock, name: str, row: int, cell: Any) -> dt.datetime:
    """Return the date of a finite number in a row of bookings."""
    found = clock.datetime(number(f"bookings: {name}, row {row}", cell))
    assert found is not None
    return found


def _event(cells: dict[str, Any], start: dt.datetime, end: dt.datetime) -> Any:
    """Return the event of a booking, without its UID."""
    with extra():
        from icalendar import Event

    texts = {name: visible(cells.get(name, "")) for name in _TEXTS}
    title = ": ".join(texts[name] for name in ("owner", "name") if texts[name])
    first, last = (each.astimezone(dt.UTC) for each in (start, end))
    event = Event()
    event.add("DTSTAMP", first.replace(microsecond=0))  # now would change the text
    event.add("DTSTART", first.replace(microsecond=0))
    late = _SECOND if last.microsecond else dt.timedelta(0)
    event.add("DTEND", last.replace(microsecond=0) + late)
    event.add("SUMMARY", title or "booking")
    event.add("LOCATION", visible(fold(expand(str(cells["nodes"])))))
    details = [f"{name}: {texts[name]}" for name in _DETAILS if texts[name]]
    if details:
        event.add("DESCRIPTION", "\n".join(details))
    if texts["expires"]:
        event.add("STATUS", "TENTATIVE")
    return event
