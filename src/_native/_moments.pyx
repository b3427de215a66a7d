"""Binding of dates and durations: a fast parser for the common forms.

The common forms are ``2026-10-25 18:00``, ``4:00:00``, ``2h30m``, and plain objects of `datetime`
and numpy in the years 1700 to 2200. Other forms and all errors are left to
`slotkern.machine.moments`, `durations` and `clock`, which give the same results for these forms.
Times are integers in nanoseconds, so no conversion rounds.
"""

import datetime as dt
import sys

cimport numpy as cnp
from cpython cimport datetime as cdt
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport rint
from libc.stdint cimport INT64_MIN, int64_t
from libcpp.vector cimport vector

from slotkern.foundation.adapters import adapter

cnp.import_array()
cdt.import_datetime()

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL

cdef extern from "numpy/arrayscalars.h":
    ctypedef struct PyArray_DatetimeMetaData:
        cnp.NPY_DATETIMEUNIT base
        int num
    ctypedef struct PyDatetimeScalarObject:
        int64_t obval
        PyArray_DatetimeMetaData obmeta

cdef int64_t SECOND = 1_000_000_000
cdef int64_t MAX_EXACT = 1 << 53  # every integer up to this one is exact as a float64
cdef object FIXED_OFFSET = dt.timezone


# --- values

cdef class TimeValue:
    """A time or a duration in nanoseconds, and the value from which it was parsed."""

    @property
    def ns(self):
        """Integer number of nanoseconds."""
        return self.short_ns if self.long_ns is None else self.long_ns

    @property
    def text(self):
        """The given value as text, for messages."""
        return self.value if isinstance(self.value, str) else str(self.value)

    cdef int store(self, object ns, object value) except -1:
        self.value = value
        if -(1 << 62) < ns < (1 << 62):
            self.short_ns = ns
        else:
            self.long_ns = ns
        return 0


cdef class Moment(TimeValue):
    """Moment(ns, aware, fold, given)
--

    A point in time: nanoseconds since 1970 in UTC if `aware`, otherwise in local time.

    `fold` selects one of two equal local times, as in `datetime`; None: not specified.
    """

    def __init__(self, ns, bint aware, fold, given):
        self.store(ns, given)
        self.aware, self.fold = aware, fold


cdef class Duration(TimeValue):
    """Duration(ns, given)
--

    A duration in nanoseconds.
    """

    def __init__(self, ns, given):
        self.store(ns, given)


cdef bint needs_clock(object value) except -1:
    """Return True for dates, text and timedeltas, which only a clock converts to numbers."""
    if isinstance(value, (float, int)) or value is None:
        return False
    if (isinstance(value, str) or cnp.is_datetime64_object(value)
            or cnp.is_timedelta64_object(value)):
        return True
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind in ("M", "m") if kind is not None else not hasattr(value, "__float__")


cdef TimeValue parse_time_value(object value, str name, bint is_duration):
    """Parse a Moment or Duration; raise ValueError or TypeError with the argument's name."""
    cdef TimeValue found = parse_duration(value) if is_duration else parse_moment(value)
    if found is not None:
        return found
    if is_duration:
        return adapter("duration_of")(value, name)
    return adapter("moment_of")(value, name)


def parse_quickly(value, bint is_duration):
    """Return the result of the fast parser, or None if it does not accept the value."""
    return parse_duration(value) if is_duration else parse_moment(value)


# --- reading

cdef int64_t parse_digits(const char* text, Py_ssize_t n) noexcept nogil:
    """Return the number of n decimal digits, or -1 if a character is not a digit."""
    cdef int64_t found = 0
    cdef Py_ssize_t i
    for i in range(n):
        if not c'0' <= text[i] <= c'9':
            return -1
        found = 10 * found + (text[i] - c'0')
    return found


cdef bint days_since_epoch(int64_t year, int64_t month, int64_t day, int64_t* days) noexcept nogil:
    """Compute days since 1970 for the years 1700 to 2200; return False for other dates."""
    if not (1700 <= year <= 2200 and 1 <= month <= 12 and 1 <= day):
        return False
    cdef bint leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    cdef int64_t last = 31 - (month in (4, 6, 9, 11))
    if month == 2:
        last = 28 + leap
    if day > last:
        return False
    # Years begin in March, so that the leap day is the last of its year.
    cdef int64_t y = year - (month <= 2)
    cdef int64_t m = month + 9 if month <= 2 else month - 3
    days[0] = 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 1 - 719468
    return True


