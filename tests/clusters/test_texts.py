"""Texts of Slurm's commands as snapshots: formats, unknown values, malformed text.

The files in the folders of ``texts`` were printed by Slurm 22.05.8 and 24.11.7 on one
cluster of 12 nodes, by ``tests/support/slurm_texts.py``.
"""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pytest
from command_line import refused, run
from recorded_texts import FIELDS, PLAIN, RECORDED, WEEK, Recorded, spans

import slotkern as sk
from slotkern.clusters import read_slurm

# --- formats


def test_chosen_fields_with_epoch_seconds(recorded: Recorded) -> None:
    snapshot = recorded.read(*FIELDS)
    assert list(snapshot.machine.names) == [f"a0{k}" for k in range(1, 9)] + [
        f"b0{k}" for k in range(1, 5)
    ]
    columns = snapshot.machine.columns
    assert columns["cpus"].tolist() == [4] * 8 + [8] * 4
    assert columns["feature_avx512"].tolist() == [False] * 8 + [True] * 4
    assert columns["partition_fast"].tolist() == [False] * 8 + [True] * 4
    limits = {name: each.limit for name, each in snapshot.partitions.items()}
    assert limits == {"batch": 604800, "fast": 86400, "all": 604800}
    free, after = spans(snapshot), recorded.after
    upkeep = after(86400, 90000)
    assert free["b03"] == [(0, WEEK)]
    assert free["a01"] == [(*after(1800), upkeep[0]), (upkeep[1], WEEK)]
    # Partly used, then planned for the job that waits, then upkeep.
    assert free["a03"] == [
        after(600, 1200),
        (*after(4800), upkeep[0]),
        (upkeep[1], WEEK),
    ]
    # A job of an array, then the course.
    assert free["a05"] == [after(1200, 7200), (*after(10800), WEEK)]
    assert free["a07"] == [(*after(3600), WEEK)]  # in maintenance now
    assert free["b01"] == [(*after(86400), WEEK)]
    assert "a08" not in free  # down
    assert "b04" not in free  # drained
    reasons = dict(zip(snapshot.busy["node"], snapshot.busy["reason"], strict=True))
    assert reasons[7] == "down: bad disk, State=IDLE x"
    assert reasons[11] == "drained: memory test"


def test_records_of_nodes_equal_fields(recorded: Recorded) -> None:
    records = recorded.read("nodes.txt", *FIELDS[1:])
    fields = recorded.read(*FIELDS)
    assert spans(records) == spans(fields)
    for name, column in records.machine.columns.items():
        assert column.tolist() == fields.machine.columns[name].tolist()


def test_planned_nodes_are_marked_since_version_23() -> None:
    """In 24.11 the state of a node for which Slurm plans a job ends with a hyphen."""
    for each, state in zip(RECORDED, ("mixed", "mixed-"), strict=True):
        assert f"\na03|{state}|" in each.text("sinfo-fields.txt")
        assert f"State={state.upper().replace('-', '+PLANNED')} " in each.text(
            "nodes.txt"
        )


def test_plain_output_and_local_dates(recorded: Recorded) -> None:
    zoned = recorded.read(*PLAIN, now=None)
    origin = dt.datetime.fromtimestamp(recorded.now, dt.UTC)
    assert zoned.clock.origin == origin  # the printed date
    free, after = spans(zoned), recorded.after
    assert free["a03"] == [after(600, 86400), (*after(90000), WEEK)]
    assert free["b01"] == [(*after(86400), WEEK)]
    short = recorded.read("sinfo.txt", "squeue.txt", "reservations.txt")
    assert set(spans(short)) == {"a07", "b03"}  # jobs of this format have no ends
    before = recorded.now - 7200
    berlin = recorded.read(
        *FIELDS[:2], "reservations.txt", zone="Europe/Berlin", now=before
    )
    assert spans(berlin)["a05"][1] == (*after(14400), WEEK)


def test_names_of_jobs_may_contain_blanks(recorded: Recorded) -> None:
    """A limit of a day is wider than its column, so later columns are not aligned."""
    plain = recorded.read(*PLAIN, now=None)
    for name in (" wide run", "  a b c d", "         "):
        jobs = recorded.text("squeue-long.txt").replace("     wide", name)
        assert jobs != recorded.text("squeue-long.txt")
        given = recorded.text(PLAIN[0]), jobs, recorded.text(PLAIN[2])
        assert spans(read_slurm(*given, zone="UTC")) == spans(plain)


def test_nodes_in_use_without_jobs_are_busy(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "slotkern")
    assert set(spans(recorded.read("sinfo.txt"))) == {"b03"}
    assert "9 of 12 nodes are in use or closed" in caplog.text


def test_doubts_are_busy() -> None:
    nodes = "NODELIST|STATE\nn1|idle\nn2|idle~\nn3|idle*\nn4|weird\nn5|drng\n"
    assert set(spans(read_slurm(nodes, now=0))) == {"n1", "n2"}
    jobs = "JOBID|STATE|NODELIST|END_TIME\n1|RUNNING|n1|N/A\n2|COMPLETING|n2|5\n"
    free = spans(read_slurm(nodes, jobs, now=1000))
    assert free == {"n2": [(60, 604800)]}  # past its end, so for a minute yet
    jobs = "JOBID|ST|NODELIST|TIME_LEFT\n1|R|n1|UNLIMITED\n2|R|n2|1:00\n3|CA|n2|\n"
    assert spans(read_slurm(nodes, jobs, now=1000)) == {"n2": [(60, 604800)]}


@pytest.mark.parametrize(
    ("node", "job"),
    [
        ("n1 alloc$", "RUNNING"),  # maintenance begins before the job ends
        ("n1 allocated+reserved", "RUNNING"),  # in a reservation that is not given
        ("n1 alloc", "SUSPENDED"),  # its clock does not run
    ],
)
def test_ends_of_jobs_that_do_not_free_their_nodes(node: str, job: str) -> None:
    jobs = f"JOBID|STATE|NODELIST|END_TIME\n1|{job}|n1|1100\n"
    nodes = f"NODELIST STATE\n{node}\nn2 idle\n"
    assert set(spans(read_slurm(nodes, jobs, now=1000))) == {"n2"}


def test_planned_jobs() -> None:
    nodes = "NODELIST STATE\nn[1-2] idle\n"
    jobs = "JOBID|STATE|NODELIST|START_TIME|END_TIME|SCHEDNODES\n"
    jobs += "7|PENDING||1100|1200|n1\n8|PENDING||N/A|N/A|(null)\n"
    assert spans(read_slurm(nodes, jobs, now=1000))["n1"] == [(0, 100), (200, 604800)]


def test_repeated_reservations_keep_their_local_time() -> None:
    zone = "Europe/Berlin"
    start = int(sk.Clock("1970-01-01T00:00Z", zone=zone).time("2026-10-24 10:00"))
    block = (
        "ReservationName=a b StartTime={} EndTime={} Duration=01:00:00 Nodes=n1 "
        "Features=(null) Flags={},SPEC_NODES TRES=cpu=1 Users=anna Groups=(null)"
    )
    nodes = "NODELIST STATE\nn1 idle\n"
    for flag, starts in (
        ("DAILY", ["24 10", "25 10", "26 10", "27 10", "28 10", "29 10", "30 10"]),
        ("WEEKDAY", ["24 10", "26 10", "27 10", "28 10", "29 10", "30 10"]),
        ("WEEKEND", ["24 10", "25 10"]),
        ("WEEKLY", ["24 10"]),
        ("MAINT", ["24 10"]),
    ):
        given = block.format(start, start + 3600, flag)
        found = read_slurm(
            nodes, None, given, now=start - 3600, zone=zone, horizon=6.5 * 86400
        )
        clock = found.clock
        times = [clock.datetime(t - found.now) for t in found.busy["start"].tolist()]
        assert [f"{time:%d %H}" for time in times if time] == starts
    with pytest.raises(ValueError, match=r"'a b' is repeated \(DAILY\)"):
        read_slurm(nodes, None, block.format(start, start + 9, "DAILY"), now=start)
    floating = block.format(start, start + 9, "TIME_FLOAT")
    assert spans(read_slurm(nodes, None, floating, now=start)) == {}
    assert spans(read_slurm(nodes, None, "No reservations in the system\n", now=0))


