"""The door of requests: what a job asks for, checked when it is said."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, NAN, isfinite

from slotkern._base cimport Status, error_of, is_plain, number
from slotkern._kernels cimport Query, ShapeKind, kMaxSumConstraints
from slotkern._moments cimport Scale, is_said, meaning_of

from slotkern.checks import integer, meant, unknown_keyword, visible

cnp.import_array()

cdef extern from "<limits>" nogil:
    double DBL_MAX "std::numeric_limits<double>::max()"

inf = float("inf")  # the name that the signature of Request shows
cdef object MOST_NODES = 0x7FFFFFFF
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

    What a job asks for: n nodes at once, for a volume of work on each.

    Times may be dates and durations text, as in ``earliest="2026-10-25 18:00"`` and
    ``walltime="4:00:00"``: the clock of the pool that is searched (`Clock`, `free_slots`) makes
    them numbers.

    Parameters
    ----------
    nodes : int
        How many different nodes, starting together; at least 1.
    volume : float
        Work per node, > 0. A node of performance p needs ``volume / p`` time.
    walltime : float, str or timedelta, optional
        Instead of a volume: how long a node of performance `reference` works. The volume is
        ``walltime * reference``.
    reference : float, optional
        The performance that `walltime` is said for.
    name : str, optional
        What the job is called; its windows have this name.
    budget : float, optional
        The most money for all parts together; inf by default. A cost of up to 2^-50 of the
        budget more meets it: what is met in decimals is met in doubles.
    min_performance : float, optional
        Least performance of every node.
    earliest : float, date or str, optional
        Earliest start; -inf, the default, for as early as slots are free.
    deadline : float, date or str, optional
        Latest end of every part; not before `earliest`.
    max_price : float, optional
        Highest price per time unit of every single slot (the papers' ALP).
    setup, step : float, str or timedelta, optional
        What a site charges beside the work: on a node of performance p a part takes
        ``setup + volume / p`` time, rounded up to a multiple of `step` (0, the default:
        not rounded). What is up to 4 ulp above a multiple is rounding of the quotient,
        not time: 4 hours are four steps of an hour. Ragged, such a part costs its price
        times its length.
    latest : float, date or str, optional
        Latest start of the window; not before `earliest`.
    max_runtime : float, str or timedelta, optional
        The most time from start to finish of the window, > 0.
    where : str or array of bool, optional
        A filter: an expression over slot columns such as
        ``"memory >= 64 and site == 'a'"`` (parsed, never evaluated as Python), or one
        boolean for each row of exactly the array that will be searched.
    limits : str, Limit, or sequence of those, optional
        Limits on sums over the parts, at most 6: ``["sum(storage) >= 500",
        "sum(power * length) <= 12"]``. A term is a product of columns, numbers and
        ``length``, how long the part runs; of arrays and functions, see `Limit`.

    Raises
    ------
    ValueError, TypeError
        Naming the field and its value.

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
        self.said = None
        if volume is None or walltime is not None or reference != 1.0:
            volume = self.amount(volume, walltime, reference)
        earliest = heard(self, earliest, "earliest", -INFINITY, False)
        latest = heard(self, latest, "latest", INFINITY, False)
        deadline = heard(self, deadline, "deadline", INFINITY, False)
        setup = heard(self, setup, "setup", 0, True)
        step = heard(self, step, "step", 0, True)
        max_runtime = heard(self, max_runtime, "max_runtime", INFINITY, True)
        if type(nodes) is int and 1 <= nodes <= MOST_NODES:
            self.query.n = nodes
        else:
            self.query.n = integer("nodes", nodes, 1, MOST_NODES)
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
        if self.said is not None:
            self.said.setdefault("volume", (volume, None))
            self.query.volume = NAN  # nothing fits before a clock has made it numbers

    cdef object amount(self, object volume, object walltime, object reference):
        """The volume, or what stands for it where a walltime needs a clock."""
        if (volume is None) == (walltime is None):
            raise TypeError("a Request needs either a volume or a walltime")
        if walltime is None:
            raise TypeError("reference is for a walltime; there is a volume")
        cdef double pace = number(reference, "reference")
        if not (pace > 0 and isfinite(pace)):
            raise ValueError(f"reference must be positive and finite, got {reference!r}")
        if is_said(walltime):
            self.kept(walltime, "walltime", 0, True)
            self.said["volume"], self.said["reference"] = (None, None), (pace, None)
            if self.said["walltime"][1].ns == 0:
                raise ValueError(f"walltime must be positive, got {walltime!r}")
            return 1.0
        cdef double time = number(walltime, "walltime")
        if not (time > 0 and isfinite(time)):
            raise ValueError(f"walltime must be positive and finite, got {walltime!r}")
        return time * pace

    cdef object kept(self, object value, str name, double otherwise, bint duration):
        """A number as it is; of what is kept as it was said, what stands for it till then."""
        if not is_said(value):
            return value
        if self.said is None:
            self.said = {}
        self.said[name] = value, meaning_of(value, name, duration)
        return otherwise

    def _as_said(self, str name, value):
        return value if self.said is None or name not in self.said else self.said[name][0]

    @property
    def nodes(self):
        """How many different nodes."""
        return self.query.n

    @property
    def volume(self):
        """Work per node; None where a walltime is said that only a clock makes a number."""
        return self._as_said("volume", self.query.volume)

    @property
    def reference(self):
        """The performance that a walltime is said for; 1 where there is none."""
        return self._as_said("reference", 1.0)

    @property
    def walltime(self):
        """How long a node of the reference performance works, as it was said, or None."""
        return self._as_said("walltime", None)

    @property
    def budget(self):
        """The most money for all parts together."""
        return self.query.budget

    @property
    def min_performance(self):
        """Least performance of every node."""
        return self.query.min_performance

    @property
    def earliest(self):
        """Earliest start, as it was said; -inf for none."""
        return self._as_said("earliest", self.query.earliest)

    @property
    def deadline(self):
        """Latest end of every part, as it was said."""
        return self._as_said(
            "deadline", INFINITY if self.query.deadline == DBL_MAX else self.query.deadline)

    @property
    def max_price(self):
        """Highest price per time unit of every single slot."""
        return self.query.max_price

    @property
    def setup(self):
        """Constant part of a part's length."""
        return self._as_said("setup", self.query.setup)

    @property
    def step(self):
        """Of what a part's length is a multiple; 0 for none."""
        return self._as_said("step", self.query.step)

    @property
    def latest(self):
        """Latest start."""
        return self._as_said("latest", self.query.latest)

    @property
    def max_runtime(self):
        """The most time from start to finish."""
        return self._as_said("max_runtime", self.query.max_runtime)

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
        """How long a part runs on a node of this performance.

        Parameters
        ----------
        performance : float or array_like of float
            Work per time unit, > 0.

        Returns
        -------
        ndarray of float64
            Time, in the shape of `performance`: ``setup + volume / performance``, rounded
            up to a multiple of `step`. A square window takes as long as its slowest node.

        Raises
        ------
        ValueError
            For a performance that is not positive, and where only a clock knows lengths.

        Examples
        --------
        >>> import slotkern as sk
        >>> sk.Request(1, 10, setup=0.5, step=1).length([1, 4]).tolist()
        [11.0, 3.0]
        """
        if self.said is not None:
            raise ValueError("the request says times that only the clock of slots makes numbers")
        cdef cnp.ndarray given = np.array(performance, np.float64, order="C")
        cdef double* out = <double*>cnp.PyArray_DATA(given)
        cdef Py_ssize_t i
        for i in range(given.size):
            if not out[i] > 0:
                raise ValueError(f"performance must be positive, got {out[i]!r}")
            out[i] = self.query.length(out[i])
        return given

    def replace(self, **changes):
        """The same request with some fields changed."""
        fields = self._fields()
        if "volume" in changes or "walltime" in changes:  # one instead of the other
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


