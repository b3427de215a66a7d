"""Binding of requests: validates all fields when a request is created."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, NAN, isfinite

from slotkern._base cimport Status, status_error, is_plain, number
from slotkern._kernels cimport Query, ShapeKind, kMaxSumConstraints
from slotkern._moments cimport Scale, needs_clock, parse_time_value

from slotkern.foundation.checks import integer, meant, unknown_keyword, visible

cnp.import_array()

cdef extern from "<limits>" nogil:
    double DBL_MAX "std::numeric_limits<double>::max()"

inf = float("inf")  # the name in the text signature of Request
cdef object MAX_NODES = 0x7FFFFFFF
cdef tuple KEYWORDS = (
    "nodes", "volume", "budget", "min_performance", "earliest", "deadline", "max_price", "setup",
    "step", "latest", "max_runtime", "where", "limits", "walltime", "reference", "name")


cdef object checked_where(object where):
    if where is None:
        return None
    if isinstance(where, str):
        from slotkern.where import compile_where
        compile_where(where)
        return where
    array = np.asarray(where)
    if array.dtype != np.bool_ or array.ndim != 1:
        raise TypeError(
            "where must be an expression or a one-dimensional boolean array, "
            f"got {type(where).__name__} of dtype {array.dtype}, {array.ndim}-dimensional"
        )
    array = array.copy()
    array.flags.writeable = False
    return array


cdef tuple checked_limits(object limits):
    from slotkern.limits import limits_of
    found = limits_of(limits)
    if len(found) > <Py_ssize_t>kMaxSumConstraints:
        raise ValueError(f"at most {kMaxSumConstraints} limits, got {len(found)}")
    return found


cdef class Request:
    """Request(nodes, volume=None, *, budget=inf, min_performance=0.0, earliest=-inf, deadline=inf,
            max_price=inf, setup=0.0, step=0.0, latest=inf, max_runtime=inf, where=None,
            limits=(), walltime=None, reference=1.0, name=None)
