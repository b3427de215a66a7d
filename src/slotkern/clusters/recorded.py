"""A cluster in memory: a snapshot, and the bookings made on it since.

It follows the rules of `LiveCluster` exactly, for tests and for planning from texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .protocol import (
    BookingConflictError,
    ClusterBooking,
    ClusterError,
    LiveCluster,
    NameTakenError,
    check_name,
    check_unnumbered,
)
from .queues import ClusterQueue, QueuedJob
from .snapshot import Snapshot, busy_table

__all__ = ["RecordedCluster"]


class RecordedCluster(LiveCluster):
    """A cluster whose state is a snapshot, and the jobs of its queue.

    Examples
    --------
    >>> from slotkern import Request
    >>> from slotkern.clusters import RecordedCluster, Site, SiteAccess
    >>> from slotkern.clusters import book, read_slurm
    >>> nodes = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\\n"
    >>> nodes += "batch up 1-00:00:00 3 idle n[1-3]\\n"
    >>> cluster = RecordedCluster(read_slurm(nodes, now=1800000000))
    >>> access = SiteAccess(cluster, Site(lead=0))
    >>> made = book(access, "run1", Request(2, walltime="1h"), user="anna")
    >>> made.nodes, made.end - made.start
    (('n1', 'n2'), 3660)
    >>> book(access, "run1", Request(2, walltime="1h"), user="anna") == made
    True
    """

    def __init__(
        self, snapshot: Snapshot, jobs: Sequence[QueuedJob] = (), held: int = 0
    ) -> None:
        self.snapshot, self._queued = snapshot, (tuple(jobs), held)
        self.zone = snapshot.zone
        self._bookings: dict[str, ClusterBooking] = {}
        self._jobs = 0

    def read(self) -> Snapshot:
        """Return the snapshot with the bookings as busy spans."""
        ids = {name: k for k, name in enumerate(self.snapshot.machine.names.tolist())}
        mine = [
            (ids[node], float(b.start), float(b.end), f"reservation {b.name}", b.user)
            for b in self._bookings.values()
            for node in b.nodes
        ]
        busy = busy_table([*self.snapshot.busy.tolist(), *mine])
        return replace(self.snapshot, busy=busy)

    def queue(self) -> ClusterQueue:
        """Return the snapshot with the bookings, and the jobs given."""
        return ClusterQueue(self.read(), *self._queued)

    def reserve(
        self, name: str, nodes: Sequence[str], start: int, end: int, user: str
    ) -> ClusterBooking:
        """Reserve nodes; refuse a span that is not free and a name in use."""
        check_name("name", name)
        wanted = ClusterBooking(
            name, start, end, tuple(nodes), check_name("user", user)
        )
        if (found := self._bookings.get(name)) is not None:
            if replace(found, job=None) != wanted:
                raise NameTakenError(f"name {name!r} belongs to another booking")
            return found
        ids = self.snapshot.machine.ids(list(nodes)).tolist()
        for node, first, last, reason, _ in self.read().busy_until(end).tolist():
            if node in ids and first < end and last > start:
                where = self.snapshot.machine.names[node]
                raise BookingConflictError(f"{where} is not free: {reason}")
        self._bookings[name] = wanted
        return wanted

    def find(self, name: str) -> ClusterBooking | None:
        """Return the booking of a name."""
        return self._bookings.get(name)

    def bookings(self) -> list[ClusterBooking]:
        """Return all bookings made here."""
        return [*self._bookings.values()]

    def submit(
        self,
        booking: ClusterBooking,
        partition: str,
        minutes: int,
        command: Sequence[str],
    ) -> int:
        """Number the job of a booking."""
        found = self._bookings.get(booking.name)
        if found is None:
            raise ClusterError(f"{booking.name}: there is no such reservation")
        if found.job is None:
            self._jobs += 1
            found = self._bookings[booking.name] = replace(found, job=self._jobs)
        assert found.job is not None
        return found.job

    def release(self, name: str, number: int | None = None) -> bool:
        """Delete a booking, whose name is unique here."""
        check_unnumbered(name, number)
        return self._bookings.pop(name, None) is not None
