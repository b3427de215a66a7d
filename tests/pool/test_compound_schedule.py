"""Queues and tables of jobs of several parts."""

import pickle
from typing import Any

import pytest
from command_line import run

import slotkern as sk
from slotkern.compound import schedule


@pytest.fixture
def pool():
    return sk.SlotPool(
        sk.make_slots(
            node=range(4),
            start=0,
            end=30,
            performance=1,
            price=[1, 2, 3, 4],
            kind=["cpu"] * 3 + ["gpu"],
        )
    )


JOBS = [
    sk.Request(2, 5, name="plain"),
    sk.Chain(
        [sk.Request(1, 2, name="prepare"), sk.Request(3, 4, name="train")], name="learn"
    ),
    sk.AnyOf([sk.Request(9, 1), sk.Request(4, 2)], name="either"),
    sk.Together(
        {
            "solver": sk.Request(2, 3, where="kind == 'cpu'"),
            "viewer": sk.Request(1, 3, where="kind == 'gpu'"),
        },
        name="coupled",
    ),
    sk.Together([sk.Request(3, 1), sk.Request(2, 1)], name="wide"),
    sk.Request(1, 3, name="last"),
]


def test_queue_equals_finding_and_booking_one_by_one(pool):
    other = pool.copy()
    done = pool.schedule(JOBS, owner="alice")
    for job, window in zip(JOBS, done, strict=True):
        criterion = "finish" if isinstance(job, sk.Chain) else "start"
        expected = other.find(job, criterion)
        assert window == expected
        if expected is not None:
            other.book(expected)
    assert pool.slots.tolist() == other.slots.tolist()
    assert len(done) == len(JOBS)
    assert done.reasons == ["booked"] * 4 + ["nodes", "booked"]
    assert sorted(done.plans) == [1, 2, 3]
    assert done.names == [job.name for job in JOBS]
    assert set(pool.owners) == {"alice"}


def test_bookings_have_roles_and_options(pool):
    done = pool.schedule(JOBS)
    chain = done.parts[done.first[1] : done.first[2]]
    assert chain["role"].tolist() == ["prepare", "train", "train", "train"]
    assert chain["start"].tolist() == [0, 5, 5, 5]
    assert (done.start[1], done.finish[1], done.runtime[1]) == (0, 9, 9)
    assert set(done.parts["option"][done.first[2] : done.first[3]]) == {1}
    listing = done.listing()
    assert listing["role"].tolist() == [
        *("", "prepare", "train", "option 2", "solver", "viewer", "", "")
    ]
    assert listing["name"].tolist() == [
        *("plain", "learn", "learn", "either", "coupled", "coupled", "wide", "last")
    ]
    assert listing["option"].tolist() == ["", "", "", "1", "", "", "", ""]
    again = pickle.loads(pickle.dumps(done))
    assert again == done
    assert again.plans == done.plans
    assert done[1:3].plans == {0: done[1], 1: done[2]}
    assert "booked" in done._repr_html_()


def test_pictures_name_jobs_and_roles(pool):
    from slotkern.plotting.layout import name_windows

    done = pool.schedule(JOBS[:3])
    assert list(name_windows(done)) == [
        *("plain", "learn, prepare", "learn, train", "either, option 2")
    ]
    assert "learn" in sk.view(pool, done)._repr_html_()


