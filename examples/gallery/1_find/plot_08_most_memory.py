"""
The most memory for the money?
==============================

Any column of the slots can be the criterion. The search then solves a knapsack exactly
at every step: n slots with the largest sum within the budget.
"""

import slotkern as sk

environment = sk.generate_environment(
    "square", seed=1, extra={"memory": {"low": 16, "high": 256}}
)
job = sk.Request(nodes=7, volume=800, budget=644)
window = sk.find_window(environment, job, "memory")
print(f"{window.value:.0f} GB from {window.start:.0f} on, for {window.cost:.1f}")
print("proven:", window.proven, "- no window has more than", round(window.bound, 1))

# %%
# The best window of each step, and the best of all steps.

figure = sk.plot_steps(environment, job, "memory")
ax = figure.axes[0]
ax.set(xlabel="start of the window (time)", ylabel="memory of seven nodes (GB)")
ax.set_title("The most memory that a window can have, by its start", loc="left")
figure
