"""Times other programs on the same problems in one run; every answer is compared.

    python benchmarks/peers.py --ortools PYTHON --highs PYTHON --accasim PYTHON [--keep]

The options take interpreters whose environments have `ortools`, `highspy` and `accasim`
(they cannot share one process); a peer without an interpreter is skipped, and --keep
needs all three. `benchmarks/planner.py` compares bookings with those of Flux's planner.
Times are CPU times of one thread. Each peer runs in its own process, which measures
itself, without its start-up and without reading its input.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
from choose import HIGHS as HIGHS_CHOICE
from choose import ORTOOLS as ORTOOLS_CHOICE
from choose import instance, run_program
from results import Measured, store

import slotkern as sk

#: Units of integer times per time unit (every volume / performance is an integer in
#: them), and of integer costs per unit of money.
PARTS, MONEY = 2520, 10**6
JOB = sk.Request(5, 800.0, budget=600.0)
ENVIRONMENTS = 10

WINDOW_ORTOOLS = """
import json, sys, time
import ortools
from ortools.sat.python import cp_model
out = []
for start, latest, cost, n, budget, horizon, aim in json.load(open(sys.argv[1])):
    begin = time.process_time()
    model = cp_model.CpModel()
    at = model.new_int_var(0, horizon, "")
    x = [model.new_bool_var("") for _ in start]
    for taken, s, e in zip(x, start, latest):
        model.add(at >= s).only_enforce_if(taken)
        model.add(at <= e).only_enforce_if(taken)
    model.add(sum(x) == n)
    total = cp_model.LinearExpr.weighted_sum(x, cost)
    model.add(total <= budget)
    model.minimize(at if aim == "start" else total)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 60
    status = solver.solve(model)
    out.append([time.process_time() - begin, solver.objective_value,
                status == cp_model.OPTIMAL])
json.dump([ortools.__version__, out], open(sys.argv[2], "w"))
"""

WINDOW_HIGHS = """
import json, sys, time
import highspy, numpy as np
from importlib.metadata import version
out = []
for start, latest, cost, n, budget, horizon, aim in json.load(open(sys.argv[1])):
    begin = time.process_time()
    m = len(start)
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("threads", 1)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("time_limit", 60.0)
    h.addVars(m + 1, np.zeros(m + 1), np.append(np.ones(m), horizon))
    columns = np.arange(m, dtype=np.int32)
    h.changeColsIntegrality(m, columns, np.full(m, highspy.HighsVarType.kInteger))
    goal = np.append(cost, 0.0) if aim == "cost" else np.append(np.zeros(m), 1.0)
    every = np.arange(m + 1, dtype=np.int32)
    h.changeColsCost(m + 1, every, goal)
    for j, (s, e) in enumerate(zip(start, latest)):
        two = np.array([j, m], np.int32)
        h.addRow(-highspy.kHighsInf, 0.0, 2, two, np.array([float(s), -1.0]))
        h.addRow(-highspy.kHighsInf, float(horizon), 2, two,
                 np.array([float(horizon - e), 1.0]))
    h.addRow(n, n, m, columns, np.ones(m))
    h.addRow(-highspy.kHighsInf, budget, m, columns, np.array(cost, float))
    h.run()
    optimal = h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    out.append([time.process_time() - begin, h.getInfo().objective_function_value,
                optimal])
json.dump([version("highspy"), out], open(sys.argv[2], "w"))
"""

ACCASIM = """
import collections, collections.abc, glob, json, logging, os, sys, tempfile, time
for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable"):
    if not hasattr(collections, name):  # AccaSim needs names of older Pythons
        setattr(collections, name, getattr(collections.abc, name))
from importlib.metadata import version
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator
logging.disable(logging.INFO)
given = json.load(open(sys.argv[1]))
os.chdir(tempfile.mkdtemp())
config = {"groups": {"g": {"core": 1}}, "resources": {"g": given["processors"]}}
json.dump(config, open("machine.json", "w"))
simulator = Simulator(given["trace"], "machine.json", EASYBackfilling(FirstFit()),
                      RESULTS_FOLDER_NAME="results")
