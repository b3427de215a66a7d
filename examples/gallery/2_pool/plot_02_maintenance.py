"""
When can maintenance be done?
=============================

Eight nodes of one rack must be free for six hours. The search finds the earliest time,
and the picture shows the machine after the reservation.
"""

import slotkern as sk

machine = sk.Machine(
    {
        "name": [f"rack{k // 8 + 1}-{k % 8}" for k in range(24)],
        "rack": [k // 8 + 1 for k in range(24)],
    }
)
day, night = "2026-03-02", "2026-03-03"
busy = [
    {"node": "rack2-0", "start": f"{day} 06:00", "end": f"{day} 14:00"},
    {"node": "rack2-3", "start": f"{day} 15:00", "end": f"{day} 21:00"},
    {"node": "rack2-5", "start": f"{day} 06:00", "end": f"{day} 11:30"},
    {"node": "rack1-1", "start": f"{day} 09:00", "end": f"{day} 18:00"},
    {"node": "rack3-4", "start": f"{day} 08:00", "end": f"{night} 02:00"},
]
free = sk.free_slots(
    machine,
    busy,
    start=f"{day} 06:00",
    end=f"{night} 12:00",
    zone="UTC",
    unit="h",
)
pool = sk.SlotPool(free)

# %%
# The earliest six hours of all eight nodes of rack 2, reserved with an owner.

work = sk.Request(8, walltime="6h", where="rack == 2", name="maintenance")
window = pool.find(work, "start")
pool.book(window, owner="operations")
print(window.start_time, "to", window.finish_time)

# %%

pool.plot(title="Rack 2 is free for six hours")