--

    The requirements of a job: n nodes at the same time, and a volume of work on each.

    Requests are immutable. Times may be numbers or dates, and durations numbers or text, as in
    ``earliest="2026-10-25 18:00"`` and ``walltime="4:00:00"``; the clock of the searched slots
    (`Clock`, `free_slots`) converts dates and text to numbers.

    Parameters
    ----------
    nodes : int
        Number of different nodes that start together, from 1 to 2^31 - 1.
    volume : float
        Work on each node, > 0. A node of performance p needs ``volume / p`` time units.
    walltime : float, str or timedelta, optional
        Instead of a volume: the time that a node of performance `reference` needs, > 0. The
        volume is ``walltime * reference``.
    reference : float, optional
        The performance to which `walltime` refers, > 0; 1 by default.
    name : str, optional
        Name of the job and of its windows.
    budget : float, optional
        Maximum cost of all parts together, >= 0; inf by default. A cost that exceeds the
        budget by at most 2^-50 of it is accepted, because decimal amounts are rounded.
    min_performance : float, optional
        Minimum performance of every node, >= 0.
    earliest : float, date or str, optional
        Earliest start; -inf by default.
    deadline : float, date or str, optional
        Latest end of every part, not before `earliest`; inf by default.
    max_price : float, optional
        Maximum price per time unit of every single slot (ALP in the papers).
    setup, step : float, str or timedelta, optional
        Overheads in time units, >= 0: on a node of performance p, a part takes
        ``setup + volume / p``, rounded up to a multiple of `step` (0, the default: no
        rounding). A length up to 4 ulp above a multiple is not rounded up, because this
        difference is a rounding error: 4 hours are four steps of one hour. In ragged
        windows with overheads, a part costs its price times its length.
    latest : float, date or str, optional
        Latest start of the window, not before `earliest`; inf by default.
    max_runtime : float, str or timedelta, optional
        Maximum time from start to finish of the window, > 0; inf by default.
    where : str or array of bool, optional
        A filter on slots: an expression over slot columns such as
        ``"memory >= 64 and site == 'a'"`` (parsed, never evaluated as Python), or one
        boolean for each row of the array that will be searched.
    limits : str, Limit, or sequence of those, optional
        At most 6 constraints on sums over the parts: ``["sum(storage) >= 500",
        "sum(power * length) <= 12"]``. A term is a product of columns, numbers and
        ``length``, the length of the part. See `Limit` for arrays and functions.

    Raises
    ------
    ValueError, TypeError
        For an invalid field; the message contains the field and its value.

    Examples
    --------
    >>> import slotkern as sk
    >>> sk.Request(5, 150, budget=1500)
    Request(nodes=5, volume=150.0, budget=1500.0)
    """

    def __init__(self, nodes, volume=None, *, budget=inf, min_performance=0.0, earliest=-inf,
                 deadline=inf, max_price=inf, setup=0.0, step=0.0, latest=inf,
                 max_runtime=inf, where=None, limits=(), walltime=None, reference=1.0,
                 name=None, **unknown):
        if unknown:
            raise unknown_keyword("Request", next(iter(unknown)), KEYWORDS)
        if name is not None and not (isinstance(name, str) and name):
            raise TypeError(f"name must be text, got {name!r}")
        self.name = name
        self.as_given = None
        if volume is None or walltime is not None or reference != 1.0:
            volume = self.resolve_volume(volume, walltime, reference)
        earliest = read_time_field(self, earliest, "earliest", -INFINITY, False)
        latest = read_time_field(self, latest, "latest", INFINITY, False)
        deadline = read_time_field(self, deadline, "deadline", INFINITY, False)
        setup = read_time_field(self, setup, "setup", 0, True)
        step = read_time_field(self, step, "step", 0, True)
        max_runtime = read_time_field(self, max_runtime, "max_runtime", INFINITY, True)
        if type(nodes) is int and 1 <= nodes <= MAX_NODES:
            self.query.n = nodes
        else:
            self.query.n = integer("nodes", nodes, 1, MAX_NODES)
        self.query.volume = number(volume, "volume")
        if not (self.query.volume > 0 and isfinite(self.query.volume)):
            raise ValueError(f"volume must be positive and finite, got {volume!r}")
        self.query.budget = number(budget, "budget", 0)
        self.query.min_performance = number(min_performance, "min_performance", 0, True)
        self.query.earliest = number(earliest, "earliest")
        if self.query.earliest == INFINITY:
            raise ValueError(f"earliest must not be {earliest!r}")
        self.query.deadline = number(deadline, "deadline")
        if self.query.deadline == -INFINITY:
            raise ValueError(f"deadline must not be {deadline!r}")
        if self.query.earliest > self.query.deadline:
            raise ValueError(f"earliest {earliest!r} lies after deadline {deadline!r}")
        self.query.deadline = min(self.query.deadline, DBL_MAX)
        self.query.max_price = number(max_price, "max_price", 0)
        self.query.setup = number(setup, "setup", 0, True)
        self.query.step = number(step, "step", 0, True)
        self.query.latest = number(latest, "latest")
        if self.query.latest == -INFINITY:
            raise ValueError(f"latest must not be {latest!r}")
        if self.query.earliest > self.query.latest:
            raise ValueError(f"earliest {earliest!r} lies after latest {latest!r}")
        self.query.max_runtime = number(max_runtime, "max_runtime")
        if not self.query.max_runtime > 0:
            raise ValueError(f"max_runtime must be positive, got {max_runtime!r}")
        self.query.mask = NULL
        self.where = checked_where(where)
        no_limits = limits is None or (isinstance(limits, tuple) and not limits)
        self.limits = () if no_limits else checked_limits(limits)
        if self.as_given is not None:
            self.as_given.setdefault("volume", (volume, None))
            self.query.volume = NAN  # infeasible until a clock has converted the times

    cdef object resolve_volume(self, object volume, object walltime, object reference):
        """Return the volume, or a placeholder if the walltime needs a clock."""
        if (volume is None) == (walltime is None):
            raise TypeError("a Request needs either a volume or a walltime")
        if walltime is None:
            raise TypeError("reference applies to a walltime, but a volume was given")
        cdef double pace = number(reference, "reference")
        if not (pace > 0 and isfinite(pace)):
            raise ValueError(f"reference must be positive and finite, got {reference!r}")
        if needs_clock(walltime):
            self.store_as_given(walltime, "walltime", 0, True)
            self.as_given["volume"], self.as_given["reference"] = (None, None), (pace, None)
            if self.as_given["walltime"][1].ns == 0:
                raise ValueError(f"walltime must be positive, got {walltime!r}")
            return 1.0
        cdef double time = number(walltime, "walltime")
        if not (time > 0 and isfinite(time)):
            raise ValueError(f"walltime must be positive and finite, got {walltime!r}")
        return time * pace

    cdef object store_as_given(self, object value, str name, double placeholder, bint is_duration):
        """Return a number unchanged; store other values as given and return `placeholder`."""
        if not needs_clock(value):
            return value
        if self.as_given is None:
            self.as_given = {}
        self.as_given[name] = value, parse_time_value(value, name, is_duration)
        return placeholder

    def _value_as_given(self, str name, value):
        if self.as_given is None or name not in self.as_given:
            return value
        return self.as_given[name][0]

    @property
    def nodes(self):
        """Number of different nodes."""
        return self.query.n

    @property
    def volume(self):
        """Work on each node; None if it depends on a walltime that needs a clock."""
        return self._value_as_given("volume", self.query.volume)

    @property
    def reference(self):
        """The performance to which the walltime refers; 1 without a walltime."""
        return self._value_as_given("reference", 1.0)

    @property
    def walltime(self):
        """The walltime as given, or None if it was a number or a volume was given."""
        return self._value_as_given("walltime", None)

    @property
    def budget(self):
        """Maximum cost of all parts together."""
        return self.query.budget

    @property
    def min_performance(self):
        """Minimum performance of every node."""
        return self.query.min_performance

    @property
    def earliest(self):
        """Earliest start, as given; -inf: no constraint."""
        return self._value_as_given("earliest", self.query.earliest)

    @property
    def deadline(self):
        """Latest end of every part, as given; inf: no constraint."""
        return self._value_as_given(
            "deadline", INFINITY if self.query.deadline == DBL_MAX else self.query.deadline)

    @property
    def max_price(self):
        """Maximum price per time unit of every single slot."""
        return self.query.max_price

    @property
    def setup(self):
        """Constant part of every part's length, as given."""
        return self._value_as_given("setup", self.query.setup)

    @property
    def step(self):
        """The unit to which lengths of parts are rounded up, as given; 0: no rounding."""
        return self._value_as_given("step", self.query.step)

    @property
    def latest(self):
        """Latest start, as given; inf: no constraint."""
        return self._value_as_given("latest", self.query.latest)

    @property
    def max_runtime(self):
        """Maximum time from start to finish, as given."""
        return self._value_as_given("max_runtime", self.query.max_runtime)

    def _fields(self):
        fields = {
            "nodes": self.nodes, "volume": self.volume, "budget": self.budget,
            "min_performance": self.min_performance, "earliest": self.earliest,
            "deadline": self.deadline, "max_price": self.max_price, "setup": self.setup,
            "step": self.step, "latest": self.latest, "max_runtime": self.max_runtime,
            "where": self.where, "limits": self.limits,
        }
        if self.walltime is not None:
            fields["walltime"], fields["reference"] = self.walltime, self.reference
        if self.name is not None:
            fields["name"] = self.name
        return fields

    def length(self, performance):
        """Return the length of a part on a node of this performance.

        Parameters
        ----------
        performance : float or array_like of float
            Work per time unit, > 0.

        Returns
        -------
        ndarray of float64
            Time units, in the shape of `performance`: ``setup + volume / performance``,
            rounded up to a multiple of `step`. All parts of a square window are as long as
            that on its slowest node.

        Raises
        ------
        ValueError
            For a performance that is not positive, and if lengths depend on a clock.

        Examples
        --------
        >>> import slotkern as sk
        >>> sk.Request(1, 10, setup=0.5, step=1).length([1, 4]).tolist()
        [11.0, 3.0]
        """
        if self.as_given is not None:
            raise ValueError("lengths of this request depend on durations that only the clock "
                             "of slots converts; give numbers instead")
        cdef cnp.ndarray given = np.array(performance, np.float64, order="C")
        cdef double* out = <double*>cnp.PyArray_DATA(given)
        cdef Py_ssize_t i
        for i in range(given.size):
            if not out[i] > 0:
                raise ValueError(f"performance must be positive, got {out[i]!r}")
            out[i] = self.query.length(out[i])
        return given

    def replace(self, **changes):
        """Return a copy of the request with some fields changed; raise as for `Request`.

        `volume` and `walltime` replace each other.
        """
        fields = self._fields()
        if "volume" in changes or "walltime" in changes:  # they exclude each other
            for name in ("volume", "walltime", "reference"):
                fields.pop(name, None)
        return _make_request({**fields, **changes})

    def __repr__(self):
        defaults = Request(1, 1)._fields()
        defaults |= {"volume": None, "reference": 1.0}
        shown = []
        for name, value in self._fields().items():
            default = defaults.get(name)
            if name == "nodes" or value is not default and not (
                isinstance(value, float) and value == default
            ):
                shown.append(f"{name}={value!r}")
        return visible(f"Request({', '.join(shown)})")

    def __eq__(self, other):
        if not isinstance(other, Request):
            return NotImplemented
        mine, theirs = self._fields(), other._fields()
        return np.array_equal(mine.pop("where"), theirs.pop("where")) and mine == theirs

    def __hash__(self):
        fields = self._fields()
        where = fields.pop("where")
        return hash((*fields.values(), where if isinstance(where, str) else None))

    def __reduce__(self):
        return _make_request, (self._fields(),)


