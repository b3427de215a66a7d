"""Binding of requests: validates all fields when a request is created.

The numeric fields are those of slots/request_fields.def: `Request` reads, checks, stores and
shows them by loops over kQueryFields, and other modules by `FIELDS`.
"""

from collections import namedtuple

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.type cimport PyType_Modified
from libc.math cimport INFINITY, NAN, isfinite

from slotkern._kernels.base cimport Status, status_error, is_plain, number
from slotkern._kernels.headers cimport (
    CSlot, FieldKind, FieldRange, Query, QueryField, ShapeKind, kMaxSumConstraints, kQueryFieldCount,
    kQueryFields)

from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import integer, meant, quote, unknown_keyword, visible
from slotkern.foundation.special_fields import SPECIAL_FIELDS, special_values

cnp.import_array()

cdef extern from "Python.h":
    ctypedef object (*getter)(object, void*)
    ctypedef struct PyGetSetDef:
        const char* name
        getter get
        const char* doc
        void* closure
    ctypedef struct TypeObject "PyTypeObject":
        PyObject* tp_dict
    object PyDescr_NewGetSet(TypeObject*, PyGetSetDef*)

inf = float("inf")  # the name in the text signature of Request
cdef object MAX_NODES = 0x7FFFFFFF

RequestField = namedtuple("RequestField", "name kind default unit label text")
RequestField.__doc__ = """A numeric field of a request, as in slots/request_fields.def.

`kind` is "number", "time" (also a date) or "duration" (also a text such as "4:00:00"). `default`
sets no limit; an infinite default of a time is the side without limit. `text` starts with one
sentence for lists of options.
"""

cdef Query NO_LIMITS
cdef object UNSET = object()  # an omitted argument
cdef tuple KINDS = ("number", "time", "duration")  # in the order of FieldKind


cdef dict read_fields():
    cdef dict fields = {}
    cdef const QueryField* field
    cdef int i
    for i in range(kQueryFieldCount):
        field = &kQueryFields[i]
        fields[field.name.decode()] = RequestField(
            field.name.decode(), KINDS[<int>field.kind], field.get(NO_LIMITS),
            field.unit.decode(), field.label.decode(), field.text.decode())
    return fields


FIELDS = read_fields()
cdef dict FIELD_INDEX = {name: i for i, name in enumerate(FIELDS)}
cdef tuple FIELD_NAMES = tuple(FIELDS)
# The largest number of limits on sums.
MAX_LIMITS = kMaxSumConstraints

REQUEST_FIELDS = ("nodes", *FIELDS, "where", "limits")
cdef tuple KEYWORDS = (*REQUEST_FIELDS, *SPECIAL_FIELDS, "walltime", "reference", "name")


cdef bint needs_clock(object value) except -1:
    """Return True for dates, text and timedeltas, which only a clock converts to numbers."""
    if isinstance(value, (float, int)) or value is None:
        return False
    if (isinstance(value, str) or cnp.is_datetime64_object(value)
            or cnp.is_timedelta64_object(value)):
        return True
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind in ("M", "m") if kind is not None else not hasattr(value, "__float__")


cdef object checked_where(object where):
    if where is None:
        return None
    if isinstance(where, str):
        from slotkern.expressions.filters import compile_where
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


cdef tuple checked_limits(object limits, object within):
    from slotkern.expressions.limits import limits_of
    found = limits_of(limits, within)
    cdef Py_ssize_t count = sum([limit.kind == "sum" for limit in found])
    if count > MAX_LIMITS:
        raise ValueError(f"at most {MAX_LIMITS} limits, got {count}")
    return found


cdef tuple rules_of_request(object request):
    from slotkern.expressions.groups import rules_of
    return rules_of(request)


