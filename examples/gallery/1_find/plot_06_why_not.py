"""
Why is there no window?
=======================

No window fits. `explain` reports which limit excludes how many nodes, and the smallest
change of each limit that would help. Every number is the result of an exact search.
"""

from matplotlib.figure import Figure

import slotkern as sk

environment = sk.generate_environment("aep", seed=3)
job = sk.Request(nodes=8, volume=400, budget=2400, deadline=90, min_performance=3)
why = sk.explain(environment, job, shape="ragged")
print(why)

# %%
# The number of nodes left after each limit, and the most that are free at the same
# time.

left = {
    "have slots": why.nodes_total,
    "are fast enough": why.nodes_fast,
    "pass the filter too": why.nodes_proper,
    "are free together": why.together,
    "fit the budget too": why.most_nodes,
}
figure = Figure(figsize=(8, 2.8), layout="constrained")
ax = figure.add_subplot()
bars = ax.barh([*left], [*left.values()], color="#56B4E9")
ax.bar_label(bars, padding=12)
ax.axvline(job.nodes, color="#D55E00", label=f"{job.nodes} asked for")
ax.invert_yaxis()
ax.margins(x=0.08)
ax.set(xlabel="nodes")
ax.set_title("Nodes left after each limit", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
figure
