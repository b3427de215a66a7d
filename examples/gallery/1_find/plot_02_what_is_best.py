"""
Early, short or cheap?
======================

A criterion defines which window is best. The same job is searched by four criteria in a
random environment of a hundred nodes, in which faster nodes cost more.
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
# Each printed row shows the best window by one criterion and its values by the others.
# The picture contains only the nodes that a window uses.

sk.plot_gantt(
    environment,
    best,
    nodes="used",
    horizon=environment.horizon,
    title="The best window by each of four criteria",
)
