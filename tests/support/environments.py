"""Random environments with the distributions of the papers, for tests."""

import numpy as np


def random_environment(
    nodes: int,
    interval: float,
    seed: int,
    *,
    real_performance: bool = False,
    load: tuple[float, float] = (0.1, 0.5),
) -> np.ndarray:
    """Return free slots of `nodes` nodes in [0, interval), sorted by (start, node)."""
    random = np.random.default_rng(seed)
    rows = []
    for node in range(nodes):
        performance = float(random.integers(2, 11))
        if real_performance:
            performance = random.uniform(2, 10)
        price = max(1.1 * performance * (1 + 0.2 * random.normal()), 0.02)
        share = load[0] + (load[1] - load[0]) * random.hypergeometric(3, 3, 3) / 3
        busy = round(share * interval)
        tasks = []
        while sum(tasks) < busy:
            tasks.append(min(int(random.integers(10, 106)), busy - sum(tasks)))
        random.shuffle(tasks)
        free = int(interval) - busy
        cuts = np.sort(random.integers(0, free + 1, len(tasks)))
        now = previous = 0
        for cut, task in zip([*cuts, free], [*tasks, 0], strict=True):
            if cut > previous:
                rows.append((node, now, now + cut - previous, performance, price))
            now += cut - previous + task
            previous = cut
    rows.sort(key=lambda row: (row[1], row[0]))
    kinds = [("start", "f8"), ("end", "f8"), ("performance", "f8"), ("price", "f8")]
    return np.array(rows, dtype=np.dtype([("node", "i4"), *kinds], align=True))
