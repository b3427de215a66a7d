"""The exact Pareto front of one job by two criteria."""

from slotkern.fronts.front import Front, pareto

__all__ = ["Front", "pareto"]
