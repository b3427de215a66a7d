"""
Which alternatives are worth a look?
====================================

All disjoint windows of a job in one sweep, and those of them that no other one beats
in both cost and finish.
"""

from matplotlib.figure import Figure

import slotkern as sk

environment = sk.generate_environment("aep", seed=9)
job = sk.Request(nodes=5, volume=310, budget=1500)
found = sk.find_alternatives(environment, job, shape="ragged")
good = found.pareto("cost", "finish")
print(len(found), "alternatives,", len(good), "worth a look")

# %%
# What is left when both axes count.

figure = Figure(figsize=(8, 3.8), layout="constrained")
ax = figure.add_subplot()
ax.scatter(found.cost, found.finish, color="#B4B9C0", label="all alternatives")
ax.plot(good.cost, good.finish, "o-", color="#0072B2", label="not beaten in both")
ax.set(xlabel="cost", ylabel="finish", title="Alternatives of one job")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure
