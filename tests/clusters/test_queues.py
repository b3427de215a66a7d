"""Forecasts behind the queue of a cluster: in memory, on Slurm and on OAR."""

from __future__ import annotations

import json
import math
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import refused, run
from private_oar import PrivateOar
from private_slurm import PrivateSlurm

import slotkern as sk
from slotkern.clusters import (
    ClusterQueue,
    QueuedJob,
    RecordedCluster,
    Site,
    SiteAccess,
    forecast_start,
    read_slurm,
)
from slotkern.clusters.oar_queue import read_oar_queue
from slotkern.commands import cluster as commands

NOW = 1800000000
NODES = """PARTITION|AVAIL|TIMELIMIT|CPUS|STATE|NODELIST
batch*|up|7-00:00:00|4|idle|n[1-4]
fast|up|1-00:00:00|8|idle|f[1-2]
both|up|1-00:00:00|4|idle|n4
both|up|1-00:00:00|8|idle|f1
shut|down|1-00:00:00|4|idle|n4
"""
HEAD = "JOBID|STATE|NODELIST|START_TIME|END_TIME|USER\n"


def queue_of(
    *jobs: QueuedJob,
    running: tuple[tuple[int, str, int, float], ...] = (),
    held: int = 0,
) -> ClusterQueue:
    """Return a queue; `running` are number, hostlist, seconds of run, and rest."""
    text, mine = HEAD, []
    for number, names, elapsed, rest in running:
        end = "UNLIMITED" if rest == math.inf else f"{NOW + rest}"
        end = "" if end == "UNLIMITED" else end
        text += f"{number}|RUNNING|{names}|{NOW - elapsed}|{end}|anna\n"
        nodes = tuple(f"n{k}" for k in re.findall(r"[0-9]", names))
        length, start = elapsed + rest, float(NOW - elapsed)
        mine.append(
            QueuedJob(str(number), "anna", (), len(nodes), length, start, nodes)
        )
    snapshot = read_slurm(NODES, text, now=NOW, zone="UTC", complete=True)
    return ClusterQueue(snapshot, (*mine, *jobs), held)


def waiting(
    number: int, count: int, length: float, *partitions: str, user: str = "bert"
) -> QueuedJob:
    return QueuedJob(str(number), user, partitions, count, length, math.nan)


def promise(queue: ClusterQueue, nodes: int, walltime: str, **given: Any) -> float:
    request = sk.Request(nodes, walltime=walltime, where=given.pop("where", None))
    return forecast_start(queue, Site(), request, runs=5, **given).promise


def test_the_promise_is_by_requested_times_and_the_order_of_the_queue() -> None:
    queue = queue_of(
        waiting(8, 4, 3600.0, "batch"), running=((7, "n[1,2]", 600, 3000),)
    )
    assert promise(queue, 1, "30min") == 0  # before job 8
    assert promise(queue, 1, "2h") == 6600  # after it
    assert promise(queue, 3, "30min") == 6600
    assert promise(queue, 2, "2h", partition="fast") == 0
    assert promise(queue, 1, "2h", where="name == 'n4'") == 0  # job 8 needs 4 nodes


def test_jobs_of_partitions_that_share_nodes_count() -> None:
    jobs = waiting(8, 2, 500.0, "both"), waiting(9, 2, 100.0, "fast")
    queue = queue_of(*jobs)
    assert promise(queue, 2, "1h", partition="fast") == 600
    assert promise(queue, 2, "1h", partition="both") == 600
    assert promise(queue, 4, "1h", partition="batch") == 500  # not job 9
    assert promise(queue_of(waiting(8, 4, 50.0)), 4, "1h") == 50  # any partition


def test_a_node_that_jobs_share_is_held_until_the_last_one_ends() -> None:
    running = ((5, "n[1,2]", 60, 900), (6, "n1", 60, 300), (7, "n[1,3]", 60, 1200))
    queue = queue_of(running=running)
    assert promise(queue, 2, "1h") == 900  # n4 and n2
    assert promise(queue, 4, "1h") == 1200
    found = forecast_start(queue, Site(), sk.Request(4, walltime="1h"), runs=50)
    assert (found.running, found.waiting) == (2, 0)  # job 6 holds no node by itself
    assert found.band[0] < 1200


def test_a_job_that_is_late_or_has_no_end_is_busy_time() -> None:
    late = queue_of(running=((7, "n[1,2]", 600, -30),))
    assert promise(late, 4, "1h") == 60
    endless = queue_of(running=((7, "n[1,2]", 600, math.inf),))
    with pytest.raises(ValueError, match="asks for 3 nodes; 2 nodes have free time"):
        promise(endless, 3, "1h")


