"""Binding of capacities: what the windows of a pool use at the same time, and its limits.

A `CapacityRule` limits the sum over windows of one amount: the nodes, or one of the named uses of their
requests. A capacity of the pool counts all windows; a quota those of one account, or of every
account by itself. All rules must hold. Amounts are whole numbers, times those of the pool.

A `Counter` is the free amount of a rule over time: its limit less what booked windows use. Only
code that holds the GIL reads or changes counters, so each method below is atomic. Without a GIL,
in a free-threaded Python, only one thread at a time may use a pool with rules.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t
from libcpp.atomic cimport atomic
from libcpp.vector cimport vector

from slotkern._kernels.request cimport Request, copy_request
from slotkern._kernels.windows cimport Window

from slotkern.foundation.checks import meant, quote

NODES = "nodes"
RESERVED = "reserved"  # criterion of windows that reserve time, which no rule counts

cdef atomic[uint64_t] EPOCHS  # number of the last epoch of any counter


cdef class Counter:
    """The free amount of a rule over time, for all windows that it counts together."""


cdef class CapacityRule:
    """A limit over time on what windows use at once.

    Attributes
    ----------
    what : str
        "nodes", or the name of a use.
    account : str or None
        None for a capacity of the pool; for a quota the account, or "*" for all.
    each : bool
        Whether every account has the limit by itself.
    when : str or None
        The hours of the week in which a quota holds, as given.
    steps : tuple of (float, int or None)
        The limit from each time on, ascending from -inf; None: no limit.
    weekly : int or None
        The limit in the hours `when`, also if the steps contain none of them.
    counters : dict of str to Counter
        By account, or by None if all windows are counted together.
    """

    def __init__(self, str what, account, bint each, when, steps, weekly=None):
        self.what, self.account, self.each, self.when = what, account, each, when
        self.weekly = weekly
        self.steps, self.counters = tuple(steps), {}
        cdef Py_ssize_t i
        cdef double end
        for i in range(len(self.steps)):
            start, amount = self.steps[i]
            end = self.steps[i + 1][0] if i + 1 < len(self.steps) else INFINITY
            self.limit.add(start, end, kUnlimited if amount is None else amount)

    @property
    def key(self):
        """The fields that no two rules of a pool share."""
        return self.what, self.account, self.each, self.when

    def __reduce__(self):
        return CapacityRule, (*self.key, self.steps, self.weekly)

    cdef Counter counter(self, object account):
        """Return the counter of an account, which is created at its first use."""
        key = (account or "") if self.each else None
        cdef Counter found = self.counters.get(key)
        if found is None:
            found = Counter.__new__(Counter)
            found.free = self.limit
            self.counters[key] = found
        return found

    cdef int64_t amount(self, int64_t nodes, object uses, object account) except -1:
        """Return how much the rule counts of a window; 0 if it does not count it."""
        if self.account is not None and self.account != "*" and self.account != account:
            return 0
        if self.what == NODES:
            return nodes
        amount = 0 if uses is None else uses.get(self.what, 0)
        return 1 if type(amount) is str else amount  # a sum over the parts: above 0, not known yet

    def spans(self, account=None):
        """Return (start, end, limit or None, used) of each span with constant amounts."""
        cdef Counter counter = self.counter(account)
        cdef list times = sorted({self.limit.time(i) for i in range(self.limit.size())}
                                 | {counter.free.time(i) for i in range(counter.free.size())})
        cdef list found = []
        cdef int64_t limit
        for i, start in enumerate(times):
            end = times[i + 1] if i + 1 < len(times) else INFINITY
            limit = self.limit.at(start)
            found.append((start, end, None if limit == kUnlimited else limit,
                          limit - counter.free.at(start)))
        return found


cdef class Caps:
    """Capacities and quotas of a pool, and the amounts that its booked windows use.

    Attributes
    ----------
    rules : tuple of CapacityRule
    names : frozenset of str
        The names of the capacities.
    now : float
        No earlier time counts.
    """

    def __cinit__(self):
        self.deferred = []

    def __init__(self, rules=(), charges=(), double now=-INFINITY):
        self.charges, self.now, self.purge_threshold = {}, now, 64
        self.paces = None
        for window, charge in charges:
            self.record(window, tuple(charge))
        self.set_rules(rules)

    def set_rules(self, rules):
        """Replace all rules, and count the booked windows again."""
        rules = tuple(rules)
        self.settle()
        self.rules = rules
        self.names = frozenset([rule.what for rule in rules if rule.account is None])
        self.version += 1
        self.recount()

    def set_rule(self, CapacityRule rule not None):
        """Add a rule, or replace the one with its key."""
        self.set_rules([*[old for old in self.rules if old.key != rule.key], rule])

    cdef int recount(self) except -1:
        cdef CapacityRule rule
        for rule in self.rules:
            rule.counters.clear()
            rule.limit.forget(self.now)
        for window, charges in self.charges.items():
            for charge in charges:
                self.add(window, charge, -1)
        return 0

    cdef int add(self, Window window, tuple charge, int sign) except -1:
        """Add the amounts of a window, times the sign, to the counters that count it."""
        cdef CapacityRule rule
        cdef int64_t amount
        cdef double start = -INFINITY if window.start <= self.now else window.start
        if window.finish <= self.now or charge is None:
            return 0
        nodes, uses, account = charge
        for rule in self.rules:
            amount = rule.amount(nodes, uses, account)
            if amount:
                rule.counter(account).free.add(start, window.finish, sign * amount)
        return 0

    cdef list fill(self, int64_t nodes, object uses, object account, vector[CapacityUse]& out):
        """Append what such a window uses of each rule; return the counters, which own memory."""
        cdef CapacityRule rule
        cdef Counter counter
        cdef CapacityUse use
        cdef list counters = []
        if uses is not None:
            for name in uses:
                if name not in self.names:
                    self.refuse_name(name)
        for rule in self.rules:
            use.amount = rule.amount(nodes, uses, account)
            if use.amount:
                counter = rule.counter(account)
                if counter.free.epoch() == 0:  # new, or its amounts rose
                    counter.free.set_epoch(EPOCHS.fetch_add(1) + 1)
                use.free = &counter.free
                out.push_back(use)
                counters.append(counter)
        return counters

    cdef int refuse_name(self, name) except -1:
        names = ", ".join(map(repr, sorted(self.names))) or "none"
        raise ValueError(f"uses: the pool has no capacity {name!r}; it has {names}"
                         f"{meant(name, self.names)}")

    def applies(self, Request request not None):
        """Return whether a rule counts the windows of a request."""
        cdef vector[CapacityUse] uses
        self.fill(request.query.n, request.uses, request.account, uses)
        return not uses.empty()

    cdef double largest_performance(self, object table) except -1:
        """Return the largest performance in a table of slots, for lower bounds of runtimes."""
        if self.paces is None or self.paces[0] is not table:
            self.paces = table, table["performance"].max(initial=0) or 1.0
        return self.paces[1]

    def spans(self, request, double first=-INFINITY, double length=0):
        """Return the maximal spans (start, end) with enough for a request, from `first` on.

        Spans that are shorter than `length` are left out.
        """
        cdef vector[CapacityUse] uses
        cdef list found = [], owners = self.fill(
            request.nodes, request.uses, request.account, uses)
        cdef TimeSpan span
        while True:
            span = span_with_enough(uses, first, length)
            if span.first == INFINITY:
                return found
            found.append((span.first, span.last))
            if span.last == INFINITY:
                return found
            first = span.last

    # --- booked windows: taken before the pool books them, committed after it has

    cdef list take(self, list windows):
        """Take the amounts of windows, all or none; return [version, charge of each window].

        Raises ValueError if a rule has less.
        """
        cdef list taken = [self.version]
        cdef Window window
        cdef vector[CapacityUse] uses
        cdef Py_ssize_t k
        try:
            for k, window in enumerate(windows):
                if window.criterion == RESERVED:
                    taken.append(None)
                    continue
                charge = charge_of(window)
                uses.clear()
                owners = self.fill(charge[0], charge[1], charge[2], uses)
                if not have_enough(uses, max(window.start, self.now), window.finish):
                    raise ValueError(f"the window cannot be booked: {self.shortage(window)}")
                self.add(window, charge, -1)
                taken.append(charge)
        except BaseException:
            self.undo(windows, taken)
            raise
        return taken

    cdef int undo(self, list windows, list taken) except -1:
        """Give back the amounts of windows that were not booked."""
        cdef Py_ssize_t k
        if taken[0] != self.version:
            return 0  # the rules were replaced, and never counted these
        for k in range(len(taken) - 1):
            self.add(windows[k], taken[k + 1], 1)
        return 0

    cdef int commit(self, list windows, list taken) except -1:
        """Record the charges of windows that were booked."""
        cdef Py_ssize_t k
        for k in range(len(windows)):
            if taken[k + 1] is not None:
                self.record(windows[k], taken[k + 1])
        if taken[0] != self.version:
            self.recount()
        return 0

    cdef int charge(self, list windows) except -1:
        """Count windows that were booked before these rules existed."""
        cdef Window window
        self.settle()
        for window in windows:
            if window.criterion == RESERVED or window in self.charges:
                continue
            charge = charge_of(window)
            self.add(window, charge, -1)
            self.record(window, charge)
        return 0

    cdef bint give_back(self, Window window) except -1:
        """Give back the amounts of a released window; return whether it had a charge."""
        self.settle()
        cdef list charges = self.charges.get(window)
        if charges is None:
            return False
        charge = charge_of(window)
        charge = charges.pop(charges.index(charge) if charge in charges else -1)
        if not charges:
            del self.charges[window]
        self.add(window, charge, 1)
        return True

    def record(self, Window window not None, tuple charge not None):
        """Append a charge to those of a window: equal windows share their nodes in some pools."""
        self.charges.setdefault(window, []).append(charge)

    cdef int defer(self, object booked, tuple charge) except -1:
        """Record the charge of a booked window that is created later by `booked.window()`."""
        self.deferred.append((booked, charge))
        return 0

    cdef int settle(self) except -1:
        """Record the deferred charges with their windows.

        An exception, such as KeyboardInterrupt, leaves each charge in exactly one place.
        """
        cdef list charges
        cdef tuple entry
        while self.deferred:
            entry = self.deferred[len(self.deferred) - 1]
            window = entry[0].window() if entry[0].finish > self.now else None
            charges = None if window is None else self.charges.setdefault(window, [])
            # Python code of the window ran above: another thread may have recorded the entry.
            if self.deferred and self.deferred[len(self.deferred) - 1] is entry:
                self.deferred.pop()
                if charges is not None:
                    charges.append(entry[1])
            elif charges is not None and not charges:
                self.charges.pop(window, None)
        return 0

    # No signal handler runs between the last change by a function and that of the amounts.

    def book(self, list windows not None, book):
        """Call `book()`, which books windows all or none, and count what they use.

        Raises ValueError, before the call, if a rule has less; and what `book` raises.
        """
        cdef list taken = self.take(windows)
        try:
            book()
        except BaseException:
            self.undo(windows, taken)
            raise
        self.commit(windows, taken)

    def release(self, list windows not None, release):
        """Call `release()`, which releases windows all or none; then give back what they use."""
        cdef Window window
        release()
        for window in windows:
            self.give_back(window)

    def count(self, list windows not None):
        """Count windows that were booked before these rules existed."""
        self.charge(windows)

    def advance(self, double now):
        """Drop the time before `now`."""
        self.forget(now)

    def windows_from(self, double start):
        """Return the windows with a charge that begin at this time."""
        cdef Window window
        self.settle()
        return [window for window in self.charges if window.start == start]

    cdef int forget(self, double now) except -1:
        """Drop the time before `now`."""
        cdef CapacityRule rule
        cdef Counter counter
        self.now = now
        for rule in self.rules:
            rule.limit.forget(now)
            for counter in rule.counters.values():
                counter.free.forget(now)
        if <size_t>(len(self.charges) + len(self.deferred)) > self.purge_threshold:
            self.drop_past()
        return 0

    def drop_past(self):
        """Drop the charges of windows that are past."""
        cdef Window window
        cdef dict kept = {}
        self.settle()
        for window, charges in self.charges.items():
            if window.finish > self.now:
                kept[window] = charges
        self.charges, self.purge_threshold = kept, 64 + 2 * len(kept)

    def charged(self):
        """Return pairs of a window that is not past and its charge (nodes, uses, account)."""
        self.drop_past()
        return [(window, charge) for window, charges in self.charges.items()
                for charge in charges]

    def copy(self):
        """Return an independent copy."""
        cdef CapacityRule rule
        rules = [CapacityRule(*rule.key, rule.steps, rule.weekly) for rule in self.rules]
        return Caps(rules, self.charged(), self.now)

    def with_rules(self, rules):
        """Return a view for searches that keep only some of the rules."""
        cdef Caps view = Caps.__new__(Caps)
        view.rules, view.names, view.now = tuple(rules), self.names, self.now
        view.charges = self.charges
        return view

    def rules_of(self, Request request not None):
        """Return the rules that count a request, each with the amount."""
        cdef CapacityRule rule
        amounts = [(rule, rule.amount(request.query.n, request.uses, request.account))
                   for rule in self.rules]
        return [(rule, amount) for rule, amount in amounts if amount]

    def __reduce__(self):
        return Caps, (self.rules, self.charged(), self.now)

    def shortage(self, window):
        """Return in words the first span of the first rule with too little for a window."""
        cdef CapacityRule rule
        cdef Window each = window
        for rule in self.rules:
            need = rule.amount(count_parts(each), each.uses, each.account)
            for start, end, limit, used in rule.spans(each.account) if need else ():
                short = limit is not None and limit - used < need
                if short and start < each.finish and max(each.start, self.now) < end:
                    return describe(rule, each.account, start, end, limit, used, each.clock)
        return "a capacity has too little"


cdef int64_t count_parts(Window window) except -1:
    """Return the parts of a window; a row of one of shares may stand for several."""
    counts = None if type(window) is Window else getattr(window, "counts", None)
    return window.count if counts is None else sum(counts)


cdef tuple charge_of(Window window):
    """Return the parts of a window, what it uses, and its account."""
    return count_parts(window), window.uses, window.account


cdef list fill_uses(Caps capacities, Request request, vector[CapacityUse]& out):
    """As `Caps.fill`, for a request in a pool that may have no capacities."""
    if capacities is not None:
        return capacities.fill(request.query.n, request.uses, request.account, out)
    if request.uses is not None:
        raise ValueError(f"uses: the pool has no capacity {next(iter(request.uses))!r}; "
                         "caps= and set_cap of the pool define capacities")
    return None


def is_counted(Caps capacities, Request request not None):
    """Return whether a rule of a pool counts the windows of a request.

    Raises ValueError for uses that the pool does not have.
    """
    cdef vector[CapacityUse] uses
    cdef list counters = fill_uses(capacities, request, uses)
    return not uses.empty()


def has_only_numbers(Request request not None):
    """Return whether no use of a request is a sum over the nodes."""
    uses = None if request.special is None else request.special.get("uses")
    if uses is not None:
        for amount in (<dict>uses).values():
            if type(amount) is str:
                return False
    return True


def uses_key(Request request not None):
    """Return the fields that decide which rules count a request: names of uses, and account.

    None if a use is a sum over the nodes: such uses are checked one by one.
    """
    if request.special is None:
        return None, None
    uses = request.special.get("uses")
    return (None if not has_only_numbers(request) else
            (None if uses is None else tuple(<dict>uses), request.special.get("account")))


def counted_fields(Request request not None):
    """Return the fields of capacities of a request, for its window, or None."""
    if request.special is None:
        return None
    return {name: request.special[name] for name in ("uses", "account")
            if name in request.special} or None


cdef Request uncounted(Request request):
    """Return the request without uses and account."""
    if request.special is None or not ("uses" in request.special or "account" in request.special):
        return request
    cdef Request plain = copy_request(request)
    plain.special = {name: value for name, value in request.special.items()
                     if name not in ("uses", "account")} or None
    return plain


def describe(CapacityRule rule, account, start, end, limit, used, clock=None):
    """Return the use of a rule in a span in words: "matlab: 10 in all, 9 are taken from ..."."""
    who = f" of {quote(account or '')}" if rule.each else (
        f" of {quote(rule.account)}" if rule.account not in (None, "*") else "")
    times = []
    for word, time in (("from", start), ("until" if start == -INFINITY else "to", end)):
        if abs(time) < INFINITY:
            times.append(f"{word} {format_number(time) if clock is None else clock.datetime(time)}")
    when = f" {' '.join(times)}" if times else ""
    are = "is" if used == 1 else "are"
    taken = f"{used:,} {are} taken" if used else "none is taken"
    return f"{rule.what}{who}: {limit:,} in all, {taken}{when}"


cdef str format_number(double time):
    return repr(time).removesuffix(".0")
