"""What every published algorithm is asked: a job and the columns it is placed on."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slotkern.extras import extra

with extra():
    import numba
    from numba import types
    from numba.extending import overload

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


#: A window that ends later, or costs more, overflows: it fits no job.
FINITE = float(np.finfo(np.float64).max)


#: A sum meets an amount if it exceeds it by no more than decimals are rounded.
MET = 1 + 2.0**-50


class Job(NamedTuple):
    """The resource request of the papers, less what `proper` already decides.

    The papers know no constant part and no rounding step of a part's length. Both
    change getTime(Job) alone, so that the algorithms stand as they are.
    """

    nodes: int
    volume: float
    budget: float
    earliest: float
    deadline: float
    setup: float = 0.0
    step: float = 0.0

    @property
    def most(self) -> float:
        """The largest cost that meets the budget, by the rule of `slotkern.Request`."""
        return min(self.budget * MET, FINITE)

    def lengths(self, performance: NDArray[np.float64]) -> NDArray[np.float64]:
        """How long a part runs on each node, by the rule of `slotkern.Request`."""
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
        """What a part on each slot costs by itself."""
        price: NDArray[np.float64] = slots["price"]
        performance: NDArray[np.float64] = slots["performance"]
        if self.setup == 0 and self.step == 0:
            return self.volume * (price / performance)
        return price * self.lengths(performance)

    def suitable(
        self,
        slots: NDArray[np.void],
        min_performance: float,
        max_price: float,
        latest: float,
        max_runtime: float,
    ) -> NDArray[np.bool_]:
        """Return which slots keep the limits of the request that are of one slot."""
        performance: NDArray[np.float64] = slots["performance"]
        kept: NDArray[np.bool_] = performance >= min_performance
        kept &= slots["price"] <= max_price
        kept &= np.maximum(slots["start"], self.earliest) <= latest
        kept &= self.lengths(performance) <= max_runtime
        return kept


class Found(NamedTuple):
    """A window as the algorithms report it."""

    start: float
    rows: NDArray[np.int64]
    length: float = 0.0  # of a group's window that lacks the group's own performance
    value: float | None = None  # what the algorithm maximized


def compiled(function: Function) -> Function:
    """Compile a function, keeping the machine code on disk for the next process.

    Each compiled function stays readable Python: `function.py_func` is the original,
    and with NUMBA_DISABLE_JIT=1 in the environment nothing is compiled at all.
    Callers and callees share one file, but for `exact_total`: numba's cache sees
    changes of the caller's file only.
    """
    return cast(Function, numba.njit(cache=True)(function))


@compiled
def exact_total(window: NDArray[np.int64], column: NDArray[np.float64]) -> float:
    """Sum a column over a window: the exact sum of terms >= 0, rounded once.

    The papers' sums are those of real numbers. Each addition's rounding error is added
    up beside the sum. If that sum is rounded too, the terms are added once more, into
    parts that do not overlap (Shewchuk's expansion).
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


class Interrupted(Exception):
    """Ctrl-C has been pressed; what it means is for the interpreter to say."""


def interrupted() -> bool:
    """Return whether Ctrl-C waits for compiled code to come to its end.

    The papers know no such step. Where nothing is compiled, the interpreter looks.
    """
    return False


def whole(run: Callable[..., Result], *arguments: Any) -> Result:
    """Run compiled code; Ctrl-C ends it, unless the program's handler lets it go on.

    The interpreter asks the handler, which raises what it likes, on the way to the next
    try.
    """
    while True:
        try:
            return run(*arguments)
        except Interrupted:
            continue


_occurred: Any = types.ExternalFunction("PyOS_InterruptOccurred", types.int32())
_set_again: Any = types.ExternalFunction("PyErr_SetInterrupt", types.void())


@overload(interrupted)
def _compile_interrupted() -> Any:
    def occurred() -> bool:
        if _occurred() == 0:
            return False
        _set_again()  # asking takes it away
        return True

    return occurred


def in_order(
    slots: NDArray[np.void], key: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the slots by (key, node), so that sorting numbers is sorting costs.

    Returns `row`, which row of `slots` each number stands for, and `arrival`, the
    numbers in the order of the rows: by non-decreasing start, then node.
    """
    row = np.lexsort((slots["node"], key)).astype(np.int64)
    arrival = np.empty_like(row)
    arrival[row] = np.arange(len(row))
    return row, arrival
