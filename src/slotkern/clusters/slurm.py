"""The Slurm that answers on this computer, as a `LiveCluster`.

This module alone contains Slurm's commands. Programs get lists of arguments, never a
shell; environment variables that change their output are removed; times are epoch
seconds. Reads use the formats of `read_slurm` with the separator U+001F, which no name
contains.

Slurm accepts a reservation that overlaps one with the flag MAINT, and any overlap with
later dates of a repeated one. `reserve` therefore reads all reservations again after it
made one, and deletes its own if it overlaps.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace

from slotkern.foundation.checks import quote
from slotkern.foundation.hostlists import fold
from slotkern.machine.slurm_values import Row, epoch_clock, table

from .programs import Meanings, run_program
from .protocol import (
    BookingConflictError,
    BookingDeniedError,
    ClusterBooking,
    ClusterError,
    LiveCluster,
    NameTakenError,
    UnreachableError,
    check_name,
    check_nodes,
    check_unnumbered,
)
from .queues import ClusterQueue, QueuedJob
from .reservations import Reservation, read_reservations
from .site import Site, system_zone
from .snapshot import Snapshot
from .texts import Sources, read_slurm

__all__ = ["SlurmCluster"]

_SEPARATOR = "\x1f"
_NODE_FIELDS = "%N|%T|%c|%m|%w|%b|%G|%P|%a|%l|%E".replace("|", _SEPARATOR)
_JOB_FIELDS = "%i|%T|%N|%S|%e|%u|%P|%Y".replace("|", _SEPARATOR)
_QUEUE_FIELDS = "%i|%T|%N|%S|%e|%u|%P|%D|%l|%v|%r".replace("|", _SEPARATOR)
#: Reasons for which a waiting job does not wait for nodes, in lower case.
_HELD = ("held", "hold", "dependency", "begintime", "user_env", "deadline")
_HOLDING = "R,CG,CF,S,ST,SO,SI,RS"
#: Variables that change what the commands print or do; two name the cluster.
_VARIABLES = ("SLURM", "SQUEUE", "SINFO", "SBATCH", "SCONTROL", "SALLOC", "SRUN")
_KEPT = frozenset(("SLURM_CONF", "SLURM_JWT"))
#: Parts of Slurm's messages, in lower case, and the error that they mean.
_MEANINGS: Meanings = (
    (
        BookingConflictError,
        (
            *("nodes are busy", "overlaps with another", "is not available"),
            *("invalid time specified", "node configuration is not available"),
        ),
    ),
    (
        BookingDeniedError,
        ("access/permission denied", "invalid user id", "user id is invalid"),
    ),
    (
        UnreachableError,
        ("unable to contact", "connection refused", "timed out", "socket error"),
    ),
)
_HINTS: dict[type[ClusterError], str] = {
    BookingDeniedError: " (the user is unknown, or you are not an operator of Slurm)"
}
#: Largest number of nodes of one reservation.
_MOST_NODES = 2**20
#: Seconds for which a reservation stays in use after its job was cancelled, at most.
_PATIENCE = 30.0


class SlurmCluster(LiveCluster):
    """The cluster of Slurm's commands.

    Parameters
    ----------
    site : Site
        Uses its ``conf``, ``zone``, ``timeout``, ``sudo``, ``pending``, ``horizon``.
    zone : str, optional
        The time zone of the cluster; by default that of the site, or of this computer.

    Raises
    ------
    ClusterError
        From every method, if a command fails.
    """

    def __init__(self, site: Site | None = None, zone: str | None = None) -> None:
        self.site = site or Site()
        self.zone = zone or self.site.zone or system_zone()
        environment = {
            key: value
            for key, value in os.environ.items()
            if key in _KEPT or not key.startswith(_VARIABLES)
        }
        if self.site.conf:
            environment["SLURM_CONF"] = self.site.conf
        self._job_environment = environment
        self._environment = environment | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}

    # --- reading

    def ping(self) -> None:
        """Raise ClusterError if Slurm does not answer."""
        self._run("sinfo", "-h", "-o", "%D")

    def read(self) -> Snapshot:
        """Return the state of the cluster.

        Raises
        ------
        BookingDeniedError
            If ``PrivateData`` hides jobs, nodes or reservations from this user, so that
            busy time would seem free.
        """
        self._check_sees_all()
        states = "PD," + _HOLDING if self.site.pending == "respect" else _HOLDING
        return self._snapshot(
            self._run("squeue", "-a", "-r", "-t", states, "-o", _JOB_FIELDS)
        )

    def queue(self) -> ClusterQueue:
        """Return the jobs by falling priority; those in a reservation do not wait."""
        self._check_sees_all()
        states = ("-t", "PD," + _HOLDING, "--sort=-p,i")
        text = self._run("squeue", "-a", "-r", *states, "-o", _QUEUE_FIELDS)
        rows, _ = table(text, "squeue", ("JOBID",), epoch_clock(self.zone))
        jobs, held, waiting = [], 0, set()
        for row in rows:
            if not row.text("STATE").startswith("PENDING"):
                jobs.append(_queued(row))
                continue
            waiting.add(row.line)
            if any(word in row.text("REASON").lower() for word in _HELD):
                held += 1
            elif not row.text("RESERVATION"):
                jobs.append(_queued(row))
        lines = enumerate(text.split("\n"), 1)
        text = "\n".join(line for number, line in lines if number not in waiting)
        return ClusterQueue(self._snapshot(text), tuple(jobs), held)

    def _snapshot(self, jobs: str) -> Snapshot:
        """Return the state of the cluster with the jobs of a text."""
        return read_slurm(
            self._run("sinfo", "-a", "-N", "-o", _NODE_FIELDS),
            jobs,
            self._reservation_text(),
            now=float(int(time.time())),
            zone=self.zone,
            horizon=self.site.horizon + 86400.0,
            sources=Sources("sinfo", "squeue", "scontrol show reservation"),
            complete=True,
        )

    def _check_sees_all(self) -> None:
        text = self._run("scontrol", "show", "config")
        match = re.search(r"^PrivateData\s*=\s*(\S*)", text, re.M)
        given = set(match[1].lower().split(",") if match else ())
        hidden = given & {"jobs", "nodes", "partitions", "reservations"}
        if hidden and os.geteuid() != 0:
            raise BookingDeniedError(
                f"PrivateData of Slurm hides {', '.join(sorted(hidden))} from this "
                "user, so that busy time may seem free; run this as an operator"
            )

    def _reservation_text(self) -> str:
        return self._run("scontrol", "-o", "-a", "show", "reservation")

    def _reservations(self) -> list[Reservation]:
        return read_reservations(
            self._reservation_text(),
            "scontrol show reservation",
            epoch_clock(self.zone),
            _MOST_NODES,
        )

    def find(self, name: str) -> ClusterBooking | None:
        """Return the reservation of a name, and its job, which may have ended."""
        check_name("name", name)
        for each in self._reservations():
            if each.name == name:
                jobs = self._jobs(name)
                return self._booking(each, jobs[0] if jobs else None)
        return None

    def bookings(self) -> list[ClusterBooking]:
        """Return all reservations, each with the job of its name."""
        found = self._reservations()
        if not found:
            return []
        text = self._run(
            "squeue", "-h", "-a", "-t", "all", "-o", f"%A{_SEPARATOR}%v{_SEPARATOR}%j"
        )
        jobs: dict[str, int] = {}
        for line in text.splitlines():
            number, _, names = line.partition(_SEPARATOR)
            reservation, _, name = names.partition(_SEPARATOR)
            if reservation == name and number.isdigit():
                jobs[name] = min(int(number), jobs.get(name, int(number)))
        return [self._booking(each, jobs.get(each.name)) for each in found]

    @staticmethod
    def _booking(found: Reservation, job: int | None) -> ClusterBooking:
        end = int(min(found.end, 2**53))
        return ClusterBooking(
            found.name, int(found.start), end, found.nodes, found.users, job
        )

    def _jobs(self, name: str) -> list[int]:
        """Return the numbers of the jobs of a booking, also of those that ended."""
        text = self._run(
            *("squeue", "-h", "-a", "-t", "all", "-n", name, "-R", name, "-o", "%A")
        )
        return sorted(int(word) for word in text.split() if word.isdigit())

    # --- changes

    def reserve(
        self, name: str, nodes: Sequence[str], start: int, end: int, user: str
    ) -> ClusterBooking:
        """Create a reservation, and delete it again if it overlaps another one."""
        check_name("name", name)
        check_name("user", user)
        check_nodes(nodes)
        words = [
            f"ReservationName={name}",
            f"StartTime=uts{int(start)}",
            f"EndTime=uts{int(end)}",
            f"Nodes={','.join(nodes)}",
            f"Users={user}",
        ]
        try:
            self._run("scontrol", "create", "reservation", *words, privileged=True)
        except ClusterError:  # Slurm may report the reservation itself as an overlap
            if self.find(name) is None:
                raise
        found = self.find(name)
        wanted = ClusterBooking(name, start, end, tuple(sorted(nodes)), user)
        if found is None or wanted != replace(
            found, nodes=tuple(sorted(found.nodes)), job=None
        ):
            raise NameTakenError(f"name {name!r} belongs to another reservation")
        self._refuse_overlap(found)
        return found

    def _refuse_overlap(self, mine: ClusterBooking) -> None:
        for each in self._reservations():
            common = set(each.nodes) & set(mine.nodes)
            if each.name == mine.name or not common:
                continue
            spans = each.spans(mine.start, mine.end + 1, self.zone)
            if any(start < mine.end and end > mine.start for start, end in spans):
                self.release(mine.name)
                raise BookingConflictError(
                    f"reservation {quote(each.name)} overlaps on {fold(sorted(common))}"
                )

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
        if jobs := self._jobs(name):
            return jobs[0]
        count = len(booking.nodes)
        words = [
            *(
                f"--reservation={name}",
                f"--job-name={name}",
                f"--nodes={count}-{count}",
            ),
            *(f"--nodelist={','.join(booking.nodes)}", f"--partition={partition}"),
            *("--exclusive", f"--time={int(minutes)}", "--no-requeue"),
        ]
        try:
            self._run("sbatch", "--parsable", *words, *command, is_job=True)
        except UnreachableError:
            if not self._jobs(name):
                raise
        jobs = self._jobs(name)
        if not jobs:
            raise ClusterError(
                f"{name}: the job was submitted, but is not in the queue"
            )
        for job in jobs[1:]:
            self._run("scancel", str(job))
        return jobs[0]

    def release(self, name: str, number: int | None = None) -> bool:
        """Cancel the jobs of a reservation and delete it; False if there is none."""
        check_unnumbered(name, number)
        if self.find(name) is None:
            return False
        until = time.monotonic() + _PATIENCE
        for job in self._jobs(name):
            self._run("scancel", str(job))
        while True:
            try:
                self._run(
                    *("scontrol", "delete", f"ReservationName={name}"), privileged=True
                )
            except ClusterError as error:
                text = str(error).lower()
                if self.find(name) is None:
                    return True
                if "in use" not in text and "busy" not in text:
                    raise
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
            else:
                return True

    # --- commands

    def _run(self, *words: str, privileged: bool = False, is_job: bool = False) -> str:
        """Run a command and return its output; raise the error that it means."""
        return run_program(
            words,
            self._job_environment if is_job else self._environment,
            self.site.timeout,
            prefix=self.site.sudo if privileged else (),
            meanings=_MEANINGS,
            hints=_HINTS,
            missing="; on a computer without Slurm, plan from pasted texts with "
            "slotkern free --sinfo",
        )


def _queued(row: Row) -> QueuedJob:
    """Return a job of `_QUEUE_FIELDS`."""
    is_waiting = row.text("STATE").startswith("PENDING")
    length = row.length("TIME_LIMIT")
    return QueuedJob(
        row.text("JOBID"),
        row.text("USER"),
        tuple(row.text("PARTITION").split(",")),
        max(row.whole("NODES"), 1),
        math.inf if math.isnan(length) else length,
        math.nan if is_waiting else row.time("START_TIME", epoch_clock(None)),
        () if is_waiting else tuple(row.hosts("NODELIST", _MOST_NODES)),
    )