cdef inline object heard(
    Request self, object value, str name, double otherwise, bint duration
):
    """The same without a call for what is a number at once."""
    return value if is_plain(value) else self.kept(value, name, otherwise, duration)


REQUEST_FIELDS = tuple(Request(1, 1)._fields())


cdef Request numbers_of(Request request, Scale scale):
    """The request in numbers of a clock, as `slotkern.machine.terms.numbered`, or None."""
    cdef Request copy = Request.__new__(Request)
    cdef double number = 0
    copy.query = request.query
    copy.name, copy.where, copy.limits = request.name, request.where, request.limits
    for name, (value, meant) in (<dict>request.said).items():
        if meant is None:
            if name == "volume" and value is not None:
                copy.query.volume = value
            continue
        if not scale.number_of(meant, &number):
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
            copy.query.volume = number * <double>request.said["reference"][0]
    if (copy.query.earliest <= copy.query.latest and copy.query.earliest <= copy.query.deadline
            and copy.query.max_runtime > 0 and 0 < copy.query.volume <= DBL_MAX):
        return copy
    return None


cdef Request copy_of(Request request):
    """A copy, whose query may point at what it keeps alive."""
    cdef Request copy = Request.__new__(Request)
    copy.query = request.query
    copy.name, copy.where, copy.limits = request.name, request.where, request.limits
    copy.tied_arrays = []
    return copy


cdef bint lasting(Request request) except -1:
    """Whether filter and limits say the same after bookings, and are no arrays of rows."""
    if request.where is None and not request.limits:
        return True
    looked = set()
    if request.where is not None:
        if not isinstance(request.where, str):
            return False
        from slotkern.where import columns as columns_of_filter
        looked |= columns_of_filter(request.where)
    for limit in request.limits:
        if not isinstance(limit.of, str):
            return False
        from slotkern.limits import columns as columns_of_term
        looked |= columns_of_term(limit.of)
    return looked.isdisjoint(("start", "end"))


cdef ShapeKind shape_of(str shape) except *:
    if shape == "square":
        return ShapeKind.square
    if shape == "ragged":
        return ShapeKind.ragged
    raise ValueError(f"shape must be 'square' or 'ragged', got {shape!r}"
                     f"{meant(shape, ('square', 'ragged'))}")


cdef object search_error(Status status, Query query):
    return error_of(status, "search", {"volume": query.volume, "part": "a slot",
                                       "work": query.max_work})