def test_repeated_reservations_after_the_horizon() -> None:
    """Days after the first week are as busy as those within."""
    block = (
        "ReservationName=r StartTime=1800003600 EndTime=1800007200 Duration=01:00:00 "
        "Nodes=n1 NodeCnt=1 Flags=DAILY Users=anna"
    )
    nodes = "NODELIST STATE\nn1 idle\n"
    snapshot = read_slurm(nodes, None, block, now=1800000000, zone="UTC")
    free = spans(snapshot, end=30 * 86400)["n1"]
    assert [start for start, _ in free[1:]] == [7200 + 86400 * k for k in range(30)]
    assert spans(snapshot, start=86400 * 20)["n1"][0] == (86400 * 20, 86400 * 20 + 3600)
    later = snapshot.now + 30 * 86400
    early = read_slurm(nodes, None, block, now=1800000000, zone="UTC", horizon=60)
    for each in (snapshot, early):
        assert each.busy_until(later)["start"].tolist() == [
            1800003600 + 86400 * k for k in range(30)
        ]
    hourly = read_slurm(
        nodes, None, block.replace("DAILY", "HOURLY"), now=0, zone="UTC"
    )
    with pytest.raises(ValueError, match="'r' is repeated more than 10,000 times"):
        hourly.free_slots(end=2_000_000_000)


def test_columns_of_newer_versions() -> None:
    """Fields that versions after 22.05 print, by their release notes."""
    node = (
        "NodeName=g1 CPUTot=64 AvailableFeatures=x ActiveFeatures=x "
        "Gres=gpu:h100:4(S:0-1),shard:8 RealMemory=5 "
        "State=MIXED+CLOUD+DYNAMIC_NORM+PLANNED+POWERED_DOWN Comment=a Extra=b "
        "Partitions=p,q Reason=why State=DOWN"
    )
    machine = read_slurm(node, now=0).machine
    assert machine.columns["gpus"].tolist() == [4]
    assert {"partition_p", "partition_q"} <= set(machine.columns)


# --- malformed text


NODES = "NODELIST|STATE|CPUS\nn1|idle|4\n"
JOBS = "JOBID|STATE|NODELIST|START_TIME|END_TIME\n"
RESERVATION = (
    "ReservationName=r StartTime=1 EndTime=2 Duration=1 Nodes=n1 X=1 Flags=A Users=a"
)
IMITATED = RESERVATION.replace("=r", "=r StartTime=0 EndTime=9 Duration=1 Nodes=n2")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("", None, None), "s, line 1: '' is no line of headings with one of NODELIST"),
        (("NODELIST|STATE\n", None, None), "nodes: there is no node"),
        (("NODELIST\nn1\n", None, None), "s, line 2: there is no STATE"),
        (("NODELIST|STATE\nn1\n", None, None), "s, line 2: 1 fields, but 2 headings"),
        (("NODELIST|STATE\nn1|\n", None, None), "s, line 2, STATE: '' is no state"),
        (("NODELIST|STATE\nn[1-|up\n", None, None), "s, line 2, NODELIST: hostlist"),
        ((NODES.replace("4", "x"), None, None), "s, line 2, CPUS: 'x' is no whole"),
        (("NodeName=a State=IDLE\nb", None, None), "s, line 2: 'b' does not begin"),
        (("A|A\nn1|idle", None, None), "s, line 1: 'A|A' is no line of headings"),
        (("NODELIST|STATE|STATE\n", None, None), "the heading 'STATE' is twice"),
        ((NODES, "x\n", None), "q, line 1: 'x' is no line of headings"),
        ((NODES, "JOBID|STATE\n1|R\n", None), "q, line 2: there is no NODELIST"),
        (
            (NODES, f"{JOBS}1|R|n1|0|2026-10-25T02:30:00\n", None),
            "q, line 2, END_TIME: 2026-10-25T02:30:00 has no time zone",
        ),
        ((NODES, f"{JOBS}1|R|n1|0|soon\n", None), "q, line 2, END_TIME: 'soon' is no"),
        (
            (NODES, f"{JOBS}1|R|n1|0|{10**12}\n", None),
            "q, line 2, END_TIME: '1000000000000' is no time before the year 10000",
        ),
        (
            (NODES, "JOBID|STATE|NODELIST|TIME_LEFT\n1|R|n1|-5\n", None),
            "q, line 2, TIME_LEFT: '-5' is no length such as 30:00",
        ),
        ((NODES, None, "what"), "r, line 1: 'what' is no output of `scontrol show"),
        ((NODES, None, "\n\nReservationName=x"), "r, line 3: 'ReservationName=x' is"),
        (
            (NODES, None, IMITATED),
            "r, line 1: 'ReservationName=r StartTime=0 EndTime=9 Duration=1",
        ),
        ((NODES, None, RESERVATION.replace("=2", "=0")), "r, line 1, EndTime: '0' is"),
        ((NODES, None, RESERVATION.replace("=1", "=x")), "r, line 1, StartTime: 'x'"),
    ],
)
def test_malformed_text_is_one_error(
    tmp_path: Path, texts: tuple[str | None, ...], message: str
) -> None:
    options: list[Any] = []
    for option, name, given in zip(
        ("--sinfo", "--squeue", "--reservations"), "sqr", texts, strict=True
    ):
        if given is not None:
            (tmp_path / name).write_text(given)
            options += [option, tmp_path / name]
    done = run("free", *options)
    assert done.exit_code == 2
    assert message.removeprefix("nodes") in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_free_options_that_contradict(tmp_path: Path) -> None:
    refused(run("free"), "MACHINE is needed, or --sinfo")
    file = RECORDED[0].path("sinfo.txt")
    refused(run("free", "--squeue", file), "--squeue", "is not possible without")
    refused(run("free", file, "--sinfo", file), "MACHINE", "not possible with --sinfo")
    refused(run("free", "--sinfo", tmp_path / "none"), "No such file")


