"""Jobs of several parts: `AnyOf`, `Together` and `Chain`, and the `Plan` of one."""

from slotkern.compound.jobs import AnyOf, Chain, Together
from slotkern.compound.plan import Plan
from slotkern.compound.start_intervals import starts

__all__ = ["AnyOf", "Chain", "Plan", "Together", "starts"]
