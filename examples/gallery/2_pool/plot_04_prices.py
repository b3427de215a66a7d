"""
When is it cheap?
=================

Prices depend on the hour; at night they are half. A job may run across a change of
price, and pays for each hour what that hour costs. How much later does the cheapest
window of a job start than the earliest one, and what does a budget between them give?
"""

import slotkern as sk

machine = sk.Machine.homogeneous(8, prefix="node")
prices = {
    "start": ["2026-05-04 08:00", "2026-05-04 20:00", "2026-05-05 06:00"],
    "end": ["2026-05-04 20:00", "2026-05-05 06:00", "2026-05-05 20:00"],
    "price": [1.00, 0.50, 1.00],
}
busy = {
    "node": ["node0", "node1", "node2"],
    "start": ["2026-05-04 08:00", "2026-05-04 10:00", "2026-05-04 18:00"],
    "end": ["2026-05-04 16:00", "2026-05-04 23:00", "2026-05-05 01:00"],
}
free = sk.free_slots(
    machine,
    busy,
    start="2026-05-04 08:00",
    end="2026-05-05 20:00",
    zone="UTC",
    unit="h",
    prices=prices,
)
job = sk.Request(5, walltime="6h")
earliest = sk.find_window(free, job, "start")
windows = {
    "earliest": earliest,
    "for a budget of 20": sk.find_window(free, job.replace(budget=20), "start"),
    "cheapest": sk.find_window(free, job, "cost"),
}
for name, window in windows.items():
    print(f"{name:20} {window.start_time:%a %H:%M}  {window.cost:g} EUR")

# %%
# The price of each hour below the windows.

sk.plot_gantt(free, windows, title="Now, or at night for half the price")