def test_prices_of_pasted_texts(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(
        "Mon Nov 30 08:00:00 2026\nNODELIST STATE\nn[1-2] idle\nn3 down\n"
    )
    (tmp_path / "site.toml").write_text(
        'horizon = 86400\nzone = "Europe/Berlin"\n[[node]]\nprice = 3\n'
        "[[node]]\nwhere = \"name in 'n[2-3]'\"\nprice = 2\n"
    )
    (tmp_path / "t.csv").write_text("start,factor\n06:00,1\n20:00,0.5\n")
    texts = ["--sinfo", tmp_path / "s", "--output", tmp_path / "p.npz"]
    site, pool = ["--site", tmp_path / "site.toml"], tmp_path / "p.npz"
    job = ["--nodes", 2, "--walltime", "4h", "--criterion", "cost"]

    done = run("free", *texts, "--zone", "Europe/Berlin")
    assert "every price is 0" in done.stderr
    done = run("free", *texts, *site)
    assert done.exit_code == 0, done.stderr
    assert "every price is 0" not in done.stderr
    free = sk.SlotPool.load(pool)
    assert set(free.slots["end"].tolist()) == {86400.0}
    window = free.find(sk.Request(2, walltime="4h"), "cost")
    assert window is not None
    assert math.isclose(window.cost, 4 * (3 + 2))  # prices of an hour
    late = run("free", *texts, *site, "--start", "2026-11-30 10:00")
    assert late.exit_code == 0, late.stderr

    done = run("free", *texts, *site, "--tariffs", tmp_path / "t.csv")
    assert done.exit_code == 0, done.stderr
    done = run("find", pool, *job)
    assert "2026-11-30 20:00" in done.stdout  # when the tariff falls
    assert "cost 10 " in done.stdout
    rule = '[[node]]\nwhere = "feature_x"\n'
    (tmp_path / "site.toml").write_text(f'zone = "Europe/Berlin"\n{rule}')
    refused(run("free", *texts, *site), "site, node 0: where 'feature_x'")
    done = run("free", *texts, "--unit", "h")
    refused(done, "--unit h is not possible with --sinfo", "a site file, --site")
    done = run("free", *texts, "--prices", tmp_path / "t.csv")
    refused(done, "--prices", "a site file, --site")
    refused(run("free", "--site", tmp_path / "site.toml"), "without --sinfo")


def test_free_of_pasted_texts(tmp_path: Path, recorded: Recorded) -> None:
    options: list[Any] = ["--zone", "UTC"]
    for option, name in zip(("sinfo", "squeue", "reservations"), PLAIN, strict=True):
        options += [f"--{option}", recorded.path(name)]
    done = run("free", *options)
    assert done.exit_code == 0, done.stderr
    now = recorded.now - recorded.made
    span = f"{recorded.date(10800)}   {recorded.date(now + WEEK)}"
    assert f"{span}       2   a[05-06]" in done.stdout
    assert "not saved: save the free slots with --output pool.npz" in done.stdout
    pool, page = tmp_path / "pool.npz", tmp_path / "page.html"
    done = run("free", *options, "--output", pool, "--html", page)
    assert done.exit_code == 0, done.stderr
    assert "maintenance upkeep" in page.read_text()
    title = f"<title>cluster at {recorded.date(now)}+00:00</title>"
    assert title in page.read_text()
    done = run("find", pool, "--nodes", 4, "--walltime", "1h", "--criterion", "start")
    assert f"{recorded.date(1200)}   {recorded.date(4800)}" in done.stdout
