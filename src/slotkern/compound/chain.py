"""Stages that follow each other: the earliest finish of the last one, exactly.

From stage to stage the search carries the intervals of time at which the next stage may
start. Without an upper limit of the gap only the earliest finish of a stage matters.
Otherwise all finishes do: for a runtime T and an interval [a, b] of starts they are
[a + T, b + T], and the next stage may start in [a + T + least, b + T + most]. The last
stage takes the earliest finish over these intervals. Then the stages before it are
fixed, from the last to the first, each at its earliest start that the gap permits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.compound.jobs import AnyOf, Chain, Together
from slotkern.compound.options import as_option, find_part
from slotkern.compound.plan import Plan, named, replaced
from slotkern.compound.search import NO_LIMITS, CompoundSearch, Limits
from slotkern.compound.start_intervals import (
    StartsOfLength,
    joined,
    spans_by_length,
    window_of_length,
)
from slotkern.compound.together import check_roles, is_disjoint, plan_of_roles

__all__ = ["find_chain"]

Stage = Request | Together | AnyOf
Intervals = list[tuple[float, float]]


class _Ways(NamedTuple):
    """Starts of a stage by runtime, and how to make its plan at a start and runtime."""

    spans: list[StartsOfLength]
    plan: Callable[[float, float], Plan]


def find_chain(search: CompoundSearch, job: Chain) -> Plan | None:
    """Return the plan of a chain with the earliest finish, or None."""
    gaps = job.gaps_in(getattr(search.context, "clock", None))
    for (least, most), given in zip(gaps, job.gaps, strict=True):
        if least > most:
            raise ValueError(f"gap {given!r}: the least gap exceeds the largest one")
    allowed: Intervals = [(-math.inf, math.inf)]
    limits = NO_LIMITS
    before: list[Plan | list[_Ways]] = []
    for stage, (least, most) in zip(job.stages, gaps, strict=False):
        if most == math.inf:
            plan = _earliest(search, stage, allowed, limits)
            if plan is None:
                return None
            before.append(plan)
            allowed = [(plan.finish + least, math.inf)]
        else:
            ways = _ways(search, stage, limits)
            ways = [_within(way, allowed) for way in ways]
            before.append(ways)
            allowed = joined(
                (first + each.runtime + least, last + each.runtime + most)
                for way in ways
                for each in way.spans
                for first, last in each.intervals
            )
    last_plan = _earliest(search, job.stages[-1], allowed, limits)
    if last_plan is None:
        return None
    plans = [last_plan]
    for found, gap in zip(reversed(before), reversed(gaps), strict=True):
        if not isinstance(found, Plan):
            found = _before(found, plans[0].start, gap)
        plans.insert(0, found)
    return _joined_plan(job, plans)


def _earliest(
    search: CompoundSearch, stage: Stage, allowed: Intervals, limits: Limits
) -> Plan | None:
    """Return the plan with the earliest finish of those that start in an interval."""
    best = None
    for first, last in allowed:
        if best is not None and first >= best.finish:
            break
        within = limits._replace(earliest=first, latest=last)
        found = find_part(search, stage, "finish", within)
        if found is not None and (best is None or found.finish < best.finish):
            best = found
            limits = limits.at_most("finish", found.finish)
    return best


def _before(ways: list[_Ways], start: float, gap: tuple[float, float]) -> Plan:
    """Return the plan of a stage that starts earliest, if the next one starts then."""
    least, most = gap
    largest = max(abs(start), most if most < math.inf else 0.0)
    best: tuple[float, float, int] | None = None
    for overlap in (False, True):  # first without one that rounding causes
        for k, way in enumerate(ways):
            for runtime, intervals in way.spans:
                rounding = 4 * math.ulp(max(largest, runtime))
                early = rounding if overlap else 0.0
                for first, last in intervals:
                    time = min(max(first, start - most - runtime), last)
                    while time > first and time + runtime + least > start:
                        time = max(first, time - math.ulp(max(abs(start), abs(time))))
                    finish = time + runtime
                    if finish + least - early <= start <= finish + most + rounding:
                        best = min(best or (time, runtime, k), (time, runtime, k))
        if best is not None:
            return ways[best[2]].plan(best[0], best[1])
    raise AssertionError("the starts of a stage come from those of the one before it")


def _ways(search: CompoundSearch, stage: Stage, limits: Limits) -> list[_Ways]:
    """Return the starts of a stage by runtime, for each of its options."""
    if isinstance(stage, Request):
        request = stage

        def one(start: float, runtime: float) -> Plan:
            window = window_of_length(search, request, start, runtime, limits)
            label = request.name or "request"
            return Plan((window,), (label,), (None,), (0,), "finish", request.name)

        return [_Ways(spans_by_length(search, request, limits), one)]
    if isinstance(stage, Together):
        return [_ways_together(search, stage, limits)]
    found = []
    for k, option in enumerate(stage.options):
        for way in _ways(search, option, limits):
            found.append(way._replace(plan=_of_option(stage, k, way.plan)))
    return found


def _of_option(
    stage: AnyOf, k: int, make: Callable[[float, float], Plan]
) -> Callable[[float, float], Plan]:
    def plan(start: float, runtime: float) -> Plan:
        found = named(as_option(stage, k, make(start, runtime)), stage.name)
        assert found is not None
        return found

    return plan


def _ways_together(search: CompoundSearch, job: Together, limits: Limits) -> _Ways:
    """Return the starts of roles together: one of them has the runtime, none more."""
    disjoint = is_disjoint(search, job)
    check_roles(search, job, "finish", disjoint)
    if not disjoint or job.budget < math.inf:
        reason = "a budget" if disjoint else "roles with common candidate nodes"
        raise ValueError(
            f"{job.name or 'Together'} has {reason}, but the gap after it has an upper "
            "limit: its starts by length are not computed; leave out the upper limit"
        )
    by_role = [spans_by_length(search, role, limits) for role in job.roles]
    exact = [{each.runtime: each.intervals for each in spans} for spans in by_role]
    runtimes = sorted({runtime for spans in exact for runtime in spans})
    found = []
    for runtime in runtimes:
        upto = [
            joined(i for t, spans in role.items() if t <= runtime for i in spans)
            for role in exact
        ]
        intervals: Intervals = []
        for k, role in enumerate(exact):
            common = role.get(runtime, [])
            for other in range(len(exact)):
                if other != k:
                    common = _common(common, upto[other])
            intervals += common
        if intervals:
            found.append(StartsOfLength(runtime, joined(intervals)))

    def plan(start: float, runtime: float) -> Plan:
        slow = next(
            k
            for k, role in enumerate(exact)
            if any(a <= start <= b for a, b in role.get(runtime, []))
        )
        windows: list[Window] = []
        here = limits._replace(earliest=start, latest=start, max_runtime=runtime)
        for k, role in enumerate(job.roles):
            if k == slow:
                window = window_of_length(search, role, start, runtime, limits)
            else:
                cheapest = search.find(role, "cost", here)
                assert cheapest is not None, "the start is in an interval of the role"
                window = cheapest
            windows.append(window)
        found = named(plan_of_roles(job, windows, "finish"), job.name)
        assert found is not None
        return found

    return _Ways(found, plan)


def _within(way: _Ways, allowed: Intervals) -> _Ways:
    """Return the starts that lie in one of the allowed intervals."""
    spans = [
        StartsOfLength(each.runtime, common)
        for each in way.spans
        if (common := _common(each.intervals, allowed))
    ]
    return way._replace(spans=spans)


def _common(some: Intervals, others: Intervals) -> Intervals:
    """Return the intersection of two unions of disjoint closed intervals."""
    found, i, j = [], 0, 0
    while i < len(some) and j < len(others):
        first = max(some[i][0], others[j][0])
        last = min(some[i][1], others[j][1])
        if first <= last:
            found.append((first, last))
        if some[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return found


def _joined_plan(job: Chain, plans: list[Plan]) -> Plan:
    """Return the plan of a chain from the plans of its stages."""
    windows: list[Window] = []
    roles: list[str] = []
    options: list[int | None] = []
    stages: list[int] = []
    for k, (label, plan) in enumerate(zip(job.labels, plans, strict=True)):
        windows += plan.windows
        roles += [label] if len(plan) == 1 else [f"{label}/{r}" for r in plan.roles]
        options += plan.options
        stages += [k] * len(plan)
    proven = all(plan.proven for plan in plans)
    return replaced(
        plans[-1],
        windows=tuple(windows),
        roles=tuple(roles),
        options=tuple(options),
        stages=tuple(stages),
        criterion="finish",
        name=job.name,
        proven=proven,
    )
