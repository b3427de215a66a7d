"""
How far from the best schedule?
===============================

The same jobs by four policies, in per cent of a proven bound: no schedule of all jobs
uses less processor time than the bound.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

policies = {
    "Optimal": sk.Optimal(gap=0.01, max_work=500),
    "batch-slicer, 3 slices": sk.BatchSlicer(3),
    "CSS": sk.CSS,
    "BSF, 5 jobs sliced": sk.BSF(5, 3),
    "backfilling": sk.Backfilling(),
}
rng = np.random.default_rng(1)
above = {name: [] for name in policies}
for seed in range(5):
    slots = sk.generate_environment("vo", seed=seed, load=(0.0, 0.15)).slots
    jobs = [
        sk.Request(int(n), float(v), budget=float(1.6 * n * v))
        for n, v in zip(rng.integers(2, 6, 10), rng.uniform(210, 400, 10), strict=True)
    ]
    made = {
        name: sk.schedule_batch(slots, jobs, policy, minimize="processor_time")
        for name, policy in policies.items()
    }
    if all(each.scheduled.all() for each in made.values()):
        for name, each in made.items():
            above[name].append(100 * (each.value / made["Optimal"].bound - 1))

# %%
# Dots are environments, lines are medians. `slotkern reproduce distance` computes the
# same for twenty jobs, by load and for cost.

figure = Figure(figsize=(8, 3.4), layout="constrained")
ax = figure.add_subplot()
for place, values in enumerate(reversed(above.values())):
    ax.scatter(values, np.full(len(values), place), s=28, color="#0072B2", alpha=0.6)
    ax.vlines(np.median(values), place - 0.3, place + 0.3, color="#D55E00", lw=2)
ax.set_yticks(range(len(above)), list(reversed(above)))
ax.set(xlabel="processor time above the bound (%)")
ax.set_xlim(left=-2)
ax.set_title("How far from the best schedule?", loc="left")
ax.spines[["top", "right"]].set_visible(False)
figure
