"""The best plan of a request, of roles, or of several options."""

from __future__ import annotations

import math

from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.compound.jobs import AnyOf, Together
from slotkern.compound.plan import Plan, named, replaced
from slotkern.compound.search import NO_LIMITS, CompoundSearch, Limits
from slotkern.compound.together import find_roles

__all__ = ["as_option", "find_part"]


def find_part(
    search: CompoundSearch,
    job: Request | Together | AnyOf,
    criterion: str,
    limits: Limits = NO_LIMITS,
) -> Plan | None:
    """Return the best plan of a part of a job within further limits, or None."""
    if isinstance(job, Request):
        window = search.find(job, criterion, limits)
        if window is None:
            return None
        label = job.name or "request"
        return Plan(
            (window,), (label,), (None,), (0,), criterion, job.name, window.proven
        )
    if isinstance(job, AnyOf):
        return named(_find_any(search, job, criterion, limits), job.name)
    return named(find_roles(search, job, criterion, limits), job.name)


def _find_any(
    search: CompoundSearch, job: AnyOf, criterion: str, limits: Limits
) -> Plan | None:
    """Return the best plan of the options; of equal ones that of the first."""
    best: Window | Plan | None = None
    value, taken, proven = math.inf, -1, True
    for k, option in enumerate(job.options):
        if best is not None:  # nothing that is worse
            limits = limits.at_most(criterion, value)
        found: Window | Plan | None
        if isinstance(option, Request):
            found = search.find(option, criterion, limits)
        else:
            found = find_part(search, option, criterion, limits)
        if found is None:
            continue
        proven = proven and found.proven
        figure = getattr(found, criterion)
        if best is None or figure < value:
            best, value, taken = found, figure, k
    if best is None:
        return None
    label = job.labels[taken]
    if isinstance(best, Window):
        return Plan((best,), (label,), (taken,), (0,), criterion, best.name, proven)
    best = as_option(job, taken, best)
    best.proven = proven
    return best


def as_option(job: AnyOf, k: int, plan: Plan) -> Plan:
    """Return the plan of an option as one of the job with options."""
    label = job.labels[k]
    return replaced(
        plan,
        roles=tuple(
            label if len(plan) == 1 else f"{label}/{role}" for role in plan.roles
        ),
        options=(k,) * len(plan),
    )
