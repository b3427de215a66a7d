"""Jobs of several parts against brute force, and what their results promise."""

import json
import pickle
import random
import re
from itertools import pairwise

import numpy as np
import pytest
from compound import (
    CRITERIA,
    GRID,
    INF,
    SHAPES,
    best,
    check_plan,
    earliest_finish,
    possible_starts,
    random_chain,
    random_request,
    random_slots,
    random_together,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern.compound.assignment import assign

seeds = st.integers(0, 2**32).map(random.Random)
fewer = settings(max_examples=settings.default.max_examples // 5)


def searched(rnd, slots):
    """Return what is searched, an array or a changed pool, and its free slots."""
    if rnd.random() < 0.5:
        return slots, slots
    pool = sk.SlotPool(slots)
    for _ in range(rnd.randint(0, 3)):
        earliest = rnd.choice((0, 2, 5))
        window = pool.find(sk.Request(1, rnd.choice((1, 2)), earliest=earliest))
        if window is not None:
            pool.book(window)
    if rnd.random() < 0.3:
        pool.advance(rnd.choice((0.5, 1, 3)))
    return pool, pool.slots


def rows_as_in(free, plan, slots):
    """Assert that the rows of a plan are those of the searched array."""
    for window in plan:
        for part in window.slots:
            assert slots[part["row"]]["node"] == part["node"]


def check_roles(rnd, overlapping):
    slots = random_slots(rnd)
    target, free = searched(rnd, slots)
    job = random_together(rnd, overlapping)
    shape = rnd.choice(SHAPES)
    for criterion in CRITERIA:
        plan = sk.find_window(target, job, criterion, shape=shape)
        expected = best(free, job, criterion, shape)
        assert (plan is None) == (expected is None)
        if plan is not None:
            assert (plan.value(criterion), plan.start, plan.cost) == expected
            assert plan.proven
            rows_as_in(free, plan, slots)
            if target is slots:
                check_plan(slots, job, plan, shape)


@fewer
@given(seeds)
def test_roles_on_different_nodes_equal_all_disjoint_sets(rnd):
    check_roles(rnd, overlapping=False)


@fewer
@given(seeds)
def test_roles_on_common_nodes_equal_all_disjoint_sets(rnd):
    check_roles(rnd, overlapping=True)


@fewer
@given(seeds)
def test_any_of_takes_the_first_best_option(rnd):
    target, free = searched(rnd, random_slots(rnd))
    options = [
        random_request(rnd) if rnd.random() < 0.6 else random_together(rnd)
        for _ in range(rnd.randint(1, 3))
    ]
    job, shape = sk.AnyOf(options), rnd.choice(SHAPES)
    for criterion in CRITERIA:
        plan = sk.find_window(target, job, criterion, shape=shape)
        expected = best(free, job, criterion, shape)
        assert (plan is None) == (expected is None)
        if plan is not None:
            assert (plan.value(criterion), plan.option) == (expected[0], expected[3])


@fewer
@given(seeds)
def test_chains_equal_all_pairs_on_a_fine_grid(rnd):
    slots = random_slots(rnd, nodes=(1, 3), horizon=10)
    target, free = searched(rnd, slots)
    job, shape = random_chain(rnd), rnd.choice(SHAPES)
    plan = sk.find_window(target, job, shape=shape)
    expected = earliest_finish(free, job, shape)
    assert (INF if plan is None else plan.finish) == expected
    if plan is not None and target is slots:
        check_plan(slots, job, plan, shape)


@fewer
@given(seeds)
def test_starts_are_those_of_all_windows(rnd):
    target, free = searched(rnd, random_slots(rnd))
    request, shape = random_request(rnd), rnd.choice(SHAPES)
    found = sk.starts(target, request, shape=shape)
    spans = found.tolist()
    inside = [t for t in GRID if any(a <= t <= b for a, b in spans)]
    assert inside == possible_starts(free, request, shape)
    assert all(b < c for (_, b), (c, _) in pairwise(spans))
    assert np.array_equal(sk.SlotPool(free).starts(request, shape=shape), found)


def test_a_slot_as_long_as_the_part_has_one_start():
    rnd = random.Random(2)
    for _ in range(200):
        start, length = rnd.random(), rnd.random()
        slots = sk.make_slots(
            node=[0, 1],
            start=[start, 0],
            end=[start + length, 9],
            performance=1,
            price=1,
        )
        part = sk.Request(1, length, where="node == 0")
        ((first, last),) = sk.starts(slots, part).tolist()
        assert (first, last) == (start, pytest.approx(start))
        assert first <= last
        chain = sk.Chain([part, sk.Request(1, 1)], gap=(0, 5))
        assert sk.find_window(slots, chain).start == start


@fewer
@given(seeds)
def test_the_order_of_roles_does_not_matter(rnd):
    slots, shape = random_slots(rnd), rnd.choice(SHAPES)
    job = random_together(rnd, overlapping=rnd.random() < 0.5)
    other = job.replace(roles=job.roles[::-1])
    for criterion in CRITERIA:
        one, two = (
            sk.find_window(slots, j, criterion, shape=shape) for j in (job, other)
        )
        assert (one is None) == (two is None)
        if one is not None:
            assert (one.value(criterion), one.start, one.cost) == (
                two.value(criterion),
                two.start,
                two.cost,
            )


@fewer
@given(seeds)
def test_a_job_of_one_part_is_its_request(rnd):
    slots, shape = random_slots(rnd), rnd.choice(SHAPES)
    request = random_request(rnd)
    for criterion in CRITERIA:
        window = sk.find_window(slots, request, criterion, shape=shape)
        for job in (sk.Together([request]), sk.AnyOf([request])):
            plan = sk.find_window(slots, job, criterion, shape=shape)
            assert (plan is None) == (window is None)
            if plan is not None:
                assert plan.finish == window.finish or criterion == "cost"
                assert (plan.start, plan.cost) == (window.start, window.cost)
                assert plan[0].nodes == window.nodes


@fewer
@given(seeds)
def test_a_chain_without_upper_gap_takes_each_earliest_finish(rnd):
    slots, shape = random_slots(rnd), rnd.choice(SHAPES)
    stages = [random_request(rnd), random_request(rnd)]
    plan = sk.find_window(slots, sk.Chain(stages), shape=shape)
    first = sk.find_window(slots, stages[0], shape=shape)
    second = None
    if first is not None and first.finish <= min(stages[1].latest, stages[1].deadline):
        after = max(first.finish, stages[1].earliest)
        second = sk.find_window(slots, stages[1].replace(earliest=after), shape=shape)
    assert (plan is None) == (second is None)
    if plan is not None:
        assert list(plan) == [first, second]


def test_assignment_moves_nodes_along_chains_of_roles():
    costs = [{0: 1.0, 1: 5.0}, {0: 2.0, 2: 9.0}, {1: 1.0, 2: 1.0}]
    assert assign([1, 1, 1], costs) == [[1], [0], [2]]
    assert assign([1, 2, 1], costs) is None


@pytest.fixture
def slots():
    return sk.make_slots(
        node=range(6),
        start=[0, 0, 0, 0, 2, 3],
        end=40,
        performance=1,
        price=[1, 2, 3, 4, 5, 6],
        kind=["cpu"] * 4 + ["gpu"] * 2,
    )


def coupled(**more):
    return sk.Together(
        {
            "solver": sk.Request(3, 4, where="kind == 'cpu'"),
            "viewer": sk.Request(1, 6, where="kind == 'gpu'"),
        },
        **more,
    )


def test_plan_describes_itself(slots):
    plan = sk.find_window(slots, coupled(name="job"), "start")
    assert plan.roles == ("solver", "viewer")
    assert (plan.start, plan.finish, plan.runtime, plan.cost) == (2, 8, 6, 54)
    assert plan.processor_time == 18
    assert plan.role("viewer").nodes == (4,)
    assert [window.name for window in plan] == ["job", "job"]
    assert repr(plan) == (
        "Plan(start: start=2, finish=8, cost=54, solver=[0, 1, 2], viewer=[4])"
    )
    with pytest.raises(KeyError, match="no role 'view'"):
        plan.role("view")
    assert "viewer" in plan._repr_html_()
    assert plan.to_pandas()["role"].tolist() == ["solver"] * 3 + ["viewer"]


def test_plan_survives_json_and_pickle(slots):
    job = sk.Chain([coupled(), sk.AnyOf([sk.Request(9, 1), sk.Request(1, 2)])])
    plan = sk.find_window(slots, job)
    assert plan.option == 1
    assert plan.roles == ("stage 1/solver", "stage 1/viewer", "stage 2")
    assert sk.Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert pickle.loads(pickle.dumps(job)) == job
    with pytest.raises(ValueError, match="it has no 'windows'"):
        sk.Plan.from_dict({})


def test_pool_books_and_releases_a_plan_whole(slots):
    pool = sk.SlotPool(slots)
    plan = pool.find(coupled(name="job"), "start")
    pool.book(plan, "alice")
    assert len(pool.bookings()) == 2
    with pytest.raises(ValueError, match="is not free"):
        pool.book(plan)
    assert len(pool.booked) == 4
    pool.release(plan)
    assert pool.slots.tolist() == slots.tolist()
    pool.book(plan, "alice")
    pool.release("alice", name="job")
    assert pool.slots.tolist() == slots.tolist()


def test_no_part_of_a_plan_stays_booked_if_one_is_not_free(slots):
    pool = sk.SlotPool(slots)
    plan = pool.find(coupled(), "start")
    pool.book(plan[1])
    with pytest.raises(ValueError, match="is not free"):
        pool.book(plan)
    assert len(pool.booked) == 1


def test_filters_on_time_use_the_free_slots_of_now(slots):
    pool = sk.SlotPool(slots)
    pool.book(pool.find(sk.Request(1, 5, where="kind == 'gpu'"), "start"))
    job = sk.Together([sk.Request(1, 2, where="start >= 7"), sk.Request(1, 2)])
    plan = pool.find(job, "start")
    assert (plan.start, plan[0].nodes) == (7, (4,))
    assert sk.starts(pool, sk.Request(1, 2, where="start >= 7")).tolist() == [(7, 38)]


def test_dates_and_durations(slots):
    clock = sk.Clock("2026-10-25 08:00", zone="UTC", unit="h")
    pool = sk.SlotPool(slots, clock=clock)
    job = sk.Chain(
        [
            sk.Request(2, walltime="2:00:00", name="a"),
            sk.Request(1, walltime="1:00:00"),
        ],
        gap=("30min", "2h"),
    )
    plan = pool.find(job)
    assert [window.start for window in plan] == [0, 2.5]
    assert plan.start_time.hour == 8
    starts = pool.starts(sk.Request(2, walltime="2:00:00", latest="2026-10-25 12:00"))
    assert starts["last"].tolist() == [4.0]
    assert starts["last_time"][0].startswith("2026-10-25T12:00")
    with pytest.raises(
        ValueError, match=r"gap is '30min', but these slots have no clock"
    ):
        sk.find_window(slots, job.replace(stages=[sk.Request(1, 1)] * 2))
    with pytest.raises(ValueError, match="least gap exceeds"):
        pool.find(job.replace(gap=("3h", "2h")))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sk.Together([]), "needs at least one role"),
        (lambda: sk.Together(sk.Request(1, 1)), "needs a list of roles, got Request"),
        (
            lambda: sk.Together([sk.AnyOf([sk.Request(1, 1)])]),
            "Together, role 1 has type AnyOf; allowed: Request",
        ),
        (
            lambda: sk.AnyOf([sk.Chain([sk.Request(1, 1)])]),
            "AnyOf, option 1 has type Chain; allowed: Request, Together",
        ),
        (lambda: sk.Together([sk.Request(1, 1)], budget=-1), "budget must not be neg"),
        (lambda: sk.AnyOf([sk.Request(1, 1)], name=""), "name must be text"),
        (lambda: sk.Chain([sk.Request(1, 1)] * 2, gap=(3, 1)), "least gap exceeds"),
        (lambda: sk.Chain([sk.Request(1, 1)] * 2, gap=-1), "gap must not be negative"),
        (lambda: sk.Chain([sk.Request(1, 1)] * 2, gap=[1, 2]), "gap has 2 entries"),
        (lambda: sk.Chain([sk.Request(1, 1)] * 2, gap="soon"), "gap"),
    ],
)
def test_invalid_jobs_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    ("job", "options", "message"),
    [
        (sk.AnyOf([sk.Request(1, 1)]), {"criterion": "first"}, "must be one of start"),
        (
            sk.AnyOf([sk.Request(1, 1)]),
            {"criterion": "finsh"},
            "did you mean 'finish'",
        ),
        (
            sk.Chain([sk.Request(1, 1)]),
            {"criterion": "cost"},
            "planned by criterion 'finish' only",
        ),
        (
            sk.AnyOf([sk.Request(1, 1)]),
            {"method": "lite"},
            "method='lite' is for single",
        ),
        (sk.AnyOf([sk.Request(1, 1)]), {"shape": "round"}, "shape must be one of"),
        ("job", {}, "request must be a Request, AnyOf, Together or Chain, got str"),
        (
            sk.Together([sk.Request(1, 1, budget=3), sk.Request(1, 1)]),
            {},
            "'role 1' has a budget of its own",
        ),
        (
            sk.Chain(
                [sk.Request(1, 1, limits="sum(price) <= 3"), sk.Request(1, 1)],
                gap=(0, 0),
            ),
            {},
            "has limits, but the gap after it",
        ),
        (
            sk.Chain(
                [sk.Together([sk.Request(1, 1)] * 2), sk.Request(1, 1)], gap=(0, 0)
            ),
            {},
            "has roles with common candidate nodes",
        ),
    ],
)
def test_searches_that_are_not_supported_are_refused(slots, job, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sk.find_window(slots, job, **options)


def test_searches_of_single_requests_name_the_search_for_the_others(slots):
    for search in (sk.find_alternatives, sk.pareto, sk.starts):
        message = f"{search.__name__} takes a Request, got Together; find_window plans"
        with pytest.raises(TypeError, match=message):
            search(slots, coupled())
    with pytest.raises(TypeError, match=r"requests\[0\] must be a Request, got Toge"):
        sk.find_windows(slots, [coupled()])


@pytest.mark.parametrize("field", [{"account": "u"}, {"uses": "matlab=1"}])
def test_fields_that_no_part_supports_are_refused_by_their_name(slots, field):
    part = sk.Request(1, 1, name="solver", **field)
    message = f"^solver: a job of several parts does not support {next(iter(field))}="
    for kind in (sk.AnyOf, sk.Together, sk.Chain):
        with pytest.raises(ValueError, match=message):
            sk.find_window(slots, kind([part, part]))
    roles = [sk.Request(1, 1, within="rack"), sk.Request(1, 1)]
    with pytest.raises(ValueError, match=r"within of its own.* share no node$"):
        sk.find_window(slots, sk.Together(roles))


def test_an_error_of_roles_has_the_volume_of_the_role_that_is_refused():
    slots = sk.make_slots(
        node=[0, 1], start=0, end=1e17, performance=1, price=1, kind=["a", "b"]
    )
    roles = [
        sk.Request(1, 4, where="kind == 'a'"),
        sk.Request(1, 1e-3, where="kind == 'b'", earliest=1e16),
    ]
    for order in (roles, roles[::-1]):
        with pytest.raises(ValueError, match=r"volume 0\.001 "):
            sk.find_window(slots, sk.Together(order), "start")


def test_a_long_stage_before_a_short_gap_is_found_beside_large_times():
    slots = sk.make_slots(
        node=[0, 1],
        start=[-1e9, 0],
        end=[1e9, 10],
        performance=1,
        price=1,
        kind=["a", "b"],
    )
    for k in range(1, 30):
        first = sk.Request(1, 1e9 / (3 + k / 7), where="kind == 'a'")
        last = sk.Request(1, 1, where="kind == 'b'")
        plan = sk.find_window(slots, sk.Chain([first, last], gap=(0, k / 31)))
        assert plan[1].start == 0
        assert plan[0].finish <= 0
        assert plan[0].finish == pytest.approx(-k / 31, abs=1e-6)


def test_roles_keep_their_group_rules(slots):
    racks = sk.make_slots(
        node=range(6),
        start=[0, 0, 0, 0, 2, 3],
        end=40,
        performance=1,
        price=[1, 2, 3, 4, 5, 6],
        rack=["a", "a", "b", "b", "b", "b"],
        kind=["cpu"] * 4 + ["gpu"] * 2,
    )
    roles = coupled().roles
    near = [roles[0].replace(nodes=2, within="rack", limits=()), roles[1]]
    for target in (racks, sk.SlotPool(racks)):
        plan = sk.find_window(target, sk.Together(near), "cost")
        assert plan[0].nodes == (0, 1)
        spread = near[0].replace(within=None, limits="distinct(rack) >= 2")
        plan = sk.find_window(target, sk.Together([spread, roles[1]]), "start")
        assert plan[0].nodes == (0, 2)
        starts = sk.starts(target, spread)
        assert starts.tolist() == [(0, 36)]
    both = sk.Together([near[0].replace(where=None), roles[1]])
    with pytest.raises(ValueError, match="'solver' has within of its own"):
        sk.find_window(racks, both)
    chain = sk.Chain([near[0], roles[1]], gap=(0, 0))
    with pytest.raises(ValueError, match="has within, but the gap after it"):
        sk.find_window(racks, chain)


def test_tariffs_refuse_what_is_not_compared_between_starts():
    slots = sk.make_slots(
        node=[0, 1], start=0, end=48, performance=1, price=1, tariff="t", kind=[0, 1]
    )
    clock = sk.Clock("2026-10-26 00:00", zone="UTC", unit="h")
    tariff = sk.Tariff.daily(
        {"00:00": 1, "12:00": 2}, clock=clock, start="2026-10-26", end="2026-10-28"
    )
    pool = sk.SlotPool(slots, clock=clock, tariffs={"t": tariff})
    job = sk.Together([sk.Request(1, 2, where=f"kind == {k}") for k in (0, 1)])
    assert pool.find(job, "start").start == 0
    for other, criterion in ((job, "cost"), (job.replace(budget=9), "start")):
        with pytest.raises(ValueError, match="under tariffs, Together"):
            pool.find(other, criterion)
    with pytest.raises(ValueError, match="under tariffs, the starts"):
        pool.starts(sk.Request(1, 2, budget=3))
    any_of = sk.AnyOf([sk.Request(2, 4), sk.Request(1, 8)])
    assert pool.find(any_of, "cost").cost == 8


def test_explanations_name_the_part_to_blame(slots):
    why = sk.explain(slots, coupled(budget=10))
    assert (why.fits, why.cheapest, why.blame) == (False, 54, [])
    assert "cost at least 54; their common budget is 10" in str(why)
    late = sk.Together(
        {"a": sk.Request(6, 3), "b": sk.Request(1, 3), "c": sk.Request(1, 3)}
    )
    why = sk.explain(slots, late)
    assert why.blame == ["a"]
    assert "without role 'a' the others fit" in str(why)
    why = sk.explain(
        slots, sk.AnyOf({"wide": sk.Request(9, 1), "long": sk.Request(1, 99)})
    )
    assert why.blame == ["wide", "long"]
    assert "option 'wide' by itself" in str(why)
    chain = sk.Chain(
        [sk.Request(1, 2, latest=1), sk.Request(1, 2, earliest=20)], gap=(0, 3)
    )
    why = sk.explain(slots, chain)
    assert (why.blame, why.reached) == (["gap 1"], 1)
    assert "without the upper limit of gap 1 the chain fits" in str(why)
    assert json.loads(json.dumps(why.to_dict()))["blame"] == ["gap 1"]
    assert sk.explain(slots, coupled()).fits
    with pytest.raises(sk.NoWindowError, match="does not fit"):
        sk.find_window(slots, late, required=True)


def test_pictures_label_roles(slots):
    pytest.importorskip("matplotlib")
    from slotkern.plotting.layout import name_windows

    plan = sk.find_window(slots, coupled(name="job"), "start")
    assert list(name_windows(plan)) == ["solver", "viewer"]
    figure = plan.plot()
    texts = " ".join(text.get_text() for ax in figure.axes for text in ax.texts)
    assert "viewer" in texts
    page = sk.view(slots, plan)
    assert re.search("plan|viewer", page.html if hasattr(page, "html") else str(page))
