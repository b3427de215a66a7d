"""The contract of `LiveCluster` for each adapter: in memory, real Slurm, real OAR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from private_slurm import USER

import slotkern as sk
from slotkern.clusters import (
    BookingConflictError,
    ClusterError,
    ClusterPlan,
    LiveCluster,
    NameTakenError,
    RecordedCluster,
    Site,
    SiteAccess,
    book,
    book_all,
    check_booking,
    read_slurm,
)

NODES = """PARTITION|AVAIL|TIMELIMIT|CPUS|STATE|NODELIST
batch*|up|7-00:00:00|4|idle|a[1-6]
fast|up|1-00:00:00|4|idle|b[1-3]
"""


@pytest.fixture(params=["recorded", "slurm", "oar"])
def there(request: pytest.FixtureRequest) -> SiteAccess:
    live = {"slurm": "access", "oar": "oar_access"}
    if request.param in live:
        found: SiteAccess = request.getfixturevalue(live[request.param])
        return found
    cluster = RecordedCluster(read_slurm(NODES, now=1800000000, zone="UTC"))
    return SiteAccess(cluster, Site(lead=5, before=2))


@pytest.fixture
def script(tmp_path: Path) -> Sequence[str]:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/sh\n#SBATCH --output=/dev/null\nsleep 300\n")
    path.chmod(0o755)
    return [str(path)]


def spans(cluster: LiveCluster) -> list[tuple[str, float, float, str]]:
    """Return the spans of reservations with the names of their nodes."""
    snapshot = cluster.read()
    return sorted(
        (str(snapshot.machine.names[node]), start, end, reason)
        for node, start, end, reason, _ in snapshot.busy.tolist()
        if reason.startswith("reservation ")
    )


def test_a_reservation_is_found_listed_and_busy(there: SiteAccess) -> None:
    cluster = there.cluster
    start = int(cluster.read().now) + 3600
    made = cluster.reserve("run1", ["a1", "a2"], start, start + 600, USER)
    assert (made.name, made.start, made.end) == ("run1", start, start + 600)
    assert (set(made.nodes), made.user, made.job) == ({"a1", "a2"}, USER, None)
    assert cluster.find("run1") == made
    assert cluster.bookings() == [made]
    assert spans(cluster) == [
        (node, start, start + 600, "reservation run1") for node in ("a1", "a2")
    ]


def test_a_name_has_one_reservation(there: SiteAccess) -> None:
    cluster = there.cluster
    start = int(cluster.read().now) + 3600
    made = cluster.reserve("run1", ["a1"], start, start + 600, USER)
    assert cluster.reserve("run1", ["a1"], start, start + 600, USER) == made
    for nodes, end in ((["a2"], 600), (["a1"], 1200)):
        with pytest.raises(NameTakenError):
            cluster.reserve("run1", nodes, start, start + end, USER)
    assert cluster.bookings() == [made]


def test_a_conflict_changes_nothing(there: SiteAccess) -> None:
    cluster = there.cluster
    start = int(cluster.read().now) + 3600
    made = cluster.reserve("run1", ["a1", "a2"], start, start + 600, USER)
    with pytest.raises(BookingConflictError):
        cluster.reserve("run2", ["a2", "a3"], start + 599, start + 900, USER)
    assert cluster.bookings() == [made]
    after = cluster.reserve("run2", ["a2", "a3"], start + 600, start + 900, USER)
    assert sorted(each.name for each in cluster.bookings()) == ["run1", "run2"]
    assert cluster.find("run2") == after


def test_a_release_frees_the_nodes_once(there: SiteAccess) -> None:
    cluster = there.cluster
    start = int(cluster.read().now) + 3600
    cluster.reserve("run1", ["b1"], start, start + 600, USER)
    assert cluster.release("run1")
    assert not cluster.release("run1")
    assert cluster.find("run1") is None
    assert spans(cluster) == []
    cluster.reserve("run2", ["b1"], start, start + 600, USER)


def test_a_reservation_has_one_job(there: SiteAccess, script: Sequence[str]) -> None:
    cluster = there.cluster
    start = int(cluster.read().now) + 3600
    made = cluster.reserve("run1", ["a1", "a2"], start, start + 600, USER)
    job = cluster.submit(made, "batch", 5, script)
    assert cluster.submit(made, "batch", 5, script) == job
    assert cluster.find("run1") == replace(made, job=job)
    missing = replace(made, name="run2")
    with pytest.raises(ClusterError):
        cluster.submit(missing, "batch", 5, script)


@pytest.mark.parametrize("name", ["", "x y", "x\nStartTime=1", "a,b", "é", "a" * 65])
def test_a_hostile_name_is_refused(there: SiteAccess, name: str) -> None:
    start = int(there.cluster.read().now) + 3600
    for words in ((name, USER), ("run1", name)):
        with pytest.raises(ValueError, match=r"name|user"):
            there.cluster.reserve(words[0], ["a1"], start, start + 60, words[1])
    assert there.cluster.bookings() == []


def test_plan_book_check_and_release(there: SiteAccess, script: Sequence[str]) -> None:
    request = sk.Request(4, walltime="10m")
    plan = ClusterPlan.of_snapshot(there.cluster.read(), there.site)
    planned = plan.find(request, "start", None)
    assert planned is not None
    assert planned.partition == "batch"
    made = book(there, "run1", request, user=USER, command=script)
    assert made is not None
    assert made.job is not None
    assert book(there, "run1", request, user=USER, command=script) == made
    found, problems = check_booking(there, "run1")
    assert (found, problems) == (made, [])
    assert check_booking(there, "run2") == (None, ["there is no reservation run2"])
    assert book(there, "run3", sk.Request(7, walltime="10m"), user=USER) is None
    assert there.cluster.release("run1")


def test_two_sites_with_another_adapter(there: SiteAccess) -> None:
    other = RecordedCluster(
        replace(read_slurm(NODES, now=there.cluster.read().now, zone="UTC"))
    )
    sites = {"here": there, "there": SiteAccess(other, Site(lead=60))}
    made = book_all(sites, "pair", sk.Request(2, walltime="10m"), user=USER)
    assert made is not None
    assert made["here"].start == made["there"].start
    nothing = book_all(sites, "none", sk.Request(7, walltime="10m"), user=USER)
    assert nothing is None
    assert there.cluster.find("none") is None
    assert other.find("none") is None
