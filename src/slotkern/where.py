"""The functions of `slotkern.expressions.filters` that extension modules import."""

from slotkern.expressions.filters import columns_of_filter as columns
from slotkern.expressions.filters import compile_where, evaluate

__all__ = ["columns", "compile_where", "evaluate"]
