"""Binding of the knapsacks: validate, release the GIL, call the kernel, wrap the result."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int64_t
from libcpp cimport bool as cbool
from libcpp.utility cimport move
from libcpp.vector cimport vector

from slotkern._kernels.base cimport (
    Fault, Status, InterruptScope, attempt, status_error, number,
)

from slotkern.foundation.checks import integer, one_of
from slotkern.display import HasTable
from slotkern.display.table import Table

cnp.import_array()

cdef extern from "slotkern/choice/choose.hpp" namespace "slotkern" nogil:
    cdef enum class Method(int):
        fastest
        table
        search

    cdef cppclass CppChoice "slotkern::Choice":
        cbool any, proven
        double value, cost, bound
        vector[int] rows

    Fault cpp_choose "slotkern::choose"(
        const double*, const double*, int, int, int, double, double, int64_t, double, Method,
        vector[CppChoice]*&)
    int64_t cpp_last_work "slotkern::last_work"()

cdef extern from "slotkern/choice/choose_constrained.hpp" namespace "slotkern" nogil:
    cdef cppclass SumLimit:
        const double* weight
        double amount
        cbool at_least

    Fault cpp_choose_constrained "slotkern::choose_constrained"(
        const double*, const double*, int, int, double, const vector[SumLimit]&, double, int64_t,
        CppChoice*&)

cdef extern from "slotkern/choice/multidim_bound.hpp" namespace "slotkern":
    const int kMaxSumLimits

cdef extern from "slotkern/choice/multiple_choice.hpp" namespace "slotkern" nogil:
    cdef cppclass Classes:
        const double* value
        const double* weight
        const int64_t* first
        size_t count

    cdef cppclass CppOneEach "slotkern::MultipleChoiceKnapsack":
        vector[int64_t] rows
        double value, weight, bound, least
        cbool feasible, proven

    Fault cpp_choose_one_each "slotkern::choose_one_each"(
        const Classes&, double, cbool, double, int64_t, CppOneEach*&)

cdef extern from "slotkern/choice/trade_off.hpp" namespace "slotkern" nogil:
    cdef cppclass CppTradeOff "slotkern::TradeOff":
        vector[double] value, weight
        cbool complete

    Fault cpp_trade_off "slotkern::trade_off"(const Classes&, cbool, int64_t, CppTradeOff&)

# Default work limit of choose_one_each, then `proven` is False: well under a second.
ONE_EACH_WORK = 1 << 24
# Default work limit of choose under several limits.
CONSTRAINED_WORK = 1 << 24
# Maximum number of entries of choose_each.
MAX_EACH = 10_000_000

cdef dict METHODS = {"auto": <int>Method.fastest, "table": <int>Method.table,
                     "search": <int>Method.search}


@cython.final
cdef class Choice:
    """Choice(rows, value, cost, proven, bound)
