# Conversion of spans of free and booked time between kernel vectors and SPAN arrays.

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