def _make_request(fields):
    return Request(fields.pop("nodes"), fields.pop("volume", None), **fields)


cdef inline object read_time_field(
    Request self, object value, str name, double placeholder, bint is_duration
):
    """Inline fast path of store_as_given() for numbers."""
    return value if is_plain(value) else self.store_as_given(value, name, placeholder, is_duration)


REQUEST_FIELDS = tuple(Request(1, 1)._fields())


cdef Request convert_times(Request request, Scale scale):
    """Return the request with times converted by a clock; None: use the general conversion.

    The general conversion is `slotkern.machine.terms.resolve_times`, which also raises the errors.
    """
    cdef Request copy = Request.__new__(Request)
    cdef double number = 0
    copy.query = request.query
    copy.name, copy.where, copy.limits = request.name, request.where, request.limits
    for name, (value, meant) in (<dict>request.as_given).items():
        if meant is None:
            if name == "volume" and value is not None:
                copy.query.volume = value
            continue
        if not scale.convert(meant, &number):
            return None
        if name == "earliest":
            copy.query.earliest = number
        elif name == "latest":
            copy.query.latest = number
        elif name == "deadline":
            copy.query.deadline = number
        elif name == "setup":
            copy.query.setup = number
        elif name == "step":
            copy.query.step = number
        elif name == "max_runtime":
            copy.query.max_runtime = number
        else:
            copy.query.volume = number * <double>request.as_given["reference"][0]
    if (copy.query.earliest <= copy.query.latest and copy.query.earliest <= copy.query.deadline
            and copy.query.max_runtime > 0 and 0 < copy.query.volume <= DBL_MAX):
        return copy
    return None


