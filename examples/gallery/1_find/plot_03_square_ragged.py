"""
Must all parts end together?
============================

A *square* window occupies all its nodes until the slowest one is done, as tightly
coupled programs need. In a *ragged* window each part ends when its own work is done,
which is cheaper and suffices for parts that do not wait for each other.
"""

import slotkern as sk

slots = sk.make_slots(
    node=[0, 1, 2, 3],
    start=[0, 2, 0, 1],
    end=[24, 24, 24, 24],
    performance=[1, 2, 3, 4],
    price=[1, 2, 4, 5],
)
job = sk.Request(nodes=3, volume=24)
windows = {
    shape: sk.find_window(slots, job, "runtime", shape=shape)
    for shape in ("square", "ragged")
}
for shape, window in windows.items():
    print(f"{shape}: ends {window.finish:g}, costs {window.cost:g}")

# %%
# Both windows start at the same time on the same nodes, so the picture splits these
# rows between them.

sk.plot_gantt(slots, windows, title="One job, two shapes")