--

    The rows selected by `choose`.

    Attributes
    ----------
    rows : ndarray of int64
        Ascending row numbers.
    value : float
        Sum of the values, added in ascending (cost, row) order.
    cost : float
        Exact sum of the costs, rounded once; within the budget.
    proven : bool
        True if no other choice is better by more than ``max(gap, 1e-12)`` of this value. If
        values of both signs cancel, the rounding error of the two sums is added: at most
        ``n * 2**-52`` times the sum of the absolute values.
    bound : float
        No choice has a larger value, added in the same order.
    """

    cdef readonly object rows
    cdef readonly double value, cost, bound
    cdef readonly cbool proven

    def __init__(self, rows, double value, double cost, bint proven, double bound):
        self.rows = np.asarray(rows)
        if self.rows.ndim != 1 or self.rows.dtype.kind not in "iu" and self.rows.size:
            raise TypeError(f"rows must be row numbers in one dimension, got {rows!r}")
        self.rows = self.rows.astype(np.int64)
        self.value, self.cost, self.proven, self.bound = value, cost, proven, bound

    to_pandas = HasTable.to_pandas
    to_arrow = HasTable.to_arrow
    __arrow_c_stream__ = HasTable.__arrow_c_stream__
    _repr_html_ = HasTable._repr_html_

    def _as_table(self):
        """Return the selected rows as a table for display."""
        facts = {name: getattr(self, name) for name in ("value", "cost", "proven", "bound")}
        return Table("Choice", {"row": self.rows}, len(self.rows), facts=facts)

    def __repr__(self):
        return (f"Choice(rows={self.rows.tolist()}, value={self.value!r}, cost={self.cost!r}, "
                f"proven={self.proven}, bound={self.bound!r})")

    def __eq__(self, other):
        if not isinstance(other, Choice):
            return NotImplemented
        return self._fields()[1:] == other._fields()[1:] and np.array_equal(self.rows, other.rows)

    __hash__ = None

    def _fields(self):
        return self.rows, self.value, self.cost, self.proven, self.bound

    def __reduce__(self):
        return Choice, self._fields()


# `found` was moved out of the thread's scratch memory, because garbage collection may run code that
# calls choose().
cdef Choice choice_from_result(const CppChoice& found):
    if not found.any:
        return None
    cdef cnp.npy_intp size = <cnp.npy_intp>found.rows.size()
    rows = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_INT64)
    cdef int64_t* into = <int64_t*>cnp.PyArray_DATA(rows)
    cdef cnp.npy_intp i
    for i in range(size):
        into[i] = found.rows[i]
    cdef Choice choice = Choice.__new__(Choice)
    choice.rows = rows
    choice.value, choice.cost, choice.bound = found.value, found.cost, found.bound
    choice.proven = found.proven
    return choice


cdef cnp.ndarray float_column(object values, str name):
    """Return a contiguous float64 array, without a copy if possible; raise as `choose`."""
    cdef cnp.ndarray array
    if isinstance(values, np.ndarray):
        array = <cnp.ndarray>values
        if (cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE and cnp.PyArray_NDIM(array) == 1
                and cnp.PyArray_ISCARRAY_RO(array)):
            return array
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.float64) if array.dtype.kind in "iuf" else array
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {array.ndim} dimensions")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        lowest = -(2**53) if array.dtype.kind == "i" else 0
        large = np.flatnonzero((array > 2**53) | (array < lowest))
        if large.size:
            raise ValueError(f"{name}[{large[0]}] = {array[large[0]]} is beyond 2**53 and would "
                             "not keep its value as a float")
    return np.ascontiguousarray(array, dtype=np.float64)


cdef tuple item_columns(object cost, object value):
    """Return validated columns of costs and values, of equal length."""
    costs, values = float_column(cost, "cost"), float_column(value, "value")
    if len(values) != len(costs):
        raise ValueError(f"value has {len(values)} entries for {len(costs)} costs")
    if len(costs) > 0x3FFFFFFF:
        raise ValueError(f"{len(costs)} items are too many; at most {0x3FFFFFFF}")
    return costs, values


cdef int64_t checked_integer(object value, str name, int64_t least) except? -1:
    cdef int overflow = 0
    cdef int64_t found
    if type(value) is int:  # fast path without a call of Python
        found = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow and found >= least:
            return found
    return min(integer(name, value, least), INT64_MAX)


cdef object choice_error(const Fault& fault, object cost, object value, str name, str rule,
                         double memory=0):
    """Return the exception for items with these costs (or weights) and values."""
    row = fault.row
    known = row < <size_t>len(cost)
    return status_error(fault.status, "choose", {
        "name": "value" if fault.status == Status.value_not_finite else name,
        "row": row, "rule": rule, "memory": memory,
        "cost": cost[row] if known else None, "value": value[row] if known else None,
        "what": f"{name}s or values",
        "largest": f"are {abs(cost).max(initial=0)} and {abs(value).max(initial=0)}",
    })


cdef object run_choose(object cost, object value, object n, object budget, object gap,
                       object max_work, object memory_limit, object method, bint each):
    cdef cnp.ndarray costs, values
    costs, values = item_columns(cost, value)
    cdef Py_ssize_t count = cnp.PyArray_DIM(costs, 0)
    cdef int64_t pick = checked_integer(n, "n", 1)
    cdef double money = number(budget, "budget", 0), slack = number(gap, "gap", 0, True)
    cdef double memory = number(memory_limit, "memory_limit", 0)
    cdef int64_t work = INT64_MAX if max_work is None else checked_integer(max_work, "max_work", 0)
    known = METHODS.get(method) if type(method) is str else None
    cdef int chosen = METHODS[one_of("method", method, METHODS)] if known is None else known
    if each and pick > MAX_EACH:
        raise ValueError(f"n must be at most {MAX_EACH} for choose_each, got {n}")
    cdef const double* c = <const double*>cnp.PyArray_DATA(costs)
    cdef const double* z = <const double*>cnp.PyArray_DATA(values)
    cdef vector[CppChoice]* choices = NULL
    cdef Method how = <Method><int>chosen
    # If n exceeds the number of items, the answer is None.
    cdef int most = <int>min(pick, count + 1)
    cdef int first = 1 if each else most
    cdef Fault fault
    cdef InterruptScope interrupts
    while attempt(interrupts, fault.status):
        with nogil:
            fault = cpp_choose(c, z, <int>count, first, most, money, slack, work, memory, how,
                               choices)
    if fault.status != Status.ok:
        raise choice_error(fault, costs, values, "cost", "negative or not finite", memory)
    cdef size_t k
    cdef CppChoice one
    cdef vector[CppChoice] many
    if not each:
        one = move(choices[0][0])
        return choice_from_result(one)
    many = move(choices[0])
    return [choice_from_result(many[k]) for k in range(many.size())] + [None] * (pick - most)


def choose(cost, value, n, budget, gap, max_work, memory_limit, method):
    """See `slotkern.choose`."""
    return run_choose(cost, value, n, budget, gap, max_work, memory_limit, method, False)


def choose_each(cost, value, n, budget, gap, max_work, memory_limit, method):
    """See `slotkern.choose_each`."""
    return run_choose(cost, value, n, budget, gap, max_work, memory_limit, method, True)


def last_work():
    """Return the work units of this thread's last `choose` or `choose_each`; for tests."""
    return cpp_last_work()