cdef bint scan_moment(const char* s, Py_ssize_t n, int64_t* ns, bint* aware) noexcept nogil:
    """Parse YYYY-MM-DD[ HH:MM[:SS[.digits]][Z|+HH:MM]], with a blank or T before the time."""
    cdef int64_t days = 0, hour = 0, minute = 0, second = 0, part = 0, shift = 0
    cdef Py_ssize_t i, k
    aware[0] = False
    if n < 10 or s[4] != c'-' or s[7] != c'-':
        return False
    if not days_since_epoch(
            parse_digits(s, 4), parse_digits(s + 5, 2), parse_digits(s + 8, 2), &days):
        return False
    if n > 10:
        if n < 16 or not (s[10] == c' ' or s[10] == c'T') or s[13] != c':':
            return False
        hour, minute, i = parse_digits(s + 11, 2), parse_digits(s + 14, 2), 16
        if n >= 19 and s[16] == c':':
            second, i = parse_digits(s + 17, 2), 19
            if n > 20 and s[19] == c'.':
                k = 20
                while k < n and c'0' <= s[k] <= c'9':
                    k += 1
                if k - 20 > 9 or k == 20:
                    return False
                part, i = parse_digits(s + 20, k - 20), k
                for k in range(k - 20, 9):
                    part *= 10
        if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
            return False
        if i < n:
            aware[0] = True
            if n - i == 6 and s[i + 3] == c':' and (s[i] == c'+' or s[i] == c'-'):
                if not (0 <= parse_digits(s + i + 1, 2) <= 23
                        and 0 <= parse_digits(s + i + 4, 2) <= 59):
                    return False
                shift = 3600 * parse_digits(s + i + 1, 2) + 60 * parse_digits(s + i + 4, 2)
                if s[i] == c'-':
                    shift = -shift
            elif not (n - i == 1 and s[i] == c'Z'):
                return False
    ns[0] = (86400 * days + 3600 * hour + 60 * minute + second - shift) * SECOND + part
    return True


cdef bint scan_duration(const char* s, Py_ssize_t n, int64_t* ns) noexcept nogil:
    """Parse [D-]H:MM:SS, or integers of at most five digits with units, as in 2h30m."""
    cdef int64_t number, total = 0
    cdef int seen = 0, unit
    cdef Py_ssize_t i = 0, k, colon = -1
    for k in range(n):
        if s[k] == c':':
            colon = k
            break
    if colon >= 0:
        for k in range(colon):
            if s[k] == c'-':
                if (not 1 <= k <= 5 or parse_digits(s, k) < 0
                        or parse_digits(s + k + 1, colon - k - 1) > 23):
                    return False
                total, i = 24 * parse_digits(s, k), k + 1
        if not 1 <= colon - i <= 5 or n != colon + 6 or s[colon + 3] != c':':
            return False
        number = parse_digits(s + i, colon - i)
        if not (number >= 0 and 0 <= parse_digits(s + colon + 1, 2) <= 59
                and 0 <= parse_digits(s + colon + 4, 2) <= 59):
            return False
        total = 3600 * (total + number) + 60 * parse_digits(s + colon + 1, 2)
        ns[0] = (total + parse_digits(s + colon + 4, 2)) * SECOND
        return True
    if n == 0:
        return False
    while i < n:
        k = i
        while k < n and c'0' <= s[k] <= c'9':
            k += 1
        if not 1 <= k - i <= 5 or k == n:
            return False
        number, i = parse_digits(s + i, k - i), k + 1
        if s[k] == c'd':
            unit, number = 1, number * 86400 * SECOND
        elif s[k] == c'h':
            unit, number = 2, number * 3600 * SECOND
        elif s[k] == c's':
            unit, number = 4, number * SECOND
        elif s[k] == c'm' and not (i < n and s[i] == c's'):
            unit, number = 8, number * 60 * SECOND
            if i + 1 < n and s[i] == c'i' and s[i + 1] == c'n':
                i += 2
        else:
            return False
        if seen & unit or (i < n and not c'0' <= s[i] <= c'9'):
            return False
        seen |= unit
        total += number
    ns[0] = total
    return True


