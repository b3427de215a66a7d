"""The functions of `slotkern.expressions.filters` that extension modules import."""

from slotkern.expressions.filters import columns, compile_where, evaluate

__all__ = ["columns", "compile_where", "evaluate"]
