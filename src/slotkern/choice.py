"""The cardinality-constrained knapsack by itself: n items within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from numpy.typing import ArrayLike

from slotkern import _choice
from slotkern._choice import Choice
from slotkern.checks import hint_keywords

__all__ = ["Choice", "choose", "choose_each"]

Method = Literal["auto", "table", "search"]
#: Weights, one an item, and what their sum over the chosen must be at most or at least.
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
        What each item costs, >= 0.
    value : array_like of float, shape (m,)
        What each item is worth; may be negative.
    n : int
        How many items, at least 1.
    budget : float
        The most money for all of them; may be inf.
    gap : float, optional
        An answer is good enough if no other is better by more than this share of
        its own value.
    max_work : int, optional
        Stop after about this many units of work: a unit is a node of the search, a
        state of the dynamic program or 48 cells of the table. Work is counted, not
        timed, so the answer is the same on every machine. Method "table" takes the work
        that its table needs.
    memory_limit : float, optional
        Bytes that the dynamic program may take, 256 MiB by default.
    method : {"auto", "table", "search"}, optional
        "table" is the dynamic program of eq. (2) over integer costs, O(m n budget) time
        and about m n budget / 8 bytes; "search" is branch and bound with core lists,
        for any costs; "auto" searches for up to half of the work that the table would
        need, and then takes the table, if there is one within `memory_limit` and
        `max_work`.
    limits : sequence of (weights, "<=" or ">=", amount), optional
        Further limits, up to 7: the sum of the chosen items' weights is at most, or at
        least, that amount. Weights are any finite numbers, one an item, as storage,
        energy or licences. Such a choice is found by branch and bound alone; `max_work`
        is 2**24 units then unless it is given.

    Returns
    -------
    Choice or None
        None if no n items fit. Otherwise ``rows`` (ascending), ``value``, ``cost``,
        ``proven`` and ``bound``. `proven` is False only if a limit ended the search
        (`max_work`, `memory_limit`, or else ten million states): the answer is then the
        best one found, and `bound` says how much better another could be.

    Raises
    ------
    UndecidedError
        With `limits`, if `max_work` was spent before any choice was found.
    ValueError, TypeError
        For a NaN or infinite value, a negative or infinite cost (naming the row),
        lengths that differ, n < 1, sums that overflow; for method "table" also costs
        that are not integers, a table beyond `memory_limit`, and limits. For limits
        that are too many, of another length, or not finite (naming limit and row).

    Notes
    -----
    The sums of costs and of limits are exact, rounded once (`math.fsum`). A sum meets
    the budget, or an amount, if it exceeds it by at most 2^-50 of it, which is what
    decimals lose when they become doubles: 100 items of 4.35 meet 435. The value is
    summed in ascending order of (cost, row). Of choices with one value any may be the
    answer, always the same. Whole values are compared exactly as long as n + 2 times
    the largest is below 2**53. Items too dear for any choice change nothing. Bounds
    under several limits come from the relaxation with a multiplier for each; three or
    more limits whose sums the values follow closely may stay unproven.

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
            raise ValueError("method 'table' knows no limits but the budget")
        return _choice.choose_within(cost, value, n, budget, limits, gap, max_work)
    return _choice.choose(cost, value, n, budget, gap, max_work, memory_limit, method)


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
    """`choose` for 1, 2, ..., n items: entry k - 1 is the best choice of k.

    One table answers all of them; "auto" takes it if searches for each number of items
    together need more than half of its work. `max_work` holds for all together.
    Parameters and errors as for `choose`; n is at most 10,000,000.

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
    return _choice.choose_each(
        cost, value, n, budget, gap, max_work, memory_limit, method
    )
