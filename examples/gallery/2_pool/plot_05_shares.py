"""
How much sooner does a queue end if jobs share nodes?
=====================================================

A thousand jobs of one to eight parts wait for fifty nodes with 64 cores, four GPUs and
512 GB each. Most parts need a fraction of a node. The queue is planned twice: with the
share of each job, and on whole nodes.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

rng = np.random.default_rng(5)
machine = sk.Machine.homogeneous(
    50, cores=64, gpus=4, memory=512, capacity=["cores", "gpus", "memory"]
)
free = sk.free_slots(machine, start=0, end=2000)
shares = [
    {"cores": cores, "gpus": gpus, "memory": memory}
    for cores, gpus, memory in (
        *((1, 0, 4), (4, 0, 16), (8, 0, 32), (16, 0, 64), (32, 0, 128)),
        *((64, 0, 256), (8, 1, 64), (16, 1, 64), (16, 2, 128), (32, 4, 256)),
    )
]
jobs = [
    sk.Request(int(parts), int(hours), share=shares[kind])
    for parts, hours, kind in rng.integers([1, 1, 0], [9, 25, 10], (1000, 3))
]
cores = np.array([job.nodes * job.share["cores"] for job in jobs])
whole = [job.replace(share=None) for job in jobs]
done = {}
for name, queue in (("shares", jobs), ("whole nodes", whole)):
    done[name] = sk.HostPool(free).schedule(queue)
    print(f"{name}: the last job ends after {done[name].finish.max():,.0f} hours")

# %%
# The cores that jobs use over time. With shares, nearly all of them are in use until
# the queue is empty; on whole nodes most cores of a node are idle.

figure = Figure(figsize=(8, 3.4), layout="constrained")
ax = figure.add_subplot()
for (name, bookings), colour in zip(done.items(), ("#0072B2", "#D55E00"), strict=True):
    times, at = np.unique([bookings.start, bookings.finish], return_inverse=True)
    change = np.bincount(at.ravel(), np.concatenate([cores, -cores]))
    used = 100 / 3200 * np.cumsum(change)
    ax.plot(times, used, drawstyle="steps-post", label=name, color=colour)
ax.set(xlabel="time (hours)", ylabel="cores in use (%)", xlim=(0, None), ylim=(0, 105))
ax.set_title("The same queue on shared and on whole nodes", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure
