"""
How much time does money save?
==============================

The complete trade-off between two measures of a batch: for every limit on the total
cost, the least total time of a selection of one alternative per job.
"""

import slotkern as sk
from slotkern.plotting.batch import plot_trade_off

slots = sk.generate_environment("vo", nodes=40, seed=2).slots
jobs = [sk.Request(3, 200.0 + 20 * k, budget=1500) for k in range(12)]
schedule = sk.schedule_batch(slots, jobs, minimize="time", under="cost")
figure = plot_trade_off(schedule)
ax = figure.axes[0]
ax.set(xlabel="cost of the chosen windows (money)", ylabel="processor time (time)")
ax.set_title(
    "The least processor time of twelve jobs for each limit on money", loc="left"
)
figure
