"""The papers' algorithms, step by step as in their pseudo-code, compiled by numba.

They are the oracle of the tests, the baseline of the benchmarks, and readable versions
of what the fast kernels compute. Misprints are corrected; the docstring of the function
states what is printed, what is done instead, and why. docs/published.md lists them all.
Costs, finishes and budgets use the same floating-point expressions as the kernels, so
results agree to the last bit.

`import slotkern` does not import this package, because this package imports numba. To
step through an algorithm in a debugger, set NUMBA_DISABLE_JIT=1 in the environment: the
functions then run as ordinary Python.
"""

from .algorithms import ALGORITHMS, PublishedAlgorithm, find
from .alternatives import SCHEMES, Scheme
from .job import Found, Job
from .job import supported_fields as supported_fields

__all__ = [
    "ALGORITHMS",
    "SCHEMES",
    "Found",
    "Job",
    "PublishedAlgorithm",
    "Scheme",
    "find",
]
