"""Searches of windows beyond one sweep of a built-in criterion, and their results."""
