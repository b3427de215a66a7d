"""Clusters of replays: sites of equal processors, and their blocked spans."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import integer, quote
from slotkern.foundation.logger import log
from slotkern.machine.frames import columns_of
from slotkern.machine.nodes import Machine
from slotkern.traces.clean import partial_records, width_of
from slotkern.traces.free_slots import (
    is_textual_date,
    most_at_once,
    seconds_since_origin,
)
from slotkern.traces.trace import Trace

__all__ = ["BLOCKED", "Cluster", "as_cluster"]

#: A blocked span: in it `processors` of `site` (-1: the only site) serve no job.
BLOCKED = np.dtype(
    [("start", "f8"), ("end", "f8"), ("processors", "i4"), ("site", "i8")], align=True
)
MAX_PROCESSORS = 2**24
#: Columns with a meaning of their own; all other numeric columns are kept.
_RESERVED = ("site", "processors", "performance", "price", "node", "start", "end")


@dataclass(frozen=True)
class Cluster:
    """Sites of equal processors, each with its own queue.

    Attributes
    ----------
    site : ndarray of int64
        The number of each site; a job runs on the site whose number is its field 16
        (partition). -1: the only site, which runs all jobs.
    processors : ndarray of int32
    performance : ndarray of float64
        A job takes time / performance, where time is its time at performance 1.
    price : ndarray of float64
        Money per processor and second.
    blocked : structured array of dtype `BLOCKED`
        Maintenance and advance reservations, known to the scheduler from the start.
    columns : dict of ndarray
        Further numeric columns of the sites, for the criteria of window policies.
    """

    site: NDArray[np.int64]
    processors: NDArray[np.int32]
    performance: NDArray[np.float64]
    price: NDArray[np.float64]
    blocked: NDArray[Any]
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        sites = "one site" if len(self.site) == 1 else f"{len(self.site)} sites"
        blocked = f", {len(self.blocked)} blocked spans" if len(self.blocked) else ""
        return f"Cluster({sites}, {self.processors.sum()} processors{blocked})"

    def site_rows(self, jobs: NDArray[Any]) -> NDArray[np.int64]:
        """Return the row of each job's site; -1 if there is no such site."""
        if len(self.site) == 1 and self.site[0] == -1:
            return np.zeros(len(jobs), np.int64)
        partition = jobs["partition"]
        order = np.argsort(self.site)
        at = np.searchsorted(self.site, partition, sorter=order)
        row = order[np.minimum(at, len(order) - 1)]
        return np.where(self.site[row] == partition, row, -1)

    def with_more_processors(self, more: int) -> Cluster:
        """Return this cluster with `more` processors (negative: fewer).

        Raises ValueError for several sites, or if no processors would be left.
        """
        if integer("more_processors", more, -MAX_PROCESSORS, MAX_PROCESSORS) == 0:
            return self
        if len(self.site) != 1:
            sites = len(self.site)
            raise ValueError(
                f"more_processors needs a cluster of one site, this one has {sites}"
            )
        if not 1 <= int(self.processors[0]) + more <= MAX_PROCESSORS:
            raise ValueError(
                f"more_processors: {more:+,} to {self.processors[0]:,} processors does "
                f"not leave 1 to {MAX_PROCESSORS:,}"
            )
        return _validated(
            self.site,
            self.processors + more,
            self.performance,
            self.price,
            self.blocked,
            self.columns,
        )

    def with_prices(self) -> Cluster:
        """Return this cluster, with price 1 everywhere if no site has a price."""
        if self.price.any():
            return self
        return replace(self, price=np.ones(len(self.price)))


