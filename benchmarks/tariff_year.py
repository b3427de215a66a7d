"""Savings of windows under a tariff in a year of hourly prices: a table, a picture.

    python benchmarks/tariff_year.py [PICTURE]

64 nodes of 0.3 to 0.6 kilowatts, of whose time 45% is busy, and 150 submissions of jobs
on 8 nodes. Each job starts as early as possible, or at the cheapest time within a
patience of a day or a week, or in the cheapest window of free time that is cut into
blocks with their mean price. All are charged by the hour. Prices are synthetic; see
`slotkern.generate_prices`.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np

import slotkern as sk

YEAR = {"start": "2026-01-01", "end": "2027-01-01", "zone": "Europe/Berlin"}
HOURS, NODES, SUBMISSIONS, WIDTH = 8760.0, 64, 150, 8
LENGTHS, PATIENCE, BLOCKS = (1, 2, 4, 8, 12, 24, 48), (24, 168), (1, 6, 12, 24)


def free_time(random: np.random.Generator) -> Any:
    """Return free spans of nodes whose base price is their power."""
    power = np.round(random.uniform(0.3, 0.6, NODES), 3)
    rows = []
    for node in range(NODES):
        time = random.exponential(30) * random.integers(0, 2)
        while time < HOURS:
            end = min(HOURS, time + random.exponential(70) + 0.5)
            rows.append((node, time, end))
            time = end + random.exponential(55) + 0.2
    node, start, end = (np.array(column) for column in zip(*rows, strict=True))
    return sk.make_slots(
        node=node,
        start=start,
        end=end,
        performance=1.0,
        price=power[node],
        tariff="spot",
    )


def cut_time(free: Any, spot: sk.Tariff, block: int) -> sk.SlotPool:
    """Return a pool of free time that is cut into blocks with their mean price."""
    rows = []
    for slot in free:
        edges = np.arange(slot["start"] // block + 1, np.ceil(slot["end"] / block))
        times = [slot["start"], *(block * edges), slot["end"]]
        for begin, end in pairwise(times):
            mean = spot.mean(begin // block * block, block)
            rows.append((slot["node"], begin, end, slot["price"] * mean))
    node, start, end, price = (np.array(column) for column in zip(*rows, strict=True))
    slots = sk.make_slots(node=node, start=start, end=end, performance=1.0, price=price)
    return sk.SlotPool(slots)


def main() -> None:
    clock = sk.Clock(YEAR["start"], unit="h", zone=YEAR["zone"])
    prices = sk.generate_prices(**YEAR, seed=7)
    spot = sk.Tariff.of_prices(prices, clock=clock, outside=1)
    random = np.random.default_rng(7)
    free = free_time(random)
    power = np.zeros(NODES)
    power[free["node"]] = free["price"]
    pool = sk.SlotPool(free, tariffs={"spot": spot})
    cuts = {block: cut_time(free, spot, block) for block in BLOCKS}
    submitted = np.sort(random.uniform(0, HOURS - 400, SUBMISSIONS))

    def bill(window: Any) -> float:
        if window is None:
            return np.nan
        parts = window.slots
        amounts = spot.integral(parts["start"], parts["end"] - parts["start"])
        return float(power[parts["node"]] @ amounts)

    saved: dict[tuple[int, Any], list[float]] = {}
    print("| job | patience | exact | waits |", *(f"cut {b} h |" for b in BLOCKS))
    for patience in PATIENCE:
        for length in LENGTHS:
            bills: dict[Any, list[float]] = {key: [] for key in ("now", 0, *BLOCKS)}
            waits = []
            for time in submitted.tolist():
                job = sk.Request(
                    WIDTH, length, earliest=time, deadline=time + length + patience
                )
                now = pool.find(job, "start", shape="ragged", required=True)
                best = pool.find(job, "cost", shape="ragged", required=True)
                assert np.isclose(best.cost, bill(best), rtol=1e-9)
                waits.append(best.start - now.start)
                bills["now"].append(bill(now))
                bills[0].append(bill(best))
                for block, other in cuts.items():
                    bills[block].append(bill(other.find(job, "cost", shape="ragged")))
            total = sum(bills["now"])
            row = {key: 1 - sum(bills[key]) / total for key in (0, *BLOCKS)}
            for key, share in row.items():
                saved.setdefault((patience, key), []).append(share)
            cells = ["none" if np.isnan(x) else f"{x:.0%}" for x in row.values()]
            cells.insert(1, f"{np.mean(waits):.0f} h")
            print(f"| {length} h | {patience} h |", " | ".join(cells), "|", flush=True)
    if len(sys.argv) > 1:
        draw(saved, sys.argv[1])


def draw(saved: dict[tuple[int, Any], list[float]], path: str) -> None:
    from slotkern.plotting.style import label_axes, new_figure

    axes = new_figure(8, 3.4).subplots(1, 2, sharey=True)
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
    for ax, patience in zip(axes, PATIENCE, strict=True):
        for key, colour in zip((0, *BLOCKS), colours, strict=True):
            shares = 100 * np.array(saved[patience, key])
            label = f"cut into {key} h" if key else "whole free time"
            style = {"marker": "o", "markersize": 4, "color": colour, "label": label}
            ax.plot(range(len(LENGTHS)), shares, **style)
        ax.set_xticks(range(len(LENGTHS)), [f"{length}" for length in LENGTHS])
        label_axes(ax, "length of the job (h)", "saved (%)" if ax is axes[0] else "")
        ax.set_title("a day of patience" if patience == 24 else "a week", loc="left")
        ax.axhline(0, color="#79818C", linewidth=0.8)
    axes[1].legend(frameon=False, fontsize=8)
    axes[0].figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
