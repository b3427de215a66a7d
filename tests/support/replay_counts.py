"""Backfilling by counts of free processors, plain but compiled: for long traces.

Written from the definitions beside `replay_model`, whose starts it is compared with on
random flows: no event queue, no short tests, every search over the whole profile.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit
def placed(state, start):
    """Whether a job runs or holds a promise."""
    return state == 2 or (state == 1 and start >= 0)


@numba.njit
def earliest(estimate, width, processors, start, state, job, now):
    """The earliest start of a job beside all others that run or hold a promise."""
    count = 0
    for other in range(len(start)):
        if other != job and placed(state[other], start[other]):
            count += 1
    times = np.empty(2 * count + 1)
    steps = np.empty(2 * count + 1, np.int64)
    times[0], steps[0] = now, 0
    k = 1
    for other in range(len(start)):
        if other != job and placed(state[other], start[other]):
            times[k], steps[k] = max(start[other], now), -width[other]
            times[k + 1], steps[k + 1] = start[other] + estimate[other], width[other]
            k += 2
    order = np.argsort(times)
    free, since = processors, np.inf  # since when the job has fitted
    for i in range(len(order)):
        time = times[order[i]]
        free += steps[order[i]]
        if i + 1 < len(order) and times[order[i + 1]] == time:
            continue
        if since + estimate[job] <= time:
            return since
        if free < width[job]:
            since = np.inf
        elif since == np.inf:
            since = time
    return since


@numba.njit
def starts(submit, run, estimate, width, processors, conservative):
    """The start of each job, in the order of submission; else EASY."""
    n = len(submit)
    state = np.zeros(n, np.int64)  # 0 to come, 1 waits, 2 runs, 3 has ended
    start = np.full(n, -1.0)  # of those that wait: what is promised
    low = came = 0
    while True:
        now = submit[came] if came < n else np.inf
        for job in range(low, came):
            if state[job] == 2:
                now = min(now, start[job] + run[job])
            elif state[job] == 1 and start[job] >= 0:
                now = min(now, start[job])
        if now == np.inf:
            return start
        early = False
        for job in range(low, came):
            if state[job] == 2 and start[job] + run[job] == now:
                state[job] = 3
                early |= start[job] + estimate[job] > now
        while low < came and state[low] == 3:
            low += 1
        old = came
        while came < n and submit[came] == now:
            state[came] = 1
            came += 1
        view = slice(low, came)
        held = start[view], state[view]
        columns = estimate[view], width[view]
        if conservative:
            for job in range(low if early else old, came):
                if state[job] != 1 or start[job] == now:
                    continue
                found = earliest(*columns, processors, *held, job - low, now)
                if start[job] < 0 or found < start[job]:
                    start[job] = found
            for job in range(low, came):
                if state[job] == 1 and start[job] == now:
                    state[job] = 2
            continue
        head = -1
        for job in range(low, came):
            if state[job] != 1:
                continue
            found = earliest(*columns, processors, *held, job - low, now)
            if found == now:
                start[job], state[job] = now, 2
            elif head < 0:
                head, start[job] = job, found
        if head >= 0:
            start[head] = -1.0
