"""The compiled loops of AEP's algorithms and of CSA, prepared for timing.

`slotkern.published.find` numbers the slots by cost before every search. That numpy code
takes linear time and hides how the printed loops scale. Here the slots are numbered
once, and `Loop` repeats the printed loop inside one compiled call.

Results equal those of ``method="published"``; the cost is that of the printed
algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request

from . import aep
from .job import FINITE, Job, supported_fields

__all__ = ["CRITERIA", "Loop", "loop_of"]

#: The criteria of `aep.aep`; "first" and "start" both select AMP.
CRITERIA = {
    "first": aep.START,
    "start": aep.START,
    "cost": aep.COST,
    "runtime": aep.RUNTIME,
    "finish": aep.FINISH,
    "processor_time": aep.PROCESSOR_TIME,
}

#: The limits of a request on single slots that the loops apply.
SLOT_LIMITS = tuple(signature(Job.suitable_slots).parameters)[2:]


@dataclass(frozen=True)
class Loop:
    """A printed algorithm with its numbered slots.

    Attributes
    ----------
    slots, node : columns of the slots, in order of cost
    nodes, budget : number of slots and largest cost of the window
    criterion : a value of `CRITERIA`, or None for CSA
    seed : seed of the random windows of minProcTime
    """

    slots: aep.SlotsByCost
    node: NDArray[np.int64]
    nodes: int
    budget: float
    criterion: int | None
    seed: int

    def __call__(self, times: int = 1) -> list[float]:
        """Run the loop this many times; return the starts of the windows found."""
        random = np.random.default_rng(self.seed)
        job = (self.nodes, self.budget)
        if self.criterion is None:
            return aep.csa(times, self.slots, self.node, *job, random)
        start, window = aep.repeated(times, self.slots, *job, self.criterion, random)
        return [float(start)] if len(window) else []


def loop_of(
    slots: NDArray[np.void], request: Request, criterion: str | None, seed: int = 0
) -> Loop:
    """Number the slots for a request and return its loop.

    Parameters
    ----------
    slots : structured array
        Valid slots, sorted by (start, node).
    request : Request
        The job, without a filter and without limits on sums.
    criterion : str or None
        A key of `CRITERIA`; None for CSA.
    seed : int
        Seed of the random windows of minProcTime.

    Raises
    ------
    ValueError
        If the request has a limit that the printed algorithms lack.

    Examples
    --------
    >>> import slotkern as sk
    >>> from slotkern.published.loops import loop_of
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=[9, 4], performance=2, price=1)
    >>> loop_of(slots, sk.Request(2, 4), None)(times=3)  # CSA
    [0.0, 2.0]
    """
    if request.where is not None or request.limits:
        raise ValueError("the printed loops apply no filter and no limits on sums")
    fields = supported_fields(request, (*Job._fields, *SLOT_LIMITS))
    job = Job(request.nodes, **{name: fields.pop(name) for name in Job._fields[1:]})
    job = job._replace(
        budget=min(job.budget, FINITE), deadline=min(job.deadline, FINITE)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        proper = job.suitable_slots(slots, **fields)
        row, columns = aep.number_slots(slots, proper, job)
    node = slots["node"][row].astype(np.int64)
    kind = None if criterion is None else CRITERIA[criterion]
    return Loop(columns, node, job.nodes, job.budget, kind, seed)
