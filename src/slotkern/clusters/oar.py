"""The OAR that answers on this computer, as a `LiveCluster`.

This module alone contains OAR's commands. A reservation is an advance reservation of
the type ``container``; its job is an ``inner`` job of it with the same name. OAR
refuses an advance reservation whose nodes are not free, and deletes the inner jobs with
their container. Dates are written in UTC.

Names are not unique in OAR. The command of a reservation of this module has a mark, and
a user has one marked reservation of a name: the one with the lowest number. Others are
never deleted but by their number.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shlex
import time
from collections.abc import Sequence

from .oar_queue import read_oar_queue
from .oar_texts import LAST_SECOND, OarJob, read_oar, read_oar_jobs
from .programs import Meanings, run_program
from .protocol import (
    AmbiguousNameError,
    BookingConflictError,
    BookingDeniedError,
    ClusterBooking,
    ClusterError,
    LiveCluster,
    NameTakenError,
    UnreachableError,
    check_name,
    check_nodes,
)
from .queues import ClusterQueue
from .site import Site, system_zone
from .snapshot import Snapshot

__all__ = ["OarCluster"]

_MEANINGS: Meanings = (
    (BookingConflictError, ("reservation not valid", "reservation too old")),
    (BookingConflictError, ("there are not enough resources",)),
    (UnreachableError, ("cannot connect", "connection refused", "timed out")),
    # Not "admission rule": oarsub also prints it for jobs that it accepts.
    (BookingDeniedError, ("not allowed", "permission")),
)
#: Least seconds that OAR gets to validate a reservation or to delete a job.
_PATIENCE = 30.0
#: The end of the command of a reservation of `OarCluster`, a comment of the shell.
_MARK = " # booked by slotkern"
#: Part of the message of ``oardel`` for a job whose deletion was requested before.
_DELETED = "already killed"
_NUMBER = re.compile(r"OAR_JOB_ID=([0-9]+)")


class OarCluster(LiveCluster):
    """The cluster of OAR's commands.

    Parameters
    ----------
    site : Site
        Uses its ``zone``, ``timeout``, ``sudo`` and ``group``.
    group : str
        The property of nodes whose values are the partitions; by default that of the
        site, else all nodes are one partition.

    Raises
    ------
    ClusterError
        From every method, if a command fails.
    """

    def __init__(self, site: Site | None = None, group: str = "") -> None:
        self.site = site or Site()
        self.group = group or self.site.group
        self.zone = self.site.zone or system_zone()
        self._patience = max(_PATIENCE, self.site.timeout)
        self._environment = dict(os.environ) | {"LC_ALL": "C", "TZ": "UTC"}

    def ping(self) -> None:
        """Raise ClusterError if OAR does not answer."""
        self._run("oarstat", "-J", "--sql", "job_id=0")

    def read(self) -> Snapshot:
        """Return the state of the cluster."""
        return read_oar(
            self._run("oarnodes", "-J"),
            self._run("oarstat", "-f", "-J"),
            now=float(int(time.time())),
            zone=self.zone,
            group=self.group,
        )

    def queue(self) -> ClusterQueue:
        """Return the jobs by number, those of the queue besteffort last."""
        return read_oar_queue(
            self._run("oarnodes", "-J"),
            self._run("oarstat", "-f", "-J"),
            now=float(int(time.time())),
            zone=self.zone,
            group=self.group,
        )

    def _named(self, name: str) -> tuple[list[OarJob], list[OarJob]]:
        """Return the reservations of a name that last, and all jobs, by number.

        Waits for reservations that OAR has not validated yet.
        """
        until = time.monotonic() + self._patience
        while True:
            text = self._run("oarstat", "-f", "-J", "--sql", f"job_name='{name}'")
            jobs = [each for each in read_oar_jobs(text) if each.name == name]
            mine = [each for each in jobs if each.is_lasting_reservation]
            if all(each.is_validated for each in mine):
                return mine, jobs
            if time.monotonic() > until:
                raise UnreachableError(
                    f"{name}: OAR did not validate it within {self._patience:g} s"
                )
            time.sleep(0.2)

    def find(self, name: str) -> ClusterBooking | None:
        """Return the reservation of a name, and its job, which may have ended.

        If several reservations have the name, it is the one with the lowest number.
        """
        mine, jobs = self._named(check_name("name", name))
        return _booking(mine[0], jobs) if mine else None

    def bookings(self) -> list[ClusterBooking]:
        """Return all advance reservations, each with the job in its time."""
        jobs = read_oar_jobs(self._run("oarstat", "-f", "-J"))
        return [_booking(each, jobs) for each in jobs if each.is_lasting_reservation]

    def reserve(
        self, name: str, nodes: Sequence[str], start: int, end: int, user: str
    ) -> ClusterBooking:
        """Submit an advance reservation.

        If two callers reserve one name at the same time, the lower number stays. This
        call deletes its own reservation if it is not the wanted one, and the marked
        ones of the user with higher numbers: their callers were killed, or delete them
        too.
        """
        check_name("name", name)
        check_name("user", user)
        check_nodes(nodes)
        mine, _ = self._named(name)
        own = None
        if not mine:
            date = dt.datetime.fromtimestamp(start, dt.UTC)
            length = end - start - LAST_SECOND
            text = self._run(
                *("oarsub", "-r", f"{date:%Y-%m-%d %H:%M:%S}", "-t", "container"),
                *self._what(name, nodes, length),
                f"sleep {length}{_MARK}",
                privileged=True,
            )
            own = _NUMBER.search(text)
            mine, _ = self._named(name)
        if not mine:
            raise ClusterError(f"{name}: OAR accepted the reservation, but lacks it")
        found = _booking(mine[0], [])
        wanted = ClusterBooking(name, start, end, tuple(sorted(nodes)), user)
        if own and (mine[0].number != int(own[1]) or found != wanted):
            self._delete(int(own[1]))
        elif own:
            self._delete_twins(mine)
        if found.user != user:
            raise NameTakenError(
                f"name {name!r} belongs to a reservation of {found.user}, not {user}; "
                "OAR reserves for the user who runs oarsub"
            )
        if found != wanted:
            raise NameTakenError(f"name {name!r} belongs to another reservation")
        return found

    def _delete_twins(self, mine: Sequence[OarJob]) -> None:
        """Delete the marked reservations of the first one's user, except the first."""
        for each in mine[1:]:
            if each.owner == mine[0].owner and each.command.endswith(_MARK):
                self._delete(each.number)

    def _delete(self, number: int) -> None:
        """Request the deletion of a job, as other callers may do at the same time."""
        try:
            self._run("oardel", str(number), privileged=True)
        except ClusterError as error:
            if _DELETED not in str(error):
                raise

    @staticmethod
    def _what(name: str, nodes: Sequence[str], seconds: int) -> list[str]:
        """Return the options for the name, the nodes and the length of a job."""
        hours, rest = divmod(int(seconds), 3600)
        length = f"{hours}:{rest // 60}:{rest % 60}"
        listed = ",".join(f"'{node}'" for node in nodes)
        return [
            *("-n", name, "-l", f"nodes={len(nodes)},walltime={length}"),
            *("-p", f"network_address in ({listed})"),
        ]

    def submit(
        self,
        booking: ClusterBooking,
        partition: str,
        minutes: int,
        command: Sequence[str],
    ) -> int:
        """Submit the job of a reservation unless it has one.

        If two callers submit at the same time, the job with the lower number stays.
        """
        name = check_name("name", booking.name)
        mine, jobs = self._named(name)
        if booking.number is not None:
            mine = [each for each in mine if each.number == booking.number]
        if not mine:
            raise ClusterError(f"{name}: there is no such reservation")
        jobs = _jobs_in(mine[0], jobs)
        if not jobs:
            self._run(
                *("oarsub", "-t", f"inner={mine[0].number}"),
                *self._what(name, booking.nodes, 60 * minutes),
                shlex.join(command),
                privileged=True,
            )
            jobs = _jobs_in(mine[0], self._named(name)[1])
        if not jobs:
            raise ClusterError(
                f"{name}: the job was submitted, but is not in the queue"
            )
        for job in jobs[1:]:
            if not job.has_ended:
                self._delete(job.number)
        return jobs[0].number

    def release(self, name: str, number: int | None = None) -> bool:
        """Delete a reservation and its jobs; False if there is none."""
        mine, _ = self._named(check_name("name", name))
        if number is not None:
            mine = [each for each in mine if each.number == number]
        if not mine:
            return False
        if len(mine) > 1:
            listed = ", ".join(f"{each.number} of {each.owner}" for each in mine)
            raise AmbiguousNameError(
                f"name {name!r} belongs to {len(mine)} reservations: {listed}; release "
                "one by its number"
            )
        until = time.monotonic() + self._patience
        self._delete(mine[0].number)
        while any(each.number == mine[0].number for each in self._named(name)[0]):
            if time.monotonic() > until:
                raise UnreachableError(
                    f"{name}: OAR did not delete it within {self._patience:g} s"
                )
            time.sleep(0.1)
        return True

    def _run(self, *words: str, privileged: bool = False) -> str:
        """Run a command and return its output; raise the error that it means."""
        return run_program(
            words,
            self._environment,
            self.site.timeout,
            prefix=self.site.sudo if privileged else (),
            meanings=_MEANINGS,
        )


def _jobs_in(found: OarJob, jobs: Sequence[OarJob]) -> list[OarJob]:
    """Return the jobs of a reservation."""
    return [each for each in jobs if each.container == found.number]


def _booking(found: OarJob, jobs: Sequence[OarJob]) -> ClusterBooking:
    end = int(min(found.end, 2**53))
    mine = _jobs_in(found, jobs)
    job = mine[0].number if mine else None
    nodes = tuple(sorted(found.nodes))
    what = found.name, found.start, end, nodes, found.owner, job
    return ClusterBooking(*what, number=found.number)
