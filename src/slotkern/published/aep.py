"""AEP, the Algorithm searching for Extreme Performance, and the algorithms based on it.

"Slot selection and co-allocation algorithms for economic scheduling in distributed
computing", section 2. Windows are ragged: every part starts at the window's start and
runs for its own length (`Job.lengths`). AMP, minCost, minRuntime, minFinish and
minProcTime are one sweep over the slots by start; they differ in the window that they
select from the live slots of a step. ALP (section 1) is AMP with a price limit on each
slot instead of the budget. The general criterion of section 2.1 needs a knapsack and is
in `slotkern.published.valued`.

Complexity: linear in the slots; each step sorts the live slots, at most one per node.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .job import (
    Found,
    Job,
    compiled,
    exact_total,
    rank_slots,
    run_signal_handlers,
)

Numbers = NDArray[np.int64]

START, COST, RUNTIME, FINISH, PROCESSOR_TIME = range(5)


class SlotsByCost(NamedTuple):
    """The papers' slotList as columns, numbered by (cost, node): cheapest first."""

    arrival: Numbers  # the numbers by non-decreasing start
    proper: NDArray[np.bool_]  # properHardwareAndSoftware
    start: NDArray[np.float64]  # not before the earliest start of the job
    end: NDArray[np.float64]  # not after its deadline
    length: NDArray[np.float64]  # getTime(Job)
    cost: NDArray[np.float64]  # of a part of that length on the slot


@compiled
def total(window: Numbers, column: NDArray[np.float64]) -> float:
    """Sum a column over a window, in the window's order."""
    result = 0.0
    for slot in window:
        result += column[slot]
    return result


@compiled
def drop_expired(extended: Numbers, size: int, start: float, slots: SlotsByCost) -> int:
    """Keep the slots that are long enough to begin at `start`; return how many.

    Misprint: the paper removes elements from the list while iterating over its indices,
    so the slot after a removed one is skipped. Here every expired slot is removed: it
    can be in no window that starts here.
    """
    kept = 0
    for slot in extended[:size]:
        if start + slots.length[slot] <= slots.end[slot]:
            extended[kept] = slot
            kept += 1
    return kept


@compiled
def longest_index(window: Numbers, slots: SlotsByCost) -> int:
    """Return the position of the first longest slot of a window."""
    place = 0
    for i in range(1, len(window)):
        if slots.length[window[i]] > slots.length[window[place]]:
            place = i
    return place


@compiled
def exchange(window: Numbers, rest: Numbers, budget: float, slots: SlotsByCost) -> None:
    """Exchange the longest slot of the window for shorter ones as the budget allows.

    `rest` is sorted by cost, and contains nothing cheaper than the window.

    Misprint: the paper tests ``resultWindow.cost + shortSlot.cost < S``. Here the cost
    of the long slot is refunded; without the refund the window keeps slots that it
    could afford to exchange, and with it the resulting runtime is the least of this
    step. A cost of exactly S is within the budget, as in the problem statement of
    section 2.1.
    """
    n = len(window)
    changed = np.empty(n, np.int64)
    long_place = longest_index(window, slots)
    for short_slot in rest:
        if slots.length[short_slot] < slots.length[window[long_place]]:
            changed[:long_place] = window[:long_place]
            changed[long_place : n - 1] = window[long_place + 1 :]
            changed[n - 1] = short_slot
            if exact_total(changed, slots.cost) <= budget:
                window[:] = changed
                long_place = longest_index(window, slots)


@compiled
def draw_slots(extended: Numbers, n: int, random: np.random.Generator) -> Numbers:
    """Draw n of the slots at random, each set of n equally likely; cheapest first."""
    for i in range(n):
        j = i + int(random.random() * (len(extended) - i))
        extended[i], extended[j] = extended[j], extended[i]
    return np.sort(extended[:n])


