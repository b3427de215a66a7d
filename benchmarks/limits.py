"""Times `choose` under several limits against HiGHS and CP-SAT, and the cost of limits.

``python benchmarks/limits.py --ortools PYTHON`` takes an interpreter whose environment
has `ortools`; HiGHS is the one of scipy. All solve the same instances, every answer is
compared, and ratios of median CPU times are printed. `--middle 1000` compares 1,000
choices of 10 of 100 items with HiGHS alone. `--searches 12` times whole searches on 100
nodes in 12 environments, interleaved: without limits, with one that does not bind, and
with one and two that bind.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from time import process_time_ns
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import slotkern as sk

KINDS = ("uncorrelated", "weakly", "strongly")

CPSAT = """
import json, sys, time
from ortools.sat.python import cp_model
out = []
for weights, value, n, amounts in json.load(open(sys.argv[1])):
    begin = time.process_time_ns()
    model = cp_model.CpModel()
    x = [model.new_bool_var("") for _ in value]
    model.add(sum(x) == n)
    for column, amount in zip(weights, amounts):
        model.add(cp_model.LinearExpr.weighted_sum(x, column) <= amount)
    model.maximize(cp_model.LinearExpr.weighted_sum(x, value))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 20
    status = solver.solve(model)
    out.append([time.process_time_ns() - begin, round(solver.objective_value),
                status == cp_model.OPTIMAL])
json.dump(out, open(sys.argv[2], "w"))
"""


class Problem(NamedTuple):
    """An instance: choose n items of largest value within all limits."""

    weights: Any  # (limits, m) integers
    value: Any
    n: int
    amounts: Any


class Answer(NamedTuple):
    """The result of one solver."""

    spent: float  # CPU nanoseconds
    value: int  # -1: there is no choice
    proven: bool


def problem(kind: str, limits: int, m: int, n: int, rng: Any) -> Problem:
    """Return an instance of integers whose limits bind."""
    weights = rng.integers(1, 1001, (limits, m))
    mean = weights.mean(0).astype(int)
    value = {
        "uncorrelated": rng.integers(1, 1001, m),
        "weakly": np.maximum(1, mean + rng.integers(-100, 101, m)),
        "strongly": mean + 100,
    }[kind]
    amounts = (weights.mean(1) * n * rng.uniform(0.7, 1.1, limits)).astype(int)
    return Problem(weights, value, n, amounts)


def mine(p: Problem) -> Answer:
    """Solve an instance by `sk.choose` and check that the choice is feasible."""
    limits = [
        (w.astype(float), "<=", a) for w, a in zip(p.weights, p.amounts, strict=True)
    ]
    zero, value = np.zeros(len(p.value)), p.value.astype(float)
    begin = process_time_ns()
    choice = sk.choose(zero, value, p.n, 0, limits=limits)
    spent = process_time_ns() - begin
    if choice is None:
        return Answer(spent, -1, True)
    assert (p.weights[:, choice.rows].sum(1) <= p.amounts).all()
    assert len(choice.rows) == p.n
    return Answer(spent, round(choice.value), choice.proven)


def highs(p: Problem) -> Answer:
    """Solve an instance by scipy's HiGHS."""
    m = len(p.value)
    begin = process_time_ns()
    found = milp(
        -p.value,
        integrality=np.ones(m),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(p.weights, ub=p.amounts),
            LinearConstraint(np.ones(m), p.n, p.n),
        ],
        options={"mip_rel_gap": 0, "time_limit": 10},
    )
    spent = process_time_ns() - begin
    if found.x is None:
        return Answer(spent, -1, found.status == 2)
    return Answer(spent, round(-found.fun), found.status == 0)


