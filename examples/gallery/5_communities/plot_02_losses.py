"""
What if messages get lost?
==========================

Lost messages are sent again, and no job is ever lost or run twice. How many jobs
complete, and with how many messages?
"""

import numpy as np
from matplotlib.figure import Figure

import slotkern as sk

losses = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
completion, messages = [], []
for loss in losses:
    found = [
        sk.simulate_community(
            *sk.generate_community(jobs=1000, seed=seed),
            sk.Community(6, loss=loss, retries=3),
            seed=seed,
        ).metrics()
        for seed in range(5)
    ]
    completion.append(np.mean([each["completion"] for each in found]))
    messages.append(np.mean([each["messages"] for each in found]))

# %%
# Means over five seeds. The number of messages does not grow, because a lost request
# gets no reply.

figure = Figure(figsize=(8, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(losses, 100 * np.array(completion), "o-", color="#0072B2")
left.set(title="Jobs that complete", ylabel="share (%)", ylim=(90, 100.5))
right.plot(losses, messages, "o-", color="#D55E00")
right.set(title="Messages per job", ylabel="messages", ylim=(0, 1.1 * max(messages)))
for ax in (left, right):
    ax.set_xlabel("share of messages that get lost (ratio)")
    ax.spines[["top", "right"]].set_visible(False)
figure
