"""Booking on any cluster: plan, reserve, submit, check, release; several sites at once.

Booking is idempotent by name: repeating a call that was interrupted at any moment
completes it, and neither a second reservation nor a second job is made. After an
operation without an answer the name is looked up. If the cluster changes between
reading and reserving, the plan is made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from slotkern._kernels.request import Request
from slotkern.foundation.hostlists import fold
from slotkern.foundation.logger import log

from .planning import ClusterPlan, PlannedWindow, unknown_partition
from .protocol import (
    BookingConflictError,
    ClusterBooking,
    ClusterError,
    LiveCluster,
    NameTakenError,
    UnreachableError,
    check_name,
)
from .site import Site
from .snapshot import Snapshot

__all__ = ["SiteAccess", "book", "book_all", "check_booking"]

#: Attempts to plan and reserve before a conflict is raised.
TRIES = 5


class SiteAccess(NamedTuple):
    """A cluster, and the rules of its site."""

    cluster: LiveCluster
    site: Site


def book(
    access: SiteAccess,
    name: str,
    request: Request,
    *,
    user: str,
    criterion: str = "start",
    partition: str | None = None,
    command: Sequence[str] = (),
) -> ClusterBooking | None:
    """Find the best window of a request, reserve it, and submit its job.

    Parameters
    ----------
    access : SiteAccess
    name : str
        The name of the reservation and the job. If the reservation exists, only its
        missing job is submitted.
    request : Request
    user : str
        The user of the reservation.
    criterion : str
    partition : str, optional
        By default the best of those that the site allows.
    command : sequence of str
        The script of the job and its arguments; by default there is no job.

    Returns
    -------
    ClusterBooking or None
        None if no window exists.

    Raises
    ------
    ClusterError
        If the cluster refuses, or the name belongs to a booking of another size or
        user, or is shorter. Except for `UnreachableError`, nothing new is left on
        the cluster.
    """
    cluster = access.cluster
    check_name("name", name)
    check_name("user", user)
    last = ClusterError(f"{name}: not tried")
    for _ in range(TRIES):
        if (found := cluster.find(name)) is not None:
            snapshot = cluster.read()
            _check_same(found, ClusterPlan(snapshot, access.site, {}), request, user)
            return _with_job(access, found, snapshot, partition, command)
        plan = ClusterPlan.of_snapshot(cluster.read(), access.site)
        planned = plan.find(request, criterion, partition)
        if planned is None:
            return None
        try:
            made = _reserve(cluster, name, planned, user)
        except NameTakenError as error:  # somebody with the same name was faster
            last = error
            continue
        except BookingConflictError as error:
            log.info("%s: %s; planned again", name, error)
            last = error
            continue
        if not command:
            return made
        try:
            job = cluster.submit(made, planned.partition, planned.minutes, command)
        except UnreachableError:  # the job may exist: the same call completes it
            raise
        except BaseException:
            cluster.release(name, made.number)
            raise
        return replace(made, job=job)
    raise last


def _reserve(
    cluster: LiveCluster, name: str, planned: PlannedWindow, user: str
) -> ClusterBooking:
    """Reserve a window; after an operation without an answer, complete it.

    The second call makes no second reservation, and checks that nothing overlaps it.
    """
    what = name, planned.nodes, planned.start, planned.end, user
    try:
        return cluster.reserve(*what)
    except UnreachableError:
        if cluster.find(name) is None:
            raise
        return cluster.reserve(*what)


def _check_same(
    found: ClusterBooking, plan: ClusterPlan, request: Request, user: str
) -> None:
    """Raise NameTakenError if a booking is not one of the request and the user."""
    if found.user != user:
        raise NameTakenError(
            f"name {found.name!r} belongs to a booking of {found.user or 'no user'}, "
            f"not {user}; choose another name"
        )
    if len(found.nodes) != request.nodes:
        raise NameTakenError(
            f"name {found.name!r} belongs to a booking of {len(found.nodes)} nodes, "
            f"not {request.nodes}; choose another name, or release it first"
        )
    needed = plan.length(request, found.nodes)
    if found.end - found.start < needed:
        raise NameTakenError(
            f"name {found.name!r} belongs to a booking of {found.end - found.start} s, "
            f"but the request needs {needed:g} s on its nodes; choose another name, or "
            "release it first"
        )


def _with_job(
    access: SiteAccess,
    found: ClusterBooking,
    snapshot: Snapshot,
    partition: str | None,
    command: Sequence[str],
) -> ClusterBooking:
    """Submit the job of a reservation that has none yet."""
    if not command or found.job is not None:
        return found
    ids = set(snapshot.machine.ids(list(found.nodes)).tolist())
    names = [partition] if partition else access.site.partitions or snapshot.partitions
    for name in names:
        if name in snapshot.partitions and ids <= set(
            snapshot.partitions[name].nodes.tolist()
        ):
            minutes = (found.end - found.start - round(access.site.after)) // 60
            job = access.cluster.submit(found, name, minutes, command)
            return replace(found, job=job)
    if partition and partition not in snapshot.partitions:
        raise ValueError(unknown_partition(partition, snapshot))
    where = f"partition {partition}" if partition else "one partition of the site"
    raise NameTakenError(
        f"name {found.name!r} belongs to a booking on {fold(found.nodes)}, which are "
        f"not in {where}; choose another name"
    )


def book_all(
    sites: Mapping[str, SiteAccess], name: str, request: Request, *, user: str
) -> dict[str, ClusterBooking] | None:
    """Book the same request with one common start on several sites: all or none.

    Returns
    -------
    dict of site to ClusterBooking, or None
        None if there is no common start.

    Raises
    ------
    ClusterError
        If a site refuses; the reservations made by this call are released again.
    """
    check_name("name", name)
    check_name("user", user)
    last = BookingConflictError(f"{name}: not tried")
    for _ in range(TRIES):
        there = {site: access.cluster.find(name) for site, access in sites.items()}
        earlier = {site: each for site, each in there.items() if each is not None}
        for site, each in earlier.items():
            plan = ClusterPlan(sites[site].cluster.read(), sites[site].site, {})
            _check_same(each, plan, request, user)
            if each.job is not None:  # not of this function, which submits no jobs
                raise NameTakenError(
                    f"{site}: name {name!r} belongs to a booking with job {each.job}; "
                    "choose another name, or release it first"
                )
        if len(earlier) == len(sites) and len({b.start for b in earlier.values()}) == 1:
            return earlier
        if earlier:  # an earlier call was interrupted
            log.info("%s: incomplete on %s; planned again", name, ", ".join(earlier))
        _roll_back(sites, earlier, name)
        plans = {
            site: ClusterPlan.of_snapshot(access.cluster.read(), access.site)
            for site, access in sites.items()
        }
        planned = _common(plans, request)
        if planned is None:
            return None
        made: dict[str, ClusterBooking] = {}
        started = None
        try:
            for site, window in planned.items():
                started = site
                made[site] = _reserve(sites[site].cluster, name, window, user)
            return made
        except BookingConflictError as error:
            log.info("%s: %s: %s; planned again", name, started, error)
            last = error
            _roll_back(sites, made, name)
        except BaseException as error:
            if isinstance(error, UnreachableError) and started is not None:
                made.setdefault(started, ClusterBooking(name, 0, 0, ()))
            _roll_back(sites, made, name)
            raise
    raise last


def _roll_back(
    sites: Mapping[str, SiteAccess], made: Mapping[str, ClusterBooking], name: str
) -> None:
    """Release the reservations of a name on the sites; report those that remain."""
    for site, each in made.items():
        try:
            sites[site].cluster.release(name, each.number)
        except ClusterError as error:
            log.warning("%s: %s may still be reserved: %s", site, name, error)


def _common(
    plans: Mapping[str, ClusterPlan], request: Request
) -> dict[str, PlannedWindow] | None:
    """Return windows with the earliest common start.

    The time rises to the latest of the sites' earliest starts until all are equal.
    """
    at = max(plan.snapshot.now for plan in plans.values())
    while True:
        found: dict[str, PlannedWindow] = {}
        for site, plan in plans.items():
            clock = plan.snapshot.clock
            least = max(
                clock.time(request.earliest, "earliest"), at - plan.snapshot.now
            )
            planned = plan.find(request.replace(earliest=least), "start")
            if planned is None:
                return None
            found[site] = planned
        latest = max(each.start for each in found.values())
        if all(each.start == latest for each in found.values()):
            return found
        at = latest


def check_booking(
    access: SiteAccess, name: str
) -> tuple[ClusterBooking | None, list[str]]:
    """Return a booking and its problems: nodes that failed, and overlapping spans.

    Jobs of the booking's user are not a problem: they run in the reservation.
    """
    found = access.cluster.find(check_name("name", name))
    if found is None:
        return None, [f"there is no reservation {name}"]
    snapshot, problems = access.cluster.read(), []
    if found.end <= snapshot.now:
        problems.append("it is over")
    ids = set(snapshot.machine.ids(list(found.nodes)).tolist())
    for node, start, end, reason, owner in snapshot.busy_until(found.end).tolist():
        mine = reason in (f"reservation {name}", f"maintenance {name}") or (
            reason.startswith("job ") and owner == found.user
        )
        if node in ids and not mine and start < found.end and end > found.start:
            problems.append(f"{snapshot.machine.names[node]}: {reason}")
    return found, problems