def test_jobs_that_do_not_compete_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "slotkern")
    jobs = waiting(8, 5, 60.0, "batch"), waiting(9, 1, math.inf, "batch")
    assert promise(queue_of(*jobs, held=3), 1, "1h") == 0
    assert [record.message for record in caplog.records] == [
        "waiting jobs that ask for more than the 4 nodes, left out: 1",
        "waiting jobs that have no time limit, left out: 1",
        "waiting jobs that wait for a user, a date or another job, left out: 3",
    ]


def test_partitions_of_a_forecast() -> None:
    with pytest.raises(ValueError, match=r"'bacth' is not one of .*did you mean 'batc"):
        promise(queue_of(), 1, "1h", partition="bacth")
    with pytest.raises(ValueError, match="'shut' is not one of those that are up"):
        promise(queue_of(), 1, "1h", partition="shut")


def test_a_random_queue_is_that_of_a_pool() -> None:
    """The forecast equals one from slots and a table that were made by hand."""
    rng = random.Random(7)
    for case in range(30):
        ends = sorted(rng.randrange(100, 5000) for _ in range(4))
        busy = rng.randrange(0, 4)
        running = tuple((k, f"n{k + 1}", 50, ends[k]) for k in range(busy))
        jobs = [
            waiting(
                k + 9, rng.randint(1, 4), float(rng.randrange(60, 4000)), user=f"{k}"
            )
            for k in range(rng.randrange(5))
        ]
        request = sk.Request(rng.randint(1, 4), walltime=1000)
        policy = rng.choice(("conservative", "easy", "fcfs"))
        given: Any = {"policy": policy, "runs": 20, "seed": case}
        found = forecast_start(
            queue_of(*jobs, running=running), Site(), request, **given
        )
        start = [float(ends[k]) if k < busy else 0.0 for k in range(4)]
        slots = sk.make_slots(
            node=range(4), start=start, end=7 * 86400.0, performance=1, price=0
        )
        table = {
            "nodes": [1] * busy + [job.width for job in jobs],
            "walltime": [50 + end for end in ends[:busy]] + [j.length for j in jobs],
            "start": [-50] * busy + [None] * len(jobs),
            "user": ["anna"] * busy + [job.user for job in jobs],
        }
        other = sk.forecast(slots, request, table, now=0, **given)
        assert np.array_equal(found.starts, other.starts)
        assert found.promise == other.promise


# --- the command


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    queue = queue_of(
        waiting(8, 4, 3600.0, "batch"), running=((7, "n[1,2]", 600, 3000),), held=1
    )
    there = RecordedCluster(queue.snapshot, queue.jobs, queue.held)
    access = SiteAccess(there, Site())
    monkeypatch.setattr(commands, "open_cluster", lambda *_: access)
    words = ("cluster", "when", "--nodes", 3, "--walltime", "2h")
    done = run(*words, "--queue")
    assert done.exit_code == 0, done.stderr
    assert re.search(r"promise +2027-01-15 09:50:00", done.stdout), done.stdout
    assert all(f"{share}%" in done.stdout for share in (10, 50, 90))
    assert "wait for a user, a date or another job, left out: 1" in done.stderr
    assert "Forecast(conservative, 300 runs" in done.stdout
    easy = run(*words, "--queue", "--policy", "easy", "--runs", 7)
    assert "Forecast(easy, 7 runs" in easy.stdout
    past = tmp_path / "past.swf"
    past.write_text("1 0 0 60 1 -1 -1 1 600 -1 1 1 1 1 1 1 -1 -1\n")
    short = run(*words, "--queue", "--history", past)
    assert short.exit_code == 0, short.stderr
    assert short.stdout != done.stdout
    past = Path(__file__).parent / "texts" / "24.11" / "sacct.txt"
    dated = run(*words, "--queue", "--history", past)
    assert dated.exit_code == 0, dated.stderr
    assert "read as UTC" not in dated.stderr  # but in the zone of the cluster
    refused(run(*words, "--policy", "easy"), "--policy easy is for --queue")
    refused(run(*words, "--queue", "--html", "x.html"), "--html x.html is not for")
    refused(run(*words, "--queue", "--budget", 3), "has budget, which a forecast does")


# --- schedulers


