"""
A central scheduler, or neighbours that ask each other?
=======================================================

Twenty-six nodes of different systems. An independent node runs only the jobs submitted
to it that it supports; a central scheduler sees all nodes; in a community (CASA) each
node asks some others for offers.
"""

import slotkern as sk
from slotkern.plotting.communities import plot_communities

jobs, nodes = sk.generate_community(jobs=5000, seed=2)
runs = {
    name: sk.simulate_community(jobs, nodes, scenario)
    for name, scenario in (
        ("Ind", "ind"),
        ("Cen", "cen"),
        ("Dec-G", "dec-g"),
        ("Dec-P", "dec-p"),
    )
}
for name, run in runs.items():
    print(name, run)

# %%

figure = plot_communities(runs)
figure.suptitle("One workload in four kinds of community", x=0.01, ha="left")
figure
