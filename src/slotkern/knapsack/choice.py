"""The knapsack with a fixed number of items: choose n items within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from numpy.typing import ArrayLike

from slotkern._kernels import knapsack as _knapsack
from slotkern._kernels.knapsack import Choice
from slotkern.foundation.checks import hint_keywords

__all__ = ["Choice", "choose", "choose_each"]

Method = Literal["auto", "table", "search"]
#: Weights, one per item; the relation; and the limit on the sum of the chosen weights.
SumLimit = tuple[ArrayLike, Literal["<=", ">="], float]
MEMORY_LIMIT = 256 * 2**20


@hint_keywords
def choose(
    cost: ArrayLike,
    value: ArrayLike,
    n: int,
    budget: float,
    *,
    gap: float = 0.0,
    max_work: int | None = None,
    memory_limit: float = MEMORY_LIMIT,
    method: Method = "auto",
    limits: Sequence[SumLimit] = (),
) -> Choice | None:
    """Choose exactly n items of the most value whose costs fit the budget.

    This is the subset problem of the square window search (Toporkov et al. 2018,
    section 3.3, eq. 1): maximize ``sum(value[rows])`` with ``len(rows) == n`` and
    ``sum(cost[rows]) <= budget``, for real costs and values.

    Parameters
    ----------
    cost : array_like of float, shape (m,)
        The cost of each item, >= 0.
    value : array_like of float, shape (m,)
        The value of each item; may be negative.
    n : int
        The number of items to choose, at least 1.
    budget : float
        The largest total cost; may be inf.
    gap : float, optional
        Relative tolerance: the search may stop once no other choice is better by more
        than this share of the value found.
    max_work : int, optional
        Stop after about this many units of work: a unit is a node of the search, a
        state of the dynamic program or 48 cells of the table. Work is counted, not
        timed, so the answer is the same on every machine. Method "table" always spends
        the work that its table needs.
    memory_limit : float, optional
        Largest size of the dynamic program in bytes, 256 MiB by default.
    method : {"auto", "table", "search"}, optional
        "table" is the dynamic program of eq. (2) over integer costs, O(m n budget) time
        and about m n budget / 8 bytes; "search" is branch and bound with core lists,
        for any costs; "auto" searches for up to half of the work that the table would
        need, and then builds the table if it fits `memory_limit` and `max_work`.
    limits : sequence of (weights, "<=" or ">=", amount), optional
        Further limits, up to 7: the sum of the chosen items' weights is at most, or at
        least, the amount. Weights are any finite numbers, one per item, such as
        storage, energy or licences. These choices are found by branch and bound alone,
        with `max_work` = 2**24 units by default.

    Returns
    -------
    Choice or None
        None if no n items fit. Otherwise ``rows`` (ascending), ``value``, ``cost``,
        ``proven`` and ``bound``. `proven` is False only if a limit ended the search
        (`max_work`, `memory_limit`, or by default ten million states): the answer is
        then the best one found, and `bound` is an upper bound on the value of any
        choice.

    Raises
    ------
    UndecidedError
        With `limits`, if `max_work` was spent before any choice was found.
    ValueError, TypeError
        For a NaN or infinite value, a negative or infinite cost (naming the row),
        lengths that differ, n < 1, sums that overflow; for method "table" also costs
        that are not integers, a table larger than `memory_limit`, or limits; for more
        than 7 limits, and for weights of another length or not finite (naming limit and
        row).

    Notes
    -----
    The sums of costs and of limits are exact, rounded once (`math.fsum`). A sum meets
    the budget, or an amount, if it exceeds it by at most 2^-50 of it, which is the
    rounding error of decimals that are stored as doubles: 100 items of 4.35 meet 435.
    The value is summed in ascending order of (cost, row). Among choices of equal value
    the result is unspecified but deterministic. Integral values are compared exactly
    while n + 2 times the largest is below 2**53. Items that cost too much for any
    choice do not affect the result. Bounds under several limits come from the
    Lagrangian relaxation with one multiplier per limit; with three or more limits whose
    sums follow the values closely the result may stay unproven.

    Values that follow real-valued costs exactly (subset sum) are hard to prove: give a
    `gap`. Time is typically O(m + n log m) for the bound and
    a few hundred units of work; in the worst case exponential, within the limits.

    Examples
    --------
    >>> import slotkern as sk
    >>> sk.choose([3, 4, 2, 5], [10, 7, 4, 9], n=2, budget=7)
    Choice(rows=[0, 1], value=17.0, cost=7.0, proven=True, bound=17.0)

    At least 500 GB of storage together:

    >>> storage = [100, 200, 300, 400]
    >>> sk.choose([3, 4, 2, 5], [10, 7, 4, 9], 2, 7, limits=[(storage, ">=", 500)])
    Choice(rows=[2, 3], value=13.0, cost=7.0, proven=True, bound=13.0)
    """
    if len(limits):
        if method == "table":
            raise ValueError(
                "method 'table' does not support limits besides the budget; use method "
                "'auto' or 'search'"
            )
        return _knapsack.choose_constrained(
            cost, value, n, budget, limits, gap, max_work
        )
    return _knapsack.choose(cost, value, n, budget, gap, max_work, memory_limit, method)


@hint_keywords
def choose_each(
    cost: ArrayLike,
    value: ArrayLike,
    n: int,
    budget: float,
    *,
    gap: float = 0.0,
    max_work: int | None = None,
    memory_limit: float = MEMORY_LIMIT,
    method: Method = "auto",
) -> list[Choice | None]:
    """Solve `choose` for 1, 2, ..., n items: entry k - 1 is the best choice of k items.

    One table answers all sizes; "auto" builds it if separate searches need more than
    half of its work. `max_work` is shared by all sizes. Parameters and errors are those
    of `choose`; n is at most 10,000,000.

    Returns
    -------
    list of Choice or None
        n entries.

    Examples
    --------
    >>> import slotkern as sk
    >>> each = sk.choose_each([3, 4, 2, 5], [10, 7, 4, 9], n=3, budget=7)
    >>> [c and c.value for c in each]
    [10.0, 17.0, None]
    """
    return _knapsack.choose_each(
        cost, value, n, budget, gap, max_work, memory_limit, method
    )
