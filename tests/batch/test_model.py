"""Schedules of batches against the slow model: windows, reasons, limits, choices.

Odd instances: ties, prices of 0, equal windows, 1e150 next to 1e-150, performances an
ulp apart, late times, jobs that cannot fit, limits met exactly and an ulp off.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from batch_model import (
    INF,
    MEASURES,
    Free,
    best_choice,
    cut,
    fitting,
    oracle,
    share_of,
    usual,
)
from hypothesis import given
from strategies import Picker, pickers

import slotkern as sk

KINDS = {
    # performances, prices, unit of time
    "ties": ((1.0, 2.0, 4.0), (0.0, 1.0, 1.0, 2.0), 1.0),
    "tenths": ((0.3, 0.7, 0.9, 2.1), (0.1, 0.2, 0.3, 0.7), 0.1),
    "wide": ((1e-3, 1.0, 1e3), (1e150, 1e-150, 1.0, 0.0), 1.0),
    "close": ((1.0, 1 + 2**-52), (0.0, 5e-324, 1.0), 1.0),
    "thirds": ((1 / 3, 0.7, 1.9), (0.1, 1 / 3, 1 / 7, 2.3), 1 / 3),
}
MOST = 5000  # combinations of alternatives


def odd_slots(pick: Picker, kind: str) -> np.ndarray:
    performances, prices, unit = KINDS[kind]
    ids, rows = [0, 1, 5, 40, 2**31 - 1], []
    origin, same = pick((0.0, 0.0, 0.0, 1e6)), pick((False, False, True))
    for _ in range(pick((1, 2, 3, 3))):
        node, performance, time = ids.pop(pick(range(len(ids)))), pick(performances), 0
        for _ in range(1 if same else pick((1, 2))):
            start = 0 if same else time + pick((0, 0, 1, 3))
            time = 20 if same else start + pick((1, 2, 4, 7, 16))
            span = origin + start * unit, origin + time * unit
            rows.append((node, *span, performance, pick(prices), pick((0.0, 1.0, 2.5))))
    names = ("node", "start", "end", "performance", "price", "watt")
    columns = map(list, zip(*rows, strict=True))
    return sk.make_slots(**dict(zip(names, columns, strict=True)))


def odd_job(pick: Picker, kind: str, origin: float) -> sk.Request:
    performances, prices, unit = KINDS[kind]
    volume = pick((1, 2, 3, 5, 8, 13)) * unit * pick(performances)
    options = {
        "budget": pick((INF, INF, 0.0, pick((1, 2, 5, 9)) * volume * pick(prices))),
        "deadline": pick((INF, INF, INF, origin + pick((5, 10, 15)) * unit)),
        "earliest": pick((0.0, 0.0, 0.0, origin + pick((1, 3, 4)) * unit)),
        "min_performance": pick((0.0, 0.0, 0.0, pick(performances))),
        "max_price": pick((INF, INF, INF, pick(prices))),
        "setup": pick((0.0, 0.0, 0.0, unit)),
        "step": pick((0.0, 0.0, 0.0, 2 * unit)),
        "max_runtime": pick((INF, INF, INF, 5 * unit)),
    }
    return sk.Request(pick((1, 1, 2, 3)), volume, **options)


def nodes_of(window) -> tuple[int, ...]:
    return tuple(sorted(window.nodes))


def same(window: sk.Window | None, placed) -> bool:
    """Return whether a window equals the model's, to the last digit."""
    if window is None or placed is None:
        return window is placed
    found = window.start, window.runtime, window.cost, nodes_of(window)
    parts = {(p["node"], p["start"]) for p in window.slots}
    return found == (
        *placed[:3],
        tuple(node for node, _ in placed.parts),
    ) and parts == {(node, placed.start) for node, _ in placed.parts}


def order_of(slots, jobs, by, shape, first):
    """Return the jobs by priority; those after the first n in the given order."""
    every = list(range(len(jobs)))
    if by == "performance":
        every.sort(key=lambda j: -jobs[j].min_performance)
    elif by == "cost":
        found = [Free(slots).find(job, "cost", shape) for job in jobs]
        every.sort(key=lambda j: -INF if found[j] is None else -found[j].cost)
        every.sort(key=lambda j: found[j] is None)
    elif by != "order":
        every.sort(key=lambda j: -by[j])
    return every[:first] + sorted(every[first:])


def a_limit(pick: Picker, spent: float) -> float | None:
    """Pick a limit: none, 0, inf, multiples of the unlimited expense, or an ulp off."""
    return pick(
        (
            *(None, None, None, spent, spent / 2, 1.5 * spent, 0.0, INF),
            *(float(np.nextafter(spent, -INF)), float(np.nextafter(spent, INF))),
        )
    )


