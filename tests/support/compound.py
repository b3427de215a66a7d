"""Jobs of several parts by brute force: all disjoint sets, all pairs, all options.

Small random cases in halves and quarters, so that all sums are exact. Written from the
definitions, with plain loops; `windows` yields every set of slots at every given start.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

import slotkern as sk
from slotkern.compound import AnyOf, Chain, Together

INF = math.inf
CRITERIA = ("start", "finish", "runtime", "cost")
SHAPES = ("square", "ragged")
#: Times between slot starts and ends of cases, which are multiples of a half.
GRID = [t / 4 for t in range(60)]


class Best(NamedTuple):
    """A plan of roles that start together: the value first, then the tie rule."""

    value: float
    start: float
    cost: float


class Found(NamedTuple):
    """A window of a request."""

    start: float
    runtime: float
    cost: float
    nodes: frozenset


def random_slots(rnd, nodes=(2, 5), horizon=12, speeds=(1, 2)):
    """Return slots of a few nodes with kinds, racks, prices and gaps."""
    rows = []
    for node in range(rnd.randint(*nodes)):
        speed, price = rnd.choice(speeds), rnd.choice((1, 2, 3, 5))
        time = 0 if rnd.random() < 0.4 else rnd.randint(0, 4)
        while time < horizon:
            end = min(horizon, time + rnd.randint(1, 8))
            rows.append((node, time, end, speed, price, rnd.choice("ab"), node % 2))
            time = end + rnd.choice((0, 1, 2, 4))
    rows.sort(key=lambda row: (row[1], row[0]))
    names = ("node", "start", "end", "performance", "price", "tag", "kind")
    columns = {name: np.array([row[k] for row in rows]) for k, name in enumerate(names)}
    return sk.make_slots(**columns)


def random_request(rnd, most=2, where=None, **more):
    """Return a small request with some limits."""
    fields = {}
    if rnd.random() < 0.25:
        fields["budget"] = rnd.choice((4, 6, 10, 16))
    if rnd.random() < 0.2:
        fields["earliest"] = rnd.choice((1, 2.5, 4))
    if rnd.random() < 0.15:
        fields["deadline"] = rnd.choice((8, 10))
    if rnd.random() < 0.1:
        fields["latest"] = rnd.choice((5, 6.5))
    if rnd.random() < 0.1:
        fields["max_price"] = 3
    if rnd.random() < 0.1:
        fields["max_runtime"] = rnd.choice((1, 2))
    if rnd.random() < 0.1:
        fields |= {"setup": 0.5, "step": 0.5}
    fields |= more
    return sk.Request(
        rnd.randint(1, most), rnd.choice((1, 2, 3, 4)), where=where, **fields
    )


def rows_of(slots):
    """Return the slots as dicts of plain numbers and text."""
    names = slots.dtype.names
    return [dict(zip(names, row, strict=True)) for row in slots.tolist()]


def admitted(slot, request):
    """Return True if a slot passes the filters that the cases use."""
    where = request.where
    if where is not None:
        column, value = where.split(" == ")
        if str(slot[column]) != value.strip("'"):
            return False
    return (
        slot["performance"] >= request.min_performance
        and slot["price"] <= request.max_price
    )


def windows(slots, request, shape, starts):
    """Yield every window of a request at these starts."""
    rows = [slot for slot in rows_of(slots) if admitted(slot, request)]
    lengths = [request.length(slot["performance"]).item() for slot in rows]
    overhead = request.setup > 0 or request.step > 0
    earliest, latest, deadline = request.earliest, request.latest, request.deadline
    fitting = [
        (slot, length, slot["start"], min(slot["end"], deadline))
        for slot, length in zip(rows, lengths, strict=True)
    ]
    for start in starts:
        if not earliest <= start <= latest:
            continue
        live = [
            (slot, length)
            for slot, length, begin, end in fitting
            if begin <= start and start + length <= end
        ]
        for parts in itertools.combinations(live, request.nodes):
            nodes = frozenset(int(slot["node"]) for slot, _ in parts)
            runtime = max(length for _, length in parts)
            if runtime > request.max_runtime:
                continue
            if shape == "square":
                if any(
                    start + runtime > min(slot["end"], request.deadline)
                    for slot, _ in parts
                ):
                    continue
                cost = runtime * math.fsum(slot["price"] for slot, _ in parts)
            else:
                cost = math.fsum(
                    slot["price"] * length
                    if overhead
                    else request.volume * (slot["price"] / slot["performance"])
                    for slot, length in parts
                )
            if cost <= request.budget:
                yield Found(start, runtime, cost, nodes)


def slot_starts(slots, requests):
    """Return the starts at which an optimum of roles is, ascending."""
    earliest = {r.earliest for r in requests if r.earliest > -INF}
    return sorted({float(t) for t in slots["start"]} | earliest)


def combinations_of(slots, job, shape, starts):
    """Yield (start, runtime, cost) of every plan of a Request, Together or AnyOf."""
    if isinstance(job, AnyOf):
        for option in job.options:
            yield from combinations_of(slots, option, shape, starts)
        return
    roles = job.roles if isinstance(job, Together) else (job,)
    budget = job.budget
    for start in starts:
        sets = [list(windows(slots, role, shape, [start])) for role in roles]
        for chosen in itertools.product(*sets):
            nodes = frozenset().union(*[w.nodes for w in chosen])
            if len(nodes) < sum(len(w.nodes) for w in chosen):
                continue  # a node in two roles
            cost = math.fsum(w.cost for w in chosen)
            if cost <= budget:
                yield start, max(w.runtime for w in chosen), cost


def best(slots, job, criterion, shape):
    """Return the best plan of a job, or None: by value, then start, then cost.

    For an AnyOf, only the value and the option are decided by the definition.
    """
    if isinstance(job, AnyOf):
        found = [best(slots, option, criterion, shape) for option in job.options]
        values = [(b.value, k) for k, b in enumerate(found) if b is not None]
        return (*found[min(values)[1]], min(values)[1]) if values else None
    roles = job.roles if isinstance(job, Together) else (job,)
    plans = (
        Best(
            {
                "start": start,
                "finish": start + runtime,
                "runtime": runtime,
                "cost": cost,
            }[criterion],
            start,
            cost,
        )
        for start, runtime, cost in combinations_of(
            slots, job, shape, slot_starts(slots, roles)
        )
    )
    return min(plans, default=None)


def earliest_finish(slots, chain: Chain, shape):
    """Return the earliest finish of a chain on a fine grid, or infinity."""
    pairs = [
        sorted({(t, t + T) for t, T, _ in combinations_of(slots, stage, shape, GRID)})
        for stage in chain.stages
    ]
    # (start, finish) of each stage that some plan of the stages before it allows
    reached = pairs[0]
    for later, (least, most) in zip(pairs[1:], chain.gaps, strict=True):
        finishes = sorted({finish for _, finish in reached})
        reached = [
            (start, finish)
            for start, finish in later
            if any(f + least <= start <= f + most for f in finishes)
        ]
    return min((finish for _, finish in reached), default=INF)


def possible_starts(slots, request, shape):
    """Return the starts on the grid at which a window exists."""
    return sorted({w.start for w in windows(slots, request, shape, GRID)})


def check_plan(slots, job, plan, shape):
    """Assert that a plan is valid: windows fit, roles share no node, gaps hold."""
    if isinstance(job, Chain):
        stages = [
            [i for i, stage in enumerate(plan.stages) if stage == k]
            for k in range(len(job.stages))
        ]
        times = []
        for stage, places in zip(job.stages, stages, strict=True):
            some = [plan[i] for i in places]
            check_windows(slots, stage, some, [plan.options[i] for i in places], shape)
            times.append((some[0].start, max(w.finish for w in some)))
        for (_, finish), (start, _), (least, most) in zip(
            times, times[1:], job.gaps, strict=False
        ):
            assert finish + least <= start <= finish + most
    else:
        check_windows(slots, job, list(plan), plan.options, shape)


def check_windows(slots, job, found, options, shape):
    """Assert that windows are one of those of a Request, Together or AnyOf."""
    if isinstance(job, AnyOf):
        assert len(set(options)) == 1
        job = job.options[options[0]]
    roles = job.roles if isinstance(job, Together) else (job,)
    assert len(roles) == len(found)
    assert len({w.start for w in found}) == 1
    nodes = [node for window in found for node in window.nodes]
    assert len(set(nodes)) == len(nodes)
    for role, window in zip(roles, found, strict=True):
        own = Found(window.start, window.runtime, window.cost, frozenset(window.nodes))
        assert own in set(windows(slots, role, shape, [window.start]))
        for part in window.slots:
            slot = slots[part["row"]]
            assert slot["node"] == part["node"]
            assert slot["start"] <= part["start"]
            assert part["end"] <= slot["end"]


def random_together(rnd, overlapping=False):
    """Return roles on different nodes, or (without own budgets) on common ones."""
    count = rnd.randint(1, 3) if overlapping else rnd.randint(1, 2)
    wheres = ["kind == 0", "kind == 1"][:count]
    budget = rnd.choice((INF, INF, 8, 14, 24))
    if not overlapping:
        rnd.shuffle(wheres)
        return Together(
            [random_request(rnd, where=where) for where in wheres], budget=budget
        )
    roles = [
        random_request(
            rnd,
            most=2 if count < 3 else 1,
            where=rnd.choice((None, None, "tag == 'a'", "kind == 0")),
            budget=INF,
        )
        for _ in range(count)
    ]
    return Together(roles, budget=budget)


def random_stage(rnd):
    """Return a stage of a chain whose starts by length are computed."""
    kind = rnd.random()
    if kind < 0.6:
        return random_request(rnd)
    if kind < 0.8:
        return random_together(rnd).replace(budget=INF)
    return AnyOf([random_request(rnd) for _ in range(2)])


def random_chain(rnd):
    """Return two or three stages with gaps of all kinds."""
    count = rnd.choice((2, 2, 3))
    gaps = []
    for _ in range(count - 1):
        least = rnd.choice((0, 0, 1, 2.5))
        most = least + rnd.choice((0, 0.5, 1, 2, INF, INF))
        gaps.append((float(least), float(most)))
    return Chain([random_stage(rnd) for _ in range(count)], gap=gaps)
