"""
Which policy for tonight's queue?
=================================

The same twenty jobs on the same nodes by five policies. Backfilling starts them early;
slicing the batch and choosing among alternatives uses less processor time.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

policies = {
    "backfilling, EASY": sk.Backfilling("easy"),
    "backfilling, conservative": sk.Backfilling(),
    "CSS": sk.CSS,
    "batch-slicer, 3 slices": sk.BatchSlicer(3),
    "BSF, 10 jobs sliced": sk.BSF(10, 3),
}
rng = np.random.default_rng(3)
figures = {name: [] for name in policies}
for seed in range(10):
    slots = sk.generate_environment("vo", seed=seed).slots
    jobs = [
        sk.Request(int(n), float(v), budget=float(1.3 * n * v))
        for n, v in zip(rng.integers(2, 6, 20), rng.uniform(200, 400, 20), strict=True)
    ]
    for name, policy in policies.items():
        means = sk.schedule_batch(slots, jobs, policy).means()
        figures[name].append((means["start"], means["processor_time"]))

# %%
# Means over ten environments. Points to the left start early, points below use little
# processor time.

figure = Figure(figsize=(8, 3.8), layout="constrained")
ax = figure.add_subplot()
colours = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
for (name, points), colour in zip(figures.items(), colours, strict=True):
    start, used = np.mean(points, axis=0)
    ax.scatter(start, used, s=60, color=colour)
    above = -12 if "conservative" in name else 4  # the two labels would overlap
    ax.annotate(name, (start, used), xytext=(8, above), textcoords="offset points")
ax.set(xlabel="mean start (time)", ylabel="processor time per job (time)")
ax.set_title("Start early, or use little", loc="left")
ax.margins(x=0.35, y=0.15)
ax.spines[["top", "right"]].set_visible(False)
figure
