"""
How sure is the mean wait?
==========================

A trace is one sample. Drawing its weeks again with replacement (bootstrap) shows how
much the mean would vary with other weeks.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

rng = np.random.default_rng(4)
jobs = np.full(12_000, -1, sk.SWF)
jobs["submit"] = rng.exponential(600, 12_000).cumsum().round()
jobs["run_time"] = rng.lognormal(7.6, 1.6, 12_000).clip(10, 172800).round()
jobs["requested_time"] = 2 * jobs["run_time"] + 60
jobs["allocated"] = 2 ** rng.integers(0, 6, 12_000)
trace = sk.Trace(jobs, header={"MaxProcs": "160"})

waits = {"easy": [], "conservative": [], "easy-sjf": []}
for seed in range(60):
    weeks = sk.resample_weeks(trace, seed=seed)
    for policy, found in waits.items():
        found.append(sk.replay(weeks, policy=policy).metrics()["wait_mean"] / 60)

# %%
# Sixty draws each; the box contains half of them.

figure = Figure(figsize=(8, 2.6), layout="constrained")
ax = figure.add_subplot()
ax.boxplot(
    [*waits.values()],
    tick_labels=[*waits],
    orientation="horizontal",
    medianprops={"color": "#D55E00"},
)
ax.set(xlabel="mean wait (min)")
ax.set_title("Mean waits of resampled weeks", loc="left")
ax.spines[["top", "right"]].set_visible(False)
figure
