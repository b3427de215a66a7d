# cython: language_level=3
"""The doors: check, drop the GIL, call one C++ function, wrap the result."""
