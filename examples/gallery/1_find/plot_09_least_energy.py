"""
The least energy?
=================

You can define a criterion as a function of a slot and the length of its part. It is
compiled once, and the search calls the compiled function without Python.
"""

import slotkern as sk


@sk.criterion
def energy(slot, length):
    """Return watt-minutes: a faster node draws more power for a shorter time."""
    idle, per_performance = 50.0, 4.0
    return (idle + per_performance * slot.performance**2) * length


environment = sk.generate_environment("square", seed=1)
job = sk.Request(nodes=7, volume=800, budget=800)
windows = {
    "least energy": sk.find_window(environment, job, sk.minimize(energy)),
    "lowest cost": sk.find_window(environment, job, "cost"),
    "shortest": sk.find_window(environment, job, "runtime"),
}
performance = environment.nodes["performance"]
for name, window in windows.items():
    watts = 50.0 + 4.0 * performance[[*window.nodes]] ** 2
    print(f"{name:13} {sum(watts) * window.runtime / 60e3:6.2f} kWh")

# %%

sk.plot_gantt(
    environment,
    windows,
    nodes="used",
    horizon=environment.horizon,
    title="Least energy, lowest cost, shortest: three different windows",
)