# --- further limits

# Maximum number of limits besides the budget.
MAX_LIMITS = kMaxSumLimits - 1


cdef tuple parse_limit(object limit, Py_ssize_t k, Py_ssize_t count):
    """Return the validated weights, side (True: at least) and amount of a limit."""
    if not isinstance(limit, tuple) or len(limit) != 3:
        raise TypeError(f"limits[{k}] must be (weights, '<=' or '>=', amount), got {limit!r}")
    weights = float_column(limit[0], f"limits[{k}]: weights")
    if len(weights) != count:
        raise ValueError(f"limits[{k}] has {len(weights)} weights for {count} costs")
    side = one_of(f"limits[{k}]: the side", limit[1], ("<=", ">="))
    return weights, side == ">=", number(limit[2], f"limits[{k}]: the amount", -INFINITY, True)


def choose_constrained(cost, value, n, budget, limits, gap, max_work):
    """See `slotkern.choose`."""
    cdef cnp.ndarray costs, values
    costs, values = item_columns(cost, value)
    cdef Py_ssize_t count = cnp.PyArray_DIM(costs, 0)
    if len(limits) > MAX_LIMITS:
        raise ValueError(f"at most {MAX_LIMITS} limits, got {len(limits)}")
    cdef int64_t pick = checked_integer(n, "n", 1)
    cdef double money = number(budget, "budget", 0), slack = number(gap, "gap", 0, True)
    cdef int64_t work = checked_integer(
        CONSTRAINED_WORK if max_work is None else max_work, "max_work", 0)
    cdef vector[SumLimit] rules
    cdef SumLimit rule
    columns = [parse_limit(limit, k, count) for k, limit in enumerate(limits)]
    for weights, at_least, amount in columns:
        rule.weight = <const double*>cnp.PyArray_DATA(<cnp.ndarray>weights)
        rule.at_least, rule.amount = at_least, amount
        rules.push_back(rule)
    cdef int most = <int>min(pick, count + 1)
    cdef CppChoice* found = NULL
    cdef Fault fault
    cdef InterruptScope interrupts
    while attempt(interrupts, fault.status):
        with nogil:
            fault = cpp_choose_constrained(
                <const double*>cnp.PyArray_DATA(costs), <const double*>cnp.PyArray_DATA(values),
                <int>count, most, money, rules, slack, work, found)
    if fault.status in (Status.weight_not_finite, Status.weights_overflow):
        row, k = fault.row, fault.other
        raise status_error(fault.status, "choose", {
            "limit": k, "row": row, "weight": columns[k][0][row]})
    if fault.status == Status.undecided:
        raise status_error(fault.status, "choose", {"work": work})
    if fault.status != Status.ok:
        raise choice_error(fault, costs, values, "cost", "negative or not finite")
    cdef CppChoice one = move(found[0])
    return choice_from_result(one)


