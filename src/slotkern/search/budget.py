"""The budget of a job from a price for each slot: S = F T n (AMP, section 2.1)."""

from __future__ import annotations

import math

__all__ = ["job_budget"]


def job_budget(
    nodes: int, volume: float, *, price: float, performance: float = 1.0
) -> float:
    """Compute the budget of a whole window from a price for each slot: S = F T n.

    A request with this budget may pay more for one slot and less for another (the
    papers' AMP); one with ``max_price=price`` may not (ALP).

    Parameters
    ----------
    nodes : int
        Number of slots of the window: n.
    volume : float
        Work on each node.
    price : float
        The mean price of a slot, in money per time unit: F.
    performance : float
        Performance of the slowest acceptable node, in work per time unit, as
        ``min_performance`` of the request; it yields the time T = volume / performance.

    Returns
    -------
    float
        Money, for ``Request(..., budget=)``.

    Raises
    ------
    ValueError
        If nodes, volume or performance is not positive, the price negative, or the
        budget not finite.

    Notes
    -----
    "Slot selection and co-allocation algorithms for economic scheduling in distributed
    computing", section 2.1.

    Examples
    --------
    >>> import slotkern as sk
    >>> sk.job_budget(5, 300, price=2, performance=2)  # the example of section 3.1
    1500.0
    """
    for name, value in (
        ("nodes", nodes),
        ("volume", volume),
        ("performance", performance),
    ):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")
    if not 0 <= price < math.inf:
        raise ValueError(f"price must be finite and not negative, got {price!r}")
    budget = price * (volume / performance) * nodes
    if not math.isfinite(budget):
        raise ValueError(
            f"the budget overflows: price {price!r}, volume {volume!r}, performance "
            f"{performance!r}, nodes {nodes!r}"
        )
    return budget
