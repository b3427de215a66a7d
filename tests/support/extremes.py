"""Hard instances of choices by value, and checks against exhaustive search.

The kinds include values equal to the costs, budgets one ulp from a sum, one huge item,
magnitudes of 1e150 and 1e-150 together, zeros, subnormals and values that cancel. Each
instance is drawn by one `Picker`, which hypothesis and `benchmarks/extremes.py` share.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import oracle
from strategies import SHAPES, SLOT, Picker, just_below

import slotkern as sk

INF = float("inf")
TINY = 5e-324

COSTS = {
    "integers": (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0),
    "hundreds": (716.0, 558.0, 635.0, 634.0, 557.0, 717.0, 1.0),
    "tenths": (0.1, 0.2, 0.3, 0.7, 1.1, 0.6, 1.3, 0.0),
    "thirds": (1 / 3, 2 / 3, 1.0, 4 / 3, 1 / 7, 3 / 7),
    "equal": (2.5,),
    "zeros": (0.0,),
    "subnormals": (TINY, 2 * TINY, 3 * TINY, 7 * TINY, 1e-310, 0.0),
    "wide": (1e150, 3e150, 1e-150, 3e-150, 1.0, 0.1, 0.0),
    "an ulp apart": (1.0, 1.0 + 2**-52, 1.0 - 2**-53, 1.0 + 2**-50),
}
VALUES = COSTS | {
    "signs": (-1.0, 1.0, 2.0, -3.0, 0.0),
    "cancelling": (1e12, -1e12, 1e-9, -3e-9, 0.1, 1e12 + 1),
    "wide signs": (1e150, -1e150, 1e-150, -1e-150, 1.0, -0.1),
}
HUGE = (2.0**53, 2.0**52, 1e18, 1e150, 1e290)
FAR = 1e300  # larger sums are rejected


class Items(NamedTuple):
    """The arguments of `choose`."""

    cost: list[float]
    value: list[float]
    n: int
    budget: float


class Judged(NamedTuple):
    """The best value of all choices, and the sum of its absolute item values."""

    value: float
    size: float


def drawn(random: Any) -> Picker:
    """Return a picker with digits from `random.Random`, for runs without hypothesis."""
    return Picker(random.getrandbits(400))


def above(number: float) -> float:
    """Return the next larger float."""
    return float(np.nextafter(number, INF))


def near(pick: Picker, amount: float) -> float:
    """Pick the amount, a number one ulp from it, one below an integer, or a larger."""
    return pick(
        (
            amount,
            max(just_below(amount), 0.0),
            above(amount),
            max(just_below(float(np.ceil(amount))), 0.0),
            amount * 1.5,
        )
    )


def items(pick: Picker, most: int = 8) -> Items:
    """Draw costs, values, n and a budget."""
    m = pick(range(1, most + 1))
    costs = COSTS[pick(tuple(COSTS))]
    cost = [pick(costs) for _ in range(m)]
    kind = pick(("costs", "costs", *VALUES))
    scale = pick((1.0, 1.0, 3.0, 0.1))
    if kind == "costs":
        value = [scale * c for c in cost]
    else:
        value = [pick(VALUES[kind]) for _ in range(m)]
    if pick(range(3)) == 2:  # one huge item, which the budget may exclude
        row = pick(range(m))
        cost[row] = pick((*HUGE, cost[row]))
        value[row] = pick((*HUGE, value[row]))
    n = pick((*range(1, m + 1), m, m + 1))
    taken = list(range(m))
    rows = [taken.pop(pick(range(len(taken)))) for _ in range(min(n, m))]
    spent = oracle.add([cost[row] for row in sorted(rows, key=cost.__getitem__)])
    budget = pick((*[near(pick, spent)] * 6, 0.0, TINY, INF))
    return Items(cost, value, n, budget)


def best_items(case: Items) -> Judged | None:
    """Enumerate all choices of n items; sum the values in order of (cost, row)."""
    order = sorted(range(len(case.cost)), key=lambda row: (case.cost[row], row))
    cost = [case.cost[row] for row in order]
    value = [case.value[row] for row in order]
    best = None
    for rows in combinations(range(len(order)), case.n):
        if oracle.met(oracle.exact(cost[k] for k in rows), case.budget):
            worth = oracle.add(value[k] for k in rows)
            if best is None or worth > best.value:
                best = Judged(worth, oracle.add(abs(value[k]) for k in rows))
    return best


def allowance(value: float, sizes: float, n: int, gap: float = 0.0) -> float:
    """Return by how much another choice may exceed a proven answer."""
    return max(gap, 1e-12) * abs(value) + n * 2**-52 * sizes


def judge_items(
    case: Items, choice: Any, best: Judged | None, gap: float = 0.0
) -> None:
    """Fail unless the choice is feasible and as good as documented."""
    if best is None:
        assert choice is None
        return
    assert choice is not None
    rows = sorted(choice.rows.tolist(), key=lambda row: (case.cost[row], row))
    assert len(set(rows)) == case.n
    assert choice.cost == oracle.exact(case.cost[row] for row in rows)
    assert choice.value == oracle.add(case.value[row] for row in rows)
    assert oracle.met(choice.cost, case.budget)
    assert choice.value <= best.value <= choice.bound
    if choice.proven:
        size = oracle.add(abs(case.value[row]) for row in rows)
        more = allowance(choice.value, size + best.size, case.n, gap)
        assert best.value - choice.value <= more


def check_items(case: Items, **options: Any) -> bool:
    """Check the answer to `case`; return True if there is one."""
    best = best_items(case)
    choice = sk.choose(*case, **options)
    judge_items(case, choice, best, options.get("gap", 0.0))
    if not options:
        assert choice is None or choice.proven
    return choice is not None


def check_each(case: Items, **options: Any) -> int:
    """Check every entry of `choose_each`; return their number."""
    each = sk.choose_each(*case, **options)
    assert len(each) == case.n
    for n, choice in enumerate(each, 1):
        one = case._replace(n=n)
        judge_items(one, choice, best_items(one), options.get("gap", 0.0))
        if not options:
            assert choice is None or choice.proven
    return case.n


# --- windows


@sk.criterion
def own_value(slot, length):
    return slot.q * length


@sk.criterion(uses_start=True)
def own_moving(slot, start, length):
    return slot.q - (start - slot.start)


def by_column(s: Any, row: int, t: float, d: float) -> float:
    """Return the column q of a slot."""
    return float(s["q"][row])


def nearest(s: Any, row: int, t: float, d: float) -> float:
    """Return the smaller gap before and after a part in its slot."""
    return min(t - float(s["start"][row]), float(s["end"][row]) - t - d)


def farthest(s: Any, row: int, t: float, d: float) -> float:
    """Return the larger gap before and after a part in its slot."""
    return max(t - float(s["start"][row]), float(s["end"][row]) - t - d)


#: Criterion, value of a slot, direction, True for means, True if it depends on start.
SOURCES = (
    ("q", by_column, 1, False, False),
    (sk.minimize("q"), by_column, -1, False, False),
    ("processor_time", lambda s, row, t, d: d, -1, False, False),
    (
        "leftover",
        lambda s, row, t, d: float(s["end"][row]) - float(s["start"][row]) - d,
        -1,
        False,
        False,
    ),
    ("dependable", nearest, 1, True, True),
    ("coordinated", farthest, -1, True, True),
    (own_value, lambda s, row, t, d: by_column(s, row, t, d) * d, 1, False, False),
    (
        sk.minimize(own_moving),
        lambda s, row, t, d: by_column(s, row, t, d) - (t - float(s["start"][row])),
        -1,
        False,
        True,
    ),
)
Q_SLOT = np.dtype(
    [(name, SLOT[name]) for name in SLOT.names] + [("q", "f8")], align=True
)
PERFORMANCES = ((1.0,), (1.0, 2.0, 4.0), (0.1, 1 / 3, 7.3), (1.0, 3.0, 3.0 + 1e-10))


class Search(NamedTuple):
    """Slots and the keyword arguments of a request."""

    slots: np.ndarray
    request: dict[str, Any]


def searches(pick: Picker, more: Picker) -> Search:
    """Draw a few slots with prices and values of the kinds above, and a request."""
    prices = COSTS[pick(tuple(COSTS))]
    kind = pick(("costs", *VALUES))
    performances = pick(PERFORMANCES)
    origin, unit = pick((0.0, 0.0, 1.7e9)), pick((1.0, 0.1, 1 / 3))
    rows = []
    for node in range(pick((2, 3, 4, 5, 6))):
        performance, now = more(performances), more((0, 0, 1, 2))
        for _ in range(more((1, 1, 2))):
            length = more((2, 4, 5, 6, 7))
            price = more(prices) if more(range(12)) else more((*HUGE, 1e308))
            value = price if kind == "costs" else more(VALUES[kind])
            if more(range(16)) == 15:
                value = more(HUGE)
            start, end = origin + now * unit, origin + (now + length) * unit
            rows.append((node, start, end, performance, price, min(value, 1e288)))
            now += length + more((0, 1, 3))
    rows.sort(key=lambda row: (row[1], row[0]))
    slots = np.array(rows, dtype=Q_SLOT)
    count = len(np.unique(slots["node"]))
    slot = pick(slots)
    length = float(slot["end"] - slot["start"])
    request: dict[str, Any] = {
        "nodes": min(pick((1, 2, 2, 3, 3, count, count, INF)), count + 1),
        "volume": float(pick((1.0, 0.5, 0.3, 0.1)) * length * slot["performance"]),
    }
    if pick.sometimes():
        request["earliest"] = float(pick(slots)["start"]) + pick((0.0, 0.5 * unit))
    if pick.sometimes():
        request["max_price"] = float(pick(slots)["price"])
    if pick.sometimes():
        last = float(pick(slots)["end"])
        request["deadline"] = pick((last, just_below(last)))
        if request["deadline"] < request.get("earliest", 0.0):
            del request["deadline"]
    if pick.sometimes():
        request["proper"] = np.array([more((True, True, False)) for _ in slots])
    shape = pick(SHAPES)
    usable = oracle.proper_slots(slots)
    parts = [
        usable.pop(pick(range(len(usable))))
        for _ in range(min(request["nodes"], len(usable)))
    ]
    cost = oracle.window_of(0.0, parts, shape, request["volume"]).cost
    if cost < INF:
        request["budget"] = pick((*[near(pick, cost)] * 5, 0.0, TINY, INF))
    return Search(slots, request)


def worth_of(source: Any, slots: Any, shape: str, volume: float, window: Any) -> Judged:
    """Return the criterion's value of a window, summed in the order of cost."""
    _, function, _, mean, _ = source
    node = dict(zip(window.rows, window.nodes, strict=True))
    cost = {
        row: float(slots["price"][row])
        if shape == "square"
        else volume * float(slots["price"][row] / slots["performance"][row])
        for row in window.rows
    }
    values = []
    for row in sorted(window.rows, key=lambda row: (cost[row], node[row])):
        length = window.runtime
        if shape == "ragged":
            length = volume / float(slots["performance"][row])
        values.append(function(slots, row, window.start, length))
    total, size = oracle.add(values), oracle.add(map(abs, values))
    return (
        Judged(total / len(values), size / len(values)) if mean else Judged(total, size)
    )


