"""Expressions over slot columns: filters of slots, and limits on sums of a window."""

__all__: list[str] = []
