# Conversion of spans of time and of windows between kernel vectors and Python.

cdef extern from "slotkern/pool/schedule.hpp" namespace "slotkern" nogil:
    cdef cppclass WindowParts:
        WindowParts()
        double start
        const Part* parts
        size_t n
    Status book_all(CSlotPool&, const vector[WindowParts]&, size_t&, size_t&) noexcept
    Status all_booked(CSlotPool&, const vector[WindowParts]&, size_t&, size_t&) noexcept
    Status release(CSlotPool&, double, const Part*, size_t, size_t&) noexcept
    Status advance(CSlotPool&, double) noexcept
    Status remove_node(CSlotPool&, int32_t) noexcept
    Status close_nodes(CSlotPool&, const vector[int32_t]&, const vector[int32_t]&,
                       const vector[Span]&) noexcept


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


cdef int collect_parts(list windows, vector[WindowParts]& out) except -1:
    cdef WindowParts parts
    cdef Window window
    for window in windows:
        parts.start, parts.parts, parts.n = window.start, window.parts, window.count
        out.push_back(parts)
    return 0


cdef str describe_part(Window window, size_t failed_part):
    cdef Part part = window.parts[failed_part]
    node, start, end = part.node, window.start, window.start + part.length
    if window.machine is not None:
        node = window.machine.names[node]
    if window.clock is not None:
        start, end = window.clock.datetime(start), window.clock.datetime(end)
    return f"node {node} from {start} to {end}"
