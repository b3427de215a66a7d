"""
What does it cost to be choosy?
===============================

A filter is an expression over the columns of the slots. Each filter excludes nodes; the
cost of the cheapest window shows the price of the filter.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

environment = sk.generate_environment("aep", seed=2)
rng = np.random.default_rng(2)
nodes = environment.slots["node"]
slots = sk.make_slots(
    **{name: environment.slots[name] for name in sk.SLOT.names},
    memory=rng.choice([32, 64, 128], 100)[nodes],
    site=rng.choice(["north", "south", "east"], 100)[nodes],
)

wishes = {
    "any node": None,
    "64 GB": "memory >= 64",
    "128 GB": "memory >= 128",
    "64 GB in the north": "memory >= 64 and site == 'north'",
    "128 GB, not in the east": "memory >= 128 and site != 'east'",
}
cost = {
    name: sk.find_window(slots, sk.Request(6, 310, where=where), "cost").cost
    for name, where in wishes.items()
}

# %%

figure = Figure(figsize=(8, 2.8), layout="constrained")
ax = figure.add_subplot()
bars = ax.barh([*cost], [*cost.values()], color="#56B4E9")
ax.bar_label(bars, fmt="%.0f", padding=4)
ax.invert_yaxis()
ax.set(xlabel="cost (money)")
ax.set_title("The cheapest window of six nodes", loc="left")
ax.spines[["top", "right"]].set_visible(False)
figure
