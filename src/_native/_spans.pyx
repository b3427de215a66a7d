"""Conversion of spans of free and booked time between kernel vectors and SPAN arrays."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

SPAN = np.dtype([("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8")], align=True)
#: Closed time, one row for each node and reason. `disabled`: closed by `disable`, not `reserve`.
CLOSURE = np.dtype([("node", "i4"), ("start", "f8"), ("end", "f8"), ("owner", "U1"),
                    ("disabled", "?")], align=True)


def overlap(free, booked):
    """Return True if two spans of one node overlap; both arrays are sorted by (node, start).

    Merges the arrays in O(len(free) + len(booked)).
    """
    cdef const int32_t[:] nodes = free["node"], more_nodes = booked["node"]
    cdef const double[:] starts = free["start"], more_starts = booked["start"]
    cdef const double[:] ends = free["end"], more_ends = booked["end"]
    cdef size_t i = 0, j = 0, size = len(free), more = len(booked)
    cdef int32_t node, last = -1
    cdef double start, end, until = 0
    while i < size or j < more:
        if j == more or i < size and (nodes[i] < more_nodes[j] or (
                nodes[i] == more_nodes[j] and starts[i] < more_starts[j])):
            node, start, end = nodes[i], starts[i], ends[i]
            i += 1
        else:
            node, start, end = more_nodes[j], more_starts[j], more_ends[j]
            j += 1
        if node == last and start < until:
            return True
        last, until = node, end
    return False


cdef vector[double] prices_of(object table) except *:
    cdef vector[double] prices
    cdef const double[::1] column = np.ascontiguousarray(table["price"])
    if column.shape[0]:
        prices.assign(&column[0], &column[0] + column.shape[0])
    return prices


cdef int fill_spans(object table, vector[int32_t]& nodes, vector[Span]& spans) except -1:
    cdef const int64_t[:] row = table["row"]
    cdef const int32_t[:] node = table["node"]
    cdef const double[:] start = table["start"]
    cdef const double[:] end = table["end"]
    cdef size_t k, size = len(table)
    cdef Span span
    nodes.reserve(nodes.size() + size)
    spans.reserve(spans.size() + size)
    for k in range(size):
        span.origin_row, span.start, span.end = row[k], start[k], end[k]
        spans.push_back(span)
        nodes.push_back(node[k])
    return 0


cdef object span_table(const vector[int32_t]& nodes, const vector[Span]& spans):
    cdef size_t k, size = spans.size()
    cdef int64_t[::1] rows = np.empty(size, np.int64)
    cdef int32_t[::1] ids = np.empty(size, np.int32)
    cdef double[:, ::1] times = np.empty((2, size))
    for k in range(size):
        rows[k] = spans[k].origin_row
        ids[k] = nodes[k]
        times[0, k] = spans[k].start
        times[1, k] = spans[k].end
    out = np.empty(size, SPAN)
    out["row"], out["node"] = rows, ids
    out["start"], out["end"] = times
    return out
