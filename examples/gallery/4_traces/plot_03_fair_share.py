"""
Does fair share help users with few jobs?
=========================================

One user submits half of all jobs. With fair share the priority of a job falls with the
recent usage of its user, so jobs of the other users start first.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

rng = np.random.default_rng(3)
count = 8000
jobs = np.full(count, -1, sk.SWF)
jobs["submit"] = rng.exponential(85, count).cumsum().round()
jobs["run_time"] = rng.lognormal(6, 1.4, count).clip(10, 86400).round()
jobs["requested_time"] = 2 * jobs["run_time"] + 60
jobs["allocated"] = 2 ** rng.integers(0, 6, count)
jobs["user"] = np.where(rng.random(count) < 0.5, 0, rng.integers(1, 6, count))
trace = sk.Trace(jobs, header={"MaxProcs": "128"})

policies = {
    "EASY": sk.QueuePolicy("easy"),
    "EASY, fair share": sk.QueuePolicy(
        "easy", sk.Multifactor(share=1, half_life=86400)
    ),
}
slowdown = {}
for name, policy in policies.items():
    done = sk.replay(trace, policy=policy)
    slowdown[name] = done.users()["bounded_slowdown"]
    print(f"{name:17} fairness {done.metrics()['fairness']:.3f}")

# %%

figure = Figure(figsize=(8, 3.2), layout="constrained")
ax = figure.add_subplot()
for k, (name, values) in enumerate(slowdown.items()):
    position = np.arange(len(values)) + 0.4 * k - 0.2
    ax.bar(position, values, 0.38, label=name, color=("#B4B9C0", "#0072B2")[k])
ax.set_xticks(range(6), ["user 0:\nhalf of all", *(f"user {k}" for k in range(1, 6))])
ax.set(ylabel="mean bounded slowdown (ratio)")
ax.set_title("Slowdown of each user", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure
