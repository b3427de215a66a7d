"""
How many jobs fit, and when do they start?
==========================================

One call without the GIL places three hundred jobs one after another, each as early as
its budget allows.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

rng = np.random.default_rng(1)
pool = sk.SlotPool(sk.generate_environment("aep", nodes=60, seed=1).slots)
jobs = [
    sk.Request(int(n), float(v), budget=float(n * v * 1.4))
    for n, v in zip(rng.integers(1, 9, 300), rng.uniform(60, 200, 300), strict=True)
]
done = pool.schedule(jobs, shape="ragged")
print(int(done.booked.sum()), "booked;", "utilization", round(pool.utilization(), 3))

# %%
# Jobs later in the stream start later. Crosses at the top are jobs without a window, by
# reason.

figure = Figure(figsize=(8, 3.6), layout="constrained")
ax = figure.add_subplot()
number = np.arange(len(jobs))
size = np.array([job.nodes for job in jobs])
ax.scatter(number, done.start, s=6 * size, color="#0072B2", alpha=0.6, label="booked")
for reason, colour, level in (("budget", "#D55E00", 660), ("time", "#20262E", 630)):
    lost = np.array([each == reason for each in done.reasons])
    ax.scatter(
        number[lost],
        np.full(lost.sum(), level),
        marker="x",
        color=colour,
        label=f"no window: {reason}",
    )
ax.set(xlabel="job, in the order of the stream", ylabel="start (time)")
ax.set_title("When each job starts; larger dots are wider jobs", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
figure
