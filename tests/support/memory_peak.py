"""Measures the peak memory of a call in a new process.

CPython before 3.13.2 can crash if tracing stops while threads of a library allocate, so
tracing continues until the process ends.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any


def peak_of(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, int]:
    """Return what a call returns or the error that it raises, and its peak in bytes."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(_traced, call, args, options).result()


def _traced(
    call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, int]:
    tracemalloc.start()
    try:
        found = call(*args, **options)
    except ValueError as error:
        found = error
    return found, tracemalloc.get_traced_memory()[1]