cdef Request copy_request(Request request):
    """Return a copy with an empty list of arrays that its query may reference."""
    cdef Request copy = Request.__new__(Request)
    copy.query = request.query
    copy.name, copy.where, copy.limits = request.name, request.where, request.limits
    copy.referenced_arrays = []
    return copy


cdef bint is_booking_invariant(Request request) except -1:
    """Return True if bookings do not change the values of filter and limits.

    False for arrays with one value for each row, and for expressions with start or end.
    """
    if request.where is None and not request.limits:
        return True
    columns = set()
    if request.where is not None:
        if not isinstance(request.where, str):
            return False
        from slotkern.where import columns as columns_of_filter
        columns |= columns_of_filter(request.where)
    for limit in request.limits:
        if not isinstance(limit.of, str):
            return False
        from slotkern.limits import columns as columns_of_term
        columns |= columns_of_term(limit.of)
    return columns.isdisjoint(("start", "end"))


cdef ShapeKind parse_shape(str shape) except *:
    if shape == "square":
        return ShapeKind.square
    if shape == "ragged":
        return ShapeKind.ragged
    raise ValueError(f"shape must be 'square' or 'ragged', got {shape!r}"
                     f"{meant(shape, ('square', 'ragged'))}")


cdef object search_error(Status status, Query query):
    return status_error(status, "search", {"volume": query.volume, "part": "a slot",
                                       "work": query.max_work})
