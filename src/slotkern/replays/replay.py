"""The function `replay`: jobs of a trace on a cluster under a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels import replay as _replay
from slotkern.foundation.checks import hint_keywords
from slotkern.foundation.logger import log
from slotkern.replays.cluster import Cluster, as_cluster
from slotkern.replays.cycles import CyclePolicy, place_cycles
from slotkern.replays.jobs import FlowJobs, as_trace, prepare_jobs
from slotkern.replays.placements import Placements, Pricing
from slotkern.replays.policies import QueuePolicy, resolve_policy
from slotkern.replays.result import RESULT, Replay, slowdowns
from slotkern.replays.windows import WindowPolicy, merge_sites, place_windows
from slotkern.tariffs.tables import read_tariffs, tariff_of_table
from slotkern.tariffs.tariff import Tariff
from slotkern.traces.trace import Trace

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
    prices: Any = None,
    progress: Callable[[int], object] | None = None,
) -> Replay:
    """Replay the jobs of a trace on a cluster under a policy.

    Parameters
    ----------
    jobs : Trace, structured array or table
        From `read_trace`, or with at least the fields ``submit``, ``run_time`` and
        ``allocated`` or ``requested``. A table is a frame of pandas or polars, an Arrow
        table or a mapping of columns; missing values and -1 mean unknown.
    cluster : int, str, mapping, structured array, optional
        The number of equal processors; or columns ``processors`` and optionally
        ``site`` (a job runs on the site of its field 16, partition; each site has its
        own queue), ``performance`` (a job's times are divided by it) and ``price`` (per
        processor and second); or ``"partitions"``: a site for each value of field 16,
        whose sizes follow from the trace: from the parentheses after the header's
        MaxProcs, or from the times at which jobs ran. By default the header's MaxProcs,
        else the maximum number of processors that jobs use at once, or of one job.
    policy : str, QueuePolicy, WindowPolicy or CyclePolicy
        One of `POLICIES` (``"fcfs"``, ``"easy"``, ``"conservative"``, ``"sjf"``,
        ``"easy-sjf"``, ``"window-cost"``, ...), or a policy of your own. Under a
        `WindowPolicy` or `CyclePolicy` all sites are one pool of nodes, at most 2**20.
    blocked : sequence of (start, end, processors[, site]), optional
        Maintenance and advance reservations: in these spans the given number of
        processors serve no job. They are known to the scheduler from the start. Start
        and end are seconds of the trace, or dates if its header has a start date.
    nodes : bool
        If true, assign processors to each job: the lowest numbers that are free at its
        start. The starts do not depend on this option.
    width : {"allocated", "requested"}
        The field of a job's processors: 5 (allocated), or 8 (requested) if that is
        unknown; or 8 first, then 5.
    overrun : {"kill", "extend"}
        A job that ran longer than requested is cut at its requested time, or its
        requested time is extended.
    load : float
        All times between submissions are divided by it.
    more_processors : int
        The number of processors to add to the machine; negative: to remove.
    estimates : {"user", "exact"} or float
        The run times that the scheduler assumes: the requested time (field 9; if
        unknown, the run time), the run time, or the run time times a factor; at least
        one second.
    preceding : bool
        If true, a job that names a preceding job (field 17) is submitted when that has
        ended and its think time (field 18) is over; its ``submit`` and ``wait`` count
        from then. `Replay.following` is the number of such jobs.
    prices : Tariff, table or path of its file, optional
        What a processor second costs over time, as for `Tariff.of_prices`; dates need
        a trace with a start date. It multiplies the price of the cluster, or 1 if no
        site has a price: a job costs processors * price * the integral over its run.
        Starts under a `QueuePolicy` do not depend on prices; a `WindowPolicy` or
        `CyclePolicy` searches windows under them. A table must have a price for every
        time until the last job ends, and for a `WindowPolicy` or `CyclePolicy` until
        all jobs could have run one after another; the last price of a `Tariff`, or of
        a table without a column ``end``, has no end.
    progress : callable, optional
        Called occasionally with the number of jobs submitted so far.

    Returns
    -------
    Replay
        ``.jobs``, one row for each job replayed; ``.metrics()``; ``.dropped``, the
        number of jobs that were left out, by reason.

    Raises
    ------
    ValueError, TypeError
        For an invalid argument; the message names it, and the row and value if any.
    MemoryError
        If there is not enough memory.

    Notes
    -----
    Events at one time are processed in this order: jobs end; with conservative
    backfilling, waiting jobs move forward once if a job has ended early; jobs are
    submitted in the order of the trace; jobs start. The result depends on nothing else.
    Records of parts of a checkpointed job (status 2, 3, 4) are left out if there is a
    record of the whole job.

    O(log n) for each job, plus the work of the policy: EASY scans the queue (with
    vector instructions) at each event; conservative backfilling searches the profile
    for each job that may move. Memory O(n + spans of processors).

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
    # tables
    trace = as_trace(jobs)
    machine = as_cluster(cluster, trace, blocked).with_more_processors(more_processors)
    name, chosen = resolve_policy(policy)
    windows = isinstance(chosen, (WindowPolicy, CyclePolicy))
    pricing = None
    if prices is not None:
        machine = machine.with_prices()
        pricing = _pricing(prices, trace.clock)
    served = merge_sites(machine) if windows else machine
    # numbers
    flow = prepare_jobs(
        trace,
        served,
        width=width,
        overrun=overrun,
        estimates=estimates,
        load=load,
        preceding=preceding,
    )
    following = 0 if flow.predecessor is None else int((flow.predecessor >= 0).sum())
    if following:
        log.info("%d jobs wait for the end of their preceding job", following)
    # kernel
    place: Any = _replay_sites
    if windows:
        place = place_windows if isinstance(chosen, WindowPolicy) else place_cycles
    placed = place(flow, machine, chosen, len(trace), nodes, progress, pricing)
    # result
    if following:
        submit = flow.submission_times(placed.start, placed.run)
        order = np.argsort(submit, kind="stable")
        flow = replace(flow, submit=submit).subset(order)
        placed = placed.subset(order)
    if (none := np.isnan(placed.start)).any():
        flow.dropped["no window"] = int(none.sum())
        kept = np.flatnonzero(~none)
        flow, placed = flow.subset(kept), placed.subset(kept)
    if flow.dropped:
        reasons = ", ".join(
            f"{reason} {count:,}" for reason, count in flow.dropped.items()
        )
        log.warning("replay under %s: jobs left out: %s", name, reasons)
    return Replay(
        _records(trace, served, flow, placed),
        served,
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


def _records(
    trace: Trace, cluster: Cluster, flow: FlowJobs, placed: Placements
) -> NDArray[np.void]:
    """Return one row for each job, of dtype `RESULT`."""
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
        "site": cluster.site[flow.site],
        "cost": placed.cost,
        **slowdowns(wait, placed.run),
    }
    rows = np.empty(len(flow.row), RESULT)
    for field, column in columns.items():
        rows[field] = column
    return rows


def _pricing(prices: Any, clock: Any) -> Pricing:
    """Return a function of a span of time, which returns the tariff that covers it."""

    def tariff(begin: float, end: float) -> Tariff:
        if isinstance(prices, Tariff):
            return prices
        table = read_tariffs(prices) if isinstance(prices, (str, PathLike)) else prices
        return Tariff(*tariff_of_table(table, "prices", clock, None, (begin, end)))

    return tariff


def _replay_sites(
    flow: FlowJobs,
    machine: Cluster,
    policy: QueuePolicy,
    total: int,
    nodes: bool,
    progress: Callable[[int], object] | None,
    pricing: Pricing | None,
) -> Placements:
    """Replay each site with its own queue and return the placements of all jobs."""
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
    price = machine.price[flow.site]
    if pricing is None:
        placed.cost = flow.width * flow.run * price
    else:
        end = placed.start + placed.run
        span = float(placed.start.min(initial=0)), float(end.max(initial=0))
        integral = pricing(*span).integral(placed.start, placed.run)
        placed.cost = flow.width * (price * integral)
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
    """Replay the jobs `mine` of one site with the kernel.

    Returns starts, first spans, numbers of spans, spans and the longest queue.
    """
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
