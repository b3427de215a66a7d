"""
How many neighbours should a node ask?
======================================

Asking all nodes finds the best node and floods the network; asking one node finds few
offers.
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

sizes = [1, 2, 3, 4, 6, 8, 12, 16, 25]
completion, messages = [], []
for neighbours in sizes:
    found = [
        sk.simulate_community(
            *sk.generate_community(jobs=1000, seed=seed),
            sk.Community(neighbours),
            seed=seed,
        ).metrics()
        for seed in range(5)
    ]
    completion.append(np.mean([each["completion"] for each in found]))
    messages.append(np.mean([each["messages"] for each in found]))

# %%
# Means over five seeds; each dot is labelled with the number of neighbours asked.

figure = Figure(figsize=(8, 3.6), layout="constrained")
ax = figure.add_subplot()
ax.plot(messages, 100 * np.array(completion), "o-", color="#0072B2")
for number, x, y in zip(sizes, messages, completion, strict=True):
    ax.annotate(f"{number}", (x, 100 * y), xytext=(5, -11), textcoords="offset points")
ax.set(xlabel="messages per job", ylabel="jobs that complete (%)")
ax.margins(y=0.12)
ax.set_title("Effect of asking more neighbours", loc="left")
ax.spines[["top", "right"]].set_visible(False)
figure