def as_cluster(given: Any, trace: Trace, blocked: Any = None) -> Cluster:
    """Return the cluster that is described by an argument.

    Parameters
    ----------
    given : int, str, Machine, table, Cluster or None
        The number of equal processors; or a `Machine`, whose nodes are processors (or
        have the number in column ``processors``) of the site in column ``site``; or a
        table of sites, in any form that `Machine` accepts, with column ``processors``
        and optional ``site``, ``performance``, ``price`` and further numeric columns;
        or ``"partitions"``: a site for each value of field 16, with the size in
        parentheses in the header's MaxProcs (``MaxProcs: 192 (128+64)``), else with
        the maximum number of processors that its jobs use at once in the trace.
        None: the header's MaxProcs, else the maximum number of processors that the jobs
        use at once, or the widest job if the trace has no start times.
    trace : Trace
        The jobs.
    blocked : sequence of (start, end, processors[, site]) or structured array, optional
        Spans of time in which the given number of processors serve no job. Start and
        end are seconds of the trace, or dates if its header has a start date.

    Raises
    ------
    ValueError, TypeError
        For an invalid cluster or blocked span; the message names the row and value.
    """
    if isinstance(given, Cluster):
        spans = given.blocked if blocked is None else _parse_blocked(blocked, trace)
        return _validated(
            given.site,
            given.processors,
            given.performance,
            given.price,
            spans,
            given.columns,
        )
    spans = _parse_blocked(() if blocked is None else blocked, trace)
    if isinstance(given, str):
        if given != "partitions":
            raise ValueError(f"cluster must be a number or 'partitions', got {given!r}")
        columns: Mapping[str, Any] = _partition_sites(trace)
    elif given is None:
        columns = {"processors": [trace.processors or _peak_usage(trace.jobs)]}
        if not trace.processors:
            reason = (
                "no MaxProcs: the cluster has %d processors, the peak use of the jobs"
            )
            log.info(f"%s: {reason}", trace.source, columns["processors"][0])
    elif isinstance(given, Machine):
        _refuse_tariffs(given.columns)
        columns = _machine_sites(given)
    elif isinstance(given, SupportsIndex) and not isinstance(given, bool | np.bool_):
        columns = {"processors": [operator.index(given)]}
    elif isinstance(given, (bool, np.bool_, float)):
        raise TypeError(f"cluster must be a number or columns, got {given!r}")
    else:
        columns = columns_of(given, "cluster")
        _refuse_tariffs(columns)
    if "processors" not in columns:
        raise ValueError("cluster has no column 'processors'")
    processors = _column(columns, "processors", None, 0)
    count = len(processors)
    if "site" not in columns and count != 1:
        raise ValueError(f"cluster has {count} rows but no column 'site'")
    return _validated(
        _column(columns, "site", -1, count),
        processors,
        _column(columns, "performance", 1.0, count),
        _column(columns, "price", 0.0, count),
        spans,
        {
            name: column
            for name, column in columns.items()
            if name not in _RESERVED and np.asarray(column).dtype.kind in "biuf"
        },
    )


def _refuse_tariffs(columns: Mapping[str, Any]) -> None:
    """Raise ValueError for a row that names a tariff; a missing name is none."""
    names = np.atleast_1d(np.asarray(columns.get("tariff", ""))).tolist()
    for row, name in enumerate(names):
        if name not in ("", None) and name == name:
            raise ValueError(
                f"cluster, row {row}: the tariff {quote(name)} cannot be replayed: "
                "all nodes have the tariff of replay(prices=); remove the column"
            )


def _partition_sites(trace: Trace) -> dict[str, Any]:
    """Return a site for each partition, with the size from the header or the jobs.

    Raises
    ------
    ValueError
        If the header has no sizes and no job of a partition has a known start (field
        3): then the widest job is a poor estimate of its size.
    """
    jobs = trace.jobs
    number = np.unique(jobs["partition"])
    sizes = _partition_sizes(trace, number.tolist())
    if sizes is None:
        ran = (jobs["run_time"] > 0) & (width_of(jobs) > 0)
        known = ran & (jobs["submit"] >= 0) & (jobs["wait"] >= 0)
        unsized = np.setdiff1d(jobs["partition"][ran], jobs["partition"][known])
        if len(unsized):
            size = trace.processors
            names = ", ".join(map(str, unsized[:5].tolist()))
            more = ", ..." if len(unsized) > 5 else ""
            machine = "" if size is None else f" of the machine's {size:,} processors"
            raise ValueError(
                f"{trace.source or 'jobs'}: cluster='partitions': the sizes{machine} "
                f"are unknown for {len(unsized):,} of {len(number):,} partitions "
                f"({names}{more}): their jobs have no wait (field 3), so their "
                "starts are unknown; give the sizes, cluster={'site': [...], "
                "'processors': [...]} (--cluster PARTITION=PROCESSORS,...)"
            )
        sizes = [_peak_usage(jobs[jobs["partition"] == each]) for each in number]
    return {"site": number, "processors": sizes}


