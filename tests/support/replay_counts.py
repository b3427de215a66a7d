"""Compiled reference model of backfilling by counts of free processors.

For long traces. It is written from the definitions, without an event queue; every
search scans the complete profile. Tests compare its starts with `replay_model`.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit
def placed(state, start):
    """Return True if a job runs or has a reservation."""
    return state == 2 or (state == 1 and start >= 0)


@numba.njit
def earliest(estimate, width, processors, start, state, job, now):
    """Return the earliest start of a job given all other runs and reservations."""
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
    free, since = processors, np.inf  # `since`: begin of the current interval that fits
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
    """Return the start of each job by conservative backfilling, or else by EASY."""
    n = len(submit)
    state = np.zeros(n, np.int64)  # 0 future, 1 waits, 2 runs, 3 ended
    start = np.full(n, -1.0)  # for waiting jobs: their reservation, or -1
    low = arrived = 0
    while True:
        now = submit[arrived] if arrived < n else np.inf
        for job in range(low, arrived):
            if state[job] == 2:
                now = min(now, start[job] + run[job])
            elif state[job] == 1 and start[job] >= 0:
                now = min(now, start[job])
        if now == np.inf:
            return start
        early = False
        for job in range(low, arrived):
            if state[job] == 2 and start[job] + run[job] == now:
                state[job] = 3
                early |= start[job] + estimate[job] > now
        while low < arrived and state[low] == 3:
            low += 1
        old = arrived
        while arrived < n and submit[arrived] == now:
            state[arrived] = 1
            arrived += 1
        view = slice(low, arrived)
        states = start[view], state[view]
        columns = estimate[view], width[view]
        if conservative:
            for job in range(low if early else old, arrived):
                if state[job] != 1 or start[job] == now:
                    continue
                found = earliest(*columns, processors, *states, job - low, now)
                if start[job] < 0 or found < start[job]:
                    start[job] = found
            for job in range(low, arrived):
                if state[job] == 1 and start[job] == now:
                    state[job] = 2
            continue
        head = -1
        for job in range(low, arrived):
            if state[job] != 1:
                continue
            found = earliest(*columns, processors, *states, job - low, now)
            if found == now:
                start[job], state[job] = now, 2
            elif head < 0:
                head, start[job] = job, found
        if head >= 0:
            start[head] = -1.0