# --- one row of each class

@cython.final
cdef class OneEach:
    """OneEach(rows, value, weight, proven, bound, least, feasible)
--

    The rows selected by `choose_one_each`.

    Attributes
    ----------
    rows : ndarray of int64, shape (k,)
        One row for each class, in the order of the classes; empty if no choice meets the
        limit.
    value, weight : float
        Sums over the rows, added in the order of the classes; NaN if there are no rows.
    proven : bool
        True if no other choice is better by a relative ``max(gap, 1e-12)``; for integer
        values with sums below 2**53, by a relative `gap`.
    bound : float
        No choice has a better value, up to the rounding of sums; NaN if there are no rows.
    least : float
        The smallest limit that a choice meets.
    feasible : bool
        True if a choice exists: ``least <= limit``.
    """

    cdef readonly object rows
    cdef readonly double value, weight, bound, least
    cdef readonly cbool proven, feasible

    def __init__(self, rows, double value, double weight, bint proven, double bound,
                 double least, bint feasible):
        self.rows = rows
        self.value, self.weight, self.bound, self.least = value, weight, bound, least
        self.proven, self.feasible = proven, feasible

    to_pandas = HasTable.to_pandas
    to_arrow = HasTable.to_arrow
    __arrow_c_stream__ = HasTable.__arrow_c_stream__
    _repr_html_ = HasTable._repr_html_

    def _as_table(self):
        """Return the selected row of each class as a table for display."""
        facts = {name: getattr(self, name) for name in ("value", "weight", "proven", "bound",
                                                        "least", "feasible")}
        classes = np.arange(len(self.rows))
        return Table("OneEach", {"class": classes, "row": self.rows}, len(self.rows),
                     facts=facts)

    def __repr__(self):
        return (f"OneEach(rows={self.rows.tolist()}, value={self.value!r}, "
                f"weight={self.weight!r}, proven={self.proven}, bound={self.bound!r}, "
                f"least={self.least!r})")

    def __eq__(self, other):
        if not isinstance(other, OneEach):
            return NotImplemented
        return (np.array_equal(self._fields()[1:], other._fields()[1:], equal_nan=True)
                and np.array_equal(self.rows, other.rows))

    __hash__ = None

    def _fields(self):
        return (self.rows, self.value, self.weight, self.proven, self.bound, self.least,
                self.feasible)

    def __reduce__(self):
        return OneEach, self._fields()