def _partition_sizes(trace: Trace, partitions: list[int]) -> list[int] | None:
    """Parse the sizes of partitions in parentheses after the header's MaxProcs.

    The formats are ``MaxProcs: 192 (128+64)``, in ascending order of the partitions,
    and ``MaxProcs: 192 (1: 128, 2: 64)``. Returns None if there are no such sizes, or
    if their number or sum does not fit.
    """
    text = trace.header.get("MaxProcs", "").partition("\n")[0]
    found = re.search(r"\(([^()]*)\)", text)
    if found is None or trace.processors is None:
        return None
    pairs = re.findall(r"(\d{1,9})\s*[:=]\s*(\d{1,9})", found[1])
    if pairs:
        size_of = {int(name): int(size) for name, size in pairs}
        sizes = [size_of.get(each, 0) for each in partitions]
    else:
        sizes = [int(size) for size in re.findall(r"\d{1,9}", found[1])]
    whole = len(sizes) == len(partitions) and all(sizes)
    return sizes if whole and sum(sizes) <= trace.processors else None


def _machine_sites(machine: Machine) -> dict[str, NDArray[Any]]:
    """Return the columns of the sites of a machine.

    Raises ValueError if nodes of one site differ in performance or price.
    """
    number = machine.columns.get("site", np.full(len(machine), -1))
    if number.dtype.kind not in "iu":
        raise TypeError(f"cluster: site {number[0]!r} is not the number of a partition")
    site, first, row = np.unique(number, return_index=True, return_inverse=True)
    for name in ("performance", "price"):
        column = getattr(machine, name)
        differs = column != column[first][row]
        if differs.any():
            k = int(differs.argmax())
            other = first[row[k]]
            raise ValueError(
                f"cluster: {name} {column[k]:g} of node {machine.names[k]} differs "
                f"from {column[other]:g} of {machine.names[other]} on its site; nodes "
                "of one site must be equal"
            )
    more = {  # numeric columns that are equal on each site
        name: column[first]
        for name, column in machine.columns.items()
        if column.dtype.kind in "biuf" and (column == column[first][row]).all()
    }
    each = machine.columns.get("processors", np.ones(len(machine), np.int64))
    if each.dtype.kind not in "iu":
        raise TypeError("cluster: processors must be a column of integers")
    return more | {
        "site": site,
        "processors": np.bincount(row, each).astype(np.int64),
        "performance": machine.performance[first],
        "price": machine.price[first],
    }


def _peak_usage(jobs: NDArray[Any]) -> int:
    """Return the maximum number of processors that jobs use at once.

    Jobs without known times count alone: at least the widest job fits.
    """
    width = width_of(jobs)
    widest = int(width.max(initial=1))  # also if no job has known times
    known = (width > 0) & (jobs["run_time"] > 0)
    known &= (jobs["submit"] >= 0) & (jobs["wait"] >= 0) & ~partial_records(jobs)
    start = (jobs["submit"] + jobs["wait"])[known]
    end = start + jobs["run_time"][known]
    return max(widest, most_at_once(start, end, width[known]))


def _column(
    columns: Mapping[str, Any], name: str, default: float | None, count: int
) -> NDArray[Any]:
    """Return a numeric column with `count` rows (0: any); one value is repeated."""
    values = np.atleast_1d(np.asarray(columns.get(name, default)))
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise TypeError(f"cluster: {name} must be a column of numbers")
    if name not in columns or len(values) == 1:
        values = np.repeat(values, max(count, 1))
    if count and len(values) != count:
        raise ValueError(
            f"cluster: column {name!r} has {len(values)} rows, 'processors' has {count}"
        )
    return values


