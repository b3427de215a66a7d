"""What every published algorithm is asked: a job and the columns it is placed on."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slotkern.extras import extra

with extra():
    import numba

Function = TypeVar("Function", bound=Callable[..., Any])


#: A window that ends later, or costs more, overflows: it fits no job.
FINITE = float(np.finfo(np.float64).max)


class Job(NamedTuple):
    """The resource request of the papers, less what `proper` already decides."""

    nodes: int
    volume: float
    budget: float
    earliest: float
    deadline: float


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
    Callers and callees share one file: numba's cache sees changes of that file only.
    """
    return cast(Function, numba.njit(cache=True)(function))


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