cdef cnp.ndarray class_starts(object first, Py_ssize_t rows):
    """Return the validated offsets of the classes as int64."""
    array = np.asarray(first)
    if array.dtype.kind not in "iu":
        raise TypeError(f"first must hold integers, got dtype {array.dtype}")
    if array.ndim != 1 or array.size == 0:
        raise ValueError("first must be one-dimensional with one entry more than classes")
    array = np.ascontiguousarray(array, np.int64)
    last = array[array.size - 1]
    if array[0] != 0 or last != rows:
        raise ValueError(f"first must run from 0 to the number of rows, {rows}; it runs from "
                         f"{array[0]} to {last}")
    empty = np.flatnonzero(np.diff(array) <= 0)
    if empty.size:
        k = empty[0]
        raise ValueError(f"class {k} has no rows: first[{k}] = {array[k]}, first[{k + 1}] = "
                         f"{array[k + 1]}")
    return array


cdef Classes classes_of(cnp.ndarray values, cnp.ndarray weights, cnp.ndarray firsts):
    cdef Classes classes
    classes.value = <const double*>cnp.PyArray_DATA(values)
    classes.weight = <const double*>cnp.PyArray_DATA(weights)
    classes.first = <const int64_t*>cnp.PyArray_DATA(firsts)
    classes.count = cnp.PyArray_DIM(firsts, 0) - 1
    return classes


cdef tuple class_columns(object value, object weight, object first):
    cdef cnp.ndarray values = float_column(value, "value"), weights = float_column(weight, "weight")
    cdef Py_ssize_t count = cnp.PyArray_DIM(values, 0)
    if cnp.PyArray_DIM(weights, 0) != count:
        raise ValueError(f"weight has {cnp.PyArray_DIM(weights, 0)} entries for {count} values")
    if count > 0x3FFFFFFF:
        raise ValueError(f"{count} rows are too many; at most {0x3FFFFFFF}")
    return values, weights, class_starts(first, count)


def choose_one_each(value, weight, first, limit, bint maximize, gap, max_work):
    """See `slotkern.choose_one_each`."""
    values, weights, firsts = class_columns(value, weight, first)
    cdef double most = number(limit, "limit"), slack = number(gap, "gap", 0, True)
    cdef int64_t work = checked_integer(
        ONE_EACH_WORK if max_work is None else max_work, "max_work", 0)
    cdef Classes classes = classes_of(values, weights, firsts)
    cdef CppOneEach* answer = NULL
    cdef OneEach out = OneEach.__new__(OneEach)  # before the kernel runs: see choice_from_result
    cdef Fault fault
    cdef InterruptScope interrupts
    while attempt(interrupts, fault.status):
        with nogil:
            fault = cpp_choose_one_each(classes, most, maximize, slack, work, answer)
    if fault.status != Status.ok:
        raise choice_error(fault, weights, values, "weight", "not finite")
    out.value, out.weight, out.bound = answer.value, answer.weight, answer.bound
    out.least, out.proven, out.feasible = answer.least, answer.proven, answer.feasible
    cdef vector[int64_t] rows = move(answer.rows)
    cdef cnp.npy_intp size = <cnp.npy_intp>rows.size(), i
    cdef int64_t* into
    out.rows = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_INT64)
    into = <int64_t*>cnp.PyArray_DATA(out.rows)
    for i in range(size):
        into[i] = rows[i]
    return out


def trade_off(value, weight, first, bint maximize, max_work):
    """See `slotkern.trade_off`; returns (weights, values, complete)."""
    values, weights, firsts = class_columns(value, weight, first)
    cdef int64_t work = checked_integer(max_work, "max_work", 0)
    cdef Classes classes = classes_of(values, weights, firsts)
    cdef CppTradeOff answer
    cdef Fault fault
    cdef InterruptScope interrupts
    while attempt(interrupts, fault.status):
        with nogil:
            fault = cpp_trade_off(classes, maximize, work, answer)
    if fault.status != Status.ok:
        raise choice_error(fault, weights, values, "weight", "not finite")
    return np.array(answer.weight, np.float64), np.array(answer.value, np.float64), answer.complete
