"""
What can I trade for an earlier finish?
=======================================

The Pareto front of a job consists of all windows that no other window dominates: no
window is as good in both cost and finish and better in one of them. Alternatives are
different: disjoint windows, found one after the other; the front dominates most of
them.
"""

import slotkern as sk

environment = sk.generate_environment("aep", seed=9)
job = sk.Request(nodes=5, volume=310, budget=1500)
front = sk.pareto(environment, job, ("cost", "finish"), shape="ragged")
print(front)

# %%
# The alternatives of the same job in the same picture.

found = sk.find_alternatives(environment, job, shape="ragged")
figure = front.plot(title="Windows of one job by cost and finish")
ax = figure.axes[0]
ax.scatter(found.cost, found.finish, color="#B4B9C0", label="disjoint alternatives")
ax.set(xlabel="cost (money)", ylabel="finish (time)")
ax.legend(frameon=False)
figure
