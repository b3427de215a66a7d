"""The functions of `slotkern.expressions.limits` that extension modules import."""

from slotkern.expressions.limits import columns_of_term as columns
from slotkern.expressions.limits import limits_of, uses_of

__all__ = ["columns", "limits_of", "uses_of"]
