"""
Early, short or cheap?
======================

"The best window" needs a word for what is best. The same job, by three criteria, in a
random environment of a hundred nodes whose faster ones cost more.
"""

import slotkern as sk

environment = sk.generate_environment("aep", seed=23)
job = sk.Request(nodes=5, volume=310, budget=1500)
best = {
    criterion: sk.find_window(environment, job, criterion, shape="ragged")
    for criterion in ("start", "finish", "runtime", "cost")
}
for name, window in best.items():
    print(
        f"{name:8} starts {window.start:5.0f}  ends {window.finish:6.1f}  "
        f"runs {window.runtime:5.1f}  costs {window.cost:7.1f}"
    )

# %%
# Along a row stands what the best by one criterion costs in terms of the others. Only
# the nodes that a window uses are drawn.

sk.plot_gantt(
    environment,
    best,
    nodes="used",
    horizon=environment.horizon,
    title="The best window by each of four criteria",
)
