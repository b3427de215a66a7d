"""
How many processors would halve the wait?
=========================================

The same jobs on machines of different sizes show the effect of a purchase before it is
made.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

rng = np.random.default_rng(2)
jobs = np.full(10_000, -1, sk.SWF)
jobs["submit"] = rng.exponential(100, 10_000).cumsum().round()
jobs["run_time"] = rng.lognormal(6, 1.6, 10_000).clip(10, 86400).round()
jobs["requested_time"] = 2 * jobs["run_time"] + 60
jobs["allocated"] = 2 ** rng.integers(0, 6, 10_000)
trace = sk.Trace(jobs, header={"MaxProcs": "192"})

more = np.arange(0, 97, 8)
waits = {
    policy: [
        sk.replay(trace, policy=policy, more_processors=int(k)).metrics()["wait_mean"]
        for k in more
    ]
    for policy in ("easy", "easy-sjf")
}

# %%

figure = Figure(figsize=(8, 3.4), layout="constrained")
ax = figure.add_subplot()
for (policy, wait), colour in zip(waits.items(), ("#0072B2", "#D55E00"), strict=True):
    ax.plot(192 + more, np.array(wait) / 60, "o-", color=colour, label=policy)
ax.set(xlabel="processors", ylabel="mean wait (min)", ylim=(0, None))
ax.set_title("Mean wait on larger machines", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure
