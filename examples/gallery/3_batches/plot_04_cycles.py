"""
How does a flow of jobs get scheduled?
======================================

Jobs arrive all the time and are scheduled once per cycle. Jobs that do not fit return
in the next batch.
"""

import numpy as np

import slotkern as sk
from slotkern.plotting.batch import plot_cycles

rng = np.random.default_rng(5)
slots = sk.generate_environment("vo", nodes=16, interval=900, seed=5).slots
jobs = [
    sk.Request(int(n), float(v))
    for n, v in zip(rng.integers(2, 5, 24), rng.uniform(150, 350, 24), strict=True)
]
flow = sk.run_cycles(
    slots, jobs, np.sort(rng.uniform(0, 400, 24)), length=100, horizon=250
)
print(flow)

# %%

plot_cycles(flow)
