"""The commands of clusters against a real, private OAR."""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from private_oar import PrivateOar
from private_slurm import USER

import slotkern as sk
from slotkern.clusters import (
    AmbiguousNameError,
    BookingConflictError,
    OarCluster,
    SiteAccess,
    book,
    open_cluster,
)

#: Kills of the command; more with SLOTKERN_OAR_KILLS=30.
KILLS = int(os.environ.get("SLOTKERN_OAR_KILLS", "3"))
#: Random bookings; more with SLOTKERN_OAR_CASES=150.
CASES = int(os.environ.get("SLOTKERN_OAR_CASES", "10"))
#: Bookings of a race; more with SLOTKERN_OAR_RACE=24.
RACE = int(os.environ.get("SLOTKERN_OAR_RACE", "4"))
SITE = """system = "oar"
group = "cluster"
zone = "UTC"
lead = 900
apart = 0
timeout = 60
"""
JOB = ("--nodes", 4, "--walltime", "0:10:00")


@pytest.fixture
def site(oar_access: SiteAccess, tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/sh\nsleep 300\n")
    path.chmod(0o755)
    return path


def answer(*words: Any, code: int = 0) -> str:
    """Run a command of clusters; its messages must not mention another scheduler."""
    done = run("cluster", *words)
    text = f"{done.stdout}{done.stderr}"
    assert done.exit_code == code, text
    words_of_slurm = r"slurm|scontrol|sinfo|squeue|sbatch|scancel|sacct"
    assert not re.search(words_of_slurm, text, re.I), text
    return text


def test_commands(site: Path, script: Path, tmp_path: Path) -> None:
    page, given = tmp_path / "page.html", ("--site", site)
    assert re.search(r"batch +6 +none +6", answer("show", *given))
    text = answer("when", *JOB, *given, "--html", page)
    assert re.search(r"earliest: start .* partition batch   nodes a\[1-4\]", text)
    assert "<html" in page.read_text()
    first = answer("book", "--name", "run1", *JOB, *given)
    assert re.search(rf"run1: a\[1-4\], .*, user {USER}, reservation \d+\n", first)
    again = answer("book", "--name", "run1", *JOB, *given, "--script", script)
    assert again.startswith(first.strip())
    assert re.search(r", job \d+$", again.strip())
    assert "no problem" in answer("check", "--name", "run1", *given)
    assert "run1: a[1-4]" in answer("bookings", *given)
    page.unlink()
    watched = run("watch", page, *given, "--count", 1, "--every", 1)
    assert watched.exit_code == 0
    assert "<html" in page.read_text()
    assert answer("release", "--name", "run1", *given) == "run1: released\n"
    text = answer("release", "--name", "run1", *given, code=1)
    assert text == "run1: there is no such reservation\n"
    assert answer("bookings", *given, code=1) == "no reservations\n"


def test_refusals_are_in_words_of_oar(site: Path) -> None:
    given = ("--site", site)
    none = answer("when", "--nodes", 7, *JOB[2:], *given, code=1)
    assert "it fits with 6 nodes instead" in none
    answer("check", "--name", "run1", *given, code=1)
    for words in (
        ("when", *JOB, "--partition", "bath"),
        ("book", "--name", "run1", *JOB, "--partition", "bath"),
        ("book", "--name", "run 1", *JOB),
        ("book", "--name", "run1", *JOB, "--user", "nobody"),
        ("release", "--name", "run 1"),
    ):
        answer(*words, *given, code=2)
    assert answer("bookings", *given, code=1) == "no reservations\n"


def reserve_by_hand(oar: PrivateOar, start: int, seconds: int, *nodes: str) -> None:
    """Submit an advance reservation of one job, as another user of OAR would."""
    listed = ", ".join(f"'{node}'" for node in nodes)
    oar.run(
        *("oarsub", "-r", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(start))),
        *("-l", f"nodes={len(nodes)},walltime=0:0:{seconds - 1}", "-n", "by-hand"),
        *("-p", f"network_address in ({listed})", "sleep 1"),
    )


