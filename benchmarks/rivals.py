"""Simple implementations of find and book with which benchmarks compare `SlotPool`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numba
import numpy as np
from numpy.typing import NDArray

import slotkern as sk


def cut(slots: NDArray[np.void], window: sk.Window) -> NDArray[np.void]:
    """Return the slots that stay free after a window is cut out, ordered by start."""
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
    slots: NDArray[np.void], requests: Sequence[sk.Request]
) -> Iterator[sk.Window | None]:
    """Yield windows naively: for every job, search all slots and cut the window out."""
    for request in requests:
        window = sk.find_window(slots, request, "start", shape="ragged")
        if window is not None:
            slots = cut(slots, window)
        yield window


def by_numpy(
    slots: NDArray[np.void], requests: Sequence[sk.Request]
) -> Iterator[float | None]:
    """Yield the earliest starts by numpy alone, as a user would program it.

    Counts the live slots at every start at once, and examines only the starts with at
    least n live slots.
    """
    for request in requests:
        length = request.volume / slots["performance"]
        cost = request.volume * (slots["price"] / slots["performance"])
        latest = (slots["end"] - length) * (1 + 1e-12)  # rounding; tested below
        rows = np.flatnonzero(slots["start"] <= latest)
        begin = slots["start"][rows]
        times = np.unique(begin)
        arrived = np.searchsorted(begin, times, "right")
        expired = np.searchsorted(np.sort(latest[rows]), times, "left")
        start = None
        for k in np.flatnonzero(arrived - expired >= request.nodes):
            t = times[k]
            early = rows[: arrived[k]]
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
    """Return times and the number of free nodes from each on: a count-only profile."""
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
    """Return the earliest start of each job by a profile of the number of free nodes.

    The profile is a sorted array of times with the number of nodes that are free from
    each on. A job is booked at the first time from which `wanted` nodes are free for
    its length. Full intervals are removed from the head of the array, which makes room
    for the times that bookings add, and so are intervals shorter than `shortest` (a
    lower bound on all lengths). No node is named and none has a price. NaN: no start.
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
    """Assert that no node is booked twice, and compare the first starts naively."""
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
