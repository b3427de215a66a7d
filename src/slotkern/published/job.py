"""The input of every published algorithm: a job, its part lengths and costs.

Also the pieces that all of them share: compilation, exact sums and signals.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import FIELDS, Request
from slotkern.foundation.extras import extra
from slotkern.foundation.special_fields import refuse_special

with extra():
    import numba
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, overload

Function = TypeVar("Function", bound=Callable[..., Any])


#: The largest finite time or cost: windows beyond it overflow and fit no job.
FINITE = float(np.finfo(np.float64).max)


#: Tolerance factor of sums: they may exceed a limit by the rounding error of decimals.
SUM_TOLERANCE = 1 + 2.0**-50


class Job(NamedTuple):
    """The resource request of the papers, without the tests that `proper` covers.

    The papers have neither a constant part nor a rounding step of a part's length. Both
    affect getTime(Job) only, so the algorithms are unchanged.
    """

    nodes: int
    volume: float
    budget: float
    earliest: float
    deadline: float
    setup: float = 0.0
    step: float = 0.0

    @property
    def max_cost(self) -> float:
        """The largest cost that meets the budget, with the tolerance of `Request`."""
        return min(self.budget * SUM_TOLERANCE, FINITE)

    def lengths(self, performance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the length of a part on each node, as in `slotkern.Request`."""
        time: NDArray[np.float64] = self.setup + self.volume / performance
        if self.step == 0:
            return time
        count = time / self.step
        whole = np.floor(count)
        exact = (whole >= 1) & (count - whole <= 4 * 2.0**-52 * count)
        steps: NDArray[np.float64] = self.step * np.where(exact, whole, whole + 1)
        lengths: NDArray[np.float64] = np.where(count < 2.0**52, steps, time)
        return lengths

    def costs(self, slots: NDArray[np.void]) -> NDArray[np.float64]:
        """Compute the cost of a part on each slot."""
        price: NDArray[np.float64] = slots["price"]
        performance: NDArray[np.float64] = slots["performance"]
        if self.setup == 0 and self.step == 0:
            return self.volume * (price / performance)
        return price * self.lengths(performance)

    def suitable_slots(
        self,
        slots: NDArray[np.void],
        min_performance: float,
        max_price: float,
        latest: float,
        max_runtime: float,
    ) -> NDArray[np.bool_]:
        """Return the slots that meet each limit of the request on a single slot."""
        performance: NDArray[np.float64] = slots["performance"]
        kept: NDArray[np.bool_] = performance >= min_performance
        kept &= slots["price"] <= max_price
        kept &= np.maximum(slots["start"], self.earliest) <= latest
        kept &= self.lengths(performance) <= max_runtime
        return kept


def supported_fields(request: Request, supported: Collection[str]) -> dict[str, Any]:
    """Return the supported fields; raise ValueError for another limit that is set."""
    refuse_special(request, "a published algorithm")
    for name, field in FIELDS.items():
        value = getattr(request, name)
        if name not in supported and value != field.default:
            raise ValueError(
                f"the published algorithms have no {name}; the request has {value}"
            )
    return {name: getattr(request, name) for name in FIELDS if name in supported}


class Found(NamedTuple):
    """A window as the algorithms return it."""

    start: float
    rows: NDArray[np.int64]
    length: float = 0.0  # of the group, if the window lacks the group's performance
    value: float | None = None  # the maximized sum


def compiled(function: Function) -> Function:
    """Compile a function and cache the machine code on disk.

    The readable Python function remains available as `function.py_func`. With
    NUMBA_DISABLE_JIT=1 in the environment nothing is compiled. Callers and callees are
    in one file, except for `exact_total`, because numba's cache is invalidated only by
    changes of the caller's file.
    """
    return cast(Function, numba.njit(cache=True)(function))


@compiled
def exact_total(window: NDArray[np.int64], column: NDArray[np.float64]) -> float:
    """Sum a column over a window: the exact sum of terms >= 0, rounded once.

    The papers' sums are sums of real numbers. The rounding error of each addition is
    accumulated in a second sum. If that sum is rounded too, the terms are summed again
    as a nonoverlapping expansion (Shewchuk).
    """
    high, low, lost = 0.0, 0.0, 0.0
    for slot in window:
        x = column[slot]
        total = high + x
        part = total - high
        error = (high - (total - part)) + (x - part)
        rest = low + error
        share = rest - low
        lost += abs((low - (rest - share)) + (error - share))
        high, low = total, rest
    if lost == 0.0 or not np.isfinite(high):
        return high + low if np.isfinite(high) else high
    parts = np.zeros(len(window) + 1)
    size = 0
    for slot in window:
        x, kept = column[slot], 0
        for k in range(size):
            y = parts[k]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                parts[kept] = low
                kept += 1
            x = high
        parts[kept] = x
        size = kept + 1
    k = size - 1
    high, low = parts[k], 0.0
    while k > 0:
        k -= 1
        x, y = high, parts[k]
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            break
    if k > 0 and low != 0.0 and (low > 0.0) == (parts[k - 1] > 0.0):
        twice = 2.0 * low
        following = high + twice
        if twice == following - high:
            high = following
    return float(high)


def run_signal_handlers() -> None:
    """Run the handlers of pending signals; an exception of one ends compiled code.

    The papers have no such step. It does nothing without compilation, because the
    interpreter runs the handlers itself.
    """


@intrinsic
def _run_signal_handlers(_: Any) -> Any:
    def generate(context: Any, builder: Any, *_: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        name = "PyErr_CheckSignals"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        status = builder.call(function, [])
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, status)):
            context.call_conv.return_exc(builder)  # the interpreter has the exception
        return context.get_dummy_value()

    return types.void(), generate


@overload(run_signal_handlers)
def _compile_run_signal_handlers() -> Any:
    return lambda: _run_signal_handlers()  # type: ignore[call-arg]


def rank_slots(
    slots: NDArray[np.void], key: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the slots by (key, node), so that sorting numbers sorts by cost.

    Returns `row`, the row of `slots` for each number, and `arrival`, the numbers in the
    order of the rows: by non-decreasing start, then node.
    """
    row = np.lexsort((slots["node"], key)).astype(np.int64)
    arrival = np.empty_like(row)
    arrival[row] = np.arange(len(row))
    return row, arrival
