"""Planning and booking on any cluster, against a cluster in memory."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import refused, run

import slotkern as sk
import slotkern.commands.cluster as commands
from slotkern.clusters import (
    BookingConflictError,
    ClusterBooking,
    ClusterError,
    ClusterPlan,
    NameTakenError,
    RecordedCluster,
    Site,
    SiteAccess,
    SlurmCluster,
    UnreachableError,
    book,
    book_all,
    check_booking,
    read_site,
    read_slurm,
)

NOW = 1800000000
NODES = """PARTITION|AVAIL|TIMELIMIT|CPUS|STATE|NODELIST
batch*|up|1-00:00:00|4|idle|n[1-4]
short|up|30:00|4|idle|n[1-2]
big|up|1-00:00:00|64|idle|b[1-2]
shut|down|1-00:00:00|64|idle|b[1-2]
"""
JOBS = f"JOBID|STATE|NODELIST|END_TIME|USER\n7|RUNNING|n1|{NOW + 3600}|anna\n"
HOUR = sk.Request(2, walltime="1h")


def access(**rules: Any) -> SiteAccess:
    snapshot = read_slurm(NODES, JOBS, now=NOW, zone="UTC")
    return SiteAccess(RecordedCluster(snapshot), Site(**rules))


def plan(**rules: Any) -> ClusterPlan:
    cluster, site = access(**rules)
    return ClusterPlan.of_snapshot(cluster.read(), site)


# --- plans


def test_guards_limits_and_prices() -> None:
    rules = ({"price": 1}, {"where": "partition_big", "price": "cpus"})
    found = plan(lead=10, before=7, after=120, node=rules).find(HOUR, "cost")
    assert found is not None
    assert (found.partition, found.nodes) == ("batch", ("n2", "n3"))
    assert (found.start - NOW, found.end - found.start) == (10, 3720)
    assert found.minutes == 60
    assert found.window.cost == pytest.approx(2 * 62 / 60)
    # The partition of 30 minutes is never used for an hour.
    assert plan().find(HOUR, partition="short") is None
    assert plan().find(sk.Request(2, walltime="30min"), partition="short") is not None
    # After the job of n1 has ended, with the time before.
    late = plan(lead=10, before=7).find(sk.Request(4, walltime="61s"))
    assert late is not None
    assert (late.start - NOW, late.minutes) == (3607, 2)
    assert plan(partitions=("big",)).find(sk.Request(3, walltime="1h")) is None
    assert list(plan().free) == ["batch", "short", "big"]  # shut starts no jobs
    with pytest.raises(ValueError, match="the cluster has no partition 'bgi'"):
        plan(partitions=("bgi",))
    with pytest.raises(ValueError, match="partition 'x' is not one of batch, short"):
        plan().find(HOUR, partition="x")


def test_windows_begin_and_end_at_whole_seconds() -> None:
    request = sk.Request(4, walltime="61s")
    for before, start in ((6.5, 3607), (7, 3607), (7.1, 3608)):
        found = plan(lead=9.5, before=before).find(request)
        assert found is not None
        assert found.window.start == found.start - NOW == start
    found = plan(lead=9.5).find(HOUR)
    assert found is not None
    assert found.window.start == found.start - NOW == 10


def test_the_page_of_a_window_shows_the_free_time_of_all_partitions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there, shown = access(), []
    monkeypatch.setattr(commands, "open_cluster", lambda *_: there)
    monkeypatch.setattr(commands, "write_page", lambda *given: shown.append(given))
    words = ("cluster", "when", "--nodes", 2, "--walltime", "1h", "--html")
    done = run(*words, tmp_path / "page.html")
    assert done.exit_code == 0, done.stderr
    ((_, free, window, title),) = shown
    assert set(free.slots["node"].tolist()) == set(range(6))
    assert window.names == ("n2", "n3")
    assert title == "2 nodes for 1h in partition batch"


def test_partitions_that_are_down_have_no_windows() -> None:
    found = plan(partitions=("shut", "big"))
    assert list(found.free) == ["big"]
    with pytest.raises(ValueError, match="partition 'shut' is not up: it starts no"):
        found.find(HOUR, partition="shut")


def test_criteria_over_partitions() -> None:
    """A larger sum of a column is better, so it cannot rank the partitions."""
    with pytest.raises(ValueError, match="criterion must be one of first, start"):
        plan().find(HOUR, "cpus")


def test_requests_keep_their_own_terms() -> None:
    request = sk.Request(1, walltime="1h", setup="2min", step=300, max_runtime="61min")
    assert plan().find(request) is None
    found = plan().find(request.replace(max_runtime="2h"))
    assert found is not None
    assert (found.end - found.start, found.minutes) == (65 * 60, 64)
    with pytest.raises(ValueError, match="step 45s is not whole minutes"):
        plan().find(request.replace(step="45s"))


def test_budgets_hold_for_the_reserved_block() -> None:
    rules = {"node": ({"price": 6, "where": "partition_batch"}, {"price": 6})}
    assert plan(**rules).find(HOUR.replace(budget=12.1)) is None
    found = plan(**rules).find(HOUR.replace(budget=12.2))
    assert found is not None
    assert found.window.cost == pytest.approx(2 * 6 * (found.end - found.start) / 3600)


def test_the_front_is_over_all_partitions() -> None:
    rules = (
        {"price": 1},
        {"where": "partition_big", "price": 9, "performance": 3},
    )
    front = plan(node=rules).front(HOUR)
    assert [each.partition for each in front] == ["big", "batch"]
    assert front[0].window.finish < front[1].window.finish
    assert front[0].window.cost > front[1].window.cost
    why = plan(node=rules).explain(HOUR.replace(budget=0.5))
    assert {name: bool(each.fits) for name, each in why.items()} == {
        "batch": False,
        "short": False,
        "big": False,
    }


# --- bookings


def test_booking_is_idempotent_by_name() -> None:
    where = access()
    made = book(where, "run1", HOUR, user="anna")
    assert made is not None
    assert made.job is None
    again = book(where, "run1", HOUR, user="anna", command=["job.sh"])
    assert again is not None
    assert (again.nodes, again.start, again.job) == (made.nodes, made.start, 1)
    assert book(where, "run1", HOUR, user="anna", command=["job.sh"]) == again
    assert len(where.cluster.bookings()) == 1
    assert check_booking(where, "run1")[0] == again
    assert book(where, "run2", sk.Request(5, walltime="1h"), user="anna") is None
    with pytest.raises(NameTakenError, match="of 2 nodes, not 1"):
        book(where, "run1", sk.Request(1, walltime="1h"), user="anna")
    with pytest.raises(NameTakenError, match="belongs to a booking of anna, not bert"):
        book(where, "run1", HOUR, user="bert")
    with pytest.raises(NameTakenError, match=r"of 3660 s, but .* needs 7260 s"):
        book(where, "run1", sk.Request(2, walltime="2h"), user="anna")
    assert where.cluster.release("run1")
    assert not where.cluster.release("run1")
    assert book(where, "run4", HOUR, user="anna")  # on n2 and n3
    with pytest.raises(NameTakenError, match=r"on n\[2-3\], .* not in partition big"):
        book(where, "run4", HOUR, user="anna", partition="big", command=["job.sh"])
    with pytest.raises(ValueError, match="no partition 'bgi'; it has batch, short, b"):
        book(where, "run4", HOUR, user="anna", partition="bgi", command=["job.sh"])
    only = SiteAccess(where.cluster, Site(partitions=("big",)))
    with pytest.raises(NameTakenError, match="not in one partition of the site"):
        book(only, "run4", HOUR, user="anna", command=["job.sh"])
    assert check_booking(where, "run1") == (None, ["there is no reservation run1"])


class FailingCluster(RecordedCluster):
    """A cluster whose reserve fails in the given ways, in order."""

    def __init__(self, *ways: str) -> None:
        super().__init__(read_slurm(NODES, JOBS, now=NOW, zone="UTC"))
        self.ways = list(ways)

    def reserve(
        self, name: str, nodes: Sequence[str], start: int, end: int, user: str
    ) -> ClusterBooking:
        way = self.ways.pop(0) if self.ways else ""
        if way == "conflict":
            super().reserve(f"other{len(self.ways)}", nodes, start, end, "bert")
        if way == "lost":
            raise UnreachableError("no answer")
        made = super().reserve(name, nodes, start, end, user)
        if way == "done":
            raise UnreachableError("no answer")
        if way == "overlap":  # as Slurm finds it out, after it made the reservation
            self.release(name)
            raise BookingConflictError("maintenance overlaps")
        if way == "twin":
            raise NameTakenError("a twin was faster")
        return made

    def submit(
        self,
        booking: ClusterBooking,
        partition: str,
        minutes: int,
        command: Sequence[str],
    ) -> int:
        if command[0] == "bad":
            raise ClusterError("no such account")
        return super().submit(booking, partition, minutes, command)


def test_failures_while_booking() -> None:
    for ways in (("conflict",), ("done",), ("twin",), ("conflict", "twin"), ()):
        where = SiteAccess(FailingCluster(*ways), Site())
        made = book(where, "run1", HOUR, user="anna", command=["job"])
        assert made is not None
        assert made.job == 1
        names = [each.name for each in where.cluster.bookings()]
        assert names.count("run1") == 1
    where = SiteAccess(FailingCluster("lost"), Site())
    with pytest.raises(UnreachableError):
        book(where, "run1", HOUR, user="anna")
    assert where.cluster.bookings() == []
    assert book(where, "run1", HOUR, user="anna") is not None
    # An overlap that is found after an answer was lost is planned again.
    overlapped = FailingCluster("done", "overlap")
    assert book(SiteAccess(overlapped, Site()), "run1", HOUR, user="anna")
    assert overlapped.ways == []
    where = SiteAccess(FailingCluster(*["conflict"] * 9), Site())
    with pytest.raises(BookingConflictError, match="is not free: reservation other"):
        book(where, "run1", sk.Request(1, walltime="5m"), user="anna")
    where = SiteAccess(FailingCluster(), Site())
    with pytest.raises(ClusterError, match="no such account"):
        book(where, "run1", HOUR, user="anna", command=["bad"])
    assert where.cluster.bookings() == []  # the reservation is not left behind


def test_several_sites_all_or_none() -> None:
    sites = {"a": access(lead=600), "b": access()}
    made = book_all(sites, "pair", sk.Request(4, walltime="10m"), user="anna")
    assert made is not None
    assert {each.start for each in made.values()} == {NOW + 3605}
    assert book_all(sites, "pair", sk.Request(4, walltime="10m"), user="anna") == made
    with pytest.raises(NameTakenError, match="belongs to a booking of anna"):
        book_all(sites, "pair", sk.Request(4, walltime="10m"), user="bert")
    sites["b"].cluster.release("pair")  # as if a call was interrupted
    again = book_all(sites, "pair", sk.Request(4, walltime="10m"), user="anna")
    assert again == made
    for ways, error in ((["lost"], UnreachableError), (["conflict"] * 9, ClusterError)):
        second = SiteAccess(FailingCluster(*ways), Site())
        sites = {"a": access(), "b": second}
        with pytest.raises(error):
            book_all(sites, "pair", sk.Request(1, walltime="10m"), user="anna")
        assert sites["a"].cluster.bookings() == []
        assert second.cluster.find("pair") is None

    class StuckCluster(RecordedCluster):
        def release(self, name: str, number: int | None = None) -> bool:
            raise ClusterError("in use")

    stuck = StuckCluster(access().cluster.read())
    sites = {"a": SiteAccess(stuck, Site()), "b": access()}
    sites["c"] = SiteAccess(FailingCluster("lost"), Site())
    with pytest.raises(UnreachableError):
        book_all(sites, "pair", HOUR, user="anna")
    assert sites["b"].cluster.bookings() == []  # although a cannot be released
    none = {"a": access(), "b": access(partitions=("short",))}
    assert book_all(none, "pair", HOUR, user="anna") is None


def test_several_sites_keep_a_booking_with_a_job() -> None:
    sites = {"a": access(), "b": access()}
    made = book(sites["a"], "run1", HOUR, user="anna", command=["job"])
    with pytest.raises(NameTakenError, match=r"a: name 'run1' .* with job 1; choose"):
        book_all(sites, "run1", HOUR, user="anna")
    assert sites["a"].cluster.find("run1") == made


def test_problems_of_a_booking() -> None:
    where = access()
    made = book(where, "run1", HOUR, user="anna", command=["job"])
    assert made is not None
    jobs = "JOBID|STATE|NODELIST|END_TIME|USER\n"
    jobs += f"8_1|RUNNING|{made.nodes[0]}|{NOW + 3600}|anna\n"
    jobs += f"9|RUNNING|{made.nodes[1]}|{NOW + 3600}|bert\n"
    block = (
        f"ReservationName=not run1 StartTime={NOW} EndTime={NOW + 99} Duration=1 "
        f"Nodes={made.nodes[0]} NodeCnt=1 Flags=MAINT Users=root\n"
    )
    cluster = RecordedCluster(read_slurm(NODES, jobs, block, now=NOW, zone="UTC"))
    cluster._bookings["run1"] = made
    problems = check_booking(SiteAccess(cluster, where.site), "run1")[1]
    assert [each for each in problems if each != "it is over"] == [
        f"{made.nodes[1]}: job 9",
        f"{made.nodes[0]}: maintenance not run1",
    ]


def test_bookings_after_the_snapshot_meet_repeated_reservations() -> None:
    block = (
        f"ReservationName=daily StartTime={NOW} EndTime={NOW + 3600} Duration=01:00:00 "
        "Nodes=n1 NodeCnt=1 Flags=DAILY Users=root\n"
    )
    cluster = RecordedCluster(read_slurm(NODES, None, block, now=NOW, zone="UTC"))
    start = NOW + 20 * 86400
    with pytest.raises(BookingConflictError, match="n1 is not free: reservation daily"):
        cluster.reserve("run1", ["n1"], start, start + 60, "anna")
    made = cluster.reserve("run1", ["n1"], start + 3600, start + 7200, "anna")
    cluster._bookings["run1"] = replace(made, start=start)
    problems = check_booking(SiteAccess(cluster, Site()), "run1")[1]
    assert problems[-1] == "n1: reservation daily"


def test_random_bookings_never_overlap() -> None:
    rng, where = random.Random(2), access()
    for k in range(60):
        request = sk.Request(rng.randint(1, 4), walltime=f"{rng.randint(1, 90)}min")
        criterion = rng.choice(("start", "finish", "cost"))
        assert book(where, f"run{k}", request, user="anna", criterion=criterion)
        if rng.random() < 0.3:
            where.cluster.release(f"run{rng.randrange(k + 1)}")
    made = where.cluster.bookings()
    for k, each in enumerate(made):
        assert check_booking(where, each.name)[1] in ([], ["it is over"])
        for other in made[:k]:
            apart = each.start >= other.end or other.start >= each.end
            assert apart or not set(each.nodes) & set(other.nodes)


# --- site files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horizont = 5", "unknown key 'horizont'; known: after, apart, before"),
        ("horizon = 0", "horizon must be"),
        ("lead = -1", "lead"),
        ("after = 90", "after 90 is not whole minutes"),
        ("unit = 'y'", "unit"),
        ("pending = 'x'", "pending"),
        ("partitions = 'x'", "partitions must be a list of texts"),
        ("node = 3", "node must be tables [[node]], got 3"),
        (
            "[[node]]\nprise = 3",
            "node 0: unknown key 'prise'; known: performance, pric",
        ),
        ("[[node]]\nwhere = 3", "node 0: where must be a filter"),
        ("[[node]]\nprice = nan", "node 0: price must not be NaN"),
        ("zone = 'Mars'", "zone 'Mars' is not known"),
        ("conf = 1", "conf must be a text"),
        ("system = 'pbs'", "system must be one of slurm, oar; got 'pbs'"),
        ("system = ['oar']", "system must be a text"),
        ("system = 'oar'\nconf = 'x'", "conf 'x' is for system 'slurm', but system is"),
        ("system = 'slurm'\ngroup = 'x'", "group 'x' is for system 'oar', but system"),
        ("apart = -1", "apart"),
        ("=", "site.toml: "),
    ],
)
def test_wrong_site_files_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "site.toml"
    path.write_text(text)
    done = run("cluster", "show", "--site", path)
    refused(done, str(path), message)


def test_the_scheduler_of_a_site_file(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('system = "oar"\napart = 90\n')
    site = read_site(path)
    assert (site.system, site.apart, site.lead) == ("oar", 90, 60)
    assert read_site(path, "slurm") == site  # the file comes first
    refused(run("cluster", "show", "--site", path, "--slurm"), path, "is 'oar', but")
    path.write_text("")
    assert read_site(path, "oar") == Site.of_system("oar")
    assert read_site(path) == Site()


def test_time_apart_is_kept_before_and_after_each_occupant() -> None:
    text = "JOBID|STATE|NODELIST|START_TIME|END_TIME|USER|SCHEDNODES\n"
    text += f"7|PENDING||{NOW + 1000}|{NOW + 2000}|anna|n1\n"
    nodes = "NODELIST|STATE|PARTITION\nn1|idle|batch\n"
    snapshot = read_slurm(nodes, text, now=NOW, zone="UTC")
    for apart, before, spans in (
        (0, 5, [(15, 1000), (2005, 9000)]),
        (60, 5, [(15, 940), (2060, 9000)]),
        (60, 90, [(15, 940), (2090, 9000)]),
    ):
        site = Site(horizon=9000, apart=apart, before=before)
        free = ClusterPlan.of_snapshot(snapshot, site).free["batch"]
        assert free.slots[["start", "end"]].tolist() == spans


def test_rules_of_a_site_file(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        'partitions = ["big"]\nafter = 0\n[[node]]\nprice = "cpus"\nperformance = 2\n'
    )
    site = read_site(path)
    assert site.partitions == ("big",)
    machine = site.priced(read_slurm(NODES, now=NOW).machine)
    assert machine.price.tolist() == [4 / 3600] * 4 + [64 / 3600] * 2
    assert machine.performance.tolist() == [2] * 6
    with pytest.raises(ValueError, match="node 0: price: 'cpsu' is not a number or a"):
        Site(node=({"price": "cpsu"},)).priced(machine)


def test_commands_without_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = run("cluster", "when", "--nodes", 1, "--walltime", "1h")
    refused(done, "neither scontrol of Slurm nor oarstat of OAR is", "free --sinfo")
    for option, program in (("--slurm", "scontrol"), ("--oar", "oarnodes")):
        done = run("cluster", "show", option)
        refused(done, f"the program {program} is not installed here")
    refused(
        run("cluster", "when", "--nodes", 1, "--walltime", "10"), "--walltime: '10'"
    )
    given = ("--nodes", 1, "--walltime", "1h", "--earliest", 7)
    refused(run("cluster", "when", *given), "--earliest: 7 is not a date")


def test_commands_load_without_the_user_database() -> None:
    code = "import sys; sys.modules['pwd'] = None; import slotkern.commands.main"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_options_of_several_sites(tmp_path: Path) -> None:
    words: list[Any] = ["cluster", "book", "--name", "run1", "--nodes", 1]
    words += ["--walltime", "1h", "--criterion"]
    refused(run(*words, "banana"), "--criterion must be one of start, finish, cost")
    for name in ("a", "b"):
        (tmp_path / name).write_text("lead = 5\n")
    sites = ("--site", tmp_path / "a", "--site", tmp_path / "b")
    refused(run(*words, "cost", *sites), "--criterion cost is for one site")


def test_messages_of_slurm_become_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "scontrol"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for message, error in (
        ("Requested nodes are busy", "BookingConflictError"),
        ("Access/permission denied", "BookingDeniedError"),
        ("Unable to contact slurm controller", "UnreachableError"),
        ("something else", "ClusterError"),
    ):
        program.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit 1\n")
        program.chmod(0o755)
        with pytest.raises(ClusterError, match=f"scontrol: {message}") as caught:
            SlurmCluster().read()
        assert type(caught.value).__name__ == error
    program.write_text("#!/bin/sh\nexec sleep 9\n")
    with pytest.raises(UnreachableError, match=r"gave no answer within 0\.2 s"):
        SlurmCluster(Site(timeout=0.2)).read()