def test_the_queue_of_slurm(access: SiteAccess, slurm: PrivateSlurm) -> None:
    common = ("sbatch", "-o/dev/null", "--exclusive", "--wrap=sleep 600")
    slurm.run(*common, "-N4", "-t20", "-pbatch")
    until = time.monotonic() + 30
    while "RUNNING" not in slurm.run("squeue", "-h", "-o%T"):
        assert time.monotonic() < until
        time.sleep(0.2)
    slurm.run(*common, "-N6", "-t30", "-pbatch")
    slurm.run(*common, "-N1", "-t10", "-pfast,batch", "--hold")
    slurm.run(*common, "-N6", "-t10", "-pbatch", "--begin=now+1hour")
    try:
        while (queue := access.cluster.queue()).held < 2:
            assert time.monotonic() < until  # Slurm finds the reason some time later
            time.sleep(0.2)
        counts = {(job.width, job.length, bool(job.nodes)) for job in queue.jobs}
        assert counts == {(4, 1200.0, True), (6, 1800.0, False)}
        assert queue.held == 2
        found = forecast_start(queue, access.site, sk.Request(6, walltime="10m"))
        assert (found.running, found.waiting) == (1, 1)
        assert 2900 < found.promise <= 3000 + 60
        done = run("cluster", "when", "--nodes", 6, "--walltime", "10m", "--queue")
        assert done.exit_code == 0, done.stderr
        assert "wait for a user, a date or another job, left out: 2" in done.stderr
    finally:
        slurm.run("scancel", "--state=PENDING")
        slurm.run("scancel", "--state=RUNNING")


def test_the_queue_of_oar(
    oar_access: SiteAccess, oar: PrivateOar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reservation of one node in half an hour delays a job of all nodes."""
    monkeypatch.setenv("TZ", "UTC")  # for the date of oarsub
    start = int(time.time()) + 1800
    date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(start))
    made = [
        oar.run(
            *("oarsub", "-r", date, "-t", "container", "-n", "run1"),
            *("-l", "nodes=1,walltime=0:10:0", "-p", "network_address = 'a1'"),
            "sleep 599",
        )
    ]
    for words in (
        ("-l", "nodes=6,walltime=1:0:0", "-p", "cluster = 'batch'"),
        ("-l", "nodes=6,walltime=1:0:0", "-p", "cluster = 'batch'", "--hold"),
        ("-l", "nodes=9,walltime=0:30:0"),
    ):
        made.append(oar.run("oarsub", *words, "sleep 60"))
    try:
        queue = oar_access.cluster.queue()
        assert [(job.width, job.length, job.partitions) for job in queue.jobs] == [
            (6, 3601.0, ("batch",)),
            (9, 1801.0, ()),
        ]
        assert queue.held == 1
        request = sk.Request(6, walltime="1h")
        found = forecast_start(queue, oar_access.site, request, "batch")
        # After the reservation and the job of 6 nodes, not that of 9 nodes.
        assert queue.snapshot.now + found.promise == start + 601 + 3601
        assert (found.running, found.waiting) == (0, 1)
    finally:
        for number in re.findall(r"OAR_JOB_ID=([0-9]+)", "".join(made))[1:]:
            oar.run("oardel", number)


FORM = "-l \"{{type = 'default'}}/{}\" "


def oar_job(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "Job_Id": number,
        "state": "Waiting",
        "reservation": "None",
        "owner": "anna",
        "queue": "default",
        "wanted_resources": FORM.format("network_address=2,walltime=1:0:0"),
    } | fields


def test_requests_of_oar() -> None:
    nodes = {
        str(k): {"network_address": f"n{k // 2}", "state": "Alive", "rack": "x"}
        for k in range(8)
    }
    jobs = [
        oar_job(7, queue="besteffort"),
        oar_job(12, wanted_resources=FORM.format("resource_id=3,walltime=0:1:9")),
        oar_job(3, wanted_resources=FORM.format("network_address=ALL,walltime=9:0:0")),
        oar_job(4, dependencies=[3]),
        oar_job(5, dependencies=[99], properties="(rack='x') AND drain='NO'"),
        oar_job(6, state="Hold"),
        oar_job(8, types=["inner=3"]),
        oar_job(9, state="Running", startTime=NOW - 9, walltime=99, **_held("n1")),
    ]
    text = json.dumps({str(job["Job_Id"]): job for job in jobs})
    found = read_oar_queue(json.dumps(nodes), text, now=NOW, group="rack")
    assert [job[:1] + job[2:5] for job in found.jobs] == [
        ("3", (), 4, 32401.0),
        ("5", ("x",), 2, 3601.0),
        ("9", (), 1, 100.0),
        ("12", (), 2, 70.0),
        ("7", (), 2, 3601.0),
    ]
    assert found.held == 2
    bad = json.dumps({"1": oar_job(1, wanted_resources="-l x")})
    with pytest.raises(
        ValueError, match="job 1, wanted_resources: '-l x' has no wallt"
    ):
        read_oar_queue(json.dumps(nodes), bad, now=NOW, group="rack")


def _held(name: str) -> dict[str, Any]:
    return {"assigned_network_address": [name]}
