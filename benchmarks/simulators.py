"""Times replays of a real trace against other simulators, in one run.

    python benchmarks/simulators.py TRACE.swf.gz [--accasim PYTHON]
                                    [--pyss FOLDER --python2 PYTHON]

The options take an interpreter that has AccaSim, a checkout of the predictsim sources,
which contain the simulator pyss, and a Python 2 that runs them. All simulators get the
same cleaned jobs: run times of at least one second and at most the requested time, and
no job wider than the machine. Times are CPU seconds of one thread without reading the
trace; each simulator has its own process. The number of equal starts is printed; the
simulators order events of equal time differently.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from choose import run_program
from peers import ACCASIM

import slotkern as sk

PYSS = """
import json, sys, time, types
sys.modules["progressbar"] = types.ModuleType("progressbar")  # no bar is shown
given = json.load(open(sys.argv[1]))
sys.path.insert(0, given["folder"])
from base.prototype import _job_inputs_to_jobs
from base.workload_parser import parse_lines
from schedulers.common import module_to_class
from schedulers.simulator import Simulator
name, processors = str(given["scheduler"]), given["processors"]
module = __import__("schedulers." + name, fromlist=[name])
options = {"num_processors": processors, "stats": False,
           "scheduler": {"name": name, "progressbar": False}}
jobs = list(_job_inputs_to_jobs(parse_lines(open(given["trace"])), processors))
scheduler = getattr(module, module_to_class(name))(options)
simulator = Simulator(jobs, processors, scheduler, None, given["trace"], options)
begin = time.clock()
simulator.run()
spent = time.clock() - begin
starts = dict((job.id, job.start_to_run_at_time) for job in simulator.terminated_jobs)
json.dump([spent, starts], open(sys.argv[2], "w"))
"""

SCHEDULERS = {
    "easy": "easy_backfill_scheduler",
    "conservative": "conservative_scheduler",
}


def cleaned(trace: sk.Trace, count: int | None) -> sk.Trace:
    """Return the first jobs in whole seconds that all simulators accept unchanged."""
    jobs = trace.jobs.copy()
    for name in ("submit", "run_time", "requested_time"):
        jobs[name] = jobs[name].round()
    width = np.where(jobs["allocated"] > 0, jobs["allocated"], jobs["requested"])
    jobs["allocated"] = jobs["requested"] = width
    limit = jobs["requested_time"]
    jobs["run_time"] = np.where(limit > 0, jobs["run_time"].clip(max=limit), 0)
    jobs = jobs[(jobs["run_time"] > 0) & (width > 0) & (width <= trace.processors)]
    jobs = jobs[np.argsort(jobs["submit"], kind="stable")][:count]
    jobs["job"] = np.arange(1, len(jobs) + 1)
    return sk.Trace(jobs, header=trace.header, source=trace.source)


def replayed(trace: sk.Trace, policy: str) -> tuple[float, sk.Replay]:
    """Return the least CPU seconds of five replays, and the replay."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        done = sk.replay(trace, policy=policy)
        times.append(time.process_time() - begin)
    return min(times), done


def print_line(what: str, jobs: int, policy: str, spent: float, wait: float) -> None:
    """Print the rate and the mean wait of one simulator."""
    print(
        f"{what:24} {policy:13} {jobs:7,} jobs {jobs / spent:12,.0f} jobs/s, "
        f"mean wait {wait:,.1f} s"
    )


def beside_accasim(trace: sk.Trace, python: str, file: Path) -> None:
    """Compare EASY with AccaSim's first-fit allocator, which also assigns nodes."""
    sk.write_trace(file, trace.jobs)
    given = {"trace": str(file), "processors": trace.processors}
    version, spent, wait = run_program(python, ACCASIM, given)
    own, done = replayed(trace, "easy")
    print_line(f"AccaSim {version}", len(trace), "easy", spent, wait)
    print_line("slotkern", len(trace), "easy", own, done.jobs["wait"].mean())
    print(f"    {spent / own:,.0f} times as many jobs a second")


def beside_pyss(trace: sk.Trace, python: str, folder: Path, file: Path) -> None:
    """Compare EASY and conservative backfilling with pyss, which counts processors."""
    lines = [";"] + [" ".join(str(int(x)) for x in row) for row in trace.jobs.tolist()]
    file.write_text("\n".join(lines) + "\n")  # pyss reads integers only
    given: dict[str, Any] = {
        "trace": str(file),
        "processors": trace.processors,
        "folder": str(folder / "simulation" / "pyss" / "src"),
    }
    os.environ["PYTHONOPTIMIZE"] = "1"  # pyss is several times as slow with its checks
    for policy, scheduler in SCHEDULERS.items():
        spent, starts = run_program(python, PYSS, given | {"scheduler": scheduler})
        own, done = replayed(trace, policy)
        theirs = np.array([starts[str(job)] for job in done.jobs["job"]], float)
        print_line(
            "pyss", len(trace), policy, spent, (theirs - done.jobs["submit"]).mean()
        )
        print_line("slotkern", len(trace), policy, own, done.jobs["wait"].mean())
        same = int((theirs == done.jobs["start"]).sum())
        print(
            f"    {spent / own:,.0f} times as many jobs a second; {same:,} starts equal"
        )


def main(words: Sequence[str] | None = None) -> None:
    """Compare with the simulators that are given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--accasim", help="an interpreter that has accasim")
    parser.add_argument("--pyss", type=Path, help="a checkout of predictsim")
    parser.add_argument("--python2", help="a Python 2, for pyss")
    parser.add_argument("--jobs", type=int, help="number of jobs, from the first")
    options = parser.parse_args(words)
    if (options.pyss is None) != (options.python2 is None):
        parser.error("--pyss and --python2 go together")
    trace = cleaned(sk.read_trace(options.trace), options.jobs)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "jobs.swf"
        if options.accasim:
            beside_accasim(trace, options.accasim, file)
        if options.pyss:
            beside_pyss(trace, options.python2, options.pyss, file)


if __name__ == "__main__":
    main()
