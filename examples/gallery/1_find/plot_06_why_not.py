"""
Why is there no window?
=======================

Nothing fits. `explain` says where the nodes are lost, and the smallest change of each
limit that would help. Every figure of it is the answer of an exact search.
"""

from matplotlib.figure import Figure

import slotkern as sk

environment = sk.generate_environment("aep", seed=3)
job = sk.Request(nodes=8, volume=400, budget=2400, deadline=90, min_performance=3)
why = sk.explain(environment, job, shape="ragged")
print(why)

# %%
# How many nodes are left after each limit, and how many ever are free together.

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
ax.set_title("Where the nodes are lost", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
figure
