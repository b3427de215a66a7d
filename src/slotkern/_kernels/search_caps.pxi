# Searches under the capacities of a pool, which limit what windows use at the same time.
#
# The free amounts are step functions of time. A window of a request fits if enough of all is free
# from its start to its finish, so it lies in one of the maximal spans with enough, and the windows
# of a span are those of an ordinary search with its first time as `earliest` and its last as
# `deadline`. The plain search comes first: it stores bounds, which searches with a deadline do not,
# and its window is the answer if enough is free during it.

cdef class SpanSearch:
    """One search that is repeated between other times."""

    cdef object criterion
    cdef Request request  # without the fields of capacities

    cdef Window run(self, double earliest, double deadline):
        """Return the best window that starts at `earliest` or later and ends by `deadline`."""
        cdef Query query = self.request.query
        query.earliest = max(query.earliest, earliest)
        query.deadline = min(query.deadline, deadline)
        if query.earliest > query.latest or query.earliest > query.deadline:
            return None
        return self.search(query)

    cdef Window search(self, Query query):
        """Return the best window of the request with another query."""
        raise NotImplementedError

    cdef Window find(self, Caps capacities, vector[CapacityUse]& uses, double runtime):
        """Return the best window during which enough is free; `runtime` is a lower bound."""
        if type(self.criterion) is str and self.criterion in ("first", "start", "finish"):
            return first_within(self, capacities.now, uses, runtime)
        return best_within(self, capacities.now, uses, runtime)


cdef class FunctionSpanSearch(SpanSearch):
    """A search by a function of the request."""

    cdef object function

    cdef Window search(self, Query query):
        cdef Request part = copy_request(self.request)
        part.query = query
        return self.function(part)


cdef class SlotSpanSearch(SpanSearch):
    """A search of slots; for a kernel search the request is compiled."""

    cdef object slots, options, max_work
    cdef PreparedSlots pool
    cdef str shape
    cdef int which  # index of a criterion of one sweep, or -1
    cdef ShapeKind form

    cdef Window search(self, Query query):
        if self.which >= 0:
            return search_query(self.pool, query, self.criterion, self.which, self.form,
                                self.shape, self.max_work)
        cdef Request part = copy_request(self.request)
        part.query = query
        return find_by_options(self.slots, part, self.criterion, self.shape, self.options)


def find_under(PreparedSlots pool not None, Request request not None, criterion, *, str shape,
               Caps capacities, options=None):
    """Return the best window of a pool under other capacities and quotas than its own."""
    return find_within_capacities(pool, capacities, request, criterion, shape, options)


def find_by_spans(find, Request request not None, criterion, Caps capacities,
                  double performance):
    """Return the best window of a search that keeps no capacities, among those that keep them.

    Parameters
    ----------
    find : function
        Returns the best window of a Request by this criterion, or None.
    request : Request
        With times as numbers; its uses are whole numbers.
    criterion : Criterion
    capacities : Caps or None
    performance : float
        The largest of the nodes, for lower bounds of runtimes.

    Raises
    ------
    ValueError
        For uses of a capacity that the pool does not have.
    """
    cdef vector[CapacityUse] uses
    cdef list counters = fill_uses(capacities, request, uses)  # keeps `uses` alive
    cdef FunctionSpanSearch search = FunctionSpanSearch.__new__(FunctionSpanSearch)
    search.function, search.criterion, search.request = find, criterion, uncounted(request)
    if uses.empty():
        return find(search.request)
    return search.find(capacities, uses, request.query.length(performance))


cdef Window find_within_capacities(PreparedSlots pool, Caps capacities, Request request,
                                   criterion, str shape, options):
    """Return the best window of a pool that keeps capacities and quotas, or None.

    The request has its times as numbers.
    """
    cdef vector[CapacityUse] uses
    cdef list counters = fill_uses(capacities, request, uses)  # keeps `uses` alive
    if request.uses is not None and any([type(each) is str for each in request.uses.values()]):
        return adapter("find_by_sums")(pool, request, criterion, shape, capacities, options)
    cdef Request plain = uncounted(request)
    if uses.empty():
        return find_by_options(pool, plain, criterion, shape, options)
    cdef object method = "exact" if options is None else options.method
    if method != "exact":
        raise ValueError(f"method {method!r} does not keep capacities and quotas of a pool; "
                         "method 'exact' does")
    cdef SlotSpanSearch search = SlotSpanSearch.__new__(SlotSpanSearch)
    search.slots, search.criterion, search.shape = pool, criterion, shape
    search.options, search.pool, search.request, search.which = options, pool, plain, -1
    search.form = parse_shape(shape)
    index = INDEX.get(criterion) if type(criterion) is str else None
    if index is not None and (options is None or options.is_plain) and (
            not pool.changed or is_booking_invariant(plain)):
        search.which, search.request = index, pool.compile_request(plain)
        search.max_work = None if options is None else options.max_work
    cdef double runtime = request.query.length(capacities.largest_performance(pool.table))
    return search.find(capacities, uses, runtime)


cdef Window first_within(SpanSearch search, double now, vector[CapacityUse]& uses,
                         double runtime):
    """Return the first window by start or by finish: that of the first span that has one."""
    cdef double first = max(search.request.query.earliest, now)
    cdef bint by_finish = search.criterion == "finish"
    cdef TimeSpan span
    cdef Window found, plain = search.run(first, INFINITY)
    cdef int failed = 0
    while plain is not None:
        if have_enough(uses, plain.start, plain.finish):
            return plain
        if not by_finish:
            first = max(first, plain.bound)
        while True:
            span = span_with_enough(uses, first, runtime)
            if span.first == INFINITY:
                return None
            # A window that ends before the plain one, or starts before it, does not exist.
            if not (by_finish and span.last < plain.bound):
                found = search.run(span.first, span.last)
                if found is not None:
                    return found
                failed += 1
            first = span.last
            if first > search.request.query.latest or first >= search.request.query.deadline:
                return None
            if failed == 3:
                break
        failed = 0
        plain = search.run(first, INFINITY)
    return None


cdef Window best_within(SpanSearch search, double now, vector[CapacityUse]& uses,
                        double runtime):
    """Return the best window of all spans; of equal ones the first."""
    cdef double first = max(search.request.query.earliest, now)
    cdef TimeSpan span
    cdef Window found, best = None, plain = search.run(first, INFINITY)
    if plain is None or have_enough(uses, plain.start, plain.finish):
        return plain
    cdef int sign = 1 if is_maximized(search.criterion) else -1
    cdef double bound = -INFINITY  # times the sign, as in the comparisons below
    # A bound on windows that start with a slot does not hold for those that start with a span.
    cdef bint everywhere = plain.proven_over == ALL_STARTS
    while True:
        span = span_with_enough(uses, first, runtime)
        if span.first == INFINITY:
            break
        found = search.run(span.first, span.last)
        if found is not None:
            bound = max(bound, sign * found.bound)
            if best is None or sign * found.value > sign * best.value:
                best = found
            if everywhere and sign * best.value >= sign * plain.bound:
                break
        first = span.last
        if first > search.request.query.latest or first >= search.request.query.deadline:
            break
    if best is not None:
        if everywhere:
            bound = min(bound, sign * plain.bound)
        bound = max(bound, sign * best.value)
        best.bound, best.proven = sign * bound, sign * bound == best.value
    return best


cdef bint is_maximized(object criterion) except -1:
    """Return whether larger values of a criterion are better."""
    if type(criterion) is str and criterion in INDEX:
        return False
    return adapter("is_maximized")(criterion)
