"""
When can maintenance be done?
=============================

Eight nodes of one rack must be free for six hours. Where is that possible, and what
does the machine look like afterwards?
"""

import slotkern as sk

machine = sk.Machine(
    {
        "name": [f"rack{k // 8 + 1}-{k % 8}" for k in range(24)],
        "rack": [k // 8 + 1 for k in range(24)],
    }
)
busy = {
    "node": ["rack2-0", "rack2-3", "rack2-5", "rack1-1", "rack3-4"],
    "start": ["2026-03-02 06:00", "2026-03-02 15:00", "2026-03-02 06:00"] * 1
    + ["2026-03-02 09:00", "2026-03-02 08:00"],
    "end": ["2026-03-02 14:00", "2026-03-02 21:00", "2026-03-02 11:30"]
    + ["2026-03-02 18:00", "2026-03-03 02:00"],
}
free = sk.free_slots(
    machine,
    busy,
    start="2026-03-02 06:00",
    end="2026-03-03 12:00",
    zone="UTC",
    unit="h",
)
pool = sk.SlotPool(free)

# %%
# The earliest six hours of all eight nodes of rack 2; they are reserved in the name of
# their owner.

work = sk.Request(8, walltime="6h", where="rack == 2", name="maintenance")
window = pool.find(work, "start")
pool.book(window, owner="operations")
print(window.start_time, "to", window.finish_time)

# %%

pool.plot(title="Rack 2 is free for six hours")
