"""The published algorithms that find one window, and the function that runs one."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import aep, square, valued
from .job import FINITE, Found, Job

__all__ = ["ALGORITHMS", "PublishedAlgorithm", "find"]


class PublishedAlgorithm(NamedTuple):
    """A published algorithm: its name, the paper and section, and its functions.

    `search(slots, proper, job, x)` returns the window or None; x is the seed, or the
    values for criterion "value". `lite` is the variant that takes the n cheapest slots
    of each step, if there is one.
    """

    name: str
    paper: str
    search: Callable[[NDArray[np.void], NDArray[np.bool_], Job, Any], Found | None]
    lite: Callable[[NDArray[np.void], NDArray[np.bool_], Job, Any], Found | None] | (
        None
    ) = None


AEP_PAPER = "Slot selection and co-allocation algorithms for economic scheduling"
SQUARE_PAPER = "Optimization of resources selection for jobs scheduling"
PLACEMENT_PAPER = "Dependable and coordinated resources allocation algorithms"

#: Every published algorithm by (shape, criterion). "value" means any array of
#: values, "local_price" the first window whose slots each meet the price limit.
ALGORITHMS: dict[tuple[str, str], PublishedAlgorithm] = {
    ("ragged", "first"): PublishedAlgorithm("AMP", f"{AEP_PAPER}, 2.2", aep.amp),
    ("ragged", "start"): PublishedAlgorithm("AMP", f"{AEP_PAPER}, 2.2", aep.amp),
    ("ragged", "local_price"): PublishedAlgorithm("ALP", f"{AEP_PAPER}, 1", aep.alp),
    ("ragged", "cost"): PublishedAlgorithm(
        "minCost", f"{AEP_PAPER}, 2.2", aep.min_cost
    ),
    ("ragged", "runtime"): PublishedAlgorithm(
        "minRuntime", f"{AEP_PAPER}, 2.2", aep.min_runtime
    ),
    ("ragged", "finish"): PublishedAlgorithm(
        "minFinish", f"{AEP_PAPER}, 2.2", aep.min_finish
    ),
    ("ragged", "processor_time"): PublishedAlgorithm(
        "minProcTime", f"{AEP_PAPER}, 3.1", aep.min_proc_time
    ),
    ("ragged", "value"): PublishedAlgorithm("AEP", f"{AEP_PAPER}, 2.1", valued.general),
    ("square", "first"): PublishedAlgorithm(
        "FirstFit", f"{SQUARE_PAPER}, 3.2", square.first_fit
    ),
    ("square", "start"): PublishedAlgorithm(
        "FirstFit", f"{SQUARE_PAPER}, 3.2", square.first_fit
    ),
    ("square", "finish"): PublishedAlgorithm(
        "MinFinish", f"{SQUARE_PAPER}, 3.3", square.min_finish
    ),
    ("square", "runtime"): PublishedAlgorithm(
        "MinRuntime", f"{SQUARE_PAPER}, 3.3", square.min_runtime
    ),
    ("square", "cost"): PublishedAlgorithm(
        "MinCost", f"{SQUARE_PAPER}, 3.3", square.min_cost
    ),
    ("square", "value"): PublishedAlgorithm(
        "MaxQ",
        f"{SQUARE_PAPER}, 3.3",
        valued.max_value,
        partial(valued.max_value, lite=True),
    ),
    ("square", "dependable"): PublishedAlgorithm(
        "DEP",
        f"{PLACEMENT_PAPER}, 3.4",
        valued.dependable,
        partial(valued.dependable, lite=True),
    ),
    ("square", "coordinated"): PublishedAlgorithm(
        "COORD",
        f"{PLACEMENT_PAPER}, 3.4",
        valued.coordinated,
        partial(valued.coordinated, lite=True),
    ),
}


def find(
    slots: NDArray[np.void],
    *,
    nodes: int,
    volume: float,
    budget: float = np.inf,
    min_performance: float = 0.0,
    earliest: float = -np.inf,
    deadline: float = np.inf,
    max_price: float = np.inf,
    setup: float = 0.0,
    step: float = 0.0,
    latest: float = np.inf,
    max_runtime: float = np.inf,
    proper: NDArray[np.bool_] | None = None,
    criterion: str | NDArray[np.float64],
    shape: str,
    lite: bool = False,
    seed: int = 0,
) -> Found | None:
    """Find a window by the published algorithm for this shape and criterion.

    Parameters
    ----------
    slots : structured array, shape (m,)
        Free slots with the fields node, start, end, performance and price, sorted by
        (start, node). They are not validated; see `slotkern.validate_slots`.
    nodes : int
        Number of slots of the window, each on another node.
    volume : float
        Work for each node; a part takes volume / performance, with `setup` and `step`
        as in `slotkern.Request`.
    budget : float
        The largest cost of the window.
    min_performance, max_price : float
        The least performance and the highest price of a usable slot.

        Misprint: the square procedure requires performance p_i > p, the experiment
        of the same papers p_i >= 1. Here it is >= everywhere, as the word minimum
        implies.
    earliest, deadline : float
        The earliest start and the latest finish of the window.
    setup, step : float
        The constant part of a part's length, and the unit to which lengths are rounded.
    latest, max_runtime : float
        The latest start and the longest runtime: later slots, and slots on which a part
        runs longer, are excluded.
    proper : bool array, shape (m,), optional
        The usable slots (properHardwareAndSoftware); all by default.
    criterion : str or float64 array of shape (m,)
        The objective, or the values whose sum is maximized (AEP, MaxQ).
    shape : str
        With the criterion, a key of `ALGORITHMS`; for an array the criterion is
        "value".
    lite : bool
        Take the n cheapest slots of each step (the Lite variants of MaxQ, DEP, COORD).
    seed : int
        Seed of the random windows of minProcTime; the others use no random numbers.

    Returns
    -------
    Found or None
        `start` of the window and `rows` of its slots, an int64 array of shape (nodes,),
        cheapest first (equal costs by node); also the maximized `value`, if a sum was
        maximized, and for MaxQ, DEP and COORD the `length` of the group. None if the
        algorithm finds no window. Among windows of equal value, the first one found.

    Raises
    ------
    ValueError
        If nothing is published for this shape and criterion, or if the table of AEP,
        MaxQ, DEP and COORD would need an infinite number of columns (infinite budget)
        or more than 1 GiB.

    Notes
    -----
    Ragged: linear in m, quadratic in the nodes with a logarithm for the sort; square:
    the same once per different performance; by value: O(a n C) at every step for a
    live slots and the budget C.

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
    >>> found = published.find(
    ...     slots, nodes=2, volume=40, criterion="runtime", shape="ragged"
    ... )
    >>> found.start, found.rows.tolist()
    (20.0, [1, 2])
    """
    by_value = isinstance(criterion, np.ndarray)
    named = "value" if by_value else criterion if isinstance(criterion, str) else ""
    algorithm = ALGORITHMS.get((shape, named))
    if algorithm is None or (named == "value" and not by_value):
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
    run = algorithm.lite if lite else algorithm.search
    if run is None:
        raise ValueError(f"{algorithm.name} has no Lite form")
    last = min(float(deadline), FINITE)
    job = Job(nodes, float(volume), float(budget), float(earliest), last, setup, step)
    with np.errstate(over="ignore", invalid="ignore"):  # lengths and costs may be inf
        suitable_slots = job.suitable_slots(
            slots, min_performance, max_price, latest, max_runtime
        )
        if proper is not None:
            suitable_slots &= proper
        return run(slots, suitable_slots, job, criterion if by_value else seed)
