"""The public function `replay`: clusters, policies, results and files."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_model import Job, Model, first
from trace_files import REAL

import slotkern as sk
from slotkern._kernels.replay import BACKFILLING

FLOW = [("submit", "f8"), ("run_time", "f8"), ("allocated", "i8")]
SPAN = [("start", "f8"), ("end", "f8")]


def random_flow(seed: int, count: int = 200, most: int = 16) -> Any:
    rng = np.random.default_rng(seed)
    jobs = np.full(count, -1, sk.SWF)
    jobs["job"] = np.arange(1, count + 1)
    jobs["submit"] = rng.integers(0, 10 * count, count)
    jobs["run_time"] = rng.integers(0, 100, count)
    jobs["requested_time"] = np.maximum(jobs["run_time"], rng.integers(1, 200, count))
    jobs["allocated"] = rng.integers(1, most + 1, count)
    jobs["user"] = rng.integers(0, 5, count)
    jobs["partition"] = rng.integers(0, 3, count)
    return jobs


def kept_jobs(jobs: Any, processors: int) -> list[Job]:
    """Return the jobs to replay, prepared by a plain loop."""
    kept: list[Job] = []
    for row in jobs[np.argsort(jobs["submit"], kind="stable")]:
        width = row["allocated"] if row["allocated"] > 0 else row["requested"]
        if row["submit"] < 0 or row["run_time"] < 0 or not 0 < width <= processors:
            continue
        asked = row["requested_time"]
        estimate = max(float(asked if asked > 0 else row["run_time"]), 1.0)
        run = min(float(row["run_time"]), estimate)
        kept.append((float(row["submit"]), run, estimate, int(width)))
    return kept


def model_starts(jobs: Any, processors: int, policy: sk.QueuePolicy) -> list[float]:
    """Return the starts of the slow model."""
    kept = kept_jobs(jobs, processors)
    sign = {"arrival": 0, "shortest": 1, "largest": -1}[policy.order]
    by = {
        0: first,
        1: lambda job, now: kept[job][2],
        -1: lambda job, now: -(kept[job][2] * kept[job][3]),
    }[sign]
    return Model(kept, processors, policy.backfill, by).run()


def counted_starts(jobs: Any, processors: int, policy: str) -> list[float]:
    """Return the starts of the compiled model."""
    pytest.importorskip("numba")
    from replay_counts import starts

    columns = zip(*kept_jobs(jobs, processors), strict=True)
    submit, run, estimate, width = (np.array(column) for column in columns)
    conservative = policy == "conservative"
    found = starts(submit, run, estimate, width, processors, conservative)
    return list(found.tolist())


STATIC = [
    name
    for name, policy in sk.POLICIES.items()
    if isinstance(getattr(policy, "order", None), str)
]


@pytest.mark.parametrize("policy", STATIC)
@pytest.mark.parametrize("processors", [16, 23])
def test_every_named_policy(policy: str, processors: int) -> None:
    for seed in range(3):
        jobs = random_flow(seed, 60)
        expected = model_starts(jobs, processors, sk.POLICIES[policy])
        assert sk.replay(jobs, processors, policy).jobs["start"].tolist() == expected


@pytest.mark.skipif(not REAL, reason="the real traces are not here")
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "easy-sjf"])
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_traces(path: Path, policy: str) -> None:
    trace = sk.read_trace(path)
    jobs = trace.jobs[: 1000 if policy == "conservative" else 2000]
    processors = trace.processors or 400
    found = sk.replay(jobs, processors, policy)
    expected = model_starts(jobs, processors, sk.POLICIES[policy])
    assert found.jobs["start"].tolist() == expected


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_models_agree(policy: str) -> None:
    for seed in range(20):
        jobs = random_flow(seed, 40)
        slow = model_starts(jobs, 16, sk.POLICIES[policy])
        assert counted_starts(jobs, 16, policy) == slow


@pytest.mark.skipif(not REAL, reason="the real traces are not here")
@pytest.mark.parametrize("policy", ["easy", "conservative"])
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_5000_jobs_of_real_traces(path: Path, policy: str) -> None:
    trace = sk.read_trace(path)
    jobs, processors = trace.jobs[:5000], trace.processors or 400
    found = sk.replay(jobs, processors, policy)
    assert found.jobs["start"].tolist() == counted_starts(jobs, processors, policy)


@pytest.mark.skipif(not REAL, reason="the real traces are not here")
@pytest.mark.parametrize("policy", sk.POLICIES)
def test_a_whole_trace_under_every_policy(policy: str) -> None:
    trace = sk.read_trace(REAL[0])
    if isinstance(sk.POLICIES[policy], sk.WindowPolicy):  # one search per job
        trace = sk.Trace(trace.jobs[:1500], trace.header)
    done = sk.replay(trace, None, policy)
    check(done)
    assert len(done) + sum(done.dropped.values()) == len(trace)


def check(done: sk.Replay) -> None:
    """Check that no processor runs two jobs at once, and starts, ends and widths."""
    jobs, first, count = done.jobs, done._first, done._count
    assert (jobs["start"] >= jobs["submit"]).all()
    assert (jobs["end"] == jobs["start"] + jobs["run"]).all()
    spans = [done._spans[a : a + n] for a, n in zip(first, count, strict=True)]
    sizes = [int(each[:, 1].sum()) for each in spans]
    assert sizes == jobs["processors"].tolist()
    part = np.repeat(np.arange(len(jobs)), count)
    low, size = np.concatenate(spans).T
    node = np.repeat(low - (np.cumsum(size) - size), size) + np.arange(size.sum())
    job = np.repeat(part, size)
    busy = jobs["run"][job] > 0
    node, job = node[busy], job[busy]
    order = np.lexsort((jobs["start"][job], node, jobs["site"][job]))
    node, job = node[order], job[order]
    same = (node[1:] == node[:-1]) & (jobs["site"][job[1:]] == jobs["site"][job[:-1]])
    assert (jobs["start"][job[1:]][same] >= jobs["end"][job[:-1]][same]).all()


def test_prices_over_time_charge_each_run(tmp_path: Path) -> None:
    jobs = random_flow(3)
    hours = {"start": [-np.inf, 300, 900, 1500], "price": [0.5, 2, 0.25, 1]}
    night = sk.Tariff([300, 900, 1500], [0.5, 2, 0.25, 1])
    constant = sk.replay(jobs, 20, "easy").jobs
    for prices in (night, hours):
        done = sk.replay(jobs, 20, "easy", prices=prices).jobs
        assert (done["start"] == constant["start"]).all()
        amounts = [
            width * night.integral(start, run)
            for width, start, run in done[["processors", "start", "run"]].tolist()
        ]
        assert done["cost"].tolist() == amounts
    cluster = {"processors": [20], "price": [3.0]}
    dear = sk.replay(jobs, cluster, "fcfs", prices=night)
    cheap = sk.replay(jobs, 20, "fcfs", prices=night).metrics()["cost"]
    assert dear.metrics()["cost"] == pytest.approx(3 * cheap)
    path = tmp_path / "prices.csv"
    path.write_text("start,price\n0,0.5\n300,2\n900,0.25\n1500,1\n")
    assert sk.replay(jobs, 20, "easy", prices=path).jobs["cost"].tolist() == amounts
    with pytest.raises(ValueError, match="prices: there is no price from 300 to"):
        sk.replay(jobs, 20, prices={"start": [0], "end": [300], "price": [1]})


@pytest.mark.parametrize("backfill", BACKFILLING)
def test_sites_are_independent(backfill: str) -> None:
    jobs = random_flow(1)
    cluster = {
        "site": [2, 0, 7],
        "processors": [16, 20, 9],
        "performance": [1.0, 2.0, 1.0],
        "price": [0.5, 2.0, 1.0],
    }
    policy = sk.QueuePolicy(backfill)
    done = sk.replay(jobs, cluster, policy, blocked=[(50, 400, 20, 0), (0, 9, 3, 2)])
    check(done)
    assert done.dropped == {"no such site": int((jobs["partition"] == 1).sum())}
    assert "site" in repr(done.cluster)
    for site, processors, speed, price in zip(*cluster.values(), strict=True):
        mine = jobs[jobs["partition"] == site].copy()
        mine["run_time"] /= speed
        mine["requested_time"] = np.maximum(mine["requested_time"], 1) / speed
        blocked = {2: [(0, 9, 3)], 0: [(50, 400, 20)]}.get(site, [])
        alone = sk.replay(
            mine, processors, policy, blocked=blocked, estimates="user"
        ).jobs
        here = done.jobs[done.jobs["site"] == site]
        assert here["start"].tolist() == alone["start"].tolist()
        assert (here["cost"] == here["processors"] * here["run"] * price).all()
    index = int((done.jobs["site"] == 0).argmax())
    assert len(done.nodes(index)) == done.jobs["processors"][index]


def test_no_job_runs_while_all_processors_are_blocked() -> None:
    jobs = random_flow(2)
    for policy in sk.POLICIES:
        done = sk.replay(jobs, 16, policy, blocked=[(100, 700, 16), (900, 950, 16)])
        check(done)
        for start, end in ((100, 700), (900, 950)):
            over = (done.jobs["start"] < end) & (done.jobs["end"] > start)
            assert not (over & (done.jobs["run"] > 0)).any()


def test_user_defined_priorities() -> None:
    jobs = random_flow(3)
    by_array = sk.QueuePolicy("easy", -jobs["requested_time"])
    expected = sk.replay(jobs, 16, "easy-sjf").jobs["start"].tolist()
    assert sk.replay(jobs, 16, by_array).jobs["start"].tolist() == expected

    def short_first(now, submit, estimate, processors, user):  # type: ignore[no-untyped-def]
        return -max(estimate, 0.0) + 0 * (now + submit + processors + user)

    for backfill in BACKFILLING:
        own = sk.replay(jobs, 16, sk.QueuePolicy(backfill, short_first))
        same = sk.replay(jobs, 16, sk.QueuePolicy(backfill, -jobs["requested_time"]))
        if backfill != "conservative":  # reservations are made in order of arrival
            assert (own.jobs["start"] == same.jobs["start"]).all()
        check(own)

    def fails(now, submit, estimate, processors, user):  # type: ignore[no-untyped-def]
        return 1 / (processors - 3) if now > 300 else 0.0

    with pytest.raises(ValueError, match=r"the priority of job .* raised or"):
        sk.replay(jobs, 16, sk.QueuePolicy("easy", fails))
    with pytest.raises(TypeError, match="order <lambda> does not compile"):
        sk.replay(jobs, 16, sk.QueuePolicy("easy", lambda a, b, c, d, e: "x"))
    wrong = np.zeros(len(jobs))
    wrong[7] = np.nan
    with pytest.raises(ValueError, match="order: the priority of row 7 is nan"):
        sk.replay(jobs, 16, sk.QueuePolicy("easy", wrong))


def test_what_if() -> None:
    jobs = random_flow(4)
    plain = sk.replay(jobs, 16)
    dense = sk.replay(jobs, 16, load=2.0)
    since = jobs["submit"].min()
    gaps = np.sort(jobs["submit"]) - since
    assert (dense.jobs["submit"] == since + gaps / 2).all()
    assert dense.jobs["wait"].mean() > plain.jobs["wait"].mean()
    more = sk.replay(jobs, 16, more_processors=16)
    assert more.jobs["start"].tolist() == sk.replay(jobs, 32).jobs["start"].tolist()
    exact = sk.replay(jobs, 16, estimates="exact").jobs
    assert (exact["estimate"] == np.maximum(exact["run"], 1)).all()
    thrice = sk.replay(jobs, 16, estimates=3).jobs
    assert (thrice["estimate"] == np.maximum(3 * thrice["run"], 1)).all()
    jobs["requested_time"][5] = 1
    jobs["run_time"][5] = 50
    kept = sk.replay(jobs, 16, overrun="extend").jobs
    cut = sk.replay(jobs, 16, overrun="kill").jobs
    assert kept[kept["row"] == 5][["run", "estimate"]].tolist() == [(50, 50)]
    assert cut[cut["row"] == 5][["run", "estimate"]].tolist() == [(1, 1)]


def test_whole_weeks_are_drawn() -> None:
    jobs = np.zeros(300, sk.SWF)
    week = 7 * 86400
    rng = np.random.default_rng(0)
    jobs["submit"] = 1000 + rng.integers(0, 5 * week, 300)
    jobs["job"] = np.arange(300)
    jobs["submit"][0], jobs["submit"][1] = 1000, -1
    drawn = sk.resample_weeks(jobs, seed=3, weeks=9)
    assert drawn.repairs == {"weeks": 9}
    again = sk.resample_weeks(sk.Trace(jobs), seed=3, weeks=9)
    assert drawn.jobs.tolist() == again.jobs.tolist()
    assert drawn.jobs.tolist() != sk.resample_weeks(jobs, seed=4, weeks=9).jobs.tolist()
    submit = dict(zip(jobs["job"].tolist(), jobs["submit"].tolist(), strict=True))
    shift = drawn.jobs["submit"] - [submit[job] for job in drawn.jobs["job"].tolist()]
    assert (shift % week == 0).all()
    assert (np.diff(drawn.jobs["submit"]) >= 0).all()
    to, source = (
        (x - 1000) // week for x in (drawn.jobs["submit"], drawn.jobs["submit"] - shift)
    )
    for k in range(9):
        (origin,) = set(source[to == k].tolist()) or {None}
        size = ((jobs["submit"] - 1000) // week == origin).sum()
        assert (to == k).sum() == size
    with pytest.raises(ValueError, match="no submission is known"):
        sk.resample_weeks(np.full(1, -1, sk.SWF), seed=0)


def test_metrics_by_their_definitions() -> None:
    flow = np.array(
        [(0, 20, 2, 1), (5, 5, 4, 2), (6, 0, 1, 2), (7, 40, 2, 1)],
        [*FLOW, ("user", "i8")],
    )
    done = sk.replay(flow, 4, "fcfs")
    assert done.jobs["start"].tolist() == [0, 20, 25, 25]
    assert done.jobs["wait"].tolist() == [0, 15, 19, 18]
    slowdown = done.jobs["slowdown"]
    assert slowdown.tolist()[:2] == [1, 4]
    assert np.isnan(slowdown[2])
    bounded = [1, 2, 1.9, 58 / 40]
    assert done.jobs["bounded_slowdown"].tolist() == bounded
    found = done.metrics()
    assert found["jobs"] == 4
    assert found["makespan"] == 65
    assert found["utilization"] == (40 + 20 + 80) / (65 * 4)
    assert found["throughput"] == 4 * 3600 / 65
    assert found["wait_mean"] == 13
    assert found["wait_median"] == 16.5
    assert found["wait_max"] == 19
    assert found["response_mean"] == 13 + 65 / 4
    assert found["slowdown_mean"] == pytest.approx((1 + 4 + 58 / 40) / 3)
    assert found["bounded_slowdown_mean"] == pytest.approx(np.mean(bounded))
    assert found["queue_max"] == 3
    users = [(bounded[0] + bounded[3]) / 2, (bounded[1] + bounded[2]) / 2]
    jain = sum(users) ** 2 / (2 * sum(x * x for x in users))
    assert found["fairness"] == pytest.approx(jain)
    assert done.users()["used"].tolist() == [120, 20]
    assert done.utilization().tolist() == [(0, 2), (20, 4), (25, 2), (65, 0)]
    queue = done.queue_length().tolist()
    assert queue == [(0, 0), (5, 1), (6, 2), (7, 3), (20, 2), (25, 0)]
    assert sk.replay(flow[:0], 4).metrics() == {"jobs": 0, "dropped": 0}


def test_files(tmp_path: Path) -> None:
    jobs = random_flow(5)
    jobs["run_time"][3] += 0.25
    trace = sk.Trace(jobs, header={"Computer": "none"})
    done = sk.replay(trace, 70, "easy")
    done.write_swf(tmp_path / "easy.swf")
    back = sk.read_trace(tmp_path / "easy.swf")
    assert back.processors == 70
    assert back.header["Computer"] == "none"
    assert (back.jobs["submit"] + back.jobs["wait"] == done.jobs["start"]).all()
    assert (back.jobs["run_time"] == done.jobs["run"]).all()
    assert (back.jobs["user"] == done.jobs["user"]).all()
    done.write_csv(tmp_path / "easy.csv")
    with open(tmp_path / "easy.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["job_id"]) for row in rows] == done.jobs["job"].tolist()
    for index, row in enumerate(rows):
        assert float(row["starting_time"]) == done.jobs["start"][index]
        assert float(row["finish_time"]) == done.jobs["end"][index]
        nodes = []
        for span in row["allocated_resources"].split():
            low, _, high = span.partition("-")
            nodes += range(int(low), int(high or low) + 1)
        assert nodes == done.nodes(index).tolist()
    assert done.to_pandas().shape == (len(done), len(done.jobs.dtype.names))
    assert done.to_arrow().column_names == list(done.jobs.dtype.names)
    counted = sk.replay(trace, 70, "easy", nodes=False)
    assert (counted.jobs["start"] == done.jobs["start"]).all()
    for call in (lambda: counted.nodes(0), lambda: counted.write_csv(tmp_path / "x")):
        with pytest.raises(ValueError, match="did not place jobs"):
            call()


@pytest.mark.skipif(
    importlib.util.find_spec("evalys") is None, reason="evalys is not installed"
)
@pytest.mark.filterwarnings("ignore")
def test_evalys_reads_the_csv(tmp_path: Path) -> None:
    from evalys.jobset import JobSet

    done = sk.replay(random_flow(6), 16, "conservative")
    done.write_csv(tmp_path / "jobs.csv")
    read = JobSet.from_csv(str(tmp_path / "jobs.csv"))
    assert read.MaxProcs == 16
    assert read.df["waiting_time"].tolist() == done.jobs["wait"].tolist()
    sizes = read.df["allocated_resources"].apply(len)
    assert sizes.tolist() == done.jobs["processors"].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": 0}, "cluster: row 0: processors 0 is not an integer from 1"),
        ({"cluster": 2**30}, "cluster: row 0: processors 1073741824 is not"),
        ({"cluster": {"processors": [2.5]}}, "processors 2.5 is not an integer"),
        ({"cluster": {"nodes": [2]}}, "cluster has no column 'processors'"),
        ({"cluster": {"processors": [2, 3]}}, "2 rows but no column 'site'"),
        ({"cluster": {"processors": [2, 3], "site": [1, 1]}}, "a site occurs twice"),
        ({"cluster": {"processors": [2], "price": [-1]}}, "row 0: price -1"),
        ({"cluster": {"processors": [2], "performance": [0]}}, "performance 0"),
        ({"cluster": "all"}, "cluster must be a number or 'partitions', got 'all'"),
        ({"policy": "best"}, "policy must be one of fcfs, easy"),
        ({"overrun": "let"}, "overrun must be one of kill, extend; got 'let'"),
        ({"width": "both"}, "width must be one of allocated, requested; got 'bo"),
        ({"load": 0}, "load must be more than 0, got 0"),
        ({"estimates": 0.5}, "estimates must be at least 1, got 0.5"),
        ({"estimates": "mine"}, "estimates must be one of user, exact; got 'mine'"),
        (
            {"blocked": [(5, 5, 1)]},
            r"row 0: from 5 to 5, processors 1, is not a span",
        ),
        (
            {"blocked": [(0, 5, 1, 3)]},
            "blocked: row 0: site 3 is not a site of the cluster",
        ),
        ({"blocked": [(0, 5, 99)]}, "blocked: 99 processors are blocked at once"),
        ({"more_processors": -200}, "more_processors: -200 to 16 processors does"),
        ({"blocked": [(0, 5)]}, "blocked: row 0 is not"),
        ({"blocked": [(0, 5, 9), (4, 6, 9)]}, "18 processors are blocked at once"),
        ({"blocked": [(0, 5, 2**40)]}, "row 0: processors must be at most 16777216"),
        ({"blocked": [(0, 5, 1, 2**70)]}, "blocked: row 0: site must be at most"),
        ({"blocked": [7]}, "blocked: row 0 is not"),
        (
            {"blocked": np.array([(0, 5, 2**32 + 1)], [*SPAN, ("processors", "i8")])},
            "blocked: row 0: processors must be at most 16777216, got 4294967297",
        ),
        ({"more_processors": -16}, "more_processors: -16 to 16 processors does not"),
        ({"more_processors": 2**70}, "more_processors must be at most 16777216"),
        ({"estimates": 1e308}, "add up to more than 2"),
        ({"load": 5e-324}, "add up to more than 2"),
        (
            {"policy": sk.WindowPolicy(budget=np.array([1.0, np.nan] + 7 * [1.0]))},
            "budget: row 1 is nan",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sk.replay(random_flow(0, 9), **({"cluster": 16} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocked": 7}, "blocked must be a sequence of spans, got 7"),
        ({"blocked": [(0, 5, 1.5)]}, "blocked: row 0: processors must be an integer"),
        (
            {"blocked": np.array([(0, 5, 1.7)], [*SPAN, ("processors", "f8")])},
            "blocked: row 0: processors must be an integer, got 1.7",
        ),
        (
            {"cluster": {"site": [1.2, 1.7], "processors": [9, 9]}},
            "cluster: row 0: site 1.2 is not an integer",
        ),
        ({"more_processors": 1.5}, "more_processors must be an integer, got 1.5"),
    ],
)
def test_wrong_types(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sk.replay(random_flow(0, 9), **({"cluster": 16} | options))


def test_wrong_jobs() -> None:
    with pytest.raises(TypeError, match="jobs must be a Trace or a structured array"):
        sk.replay([1, 2], 4)
    with pytest.raises(ValueError, match="jobs have no field 'run_time'"):
        sk.replay(np.zeros(1, [("submit", "f8")]), 4)
    with pytest.raises(TypeError, match="cluster must be a number or columns"):
        sk.replay(random_flow(0, 9), 2.5)
    late = random_flow(0, 9)
    late["submit"] = 2.0**53
    with pytest.raises(ValueError, match="add up to more than 2"):
        sk.replay(late, 16)
    for policy in (
        lambda: sk.QueuePolicy("some"),  # type: ignore[arg-type]
        lambda: sk.QueuePolicy("easy", "longest"),
        lambda: sk.Multifactor(longest_wait=0),
        lambda: sk.Multifactor(half_life=0.5),
        lambda: sk.Multifactor(age=np.nan),
    ):
        with pytest.raises(ValueError, match=r"some|longest|half_life|NaN"):
            policy()
    with pytest.raises(TypeError, match="order must be a name, Multifactor"):
        sk.QueuePolicy("easy", 3)


def test_dropped_jobs_are_counted_by_reason() -> None:
    jobs = random_flow(7, 10)
    jobs["submit"][0] = jobs["run_time"][1] = jobs["allocated"][2] = -1
    jobs["allocated"][3] = 17
    done = sk.replay(jobs, 16)
    assert done.dropped == {
        "submission unknown": 1,
        "run time unknown": 1,
        "processors unknown": 1,
        "wider than the machine": 1,
    }
    assert done.jobs["row"].tolist() == sorted(
        range(4, 10), key=lambda row: (jobs["submit"][row], row)
    )
    assert "4 dropped" in repr(done)


def test_progress_is_reported() -> None:
    counts: list[int] = []
    sk.replay(random_flow(8, 3000), 16, progress=counts.append)
    assert counts
    assert counts == sorted(counts)
    assert counts[-1] == 3000


def test_partition_sizes_of_the_trace() -> None:
    jobs = random_flow(9)
    jobs["wait"] = 3
    done = sk.replay(jobs, "partitions")
    assert done.cluster.site.tolist() == [0, 1, 2]
    for site, size in zip(done.cluster.site, done.cluster.processors, strict=True):
        mine = jobs[(jobs["partition"] == site) & (jobs["run_time"] > 0)]
        start, end = mine["submit"] + 3, mine["submit"] + 3 + mine["run_time"]
        most = max(
            mine["allocated"][(start <= t) & (t < end)].sum() for t in start.tolist()
        )
        assert size == most
