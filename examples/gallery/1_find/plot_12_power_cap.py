"""
Which nodes fit under a power cap?
==================================

`choose` solves the knapsack of the searches by itself: exactly n items of the largest
value within a budget and limits on further sums. Here it chooses twelve of forty nodes
for a range of caps on their total power.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

rng = np.random.default_rng(8)
performance = rng.uniform(2, 10, 40).round(1)
price = (performance * rng.uniform(0.8, 1.2, 40)).round(2)
watts = (60 + 3 * performance**1.7 * rng.uniform(0.8, 1.3, 40)).round()

caps = np.arange(1200, 2700, 50)
chosen = [
    sk.choose(price, performance, 12, 90.0, limits=[(watts, "<=", float(cap))])
    for cap in caps
]
worth = [np.nan if choice is None else choice.value for choice in chosen]

# %%
# Below some cap no choice of twelve nodes exists.

figure = Figure(figsize=(8, 3.4), layout="constrained")
ax = figure.add_subplot()
ax.step(caps, worth, where="post", color="#009E73", linewidth=2)
ax.set(xlabel="power cap (W)", ylabel="sum of performances (work per time)")
ax.set_title("What twelve nodes can do under a power cap", loc="left")
ax.spines[["top", "right"]].set_visible(False)
figure
