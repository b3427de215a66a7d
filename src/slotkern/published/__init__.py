"""The papers' algorithms as their pseudo-code says, step by step, compiled by numba.

They are the oracle of the tests and the baseline of the benchmarks, and the place to
read what the fast kernels compute. Misprints are mended and the mending is said where
it is done. Every quantity is written in the one expression the whole library uses, so
that costs, finishes and exactly met budgets agree to the last bit.

`import slotkern` does not import this package, since that imports numba. To follow an
algorithm in a debugger, set NUMBA_DISABLE_JIT=1 in the environment: the same functions
then run as ordinary Python.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import aep, square
from .job import Job

__all__ = ["ALGORITHMS", "Algorithm", "Job", "find"]

Found = tuple[float, NDArray[np.int64]] | None


class Algorithm(NamedTuple):
    """A published algorithm: its name, where it is printed, and the function."""

    name: str
    paper: str
    search: Callable[[NDArray[np.void], NDArray[np.bool_], Job, int], Found]


AEP_PAPER = "Slot selection and co-allocation algorithms for economic scheduling"
SQUARE_PAPER = "Optimization of resources selection for jobs scheduling"

#: Every published algorithm, by shape and criterion.
ALGORITHMS: dict[tuple[str, str], Algorithm] = {
    ("ragged", "first"): Algorithm("AMP", f"{AEP_PAPER}, 2.2", aep.amp),
    ("ragged", "start"): Algorithm("AMP", f"{AEP_PAPER}, 2.2", aep.amp),
    ("ragged", "cost"): Algorithm("minCost", f"{AEP_PAPER}, 2.2", aep.min_cost),
    ("ragged", "runtime"): Algorithm(
        "minRuntime", f"{AEP_PAPER}, 2.2", aep.min_runtime
    ),
    ("ragged", "finish"): Algorithm("minFinish", f"{AEP_PAPER}, 2.2", aep.min_finish),
    ("ragged", "processor_time"): Algorithm(
        "minProcTime", f"{AEP_PAPER}, 3.1", aep.min_proc_time
    ),
    ("square", "first"): Algorithm(
        "FirstFit", f"{SQUARE_PAPER}, 3.2", square.first_fit
    ),
    ("square", "start"): Algorithm(
        "FirstFit", f"{SQUARE_PAPER}, 3.2", square.first_fit
    ),
    ("square", "finish"): Algorithm(
        "MinFinish", f"{SQUARE_PAPER}, 3.3", square.min_finish
    ),
    ("square", "runtime"): Algorithm(
        "MinRuntime", f"{SQUARE_PAPER}, 3.3", square.min_runtime
    ),
    ("square", "cost"): Algorithm("MinCost", f"{SQUARE_PAPER}, 3.3", square.min_cost),
}


def find(
    slots: NDArray[np.void],
    *,
    nodes: int,
    volume: float,
    budget: float = np.inf,
    min_performance: float = 0.0,
    earliest: float = 0.0,
    deadline: float = np.inf,
    max_price: float = np.inf,
    proper: NDArray[np.bool_] | None = None,
    criterion: str,
    shape: str,
    seed: int = 0,
) -> Found:
    """Find a window as the paper that printed the algorithm does.

    Parameters
    ----------
    slots : structured array, shape (m,)
        Free slots with the fields node, start, end, performance and price, sorted by
        (start, node); trusted to be valid (`slotkern.validate_slots` checks it).
    nodes : int
        Number of slots of the window, on as many nodes.
    volume : float
        Work for each node; a part takes volume / performance.
    budget : float
        The most that the window may cost.
    min_performance, max_price : float
        The least performance and the highest price of a slot that may take part.
    earliest, deadline : float
        When the window may start and must have finished.
    proper : bool array, shape (m,), optional
        Which slots may take part at all (properHardwareAndSoftware); all without it.
    criterion, shape : str
        A key of `ALGORITHMS` is (shape, criterion).
    seed : int
        Of the random windows of minProcTime; the others use no random numbers.

    Returns
    -------
    (float, int64 array of shape (nodes,)) or None
        The start of the window and the rows of its slots, cheapest first (equal costs
        by node); None if the algorithm finds no window. Among windows of equal value
        the one met first.

    Raises
    ------
    ValueError
        If nothing is published for this shape and criterion.

    Notes
    -----
    Ragged: linear in m, quadratic in the nodes with a logarithm for the sort; square:
    the same once for each different performance.

    Examples
    --------
    >>> import slotkern as sk
    >>> from slotkern import published
    >>> slots = sk.make_slots(
    ...     node=[0, 1, 2],
    ...     start=[0, 10, 20],
    ...     end=50,
    ...     performance=[2, 4, 4],
    ...     price=[3, 4, 5],
    ... )
    >>> start, rows = published.find(
    ...     slots, nodes=2, volume=40, criterion="runtime", shape="ragged"
    ... )
    >>> start, rows.tolist()
    (20.0, [1, 2])
    """
    named = isinstance(criterion, str)
    algorithm = ALGORITHMS.get((shape, criterion)) if named else None
    if algorithm is None:
        known = "; ".join(
            f"{kind}: {', '.join(c for s, c in ALGORITHMS if s == kind)}"
            for kind in dict.fromkeys(s for s, _ in ALGORITHMS)
        )
        raise ValueError(
            f"no published algorithm for criterion {criterion!r} and shape {shape!r}; "
            f"published are {known}"
        )
    if nodes > len(slots):
        return None
    suitable = slots["performance"] >= min_performance
    suitable &= slots["price"] <= max_price
    if proper is not None:
        suitable &= proper
    job = Job(nodes, float(volume), float(budget), float(earliest), float(deadline))
    with np.errstate(over="ignore"):  # a length or a cost may be infinite
        return algorithm.search(slots, suitable, job, seed)
