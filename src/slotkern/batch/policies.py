"""The policies of a virtual organization: small immutable objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._kernels.search import CRITERIA
from slotkern.foundation.checks import integer, number, one_of

__all__ = [
    "BSF",
    "CSS",
    "Backfilling",
    "BatchSlicer",
    "Optimal",
    "Policy",
    "backfill_of",
    "policy_of",
]

PRIORITIES = ("order", "cost", "performance")


@dataclass(frozen=True)
class BatchSlicer:
    """Consecutive sub-batches; one alternative is chosen for each job of a sub-batch.

    Parameters
    ----------
    k : int or sequence of int
        The number of sub-batches of (nearly) equal size, or their sizes, which must sum
        to the number of jobs. Each sub-batch has at least one job.
    criterion : str
        The criterion by which alternatives are found: ``"own"``, that of each job, or
        one of `CRITERIA` for all.
    by : {"order", "cost", "performance"} or array_like
        The priority: the batch's own order; the jobs whose cheapest window on all the
        slots costs most; those with the highest minimum performance; or the largest of
        one number per job. Ties keep the batch's order.

    Examples
    --------
    >>> import slotkern as sk
    >>> sk.BatchSlicer(3)
    BatchSlicer(k=3, criterion='own', by='order')
    """

    k: Any = 1
    criterion: str = "own"
    by: Any = "order"

    def __post_init__(self) -> None:
        _check_slices(self)

    def slices(self, jobs: int) -> list[int]:
        """Return the first job of each sub-batch, followed by the end of the last."""
        return _slices(self.k, jobs)


@dataclass(frozen=True)
class Backfilling:
    """The earliest window for each job in order, without alternatives or a limit.

    Parameters
    ----------
    kind : {"conservative", "easy"}
        Every waiting job has a reservation, or only the first one that cannot start.
    """

    kind: str = "conservative"

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ("conservative", "easy"))


@dataclass(frozen=True)
class BSF:
    """Batch-slice-filling: Batch-slicer for the first jobs, backfilling for the rest.

    Parameters
    ----------
    n_css : int
        The number of jobs, the first of the batch by `by`, that are sliced; the others
        are backfilled in the batch's own order.
    k, criterion, by
        As for `BatchSlicer`.
    kind : {"conservative", "easy"}
        The kind of backfilling.
    """

    n_css: int
    k: Any = 1
    criterion: str = "own"
    by: Any = "order"
    kind: str = "conservative"

    def __post_init__(self) -> None:
        integer("n_css", self.n_css, least=0)
        one_of("kind", self.kind, ("conservative", "easy"))
        _check_slices(self)

    def slices(self, jobs: int) -> list[int]:
        """Return the first job of each sub-batch, followed by the end of the last."""
        return _slices(self.k, min(int(self.n_css), jobs))


@dataclass(frozen=True)
class Optimal:
    """The best schedule of the batch, or one within a proven distance of it.

    As many jobs as possible are scheduled; among schedules of as many jobs the target
    is optimized, within the limit if one is given. No eq. (5) applies without one.
    `Schedule.bound` holds for all schedules of as many jobs, whichever jobs they are.
    It needs HiGHS: ``pip install 'slotkern[optimal]'``.

    Parameters
    ----------
    gap : float
        The search ends when no schedule is better by more than this share of the
        target's value. Less than 2e-6, a tolerance of HiGHS, counts as 2e-6.
    max_work : int
        The search ends after about this many units of work: searches for the least
        window of a job, eight of a random walk, simplex pivots, nodes of an integer
        program, and sets of slots examined. Work is counted, not timed, so the schedule
        is the same on every machine.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=[12, 20], performance=[2, 1],
    ...                       price=1)
    >>> jobs = [sk.Request(1, 12), sk.Request(1, 12), sk.Request(1, 12)]
    >>> schedule = sk.schedule_batch(slots, jobs, sk.Optimal())
    >>> schedule.value, schedule.slices["proven"]
    (24.0, array([ True]))
    """

    gap: float = 0.01
    max_work: int = 100_000

    def __post_init__(self) -> None:
        number("gap", self.gap, least=0)
        integer("max_work", self.max_work, least=0)


Policy = BatchSlicer | Backfilling | BSF | Optimal


def policy_of(text: str) -> Policy:
    """Parse the text of a policy: css, slicer:3, conservative, easy, bsf:10, optimal.

    Parameters
    ----------
    text : str
        ``css``; ``slicer:K`` or ``slicer:SIZE+SIZE+...``; ``conservative`` or ``easy``;
        ``bsf:N`` or ``bsf:N:K``; ``optimal`` or ``optimal:GAP``.

    Returns
    -------
    Policy

    Raises
    ------
    ValueError
        Naming the text and the allowed forms.

    Examples
    --------
    >>> policy_of("bsf:10:2")
    BSF(n_css=10, k=2, criterion='own', by='order', kind='conservative')
    """
    name, *numbers = text.split(":")
    try:
        if name == "css" and not numbers:
            return CSS
        if name == "slicer" and len(numbers) == 1:
            sizes = [_whole(size) for size in numbers[0].split("+")]
            return BatchSlicer(sizes[0] if len(sizes) == 1 else tuple(sizes))
        if name in ("conservative", "easy") and not numbers:
            return Backfilling(name)
        if name == "bsf" and 1 <= len(numbers) <= 2:
            n_css, *k = map(_whole, numbers)
            return BSF(n_css, k[0] if k else 1)
        if name == "optimal" and len(numbers) <= 1:
            return Optimal(float(numbers[0])) if numbers else Optimal()
    except ValueError as error:
        raise ValueError(f"policy {text!r}: {error}") from None
    raise ValueError(
        "a policy is css, slicer:K, slicer:SIZE+SIZE, conservative, easy, bsf:N, "
        f"bsf:N:K, optimal or optimal:GAP; got {text!r}"
    )


def backfill_of(policy: Policy) -> str:
    """Return the kind of backfilling of a policy, "none" without any."""
    return policy.kind if isinstance(policy, (Backfilling, BSF)) else "none"


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer") from None


def _check_slices(policy: BatchSlicer | BSF) -> None:
    if isinstance(policy.k, (list, tuple, np.ndarray)):
        sizes = tuple(
            integer(f"sizes[{i}]", size, least=1) for i, size in enumerate(policy.k)
        )
        if not sizes:
            raise ValueError("sizes must not be empty")
        object.__setattr__(policy, "k", sizes)
    else:
        integer("k", policy.k, least=1)
    one_of("criterion", policy.criterion, ("own", *CRITERIA))
    if isinstance(policy.by, str):
        one_of("by", policy.by, PRIORITIES)
    else:
        object.__setattr__(policy, "by", _numbers(policy.by))


def _numbers(by: ArrayLike) -> tuple[float, ...]:
    values = np.asarray(by)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise TypeError("by must be a word or one number a job")
    return tuple(values.tolist())


def _slices(k: Any, jobs: int) -> list[int]:
    if isinstance(k, tuple):
        if sum(k) != jobs:
            raise ValueError(f"sizes sum to {sum(k)}, but {jobs} jobs are to be sliced")
        return [0, *np.cumsum(k).tolist()]
    parts = min(int(k), jobs)
    return [i * jobs // parts for i in range(parts + 1)] if parts else [0]


def ranked(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order of descending values; NaN last, ties in the given order."""
    order: NDArray[np.int64] = np.argsort(-values, kind="stable")
    return order


#: The cyclic scheduling scheme: one batch, alternatives found by first fit.
CSS = BatchSlicer(1, "first")
