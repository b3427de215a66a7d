"""What a scheduling loop is built on otherwise: rivals of `SlotPool.schedule`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numba
import numpy as np
from numpy.typing import NDArray

import slotkern as sk


def cut(slots: NDArray[np.void], window: sk.Window) -> NDArray[np.void]:
    """The slots that a window leaves free, with the rests of those it is cut from."""
    rows = window.slots["row"]
    ends = slots["end"][rows]
    finish = window.slots["end"].copy()
    rounding = ends - finish <= 4 * 2.0**-52 * np.abs(finish)
    finish[rounding] = ends[rounding]
    left, right = slots[rows], slots[rows]
    left["end"], right["start"] = window.start, finish
    whole = np.ones(len(slots), bool)
    whole[rows] = False
    left, right = (
        left[left["start"] < left["end"]],
        right[right["start"] < right["end"]],
    )
    table = np.concatenate([slots[whole], left, right])
    return table[np.lexsort((table["node"], table["start"]))]


def rescan(
    slots: NDArray[np.void], asked: Sequence[sk.Request]
) -> Iterator[sk.Window | None]:
    """Naive: `find_window` searches the whole array for every job, then it is cut."""
    for request in asked:
        window = sk.find_window(slots, request, "start", shape="ragged")
        if window is not None:
            slots = cut(slots, window)
        yield window


def by_numpy(
    slots: NDArray[np.void], asked: Sequence[sk.Request]
) -> Iterator[float | None]:
    """What a user would write: the earliest starts by numpy alone.

    Counts the live slots at every start in one go, and looks only where there are
    enough for the n cheapest of them.
    """
    for request in asked:
        length = request.volume / slots["performance"]
        cost = request.volume * (slots["price"] / slots["performance"])
        latest = (slots["end"] - length) * (1 + 1e-12)  # rounding; tested below
        rows = np.flatnonzero(slots["start"] <= latest)
        begin = slots["start"][rows]
        times = np.unique(begin)
        come = np.searchsorted(begin, times, "right")
        gone = np.searchsorted(np.sort(latest[rows]), times, "left")
        start = None
        for k in np.flatnonzero(come - gone >= request.nodes):
            t = times[k]
            early = rows[: come[k]]
            live = early[t + length[early] <= slots["end"][early]]
            if len(live) < request.nodes:
                continue
            best = np.argpartition(cost[live], request.nodes - 1)[: request.nodes]
            best = live[best]
            if np.sort(cost[best]).sum() <= request.budget:
                start = float(t)
                break
        yield start
        if start is None:
            continue
        left, right = slots[best], slots[best]
        left["end"], right["start"] = start, start + length[best]
        table = np.concatenate([np.delete(slots, best), left, right])
        table = table[table["start"] < table["end"]]
        slots = table[np.lexsort((table["node"], table["start"]))]


def free_counts(
    slots: NDArray[np.void],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """How many nodes are free from each time on: all that a count-only planner sees."""
    edges = np.concatenate([slots["start"], slots["end"]])
    change = np.repeat([1, -1], len(slots))
    time, place = np.unique(edges, return_inverse=True)
    count = np.zeros(len(time), np.int64)
    np.add.at(count, place, change)
    return time, np.cumsum(count)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def count_only(
    time: NDArray[np.float64],
    free: NDArray[np.int64],
    wanted: int,
    lengths: NDArray[np.float64],
    shortest: float,
) -> NDArray[np.float64]:
    """The earliest start of each job where only the number of free nodes is known.

    A sorted list of times and how many nodes are free from each on: look where enough
    are free for the job's length, book so many. What is full is dropped from its head,
    which makes room for the times that bookings add, and so is what has no room for
    `shortest`, where it is known that no job is shorter. No node is named, and none has
    a price. Nan for what does not fit.
    """
    head = len(lengths)
    size = head + len(time)
    at, count = np.empty(size), np.zeros(size, np.int64)
    at[head:], count[head:] = time, free
    starts = np.full(len(lengths), np.nan)
    for job, length in enumerate(lengths):
        while head < size - 1 and count[head] < wanted:
            head += 1
        begin, end = head, head + 1
        while end < size and at[end] < at[begin] + length:
            if count[end] < wanted:
                if begin == head and at[end] < at[begin] + shortest:
                    head = end
                begin = end
                while begin < size and count[begin] < wanted:
                    begin += 1
                end = begin
            end += 1
        if begin >= size - 1:  # nothing is free from the last time on
            continue
        starts[job] = at[begin]
        finish = at[begin] + length
        if at[end] != finish:
            head -= 1
            begin -= 1
            at[head : end - 1] = at[head + 1 : end]
            count[head : end - 1] = count[head + 1 : end]
            at[end - 1], count[end - 1] = finish, count[end - 2]
            end -= 1
        count[begin:end] -= wanted
    return starts


def check_count_only(
    slots: NDArray[np.void],
    wanted: int,
    lengths: NDArray[np.float64],
    starts: NDArray[np.float64],
) -> None:
    """Never more nodes than are free; the first jobs start as a plain search says."""
    time, free = free_counts(slots)
    got = ~np.isnan(starts)
    edges = np.concatenate([starts[got], starts[got] + lengths[got], time])
    change = np.repeat([-wanted, wanted], got.sum())
    change = np.concatenate([change, np.diff(free, prepend=0)])
    order = np.argsort(edges)
    moments = np.append(np.diff(edges[order]) > 0, True)
    assert np.cumsum(change[order])[moments].min() >= 0
    for job in range(min(20, len(lengths))):
        for begin in np.flatnonzero(free >= wanted):
            finish = time[begin] + lengths[job]
            end = np.searchsorted(time, finish)
            if free[begin:end].min() >= wanted:
                break
        assert starts[job] == time[begin]
        time = np.insert(time, end, finish)
        free = np.insert(free, end, free[end - 1])
        free[begin:end] -= wanted