cdef int64_t numpy_ns(object value) noexcept:
    """Return nanoseconds of a datetime64 or timedelta64; INT64_MIN: not supported here."""
    cdef PyDatetimeScalarObject* scalar = <PyDatetimeScalarObject*>value
    cdef int64_t count = scalar.obval, size
    cdef cnp.NPY_DATETIMEUNIT unit = scalar.obmeta.base
    if unit == cnp.NPY_FR_D:
        size = 86400 * SECOND
    elif unit == cnp.NPY_FR_h:
        size = 3600 * SECOND
    elif unit == cnp.NPY_FR_m:
        size = 60 * SECOND
    elif unit == cnp.NPY_FR_s:
        size = SECOND
    elif unit == cnp.NPY_FR_ms:
        size = 1_000_000
    elif unit == cnp.NPY_FR_us:
        size = 1000
    elif unit == cnp.NPY_FR_ns:
        size = 1
    else:
        return INT64_MIN
    size *= scalar.obmeta.num
    if scalar.obmeta.num > 1000 or not -(1 << 62) // size < count < (1 << 62) // size:
        return INT64_MIN  # out of range, or NaT
    return count * size


cdef Moment make_moment(int64_t ns, bint aware, object fold, object value):
    cdef Moment found = Moment.__new__(Moment)
    found.short_ns, found.aware, found.fold, found.value = ns, aware, fold, value
    return found


cdef Moment parse_moment(object value):
    cdef const char* text
    cdef Py_ssize_t size = 0
    cdef int64_t ns = 0, days = 0, shift = 0
    cdef bint aware = False
    if PyUnicode_CheckExact(value):
        if not value.isascii():
            return None
        text = PyUnicode_AsUTF8AndSize(value, &size)
        return make_moment(ns, aware, None, value) if scan_moment(text, size, &ns, &aware) else None
    if cnp.is_datetime64_object(value):
        ns = numpy_ns(value)
        return None if ns == INT64_MIN else make_moment(ns, False, None, value)
    if not cdt.PyDateTime_CheckExact(value):
        return None
    if not days_since_epoch(cdt.datetime_year(value), cdt.datetime_month(value),
                            cdt.datetime_day(value), &days):
        return None
    ns = 1000 * cdt.datetime_microsecond(value) + SECOND * (
        86400 * days + 3600 * cdt.datetime_hour(value) + 60 * cdt.datetime_minute(value)
        + cdt.datetime_second(value))
    zone = cdt.datetime_tzinfo(value)
    if zone is None:
        return make_moment(ns, False, cdt.datetime_fold(value) != 0, value)
    if type(zone) is FIXED_OFFSET:
        offset = value.utcoffset()
        if cdt.timedelta_microseconds(offset):
            return None
        shift = <int64_t>86400 * cdt.timedelta_days(offset) + cdt.timedelta_seconds(offset)
    elif type(zone) is zone_class():
        if not zone_offset(ns, zone, cdt.datetime_fold(value), &shift):
            return None
    else:
        return None
    return make_moment(ns - shift * SECOND, True, None, value)


cdef object zone_class():
    """Return ZoneInfo if it is imported, else None; no date can have a ZoneInfo before that."""
    module = sys.modules.get("zoneinfo")
    return None if module is None else module.ZoneInfo


cdef Duration parse_duration(object value):
    cdef const char* text
    cdef Py_ssize_t size = 0
    cdef int64_t ns = -1
    if PyUnicode_CheckExact(value):
        if not value.isascii():
            return None
        text = PyUnicode_AsUTF8AndSize(value, &size)
        if not scan_duration(text, size, &ns):
            return None
    elif cnp.is_timedelta64_object(value):
        ns = numpy_ns(value)
    elif type(value) is dt.timedelta and 0 <= cdt.timedelta_days(value) < 100_000:
        ns = SECOND * (<int64_t>86400 * cdt.timedelta_days(value) + cdt.timedelta_seconds(value))
        ns += 1000 * cdt.timedelta_microseconds(value)
    if ns < 0:
        return None
    cdef Duration found = Duration.__new__(Duration)
    found.short_ns, found.value = ns, value
    return found


