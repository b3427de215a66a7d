"""
What would one more euro buy?
=============================

The earliest finish for every budget from the cost of the cheapest window up. At each
step of the curve a better window becomes affordable; between two steps more money has
no effect.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

environment = sk.generate_environment("aep", seed=5)
pool = sk.SlotPool(environment.slots)
job = sk.Request(nodes=5, volume=310)
cheapest = pool.find(job, "cost", shape="ragged").cost
earliest = pool.find(job, "finish", shape="ragged").cost

# %%
# Four hundred searches of a few microseconds each.

budgets = np.linspace(cheapest, earliest, 400)
jobs = [job.replace(budget=float(budget)) for budget in budgets]
finish = sk.find_windows(pool, jobs, "finish", shape="ragged").finish

figure = Figure(figsize=(8, 3.4), layout="constrained")
ax = figure.add_subplot()
ax.step(budgets, finish, where="post", color="#0072B2", linewidth=2)
ax.set(xlabel="budget (money)", ylabel="earliest finish (time)")
ax.set_title("The earliest finish that a budget buys", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.margins(x=0.01)
figure
