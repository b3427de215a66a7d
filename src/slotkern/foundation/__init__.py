"""Checks of arguments, errors, optional dependencies, host lists: no domain."""
