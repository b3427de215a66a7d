"""Batches per second, the growth of their time, and `choose_one_each` against HiGHS.

``python benchmarks/batch.py --highs PYTHON`` takes an interpreter whose environment has
`highspy`. All methods solve the same instances, and every answer is compared. Times are
CPU times of one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from time import thread_time_ns

import numpy as np

import slotkern as sk
from slotkern.published.batch import grid_choice, time_limit
from slotkern.studies import load_study
from slotkern.studies.batches import draw_cycle

HIGHS = """
import json, sys, time
import highspy, numpy as np
out = []
for value, weight, first, limit in json.load(open(sys.argv[1])):
    m, begin = len(value), time.thread_time_ns()
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("threads", 1)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("time_limit", 60.0)
    h.addVars(m, np.zeros(m), np.ones(m))
    columns = np.arange(m, dtype=np.int32)
    h.changeColsIntegrality(m, columns, np.full(m, highspy.HighsVarType.kInteger))
    h.changeColsCost(m, columns, np.array(value))
    h.addRow(-highspy.kHighsInf, limit, m, columns, np.array(weight))
    for i, j in zip(first, first[1:]):
        h.addRow(1, 1, j - i, columns[i:j], np.ones(j - i))
    h.run()
    out.append([time.thread_time_ns() - begin, h.getInfo().objective_function_value])
json.dump(out, open(sys.argv[2], "w"))
"""


def timed(function, *arguments, **options):
    """Return the CPU nanoseconds of a call, and its result."""
    begin = thread_time_ns()
    result = function(*arguments, **options)
    return thread_time_ns() - begin, result


def instance(kind, jobs, size, rng):
    """Return values and weights of `size` alternatives per job, and eq. (5)'s limit."""
    first = np.arange(jobs + 1) * size
    work = np.repeat(rng.uniform(400, 2000, jobs), size)
    power = rng.uniform(2, 10, jobs * size)
    time = work / power
    cost = work * power**0.05 * rng.uniform(0.8, 1.2, jobs * size)
    value, weight = {
        "minimize time under cost": (time, cost),
        "minimize cost under time": (cost, time),
        "uncorrelated": tuple(rng.uniform(0, 1000, (2, jobs * size))),
        "time under time": (-time, time),
    }[kind]
    return value, weight, first, time_limit(weight, first)


def by_highs(python, cases):
    """Return nanoseconds and optimum of each case by HiGHS in another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        problems, results = Path(folder) / "in.json", Path(folder) / "out.json"
        problems.write_text(
            json.dumps([[x.tolist() for x in c[:3]] + [c[3]] for c in cases])
        )
        subprocess.run([python, "-c", HIGHS, problems, results], check=True)
        return json.loads(results.read_text())


def choices(highs):
    """Print the times of `choose_one_each`, of the papers' grid and of HiGHS."""
    rng = np.random.default_rng(5)
    print("one of each, microseconds (median; worst)")
    for jobs, size, count in ((20, 12, 40), (100, 20, 10), (1000, 50, 4)):
        for kind in (
            "minimize time under cost",
            "minimize cost under time",
            "uncorrelated",
            "time under time",
        ):
            gap = 1e-9 if kind == "time under time" else 0.0
            cases = [instance(kind, jobs, size, rng) for _ in range(count)]
            sk.choose_one_each(*cases[0], gap=gap)
            runs = [timed(sk.choose_one_each, *case, gap=gap) for case in cases]
            spent = [ns / 1e3 for ns, _ in runs]
            line = f"{jobs:5} x {size:2} {kind:25}"
            line += f"{statistics.median(spent):10.1f} {max(spent):10.1f}"
            line += f"  proven {sum(found.proven for _, found in runs)}/{count}"
            value, weight, first, limit = cases[0]
            if jobs <= 100 and gap == 0:
                rows = grid_choice(value, weight, first, limit, 2000, False)
                ns, rows = timed(grid_choice, value, weight, first, limit, 2000, False)
                assert value[rows].sum() >= runs[0][1].value * (1 - 1e-12)
                line += f"  grid {ns / 1e3:8.1f}"
            if highs and jobs <= 100 and gap == 0:
                theirs = by_highs(highs, cases)
                for (_, found), (_, best) in zip(runs, theirs, strict=True):
                    assert abs(found.value - best) <= 1e-6 * abs(best)
                ours = statistics.median(spent)
                ratio = statistics.median(ns / 1e3 for ns, _ in theirs) / ours
                line += f"  HiGHS {ratio:6.0f} times as long"
            print(line, flush=True)


def policies():
    """Print how many batches per second each policy schedules and executes."""
    setting = load_study("vo").sweeps["table3"][0]
    cases = []
    for cycle in range(50):
        drawn = draw_cycle(setting, cycle)
        cases.append((sk.SlotPool(drawn.slots), drawn.batch, drawn.lengths))
    print("\n20 jobs on 24 nodes, batches a second")
    for name, policy in {
        "CSS": sk.CSS,
        "batch-slicer, k = 3": sk.BatchSlicer(3),
        "batch-slicer, k = 20": sk.BatchSlicer(20),
        "conservative": sk.Backfilling(),
        "EASY": sk.Backfilling("easy"),
        "BSF, 10 of 20": sk.BSF(10, k=2),
    }.items():
        schedules = [sk.schedule_batch(pool, batch, policy) for pool, batch, _ in cases]
        assert all(schedule.scheduled.any() for schedule in schedules)
        plan = min(
            timed(lambda p=policy: [sk.schedule_batch(s, b, p) for s, b, _ in cases])[0]
            for _ in range(5)
        )
        run = min(
            timed(
                lambda done=schedules: [
                    each.execute(case[2])
                    for each, case in zip(done, cases, strict=True)
                ]
            )[0]
            for _ in range(5)
        )
        rates = [len(cases) / (ns / 1e9) for ns in (plan, run)]
        print(f"{name:22}{rates[0]:10,.0f} scheduled {rates[1]:10,.0f} executed")


def growth():
    """Print the seconds of larger batches by three policies."""
    print("\nseconds for larger batches")
    rng = np.random.default_rng(2)
    for nodes, jobs, k in (
        (200, 500, 1),
        (200, 500, 10),
        (200, 1000, 10),
        (400, 1000, 10),
        (2000, 5000, 10),
    ):
        slots = sk.generate_environment("vo", nodes=nodes, interval=6000).slots
        batch = [
            sk.Request(int(n), float(v), budget=float(n * v * f))
            for n, v, f in zip(
                rng.integers(2, 6, jobs),
                rng.uniform(200, 400, jobs),
                rng.uniform(0.9, 1.6, jobs),
                strict=True,
            )
        ]
        pool = sk.SlotPool(slots)
        line = f"{jobs:5} jobs, {nodes:4} nodes, k = {k:2}:"
        for name, policy, most in (
            ("slicer, 10 each", sk.BatchSlicer(k), 10),
            ("conservative", sk.Backfilling(), None),
            ("EASY", sk.Backfilling("easy"), None),
        ):
            ns, done = timed(sk.schedule_batch, pool, batch, policy, most=most)
            line += f"  {name} {ns / 1e9:6.2f} ({int(done.scheduled.sum())} jobs)"
            if name == "conservative":
                ns, _ = timed(done.execute)
                line += f", executed {ns / 1e9:6.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--highs", help="an interpreter that has highspy")
    arguments = parser.parse_args()
    choices(arguments.highs)
    policies()
    growth()
