"""
Which processors ran what?
==========================

A replay assigns processors to every job. The picture shows one morning of a small
machine, processor by processor, with one colour per user.
"""

import numpy as np

import slotkern as sk
from slotkern.plotting.flows import plot_replay_gantt

rng = np.random.default_rng(5)
jobs = np.full(400, -1, sk.SWF)
jobs["submit"] = rng.exponential(240, 400).cumsum().round()
jobs["run_time"] = rng.lognormal(6.6, 1.0, 400).clip(60, 14400).round()
jobs["requested_time"] = (jobs["run_time"] * rng.uniform(1, 3, 400)).round()
jobs["allocated"] = 2 ** rng.integers(0, 5, 400)
jobs["user"] = rng.integers(0, 5, 400)
trace = sk.Trace(jobs, header={"MaxProcs": "32"})
done = sk.replay(trace, policy="easy")
figure = plot_replay_gantt(done, 8 * 3600, 14 * 3600)
ax = figure.axes[0]
ax.set_title("Six hours of 32 processors: one colour for each user", loc="left")
hours = range(8, 15)
ax.set_xticks([hour * 3600 for hour in hours], [f"{hour}:00" for hour in hours])
ax.set_xlabel("time since the start of the trace (h)")
figure
