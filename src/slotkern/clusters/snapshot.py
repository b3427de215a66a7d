"""Snapshots: the nodes of a cluster and their busy spans, as read at one moment.

Input: a machine, busy spans in seconds since 1970, partitions. Output: free slots
around the busy spans. Invariant: a node that the cluster cannot use has a busy span
without an end, so free slots are never on it.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.machine import Clock, FreeSlots, Machine, free_slots

from .reservations import Reservation

__all__ = ["BusyRow", "Partition", "Repeated", "Snapshot", "busy_table"]

#: The fields of a busy span before reason and owner: node id, seconds since 1970.
BUSY = [("node", "i4"), ("start", "f8"), ("end", "f8")]
#: The default horizon of free slots, in seconds.
WEEK = 7 * 86400.0
#: A busy span: node id, start, end, reason and owner.
BusyRow = tuple[int, float, float, str, str]


class Partition(NamedTuple):
    """Nodes that one job may use together: a partition or queue.

    `nodes` are ids, `limit` is the longest run in seconds (inf: none), and `up` is
    False if it starts no jobs.
    """

    nodes: NDArray[np.int32]
    limit: float
    up: bool


class Repeated(NamedTuple):
    """A repeated reservation, and the ids of its nodes."""

    reservation: Reservation
    nodes: list[int]

    def rows(self, now: float, until: float, zone: str | None) -> list[BusyRow]:
        """Return the busy spans that begin before `until`."""
        each = self.reservation
        kind = "maintenance" if "MAINT" in each.flags else "reservation"
        return [
            (k, start, end, f"{kind} {each.name}", each.users)
            for start, end in each.spans(now, until, zone)
            for k in self.nodes
        ]


def busy_table(rows: Iterable[BusyRow]) -> NDArray[Any]:
    """Return busy spans: node id, start, end, reason and owner of each."""
    given = list(rows)
    reason = max((len(row[3]) for row in given), default=1)
    owner = max((len(row[4]) for row in given), default=1)
    text = [("reason", f"U{reason or 1}"), ("owner", f"U{owner or 1}")]
    return np.array(given, [*BUSY, *text])


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The state of a cluster at one moment.

    Attributes
    ----------
    now : float
        The moment, in seconds since 1970.
    machine : Machine
        All nodes, in the order in which the scheduler lists them.
    busy : structured array
        Busy spans: ``node`` (id), ``start`` and ``end`` in seconds since 1970,
        ``reason`` and ``owner``. Nodes that are down, drained or otherwise not usable
        are busy without an end.
    partitions : mapping of str to Partition
    zone : str or None
        The time zone of dates.
    until : float
        The time until which `busy` contains the repeated reservations.
    repeated : tuple of Repeated
        The reservations with further spans from `until` on; see `busy_until`.

    Examples
    --------
    >>> from slotkern.clusters import read_slurm
    >>> nodes = "NODELIST STATE\\nn[1-3] idle\\nn4 down\\n"
    >>> jobs = "JOBID|STATE|NODELIST|END_TIME\\n7|RUNNING|n1|1800003600\\n"
    >>> snapshot = read_slurm(nodes, jobs, now=1800000000)
    >>> snapshot
    Snapshot(4 nodes, 2 busy spans, 2027-01-15 08:00:00+00:00)
    >>> snapshot.free_slots().slots[["node", "start"]].tolist()
    [(1, 0.0), (2, 0.0), (0, 3600.0)]
    """

    now: float
    machine: Machine
    busy: NDArray[Any]
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    zone: str | None = None
    until: float = math.inf
    repeated: tuple[Repeated, ...] = ()

    def __repr__(self) -> str:
        count = f"{len(self.machine):,} nodes, {len(self.busy):,} busy spans"
        return f"Snapshot({count}, {self.clock.origin})"

    @property
    def clock(self) -> Clock:
        """The clock of free slots: seconds since `now`."""
        return Clock(dt.datetime.fromtimestamp(self.now, dt.UTC), zone=self.zone)

    def busy_until(self, until: float) -> NDArray[Any]:
        """Return `busy` with all spans of repeated reservations before a time."""
        if until <= self.until or not self.repeated:
            return self.busy
        rows = self.busy.tolist()
        for each in self.repeated:
            known = max(self.until, each.reservation.start + 1)  # has the first span
            spans = each.rows(self.now, until, self.zone)
            rows += [row for row in spans if row[1] >= known]
        return busy_table(rows)

    def free_slots(
        self,
        start: Any = None,
        end: Any = None,
        *,
        tariffs: Any = None,
        outside: float | None = None,
    ) -> FreeSlots:
        """Return the free slots, with the machine and the clock.

        Parameters
        ----------
        start, end : date or number of seconds since `now`, optional
            The horizon; by default from now, for a week.
        tariffs, outside : optional
            Factors of the nodes' prices by time, as for `slotkern.free_slots`.
            `Site.priced` gives the machine prices.
        """
        clock = self.clock
        first = 0.0 if start is None else clock.time(start, "start")
        last = first + WEEK if end is None else clock.time(end, "end")
        spans = self.busy_until(self.now + last)
        busy = {name: spans[name] for name in spans.dtype.names or ()}
        for name in ("start", "end"):
            busy[name] = spans[name] - self.now
        return free_slots(
            self.machine,
            busy,
            start=first,
            end=last,
            clock=clock,
            tariffs=tariffs,
            outside=outside,
        )