cdef class Request:
    """Request(nodes, volume=None, *, budget=inf, min_performance=0.0, earliest=-inf,
            deadline=inf, max_price=inf, setup=0.0, step=0.0, latest=inf, max_runtime=inf,
            where=None, limits=(), within=None, share=None, stack=1, tree=None, whole=None,
            uses=None, account=None, walltime=None, reference=1.0, name=None)
--

    The requirements of a job: n nodes at the same time, and a volume of work on each.

    Requests are immutable. Times may be numbers or dates, and durations numbers or text, as in
    ``earliest="2026-10-25 18:00"`` and ``walltime="4:00:00"``; the clock of the searched slots
    (`Clock`, `free_slots`) converts dates and text to numbers.

    Parameters
    ----------
    nodes : int
        Number of different nodes that start together, from 1 to 2^31 - 1.
    volume : float, > 0
        Work on each node. A node of performance p needs ``volume / p`` time units.
    budget : float, >= 0, default inf
        Maximum cost of all parts together. A cost that exceeds the budget by at most 2^-50 of
        it is accepted, because decimal amounts are rounded.
    min_performance : float, >= 0, default 0.0
        Minimum performance of every node.
    earliest : float, date or str, default -inf
        Earliest start of the window.
    deadline : float, date or str, default inf
        Latest end of every part, not before `earliest`.
    max_price : float, >= 0, default inf
        Maximum price per time unit of every single slot (ALP in the papers).
    setup : float, str or timedelta, >= 0, default 0.0
        Constant part of the length of every part, charged like work. On a node of performance
        p, a part takes ``setup + volume / p``, rounded up to a multiple of `step`. In ragged
        windows with overheads, a part costs its price times its length.
    step : float, str or timedelta, >= 0, default 0.0
        Unit to which the length of every part is rounded up; 0 for no rounding. A length up to
        4 ulp above a multiple is not rounded up, because this difference is a rounding error:
        4 hours are four steps of one hour.
    latest : float, date or str, default inf
        Latest start of the window, not before `earliest`.
    max_runtime : float, str or timedelta, > 0, default inf
        Maximum time from start to finish of the window.
    where : str or array of bool, optional
        A filter on slots: an expression over slot columns such as
        ``"memory >= 64 and site == 'a'"`` (parsed, never evaluated as Python), or one
        boolean for each row of the array that will be searched.
    limits : str, Limit, or sequence of those, optional
        At most 6 constraints on sums over the parts: ``["sum(storage) >= 500",
        "sum(power * length) <= 12"]``. A term is a product of columns, numbers and
        ``length``, the length of the part. See `Limit` for arrays and functions.
        Also group rules: ``"distinct(rack) <= 2"`` or ``>=`` bounds the number of groups that
        the nodes belong to, ``"most(rack) <= 4"`` the number of nodes in any one group. The
        values of a column, such as ``rack``, are the groups.
    within : str, optional
        A column whose value is the same for all nodes, such as ``"rack"``; the same as
        ``limits="distinct(rack) <= 1"``.
    share : mapping of str to int, optional
        What each part takes of its node, as ``{"cores": 16, "gpus": 2}``; None for whole
        nodes. See `HostPool`.
    stack : int, default 1
        Maximum number of parts on one node; with a share only.
    tree : mapping of str to int, optional
        How many groups of each level take parts, in each group of the level above:
        ``{"switch": 1, "rack": 3}`` for three racks of one switch. All innermost groups take
        equally many parts; ``nodes`` is the number of all parts. See `HostPool`.
    whole : str, optional
        A column such as ``"rack"`` whose groups are taken whole; ``nodes`` is then the number of
        such groups.
    uses : mapping of str to int, optional
        What the window uses of the capacities of a pool from its start to its finish, as
        ``{"matlab": 2}``; for a name of a column, as ``{"power": "watts"}``, the sum over the
        nodes. See `SlotPool.set_cap`.
    account : str, optional
        Whom the quotas of a pool count; also the owner of its bookings by default. See
        `SlotPool.quota`.
    walltime : float, str or timedelta, optional
        Instead of a volume: the time that a node of performance `reference` needs, > 0. The
        volume is ``walltime * reference``.
    reference : float, optional
        The performance to which `walltime` refers, > 0; 1 by default.
    name : str, optional
        Name of the job and of its windows.

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

    def __init__(self, nodes, volume=None, *,  # the fields are written by ci/fields.py
                 budget=UNSET, min_performance=UNSET, earliest=UNSET, deadline=UNSET,
                 max_price=UNSET, setup=UNSET, step=UNSET, latest=UNSET, max_runtime=UNSET,
                 where=None, limits=(), walltime=None, reference=1.0, name=None, **special):
        self.special = None
        if special:
            for key in special.keys() - SPECIAL_FIELDS:
                raise unknown_keyword("Request", key, KEYWORDS)
            self.special = special_values(special)
        if name is not None and not (isinstance(name, str) and name):
            raise TypeError(f"name must be text, got {name!r}")
        self.name = name
        self.as_given = None
        self.query = NO_LIMITS
        if volume is None or walltime is not None or reference != 1.0:
            volume = self.resolve_volume(volume, walltime, reference)
        if type(nodes) is int and 1 <= nodes <= MAX_NODES:
            self.query.n = nodes
        else:
            self.query.n = integer("nodes", nodes, 1, MAX_NODES)
        # The fields in the order of the table, written by ci/fields.py.
        cdef PyObject* given[10]
        given[:] = [
            <PyObject*>volume,
            <PyObject*>budget,
            <PyObject*>min_performance,
            <PyObject*>earliest,
            <PyObject*>deadline,
            <PyObject*>max_price,
            <PyObject*>setup,
            <PyObject*>step,
            <PyObject*>latest,
            <PyObject*>max_runtime,
        ]
        cdef Py_ssize_t i
        for i in range(<Py_ssize_t>(sizeof(given) // sizeof(PyObject*))):
            if given[i] == <PyObject*>UNSET:
                continue
            if type(<object>given[i]) is float and kQueryFields[i].accepts(
                    <double><object>given[i]):
                kQueryFields[i].set(self.query, <double><object>given[i])
            else:
                self.set_field(i, <object>given[i])
        if self.query.earliest > -INFINITY:
            self.check_order(given)
        self.where = checked_where(where)
        self.limits = self.rules = ()
        if not (limits is None or (isinstance(limits, tuple) and not limits)) or special:
            self.limits = checked_limits(limits, self.within)
            self.rules = rules_of_request(self)
        if self.as_given is not None:
            self.as_given.setdefault("volume", (volume, None))
            self.query.volume = NAN  # infeasible until a clock has converted the times

    cdef int set_field(self, int i, object value) except -1:
        """Check the value of a field and store it in the query, or as given."""
        cdef const QueryField* field = &kQueryFields[i]
        cdef str name = FIELD_NAMES[i]
        if field.kind != FieldKind.number and needs_clock(value):
            return self.store_as_given(value, name, field.kind == FieldKind.duration)
        cdef bint finite = isfinite(field.otherwise) and field.range != FieldRange.any
        cdef double x
        if field.range == FieldRange.amount:
            x = number(value, name, 0, finite)
        else:
            x = number(value, name)
        if not field.accepts(x):
            if field.range == FieldRange.any:
                raise ValueError(f"{name} must not be {value!r}")
            raise ValueError(
                f"{name} must be positive{' and finite' if finite else ''}, got {value!r}")
        field.set(self.query, x)
        return 0

    cdef int check_order(self, PyObject** given) except -1:
        """Raise ValueError if the earliest start lies after an upper limit on time."""
        cdef Py_ssize_t i
        for i in range(kQueryFieldCount):
            if (kQueryFields[i].kind == FieldKind.time and kQueryFields[i].otherwise > 0
                    and kQueryFields[i].get(self.query) < self.query.earliest):
                first = <object>given[<Py_ssize_t>FIELD_INDEX["earliest"]]
                raise ValueError(
                    f"earliest {first!r} lies after {FIELD_NAMES[i]} {<object>given[i]!r}")
        return 0

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
            self.store_as_given(walltime, "walltime", True)
            self.as_given["volume"], self.as_given["reference"] = (None, None), (pace, None)
            if self.as_given["walltime"][1].ns == 0:
                raise ValueError(f"walltime must be positive, got {walltime!r}")
            return 1.0
        cdef double time = number(walltime, "walltime")
        if not (time > 0 and isfinite(time)):
            raise ValueError(f"walltime must be positive and finite, got {walltime!r}")
        return time * pace

    cdef int store_as_given(self, object value, str name, bint is_duration) except -1:
        """Store a time that only a clock can convert to a number."""
        if self.as_given is None:
            self.as_given = {}
        parse = adapter("duration_of") if is_duration else adapter("moment_of")
        self.as_given[name] = value, parse(value, name)
        return 0

    def _value_as_given(self, str name, value):
        if self.as_given is None or name not in self.as_given:
            return value
        return self.as_given[name][0]

    @property
    def nodes(self):
        """Number of different nodes."""
        return self.query.n

    @property
    def reference(self):
        """The performance to which the walltime refers; 1 without a walltime."""
        return self._value_as_given("reference", 1.0)

    @property
    def walltime(self):
        """The walltime as given, or None if it was a number or a volume was given."""
        return self._value_as_given("walltime", None)

    def _fields(self):
        fields = {"nodes": self.nodes}
        cdef int i
        for i in range(kQueryFieldCount):
            fields[FIELD_NAMES[i]] = field_value(self, i)
        fields["where"], fields["limits"] = self.where, self.limits
        if self.special is not None:
            fields.update(self.special)
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


def suitable_rows(Request request, cnp.ndarray table):
    """Return which rows of an array of slots meet all limits of a request on single slots.

    The test of the kernels (Query::suits), without the filter `where`. Times are numbers.
    """
    cdef const double[::1] start = np.ascontiguousarray(table["start"], np.float64)
    cdef const double[::1] end = np.ascontiguousarray(table["end"], np.float64)
    cdef const double[::1] performance = np.ascontiguousarray(table["performance"], np.float64)
    cdef const double[::1] price = np.ascontiguousarray(table["price"], np.float64)
    cdef const int[::1] node = np.ascontiguousarray(table["node"], np.int32)
    found = np.empty(len(table), np.bool_)
    cdef unsigned char[::1] is_suitable = found.view(np.uint8)
    cdef CSlot slot
    cdef Py_ssize_t i
    slot.place = -1
    for i in range(len(is_suitable)):
        slot.start, slot.end, slot.performance = start[i], end[i], performance[i]
        slot.price, slot.rate, slot.node = price[i], price[i] / performance[i], node[i]
        is_suitable[i] = request.query.suits(slot)
    return found


def _make_request(fields):
    return Request(fields.pop("nodes"), fields.pop("volume", None), **fields)


cdef object field_value(Request request, int i):
    if request.as_given is None:
        return kQueryFields[i].get(request.query)
    return request._value_as_given(FIELD_NAMES[i], kQueryFields[i].get(request.query))


cdef object get_field(object request, void* index):
    return field_value(request, <int><Py_ssize_t>index)


cdef object get_special(object request, void* name):
    cdef str field = <str><object>name
    values = (<Request>request).special
    return SPECIAL_FIELDS[field].default if values is None or field not in values \
        else values[field]


cdef PyGetSetDef[64] PROPERTIES
cdef list SPECIAL_TEXTS = [
    (name, name.encode(), field.text.encode()) for name, field in SPECIAL_FIELDS.items()]


cdef int add_properties() except -1:
    """Add a property for each numeric and each special field to the class `Request`."""
    cdef TypeObject* cls = <TypeObject*>Request
    cdef int i
    for i in range(kQueryFieldCount):
        PROPERTIES[i].name, PROPERTIES[i].doc = kQueryFields[i].name, kQueryFields[i].text
        PROPERTIES[i].get, PROPERTIES[i].closure = get_field, <void*><Py_ssize_t>i
        (<dict>cls.tp_dict)[FIELD_NAMES[i]] = PyDescr_NewGetSet(cls, &PROPERTIES[i])
    for i, (name, key, text) in enumerate(SPECIAL_TEXTS, kQueryFieldCount):
        PROPERTIES[i].name, PROPERTIES[i].doc = <bytes>key, <bytes>text
        PROPERTIES[i].get, PROPERTIES[i].closure = get_special, <void*>name
        (<dict>cls.tp_dict)[name] = PyDescr_NewGetSet(cls, &PROPERTIES[i])
    PyType_Modified(Request)
    return 0


add_properties()


cdef Request convert_times(Request request, object clock, object position):
    """Return the request with its dates and durations as numbers of a clock.

    Raises ValueError if there is no clock, or a date has no exact number. Errors name the request,
    or its `position` in a list if it has no name.
    """
    who = request.name or ("" if position is None else f"requests[{position}]")
    cdef str at = f"{who}: " if who else ""
    cdef Request copy = Request.__new__(Request)
    cdef double number
    cdef Py_ssize_t i
    copy.query = request.query
    copy.name, copy.where, copy.limits = request.name, request.where, request.limits
    copy.special, copy.rules = request.special, request.rules
    for name, (value, parsed) in (<dict>request.as_given).items():
        if name == "reference" or value is None:
            continue
        if parsed is not None and clock is None:
            raise ValueError(
                f"{at}{name} is {quote(value)}, but these slots have no clock; "
                "search what free_slots returns (a pool that `slotkern free` wrote), or "
                "SlotPool(slots, clock=Clock(origin, zone=...))")
        i = FIELD_INDEX["volume" if name == "walltime" else name]
        if parsed is None:
            number = value
        elif kQueryFields[i].kind == FieldKind.time:
            number = clock.time(parsed, at + name)
        else:
            number = clock.duration(parsed, at + name)
        if name == "walltime":
            number *= <double>request.as_given["reference"][0]
        kQueryFields[i].set(copy.query, number)
    for i in range(kQueryFieldCount):
        if (kQueryFields[i].kind == FieldKind.time and kQueryFields[i].otherwise > 0
                and kQueryFields[i].get(copy.query) < copy.query.earliest):
            raise ValueError(f"{at}earliest {request.earliest} lies after {FIELD_NAMES[i]} "
                             f"{field_value(request, <int>i)}")
    for i in range(kQueryFieldCount):
        number = kQueryFields[i].get(copy.query)
        if not kQueryFields[i].accepts(number):
            copy.set_field(<int>i, number)  # raises the error of a number
    return copy


cdef Request copy_request(Request request):
    """Return a copy with an empty list of arrays that its query may reference."""
    cdef Request copy = Request.__new__(Request)
    copy.query = request.query
    copy.name, copy.where, copy.limits = request.name, request.where, request.limits
    copy.special, copy.rules = request.special, request.rules
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
        from slotkern.expressions.filters import columns_of_filter
        columns |= columns_of_filter(request.where)
    for limit in request.limits:
        if not isinstance(limit.of, str):
            return False
        from slotkern.expressions.limits import columns_of_term
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