def cpsat(python: str, problems: list[Problem]) -> list[Answer]:
    """Solve instances by CP-SAT in another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        given, taken = Path(folder, "given.json"), Path(folder, "taken.json")
        rows = [
            (p.weights.tolist(), p.value.tolist(), p.n, p.amounts.tolist())
            for p in problems
        ]
        given.write_text(json.dumps(rows))
        subprocess.run([python, "-c", CPSAT, given, taken], check=True)
        return [Answer(*row) for row in json.loads(taken.read_text())]


def compare(name: str, ours: list[Answer], theirs: list[Answer]) -> None:
    """Assert that no answer beats a proven one, and print the ratio of the medians."""
    for a, b in zip(ours, theirs, strict=True):
        assert not (a.proven and b.value > a.value), (name, a, b)
        assert not (b.proven and a.value > b.value), (name, a, b)
        assert not (a.proven and b.proven and a.value != b.value), (name, a, b)
    ratio = statistics.median(b.spent for b in theirs)
    ratio /= statistics.median(a.spent for a in ours)
    both = sum(b.proven for b in theirs)
    print(f"    {name}: {ratio:.0f} times as long; {both} proven of {len(theirs)}")


def report(title: str, ours: list[Answer]) -> None:
    """Print the median and the 95th percentile of the times."""
    spent = sorted(a.spent / 1e3 for a in ours)
    proven = sum(a.proven for a in ours)
    print(
        f"{title}: median {statistics.median(spent):.0f} us, 95% within "
        f"{spent[int(0.95 * (len(spent) - 1))]:.0f} us; proven {proven} of {len(ours)}"
    )


def spent_on(find: Any) -> float:
    """Return the least nanoseconds of a call; each measurement lasts 0.5 ms or more."""
    calls, least = 1, float("inf")
    for _ in range(8):
        begin = process_time_ns()
        for _ in range(calls):
            find()
        spent = process_time_ns() - begin
        least = min(least, spent / calls)
        if spent < 5e5:
            calls *= 4
    return least


def searches(shape: Any, environments: int) -> None:
    """Print how many times as long a search with limits takes as one without."""
    job = sk.Request(7, 800, budget=644)
    ratios: dict[tuple[str, str], list[float]] = {}
    for seed in range(environments):
        slots = sk.generate_environment("square", nodes=100, seed=seed).slots
        rng, node = np.random.default_rng(seed), slots["node"]
        storage = rng.integers(50, 500, node.max() + 1)[node].astype(float)
        power = rng.integers(100, 400, node.max() + 1)[node].astype(float)
        pool = sk.SlotPool(slots)
        for criterion in ("first", "start", "finish", "cost"):
            window = sk.find_window(pool, job, criterion, shape=shape)
            assert window is not None
            rows = window.slots["row"]
            limits = [
                sk.Limit(storage, ">=", 1.15 * storage[rows].sum()),
                sk.Limit(power, "<=", 0.95 * power[rows].sum()),
            ]
            jobs = {
                "none": job,
                "one not binding": job.replace(limits=[sk.Limit(storage, ">=", 1)]),
                "one binding": job.replace(limits=limits[:1]),
                "two binding": job.replace(limits=limits),
            }
            slack = sk.find_window(
                pool, jobs["one not binding"], criterion, shape=shape
            )
            assert slack == window
            spent = {
                name: spent_on(partial(pool.find, each, criterion, shape=shape))
                for name, each in jobs.items()
            }
            for name in list(jobs)[1:]:
                some = ratios.setdefault((criterion, name), [])
                some.append(spent[name] / spent["none"])
    for (criterion, name), some in ratios.items():
        median = statistics.median(some)
        print(
            f"{shape}, {name}, {criterion}: {median:.2f} times, at most {max(some):.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ortools", help="an interpreter that has ortools")
    parser.add_argument("--instances", type=int, default=60, help="number of each kind")
    parser.add_argument("--middle", type=int, default=0, help="number of 10 of 100")
    parser.add_argument(
        "--searches", type=int, default=0, help="number of environments"
    )
    options = parser.parse_args()
    for shape in ("ragged", "square") if options.searches else ():
        searches(shape, options.searches)
    rng = np.random.default_rng(1)
    for kind in KINDS if options.instances else ():
        problems = [problem(kind, 2, 70, 7, rng) for _ in range(options.instances)]
        ours = [mine(p) for p in problems]
        report(f"7 of 70, two limits, {kind}", ours)
        compare("HiGHS", ours, [highs(p) for p in problems])
        if options.ortools:
            compare("CP-SAT", ours, cpsat(options.ortools, problems))
    shapes = list(itertools.product(KINDS, (1, 2, 3)))
    for k, (kind, limits) in enumerate(shapes):
        count = options.middle // len(shapes) + (k < options.middle % len(shapes))
        if not count:
            continue
        problems = [problem(kind, limits, 100, 10, rng) for _ in range(count)]
        ours = [mine(p) for p in problems]
        report(f"10 of 100, {limits} limits, {kind}", ours)
        compare("HiGHS", ours, [highs(p) for p in problems])


if __name__ == "__main__":
    main()