def check_search(case: Search, **options: Any) -> int:
    """Check the windows by every source in both shapes; return how many exist."""
    slots, fields = case
    request = dict(fields)
    where = request.pop("proper", None)
    request = sk.Request(
        request.pop("nodes"), request.pop("volume"), **request, where=where
    )
    filters = {k: fields[k] for k in ("max_price", "proper") if k in fields}
    starts = {
        max(slot.start, fields.get("earliest", 0.0))
        for slot in oracle.proper_slots(slots, **filters)
    }
    found = 0
    for shape in SHAPES:
        windows = [
            w for w in oracle.all_windows(slots, shape, **fields) if w.cost < INF
        ]
        for source in SOURCES:
            criterion, _, sign, _, moving = source
            possible = [w for w in windows if not moving or w.start in starts]
            worths = [
                worth_of(source, slots, shape, fields["volume"], w) for w in possible
            ]
            best = max(worths, key=lambda w: sign * w.value, default=None)
            window = sk.find_window(slots, request, criterion, shape=shape, **options)
            if best is None:
                assert window is None, (shape, criterion)
                continue
            assert window is not None, (shape, criterion)
            found += 1
            rows = tuple(window.slots["row"].tolist())
            same = [
                k
                for k, w in enumerate(possible)
                if w.rows == rows and w.start == window.start
            ]
            assert len(same) == 1, (shape, criterion)
            mine = worths[same[0]]
            assert window.cost == possible[same[0]].cost
            assert oracle.met(window.cost, request.budget)
            assert window.value == mine.value, (shape, criterion)
            assert sign * window.value <= sign * best.value, (shape, criterion)
            assert sign * window.bound >= sign * best.value, (shape, criterion)
            if not options:
                assert window.proven, (shape, criterion)
            if window.proven:
                more = allowance(
                    mine.value,
                    mine.size + best.size,
                    request.nodes,
                    options.get("gap", 0),
                )
                assert sign * (best.value - mine.value) <= more, (shape, criterion)
    return found
