"""
What can I trade for an earlier finish?
=======================================

The Pareto front of a job: all windows that no other window dominates, which would be
as good by both cost and finish and better by one. Alternatives are something else:
disjoint windows, found one after the other, of which the front dominates most.
"""

import slotkern as sk

environment = sk.generate_environment("aep", seed=9)
job = sk.Request(nodes=5, volume=310, budget=1500)
front = sk.pareto(environment, job, ("cost", "finish"), shape="ragged")
print(front)

# %%
# The same job's alternatives beside it.

found = sk.find_alternatives(environment, job, shape="ragged")
figure = front.plot(title="Windows of one job by cost and finish")
ax = figure.axes[0]
ax.scatter(found.cost, found.finish, color="#B4B9C0", label="disjoint alternatives")
ax.set(xlabel="cost (money)", ylabel="finish (time)")
ax.legend(frameon=False)
figure
