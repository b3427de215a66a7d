"""The choice of one alternative for each job of a batch, as the paper computes it.

"Preference-based fair resource sharing and scheduling optimization in Grid VOs",
section 3.1: the backward recursion of eqs. (2) to (4) over the total expense, on a
grid. Expenses are rounded up to whole steps, so every choice is feasible, but the best
one may be missed; `slotkern.choose_one_each` solves the same problem without a grid.

Complexity: O(m G) time for m alternatives and G steps of the grid; an n G table.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .job import compiled

Numbers = NDArray[np.int64]


@compiled
def grid_choice(
    value: NDArray[np.float64],
    expense: NDArray[np.float64],
    first: Numbers,
    limit: float,
    steps: int,
    maximize: bool,
) -> Numbers:
    """Choose by eqs. (2)-(4); job i has the alternatives first[i] to first[i + 1].

    Returns the chosen row of each job, or no rows if no choice fits the grid.
    """
    jobs = len(first) - 1
    sign = -1.0 if maximize else 1.0
    used = np.ceil(expense * (steps / limit)).astype(np.int64)
    f = np.full((jobs + 1, steps + 1), np.inf)
    f[jobs] = 0.0  # f_{n+1} = 0
    taken = np.full((jobs, steps + 1), -1)
    for i in range(jobs - 1, -1, -1):
        for row in range(first[i], first[i + 1]):
            for g in range(used[row], steps + 1):  # g_i(s_j) <= g_i <= g*
                total = sign * value[row] + f[i + 1, g - used[row]]
                if total < f[i, g]:  # (2)
                    f[i, g] = total
                    taken[i, g] = row
    rows = np.empty(jobs, np.int64)
    g = steps
    for i in range(jobs):  # (3), (4)
        if taken[i, g] < 0:
            return np.empty(0, np.int64)
        rows[i] = taken[i, g]
        g -= used[rows[i]]
    return rows


def time_limit(expense: NDArray[np.float64], first: Numbers) -> float:
    """Compute t* of eq. (5): the sum over the jobs of their rounded-up mean expense."""
    return float(sum(np.ceil(expense[i:j].sum() / (j - i)) for i, j in pairwise(first)))
