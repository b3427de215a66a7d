"""Replaying a job flow under a queue policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from slotkern import _replay
from slotkern.checks import hint_keywords
from slotkern.logger import log
from slotkern.replays.cluster import Cluster, as_cluster
from slotkern.replays.cycles import CyclePolicy, place_cycles
from slotkern.replays.jobs import FlowJobs, as_trace, prepare_jobs
from slotkern.replays.placements import Placements
from slotkern.replays.policies import QueuePolicy, resolve_policy
from slotkern.replays.result import RESULT, Replay, slowdowns
from slotkern.replays.windows import WindowPolicy, merge_sites, place_windows

__all__ = ["replay"]


@hint_keywords
def replay(
    jobs: Any,
    cluster: Any = None,
    policy: str | QueuePolicy | WindowPolicy | CyclePolicy = "easy",
    *,
    blocked: Any = None,
    nodes: bool = True,
    width: Literal["allocated", "requested"] = "allocated",
    overrun: Literal["kill", "extend"] = "kill",
    load: float = 1.0,
    more_processors: int = 0,
    estimates: float | Literal["user", "exact"] = "user",
    preceding: bool = True,
    progress: Callable[[int], object] | None = None,
) -> Replay:
    """Replay the jobs of a trace on a cluster under a policy.

    Parameters
    ----------
    jobs : Trace, structured array or table
        From `read_trace`, or with at least the fields ``submit``, ``run_time`` and
        ``allocated`` or ``requested``. A table is a frame of pandas or polars, an Arrow
        table or a mapping of columns; a missing value is unknown, as -1.
    cluster : int, str, mapping, structured array, optional
        How many equal processors; or columns ``processors`` and, if wanted, ``site``
        (jobs go where field 16, partition, says; each site has its own queue),
        ``performance`` (a job's times are divided by it) and ``price`` (per processor
        and second); or ``"partitions"``: a site for each value of field 16, whose sizes
        the trace must tell: in parentheses behind the header's MaxProcs, or by the
        times at which jobs ran. By default the header's MaxProcs, else the most
        processors that the jobs use at once, or that the widest of them does.
    policy : str, QueuePolicy, WindowPolicy or CyclePolicy
        One of `POLICIES` (``"fcfs"``, ``"easy"``, ``"conservative"``, ``"sjf"``,
        ``"easy-sjf"``, ``"window-cost"``, ...), or a policy of your own. Under a
        `WindowPolicy` or `CyclePolicy` all sites are one pool of nodes, at most 2**20.
    blocked : sequence of (start, end, processors[, site]), optional
        Maintenance and advance reservations: in these spans so many processors serve
        no job. The scheduler knows them from the beginning. Start and end are seconds
        of the trace, or dates where its header says when it begins.
    nodes : bool
        Whether each job's processors are wanted: the lowest numbers that are free when
        it starts. When jobs start does not depend on it.
    width : {"allocated", "requested"}
        A job's processors: field 5, where unknown 8; or the other way round.
    overrun : {"kill", "extend"}
        What ran longer than requested is cut, or its request extended.
    load : float
        All times between submissions are divided by it.
    more_processors : int
        Added to the machine, or removed.
    estimates : {"user", "exact"} or float
        What the scheduler believes: the requested time (field 9, where unknown the run
        time), the run time, or the run time times a factor; at least one second.
    preceding : bool
        Whether a job that names a preceding job (field 17) is submitted only when that
        has ended and its think time (field 18) is over. Its ``submit`` and ``wait``
        count from then. `Replay.following` is the number of such jobs.
    progress : callable, optional
        Called now and then with the number of jobs submitted so far.

    Returns
    -------
    Replay
        ``.jobs``, one row for each job replayed; ``.metrics()``; ``.dropped``, how many
        jobs were left out and why.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, and the row and value where it is one.
    MemoryError
        When there is not enough memory.

    Notes
    -----
    At one moment jobs end first; then, with conservative backfilling, waiting jobs move
    up once if a job has ended early; then jobs are submitted in the trace's order; then
    jobs start. The result depends on nothing else. Records of parts of a checkpointed
    job (status 2, 3, 4) are left out if the job has a record of its whole.

    Time O(log n) a job and what the policy needs: for EASY a vectorized look at the
    queue, for conservative backfilling one at the profile for each job that may move.
    Memory O(n + spans of processors).

    References
    ----------
    D. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; A. Mu'alem and D.
    Feitelson, "Utilization, predictability, workloads, and user runtime estimates in
    scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.

    Examples
    --------
    >>> import numpy as np, slotkern as sk
    >>> flow = np.array([(0, 10, 2), (1, 5, 4), (2, 6, 2)],
    ...                 [("submit", "f8"), ("run_time", "f8"), ("allocated", "i8")])
    >>> sk.replay(flow, 4, "fcfs").jobs["start"].tolist()
    [0.0, 10.0, 15.0]
    >>> sk.replay(flow, 4, "easy").jobs["start"].tolist()
    [0.0, 10.0, 2.0]
    """
    trace = as_trace(jobs)
    machine = as_cluster(cluster, trace, blocked).with_more_processors(more_processors)
    name, chosen = resolve_policy(policy)
    windows = isinstance(chosen, (WindowPolicy, CyclePolicy))
    flow = prepare_jobs(
        trace,
        merge_sites(machine) if windows else machine,
        width=width,
        overrun=overrun,
        estimates=estimates,
        load=load,
        preceding=preceding,
    )
    following = 0 if flow.predecessor is None else int((flow.predecessor >= 0).sum())
    if following:
        log.info("%d jobs wait for the end of their preceding job", following)
    place: Any = _replay_sites
    if windows:
        place = place_windows if isinstance(chosen, WindowPolicy) else place_cycles
    placed = place(flow, machine, chosen, len(trace), nodes, progress)
    if following:
        submit = flow.submission_times(placed.start, placed.run)
        order = np.argsort(submit, kind="stable")
        flow = replace(flow, submit=submit).subset(order)
        placed = placed.subset(order)
    if windows:
        machine = merge_sites(machine)
        none = np.isnan(placed.start)
        if none.any():
            flow.dropped["no window"] = int(none.sum())
            kept = np.flatnonzero(~none)
            flow, placed = flow.subset(kept), placed.subset(kept)

    wait = placed.start - flow.submit
    columns = {
        "row": flow.row,
        "job": trace.jobs["job"][flow.row],
        "submit": flow.submit,
        "start": placed.start,
        "end": placed.start + placed.run,
        "wait": wait,
        "run": placed.run,
        "estimate": flow.estimate,
        "processors": flow.width,
        "user": flow.user,
        "site": machine.site[flow.site],
        "cost": placed.cost,
        **slowdowns(wait, placed.run),
    }
    if flow.dropped:
        told = ", ".join(
            f"{reason} {count:,}" for reason, count in flow.dropped.items()
        )
        log.warning("replay under %s: jobs left out: %s", name, told)
    result = np.empty(len(flow.row), RESULT)
    for field, column in columns.items():
        result[field] = column
    return Replay(
        result,
        machine,
        name,
        trace,
        flow.dropped,
        placed.most_waiting,
        placed.spans,
        placed.first,
        placed.count,
        nodes,
        flow.killed,
        following,
    )


def _replay_sites(
    flow: FlowJobs,
    machine: Cluster,
    policy: QueuePolicy,
    total: int,
    nodes: bool,
    progress: Callable[[int], object] | None,
) -> Placements:
    """Replay each site on its own."""
    count = len(flow.row)
    placed = Placements.empty(count)
    spans, held, done = [np.empty((0, 2), np.int32)], 0, 0
    for site in range(len(machine.site)):
        single = len(machine.site) == 1
        mine = slice(None) if single else np.flatnonzero(flow.site == site)
        report = None
        if progress is not None:

            def report(submitted: int, before: int = done) -> None:
                progress(before + submitted)

        start, first, number, taken, waiting = _replay_site(
            flow, mine, machine, site, policy, total, nodes, report
        )
        placed.start[mine] = start
        if nodes:
            placed.first[mine] = first[: len(start)] + held
            placed.count[mine] = number[: len(start)]
        spans.append(taken)
        held, done = held + len(taken), done + len(start)
        placed.most_waiting = max(placed.most_waiting, waiting)
    placed.run = flow.run
    placed.spans = np.concatenate(spans)
    placed.cost = flow.width * flow.run * machine.price[flow.site]
    return placed


def _replay_site(
    flow: FlowJobs,
    mine: Any,
    machine: Cluster,
    site: int,
    policy: QueuePolicy,
    total: int,
    nodes: bool,
    progress: Callable[[int], object] | None,
) -> Any:
    """Replay one site."""
    spans = machine.blocked[machine.blocked["site"] == machine.site[site]]
    estimate, width = flow.estimate[mine], flow.width[mine]
    options = policy.options(flow.row[mine], total, estimate, width, flow.user[mine])
    chain = flow.dependencies(mine)
    if chain is not None:
        options["before"], options["think"] = chain
    return _replay.replay(
        flow.submit[mine],
        flow.run[mine],
        estimate,
        width,
        int(machine.processors[site]),
        spans["start"].copy(),
        spans["end"].copy(),
        spans["processors"].copy(),
        policy.backfill,
        nodes=nodes,
        progress=progress,
        **options,
    )