@given(pickers, pickers, pickers)
def test_schedules_are_those_of_the_definition(pick, of_jobs, how):
    kind = pick(tuple(KINDS))
    slots = odd_slots(pick, kind)
    origin = 1e6 if slots["start"].min() >= 1e6 else 0.0
    jobs = [odd_job(of_jobs, kind, origin) for _ in range(how((1, 2, 2, 3)))]
    shape, size = how(("ragged", "square")), len(jobs)
    criteria = [how(("first", "start", "finish", "runtime", "cost")) for _ in jobs]
    by = how(("order", "order", "cost", "performance", [how((0.0, 1.0)) for _ in jobs]))
    k, sliced = how((1, 2, size, 99)), how((size, size, 0, 1, size + 1))
    policy = sk.BatchSlicer(k, by=by) if sliced == size else sk.BSF(sliced, k=k, by=by)
    target, under = how((*MEASURES, "watt")), how((*MEASURES, "watt"))
    sign, most = how((1, 1, -1)), how((None, None, 1, 2))
    options = {
        "maximize" if sign < 0 else "minimize": target,
        **{
            "under": under,
            "criteria": criteria,
            "shape": shape,
            "most": most,
            "gap": 0,
        },
    }

    def measured(name, window):
        if name == "watt":
            return oracle.add(float(slots["watt"][row]) for row in window.rows)
        return MEASURES[name](window)

    try:
        schedule = sk.schedule_batch(slots, jobs, policy, **options)
    except ValueError as error:  # far more than MOST of them
        if "more than 1 GiB of alternatives" not in str(error):
            raise
        return
    if schedule.count.prod(where=schedule.count > 0, dtype=float) > MOST:
        return
    limit = a_limit(how, math.fsum(schedule.slices["expense"].tolist()))
    if limit is not None:
        schedule = sk.schedule_batch(slots, jobs, policy, limit=limit, **options)
    sliced = min(sliced, size)
    order = order_of(slots, jobs, by, shape, sliced)
    assert schedule.order.tolist() == order
    alternatives = list(schedule.alternatives)
    free, spent, pieces = Free(slots), 0.0, min(k, sliced)
    answers = iter(schedule.slices)  # one per sub-batch with alternatives
    ends = [i * sliced // max(pieces, 1) for i in range(pieces + 1)]
    for first, last in pairwise(ends):
        some = order[first:last]
        asked = [jobs[j] for j in some], [criteria[j] for j in some]
        found, why = cut(free, *asked, shape, INF if most is None else most)
        for j, windows, reason in zip(some, found, why, strict=True):
            got = [alternatives[a] for a in np.flatnonzero(schedule.owner == j)]
            assert len(got) == len(windows)
            assert all(map(same, got, windows))
            assert windows or schedule.reasons[j] == reason
        have = [(j, windows) for j, windows in zip(some, found, strict=True) if windows]
        expenses = [[measured(under, w) for w in windows] for _, windows in have]
        share = None
        if limit is not None:
            share = share_of(limit - spent, (last - first) / (sliced - first))
            fits = fitting(expenses, share)
            for (j, _), yes in zip(have, fits, strict=True):
                assert schedule.reasons[j] == ("scheduled" if yes else "limit")
            have = [each for each, yes in zip(have, fits, strict=True) if yes]
            expenses = [each for each, yes in zip(expenses, fits, strict=True) if yes]
        if not have:
            continue
        bound = usual(expenses) if share is None else share
        values = [[measured(target, w) for w in windows] for _, windows in have]
        best = best_choice(values, expenses, bound, sign)
        # The choice as row numbers of the model.
        chosen = [
            next(w for w in windows if same(schedule[j], w)) for j, windows in have
        ]
        value = oracle.add(measured(target, w) for w in chosen)
        expense = oracle.add(measured(under, w) for w in chosen)
        assert oracle.met(expense, bound)
        mine = bound, expense
        answer = next(s for s in answers if (s["limit"], s["expense"]) == mine)
        room = 1e-12 * sum(max(map(abs, own)) for own in values)
        assert abs(value - best) <= room
        assert answer["proven"]
        spent += expense
        for window in chosen:
            free = free.without(window)
    for j in order[sliced:]:
        window = free.find(jobs[j], "start", shape)
        assert same(schedule[j], window)
        if window is None:
            assert schedule.reasons[j] == free.reason(jobs[j], shape)
        else:
            free = free.without(window)


@pytest.mark.parametrize("criterion", ["first", "start", "finish", "runtime", "cost"])
def test_one_job_gets_its_best_window(criterion):
    """It does so for any alternatives, if the choice minimizes its criterion."""
    slots = sk.make_slots(
        node=[0, 1, 2], start=[0, 1, 2], end=30, performance=[1, 2, 4], price=[1, 3, 5]
    )
    job = sk.Request(2, 8, budget=60)
    schedule = sk.schedule_batch(slots, [job], criteria=[criterion], most=1)
    window = sk.find_window(slots, job, "first", shape="ragged")
    assert (
        schedule.windows[0].slots.tolist() == window.slots.tolist()
    )  # CSS: AMP, always
    own = sk.schedule_batch(
        slots, [job], sk.BatchSlicer(), criteria=[criterion], most=1
    )
    alone = sk.find_window(slots, job, criterion, shape="ragged")
    assert own.windows[0].slots.tolist() == alone.slots.tolist()
    assert own.windows[0].cost == alone.cost
