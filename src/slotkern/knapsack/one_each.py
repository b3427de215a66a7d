"""The multiple-choice knapsack: one row of each class within a limit on the weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._kernels import knapsack as _knapsack
from slotkern._kernels.knapsack import OneEach
from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.foundation.checks import hint_keywords

__all__ = ["OneEach", "TradeOff", "choose_one_each", "trade_off"]

#: The largest number of points of a sampled curve; each needs a search of its own.
MAX_POINTS = 100_000


@hint_keywords
def choose_one_each(
    value: ArrayLike,
    weight: ArrayLike,
    first: ArrayLike,
    limit: float,
    *,
    maximize: bool = False,
    gap: float = 0.0,
    max_work: int | None = None,
) -> OneEach:
    """Choose one row of each class with the least total value, within a weight limit.

    This selects one alternative for each job of a batch (Toporkov et al. 2014, eq. 1,
    and eqs. 6 to 9 with cost and time as value and weight): minimize
    ``sum(value[rows])`` subject to ``sum(weight[rows]) <= limit``, with exactly one row
    of each class, for any finite real numbers.

    Parameters
    ----------
    value : array_like of float, shape (m,)
        The contribution of each row to the minimized sum.
    weight : array_like of float, shape (m,)
        The contribution of each row to the limited sum; may be negative.
    first : array_like of int, shape (k + 1,)
        Class i has the rows ``first[i]`` to ``first[i + 1]``, at least one.
    limit : float
        The largest total weight; may be inf.
    maximize : bool, optional
        Maximize the value instead.
    gap : float, optional
        Relative tolerance: the search may stop once no other choice is better by more
        than this share of the value found.
    max_work : int, optional
        Stop after about this many states of the dynamic program; 2**24 by default. Work
        is counted, not timed, so the answer is the same on every machine.

    Returns
    -------
    OneEach
        ``rows`` (one per class), ``value``, ``weight``, ``proven``, ``bound``,
        ``least`` and ``feasible``. If no choice meets the limit, `rows` is empty and
        `least` is the smallest feasible limit. `proven` is False only if `max_work` or
        256 MiB of lists ended the search: the answer is then the best one found, and
        `bound` is a bound on the value of any choice.

    Raises
    ------
    ValueError, TypeError
        For a NaN or infinite value or weight (naming the row), an empty class (naming
        it), lengths that differ, sums that overflow.

    Notes
    -----
    The weight is the exact sum, rounded once. It meets the limit if it exceeds it by at
    most 2^-50 of it, which is the rounding error of decimals stored as doubles. Values
    are summed in the order of the classes. Integral values are compared exactly while
    the sum over the classes of the largest absolute value is below 2**53: `proven`
    without a `gap` then means that no other choice is better at all. Time O(m log m)
    and typically a few hundred states per class; values that follow their weights
    exactly (eq. 9, used time under a limit on time) are subset sums and hard to prove:
    give a `gap`.

    Examples
    --------
    Two jobs with three and two alternatives: the least time for at most 12 of money.

    >>> import slotkern as sk
    >>> time, money = [9, 6, 4, 8, 5], [3, 5, 9, 4, 7]
    >>> sk.choose_one_each(time, money, [0, 3, 5], 12)
    OneEach(rows=[1, 4], value=11.0, weight=12.0, proven=True, bound=11.0, least=7.0)
    """
    return _knapsack.choose_one_each(
        value, weight, first, limit, maximize, gap, max_work
    )


@dataclass(frozen=True)
class TradeOff(HasTable):
    """The Pareto front of value and weight over all choices of one row per class.

    Attributes
    ----------
    weight, value : ndarray of float64
        Ascending weight, strictly improving value.
    complete : bool
        Whether these are all points; otherwise they are choices at sampled limits.
    """

    weight: NDArray[np.float64]
    value: NDArray[np.float64]
    complete: bool

    def __len__(self) -> int:
        return len(self.weight)

    def _as_table(self) -> Table:
        """Return one row per point of the curve."""
        columns = {"weight": self.weight, "value": self.value}
        return Table("TradeOff", columns, len(self), facts={"complete": self.complete})


@hint_keywords
def trade_off(
    value: ArrayLike,
    weight: ArrayLike,
    first: ArrayLike,
    *,
    maximize: bool = False,
    max_work: int = 1 << 24,
    points: int = 256,
) -> TradeOff:
    """Return the best value for every limit, as one curve.

    Parameters
    ----------
    value, weight, first, maximize
        As for `choose_one_each`, which gives the rows behind a point:
        ``choose_one_each(value, weight, first, curve.weight[i])``.
    max_work : int, optional
        The number of states after which the complete curve is abandoned.
    points : int, optional
        Number of evenly spaced limits, from the lightest choice to the best one, whose
        exact points are returned if the complete curve was abandoned; at most 100,000.

    Returns
    -------
    TradeOff

    Raises
    ------
    ValueError, TypeError
        As `choose_one_each`; for fewer than two points or more than 100,000.

    Notes
    -----
    20 classes of 12 rows have about 10,000 points; 1,000 of 50 have too many to list.
    Each state takes 88 bytes.

    Examples
    --------
    >>> import slotkern as sk
    >>> curve = sk.trade_off([9, 6, 4, 8, 5], [3, 5, 9, 4, 7], [0, 3, 5])
    >>> curve.weight, curve.value
    (array([ 7.,  9., 12., 16.]), array([17., 14., 11.,  9.]))
    """
    if points < 2:
        raise ValueError(f"points must be at least 2, got {points}")
    if points > MAX_POINTS:
        raise ValueError(f"points must be at most {MAX_POINTS}, got {points}")
    weights, values, complete = _knapsack.trade_off(
        value, weight, first, maximize, max_work
    )
    if complete:
        return TradeOff(weights, values, True)

    def choose_at(limit: float) -> OneEach:
        return choose_one_each(value, weight, first, limit, maximize=maximize, gap=1e-9)

    best = choose_at(np.inf)
    limits = np.linspace(best.least, max(best.weight, best.least), points)
    chosen = [choose_at(limit) for limit in limits.tolist()]
    found = {(each.weight, each.value) for each in [*chosen, best]}
    curve = np.array(sorted(found))
    sign = -1 if maximize else 1
    best_before = np.minimum.accumulate(sign * curve[:, 1])
    keep = np.ones(len(curve), bool)
    keep[1:] = sign * curve[1:, 1] < best_before[:-1]
    return TradeOff(curve[keep, 0], curve[keep, 1], False)
