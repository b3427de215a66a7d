"""
Which alternatives did the jobs get?
====================================

Every job of a batch has several alternatives. The schedule selects one per job so that
the sum of the times is least within a limit on the total cost.
"""

import slotkern as sk
from slotkern.plotting.batch import plot_schedule

slots = sk.generate_environment("vo", seed=1).slots
jobs = [
    sk.Request(3, 300, budget=1200),
    sk.Request(2, 250, budget=800),
    sk.Request(4, 200, budget=900),
    sk.Request(2, 350, budget=900),
]
schedule = sk.schedule_batch(slots, jobs, minimize="time", under="cost", most=6)
print(schedule, schedule.totals()["processor_time"], "of at least", schedule.bound)

# %%
# All alternatives are outlined; the chosen ones are filled.

plot_schedule(schedule)
