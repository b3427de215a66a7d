"""Calendars: recurrence rules, busy time from iCalendar files, bookings as such."""

from .read import read_ics
from .write import to_ics

__all__ = ["read_ics", "to_ics"]
