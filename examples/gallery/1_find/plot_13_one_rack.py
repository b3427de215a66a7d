"""
When can four nodes of one rack start?
======================================

A group rule bounds how the nodes of a window spread over racks. Each rule delays the
job, and the search finds the earliest start that the rule allows.
"""

import numpy as np

import slotkern as sk

machine = sk.Machine(
    {"name": [f"{rack}[1-4]" for rack in "abcd"], "rack": list("abcd")},
    levels=["rack"],
)
rng = np.random.default_rng(19)
first = rng.integers(0, 8, 16)
busy = {
    "node": np.arange(16),
    "start": first,
    "end": first + rng.integers(3, 11, 16),
}
free = sk.free_slots(machine, busy, start=0, end=20)
rules = {
    "anywhere": {},
    "two racks": {"limits": "distinct(rack) <= 2"},
    "one rack": {"within": "rack"},
    "one node of each rack": {"limits": "most(rack) <= 1"},
}
windows = {
    name: sk.find_window(free, sk.Request(4, walltime=6, **rule), "start")
    for name, rule in rules.items()
}
for name, window in windows.items():
    print(f"{name}: from {window.start:g} on {', '.join(window.names)}")

# %%
# Each window is the best of all that obey its rule.

sk.plot_gantt(free, windows, title="Four nodes for six hours, by group rule")
