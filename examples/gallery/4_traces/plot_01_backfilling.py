"""
EASY or conservative?
=====================

Backfilling policies differ in which jobs may start before earlier ones. Twenty thousand
jobs are replayed by three policies, each in some hundredths of a second. For a trace of
your own machine change one line: ``trace = sk.read_trace("mine.swf.gz")``.
"""

import numpy as np

import slotkern as sk
from slotkern.plotting.flows import plot_replays

rng = np.random.default_rng(1)
count = 20_000
day = 86400
jobs = np.full(count, -1, sk.SWF)
jobs["submit"] = rng.exponential(60, count).cumsum().round()
jobs["run_time"] = rng.lognormal(6, 1.6, count).clip(10, day).round()
jobs["requested_time"] = (jobs["run_time"] * rng.uniform(1, 5, count) + 60).round()
jobs["allocated"] = 2 ** rng.integers(0, 6, count)
trace = sk.Trace(jobs, header={"MaxProcs": "256"})

# %%
# The replays and their means over all jobs.

done = {
    name: sk.replay(trace, policy=name) for name in ("fcfs", "easy", "conservative")
}
for name, replay in done.items():
    found = replay.metrics()
    print(
        f"{name:13} mean wait {found['wait_mean']:9,.0f} s   "
        f"bounded slowdown {found['bounded_slowdown_mean']:7,.1f}   "
        f"utilization {found['utilization']:.3f}"
    )

# %%

figure = plot_replays(done)
figure.suptitle("One trace under three policies", x=0.01, ha="left")
figure
