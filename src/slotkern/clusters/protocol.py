"""The protocol of clusters: the five operations that a scheduler must offer.

Planning, booking, checking and releasing (`planning`, `booking`) use these operations
alone, so they work for every scheduler that has an adapter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from slotkern.foundation.checks import quote

from .queues import ClusterQueue
from .snapshot import Snapshot

__all__ = [
    "AmbiguousNameError",
    "BookingConflictError",
    "BookingDeniedError",
    "ClusterBooking",
    "ClusterError",
    "LiveCluster",
    "NameTakenError",
    "UnreachableError",
    "check_name",
    "check_nodes",
    "check_unnumbered",
]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")


class ClusterError(ValueError):
    """An operation that a cluster refused or could not perform."""


class BookingConflictError(ClusterError):
    """The time is not free any more: plan again."""


class BookingDeniedError(ClusterError):
    """The cluster does not let this user do that."""


class NameTakenError(ClusterError):
    """The name belongs to a booking of other nodes or another time."""


class AmbiguousNameError(ClusterError):
    """Several reservations have the name: give the number of one."""


class UnreachableError(ClusterError):
    """There was no answer in time, so it is unknown if the operation happened."""


@dataclass(frozen=True)
class ClusterBooking:
    """A reservation on a cluster: times in seconds since 1970, and its job if any.

    `number` identifies it where the scheduler allows several reservations of one name.
    """

    name: str
    start: int
    end: int
    nodes: tuple[str, ...]
    user: str = ""
    job: int | None = None
    number: int | None = field(default=None, compare=False)


class LiveCluster(Protocol):
    """A cluster whose scheduler answers now.

    A name identifies a booking: an adapter never makes two bookings of one name, nor
    two jobs of one booking. An operation raises `UnreachableError` if its outcome is
    unknown; the caller then looks the name up.

    Attributes
    ----------
    zone : str or None
        The time zone of its dates.
    """

    zone: str | None

    def read(self) -> Snapshot:
        """Return all nodes, and all busy spans in the scheduler's plan."""
        ...

    def reserve(
        self, name: str, nodes: Sequence[str], start: int, end: int, user: str
    ) -> ClusterBooking:
        """Reserve nodes for a user.

        Raises
        ------
        BookingConflictError, BookingDeniedError, NameTakenError, UnreachableError
        """
        ...

    def find(self, name: str) -> ClusterBooking | None:
        """Return the booking of a name; None if there is none."""
        ...

    def bookings(self) -> list[ClusterBooking]:
        """Return all reservations of the cluster."""
        ...

    def queue(self) -> ClusterQueue:
        """Return all jobs that run or wait, in the order of the queue.

        Its snapshot has no spans of waiting jobs, except reservations.
        """
        ...

    def submit(
        self,
        booking: ClusterBooking,
        partition: str,
        minutes: int,
        command: Sequence[str],
    ) -> int:
        """Submit the job of a booking once, and return its number.

        `command` is a script and its arguments.
        """
        ...

    def release(self, name: str, number: int | None = None) -> bool:
        """Cancel the job and delete the reservation; False if there was none.

        Raises
        ------
        AmbiguousNameError
            If several reservations have the name and no number is given.
        """
        ...


def check_name(what: str, name: str) -> str:
    """Return a valid name of a booking or user.

    Raises
    ------
    ValueError
        For anything but a letter and up to 63 letters, digits and ``_ . -``.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{what} {quote(name)} is not a letter and up to 63 letters, digits, "
            "'_', '.' and '-'"
        )
    return name


def check_nodes(nodes: Sequence[str]) -> None:
    """Raise ValueError for a name of a node with signs that a command could misread."""
    for node in nodes:
        if not _NODE.fullmatch(node):
            raise ValueError(f"{quote(node)} is not a name of a node")


def check_unnumbered(name: str, number: int | None) -> None:
    """Raise ValueError for a number of a reservation where names are unique."""
    if number is not None:
        raise ValueError(
            f"number {number}: reservation {name} has no number here, because names "
            "are unique; leave the number out"
        )