begin = time.process_time()
simulator.start_simulation()
spent = time.process_time() - begin
lines = [line for path in glob.glob("results/stats-*") for line in open(path)]
wait = next(float(line.split(":")[1]) for line in lines if "waiting" in line)
json.dump([version("accasim"), spent, wait], open(sys.argv[2], "w"))
"""


def cpu(call: Callable[..., Any], *given: Any, **options: Any) -> tuple[float, Any]:
    """Return the least CPU seconds of five calls, and the answer."""
    times = []
    for _ in range(5):
        begin = thread_time()
        answer = call(*given, **options)
        times.append(thread_time() - begin)
    return min(times), answer


def run_peer(python: str, program: str, given: Any) -> Any:
    """Return the answer of a program that another interpreter runs."""
    return run_program(python, program, given)


# --- one window


def window_problems(aim: str) -> tuple[list[Any], list[float], list[float]]:
    """Return environments as integers, and the times and answers of slotkern."""
    problems, times, answers = [], [], []
    for seed in range(ENVIRONMENTS):
        environment = sk.generate_environment("square", nodes=50, seed=seed)
        slots, job = environment.slots, JOB
        length = job.volume * PARTS / slots["performance"]
        latest = (slots["end"] * PARTS - length).round().astype(int)
        cost = (job.length(slots["performance"]) * slots["price"] * MONEY).round()
        fits = latest >= slots["start"] * PARTS
        spent, window = cpu(sk.find_window, slots, job, aim, shape="ragged")
        assert window is not None
        times.append(spent)
        answers.append(window.start * PARTS if aim == "start" else window.cost * MONEY)
        problems.append(
            [
                (slots["start"] * PARTS).astype(int)[fits].tolist(),
                latest[fits].tolist(),
                cost.astype(int)[fits].tolist(),
                job.nodes,
                int(job.budget * MONEY),
                int(environment.horizon * PARTS),
                aim,
            ]
        )
    return problems, times, answers


def windows(python: str, program: str, name: str) -> list[Measured]:
    """Measure the earliest and the cheapest window by a general solver."""
    rows = []
    for aim in ("start", "cost"):
        problems, own, answers = window_problems(aim)
        version, found = run_peer(python, program, problems)
        for (_, value, proven), answer in zip(found, answers, strict=True):
            assert not proven or abs(value - answer) <= 1e-6 * abs(answer) + JOB.nodes
        proven = sum(proven for _, _, proven in found)
        size = statistics.mean(len(problem[0]) for problem in problems)
        rows.append(
            Measured(
                f"one window, least {aim}, ragged, n = {JOB.nodes}: 50 nodes, "
                f"{size:.0f} slots ({proven} of {len(found)} proven in 60 s)",
                statistics.median(spent for spent, _, _ in found),
                statistics.median(own),
                f"{name} {version}",
            )
        )
    return rows


# --- one choice


def choices(python: str, program: str, names: dict[str, str]) -> list[Measured]:
    """Measure choices of 7 of 70 weakly correlated items under a budget."""
    rng = np.random.default_rng(1)
    problems, own, answers = [], [], []
    for _ in range(30):
        cost, value, budget = instance("weakly", 70, 7, rng)
        spent, choice = cpu(sk.choose, cost, value, 7, budget)
        own.append(spent)
        answers.append(choice.value)
        problems.append((cost.tolist(), value.tolist(), 7, budget, [*names]))
    found = run_peer(python, program, problems)
    rows = []
    for key, name in names.items():
        for row, answer in zip(found, answers, strict=True):
            assert row[key][1] <= round(answer)
            assert not row[key][2] or row[key][1] == round(answer)
        pairs = zip(found, answers, strict=True)
        equal = sum(row[key][1] == round(answer) for row, answer in pairs)
        rows.append(
            Measured(
                "7 of 70 items, integers up to 1,000: 30 instances "
                f"({equal} with the best sum)",
                statistics.median(row[key][0] / 1e9 for row in found),
                statistics.median(own),
                name,
            )
        )
    return rows


# --- a job flow


def replays(python: str, count: int = 2000) -> Measured:
    """Measure EASY over a flow of jobs, and AccaSim with its first-fit allocator."""
    rng = np.random.default_rng(0)
    jobs = np.full(count, -1, sk.SWF)
    jobs["job"] = np.arange(1, count + 1)
    jobs["submit"] = rng.exponential(650, count).cumsum().round()
    jobs["run_time"] = rng.lognormal(7, 1.5, count).round().clip(1)
    jobs["requested_time"] = np.ceil(jobs["run_time"] * rng.uniform(1, 5, count) + 60)
    jobs["requested"] = jobs["allocated"] = 2 ** rng.integers(0, 7, count)
    own, done = cpu(sk.replay, jobs, 128, "easy")
    wait = done.metrics()["wait_mean"]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "jobs.swf"
        sk.write_trace(trace, jobs)
        given = {"trace": str(trace), "processors": 128}
        version, spent, theirs = run_peer(python, ACCASIM, given)
    return Measured(
        f"EASY over {count:,} jobs, 128 processors (mean waits {theirs:,.0f} s and "
        f"{wait:,.0f} s)",
        spent,
        own,
        f"AccaSim {version}",
    )


def main() -> None:
    """Measure the peers whose interpreters are given, and store the rows if all are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ortools", help="an interpreter that has ortools")
    parser.add_argument("--highs", help="an interpreter that has highspy")
    parser.add_argument("--accasim", help="an interpreter that has accasim")
    parser.add_argument(
        "--keep", action="store_true", help="store the rows in measured.json"
    )
    options = parser.parse_args()
    rows: list[Measured] = []
    if options.ortools:
        rows += windows(options.ortools, WINDOW_ORTOOLS, "CP-SAT of OR-tools")
        rows += choices(options.ortools, ORTOOLS_CHOICE, {"cpsat": "CP-SAT"})
    if options.highs:
        rows += windows(options.highs, WINDOW_HIGHS, "HiGHS")
        rows += choices(options.highs, HIGHS_CHOICE, {"highs": "HiGHS"})
    if options.accasim:
        rows.append(replays(options.accasim))
    for row in rows:
        print(
            f"{row.what}\n    {row.against}: {row.rival * 1e6:,.1f} us, slotkern "
            f"{row.own * 1e6:,.1f} us, {row.rival / row.own:,.2f} times"
        )
    if options.keep:
        if not all((options.ortools, options.highs, options.accasim)):
            parser.error("--keep needs --ortools, --highs and --accasim")
        store("peers", rows)


if __name__ == "__main__":
    main()