def test_errors_come_before_bookings_and_carry_what_was_booked(pool):
    with pytest.raises(TypeError, match=r"requests\[2\] must be a Request, AnyOf"):
        pool.schedule([*JOBS[:2], "job"])
    with pytest.raises(ValueError, match="planned by criterion 'finish' only"):
        pool.schedule(JOBS, "cost")
    for late, message in (
        (sk.Request(1, 1, where="start > 3"), r"^requests\[3\]: a filter must be"),
        (sk.Request(1, 1, where="kin == 'cpu'"), r"^requests\[3\]: .* no column 'kin'"),
        (sk.Request(1, 1, uses="matlab=1"), "uses: the pool has no capacity 'matlab'"),
        (sk.AnyOf([sk.Request(1, 1, where="kin > 3")]), r"^requests\[3\]: .*'kin'"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            pool.schedule([*JOBS[:3], late])
        assert not len(caught.value.bookings)
    assert not len(pool.booked)
    bad = sk.Together([sk.Request(1, 1, budget=3), sk.Request(1, 1)])
    with pytest.raises(ValueError, match="budget of its own") as caught:
        pool.schedule([JOBS[0], bad])
    assert len(caught.value.bookings) == 1
    assert len(pool.booked) == 2


TABLE = {
    "name": ["prepare", "train", "long", "wide", "solver", "viewer", "plain"],
    "nodes": [1, 3, 1, 4, 2, 1, 1],
    "volume": [2, 4, 9, 3, 3, 3, 5],
    "after": [None, "prepare", None, None, None, None, None],
    "any_of": [None, None, "shape", "shape", None, None, None],
    "together": [None, None, None, None, "coupled", "coupled", None],
    "where": [None, None, None, None, "kind == 'cpu'", "kind == 'gpu'", None],
}


def test_tables_make_jobs_of_rows(pool):
    done = pool.schedule(TABLE)
    assert len(done) == 4
    expected = pool.copy()
    kinds = [type(window).__name__ for window in done]
    assert kinds == ["Plan", "Plan", "Plan", "Window"]
    assert done[0].roles == ("prepare", "train")
    assert done[1].option in (0, 1)
    assert done[1].name == "shape"
    assert done[2].roles == ("solver", "viewer")
    assert len(expected.booked) == len(done.parts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"after": [None, "prepar", *[None] * 5]}, "row 1, column 'after': no job has"),
        ({"after": ["train", "prepare", *[None] * 5]}, "follow each other in a cycle"),
        (
            {"after": [None, "prepare", None, None, None, None, "prepare"]},
            "row 6, column 'after': 'prepare' is followed by the job of row 1 already",
        ),
        (
            {"after": [None, "prepare", None, "prepar", None, None, None]},
            "row 3, column 'after': no job has the name 'prepar'",
        ),
        ({"role": ["x", *[None] * 6]}, "row 0, column 'role': 'x' labels a part"),
        (
            {"together": ["shape", None, None, None, "coupled", "coupled", None]},
            "row 2, column 'any_of': some rows of 'shape'",
        ),
        ({"nodse": [1] * 7}, "unknown column 'nodse'"),
    ],
)
def test_tables_with_faults_are_refused(pool, changes, message):
    with pytest.raises(ValueError, match=message):
        pool.schedule(TABLE | changes)
    assert not len(pool.booked)


def test_a_chain_with_a_stage_of_too_many_nodes_is_listed_by_its_stages():
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
    table = {"name": ["a", "b"], "nodes": [1, 3], "volume": 1, "after": [None, "a"]}
    done = sk.SlotPool(slots).schedule(table).listing()
    assert done[["name", "reason"]].tolist() == [("a, b", "nodes")]
    why = sk.explain(slots, sk.Chain([sk.Request(1, 1), sk.Request(3, 1)]))
    assert "stage 2 by itself:" in str(why).splitlines()


def test_batches_refuse_the_columns_of_several_parts(pool):
    table = {"nodes": [1], "volume": [1], "after": [None]}
    with pytest.raises(ValueError, match="'after' makes jobs of several parts"):
        sk.schedule_batch(pool, table)


def test_commands_plan_tables_and_list_starts(tmp_path, pool):
    pool.save(tmp_path / "pool.npz")
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,nodes,volume,after\nprepare,1,2,\ntrain,3,4,prepare\n")
    shown = run("schedule", tmp_path / "pool.npz", jobs)
    assert "1 of 1 jobs booked" in shown.stdout
    assert "train" in shown.stdout
    assert "role" in shown.stdout
    shown = run("starts", tmp_path / "pool.npz", "--nodes", "4", "--volume", "9")
    assert "first start" in shown.stdout
    assert "21" in shown.stdout
    shown = run("starts", tmp_path / "pool.npz", "--nodes", "5", "--volume", "9")
    assert shown.exit_code == 1
    assert "No window fits" in shown.stdout


def test_batches_refuse_jobs_of_several_parts(pool):
    with pytest.raises(TypeError, match="must be a Request, got Chain"):
        sk.schedule_batch(pool, [JOBS[1]])


def test_a_booking_between_search_and_booking_is_searched_again(monkeypatch) -> None:
    slots = sk.make_slots(node=range(4), start=0, end=20, performance=1, price=1)
    pool = sk.SlotPool(slots)
    job = sk.AnyOf([sk.Request(3, 4), sk.Request(2, 6)])
    others = [sk.Request(3, 5)]

    def found_then_taken(*words: Any) -> Any:
        plan = find_best(*words)
        for other in others:
            pool.book(pool.find(other, "start"))
        others.clear()
        return plan

    find_best = schedule.find_best
    monkeypatch.setattr(schedule, "find_best", found_then_taken)
    (plan,) = pool.schedule([job], "start", owner="ann")
    assert plan.start == 5
    assert pool.windows("ann") == list(plan)
