"""How much memory a call takes at most, measured in a process of its own.

Tracing that stops while threads of a library still allocate can end a process (CPython
before 3.13.2): here it goes on until its process ends by itself.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any


def peak_of(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, int]:
    """Return what a call returns or the error that it raises, and its peak in bytes."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as crew:
        return crew.submit(_traced, call, args, options).result()


def _traced(
    call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, int]:
    tracemalloc.start()
    try:
        found = call(*args, **options)
    except ValueError as error:
        found = error
    return found, tracemalloc.get_traced_memory()[1]