# --- zones

cdef class OffsetTable:
    """The UTC offsets of a zone in about one year, each with its span of local time in seconds."""
    cdef vector[int64_t] begins, ends, offsets
    cdef object zone


# (address of a zone, year): OffsetTable; a table owns its zone, so the address stays valid.
cdef dict OFFSET_TABLES = {}


cdef OffsetTable find_offset_table(object zone, int64_t year):
    key = id(zone), year
    cdef OffsetTable found = OFFSET_TABLES.get(key)
    if found is None:
        found = OffsetTable.__new__(OffsetTable)
        found.zone = zone
        at, offsets = (values.tolist() for values in adapter("segments")(zone, year))
        for i, (begin, offset) in enumerate(zip(at, offsets)):
            found.begins.push_back(begin + offset)
            found.ends.push_back((at[i + 1] if i + 1 < len(at) else 1 << 62) + offset)
            found.offsets.push_back(offset)
        if len(OFFSET_TABLES) >= 1024:
            OFFSET_TABLES.clear()
        OFFSET_TABLES[key] = found
    return found


cdef bint zone_offset(int64_t wall, object zone, int fold, int64_t* shift) except -1:
    """Compute a zone's offset from UTC in seconds at a local time in nanoseconds.

    Returns False if the local time does not exist, or occurs twice and `fold` is -1
    (not specified).
    """
    cdef int64_t second = wall // SECOND - (wall % SECOND < 0)
    cdef int64_t days = second // 86400 - (second % 86400 < 0), first = 0
    cdef int64_t year = 1970 + days * 400 // 146097  # or an adjacent year
    if days_since_epoch(year, 1, 1, &first) and first > days:
        year -= 1
    elif days_since_epoch(year + 1, 1, 1, &first) and first <= days:
        year += 1
    cdef OffsetTable table = find_offset_table(zone, year)
    cdef size_t i = 0, last
    while i < table.ends.size() and table.ends[i] <= second:
        i += 1
    if i == table.ends.size() or table.begins[i] > second:
        return False  # the local time does not exist
    last = i
    while last + 1 < table.begins.size() and table.begins[last + 1] <= second:
        last += 1
    if last > i:
        if fold < 0 or last > i + 1:
            return False
        i += fold
    shift[0] = table.offsets[i]
    return True


# --- numbers

cdef class Scale:
    """Scale(origin, tick, per, zone)
--

    The arithmetic of a `Clock`: converts nanoseconds to numbers, if all integers fit in 64 bits.

    `origin`: ticks of `tick` nanoseconds since 1970. `per`: ticks per time unit.
    """

    def __init__(self, origin, tick, per, zone):
        self.given = origin, tick, per, zone
        self.zone, self.quick = zone, abs(origin) < 1 << 62
        if self.quick:
            self.origin, self.tick, self.per = origin, tick, per

    def __reduce__(self):
        return Scale, self.given

    cdef bint convert(self, TimeValue value, double* number) except -1:
        """Convert a time or duration; return False if it is not exact or not supported here.

        `Clock` then converts it or raises the error.
        """
        cdef int64_t ns = value.short_ns, shift = 0, ticks
        if value.long_ns is not None or not self.quick:
            return False
        cdef Moment time
        if isinstance(value, Moment):
            time = <Moment>value
            if not time.aware:
                if self.zone is None or not zone_offset(
                        ns, self.zone, -1 if time.fold is None else time.fold, &shift):
                    return False
                ns -= shift * SECOND
        if ns % self.tick:
            return False
        ticks = ns // self.tick
        if isinstance(value, Moment):
            ticks -= self.origin
        if not -MAX_EXACT <= ticks <= MAX_EXACT:
            return False
        number[0] = <double>ticks / self.per
        return <int64_t>rint(number[0] * self.per) == ticks

    def number(self, TimeValue value not None):
        """Return the number of a time or duration; None if `Clock` must convert it."""
        cdef double found = 0
        return found if self.convert(value, &found) else None
