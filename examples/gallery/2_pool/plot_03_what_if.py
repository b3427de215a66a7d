"""
What if four nodes fail tonight?
================================

A copy of the pool takes microseconds. Changes are tried on the copy, and the pool
itself stays unchanged.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

pool = sk.SlotPool(sk.generate_environment("aep", nodes=40, seed=6).slots)
rng = np.random.default_rng(6)
jobs = [
    sk.Request(int(n), float(v))
    for n, v in zip(rng.integers(1, 7, 80), rng.uniform(60, 200, 80), strict=True)
]


def starts(failed):
    """Return when the jobs start if these nodes fail."""
    copy = pool.copy()
    for node in failed:
        copy.remove_node(node)
    return copy.schedule(jobs, shape="ragged").start


whole, without = starts([]), starts([3, 11, 22, 37])

# %%
# Dots above the line are jobs that start later because of the failure.

figure = Figure(figsize=(5.5, 4.5), layout="constrained")
ax = figure.add_subplot()
ax.axline((0, 0), slope=1, color="#B4B9C0", label="the same start")
ax.scatter(whole, without, color="#D55E00", alpha=0.7, label="a job")
ax.set(xlabel="start with all 40 nodes (time)", ylabel="start with 36 nodes (time)")
ax.set_title("What four failed nodes do to the queue", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure
