"""Binding of the trace parser: takes a trace in chunks, returns rows."""

import numpy as np

cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from slotkern._base cimport Status, status_error

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