@compiled
def best_window(
    extended: Numbers,
    n: int,
    budget: float,
    criterion: int,
    slots: SlotsByCost,
    random: np.random.Generator,
) -> Numbers:
    """Select the window of one step (getBestWindow): n slots, cheapest first.

    Misprint: ``getSubList(0, n)`` and ``getSubList(n + 1, m)`` omit one slot from both
    lists. Here the rest begins with that slot, the cheapest of the rest.

    Misprint: the paper exchanges slots of the n cheapest whatever they cost. Here they
    are unchanged if they exceed the budget, and `aep` skips the step: if the n cheapest
    do not fit, no n slots do.
    """
    if criterion == PROCESSOR_TIME:
        return draw_slots(extended.copy(), n, random)
    by_cost = np.sort(extended)
    window = by_cost[:n]
    if criterion in (RUNTIME, FINISH) and exact_total(window, slots.cost) <= budget:
        exchange(window, by_cost[n:], budget, slots)
    return window


@compiled
def window_value(
    window: Numbers, start: float, criterion: int, slots: SlotsByCost
) -> float:
    """Compute the value of a window (getCriterion): less is better."""
    if criterion == COST:
        return exact_total(window, slots.cost)
    runtime: float = slots.length[window[longest_index(window, slots)]]
    if criterion == RUNTIME:
        return runtime
    if criterion == FINISH:
        return start + runtime
    if criterion == PROCESSOR_TIME:
        return total(window, slots.length)
    return start


@compiled
def aep(
    slots: SlotsByCost,
    n: int,
    budget: float,
    criterion: int,
    random: np.random.Generator,
) -> tuple[float, Numbers]:
    """Sweep the slots by start and keep the first best window of all steps.

    Misprint: the scheme keeps a window if ``crW > maxCriterion`` and defines neither
    the initial value nor a test of the budget. Here less is better, as cost, runtime
    and the problem statement of section 2.1 require; the first window within the budget
    is kept, and a window beyond the budget never.
    """
    extended = np.empty(len(slots.arrival), np.int64)
    size = 0
    best_start, best_value, best = 0.0, np.inf, np.empty(0, np.int64)
    for next_slot in slots.arrival:
        run_signal_handlers()
        if not slots.proper[next_slot]:
            continue
        extended[size] = next_slot
        size += 1
        start = slots.start[next_slot]
        size = drop_expired(extended, size, start, slots)
        if size >= n:
            window = best_window(extended[:size], n, budget, criterion, slots, random)
            if exact_total(window, slots.cost) <= budget:
                value = window_value(window, start, criterion, slots)
                if len(best) == 0 or value < best_value:
                    best_start, best_value, best = start, value, window
                if criterion == START:
                    break  # no later step starts earlier
    return best_start, best


@compiled
def repeated(
    times: int,
    slots: SlotsByCost,
    n: int,
    budget: float,
    criterion: int,
    random: np.random.Generator,
) -> tuple[float, Numbers]:
    """Run the sweep this many times and return the last window; used for timing."""
    found = aep(slots, n, budget, criterion, random)
    for _ in range(times - 1):
        found = aep(slots, n, budget, criterion, random)
    return found


