"""Reference model of backfilling and execution, written from the definitions.

The only state is the placement of each job. At every event the free slots are rebuilt:
all slots from the current time on, without the time of every placed job. A window is
the earliest that `find_window` finds in that array. `slots` are an array, or an object
with an array ``slots`` and the ``tariffs`` that its column names.
"""

from __future__ import annotations

import math

import numpy as np

import slotkern as sk


def free_slots(slots, busy, now):
    """Return the slots from `now` on without the busy spans (node, start, end)."""
    pieces = []
    for slot in slots:
        spans = sorted((s, e) for node, s, e in busy if node == slot["node"] and e > s)
        start = max(slot["start"], now)
        for s, e in spans:
            if e <= start or s >= slot["end"]:
                continue
            if s > start:
                pieces.append((slot, start, s))
            start = max(start, e)
        if start < slot["end"]:
            pieces.append((slot, start, slot["end"]))
    out = np.array([slot for slot, _, _ in pieces], slots.dtype)
    if pieces:
        out["start"] = [start for _, start, _ in pieces]
        out["end"] = [end for _, _, end in pieces]
    return out[np.lexsort((out["node"], out["start"]))]


def earliest(slots, busy, now, request, shape):
    """Return start and parts of the earliest window from `now` on, or None."""
    if max(request.earliest, now) > request.deadline:
        return None
    if isinstance(slots, np.ndarray):
        free = free_slots(slots, busy, now)
    else:
        free = slots._replace(slots=free_slots(slots.slots, busy, now))
    later = request.replace(earliest=max(request.earliest, now))
    window = sk.find_window(free, later, "start", shape=shape)
    if window is None:
        return None
    parts = window.slots
    return window.start, list(
        zip(
            parts["node"].tolist(),
            (parts["end"] - parts["start"]).tolist(),
            strict=True,
        )
    )


def reserved(place):
    """Return the busy spans (node, start, end) of a placement."""
    start, parts = place
    return [(node, start, start + length) for node, length in parts]


class Run:
    """The state of a run: jobs with a reservation in `plan`, and the started ones."""

    def __init__(self, slots, requests, shape, shares, plan, movable):
        self.slots, self.requests, self.shape = slots, requests, shape
        self.shares, self.plan, self.movable = shares, dict(plan), movable
        self.started = set()

    def ends(self):
        """Return the actual ends of the parts of all started jobs."""
        return [
            self.plan[j][0] + length * self.shares[j]
            for j in self.started
            for _, length in self.plan[j][1]
        ]

    def busy(self, now, without=None):
        """Return the spans of all jobs; parts that ended early have their real end."""
        spans = []
        for j, (start, parts) in self.plan.items():
            for node, length in parts if j != without else ():
                end = start + length
                real = start + length * self.shares[j]
                if j in self.started and real <= now:
                    end = real
                spans.append((node, start, end))
        return spans

    def find(self, job, now, without=None):
        """Return the earliest placement of a job; ignore the job `without`."""
        busy = self.busy(now, without)
        return earliest(self.slots, busy, now, self.requests[job], self.shape)


def conservative(slots, requests, shape, shares, plan, movable):
    """Return the placement of each job by conservative backfilling, or None."""
    run = Run(slots, requests, shape, shares, plan, movable)
    past = -math.inf
    while True:
        starts = [run.plan[j][0] for j in run.plan if j not in run.started]
        ends = [end for end in run.ends() if end > past]
        start, end = min(starts, default=math.inf), min(ends, default=math.inf)
        if start == end == math.inf:
            return [run.plan.get(j) for j in range(len(requests))]
        if start <= end:
            run.started |= {j for j in run.plan if run.plan[j][0] == start}
            continue
        past = end
        for j in range(len(requests)):
            if j in run.started or not movable[j]:
                continue
            found = run.find(j, end, without=j)
            if found and (j not in run.plan or found[0] < run.plan[j][0]):
                run.plan[j] = found


def easy(slots, requests, shape, shares, plan, movable):
    """Return each job's placement by EASY, and the first reservation of each head."""
    run = Run(slots, requests, shape, shares, plan, movable)
    run.started = set(run.plan)
    waiting = [j for j in range(len(requests)) if j not in run.plan and movable[j]]
    heads = {}
    begins = getattr(slots, "slots", slots)["start"]
    times = {*begins.tolist(), *(request.earliest for request in requests)}
    now = float(begins.min())
    first = None  # the head of the queue, until it starts
    while waiting:
        head, affordable = None, []
        ahead = [first] if first in waiting else []
        for j in [*ahead, *(j for j in waiting if j != first)]:
            if requests[j].earliest > now:
                continue
            found = run.find(j, now) if head is None else beside(run, j, now, head)
            if found is None:
                continue
            if found[0] <= now:
                run.plan[j] = found
                run.started.add(j)
                waiting.remove(j)
            elif head is None:
                head, first = found, j
                heads.setdefault(j, found[0])
            else:  # a tariff may fall without an event
                affordable.append(found[0])
        later = [t for t in [*times, *run.ends(), *affordable] if t > now]
        if head is not None:
            later.append(head[0])
        if not later:
            break
        now = min(later)
    return [run.plan.get(j) for j in range(len(requests))], heads


def beside(run, job, now, head):
    """Return the earliest window that does not overlap the head's reservation."""
    busy = run.busy(now) + reserved(head)
    return earliest(run.slots, busy, now, run.requests[job], run.shape)
