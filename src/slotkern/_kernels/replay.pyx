"""Binding of traces: parses them in chunks, and replays their jobs on a cluster."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t, int32_t, uint32_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status, status_error, InterruptScope, attempt

cnp.import_array()

cdef extern from "slotkern/replay/trace.hpp" namespace "slotkern::replay" nogil:
    cdef enum class LineFault(int):
        too_long
        field_count
        not_number
        not_integer
        too_large

    cdef cppclass BadLine:
        LineFault fault
        uint64_t line
        size_t field
        string text

    cdef cppclass Parser "slotkern::replay::TraceParser":
        Parser(const string&, char, cbool, cbool) except +
        Status feed(const char*, size_t) noexcept
        Status finish() noexcept
        size_t rows()
        const void* cells()
        uint64_t skipped()
        const vector[BadLine]& bad_lines()
        const string& comments()
        const vector[string]& words(size_t)
        uint64_t line_of(size_t)
        size_t extra()
        const vector[int64_t]& extra_codes()
        const vector[string]& extra_words(size_t)
        const string& names()

    cdef cppclass FieldValue:
        pass

    Status write_rows(const string&, const FieldValue*, size_t, string&) noexcept

    const size_t kMaxLineLength "slotkern::replay::TraceParser::kMaxLineLength"


def format_rows(cnp.ndarray rows not None):
    """Return contiguous rows, whose fields have 8 bytes each, as the lines of a trace."""
    dtype = rows.dtype
    cdef string form = "".join(dtype[name].kind for name in dtype.names).encode()
    cdef string text
    cdef const FieldValue* cells = <const FieldValue*>cnp.PyArray_DATA(rows)
    cdef size_t count = rows.shape[0]
    cdef Status status
    with nogil:
        status = write_rows(form, cells, count, text)
    if status != Status.ok:
        raise status_error(status, "write the rows")
    return <bytes>text


class LineError(ValueError):
    """An invalid line of a trace; the message does not name the file."""


@cython.final
cdef class TraceParser:
    """Parses the lines of a trace into rows of `dtype`, whose fields have 8 bytes each.

    Parameters
    ----------
    dtype : numpy.dtype
        The fields of a line: i8, f8, or, for the names in `words`, i8 dictionary codes.
    words : collection of str
        The fields that hold words.
    comment : str
        One character.
    skip : bool
        True: invalid lines are counted. False: an invalid line raises LineError.
    further : bool
        True: lines may have fields beyond `dtype`, as many as the header names.
    """

    cdef Parser* parser
    cdef readonly object dtype
    cdef object texts

    def __cinit__(self, dtype, words, str comment, bint skip, bint further=False):
        self.dtype, self.texts = np.dtype(dtype), frozenset(words)
        form = "".join("s" if name in self.texts else self.dtype[name].kind
                       for name in self.dtype.names)
        self.parser = new Parser(form.encode(), ord(comment), skip, further)

    def __dealloc__(self):
        del self.parser

    def feed(self, const unsigned char[::1] chunk not None):
        """Parse the next chunk; it may end within a line."""
        cdef Status status
        cdef size_t size = chunk.shape[0]
        if size == 0:
            return
        cdef const char* data = <const char*>&chunk[0]
        with nogil:
            status = self.parser.feed(data, size)
        self.check(status)

    def finish(self):
        """Parse the last line and return all rows as a structured array."""
        cdef Status status
        with nogil:
            status = self.parser.finish()
        self.check(status)
        rows = np.empty(self.parser.rows(), self.dtype)
        if len(rows):  # memcpy requires valid addresses even for 0 bytes
            memcpy(cnp.PyArray_DATA(<cnp.ndarray>rows), self.parser.cells(), rows.nbytes)
        return rows

    def line_of(self, size_t row):
        """Return the line number of a row."""
        return self.parser.line_of(row)

    @property
    def comments(self):
        """All comment lines, verbatim."""
        # Not copied to a std::string: it may be large, and bad_alloc here would end the process.
        cdef const char* text = self.parser.comments().data()
        return text[:self.parser.comments().size()].decode("latin-1")

    def further(self):
        """Return the codes and the words of each further field, as pairs."""
        cdef size_t count = self.parser.extra(), k, i
        cdef const vector[int64_t]* codes = &self.parser.extra_codes()
        table = np.empty((self.parser.rows(), count), np.int64)
        if table.size:
            memcpy(cnp.PyArray_DATA(<cnp.ndarray>table), codes.data(), table.nbytes)
        pairs = []
        for k in range(count):
            texts = []
            for i in range(self.parser.extra_words(k).size()):
                texts.append(self.parser.extra_words(k)[i].decode("latin-1"))
            pairs.append((np.ascontiguousarray(table[:, <Py_ssize_t>k]), tuple(texts)))
        return pairs

    @property
    def names(self):
        """The field names, if the first line has names instead of numbers."""
        return self.parser.names().decode("latin-1").split()

    @property
    def skipped(self):
        """The number of skipped lines."""
        return self.parser.skipped()

    @property
    def remarks(self):
        """Messages for the first few skipped lines."""
        return tuple(str(self.line_error(bad)) for bad in self.parser.bad_lines())

    @property
    def words(self):
        """The words of each field that holds words; a code is an index."""
        names = self.dtype.names
        found = {}
        cdef size_t field, k
        cdef list texts
        for field in range(len(names)):
            if names[<Py_ssize_t>field] in self.texts:
                texts = []
                for k in range(self.parser.words(field).size()):
                    texts.append(self.parser.words(field)[k].decode("latin-1"))
                found[names[<Py_ssize_t>field]] = tuple(texts)
        return found

    cdef int check(self, Status status) except -1:
        if status == Status.line_not_valid:
            raise self.line_error(self.parser.bad_lines()[0])
        if status != Status.ok:
            raise status_error(status, "read the trace")
        return 0

    cdef object line_error(self, const BadLine& bad):
        """Return the error for a line."""
        names = self.dtype.names
        if bad.fault == LineFault.too_long:
            reason = f"more than {kMaxLineLength:,} characters"
        elif bad.fault == LineFault.field_count:
            reason = f"{bad.field} fields, not {len(names) + self.parser.extra()}"
        else:
            cell = bad.text.decode("latin-1")
            what = "a number"
            if bad.fault == LineFault.too_large:
                what = "a number within 2**53"
            elif bad.fault == LineFault.not_integer:
                what = "an integer"
            reason = f"{names[<Py_ssize_t>bad.field]} {cell!r:.80} is not {what}"
        return LineError(f"line {bad.line}: {reason}")


cdef extern from "slotkern/base/backfill.hpp" namespace "slotkern" nogil:
    cdef enum class Backfill(int):
        none
        easy
        first_fit
        conservative

cdef extern from "slotkern/replay/replay.hpp" namespace "slotkern::replay" nogil:
    cdef cppclass JobColumns:
        const double* submit
        const double* run
        const double* estimate
        const int32_t* width
        size_t size

    cdef cppclass Chain:
        JobColumns given
        const int32_t* before
        const double* think
        const int32_t* user
        const double* key
        double* submit
        double* run
        double* estimate
        double* key_of
        int32_t* width
        int32_t* user_of

    cdef cppclass BlockedSpan:
        double start, end
        int32_t width

    cdef cppclass Machine:
        int32_t processors
        vector[BlockedSpan] blocked

    cdef struct ProcessorSpan:
        int32_t first, count

    cdef cppclass Placement:
        vector[uint64_t] first
        vector[uint32_t] count
        vector[ProcessorSpan] spans

    ctypedef void (*KeyFunction)(void*, double, const uint32_t*, size_t, double*) noexcept

    cdef cppclass QueueOrder:
        const double* fixed
        KeyFunction changing
        void* data

    cdef cppclass Usage:
        Usage(size_t, double, double)

    cdef cppclass Multifactor:
        double age, size, share, longest_wait
        const int32_t* user
        JobColumns jobs
        double processors
        Usage usage

    KeyFunction multifactor_keys "slotkern::replay::Multifactor::keys"

    ctypedef int32_t (*PriorityFunction)(
        double, double, double, int64_t, int64_t, double*) noexcept

    cdef cppclass UserPriority:
        PriorityFunction function
        const int32_t* user
        JobColumns jobs
        cbool failed
        uint32_t failed_job

    KeyFunction user_keys "slotkern::replay::UserPriority::keys"

    cdef cppclass CppReplay "slotkern::replay::Replay":
        CppReplay(const JobColumns&, const Machine&, Backfill, const QueueOrder&, Usage*,
                  const int32_t*, cbool, const Chain&) except +
        Status run(size_t) noexcept
        const vector[uint32_t]& row_of()
        const vector[double]& start()
        const Placement& placement()
        size_t submitted()
        size_t most_waiting()

cdef extern from *:
    """
    #include <memory>
    #include "slotkern/replay/replay.hpp"
    namespace slotkern::replay {
    // Cython cannot write this initialization.
    inline std::unique_ptr<Multifactor> make_multifactor(
        double age, double size, double share, double longest_wait, const std::int32_t* user,
        const JobColumns& jobs, double processors, std::size_t users, double origin,
        double half_life) {
      return std::unique_ptr<Multifactor>(new Multifactor{
          age, size, share, longest_wait, user, jobs, processors, Usage(users, origin, half_life)});
    }
    }
    """
    unique_ptr[Multifactor] make_multifactor "slotkern::replay::make_multifactor"(
        double, double, double, double, const int32_t*, const JobColumns&, double, size_t, double,
        double) except +

#: The kinds of backfilling, by name.
BACKFILLING = {"none": <int>Backfill.none, "easy": <int>Backfill.easy,
               "first-fit": <int>Backfill.first_fit,
               "conservative": <int>Backfill.conservative}

#: The signature of a compiled priority function, and the name of its capsule.
PRIORITY_SIGNATURE = "int32(float64,float64,float64,int64,int64,float64*)"

# Time steps between two polls for signals: a few hundred microseconds, or a tenth of a second
# with thousands of waiting jobs.
cdef size_t EVENTS = 512


cdef int fill(cnp.ndarray to, const void* source) except -1:
    """Fill the array from `source`; memcpy requires valid addresses even for 0 bytes."""
    if to.size:
        memcpy(cnp.PyArray_DATA(to), source, to.nbytes)
    return 0


def replay(const double[::1] submit not None, const double[::1] run not None,
           const double[::1] estimate not None, const int32_t[::1] width not None,
           int32_t processors,
           const double[::1] blocked_start not None, const double[::1] blocked_end not None,
           const int32_t[::1] blocked_width not None, str backfill not None, *,
           const int32_t[::1] user=None, const double[::1] key=None, multifactor=None,
           function=None, bint nodes=True,
           const int32_t[::1] before=None, const double[::1] think=None, progress=None):
    """Replay jobs that are sorted by submission; all arguments must be valid.

    Parameters
    ----------
    submit, run, estimate, width : ndarray
        One entry for each job.
    user : ndarray of int32, optional
        The user of each job, from 0; needed for priorities that depend on users.
    key : ndarray of float64, optional
        Queue order: the smallest key first; by default the order of submission.
    multifactor : tuple, optional
        The weights of age, size and share, longest wait, half-life, and number of users.
    function : capsule, optional
        A compiled priority function.
    before, think : ndarray of int32, of float64, optional
        The row that each row depends on, or -1 (acyclic), and the seconds from the end of
        that job to the submission.
    progress : callable, optional
        Called at intervals with the number of submitted jobs.

    Returns
    -------
    start : ndarray of float64
    first, count : ndarray of int64
        The spans of processors of each job, then of each blocked span.
    spans : ndarray of int32, shape (spans, 2)
        First processor and number of processors.
    most_waiting : int
    """
    cdef JobColumns jobs
    jobs.size = submit.shape[0]
    if jobs.size:
        jobs.submit, jobs.run, jobs.estimate = &submit[0], &run[0], &estimate[0]
        jobs.width = &width[0]
    cdef const int32_t* users = NULL
    cdef const double* keys = NULL
    if user is not None and user.shape[0]:
        users = &user[0]
    if key is not None and key.shape[0]:
        keys = &key[0]
    cdef Chain chain
    cdef double[:, ::1] times
    cdef int32_t[:, ::1] numbers
    if before is not None and jobs.size:
        times, numbers = np.empty((4, jobs.size)), np.empty((2, jobs.size), np.int32)
        chain.given, chain.before, chain.think = jobs, &before[0], &think[0]
        chain.user, chain.key = users, keys
        chain.submit, chain.run, chain.estimate = &times[0, 0], &times[1, 0], &times[2, 0]
        chain.key_of, chain.width, chain.user_of = &times[3, 0], &numbers[0, 0], &numbers[1, 0]
        jobs.submit, jobs.run, jobs.estimate = chain.submit, chain.run, chain.estimate
        jobs.width = chain.width
        if users:
            users = chain.user_of
        if keys:
            keys = chain.key_of
    cdef Machine machine
    machine.processors = processors
    cdef BlockedSpan span
    cdef Py_ssize_t i
    for i in range(blocked_start.shape[0]):
        span.start, span.end, span.width = blocked_start[i], blocked_end[i], blocked_width[i]
        machine.blocked.push_back(span)

    cdef QueueOrder order
    cdef unique_ptr[Multifactor] weights
    cdef UserPriority own
    cdef Usage* usage = NULL
    own.failed = False
    if keys:
        order.fixed = keys
    elif multifactor is not None and jobs.size:
        age, size, share, longest_wait, half_life, count = multifactor
        weights = make_multifactor(age, size, share, longest_wait, users, jobs, processors,
                                   count, submit[0], half_life)
        usage = &weights.get().usage
        order.changing, order.data = multifactor_keys, weights.get()
    elif function is not None:
        own.function = <PriorityFunction>PyCapsule_GetPointer(
            function, PRIORITY_SIGNATURE.encode())
        own.user, own.jobs = users, jobs
        order.changing, order.data = user_keys, &own

    cdef unique_ptr[CppReplay] machinery
    cdef Backfill kind = <Backfill><int>BACKFILLING[backfill]
    machinery.reset(new CppReplay(jobs, machine, kind, order, usage, users, nodes,
                                  chain))
    cdef Status status = Status.ok
    cdef InterruptScope interrupts
    cdef size_t slices = 0
    cdef CppReplay* it = machinery.get()
    while attempt(interrupts, status):
        with nogil:
            status = it.run(EVENTS)
        if own.failed:
            raise ValueError(f"the priority of job {own.failed_job} (from 0, in the order of "
                             "submission) raised or is not a number")
        slices += 1
        if progress is not None and (slices % 64 == 0 or status == Status.ok):
            progress(it.submitted())
    if status != Status.ok:
        raise status_error(status, "replay the jobs")

    start = np.empty(jobs.size)
    cdef const Placement* placement = &it.placement()
    first = np.empty(placement.first.size(), np.int64)
    number = np.empty(placement.count.size(), np.uint32)
    spans = np.empty((placement.spans.size(), 2), np.int32)
    fill(start, it.start().data())
    fill(first, placement.first.data())
    fill(number, placement.count.data())
    fill(spans, placement.spans.data())
    if chain.before:
        rows = np.empty(jobs.size, np.uint32)
        fill(rows, it.row_of().data())
        for column in (start, first, number):  # blocked spans stay behind the jobs
            if len(column):
                column[rows] = column[:jobs.size].copy()
    return start, first, number.astype(np.int64), spans, it.most_waiting()
