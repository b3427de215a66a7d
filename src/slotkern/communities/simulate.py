"""The function `simulate_community`: a discrete-event simulation of a community."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels import community as _community
from slotkern.communities.result import COMMUNITY_RESULT, CommunityRun
from slotkern.communities.scenarios import (
    Centralized,
    Community,
    Independent,
    resolve_scenario,
)
from slotkern.communities.workload import validate_jobs, validate_nodes
from slotkern.foundation.checks import hint_keywords, integer, number, one_of

__all__ = ["simulate_community"]

#: Local policies: the kind of backfilling, and True for shortest estimate first.
LOCAL_POLICIES = {
    "fcfs": ("none", False),
    "easy": ("easy", False),
    "conservative": ("conservative", False),
    "first-fit": ("first-fit", False),
    "sjf": ("none", True),
    "easy-sjf": ("easy", True),
}


@hint_keywords
def simulate_community(
    jobs: Any,
    grid: Any,
    scenario: str | Independent | Centralized | Community = "dec-p",
    *,
    policy: str = "fcfs",
    changes: Iterable[tuple[float, int, str]] = (),
    seed: int = 0,
) -> CommunityRun:
    """Simulate a community of schedulers by discrete events.

    Parameters
    ----------
    jobs : structured array or mapping of columns
        ``submit``, ``run`` (seconds at speed 1), ``processors``, ``home`` (the node to
        which it is submitted, from 0) and optionally ``estimate`` (at least the run
        time, which is the default) and ``label`` (a number or a word; -1 or "": any).
    grid : structured array or mapping of columns
        ``processors`` of each node, and optionally ``speed`` (1) and ``label`` (0).
    scenario : {"ind", "cen", "dec-g", "dec-p"} or a scenario
        `Independent`, `Centralized` or `Community`; the names are the paper's.
    policy : {"fcfs", "easy", "conservative", "first-fit", "sjf", "easy-sjf"}
        The policy by which each node serves its queue, as in `slotkern.replay`; all
        that happens at one time is one event. The paper uses first come first served.
    changes : iterable of (time, node, "leave" or "join")
        The running jobs of a node that leaves run to their end; its waiting jobs are
        offered to other nodes. A node whose first change is "join" is absent before.
    seed : int
        Seed of the random numbers: tie-breaks, phases, neighbours, latencies, losses.

    Returns
    -------
    CommunityRun
        ``.jobs``, a row for each job, in the order given; ``.metrics()``.

    Raises
    ------
    ValueError, TypeError
        For an invalid argument; the message names it, and the row and value if any.
    MemoryError
        If there is not enough memory.

    Notes
    -----
    A job that no node can run is not an error: its ``fate`` is the reason of the
    failure. docs/communities.md describes the guarantees of the protocol and the order
    of events at one time. Equal arguments give equal results on every machine, up to
    the last bit of exponential latencies.

    O(log n) for each event, with about jobs * (nodes asked) messages. Memory O(jobs +
    nodes + messages in flight), plus 8 to 12 bytes * jobs * nodes under policies other
    than "fcfs".

    References
    ----------
    See `Community`.

    Examples
    --------
    >>> import slotkern as sk
    >>> jobs, nodes = sk.generate_community(jobs=500, seed=1)
    >>> alone = sk.simulate_community(jobs, nodes, "ind")
    >>> together = sk.simulate_community(jobs, nodes, sk.Community(neighbours=6))
    >>> len(alone.completed) < len(together.completed) <= 500
    True
    """
    nodes, codes = validate_nodes(grid)
    (submit, run, estimate, processors, home, label), row = validate_jobs(
        jobs, nodes, codes
    )
    name, chosen = resolve_scenario(scenario)
    backfill, shortest_first = LOCAL_POLICIES[one_of("policy", policy, LOCAL_POLICIES)]
    seed = integer("seed", seed, least=0, most=2**64 - 1)
    present, times, changed, joins = _parse_changes(changes, len(nodes))
    options = chosen.options(len(nodes), seed)
    if isinstance(chosen, Community):
        rows = np.arange(len(submit)) if isinstance(row, slice) else row
        options |= chosen.preferences(rows, len(nodes))
    queued, start, end, node, moves, fate, sent, own, rest = _community.simulate(
        submit,
        run,
        estimate,
        processors,
        home,
        label,
        np.ascontiguousarray(nodes["processors"]),
        np.ascontiguousarray(nodes["speed"]),
        np.ascontiguousarray(nodes["label"]),
        present,
        times,
        changed,
        joins,
        backfill=backfill,
        shortest_first=shortest_first,
        **options,
    )
    result = np.zeros(len(submit), COMMUNITY_RESULT)
    found = {
        "submit": submit,
        "queued": queued,
        "start": start,
        "end": end,
        "processors": processors,
        "home": home,
        "label": label,
        "node": node,
        "moves": moves,
        "fate": fate,
    }
    for field, column in found.items():
        result[field][row] = column
    host = getattr(chosen, "host", None)
    if isinstance(chosen, Centralized) and host is None:
        host = int(np.random.Generator(np.random.PCG64(seed)).integers(len(nodes)))
    kinds = _community.KINDS
    return CommunityRun(
        result,
        nodes,
        name,
        chosen,
        dict(zip(kinds, sent.tolist(), strict=True)),
        dict(zip(kinds, own.tolist(), strict=True)),
        rest,
        host,
    )


def _parse_changes(
    given: Iterable[tuple[float, int, str]], nodes: int
) -> tuple[
    NDArray[np.uint8], NDArray[np.float64], NDArray[np.int32], NDArray[np.uint8]
]:
    """Return which nodes are present at first, and the changes sorted by time.

    The changes are columns: times, nodes, and 1 for "join", 0 for "leave".
    """
    rows = []
    for row, change in enumerate(given):
        try:
            time, node, action = change
        except (TypeError, ValueError):
            raise ValueError(
                f"changes: row {row} is {change!r}, not (time, node, 'leave' or 'join')"
            ) from None
        at = f"changes: row {row}"
        time = number(f"{at}: time", time)
        index = integer(f"{at}: node", node, least=0, most=nodes - 1)
        joins = one_of(f"{at}: change", action, ("leave", "join")) == "join"
        rows.append((time, index, joins))
    rows.sort(key=lambda change: change[0])
    present = np.ones(nodes, np.uint8)
    for _, node, joins in reversed(rows):
        present[node] = not joins
    times, changed, joining = zip(*rows, strict=True) if rows else ((), (), ())
    return (
        present,
        np.array(times, np.float64),
        np.array(changed, np.int32),
        np.array(joining, np.uint8),
    )
