"""Community simulations against slow models, and invariants under failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from community_model import Direct, Model
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import slotkern as sk

NODES = [(2, 1.0, 0), (4, 2.0, 0), (8, 1.0, 1), (1, 1.0, 0), (16, 0.5, 0)]
GRID = {
    "processors": [node[0] for node in NODES],
    "speed": [node[1] for node in NODES],
    "label": [node[2] for node in NODES],
}


@st.composite
def flows(draw: Any, most: int = 25) -> list[tuple[Any, ...]]:
    jobs = []
    for _ in range(draw(st.integers(0, most))):
        run = draw(st.integers(0, 60))
        estimate = max(1, run) * draw(st.sampled_from([1, 1, 2]))
        width = draw(st.sampled_from([1, 1, 2, 3, 8, 20]))
        home, label = draw(st.integers(0, 4)), draw(st.sampled_from([0, 0, 1, -1]))
        submit = draw(st.integers(0, 80))
        jobs.append((float(submit), float(run), float(estimate), width, home, label))
    return sorted(jobs, key=lambda job: job[0])


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 120).map(float),
        st.integers(0, 4),
        st.sampled_from(["leave", "join"]),
    ),
    max_size=5,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


def columns(jobs: list[tuple[Any, ...]]) -> dict[str, Any]:
    names = ("submit", "run", "estimate", "processors", "home", "label")
    kinds = ("f8", "f8", "f8", "i4", "i4", "i4")
    return {
        name: np.array([job[k] for job in jobs], kind)
        for k, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }


def check_conservation(run: sk.CommunityRun) -> None:
    """Check that each job ends once or has a reason, and processors run one job."""
    jobs = run.jobs
    fates = np.array(run.fates)[jobs["fate"]]
    assert "pending" not in fates
    done = jobs[fates == "done"]
    assert np.isfinite(done["start"]).all()
    assert (done["start"] >= done["queued"]).all()
    assert (done["queued"] >= done["submit"]).all()
    assert np.isnan(jobs["start"][fates != "done"]).all()
    assert len(done) + sum(run.failures().values()) == len(jobs)
    for k in range(len(run.nodes)):
        own = done[done["node"] == k]
        width = own["processors"].astype(np.int64)
        time = np.concatenate((own["end"], own["start"]))
        change = np.concatenate((-width, width))
        used = change[np.lexsort((change, time))].cumsum()
        assert used.max(initial=0) <= run.nodes["processors"][k]
        wanted = own["label"]
        assert ((wanted == -1) | (wanted == run.nodes["label"][k])).all()


FALLBACKS = ["most-free", "least-load", "central-fcfs", "central-scan"]


# The only node that can run the first job leaves.
LEFT = [(0.0, 4.0, 4.0, 8, 0, 1), (1.0, 0.0, 1.0, 1, 0, 1), (2.0, 0.0, 1.0, 1, 0, 0)]


@pytest.mark.parametrize("how", ["home", *FALLBACKS])
@given(jobs=flows(), changes=CHANGES, decision=st.sampled_from([0.0, 0.5, 1.0, 4.0]))
@example(LEFT, [(3.0, 2, "leave")], 0.0)
def test_scenarios_without_protocol_agree_with_the_model(
    how: Any, jobs: list[tuple[Any, ...]], changes: list[Any], decision: float
) -> None:
    if how == "home":
        decision, scenario = 0.0, sk.Independent()
    else:
        scenario = sk.Centralized(how, decision=decision)
    run = sk.simulate_community(columns(jobs), GRID, scenario, changes=changes)
    when = [(time, node, word == "join") for time, node, word in changes]
    model = Direct(jobs, NODES, how, when, decision)
    start, node = run.jobs["start"].tolist(), run.jobs["node"].tolist()
    found = {j: (start[j], node[j]) for j in run.completed.tolist()}
    assert found == model.placed
    fates = [run.fates[fate] for fate in run.jobs["fate"].tolist()]
    assert {j: fate for j, fate in enumerate(fates) if fate != "done"} == model.failed
    check_conservation(run)


def test_a_stranded_job_does_not_block_the_central_queue() -> None:
    run = sk.simulate_community(
        columns(LEFT), GRID, sk.Centralized("central-fcfs"), changes=[(3.0, 2, "leave")]
    )
    np.testing.assert_equal(run.jobs["start"], [0.0, np.nan, 3.0])


@pytest.mark.parametrize("fallback", FALLBACKS)
def test_a_centre_decides_on_one_job_after_another(fallback: Any) -> None:
    """The n-th job at time 0 waits for n decisions; a job at 100 waits for one."""
    jobs = [(0.0, 5.0, 5.0, 1, 0, -1)] * 3 + [(100.0, 5.0, 5.0, 1, 0, -1)]
    centre = sk.Centralized(fallback, decision=30)
    run = sk.simulate_community(columns(jobs), GRID, centre)
    assert run.jobs["start"].tolist() == [30.0, 60.0, 90.0, 130.0]
    with pytest.raises(ValueError, match="decision must not be negative"):
        sk.Centralized(decision=-1)


def at_home(jobs: list[tuple[Any, ...]], policy: Any) -> list[Any]:
    """Return the starts if the jobs of each node are run by `slotkern.replay`."""
    start: list[Any] = [None] * len(jobs)
    for k, (processors, speed, label) in enumerate(NODES):
        own = [
            j
            for j, (_, _, _, width, home, wanted) in enumerate(jobs)
            if home == k and width <= processors and wanted in (-1, label)
        ]
        rows = np.full(len(own), -1, sk.SWF)
        rows["submit"] = [jobs[j][0] for j in own]
        rows["run_time"] = [jobs[j][1] for j in own]
        rows["requested_time"] = [jobs[j][2] for j in own]
        rows["allocated"] = [jobs[j][3] for j in own]
        rows["partition"] = 1
        cluster = {"site": [1], "processors": [processors], "performance": [speed]}
        done = sk.replay(sk.Trace(rows), cluster, policy)
        for j, begin in zip(own, done.jobs["start"].tolist(), strict=True):
            start[j] = begin
    return start


LOCAL = ["fcfs", "easy", "conservative", "first-fit", "sjf", "easy-sjf"]


@pytest.mark.parametrize("policy", LOCAL)
@settings(max_examples=settings().max_examples // 3)
@given(jobs=flows())
def test_local_policies_agree_with_replays(
    policy: str, jobs: list[tuple[Any, ...]]
) -> None:
    run = sk.simulate_community(columns(jobs), GRID, "ind", policy=policy)
    found = [None if np.isnan(t) else t for t in run.jobs["start"].tolist()]
    assert found == at_home(jobs, policy)
    check_conservation(run)


@pytest.mark.parametrize("policy", ["sjf", "easy-sjf"])
@pytest.mark.parametrize("cycle", [None, 0, 5])
def test_jobs_of_one_moment_are_one_event(policy: str, cycle: float | None) -> None:
    jobs = {"submit": [0.0, 0.0], "run": [10.0, 1.0], "processors": [1, 1]}
    jobs["home"] = [0, 0]
    scenario: Any = "ind"
    if cycle is not None:
        scenario = sk.Community(cycle=cycle, window=1)
    run = sk.simulate_community(jobs, {"processors": [1]}, scenario, policy=policy)
    start = run.jobs["start"]
    assert start[0] - start[1] == 1
    # An end and an arrival at the same time are one event, too.
    jobs = {"submit": [0.0, 1.0, 4.0], "run": [4.0, 9.0, 1.0], "processors": [1, 1, 1]}
    jobs["home"] = [0, 0, 0]
    run = sk.simulate_community(jobs, {"processors": [1]}, "ind", policy=policy)
    assert run.jobs["start"].tolist() == [0, 5, 4]


@pytest.mark.parametrize("policy", LOCAL[1:])
@settings(max_examples=settings().max_examples // 10)
@given(seed=st.integers(0, 50), loss=st.sampled_from([0, 0.3]), changes=CHANGES)
def test_local_policies_lose_no_job(
    policy: str, seed: int, loss: float, changes: list[Any]
) -> None:
    jobs, nodes = sk.generate_community("heavy", jobs=400, seed=seed)
    jobs["estimate"] = jobs["run"] * (1 + jobs["home"] % 3)
    changes = [(200 * time, node, word) for time, node, word in changes]
    scenario = sk.Community(3, loss=loss, mu=0.5, varpi=0.5, interval=300)
    for each in (scenario, "cen"):
        run = sk.simulate_community(
            jobs, nodes, each, policy=policy, changes=changes, seed=seed
        )
        check_conservation(run)


@pytest.mark.parametrize("policy", LOCAL)
@settings(max_examples=settings().max_examples // 5)
@given(seed=st.integers(0, 10_000), mu=st.sampled_from([0.0, 0.5]))
@example(seed=49, mu=0.0)  # shortest first: a job returns to its old position
def test_jobs_that_return_to_a_node(policy: str, seed: int, mu: float) -> None:
    jobs, nodes = sk.generate_community("heavy", jobs=60, nodes=3, seed=seed)
    jobs["label"] = -1
    jobs["submit"] = np.round(jobs["submit"] / jobs["submit"].max() * 3000)
    scenario = sk.Community(
        **{"mu": mu, "varpi": 0, "interval": 60, "cycle": 0, "window": 1},
        job_time="job",
    )
    run = sk.simulate_community(jobs, nodes, scenario, policy=policy, seed=seed)
    check_conservation(run)
    wide = jobs["processors"] > nodes["processors"].max()
    assert (run.completed == np.flatnonzero(~wide)).all()
    assert run.counts["shadow_load"] == 0


GRAPHS = st.sampled_from(
    [
        [[1, 2], [0], [0, 3, 4, 1], [2], [2, 1]],
        [[1], [2], [3], [4], [0]],
        [[1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3]],
        [[], [0, 2], [], [4], [3]],
    ]
)


@settings(max_examples=settings().max_examples // 2)
@given(
    jobs=flows(),
    near=GRAPHS,
    changes=CHANGES,
    cycle=st.sampled_from([0, 4]),
    loss=st.sampled_from([0, 0, 0.3]),
    mu=st.sampled_from([1.0, 0.0]),
    varpi=st.sampled_from([1.0, 0.0]),
    retries=st.sampled_from([0, 2]),
    latency=st.sampled_from([0.5, 0]),
    policy=st.sampled_from(["fcfs", "fcfs", "easy", "first-fit", "sjf", "easy-sjf"]),
    seed=st.integers(0, 3),
)
def test_the_community_agrees_with_the_model(
    jobs: list[tuple[Any, ...]],
    near: list[list[int]],
    changes: list[Any],
    cycle: float,
    loss: float,
    mu: float,
    varpi: float,
    retries: int,
    latency: float,
    policy: str,
    seed: int,
) -> None:
    life = 512.0 if loss else float("inf")
    scenario = sk.Community(
        neighbours=near,
        mu=mu,
        varpi=varpi,
        cycle=cycle,
        window=8,
        interval=16,
        discovery=1,
        latency=latency,
        loss=loss,
        resend=4,
        retry=32,
        retries=retries,
        promise_life=life,
    )
    run = sk.simulate_community(
        columns(jobs), GRID, scenario, policy=policy, changes=changes, seed=seed
    )
    protocol = {
        name: getattr(scenario, name)
        for name in (
            *("cycle", "window", "interval", "discovery", "latency", "loss"),
            *("resend", "retry", "retries"),
        )
    }
    rules = {"mu": mu, "varpi": varpi, "promise_life": life}
    when = [(time, node, word == "join") for time, node, word in changes]
    near = [sorted(row) for row in near]
    model = Model(jobs, NODES, near, {**protocol, "seed": seed}, rules, when, policy)
    model.run()
    found = run.jobs["start"]
    assert {j: t for j, t in enumerate(found.tolist()) if t == t} == model.start
    where = {j: int(run.jobs["node"][j]) for j in model.start}
    assert where == model.ran_on
    assert {k: run.sent[k] + run.own[k] for k in run.sent} == {
        kind: model.sent.get(kind, 0) for kind in run.sent
    }
    check_conservation(run)
    assert run.counts["promises"] == 0
    assert run.counts["shadow_load"] == 0


@settings(max_examples=settings().max_examples // 15)
@given(
    seed=st.integers(0, 50),
    changes=st.lists(
        st.tuples(
            st.floats(0, 40_000), st.integers(0, 25), st.sampled_from(["leave", "join"])
        ),
        max_size=40,
    ),
    loss=st.sampled_from([0, 0.2, 0.6]),
    law=st.sampled_from(["constant", "exponential"]),
    neighbours=st.sampled_from(["all", 1, 6]),
    latency=st.sampled_from([0, 0.1, 30]),
)
def test_nothing_is_lost_when_nodes_leave_and_messages_are_lost(
    seed: int,
    changes: list[Any],
    loss: float,
    law: Any,
    neighbours: Any,
    latency: float,
) -> None:
    jobs, nodes = sk.generate_community("heavy", jobs=300, seed=seed)
    scenario = sk.Community(
        neighbours, loss=loss, latency=latency, latency_law=law, retries=2
    )
    run = sk.simulate_community(jobs, nodes, scenario, changes=changes, seed=seed)
    check_conservation(run)
    assert run.counts["promises"] == 0
    assert run.counts["shadow_load"] == 0
    again = sk.simulate_community(jobs, nodes, scenario, changes=changes, seed=seed)
    for name in run.jobs.dtype.names:  # padding bytes may differ
        assert run.jobs[name].tobytes() == again.jobs[name].tobytes()
    for name in ("ind", "cen"):
        other = sk.simulate_community(jobs, nodes, name, changes=changes)
        check_conservation(other)


def test_a_node_that_leaves_hands_over_its_queue() -> None:
    jobs = {
        "submit": [0.0, 1.0, 2.0],
        "run": [1000.0, 1000.0, 1000.0],
        "processors": [4, 4, 4],
        "home": [0, 0, 0],
    }
    grid = {"processors": [4, 4]}
    near: list[list[int]] = [[], [0]]  # node 0 has no neighbours
    stay = sk.Community(near, cycle=0, window=1, interval=float("inf"))
    alone = sk.simulate_community(jobs, grid, stay)
    assert alone.jobs["start"].tolist() == [1.0, 1001.0, 2001.0]
    left = sk.simulate_community(jobs, grid, stay, changes=[(500, 0, "leave")])
    assert left.failures() == {"stranded": 2}
    both = sk.Community("all", cycle=0, window=1, interval=float("inf"))
    gone = [(500, 0, "leave"), (0, 1, "leave"), (400, 1, "join")]
    moved = sk.simulate_community(jobs, grid, both, changes=gone)
    assert len(moved.completed) == 3
    assert moved.jobs["node"].tolist() == [0, 1, 1]
    assert moved.jobs["moves"].tolist() == [0, 1, 1]


def test_jobs_wait_for_a_node_that_returns() -> None:
    """In Ind and Cen, as in a community, jobs wait if no other node can run them."""
    jobs = {
        "submit": [0.0, 1.0, 20.0],
        "run": [10.0, 10.0, 10.0],
        "processors": [4, 4, 4],
        "home": [0, 0, 0],
    }
    grid = {"processors": [4, 2]}
    changes = [(5, 0, "leave"), (100, 0, "join")]
    for scenario in ("ind", *map(sk.Centralized, FALLBACKS)):  # type: ignore[arg-type]
        run = sk.simulate_community(jobs, grid, scenario, changes=changes)
        assert run.jobs["start"].tolist() == [0.0, 100.0, 110.0], scenario
        gone = sk.simulate_community(jobs, grid, scenario, changes=changes[:1])
        stranded = {"ind": 2, "most-free": 1, "least-load": 1}
        name = getattr(scenario, "fallback", scenario)
        reasons = {"stranded": stranded.get(name, 0)}
        reasons["no node"] = 2 - reasons["stranded"]
        assert gone.failures() == {why: n for why, n in reasons.items() if n}, scenario


def test_a_job_that_waits_for_a_node_does_not_block_the_central_queue() -> None:
    jobs = {"submit": [0.0, 1.0], "run": [1.0, 1.0], "processors": [4, 1], "home": 0}
    grid = {"processors": [4, 2]}
    first = sk.Centralized("central-fcfs")
    run = sk.simulate_community(jobs, grid, first, changes=[(9, 0, "join")])
    assert run.jobs["start"].tolist() == [9.0, 1.0]


def preferring(jobs: Any, nodes: int, seed: int) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random((len(jobs["submit"]), nodes)) < 0.5


@given(jobs=flows(), seed=st.integers(0, 99), moves=st.booleans())
def test_nodes_may_decline(jobs: list[tuple[Any, ...]], seed: int, moves: bool) -> None:
    """No job runs on a node that declined it."""
    given = columns(jobs)
    willing = preferring(given, len(NODES), seed)
    scenario = sk.Community(willing=willing, mu=0, varpi=0, interval=8, cycle=0)
    changes = [(30.0, 4, "leave"), (40.0, 2, "leave")] if moves else []
    run = sk.simulate_community(given, GRID, scenario, changes=changes)
    check_conservation(run)
    node = run.jobs["node"][run.completed]
    assert willing[run.completed, node].all()
    for job in np.flatnonzero(np.array(run.fates)[run.jobs["fate"]] == "no offer"):
        could = [
            k
            for k, (size, _, label) in enumerate(NODES)
            if jobs[job][3] <= size and jobs[job][5] in (-1, label)
        ]
        assert moves or not willing[job, could].any()


def test_a_compiled_function_may_decline() -> None:
    jobs, nodes = sk.generate_community(jobs=500, seed=3)
    jobs = jobs[::-1].copy()  # rows refer to the given jobs, which are not sorted
    first = jobs["submit"].min()
    odd = jobs["processors"] % 2 == 1

    def by_day(now: float, job: int, node: int) -> bool:
        return bool((node < 20 or odd[job]) and now >= first)

    table = np.ones((len(jobs), len(nodes)), np.bool_)
    table[:, 20:] = odd[:, None]
    runs = [
        sk.simulate_community(jobs, nodes, sk.Community("all", willing=willing))
        for willing in (by_day, table, None)
    ]
    for name in runs[0].jobs.dtype.names or ():
        assert runs[0].jobs[name].tobytes() == runs[1].jobs[name].tobytes()
    assert runs[0].sent == runs[1].sent
    assert runs[0].sent["accept_request"] < runs[2].sent["accept_request"]
    nobody = sk.Community("all", willing=lambda now, job, node: now < 0)
    assert sk.simulate_community(jobs, nodes, nobody).failures() == {"no offer": 500}


def test_invalid_preferences_are_refused() -> None:
    jobs = {"submit": [0.0], "run": [1.0], "processors": [1], "home": [0]}
    grid = {"processors": [1, 1]}
    for wrong in ([[1, 0]], [True], "all"):
        with pytest.raises(TypeError, match="willing must be a function or an array"):
            sk.Community(willing=wrong)
    shape = sk.Community(willing=[[True]])
    with pytest.raises(ValueError, match=r"shape \(1, 1\), but there are 1 jobs and 2"):
        sk.simulate_community(jobs, grid, shape)

    def open_door(now: float, job: int, node: int) -> Any:
        return open(node)

    with pytest.raises(ValueError, match="willing: numba cannot compile it"):
        sk.simulate_community(jobs, grid, sk.Community(willing=open_door))
