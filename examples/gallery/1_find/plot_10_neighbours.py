"""
Far from the neighbours' tasks, or close to them?
=================================================

Estimates of run times are often wrong. A *dependable* window leaves much time to the
tasks before and after it on its nodes. A *coordinated* window fills small gaps closely
and leaves the large ones to other jobs.
"""

import slotkern as sk

environment = sk.generate_environment("square", seed=4)
job = sk.Request(nodes=5, volume=800, budget=500)
windows = {
    criterion: sk.find_window(environment, job, criterion)
    for criterion in ("dependable", "coordinated")
}
sk.plot_neighbours(
    environment, windows, tasks=environment.tasks, horizon=environment.horizon
)
