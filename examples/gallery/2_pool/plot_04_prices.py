"""
When is it cheap?
=================

Prices depend on the hour; at night they are half. How much later does the cheapest
window of a job start than the earliest one?
"""

from matplotlib.figure import Figure

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
windows = {
    "earliest": sk.find_window(free, job, "start"),
    "cheapest": sk.find_window(free, job, "cost"),
}
for name, window in windows.items():
    print(name, window.start_time, window.cost)

# %%
# The price of each hour above the windows.

figure = Figure(figsize=(8, 4.6), layout="constrained")
above, below = figure.subplots(2, 1, height_ratios=(1, 3))
sk.plot_gantt(free, windows, ax=below)
hours = [free.clock.time(date) for date in (*prices["start"], prices["end"][-1])]
above.stairs(prices["price"], hours, color="#20262E", linewidth=2, label="price")
above.set(xlim=below.get_xlim(), ylim=(0, 1.2), xticks=[], ylabel="EUR per\nnode hour")
for window, colour in zip(windows.values(), ("#0072B2", "#D55E00"), strict=True):
    label = f"{window.cost:g} EUR for the window"
    above.axvspan(window.start, window.finish, color=colour, alpha=0.3, label=label)
above.set_title("Now, or at night for half the price", loc="left")
above.spines[["top", "right"]].set_visible(False)
above.legend(frameon=False, ncols=3, loc="lower right")
figure
