"""The commands and functions of clusters against a real, private Slurm."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import run
from private_slurm import SEARCH, USER, PrivateSlurm, missing_programs
from slurm_texts import RecordedSlurm

import slotkern as sk
from slotkern.clusters import (
    BookingConflictError,
    BookingDeniedError,
    ClusterBooking,
    ClusterPlan,
    NameTakenError,
    Site,
    SiteAccess,
    SlurmCluster,
    book,
    book_all,
    check_booking,
    read_slurm,
)

#: Cases of the random tests; more with SLOTKERN_SLURM_CASES=150.
CASES = int(os.environ.get("SLOTKERN_SLURM_CASES", "15"))
#: Bookings of a race; more with SLOTKERN_SLURM_RACE=24.
RACE = int(os.environ.get("SLOTKERN_SLURM_RACE", "8"))
MISSING = missing_programs()
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"
)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/sh\n#SBATCH --output=/dev/null\nsleep 300\n")
    path.chmod(0o755)
    return str(path)


def test_bookings_are_accepted_exactly_when_free(
    access: SiteAccess, slurm: PrivateSlurm
) -> None:
    cluster, rng = access.cluster, random.Random(5)
    now = int(time.time())
    slurm.run(
        *("sbatch", "-N2", "-n8", "-t20", "-o/dev/null"),
        *("--wrap=sleep 600", "--nodelist=a[1-2]"),
    )
    for name, start, nodes, flags in (
        ("upkeep", 1800, "a[3-4]", "MAINT"),
        ("course", 3600, "b1", "DAILY"),
    ):
        slurm.run(
            *("scontrol", "create", "reservation", f"ReservationName={name}"),
            *(f"StartTime=uts{now + start}", "Duration=30", f"Nodes={nodes}"),
            *(f"Users={USER}", f"Flags={flags}"),
        )
    time.sleep(2)
    answers = []
    for case in range(CASES):
        snapshot = cluster.read()
        node = rng.randrange(len(snapshot.machine))
        start = now + rng.randrange(30, 6000) + rng.choice((0, 0, 86400))
        end = start + rng.randrange(60, 3000)
        on = snapshot.busy[snapshot.busy["node"] == node]
        free = not ((on["start"] < end) & (on["end"] > start)).any()
        try:
            names = [str(snapshot.machine.names[node])]
            cluster.reserve(f"case{case}", names, start, end, USER)
        except BookingConflictError:
            assert not free, (names, start - now, end - now, on)
        else:
            assert free, (names, start - now, end - now, on)
        answers.append(free)
    assert 0 < sum(answers) < CASES
    slurm.run("scancel", "--state=RUNNING")


def test_commands(access: SiteAccess, script: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    job = ("--nodes", 4, "--walltime", "0:10:00")
    done = run("cluster", "when", *job, "--html", page)
    assert done.exit_code == 0, done.stderr
    assert re.search(
        r"earliest: start .* partition batch   nodes a\[1-4\]", done.stdout
    )
    assert "<html" in page.read_text()
    first = run("cluster", "book", "--name", "run1", *job)
    assert first.exit_code == 0, first.stderr
    again = run("cluster", "book", "--name", "run1", *job, "--script", script)
    assert again.stdout.startswith(first.stdout.strip())
    assert re.search(r", job \d+$", again.stdout.strip())
    assert run("cluster", "check", "--name", "run1").exit_code == 0
    assert "run1: a[1-4]" in run("cluster", "bookings").stdout
    refused = run("cluster", "book", "--name", "run1", "--nodes", 2, *job[2:])
    assert refused.exit_code == 2
    assert "belongs to a booking of 4 nodes" in refused.stderr
    assert run("cluster", "show").exit_code == 0
    assert run("cluster", "release", "--name", "run1").exit_code == 0
    assert run("cluster", "release", "--name", "run1").exit_code == 1
    none = run("cluster", "when", "--nodes", 7, *job[2:])
    assert none.exit_code == 1
    assert "it fits with 6 nodes instead" in none.stdout


@pytest.mark.parametrize(
    "name", ["", "x y", "x\nStartTime=1", "-x", "a,b", "$(id)", "é", "a" * 65, "a=b"]
)
def test_hostile_names_are_refused(access: SiteAccess, name: str) -> None:
    request = sk.Request(1, walltime="10m")
    for each in ({"name": name, "user": USER}, {"name": "good", "user": name}):
        with pytest.raises(ValueError, match="is not a letter and up to 63"):
            book(access, each["name"], request, user=each["user"])
    assert access.cluster.bookings() == []


def test_reservations_with_hostile_names_are_read_or_refused(
    access: SiteAccess, slurm: PrivateSlurm
) -> None:
    slurm.run(
        *("scontrol", "create", "reservation", "ReservationName=a StartTime=1 b"),
        *("StartTime=now+1hour", "Duration=10", "Nodes=a1", f"Users={USER}"),
    )
    found = [each.name for each in access.cluster.bookings()]
    assert found == ["a StartTime=1 b"]
    slurm.run("scontrol", "delete", "ReservationName=a StartTime=1 b")


def test_maintenance_created_later_is_reported(
    access: SiteAccess, slurm: PrivateSlurm
) -> None:
    made = book(access, "run2", sk.Request(1, walltime="10m"), user=USER)
    assert made is not None
    assert check_booking(access, "run2")[1] == []
    slurm.run(
        *("scontrol", "create", "reservation", "ReservationName=upkeep"),
        *(f"StartTime=uts{made.start}", "Duration=30", f"Nodes={made.nodes[0]}"),
        *(f"Users={USER}", "Flags=MAINT"),
    )
    problems = check_booking(access, "run2")[1]
    assert problems == [f"{made.nodes[0]}: maintenance upkeep"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root submits for other users")
def test_texts_and_json_of_a_busy_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """All formats, and the commands themselves, give the same free time.

    JSON of 22.05 is left out: it has no planned nodes.
    """
    monkeypatch.setenv("PATH", SEARCH)
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        slurm = RecordedSlurm(Path(folder))
        try:
            slurm.start()
            slurm.fill()
            texts = slurm.record()
            live = SlurmCluster(Site(conf=str(slurm.conf)), "UTC").read()
        finally:
            slurm.stop()
    jobs, reservations = texts["squeue-epoch.txt"], texts["reservations-epoch.txt"]
    nodes = "nodes.json" if "nodes.json" in texts else "sinfo.json"
    found = {
        name: read_slurm(texts[name], of, reservations, now=live.now, zone="UTC")
        for name, of in (
            ("sinfo-fields.txt", jobs),
            ("nodes.txt", jobs),
            (nodes, texts["squeue.json"]),
        )
    }
    slots = live.free_slots().slots
    assert set(slots["node"].tolist()) == {0, 1, 2, 3, 4, 5, 6, 8, 9, 10}
    names = sorted(slots.dtype.names)  # columns come in the order of the lines
    has_plans = "scheduled_nodes" in texts["squeue.json"]
    for name, snapshot in found.items():
        if name != nodes or has_plans:
            free = snapshot.free_slots().slots
            assert free[names].tolist() == slots[names].tolist(), name
            assert len(free.dtype.names) == len(names), name


def test_a_race_for_the_same_nodes(
    access: SiteAccess, slurm: PrivateSlurm, script: str
) -> None:
    """Bookers, some with equal names, other users and jobs get different spans."""
    names = [f"race{k % (3 * RACE // 4)}" for k in range(RACE)]
    request = sk.Request(4, walltime="5m")

    def one(name: str) -> object:
        for _ in range(RACE):
            with contextlib.suppress(BookingConflictError):  # others were faster
                return book(access, name, request, user=USER, command=[script])
        return None

    def other(case: int) -> None:
        start = int(time.time()) + 300 * case
        with contextlib.suppress(RuntimeError):  # a booker was faster
            slurm.run(
                *("scontrol", "create", "reservation", f"ReservationName=other{case}"),
                *(f"StartTime=uts{start}", "Duration=4", "Nodes=a[1-3]"),
                f"Users={USER}",
            )
        slurm.run("sbatch", "-o/dev/null", "-N1", "-t2", "--wrap=sleep 60")

    with ThreadPoolExecutor(4) as threads:
        others = [threads.submit(other, case) for case in range(RACE // 2)]
        found = [*threads.map(one, names)]
        for each in others:
            each.result()
    assert None not in found
    made = access.cluster.bookings()
    mine = [each for each in made if not each.name.startswith("other")]
    assert sorted(each.name for each in mine) == sorted(set(names))
    assert None not in {each.job for each in mine}
    for k, each in enumerate(made):
        for before in made[:k]:
            apart = each.start >= before.end or before.start >= each.end
            assert apart or not set(each.nodes) & set(before.nodes)
    slurm.run("scancel", "--state=PENDING")
    slurm.run("scancel", "--state=RUNNING")


def test_equal_names_of_different_sizes(access: SiteAccess) -> None:
    assert book(access, "size", sk.Request(1, walltime="5m"), user=USER)
    with pytest.raises(NameTakenError, match="of 1 nodes, not 2"):
        book(access, "size", sk.Request(2, walltime="5m"), user=USER)


def test_a_killed_booking_is_completed(access: SiteAccess, script: str) -> None:
    """Kill the command at random moments and repeat it: one reservation, one job."""
    rng = random.Random(3)
    for case in range(max(3, CASES // 4)):
        name = f"kill{case}"
        words = [sys.executable, "-m", "slotkern", "cluster", "book", "--name", name]
        words += ["--nodes", "2", "--walltime", "5m", "--script", script]
        started = subprocess.Popen(words, stdout=-3, stderr=-3)
        time.sleep(rng.uniform(0.4, 2.0))
        started.send_signal(signal.SIGKILL)
        started.wait()
        time.sleep(rng.uniform(0, 0.3))
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert [b.name for b in access.cluster.bookings()].count(name) == 1
        assert isinstance(access.cluster, SlurmCluster)
        jobs = access.cluster._run(
            "squeue", "-h", "-t", "PD,R,CF", "-n", name, "-o", "%A"
        )
        assert len(jobs.split()) == 1
        access.cluster.release(name)


def test_two_sites_at_once(
    access: SiteAccess,
    slurm: PrivateSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both are booked with one start; a conflict at the second frees the first.

    Only an operator may plan on the second one, which hides jobs from other users.
    """
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        second = PrivateSlurm(Path(folder), more="PrivateData=usage,jobs\n")
        try:
            second.start()
            files = []
            for name, private in (("north", slurm), ("south", second)):
                path = tmp_path / f"{name}.toml"
                path.write_text(f'conf = "{private.conf}"\nlead = 5\n')
                files += ["--site", path]
            words = ("cluster", "book", "--name", "pair", "--nodes", 3)
            words += ("--walltime", "10m", *files)
            done = run(*words)
            assert done.exit_code == 0, done.stderr
            times = set(re.findall(r", (\S+ \S+) to ", done.stdout))
            assert len(times) == 1
            assert done.stdout.count("pair: a[1-3]") == 2
            assert run(*words).stdout == done.stdout
            second.run("scontrol", "delete", "ReservationName=pair")
            access.cluster.release("pair")
            second.run(
                *("scontrol", "create", "reservation", "ReservationName=closed"),
                *("StartTime=now", "Duration=30-0", "Nodes=ALL", f"Users={USER}"),
            )
            assert run(*words).exit_code == 1  # no time is left at the second
            second.run("scontrol", "delete", "ReservationName=closed")
            slow = SiteAccess(BusySlurm(Site(conf=str(second.conf))), Site(lead=5))
            with pytest.raises(BookingConflictError):
                book_all(
                    {"a": access, "b": slow},
                    "pair",
                    sk.Request(2, walltime="5m"),
                    user=USER,
                )
            assert access.cluster.bookings() == []
            with monkeypatch.context() as patch:
                patch.setattr(os, "geteuid", lambda: 1000)
                access.cluster.read()
                with pytest.raises(BookingDeniedError, match=r"PrivateData .* hides j"):
                    slow.cluster.read()
        finally:
            second.stop()


class BusySlurm(SlurmCluster):
    """A Slurm on which somebody else is always faster."""

    def reserve(self, name: str, *span: object) -> ClusterBooking:
        """Raise the conflict of a second reservation on the same nodes."""
        super().reserve(f"{name}-other", *span)  # type: ignore[arg-type]
        try:
            return super().reserve(name, *span)  # type: ignore[arg-type]
        finally:
            self.release(f"{name}-other")


def test_the_plan_has_the_partitions_that_are_up(access: SiteAccess) -> None:
    assert isinstance(access.cluster, SlurmCluster)
    plan = ClusterPlan.of_snapshot(access.cluster.read(), access.site)
    assert list(plan.free) == ["batch", "fast"]