@compiled
def cut_window(
    slots: SlotsByCost, node: Numbers, window: Numbers, start: float
) -> tuple[SlotsByCost, Numbers]:
    """Return the list, and the nodes, without the parts of a window.

    The remnants of a cut slot keep its place by cost. A remnant before the window also
    keeps its place by start; one after the window is inserted by (start, node).
    """
    m = len(slots.arrival)
    capacity = m + len(window)
    taken = np.zeros(m, np.bool_)
    taken[window] = True
    first = np.full(m, -1, np.int64)  # number of the remnant with the slot's start
    late = np.empty(len(window), np.int64)  # numbers of the remnants after the window
    proper, place = np.empty(capacity, np.bool_), np.empty(capacity, np.int64)
    begin, end = np.empty(capacity), np.empty(capacity)
    length, cost = np.empty(capacity), np.empty(capacity)
    size, remnants = 0, 0
    for slot in range(m):
        finish = start + slots.length[slot]
        for after in range(2 if taken[slot] else 1):
            if after:
                if slots.end[slot] - finish <= 4 * 2.0**-52 * abs(finish):
                    continue  # rounding error, no remnant
                late[remnants] = size
                remnants += 1
            elif not taken[slot] or slots.start[slot] < start:
                first[slot] = size
            else:
                continue
            begin[size] = finish if after else slots.start[slot]
            end[size] = start if taken[slot] and not after else slots.end[slot]
            proper[size], place[size] = slots.proper[slot], node[slot]
            length[size], cost[size] = slots.length[slot], slots.cost[slot]
            size += 1
    for i in range(1, remnants):
        slot, j = late[i], i
        while j > 0 and (begin[late[j - 1]], place[late[j - 1]]) > (
            begin[slot],
            place[slot],
        ):
            late[j] = late[j - 1]
            j -= 1
        late[j] = slot
    arrival = np.empty(size, np.int64)
    filled, used = 0, 0
    for slot in slots.arrival:
        kept = first[slot]
        if kept < 0:
            continue
        while used < remnants and (begin[late[used]], place[late[used]]) < (
            begin[kept],
            place[kept],
        ):
            arrival[filled] = late[used]
            filled += 1
            used += 1
        arrival[filled] = kept
        filled += 1
    arrival[filled:] = late[used:remnants]
    columns = SlotsByCost(
        arrival, proper[:size], begin[:size], end[:size], length[:size], cost[:size]
    )
    return columns, place[:size]


@compiled
def csa(
    times: int,
    slots: SlotsByCost,
    node: Numbers,
    n: int,
    budget: float,
    random: np.random.Generator,
) -> list[float]:
    """Run CSA (section 3.1) this many times: starts of AMP's windows, each cut out.

    `slotkern.published.alternatives` returns the parts as well; this version is
    compiled as a whole, for timing.
    """
    starts = [0.0 for _ in range(0)]
    for _ in range(times):
        starts.clear()
        rest, place = slots, node
        start, window = aep(rest, n, budget, START, random)
        while len(window):
            starts.append(start)
            rest, place = cut_window(rest, place, window, start)
            start, window = aep(rest, n, budget, START, random)
    return starts


def number_slots(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job
) -> tuple[Numbers, SlotsByCost]:
    """Number the slots by cost; returns the row of each number, and the columns."""
    cost = job.costs(slots)
    row, arrival = rank_slots(slots, cost)
    return row, SlotsByCost(
        arrival,
        proper[row],
        np.maximum(slots["start"][row], job.earliest),
        np.minimum(slots["end"][row], job.deadline),
        job.lengths(slots["performance"])[row],
        cost[row],
    )


def search(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    criterion: int,
    seed: int,
) -> Found | None:
    """Sweep the slots and return the rows of the window."""
    row, columns = number_slots(slots, proper, job)
    random = np.random.default_rng(seed)
    start, window = aep(columns, job.nodes, job.max_cost, criterion, random)
    return Found(float(start), row[window]) if len(window) else None


def amp(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Run AMP (section 2.2): the first step whose n cheapest live slots fit S."""
    return search(slots, proper, job, START, seed)


def alp(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Run ALP (section 1): the first n live slots, each within the price limit.

    The price limit F is part of `proper`. The budget is not tested: n slots at F or
    less for a time T never cost more than S = F T n. AMP with budget S may also select
    slots above F.
    """
    return search(slots, proper, job._replace(budget=np.inf), START, seed)


def min_cost(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Find the window of least cost (section 2.2): the n cheapest of each step."""
    return search(slots, proper, job, COST, seed)


def min_runtime(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Find the window whose longest part is shortest (section 2.2): by exchanges."""
    return search(slots, proper, job, RUNTIME, seed)


def min_finish(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Find the window that finishes first (section 2.2): exchanges at each start."""
    return search(slots, proper, job, FINISH, seed)


def min_proc_time(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Run the simplified minProcTime (section 3.1): one random window per step.

    The paper defines neither how the window is drawn nor what happens to one beyond the
    budget: here every n live slots are equally likely, and the step is skipped. Neither
    the least processor time nor any window is guaranteed.
    """
    return search(slots, proper, job, PROCESSOR_TIME, seed)
