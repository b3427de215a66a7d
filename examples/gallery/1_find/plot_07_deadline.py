"""
What does a deadline cost?
==========================

The cheapest window for every deadline, for jobs of three sizes. Jobs with later
deadlines pay less, and wide jobs have to wait longer for a good price.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

pool = sk.SlotPool(sk.generate_environment("aep", seed=7).slots)
deadlines = np.linspace(60, 600, 200)

figure = Figure(figsize=(8, 3.6), layout="constrained")
ax = figure.add_subplot()
for nodes, colour in ((3, "#009E73"), (6, "#0072B2"), (12, "#D55E00")):
    jobs = [sk.Request(nodes, 310, deadline=float(d)) for d in deadlines]
    cost = sk.find_windows(pool, jobs, "cost", shape="ragged").cost / nodes
    ax.step(deadlines, cost, where="post", color=colour, linewidth=2)
    ax.annotate(
        f"{nodes} nodes",
        (deadlines[-1], cost[-1]),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=colour,
    )
ax.set(xlabel="deadline (time)", ylabel="least cost per node (money)")
ax.set_title("A later deadline costs less", loc="left")
ax.spines[["top", "right"]].set_visible(False)
figure
