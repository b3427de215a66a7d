"""The door of dates and durations: what most people write is read here, at once.

That is ``2026-10-25 18:00``, ``4:00:00`` and ``2h30m``, and plain objects of `datetime` and
numpy, within the years 1700 to 2200. Everything else, and every error, is for
`slotkern.machine.moments`, `durations` and `clock`, which say the same of these.
"""

import datetime as dt
import sys

cimport numpy as cnp
from cpython cimport datetime as cdt
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport rint
from libc.stdint cimport INT64_MIN, int64_t
from libcpp.vector cimport vector

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
cdef int64_t WHOLE = 1 << 53  # up to here every integer is a float64
cdef object FIXED = dt.timezone


# --- what was said

cdef class Said:
    """Nanoseconds, and what they were said as."""

    @property
    def ns(self):
        """Whole nanoseconds."""
        return self.short_ns if self.long_ns is None else self.long_ns

    @property
    def said(self):
        """As text, for people."""
        return self.value if isinstance(self.value, str) else str(self.value)

    cdef int hold(self, object ns, object value) except -1:
        self.value = value
        if -(1 << 62) < ns < (1 << 62):
            self.short_ns = ns
        else:
            self.long_ns = ns
        return 0


cdef class Moment(Said):
    """Moment(ns, aware, fold, said)
--

    One time: nanoseconds since 1970 of UTC if `aware`, or else of the clock on the wall.

    `fold` says which of the hours that come twice is meant; None says nothing.
    """

    def __init__(self, ns, bint aware, fold, said):
        self.hold(ns, said)
        self.aware, self.fold = aware, fold


cdef class Duration(Said):
    """Duration(ns, said)
--

    A length of time in nanoseconds.
    """

    def __init__(self, ns, said):
        self.hold(ns, said)


cdef bint is_said(object value) except -1:
    """Whether a time or duration is no number: a date, text, a timedelta."""
    if isinstance(value, (float, int)) or value is None:
        return False
    if (isinstance(value, str) or cnp.is_datetime64_object(value)
            or cnp.is_timedelta64_object(value)):
        return True
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind in ("M", "m") if kind is not None else not hasattr(value, "__float__")


cdef Said meaning_of(object value, str name, bint lasts):
    """The moment or the duration that is said, or the error of what is none."""
    cdef Said found = quick_duration(value) if lasts else quick_moment(value)
    if found is not None:
        return found
    if lasts:
        from slotkern.machine.durations import duration_of as meaning
    else:
        from slotkern.machine.moments import moment_of as meaning
    return meaning(value, name)


def quick_meaning(value, bint lasts):
    """What is read here of a date or a duration, or None: for tests."""
    return quick_duration(value) if lasts else quick_moment(value)


# --- reading

cdef int64_t digits(const char* text, Py_ssize_t n) noexcept nogil:
    """The number of n digits, or -1."""
    cdef int64_t found = 0
    cdef Py_ssize_t i
    for i in range(n):
        if not c'0' <= text[i] <= c'9':
            return -1
        found = 10 * found + (text[i] - c'0')
    return found


cdef bint day_of(int64_t year, int64_t month, int64_t day, int64_t* days) noexcept nogil:
    """Days since 1970 of a date of the years 1700 to 2200; False if there is no such date."""
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


cdef bint read_moment(const char* s, Py_ssize_t n, int64_t* ns, bint* aware) noexcept nogil:
    """YYYY-MM-DD[ HH:MM[:SS[.digits]][Z|+HH:MM]], with a blank or T between the two."""
    cdef int64_t days = 0, hour = 0, minute = 0, second = 0, part = 0, shift = 0
    cdef Py_ssize_t i, k
    aware[0] = False
    if n < 10 or s[4] != c'-' or s[7] != c'-':
        return False
    if not day_of(digits(s, 4), digits(s + 5, 2), digits(s + 8, 2), &days):
        return False
    if n > 10:
        if n < 16 or not (s[10] == c' ' or s[10] == c'T') or s[13] != c':':
            return False
        hour, minute, i = digits(s + 11, 2), digits(s + 14, 2), 16
        if n >= 19 and s[16] == c':':
            second, i = digits(s + 17, 2), 19
            if n > 20 and s[19] == c'.':
                k = 20
                while k < n and c'0' <= s[k] <= c'9':
                    k += 1
                if k - 20 > 9 or k == 20:
                    return False
                part, i = digits(s + 20, k - 20), k
                for k in range(k - 20, 9):
                    part *= 10
        if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
            return False
        if i < n:
            aware[0] = True
            if n - i == 6 and s[i + 3] == c':' and (s[i] == c'+' or s[i] == c'-'):
                if not (0 <= digits(s + i + 1, 2) <= 23 and 0 <= digits(s + i + 4, 2) <= 59):
                    return False
                shift = 3600 * digits(s + i + 1, 2) + 60 * digits(s + i + 4, 2)
                if s[i] == c'-':
                    shift = -shift
            elif not (n - i == 1 and s[i] == c'Z'):
                return False
    ns[0] = (86400 * days + 3600 * hour + 60 * minute + second - shift) * SECOND + part
    return True


cdef bint read_duration(const char* s, Py_ssize_t n, int64_t* ns) noexcept nogil:
    """[D-]H:MM:SS, or numbers with units as in 2h30m: whole ones of at most five digits."""
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
                if not 1 <= k <= 5 or digits(s, k) < 0 or digits(s + k + 1, colon - k - 1) > 23:
                    return False
                total, i = 24 * digits(s, k), k + 1
        if not 1 <= colon - i <= 5 or n != colon + 6 or s[colon + 3] != c':':
            return False
        number = digits(s + i, colon - i)
        if not (number >= 0 and 0 <= digits(s + colon + 1, 2) <= 59
                and 0 <= digits(s + colon + 4, 2) <= 59):
            return False
        total = 3600 * (total + number) + 60 * digits(s + colon + 1, 2)
        ns[0] = (total + digits(s + colon + 4, 2)) * SECOND
        return True
    if n == 0:
        return False
    while i < n:
        k = i
        while k < n and c'0' <= s[k] <= c'9':
            k += 1
        if not 1 <= k - i <= 5 or k == n:
            return False
        number, i = digits(s + i, k - i), k + 1
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
    """Nanoseconds of a datetime64 or timedelta64, or INT64_MIN where they are not read here."""
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
        return INT64_MIN  # far away, or NaT
    return count * size


cdef Moment moment(int64_t ns, bint aware, object fold, object value):
    cdef Moment found = Moment.__new__(Moment)
    found.short_ns, found.aware, found.fold, found.value = ns, aware, fold, value
    return found


cdef Moment quick_moment(object value):
    cdef const char* text
    cdef Py_ssize_t size = 0
    cdef int64_t ns = 0, days = 0, shift = 0
    cdef bint aware = False
    if PyUnicode_CheckExact(value):
        if not value.isascii():
            return None
        text = PyUnicode_AsUTF8AndSize(value, &size)
        return moment(ns, aware, None, value) if read_moment(text, size, &ns, &aware) else None
    if cnp.is_datetime64_object(value):
        ns = numpy_ns(value)
        return None if ns == INT64_MIN else moment(ns, False, None, value)
    if not cdt.PyDateTime_CheckExact(value):
        return None
    if not day_of(cdt.datetime_year(value), cdt.datetime_month(value), cdt.datetime_day(value),
                  &days):
        return None
    ns = 1000 * cdt.datetime_microsecond(value) + SECOND * (
        86400 * days + 3600 * cdt.datetime_hour(value) + 60 * cdt.datetime_minute(value)
        + cdt.datetime_second(value))
    zone = cdt.datetime_tzinfo(value)
    if zone is None:
        return moment(ns, False, cdt.datetime_fold(value) != 0, value)
    if type(zone) is FIXED:
        offset = value.utcoffset()
        if cdt.timedelta_microseconds(offset):
            return None
        shift = <int64_t>86400 * cdt.timedelta_days(offset) + cdt.timedelta_seconds(offset)
    elif type(zone) is zone_class():
        if not offset_of(ns, zone, cdt.datetime_fold(value), &shift):
            return None
    else:
        return None
    return moment(ns - shift * SECOND, True, None, value)


cdef object zone_class():
    """ZoneInfo, if it is imported: no date has a zone of it before, and it takes a while."""
    module = sys.modules.get("zoneinfo")
    return None if module is None else module.ZoneInfo


cdef Duration quick_duration(object value):
    cdef const char* text
    cdef Py_ssize_t size = 0
    cdef int64_t ns = -1
    if PyUnicode_CheckExact(value):
        if not value.isascii():
            return None
        text = PyUnicode_AsUTF8AndSize(value, &size)
        if not read_duration(text, size, &ns):
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

cdef class Changes:
    """From which second on the wall up to which each offset holds, about a year of a zone."""
    cdef vector[int64_t] begins, ends, offsets
    cdef object zone


cdef dict KNOWN = {}  # (address of a zone, year): Changes, which keep the zone


cdef Changes changes_of(object zone, int64_t year):
    key = id(zone), year
    cdef Changes found = KNOWN.get(key)
    if found is None:
        from slotkern.machine.moments import segments
        found = Changes.__new__(Changes)
        found.zone = zone
        at, offsets = (values.tolist() for values in segments(zone, year))
        for i, (begin, offset) in enumerate(zip(at, offsets)):
            found.begins.push_back(begin + offset)
            found.ends.push_back((at[i + 1] if i + 1 < len(at) else 1 << 62) + offset)
            found.offsets.push_back(offset)
        if len(KNOWN) >= 1024:
            KNOWN.clear()
        KNOWN[key] = found
    return found


cdef bint offset_of(int64_t wall, object zone, int fold, int64_t* shift) except -1:
    """Seconds that a zone is ahead at a time on the wall in ns; False if that is in doubt.

    `fold` is -1 where nothing says which of two is meant.
    """
    cdef int64_t second = wall // SECOND - (wall % SECOND < 0)
    cdef int64_t days = second // 86400 - (second % 86400 < 0), first = 0
    cdef int64_t year = 1970 + days * 400 // 146097  # or a neighbour of it
    if day_of(year, 1, 1, &first) and first > days:
        year -= 1
    elif day_of(year + 1, 1, 1, &first) and first <= days:
        year += 1
    cdef Changes known = changes_of(zone, year)
    cdef size_t i = 0, last
    while i < known.ends.size() and known.ends[i] <= second:
        i += 1
    if i == known.ends.size() or known.begins[i] > second:
        return False  # skipped
    last = i
    while last + 1 < known.begins.size() and known.begins[last + 1] <= second:
        last += 1
    if last > i:
        if fold < 0 or last > i + 1:
            return False
        i += fold
    shift[0] = known.offsets[i]
    return True


# --- numbers

cdef class Scale:
    """Scale(origin, tick, per, zone)
--

    What numbers a clock has for times: the arithmetic of `Clock`, where integers are small.

    `origin` is in ticks of `tick` nanoseconds since 1970, and `per` of them are a unit.
    """

    def __init__(self, origin, tick, per, zone):
        self.given = origin, tick, per, zone
        self.zone, self.quick = zone, abs(origin) < 1 << 62
        if self.quick:
            self.origin, self.tick, self.per = origin, tick, per

    def __reduce__(self):
        return Scale, self.given

    cdef bint number_of(self, Said said, double* number) except -1:
        """The number of a time or duration; False if `Clock` has to say what is wrong."""
        cdef int64_t ns = said.short_ns, shift = 0, ticks
        if said.long_ns is not None or not self.quick:
            return False
        cdef Moment time
        if isinstance(said, Moment):
            time = <Moment>said
            if not time.aware:
                if self.zone is None or not offset_of(
                        ns, self.zone, -1 if time.fold is None else time.fold, &shift):
                    return False
                ns -= shift * SECOND
        if ns % self.tick:
            return False
        ticks = ns // self.tick
        if isinstance(said, Moment):
            ticks -= self.origin
        if not -WHOLE <= ticks <= WHOLE:
            return False
        number[0] = <double>ticks / self.per
        return <int64_t>rint(number[0] * self.per) == ticks

    def number(self, Said said not None):
        """The number of a time or duration, or None."""
        cdef double found = 0
        return found if self.number_of(said, &found) else None
