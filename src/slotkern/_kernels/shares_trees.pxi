# TreeSearch: searches for groups of nested levels.

@cython.auto_pickle(False)
cdef class TreeSearch:
    """Searches for groups of a tree of hosts, of one demand.

    Parameters
    ----------
    core : ShareCore
        Its hosts have one performance.
    tree : int
        The result of `ShareCore.add_tree` of this core.
    demand : array of int32, shape (resources,) or (hosts, resources)
        What each part takes of its host; one row for each host if parts are whole hosts.
    prices : array of float64, shape (hosts,)
        Price of one part on each host, for each time unit.
    counts : sequence of int
        For each level, from the coarsest: the groups in each group of the level above.
    whole : bool
        True: the finest level, which has no count, is that of groups that are taken whole.
    stack : int
        The most parts on one host.
    share : Amounts or None
        The attribute of the windows.
    kind : type
        The type of the windows: `ShareWindow`.

    Raises
    ------
    ValueError
        For hosts of unlike performance.
    """

    def __init__(self, ShareCore core not None, size_t tree, demand, prices, counts, bint whole,
                 int32_t stack, share, kind):
        cdef const int32_t[:, ::1] amounts = np.atleast_2d(demand)
        cdef const double[::1] price = prices
        performance = core.table["performance"]
        if np.any(performance != performance[:1]):
            raise ValueError(
                "tree and whole need nodes of one performance, but these have "
                f"{performance.min():g} to {performance.max():g}")
        self.core, self.whole, self.share, self.kind = core, whole, share, kind
        self.counts = counts
        self.groups = min(math.prod(counts), 1 << 62)  # above all numbers of nodes
        self.arrays = amounts, price
        cdef bint by_host = amounts.shape[0] > 1 or share is None
        self.asked.demand = PartAmounts(&amounts[0, 0], amounts.shape[1] if by_host else 0)
        self.asked.prices, self.asked.tree, self.asked.stack = &price[0], tree, stack

    def check(self, Request request not None):
        """Raise ValueError if `nodes` is not a multiple of the product of the counts."""
        if request.query.n % self.groups != 0:
            unit = "whole groups" if self.whole else "nodes"
            raise ValueError(
                f"nodes={request.query.n} cannot be divided among {self.groups} groups of the "
                f"tree: give a multiple of {self.groups} {unit}")

    cdef int fill(self, Request request, vector[int32_t]& counts, TreeRequest& out) except -1:
        """Write the search for a request without its query; `out` points to `counts`."""
        self.check(request)
        cdef int64_t each = request.query.n // self.groups
        counts = self.counts
        if self.whole:
            counts.push_back(<int32_t>each)
        out = self.asked
        out.counts = counts.data()
        out.parts = 0 if self.whole else <int32_t>each
        return 0

    cdef Answer search(self, Request request, size_t& parts) except *:
        """Search once; `parts` becomes the number of parts of the answer."""
        cdef Request compiled = self.core.compile(request)
        cdef Answer answer
        cdef InterruptScope interrupts
        cdef TreeRequest asked  # threads share this object
        cdef vector[int32_t] counts
        self.fill(request, counts, asked)
        asked.query = &compiled.query
        while attempt(interrupts, answer.status):
            self.core.lock()
            with nogil:
                answer = find_tree(self.core.pool, asked, parts)
                self.core.mutex.unlock()
        if answer.status != Status.ok and answer.status != Status.none:
            raise search_error(answer.status, compiled.query)
        return answer

    def find(self, Request request not None, str criterion, str shape):
        """Return the window of the least start, as a window of shares, or None.

        Parameters
        ----------
        request : Request
            Its nodes are the parts of all groups together, or whole groups.
        criterion : {"start", "finish"}
            With one performance both have the same windows.
        shape : {"square", "ragged"}
            The attribute of the window.

        Raises
        ------
        ValueError
            As `check`.

        Notes
        -----
        See `slotkern/shares/trees.hpp` for the cost.
        """
        cdef size_t parts = 0
        cdef Answer answer = self.search(request, parts)
        if answer.status == Status.none:
            return None
        return self.window(answer, parts, request, criterion, shape)

    def window_of(self, Bookings table not None, size_t row, Request request not None):
        """Return the window that `ShareCore.schedule` booked for a request with this search."""
        cdef Answer answer
        answer.found = table.windows.found[row]
        answer.parts = table.windows.parts_of(row)
        return self.window(answer, table.windows.count(row), request, table.criterion, table.shape)

    cdef Window window(self, const Answer& answer, size_t parts, Request request, str criterion,
                       str shape):
        """Return the window with one row for each host, and the number of parts of each."""
        cdef Part* rows = <Part*>malloc(parts * sizeof(Part))
        cdef size_t i, count = 0
        cdef list counts = []
        cdef Window window = self.kind.__new__(self.kind)
        if rows == NULL:
            raise MemoryError
        window.parts = rows  # freed by the window
        for i in range(parts):
            if count and answer.parts[i].row == rows[count - 1].row:
                rows[count - 1].cost += answer.parts[i].cost
                counts[count - 1] += 1
                continue
            rows[count] = answer.parts[i]
            counts.append(1)
            count += 1
        window.count = count
        window.start, window.runtime = answer.found.start, answer.found.runtime
        window.finish = answer.found.start + answer.found.runtime
        window.cost, window.processor_time = answer.found.cost, answer.found.processor_time
        window.value = window.bound = window.start if criterion == "start" else window.finish
        window.proven, window.proven_over = True, ALL_STARTS
        window.criterion, window.shape = criterion, shape
        window.name, window.context = request.name, self.core.hosts.context
        window.special = counted_fields(request)
        window.share = self.share
        window.counts = tuple(counts) if self.asked.stack > 1 else None
        return window
