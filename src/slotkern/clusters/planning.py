"""Plans for any cluster: where and when a job can run, from a snapshot and a site.

A window becomes a reservation of exactly its length: the request gets the time after
the job as its setup, and whole minutes as its step, so budgets and costs are those of
the whole reserved block. A job uses one partition, so each is searched by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA, find_window
from slotkern._kernels.windows import Window
from slotkern.foundation.checks import meant, one_of
from slotkern.fronts import pareto
from slotkern.machine import FreeSlots
from slotkern.search.explanation import Explanation, explain

from .site import Site
from .snapshot import Snapshot

__all__ = ["ClusterPlan", "PlannedWindow", "unknown_partition"]


@dataclass(frozen=True)
class PlannedWindow:
    """A window in a partition, as the reservation and the job that it becomes.

    `start` and `end` are of the reservation, in seconds since 1970; `minutes` is the
    time limit of the job.
    """

    partition: str
    window: Window
    nodes: tuple[str, ...]
    start: int
    end: int
    minutes: int


def unknown_partition(name: str, snapshot: Snapshot) -> str:
    """Return the message for a partition that a cluster lacks."""
    known = snapshot.partitions
    listed = ", ".join(known) or "none"
    return f"the cluster has no partition {name!r}; it has {listed}{meant(name, known)}"


@dataclass(frozen=True)
class ClusterPlan:
    """The free slots of each partition of a snapshot, under the rules of a site."""

    snapshot: Snapshot
    site: Site
    free: Mapping[str, FreeSlots]

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, site: Site) -> ClusterPlan:
        """Compute the free slots of all partitions that the site allows and are up.

        Raises
        ------
        ValueError
            If the cluster lacks a partition of the site.
        """
        allowed = site.partitions or tuple(snapshot.partitions)
        for name in allowed:
            if name not in snapshot.partitions:
                raise ValueError(unknown_partition(name, snapshot))
        until = snapshot.now + site.horizon
        busy = snapshot.busy_until(until).copy()
        # Schedulers count whole seconds, so that windows must begin and end at them.
        busy["start"] -= math.ceil(site.apart)
        busy["end"] += math.ceil(max(site.before, site.apart))
        machine = site.priced(snapshot.machine)
        priced = replace(snapshot, machine=machine, busy=busy, repeated=())
        free = priced.free_slots(math.ceil(site.lead), site.horizon)
        found = {}
        for name in allowed:
            if not snapshot.partitions[name].up:
                continue
            ids = snapshot.partitions[name].nodes
            slots = free.slots[np.isin(free.slots["node"], ids)]
            mine = free.busy[np.isin(free.busy["node"], ids)]
            found[name] = replace(free, slots=slots, busy=mine)
        return cls(snapshot, site, found)

    def request(self, request: Request, partition: str) -> Request:
        """Return the request with the guards of the site and a partition's limit.

        The setup time and the longest run of the request count for the job.

        Raises
        ------
        ValueError
            If the request's step is not whole minutes.
        """
        return self._guarded(request, self.snapshot.partitions[partition].limit)

    def _guarded(self, request: Request, limit: float) -> Request:
        clock, after = self.snapshot.clock, self.site.after
        setup, step, most = (
            clock.duration(getattr(request, name), name)
            for name in ("setup", "step", "max_runtime")
        )
        if step % 60:
            raise ValueError(f"step {request.step} is not whole minutes: 1min, 5min")
        return request.replace(
            setup=setup + after, step=step or 60.0, max_runtime=min(limit, most) + after
        )

    def length(self, request: Request, nodes: Sequence[str]) -> float:
        """Return the seconds of a reservation of a request on given nodes."""
        machine = self.site.priced(self.snapshot.machine)
        given = self._guarded(request, math.inf)
        if given.walltime is not None:
            time = self.snapshot.clock.duration(given.walltime, "walltime")
            volume = time * given.reference
            given = given.replace(walltime=None, volume=volume)
        slowest = machine.performance[machine.ids(list(nodes))].min()
        return float(given.length([slowest])[0])

    def find(
        self, request: Request, criterion: str = "start", partition: str | None = None
    ) -> PlannedWindow | None:
        """Return the best window over the partitions; None if there is none.

        `criterion` is one of `slotkern.CRITERIA`.
        Ties go to the earlier start, then to the lower cost, then to the partition that
        the scheduler lists first.
        """
        best_by: Any = one_of("criterion", criterion, CRITERIA)
        best: tuple[Any, PlannedWindow] | None = None
        for name in self._names(partition):
            window = find_window(self.free[name], self.request(request, name), best_by)
            if window is not None:
                key = window.value, window.start, window.cost
                if best is None or key < best[0]:
                    best = key, self._planned(name, window)
        return None if best is None else best[1]

    def front(
        self, request: Request, partition: str | None = None
    ) -> list[PlannedWindow]:
        """Return the windows that no other window beats in both cost and finish."""
        found = [
            self._planned(name, window)
            for name in self._names(partition)
            for window in pareto(
                self.free[name], self.request(request, name), ("cost", "finish")
            )
        ]
        found.sort(key=lambda each: (each.window.finish, each.window.cost))
        kept: list[PlannedWindow] = []
        for each in found:
            if not kept or each.window.cost < kept[-1].window.cost:
                kept.append(each)
        return kept

    def explain(
        self, request: Request, partition: str | None = None
    ) -> dict[str, Explanation]:
        """Return for each partition why it has no window."""
        return {
            name: explain(self.free[name], self.request(request, name))
            for name in self._names(partition)
        }

    def _names(self, partition: str | None) -> Sequence[str]:
        if partition is None:
            return tuple(self.free)
        known = self.snapshot.partitions
        if partition in known and not known[partition].up:
            raise ValueError(f"partition {partition!r} is not up: it starts no jobs")
        if partition not in self.free:
            raise ValueError(
                f"partition {partition!r} is not one of {', '.join(self.free)}"
                f"{meant(partition, self.free)}"
            )
        return (partition,)

    def _planned(self, partition: str, window: Window) -> PlannedWindow:
        start = round(self.snapshot.now + window.start)
        length = round(window.runtime)
        names = tuple(str(self.snapshot.machine.names[k]) for k in window.nodes)
        minutes = (length - round(self.site.after)) // 60
        return PlannedWindow(partition, window, names, start, start + length, minutes)