def test_bookings_are_accepted_exactly_when_free(
    oar_access: SiteAccess, oar: PrivateOar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among reservations by hand and bookings, and with a node that is dead."""
    monkeypatch.setenv("TZ", "UTC")  # for the dates of oarsub
    cluster, rng = oar_access.cluster, random.Random(5)
    base, answers = int(time.time()) + 7200, []
    reserve_by_hand(oar, base + 1800, 1800, "a1", "a2")
    reserve_by_hand(oar, base, 5000, "b1")
    oar.run("oarnodesetting", "-h", "b3", "-s", "Dead")
    try:
        for case in range(CASES):
            snapshot = cluster.read()
            node = rng.randrange(len(snapshot.machine))
            start = base + rng.randrange(0, 6000)
            end = start + rng.randrange(60, 3000)
            on = snapshot.busy[snapshot.busy["node"] == node]
            if case % 3 == 0 and len(on) and math.isfinite(on["end"][0]):
                start = int(on["end"][0]) - rng.randrange(2)  # at an end, or before it
                end = start + 60
            free = not ((on["start"] < end) & (on["end"] > start)).any()
            try:
                names = [str(snapshot.machine.names[node])]
                cluster.reserve(f"case{case}", names, start, end, USER)
            except BookingConflictError:
                assert not free, (names, start - base, end - base, on)
            else:
                assert free, (names, start - base, end - base, on)
            answers.append(free)
    finally:
        oar.run("oarnodesetting", "-h", "b3", "-s", "Alive")
    assert 0 < sum(answers) < CASES


def test_a_race_for_the_same_nodes(
    oar_access: SiteAccess,
    oar: PrivateOar,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bookers, some with equal names, and users of oarsub get different spans."""
    monkeypatch.setenv("TZ", "UTC")
    names = [f"race{k % (3 * RACE // 4)}" for k in range(RACE)]
    request = sk.Request(3, walltime="5m")

    def one(name: str) -> object:
        for _ in range(RACE):
            with contextlib.suppress(BookingConflictError):  # others were faster
                return book(oar_access, name, request, user=USER, command=[str(script)])
        return None

    def other(case: int) -> None:
        start = int(time.time()) + 900 + 200 * case
        with contextlib.suppress(RuntimeError):  # a booker was faster
            reserve_by_hand(oar, start, 150, "a1", "b1")

    with ThreadPoolExecutor(4) as threads:
        others = [threads.submit(other, case) for case in range(RACE // 2)]
        found = [*threads.map(one, names)]
        for each in others:
            each.result()
    assert None not in found
    made = oar_access.cluster.bookings()
    by_name = [each for each in made if each.name != "by-hand"]
    assert sorted(each.name for each in by_name) == sorted(set(names))
    assert None not in {each.job for each in by_name}
    for k, each in enumerate(made):
        for before in made[:k]:
            apart = each.start >= before.end or before.start >= each.end
            assert apart or not set(each.nodes) & set(before.nodes)


def test_the_scheduler_that_answers_is_used(
    oar_access: SiteAccess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scontrol = tmp_path / "scontrol"
    for name in ("scontrol", "sinfo"):
        path = tmp_path / name
        path.write_text(
            "#!/bin/sh\necho unable to contact the controller >&2\nexit 1\n"
        )
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = open_cluster()
    assert isinstance(found.cluster, OarCluster)
    assert (found.site.lead, found.site.apart) == (60, 60)
    assert "default" in answer("show")
    assert "default" in answer("show", "--oar")
    for path in tmp_path.iterdir():
        path.write_text("#!/bin/sh\n")
    done = run("cluster", "show")
    assert done.exit_code == 2
    assert "Slurm and OAR both answer here; choose one with --slurm" in done.stderr
    assert scontrol.exists()


def test_a_release_deletes_one_reservation(
    oar_access: SiteAccess, oar: PrivateOar, site: Path
) -> None:
    start, numbers = int(time.time()) + 7200, []
    for k in range(2):
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(start + k * 7200))
        oar.run(
            *("oarsub", "-r", date, "-t", "container", "-n", "same"),
            *("-l", "nodes=1,walltime=1:0:0", "sleep 3599"),
        )
    numbers = [each.number for each in oar_access.cluster.bookings()]
    assert len(numbers) == 2
    listed = ", ".join(f"{number} of {USER}" for number in numbers)
    with pytest.raises(AmbiguousNameError, match=f"2 reservations: {listed}; release"):
        oar_access.cluster.release("same")
    given = ("release", "--name", "same", "--site", site)
    assert "belongs to 2 reservations" in answer(*given, code=2)
    assert [each.number for each in oar_access.cluster.bookings()] == numbers
    assert answer(*given, "--number", numbers[1]) == "same: released\n"
    answer(*given, "--number", numbers[1], code=1)
    assert [each.number for each in oar_access.cluster.bookings()] == numbers[:1]
    answer(*given)
    assert oar_access.cluster.bookings() == []


def test_a_killed_booking_is_completed(
    oar_access: SiteAccess, oar: PrivateOar, site: Path, script: Path
) -> None:
    """Kill the command at random moments and repeat it: one reservation, one job."""
    rng = random.Random(4)
    for case in range(KILLS):
        name = f"kill{case}"
        words = [sys.executable, "-m", "slotkern", "cluster", "book", "--name", name]
        words += ["--nodes", "2", "--walltime", "5m", "--script", script]
        words += ["--site", site]
        started = subprocess.Popen(words, stdout=-3, stderr=-3)
        time.sleep(rng.uniform(0.3, 6.0))
        started.send_signal(signal.SIGKILL)
        started.wait()
        time.sleep(rng.uniform(0, 0.3))
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        time.sleep(1)  # for programs of the killed command that still run
        assert [b.name for b in oar_access.cluster.bookings()].count(name) == 1
        assert isinstance(oar_access.cluster, OarCluster)
        mine, jobs = oar_access.cluster._named(name)
        inner = [each for each in jobs if each.container == mine[0].number]
        assert len([each for each in inner if not each.has_ended]) == 1
        assert oar_access.cluster.release(name)


def test_reservations_of_one_user_and_name_that_are_not_marked_stay(
    oar_access: SiteAccess, oar: PrivateOar
) -> None:
    """A marked twin with a higher number is deleted; one made by hand is not."""
    made = book(oar_access, "run1", sk.Request(1, walltime="10m"), user=USER)
    assert made is not None
    date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(made.start + 7200))
    for mark in ("", " # booked by slotkern"):
        oar.run(
            *("oarsub", "-r", date, "-t", "container", "-n", "run1"),
            *("-l", "nodes=1,walltime=0:10:0", f"sleep 599{mark}"),
        )
    assert isinstance(oar_access.cluster, OarCluster)
    mine, _ = oar_access.cluster._named("run1")
    oar_access.cluster._delete_twins(mine)
    until = time.monotonic() + 30
    while len(left := oar_access.cluster._named("run1")[0]) > 2:
        assert time.monotonic() < until  # OAR deletes some time after oardel
        time.sleep(0.2)
    assert [each.number for each in left] == [each.number for each in mine[:2]]
    for each in left:
        oar_access.cluster.release("run1", each.number)
