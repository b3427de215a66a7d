"""Times searches by value against the papers' table at every step of the sweep.

``python benchmarks/additive.py`` uses the papers' environments, with real-valued
performance (about 100 groups) and with integers (9). The table is the vectorized one of
`choose` (method "table"); it is called for the live slots of every step with costs
rounded up to integers. Both sides run in one process, and their answers are compared.
"""

from __future__ import annotations

import argparse
import statistics
from time import perf_counter_ns

import numpy as np
from results import Measured, store

import slotkern as sk

JOB = sk.Request(7, 800, budget=644, min_performance=1)
NAMES = {
    "q": "largest sum of a value (MaxQ)",
    "dependable": "farthest from local tasks (DEP)",
    "coordinated": "closest to local tasks (COORD)",
}
PAPER_MS = 1700  # operational time that the paper reports for DEP and COORD


def environment(cycle, nodes=100, *, real):
    """Return the slots of an environment; `real` draws performance from a continuum."""
    slots = sk.generate_environment(
        "square", seed=5, cycle=cycle, nodes=nodes
    ).slots.copy()
    if real:
        rng = np.random.default_rng([5, cycle])
        performance = rng.uniform(2, 10, slots["node"].max() + 1)
        deviation = np.maximum(0.02, 1 + 0.2 * rng.standard_normal(len(performance)))
        slots["performance"] = performance[slots["node"]]
        slots["price"] = (0.115 * performance * deviation)[slots["node"]]
    return slots


def steps_of(slots, job):
    """Yield span, start and live rows of every step of the papers' procedure."""
    start, end, performance = (slots[f] for f in ("start", "end", "performance"))
    for least in np.unique(performance)[::-1]:
        span = job.volume / least
        usable = np.flatnonzero((performance >= least) & (start + span <= end))
        for row in usable:
            t = start[row]
            live = usable[(usable <= row) & (t + span <= end[usable])]
            if len(live) >= job.nodes and (performance[live] == least).any():
                yield span, t, live


def by_table(slots, job, criterion):
    """Return the best value, the nanoseconds of all tables, and their number."""
    best, spent, count = -np.inf, 0, 0
    for span, t, live in steps_of(slots, job):
        cost = np.ceil(span * slots["price"][live] - 1e-9)
        before, after = t - slots["start"][live], slots["end"][live] - t - span
        value = {
            "q": slots["q"][live],
            "dependable": np.minimum(before, after),
            "coordinated": -np.maximum(before, after),
        }[criterion]
        begin = perf_counter_ns()
        choice = sk.choose(cost, value, job.nodes, job.budget, method="table")
        spent += perf_counter_ns() - begin
        count += 1
        if choice is not None and choice.value > best:
            best = choice.value
    return best, spent, count


def timed(call, *given, repeat=5):
    """Return the median wall-clock nanoseconds of repeated calls, and the result."""
    spent = []
    for _ in range(repeat):
        begin = perf_counter_ns()
        answer = call(*given)
        spent.append(perf_counter_ns() - begin)
    return statistics.median(spent), answer


def ratios(criterion, cycles, *, real):
    """Print and return how many times faster the search is: median and worst case."""
    found, fast = [], []
    for cycle in range(cycles):
        slots = environment(cycle, real=real)
        pool = sk.SlotPool(slots)
        spent, window = timed(sk.find_window, pool, JOB, criterion)
        best, table, count = by_table(slots, JOB, criterion)
        assert window.proven
        if criterion == "q":  # rounded-up costs never allow more
            assert window.value >= best - 1e-9
        if criterion == "dependable":
            assert window.value * JOB.nodes >= best - 1e-9
        found.append(table / spent)
        fast.append(spent)
    median = statistics.median(fast) / 1e3
    print(
        f"{criterion:12} {'real' if real else 'integer':8} {median:9.1f} us   table at "
        f"every step x {statistics.median(found):6.0f}, worst {min(found):6.0f} of "
        f"{cycles} ({count} tables)   the paper's {PAPER_MS} ms x "
        f"{PAPER_MS * 1e3 / median:9.0f}",
        flush=True,
    )
    own = statistics.median(fast) / 1e9
    return Measured(
        f"{NAMES[criterion]}, square, n = 7: 100 nodes of "
        f"{'100' if real else '9'} speeds, {len(slots):,} slots",
        own * statistics.median(found),
        own,
        "the table of equation (2) at every step",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--worst-of", type=int, default=200)
    parser.add_argument(
        "--keep", action="store_true", help="store the rows in measured.json"
    )
    options = parser.parse_args()
    rows = []
    for real in (True, False):
        often = options.worst_of if real else options.cycles
        rows.append(ratios("q", often, real=real))
        rows.append(ratios("dependable", options.cycles, real=real))
        rows.append(ratios("coordinated", options.cycles, real=real))
    if options.keep:
        store("additive", rows)

    small, large = [], []
    for cycle in range(options.cycles):
        for nodes, into in ((100, small), (1000, large)):
            pool = sk.SlotPool(environment(cycle, nodes, real=True))
            into.append(timed(sk.find_window, pool, JOB, "q")[0])
    print(
        f"q, 1,000 nodes: {statistics.median(large) / 1e3:.0f} us, "
        f"{statistics.median(large) / statistics.median(small):.1f} times 100 nodes"
    )

    @sk.criterion
    def column(slot, length):
        return slot.q

    for real in (True, False):
        quotient = []
        for cycle in range(options.cycles):
            pool = sk.SlotPool(environment(cycle, real=real))
            built_in, first = timed(sk.find_window, pool, JOB, "q", repeat=9)
            own, second = timed(sk.find_window, pool, JOB, column, repeat=9)
            assert np.isclose(first.value, second.value, rtol=1e-12)
            quotient.append(own / built_in)
        print(
            f"@criterion of a column: {statistics.median(quotient):.2f} times the "
            f"built-in search ({'real' if real else 'integer'} performance)"
        )


if __name__ == "__main__":
    main()
