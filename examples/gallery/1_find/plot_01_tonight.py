"""
Where do 16 nodes fit tonight?
==============================

An administrator has a list of nodes, a list of what is busy, and a job of 16 nodes for
four hours that may cost 30 EUR. Nodes are given by name and times as dates.
"""

import slotkern as sk

machine = sk.Machine(
    {
        "name": [f"n{k:02}" for k in range(24)],
        "price": [0.40] * 12 + [0.50] * 12,  # EUR an hour
    }
)
busy = {
    "node": [f"n{k:02}" for k in (0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17)],
    "start": ["2026-10-24 17:00"] * 6 + ["2026-10-24 19:00"] * 6,
    "end": ["2026-10-24 21:30"] * 6 + ["2026-10-25 01:00"] * 6,
}
free = sk.free_slots(
    machine,
    busy,
    start="2026-10-24 18:00",
    end="2026-10-25 08:00",
    zone="Europe/Berlin",
    unit="h",
)

# %%
# The earliest window, and a picture of the night. Daylight saving time ends at three,
# so the night is one hour longer; the axis shows the repeated hour.

pool = sk.SlotPool(free)
job = sk.Request(16, walltime="4:00:00", budget=30, name="weather")
window = pool.find(job, "start")
print(window.start_time, "to", window.finish_time, "for", window.cost, "EUR")
window.plot(pool, title="Sixteen nodes for four hours")
