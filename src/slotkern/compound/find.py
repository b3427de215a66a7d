"""The search for jobs of several parts: `find_window` of AnyOf, Together and Chain.

Input: slots, a job and one of four criteria. Output: a `Plan`, or None. All answers are
exact, because every search of a request is.
"""

from __future__ import annotations

from typing import Any

from slotkern.compound.chain import find_chain
from slotkern.compound.jobs import Chain, Job, check_job
from slotkern.compound.options import find_part
from slotkern.compound.plan import Plan, named
from slotkern.compound.search import CompoundSearch
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import meant, quote
from slotkern.foundation.errors import NoWindowError

__all__ = ["COMPOUND_CRITERIA", "find_best", "find_compound"]

#: The criteria of jobs of several parts.
COMPOUND_CRITERIA = ("start", "finish", "runtime", "cost")
#: The defaults of the arguments of `find_window` that these jobs do not support.
_DEFAULTS = {
    "method": "exact",
    "placement": "slot-start",
    "span": "window",
    "gap": 0.0,
    "max_work": None,
    "seed": 0,
}


def find_compound(
    slots: Any,
    job: Job,
    criterion: Any = "finish",
    *,
    shape: str = "square",
    required: bool = False,
    **options: Any,
) -> Plan | None:
    """Return the best plan of a job of several parts, or None; see `find_window`."""
    check_job(job)
    for name, value in options.items():
        if value != _DEFAULTS[name]:
            raise ValueError(
                f"{name}={quote(value)} is for single requests; a {type(job).__name__} "
                f"is searched with the default, {_DEFAULTS[name]!r}"
            )
    check_criterion(job, criterion)
    found = find_best(CompoundSearch(slots, job, shape), job, criterion)
    if found is None and required:
        raise NoWindowError(adapter("explain")(slots, job, shape=shape))
    return found


def check_criterion(job: Job, criterion: Any) -> None:
    """Raise ValueError for a criterion by which a job cannot be searched."""
    if not isinstance(criterion, str) or criterion not in COMPOUND_CRITERIA:
        raise ValueError(
            f"the criterion of {type(job).__name__} must be one of "
            f"{', '.join(COMPOUND_CRITERIA)}; got {quote(criterion)}"
            f"{meant(criterion, COMPOUND_CRITERIA)}"
        )
    if isinstance(job, Chain) and criterion != "finish":
        raise ValueError(
            f"a Chain is planned by criterion 'finish' only, got {criterion!r}"
        )


def find_best(search: CompoundSearch, job: Job, criterion: str) -> Plan | None:
    """Return the best plan of a job, or None."""
    if isinstance(job, Chain):
        found = named(find_chain(search, job), job.name)
    else:
        found = find_part(search, job, criterion)
    if found is not None and not search.proven:
        found.proven = False
    return found