def _validated(
    site: NDArray[Any],
    processors: NDArray[Any],
    performance: NDArray[Any],
    price: NDArray[Any],
    blocked: NDArray[Any],
    columns: Mapping[str, Any],
) -> Cluster:
    """Return a cluster of these columns; raises an error for invalid values."""
    if len(processors) == 0:
        raise ValueError("cluster has no rows; it needs at least one site")
    wrong = (processors < 1) | (processors > MAX_PROCESSORS)
    wrong |= processors != np.floor(processors)
    if wrong.any():
        value = processors[wrong.argmax()]
        reason = f"{value} is not an integer from 1 to {MAX_PROCESSORS}"
        raise ValueError(f"cluster: row {wrong.argmax()}: processors {reason}")
    for name, column, least in (
        ("performance", performance, 5e-324),
        ("price", price, 0.0),
    ):
        wrong = ~((column >= least) & np.isfinite(column))
        if wrong.any():
            allowed = "positive" if least else "at least 0"
            reason = f"{name} {column[wrong.argmax()]} is not finite and {allowed}"
            raise ValueError(f"cluster: row {wrong.argmax()}: {reason}")
    if site.dtype.kind not in "iu":  # rounding would assign jobs to other sites
        raise TypeError(f"cluster: row 0: site {site[0]} is not an integer")
    if len(np.unique(site)) != len(site):
        raise ValueError("cluster: a site occurs twice")
    cluster = Cluster(
        site.astype(np.int64),
        processors.astype(np.int32),
        performance.astype(np.float64),
        price.astype(np.float64),
        blocked,
        {name: _column(columns, name, None, len(site)) for name in columns},
    )
    _check_blocked(cluster)
    return cluster


def _parse_blocked(given: Any, trace: Trace) -> NDArray[Any]:
    """Return blocked spans as an array of dtype `BLOCKED`, with dates as seconds."""
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        names = [name for name in BLOCKED.names or () if name in given.dtype.names]
        for name in ("start", "end", "processors"):
            if name not in names:
                raise ValueError(f"blocked has no field {name!r}")
        given = given[names].tolist()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"blocked must be a sequence of spans, got {quote(given)}")
    rows = list(given)
    spans = np.zeros(len(rows), BLOCKED)
    for i, fields in enumerate(rows):
        try:
            row = tuple(fields)
        except TypeError:
            row = ()
        if len(row) not in (3, 4):
            raise ValueError(
                f"blocked: row {i} is not (start, end, processors[, site])"
            )
        start, end, processors, site = (*row, -1)[:4]
        times = [
            seconds_since_origin(trace, time, f"blocked: row {i}")
            if is_textual_date(time)
            else time
            for time in (start, end)
        ]
        spans[i] = (
            *times,
            integer(f"blocked: row {i}: processors", processors, 1, MAX_PROCESSORS),
            integer(f"blocked: row {i}: site", site, -(2**63), 2**63 - 1),
        )
    return spans


def _check_blocked(cluster: Cluster) -> None:
    """Raise ValueError for invalid spans, or if more than a whole site is blocked."""
    spans = cluster.blocked
    wrong = ~(np.isfinite(spans["start"]) & np.isfinite(spans["end"]))
    wrong |= ~(spans["start"] < spans["end"]) | (spans["processors"] < 1)
    known = np.isin(spans["site"], cluster.site)
    wrong |= ~known
    if wrong.any():
        row = int(wrong.argmax())
        start, end, processors, site = spans[row].tolist()
        reason = (
            f"from {start:g} to {end:g}, processors {processors}, is not a span"
            if known[row]
            else f"site {site} is not a site of the cluster"
        )
        raise ValueError(f"blocked: row {row}: {reason}")
    for site, processors in zip(cluster.site, cluster.processors, strict=True):
        mine = spans[spans["site"] == site]
        width = mine["processors"].astype(np.int64)
        most = most_at_once(mine["start"], mine["end"], width)
        if most > processors:
            reason = f"{most} processors are blocked at once, of {processors}"
            place = "" if len(cluster.site) == 1 else f"site {site}: "
            raise ValueError(f"blocked: {place}{reason}")
