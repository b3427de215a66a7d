"""Texts of Slurm's commands as snapshots: formats, unknown values, malformed text.

The files in ``texts`` were printed by Slurm 22.05.8 of Debian 12 on a cluster of 12
nodes, with users renamed; ``sacct.txt`` is written after the manual page.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import refused, run

import slotkern as sk
from slotkern.clusters import Snapshot, read_slurm

TEXTS = Path(__file__).parent / "texts"
NOW = 1795784512
FIELDS = ("sinfo-fields.txt", "squeue-epoch.txt", "reservations-epoch.txt")


def text(name: str) -> str:
    return (TEXTS / name).read_text()


def read(*names: str, **options: Any) -> Snapshot:
    return read_slurm(*map(text, names), **({"now": NOW, "zone": "UTC"} | options))


def spans(snapshot: Snapshot, **options: Any) -> dict[str, list[tuple[float, float]]]:
    """Return the free spans by node in seconds since the snapshot."""
    free, found = snapshot.free_slots(**options), {}
    for node, start, end in free.slots[["node", "start", "end"]].tolist():
        found.setdefault(str(free.machine.names[node]), []).append((start, end))
    return found


# --- formats


def test_chosen_fields_with_epoch_seconds() -> None:
    snapshot = read(*FIELDS)
    assert list(snapshot.machine.names) == [f"a0{k}" for k in range(1, 9)] + [
        f"b0{k}" for k in range(1, 5)
    ]
    columns = snapshot.machine.columns
    assert columns["cpus"].tolist() == [4] * 8 + [8] * 4
    assert columns["feature_avx512"].tolist() == [False] * 8 + [True] * 4
    assert columns["partition_fast"].tolist() == [False] * 8 + [True] * 4
    limits = {name: each.limit for name, each in snapshot.partitions.items()}
    assert limits == {"batch": 604800, "fast": 86400, "all": 604800}
    free = spans(snapshot)
    week = 604800.0
    assert free["b03"] == [(0, week)]
    assert free["a03"] == [(598, 86397), (89997, week)]  # partly used, then upkeep
    assert free["a05"] == [(1198, 7197), (10797, week)]  # an array job, then the course
    assert free["a07"] == [(3597, week)]  # in maintenance now
    assert "a08" not in free  # down
    assert "b04" not in free  # drained
    reasons = dict(zip(snapshot.busy["node"], snapshot.busy["reason"], strict=True))
    assert reasons[7] == "down: bad disk, State=IDLE x"
    assert reasons[11] == "drained: memory test"


def test_records_of_nodes_equal_fields() -> None:
    records = read("nodes.txt", *FIELDS[1:])
    fields = read(*FIELDS)
    assert spans(records) == spans(fields)
    for name, column in records.machine.columns.items():
        assert column.tolist() == fields.machine.columns[name].tolist()


def test_plain_output_and_local_dates() -> None:
    zoned = read("sinfo-long.txt", "squeue-long.txt", "reservations.txt", now=None)
    assert str(zoned.clock.origin) == "2026-11-27 13:02:15+00:00"  # the printed date
    free = spans(zoned)
    assert free["a03"] == [(575, 86374), (89974, 604800)]
    assert free["b01"] == [(86375, 604800)]
    short = read("sinfo.txt", "squeue.txt", "reservations.txt")
    assert set(spans(short)) == {"a07", "b03"}  # jobs of this format have no ends
    berlin = read(*FIELDS[:2], "reservations.txt", zone="Europe/Berlin", now=NOW - 7200)
    assert spans(berlin)["a05"][1] == (14397, 604800)


def test_names_of_jobs_may_contain_blanks() -> None:
    """A limit of a day is wider than its column, so later columns are not aligned."""
    plain = read("sinfo-long.txt", "squeue-long.txt", "reservations.txt", now=None)
    for name in (" wide run", "  a b c d", "         "):
        jobs = text("squeue-long.txt").replace("     wide", name)
        given = text("sinfo-long.txt"), jobs, text("reservations.txt")
        assert spans(read_slurm(*given, zone="UTC")) == spans(plain)


def test_doubts_are_busy(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "slotkern")
    assert set(spans(read("sinfo.txt"))) == {"b03"}
    assert "9 of 12 nodes are in use or closed" in caplog.text
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
    file = TEXTS / "sinfo.txt"
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


def test_free_of_pasted_texts(tmp_path: Path) -> None:
    names = ("sinfo-long.txt", "squeue-long.txt", "reservations.txt")
    options: list[Any] = ["--zone", "UTC"]
    for option, name in zip(("sinfo", "squeue", "reservations"), names, strict=True):
        options += [f"--{option}", TEXTS / name]
    done = run("free", *options)
    assert done.exit_code == 0, done.stderr
    assert "2026-11-27 16:01:49   2026-12-04 13:02:15       2   a[05-06]" in done.stdout
    assert "not saved: save the free slots with --output pool.npz" in done.stdout
    pool, page = tmp_path / "pool.npz", tmp_path / "page.html"
    done = run("free", *options, "--output", pool, "--html", page)
    assert done.exit_code == 0, done.stderr
    assert "maintenance upkeep" in page.read_text()
    title = "<title>cluster at 2026-11-27 13:02:15+00:00</title>"
    assert title in page.read_text()
    done = run("find", pool, "--nodes", 4, "--walltime", "1h", "--criterion", "start")
    assert "a06   2026-11-27 13:21:50   2026-11-27 14:21:50" in done.stdout


# --- sacct


def test_sacct_is_a_trace() -> None:
    trace = sk.read_trace(TEXTS / "sacct.txt", zone="Europe/Berlin")
    assert str(trace.clock) == "seconds since 2026-11-27T13:01:00+01:00 (Europe/Berlin)"
    fields = ["submit", "wait", "run_time", "allocated", "requested_time", "status"]
    assert trace.jobs[fields].tolist() == [
        (0, 0, 30, 16, 7200, 0),
        (49, 11, 600, 8, 1800, 1),
        (120, 90, 0, -1, -1, 5),  # cancelled while it waited
        (240, 420, 1200, 4, 1200, 0),
        (240, 420, -1, 4, -1, -1),  # still runs
        (240, -1, -1, -1, 86400, -1),  # still waits
    ]
    ids = [trace.words["job_id"][k] for k in trace.jobs["job_id"]]
    assert ids == ["12", "7", "11", "8_1", "8_2", "8_[3-9]"]
    cleaned = sk.read_trace(TEXTS / "sacct.txt", clean=("unknown", "zero-run"))
    assert sk.replay(cleaned, cluster=32).policy == "easy"


def test_an_empty_output_of_sacct_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.touch()
    for zone in (None, "Europe/Berlin"):
        with pytest.raises(ValueError, match=r"sacct\.txt: the file is empty$"):
            sk.read_trace(path, zone=zone)
    path.write_text("Slurm accounting storage is disabled\n")
    with pytest.raises(ValueError, match="zone is for the output of sacct -P, but"):
        sk.read_trace(path, zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Submit|", "Sent|", "line 1: there is no Submit"),
        ("2026-11-27T13:05:00", "Unknown", "line 5, Submit: 'Unknown' is no time"),
        ("13:12:00|COMPL", "13:00:00|COMPL", "line 2, End: '2026-11-27T13:00:00' is"),
        ("CANCELLED by 1000", "", "line 8, State: '' is no state"),
        ("|8|8|00:30:00", "|8|8", "line 2: 12 fields, but 13 headings"),
        ("00:20:00", "20", "line 5, Timelimit: '20' is no length"),
        ("|16|16|", "|-16|16|", "line 9, AllocCPUS: '-16' is no whole number"),
    ],
)
def test_malformed_sacct(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text("sacct.txt").replace(old, new))
    with pytest.raises(ValueError, match=r"jobs\.txt, ") as caught:
        sk.read_trace(path)
    assert message in str(caught.value)
    if old != "Submit|" and "fields" not in message:
        assert sk.read_trace(path, errors="skip").skipped > 0


def test_fractions_and_trailing_separators(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_text(
        "JobIDRaw|Submit|Start|ElapsedRaw|State|AllocTRES|TimelimitRaw|\n"
        "7|100|150|60|COMPLETED|billing=9,cpu=2K,mem=4G|30|\n"
    )
    fields = ["wait", "run_time", "allocated", "requested_time"]
    assert sk.read_trace(path).jobs[fields].tolist() == [(50, 60, 2048, 1800)]
    with pytest.raises(ValueError, match="zone is for the output of sacct"):
        sk.read_trace(tmp_path / "a.swf", zone="UTC")


def test_processors_have_one_unit(tmp_path: Path) -> None:
    """A cancelled job of 16 CPUs on 2 nodes has 16 processors, not 2."""
    path = tmp_path / "jobs"
    path.write_text(
        "JobID|Submit|Start|End|State|AllocCPUS|NNodes|ReqCPUS|TimelimitRaw\n"
        "1|100|Unknown|150|CANCELLED|0|2|16|UNLIMITED\n"
    )
    fields = ["allocated", "requested", "requested_time"]
    assert sk.read_trace(path).jobs[fields].tolist() == [(-1, 16, -1)]
    given = path.read_text()
    path.write_text(given.replace("UNLIMITED", "30m"))
    with pytest.raises(ValueError, match="line 2, TimelimitRaw: '30m' is no whole"):
        sk.read_trace(path)
    path.write_text(given.replace("AllocCPUS", "Comment"))
    assert sk.read_trace(path).jobs[fields].tolist() == [(2, -1, -1)]


def test_commands_of_sacct() -> None:
    words = ("--clean", "unknown", "--clean", "zero-run")
    for command, *more in (("trace",), ("replay", "--cluster", 32)):
        done = run(command, TEXTS / "sacct.txt", *words, *more)
        assert done.exit_code == 0, done.stderr
        assert "local dates are read as UTC" in done.stderr
        assert "waiting job arrays, each read as one job: 1" in done.stderr
        zoned = ("--zone", "Europe/Berlin")
        done = run(command, TEXTS / "sacct.txt", *words, *more, *zoned)
        assert "read as UTC" not in done.stderr
        assert done.exit_code == 0, done.stderr
    refused(run("trace", TEXTS / "sacct.txt", "--zone", "Mars"), "'Mars' is not known")


# --- random mutations

WORDS = (
    *("Unknown", "None", "N/A", "UNLIMITED", "NOT_SET", "(null)", "INVALID", "-1", ""),
    *("|", "\x1f", "\n", "\r\n", " ", "=", "[1-3]", "[", "n[1-99999]", "1-00:00:00"),
    *("é", "\0", "9" * 30, "2026-10-25T02:30:00", "CANCELLED by 7", "DAILY", "WEEKLY"),
    *("StartTime=1", "inf", "nan", "0", "RUNNING", "idle*", ":", ","),
)


def mutated(given: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(given) + 1)
        past = min(len(given), at + rng.choice((0, 1, 1, 3, 20)))
        match rng.randrange(3):
            case 0:
                new = rng.choice(WORDS)
            case 1:
                other = rng.randrange(len(given) + 1)
                new = given[other : other + rng.randint(0, 30)]
            case _:
                new = chr(rng.randrange(1, 128))
        given = given[:at] + new + given[past:]
    return given


def accept(reader: Callable[[], Any]) -> bool:
    """Return False for an error of one line; raise any other one."""
    try:
        reader()
    except ValueError as error:
        message = str(error)
    else:
        return True
    assert "\n" not in message
    return False


def test_random_mutations_are_read_or_refused(tmp_path: Path) -> None:
    mutations(tmp_path, random.Random(1), 60)


def mutations(folder: Path, rng: random.Random, count: int) -> None:
    given = [text(name) for name in FIELDS]
    plain = [text(n) for n in ("sinfo-long.txt", "squeue-long.txt", "reservations.txt")]
    records = ["".join(text("nodes.txt").splitlines(True)[:2]), *given[1:]]
    as_json = [text("sinfo.json"), text("squeue.json"), given[2]]
    zones = ("UTC", "Europe/Berlin", None)
    accepted = 0
    for _ in range(count):
        for texts in (given, plain, records, as_json):
            which = rng.randrange(3)
            some = [
                mutated(each, rng) if k == which else each
                for k, each in enumerate(texts)
            ]
            zone = rng.choice(zones)
            accepted += accept(
                lambda some=some, zone=zone: spans(  # type: ignore[misc]
                    read_slurm(*some, now=NOW, zone=zone)
                )
            )
        path = folder / "jobs.txt"
        path.write_text(mutated(text("sacct.txt"), rng), encoding="utf-8")
        zone = rng.choice(zones)
        accepted += accept(partial(sk.read_trace, path, zone=zone))
    assert 0 < accepted < 5 * count
