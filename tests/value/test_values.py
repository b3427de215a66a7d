"""Windows by any additive criterion: exhaustive search, and the table."""

from __future__ import annotations

import itertools
import re

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SHAPES, Case, cases
from windows import (
    PAPER,
    PLACEMENTS,
    best_total,
    check_window,
    environment,
    farthest,
    judge,
    nearest,
    request_of,
    total,
)

import slotkern as sk


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(cases(), st.data())
def test_column_equals_exhaustive_search(case: Case, data):
    few = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.1, 0.3, 5.0])
    column = np.array(
        data.draw(st.lists(few, min_size=len(case.slots), max_size=len(case.slots)))
    )
    request = request_of(case)
    for shape in SHAPES:
        for sign, criterion in ((1, column), (-1, sk.minimize(column))):
            best = best_total(case, shape, lambda s, row, t, d: column[row], sign)
            window = sk.find_window(case.slots, request, criterion, shape=shape)
            value = None
            if window is not None:
                again = check_window(window, case, shape)
                value = oracle.add(column[row] for row in again.rows)
            judge(window, best, sign, value)


@settings(max_examples=2 * settings.default.max_examples // 3, deadline=None)
@given(cases())
def test_processor_time_equals_exhaustive_search(case: Case):
    request = request_of(case)
    for shape in SHAPES:
        best = best_total(case, shape, lambda s, row, t, d: d, -1)
        window = sk.find_window(case.slots, request, "processor_time", shape=shape)
        judge(window, best, -1, window and window.processor_time)
        if window is not None:
            check_window(window, case, shape)


def with_ends(case):
    """The same case with an end to every slot, which placement needs."""
    slots = case.slots.copy()
    endless = np.isinf(slots["end"])
    slots["end"][endless] = slots["start"][endless] + 4.0
    return Case(slots, case.request)


def short_enough(slots, request):
    """The slots that the most runtime leaves."""
    terms, most = oracle.terms_of(request), request.get("max_runtime", np.inf)
    lengths = [oracle.length_on(p, *terms) for p in slots["performance"].tolist()]
    return np.array(lengths, float) <= most


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(cases())
def test_placement_equals_exhaustive_search(case: Case):
    case = with_ends(case)
    proper = case.request.get("proper")
    if proper is not None:  # windows start at starts of slots that may be part of them
        case = Case(case.slots[proper].copy(), {**case.request, "proper": None})
    case.request.pop("proper", None)
    usable = (case.slots["performance"] >= case.request.get("min_performance", 0)) & (
        case.slots["price"] <= case.request.get("max_price", np.inf)
    )
    usable &= short_enough(case.slots, case.request)
    starts = {
        max(float(s), case.request.get("earliest", -np.inf))
        for s in case.slots["start"][usable]
    }
    request = request_of(case)
    nodes = case.request["nodes"]
    for shape in SHAPES:
        for criterion, distance, sign in (
            ("dependable", nearest, 1),
            ("coordinated", farthest, -1),
        ):
            values = [
                sign * total(distance, w, case.slots, shape, case.request)
                for w in oracle.all_windows(case.slots, shape, **case.request)
                if w.start in starts
            ]
            best = sign * max(values) / nodes if values else None
            window = sk.find_window(case.slots, request, criterion, shape=shape)
            value = None
            if window is not None:
                again = check_window(window, case, shape)
                value = total(distance, again, case.slots, shape, case.request) / nodes
            judge(window, best, sign, value)
            anywhere = sk.find_window(
                case.slots, request, criterion, shape=shape, placement="any"
            )
            if window is None:
                continue
            assert anywhere is not None
            check_window(anywhere, case, shape)
            assert anywhere.proven
            assert sign * anywhere.value >= sign * window.value - 1e-9


def anywhere_by_hand(slots, shape, distance, sign, request):
    """The best mean over all sets of slots and a fine choice of starts for each."""
    n, terms = request["nodes"], oracle.terms_of(request)
    best = -np.inf
    for rows in itertools.combinations(range(len(slots)), n):
        part = slots[list(rows)]
        if len(set(part["node"])) < n:
            continue
        length = np.array(
            [oracle.length_on(p, *terms) for p in part["performance"].tolist()]
        )
        if shape == "square":
            length[:] = length.max()
        low = max(part["start"].max(), request.get("earliest", -np.inf))
        ends = np.minimum(part["end"], request.get("deadline", np.inf))
        high = min((ends - length).min(), request.get("latest", np.inf))
        window = oracle.window_of(low, oracle.proper_slots(part), shape, *terms)
        met = oracle.met(window.cost, request.get("budget", np.inf))
        if not met or (low + length > ends).any():
            continue
        if low > request.get("latest", np.inf):
            continue
        middles = part["start"] + (part["end"] - part["start"] - length) / 2
        grid = np.linspace(low, max(low, high), 33)
        for t in [*grid, *middles[(middles > low) & (middles < high)]]:
            values = map(lambda k, t=t: distance(part, k, t, length[k]), range(n))
            best = max(best, sign * oracle.add(values) / n)
    return sign * best


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(cases())
def test_placement_anywhere_equals_exhaustive_search(case: Case):
    case = with_ends(case)
    wanted = dict(case.request)
    usable = case.slots["performance"] >= wanted.pop("min_performance", 0)
    usable &= case.slots["price"] <= wanted.pop("max_price", np.inf)
    proper = wanted.pop("proper", None)
    if proper is not None:
        usable &= proper
    usable &= short_enough(case.slots, wanted)
    slots = case.slots[usable].copy()
    # The best start, and the test of t + d, are each rounded by half an ulp.
    times = np.abs([slots["start"], slots["end"]]).max(initial=0)
    rounding = 2 * np.spacing(times)
    for shape in SHAPES:
        for criterion, distance, sign in (
            ("dependable", nearest, 1),
            ("coordinated", farthest, -1),
        ):
            best = anywhere_by_hand(slots, shape, distance, sign, wanted)
            window = sk.find_window(
                case.slots,
                request_of(case),
                criterion,
                shape=shape,
                placement="any",
            )
            assert (window is None) == np.isinf(best)
            if window is not None:
                assert window.value == pytest.approx(best, rel=1e-15, abs=rounding)


# --- middle-sized environments


@pytest.mark.parametrize("real", [False, True])
def test_steps_hold_the_best_window(real):
    for cycle in range(3):
        slots = environment(cycle, real=real)
        for criterion, pick in (("q", max), ("dependable", max), ("coordinated", min)):
            window = sk.find_window(slots, PAPER, criterion)
            starts, values = sk.step_values(slots, PAPER, criterion)
            assert (np.diff(starts) > 0).all()
            found = values[np.isfinite(values)]
            assert window.value == pytest.approx(pick(found), rel=1e-11)
            assert window.effort["subsets"] < window.effort["steps"]


def test_steps_without_a_proven_value_are_an_error():
    slots = sk.generate_environment("square", seed=1).slots
    hard = sk.Request(10, 800, budget=920)
    with pytest.raises(ValueError, match=r"more than 1,000 units of work .*max_work"):
        sk.step_values(slots, hard, "price", max_work=1000)
    cheap = sk.minimize("price")
    assert len(sk.step_values(slots, hard, cheap, max_work=1000)[0]) > 100


def test_exact_is_never_below_published():
    for cycle in range(2):
        slots = environment(cycle)
        for criterion, sign in (("q", 1), ("dependable", 1)):
            exact = sk.find_window(slots, PAPER, criterion)
            lite = sk.find_window(slots, PAPER, criterion, method="lite")
            published = sk.find_window(slots, PAPER, criterion, method="published")
            assert sign * exact.value >= sign * published.value - 1e-9
            assert sign * exact.value >= sign * lite.value - 1e-9
            assert exact.proven
            assert not published.proven
            assert not lite.proven
            assert oracle.met(published.cost, PAPER.budget)


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_published_table_equals_exact_for_integer_costs(shape):
    rng = np.random.default_rng(1)
    for _ in range(20):
        m = 12
        slots = sk.make_slots(
            node=np.arange(m),
            start=rng.integers(0, 10, m),
            end=rng.integers(30, 60, m),
            performance=rng.choice([1.0, 2.0], m),
            price=rng.integers(1, 9, m),
            q=rng.uniform(0, 10, m),
        )
        request = sk.Request(3, 10, budget=float(rng.integers(60, 200)))
        for criterion in ("q", sk.minimize("q"), "minimize(q)", slots["q"].copy()):
            exact = sk.find_window(slots, request, criterion, shape=shape)
            published = sk.find_window(
                slots, request, criterion, shape=shape, method="published"
            )
            assert (exact is None) == (published is None)
            if exact is not None:
                assert exact.value == pytest.approx(published.value, rel=1e-12)
                assert oracle.met(published.cost, request.budget)
                assert published.criterion == exact.criterion


def small_integers(rng, m=14):
    """Slots with integer costs: the published table is exact."""
    performance = rng.choice([1.0, 2.0, 4.0], m)
    start = rng.integers(0, 20, m)
    return sk.make_slots(
        node=np.arange(m),
        start=start,
        end=start + rng.integers(8, 40, m),
        performance=performance,
        price=rng.integers(1, 9, m),
        q=rng.uniform(0, 10, m),
    )


@pytest.mark.parametrize("criterion", ["q", *PLACEMENTS])
def test_group_spans_and_lite_are_the_published_ones(criterion):
    rng = np.random.default_rng(7)
    looser = 0
    for _ in range(150):
        slots = small_integers(rng)
        request = sk.Request(3, 8, budget=float(rng.integers(40, 150)))
        for method in ("exact", "lite"):
            twin = "published" if method == "exact" else "published-lite"
            theirs = sk.find_window(slots, request, criterion, method=twin)
            span = "window" if criterion == "q" else "group"
            mine = sk.find_window(slots, request, criterion, method=method, span=span)
            assert (mine is None) == (theirs is None)
            if mine is None:
                continue
            # The exact search also starts windows at slots outside the group or too
            # short for it; Lite uses the steps of the paper.
            ahead = mine.value - theirs.value
            ahead = -ahead if criterion == "coordinated" else ahead
            assert ahead >= -1e-9
            if method == "lite" or criterion == "q":
                assert ahead <= 1e-9
            assert oracle.met(mine.cost, request.budget)
            own = request.volume / slots["performance"][mine.slots["row"]].min()
            assert mine.runtime >= own
            looser += mine.runtime > own
            strict = sk.find_window(slots, request, criterion, method=method)
            if method == "exact" and strict is not None:
                assert strict.runtime == pytest.approx(
                    request.volume / slots["performance"][strict.slots["row"]].min()
                )
                better = mine.value - strict.value
                assert (-better if criterion == "coordinated" else better) >= -1e-9
    assert (looser > 0) == (criterion == "coordinated") or criterion == "dependable"


@sk.criterion(uses_start=True)
def used(slot, start, length):
    return start + length - slot.start


@pytest.mark.parametrize(
    ("criterion", "distance", "scale", "longer_is_better"),
    [
        ("dependable", nearest, 0.5, False),
        ("coordinated", farthest, -0.5, True),
        (used, lambda s, row, t, d: t + d - s["start"][row], 1, True),
    ],
)
def test_a_window_takes_its_own_time_among_many_slow_nodes(
    criterion, distance, scale, longer_is_better
):
    # With the length of the slow slots, fast sets would come closer to the next task.
    rng = np.random.default_rng(3)
    sign, looser = np.sign(scale), 0
    for _ in range(60):
        slots = small_integers(rng, 12)
        slots["performance"] = rng.choice([1.0, 1.0, 2.0], 12)
        request = sk.Request(2, 8, budget=float(rng.integers(40, 150)))
        best = -np.inf
        for rows in map(list, itertools.combinations(range(12), 2)):
            part = slots[rows]
            span = 8 / part["performance"].min()
            if not oracle.met(
                span * oracle.exact(part["price"].tolist()), request.budget
            ):
                continue
            for t in np.unique(slots["start"]):
                if (part["start"] <= t).all() and (t + span <= part["end"]).all():
                    worth = oracle.add(distance(slots, row, t, span) for row in rows)
                    best = max(best, scale * worth)
        window = sk.find_window(slots, request, criterion)
        assert (window is None) == np.isinf(best)
        if window is not None:
            assert window.value == pytest.approx(sign * best)
            loose = sk.find_window(slots, request, criterion, span="group")
            assert sign * (loose.value - window.value) >= -1e-9
            looser += sign * (loose.value - window.value) > 1e-9
    assert (looser > 5) == longer_is_better


def test_a_slow_slot_permits_others_its_length():
    # Node 2 can never win, but while it is free node 0 may use its length.
    slots = sk.make_slots(
        node=[0, 1, 2],
        start=[11, 5, 4],
        end=[30, 15, 63],
        performance=[2, 4, 1],
        price=[1, 2, 3],
    )
    request = sk.Request(1, 18, budget=29)
    for span, node, start, value in (("window", 1, 5, 5.5), ("group", 0, 11, 1)):
        window = sk.find_window(slots, request, "coordinated", span=span)
        assert window.slots["node"].tolist() == [node]
        assert (window.start, window.value) == (start, value)


def test_lite_reports_the_value_of_its_window():
    # The n cheapest of a group may all be faster than it: their own length counts.
    for cycle in range(3):
        slots = environment(cycle)
        for criterion, pick in (
            ("dependable", np.minimum),
            ("coordinated", np.maximum),
        ):
            window = sk.find_window(slots, PAPER, criterion, method="lite")
            rows, span = window.slots["row"], window.runtime
            assert span == PAPER.volume / slots["performance"][rows].min()
            before = window.start - slots["start"][rows]
            after = slots["end"][rows] - window.start - span
            assert window.value == pytest.approx(pick(before, after).mean())
            values = sk.step_values(slots, PAPER, criterion, method="lite")[1]
            best = values.max() if criterion == "dependable" else values.min()
            assert window.value == pytest.approx(best)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"span": "any"}, "span must be one of window, group; got 'any'"),
        ({"span": "group", "shape": "ragged"}, "span='group' is for square windows"),
        ({"span": "group", "criterion": "q"}, "span='group' is for dependable"),
        ({"span": "group", "criterion": "cost"}, "span='group' is for dependable"),
        ({"placement": "best", "criterion": "cost"}, "placement must be one of"),
        ({"gap": -1, "criterion": "start"}, "gap must not be negative"),
        ({"method": "published", "placement": "any"}, "start windows at slots' starts"),
        (
            {"method": "published", "shape": "ragged"},
            "no published algorithm for ragged windows by criterion 'dependable'",
        ),
        (
            {"method": "published-lite", "shape": "ragged", "criterion": "q"},
            "AEP has no Lite form",
        ),
        ({"method": "published-lite", "criterion": "cost"}, "MinCost has no Lite form"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    criterion = options.pop("criterion", "dependable")
    with pytest.raises(ValueError, match=re.escape(message)):
        sk.find_window(environment(0), PAPER, criterion, **options)


def test_any_start_is_the_best_of_a_fine_grid():
    slots = environment(0)
    for criterion, sign in (("dependable", 1), ("coordinated", -1)):
        at_slots = sk.find_window(slots, PAPER, criterion)
        anywhere = sk.find_window(slots, PAPER, criterion, placement="any")
        assert sign * anywhere.value >= sign * at_slots.value
        assert anywhere.proven
        # the same search from many earliest starts in between finds nothing better
        for earliest in np.linspace(anywhere.start - 5, anywhere.start + 5, 21):
            moved = sk.find_window(
                slots, PAPER.replace(earliest=max(0.0, float(earliest))), criterion
            )
            assert sign * moved.value <= sign * anywhere.value + 1e-9


def test_lite_selects_the_cheapest_of_some_step():
    slots = environment(1)
    lite = sk.find_window(slots, PAPER, "q", method="lite")
    starts, values = sk.step_values(slots, PAPER, "q", method="lite")
    assert lite.value == pytest.approx(values.max(), rel=1e-12)
    assert lite.start in starts[np.isclose(values, values.max())]


def test_bad_values_and_options():
    slots = environment(0)
    column = slots["q"].copy()
    column[5] = np.nan
    with pytest.raises(ValueError, match="the value of row 5 is nan"):
        sk.find_window(slots, PAPER, column)
    with pytest.raises(TypeError, match="must hold numbers"):
        sk.find_window(slots, PAPER, np.array(["a"] * len(slots)))
    for huge in (1e308, -1e308, 1.1e290):
        with pytest.raises(ValueError, match=r"row 0 is -?1\S*, beyond 1e\+290"):
            sk.find_window(slots, PAPER, np.full(len(slots), huge))
    for option, error in (
        (dict(gap=-1.0), ValueError),
        (dict(method="published", seed=-1), ValueError),
        (dict(method="published", seed="1"), TypeError),
        (dict(gap=np.nan), ValueError),
        (dict(gap="1"), TypeError),
        (dict(max_work=-1), ValueError),
        (dict(max_work=1.0), TypeError),
        (dict(placement="middle"), ValueError),
        (dict(method="fast"), ValueError),
    ):
        with pytest.raises(error, match=list(option)[-1]):
            sk.find_window(slots, PAPER, "q", **option)
    with pytest.raises(TypeError, match="is the criterion itself"):
        sk.minimize(sk.minimize("q"))
    endless = slots.copy()
    endless["end"][-1] = np.inf
    with pytest.raises(ValueError, match=r"end is inf, but dependable needs"):
        sk.find_window(endless, PAPER, "dependable")


def test_work_limit_is_respected_and_reported():
    slots = environment(0, real=True)
    exact = sk.find_window(slots, PAPER, "q")
    cut = sk.find_window(slots, PAPER, "q", max_work=1)
    assert not cut.proven
    assert cut.value <= exact.value <= cut.bound * (1 + 1e-12)
    near = sk.find_window(slots, PAPER, "q", gap=0.05)
    assert near.value * 1.05 >= exact.value


def test_picture_of_the_steps(tmp_path):
    slots = environment(0)
    figure = sk.plot_steps(slots, PAPER, "q", path=tmp_path / "steps.svg")
    assert (tmp_path / "steps.svg").stat().st_size > 1000
    window = sk.find_window(slots, PAPER, "q")
    line, mark = figure.axes[0].lines
    assert mark.get_xydata().tolist() == [[window.start, window.value]]
    assert np.nanmax(line.get_ydata()) == pytest.approx(window.value)
    with pytest.raises(ValueError, match="no value at every step"):
        sk.plot_steps(slots, PAPER, "cost")


def many_speeds(rng, nodes=300):
    """Slots of nodes all of their own speed; many times and values are equal."""
    start = np.floor(rng.uniform(0, 60, nodes))
    performance = rng.uniform(1, 10, nodes)
    return sk.make_slots(
        node=np.arange(nodes),
        start=start,
        end=start + 5 * np.floor(rng.uniform(2, 12, nodes)),
        performance=performance,
        price=performance * rng.uniform(0.5, 1.5, nodes),
        q=np.floor(rng.uniform(0, 9, nodes)) * rng.choice([1, 0.37], nodes),
    )


def best_pairs(slots, volume, budget):
    """The largest value of any two slots by each criterion, at all starts."""
    one, two = np.triu_indices(len(slots), 1)
    start, end, speed, price, q = (
        slots[f] for f in ("start", "end", "performance", "price", "q")
    )
    length = volume / np.minimum(speed[one], speed[two])
    fits = length * (price[one] + price[two]) <= budget * (1 + 2.0**-50)
    one, two, length = one[fits], two[fits], length[fits]
    best = dict.fromkeys(("q", "minimum", *PLACEMENTS), -np.inf)
    for t in np.unique(start):
        live = np.maximum(start[one], start[two]) <= t
        live &= t + length <= np.minimum(end[one], end[two])
        pairs = [(s[live], end[s[live]] - t - length[live]) for s in (one, two)]
        if not live.any():
            continue
        values = {
            "q": sum(q[s] for s, _ in pairs),
            "minimum": -sum(q[s] for s, _ in pairs),
            "dependable": sum(np.minimum(t - start[s], d) for s, d in pairs) / 2,
            "coordinated": -sum(np.maximum(t - start[s], d) for s, d in pairs) / 2,
        }
        for name, value in values.items():
            best[name] = max(best[name], value.max())
    return best


@pytest.mark.parametrize("budget", [24.0, 32.0, 80.0])
def test_many_speeds_equal_exhaustive_search_of_pairs(budget):
    for seed in range(4):
        slots = many_speeds(np.random.default_rng([seed, int(budget)]))
        request = sk.Request(2, 20.0, budget=budget)
        for name, best in best_pairs(slots, 20.0, budget).items():
            criterion = sk.minimize("q") if name == "minimum" else name
            sign = -1 if name in ("minimum", "coordinated") else 1
            window = sk.find_window(slots, request, criterion)
            judge(window, sign * best, sign, window and window.value)


@pytest.mark.parametrize("criterion", ["q", *PLACEMENTS])
def test_many_speeds_equal_the_best_of_all_steps(criterion):
    sign = -1 if criterion == "coordinated" else 1
    for seed, nodes in enumerate((2, 3, 5)):
        slots = many_speeds(np.random.default_rng(seed), 280)
        request = sk.Request(nodes, 20.0, budget=14.0 * nodes)
        window = sk.find_window(slots, request, criterion)
        _, values = sk.step_values(slots, request, criterion)
        assert window.proven
        assert np.isclose(window.value, sign * np.nanmax(sign * values), rtol=1e-12)
