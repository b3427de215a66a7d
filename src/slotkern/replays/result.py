"""The result of a replay: a row for each job, metrics, and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.files.atomic import AnyPath, open_atomic
from slotkern.foundation.checks import visible
from slotkern.foundation.context import SlotContext
from slotkern.replays.cluster import Cluster
from slotkern.traces.read import trace_text, write_trace
from slotkern.traces.trace import SWF, Trace

__all__ = ["RESULT", "Replay"]

#: The shortest run time in the bounded slowdown (seconds).
MIN_BOUNDED_RUN = 10.0

#: A replayed job. `row` is its row in the trace; times are seconds of the trace.
RESULT = np.dtype(
    [
        ("row", "i8"),
        ("job", "i8"),
        ("submit", "f8"),
        ("start", "f8"),
        ("end", "f8"),
        ("wait", "f8"),
        ("run", "f8"),
        ("estimate", "f8"),
        ("processors", "i8"),
        ("user", "i8"),
        ("site", "i8"),
        ("slowdown", "f8"),
        ("bounded_slowdown", "f8"),
        ("cost", "f8"),
    ]
)
STEP = np.dtype([("time", "f8"), ("value", "i8")])


@dataclass(frozen=True, repr=False)
class Replay(HasPlot):
    """A replayed job flow; made by `replay`.

    Attributes
    ----------
    jobs : structured array
        A row for each job replayed, in the order of submission: ``row`` (in the trace),
        ``job`` (its number there), ``submit``, ``start``, ``end``, ``wait``, ``run``,
        ``estimate`` (seconds), ``processors``, ``user``, ``site``, ``slowdown``
        ((wait + run) / run; NaN for a run of 0 seconds), ``bounded_slowdown``
        (max(1, (wait + run) / max(run, 10))), ``cost`` (processors * run * price;
        with ``replay(prices=)`` the integral of those takes the place of the run; under
        policies of ragged windows each processor for its own run).
    cluster : Cluster
    policy : str
    trace : Trace
        The trace that was replayed.
    dropped : dict
        The number of jobs that were left out, by reason.
    most_waiting : int
        The largest number of jobs that were waiting after a scheduling pass.
    killed : ndarray of bool
        For each row of ``jobs``: True if the job was cut at its requested time.
    following : int
        The number of jobs that waited for the end of a preceding job (field 17).
    """

    jobs: NDArray[Any]
    cluster: Cluster
    policy: str
    trace: Trace
    dropped: Mapping[str, int]
    most_waiting: int
    _spans: NDArray[np.int32]
    _first: NDArray[np.int64]
    _count: NDArray[np.int64]
    has_nodes: bool
    killed: NDArray[np.bool_]
    following: int = 0

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        wait = f", mean wait {self.jobs['wait'].mean():,.1f} s" if len(self) else ""
        dropped = sum(self.dropped.values())
        left_out = f", {dropped:,} dropped" if dropped else ""
        after = f", {self.following:,} after a preceding job" if self.following else ""
        return visible(
            f"Replay({self.policy}, {len(self):,} jobs{wait}{left_out}{after})"
        )

    def nodes(self, index: int) -> NDArray[np.int32]:
        """Return the processors of a job, ascending.

        Parameters
        ----------
        index : int
            Row of ``jobs``.

        Raises
        ------
        ValueError
            If the replay has no processors (``nodes=False``).
        """
        low = self._spans_of_job(index)
        pieces = [np.arange(a, a + n, dtype=np.int32) for a, n in low.tolist()]
        return np.concatenate(pieces)

    def parts(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the spans of processors of the jobs at `rows`.

        Parameters
        ----------
        rows : ndarray of int64
            Rows of ``jobs``.

        Returns
        -------
        row, first, count : ndarray of int64
            One entry for each span: row of the job, lowest processor, number of
            processors. The processors of several sites are numbered consecutively.
        """
        number = self._count[rows]
        before = np.cumsum(number) - number
        index = np.arange(number.sum()) + np.repeat(self._first[rows] - before, number)
        row = np.repeat(rows, number)
        order = np.argsort(self.cluster.site)
        site = order[
            np.searchsorted(self.cluster.site, self.jobs["site"][row], sorter=order)
        ]
        shift = np.cumsum(self.cluster.processors) - self.cluster.processors
        low, count = self._spans[index].astype(np.int64).T
        return row, low + shift[site], count

    def _spans_of_job(self, index: int) -> NDArray[np.int32]:
        if not self.has_nodes:
            raise ValueError(
                "this replay did not place jobs; repeat it with nodes=True"
            )
        first = self._first[index]
        return self._spans[first : first + self._count[index]]

    def metrics(self) -> dict[str, float]:
        """Return the aggregate metrics.

        Returns
        -------
        dict of str to float
            - ``jobs``, ``dropped``; ``killed``: the jobs that were cut at their
              requested time; ``makespan``: from the first submission to the last end;
              ``utilization``: processor seconds used / (processors * makespan);
              ``throughput``: jobs per hour of the makespan;
            - ``wait_mean``, ``wait_median``, ``wait_p90``, ``_p95``, ``_p99``,
              ``wait_max``: start - submission; ``response_mean``: end - submission;
            - ``slowdown_mean``: response / run, of jobs that ran more than 0 seconds;
              ``bounded_slowdown_mean`` and its percentiles: max(1, response / max(run,
              10 s)) (Feitelson and Rudolph 1998);
            - ``queue_max``: the maximum number of waiting jobs; ``fairness``: Jain's
              index of the users' mean bounded slowdowns, (sum x)**2 / (n sum x**2): 1
              if all are equal (Jain, Chiu and Hawe 1984);
            - ``cost``: the total cost.

            NaN for a mean or quotient that is not defined; without jobs only ``jobs``
            and ``dropped``.

        Notes
        -----
        Percentiles are interpolated linearly between order statistics. O(n log n).
        """
        jobs = self.jobs
        found: dict[str, float] = {
            "jobs": float(len(jobs)),
            "dropped": float(sum(self.dropped.values())),
        }
        if not len(jobs):
            return found
        found["killed"] = float(self.killed.sum())
        makespan = float(jobs["end"].max() - jobs["submit"][0])
        used = float((jobs["processors"] * jobs["run"]).sum())
        capacity = makespan * float(self.cluster.processors.sum())
        found["makespan"] = makespan
        found["utilization"] = used / capacity if capacity else np.nan
        found["throughput"] = len(jobs) * 3600 / makespan if makespan else np.nan
        found |= _distribution("wait", jobs["wait"])
        found["response_mean"] = float((jobs["wait"] + jobs["run"]).mean())
        ran = jobs["slowdown"][jobs["run"] > 0]
        found["slowdown_mean"] = float(ran.mean()) if len(ran) else np.nan
        found |= _distribution("bounded_slowdown", jobs["bounded_slowdown"])
        found["queue_max"] = float(self.most_waiting)
        users = self.users()["bounded_slowdown"]
        found["fairness"] = float(users.sum() ** 2 / (len(users) * (users**2).sum()))
        found["cost"] = float(jobs["cost"].sum())
        return found

    def users(self) -> NDArray[Any]:
        """Return one row per user: jobs, processor seconds, mean wait and slowdown.

        Returns
        -------
        structured array
            ``user``, ``jobs``, ``used``, ``wait``, ``bounded_slowdown``.
        """
        user, place, count = np.unique(
            self.jobs["user"], return_inverse=True, return_counts=True
        )
        names = ("used", "wait", "bounded_slowdown")
        fields = [("user", "i8"), ("jobs", "i8"), *((name, "f8") for name in names)]
        table = np.zeros(len(user), fields)
        table["user"], table["jobs"] = user, count
        used = self.jobs["processors"] * self.jobs["run"]
        table["used"] = np.bincount(place, used, len(user))
        for name in names[1:]:
            table[name] = np.bincount(place, self.jobs[name], len(user)) / count
        return table

    def utilization(self) -> NDArray[Any]:
        """Return the processors in use over time.

        Returns
        -------
        structured array
            ``time`` and ``value``: the number of processors in use from `time` on.
        """
        width = self.jobs["processors"]
        return _step_function(self.jobs["start"], self.jobs["end"], width)

    def queue_length(self) -> NDArray[Any]:
        """Return the number of waiting jobs over time, in the form of `utilization`."""
        ones = np.ones(len(self), np.int64)
        return _step_function(self.jobs["submit"], self.jobs["start"], ones)

    def _as_table(self) -> Table:
        """Return a table with one row for each job."""
        found = self.metrics()
        names = ("utilization", "bounded_slowdown_mean", "queue_max")
        return Table.from_array(
            repr(self),
            self.jobs,
            context=SlotContext(self.trace.clock),
            times=("submit", "start", "end"),
            spans=("wait", "run", "estimate"),
            facts={name: found.get(name) for name in names},
        )

    def swf_jobs(self) -> NDArray[Any]:
        """Return the jobs as rows of the Standard Workload Format.

        Returns
        -------
        structured array of dtype `SWF`
            The trace's rows with submission, wait, run time, processors and requested
            time as replayed; the start is submit + wait. The status of a job that was
            cut at its requested time is 0, failed.
        """
        rows = np.full(len(self), -1, SWF)
        trace = self.trace.jobs[self.jobs["row"]]
        for name in set(SWF.names or ()) & set(trace.dtype.names or ()):
            rows[name] = trace[name]
        rows["submit"], rows["wait"] = self.jobs["submit"], self.jobs["wait"]
        rows["run_time"] = self.jobs["run"]
        rows["allocated"] = self.jobs["processors"]
        rows["requested_time"] = self.jobs["estimate"]
        rows["status"][self.killed] = 0
        return rows

    def write_swf(self, path: AnyPath) -> None:
        """Write the jobs in the Standard Workload Format, atomically.

        Parameters
        ----------
        path : path
            ``.swf`` or ``.swf.gz``. A job's start is its submission plus its wait.

        Raises
        ------
        ValueError
            For another suffix.
        OSError
            If the file cannot be written; no partial file is left.
        """
        write_trace(path, self.swf_jobs(), header=self.swf_header())

    def swf_header(self) -> dict[str, str]:
        """Return the header of the Standard Workload Format file."""
        processors = str(int(self.cluster.processors.sum()))
        own = {"MaxProcs": processors, "Note": f"replayed by slotkern, {self.policy}"}
        return {**self.trace.header, **own}

    def swf_text(self) -> bytes:
        """Return the text that `write_swf` writes, uncompressed."""
        return trace_text(self.swf_jobs(), self.swf_header())

    def write_csv(self, path: AnyPath) -> None:
        """Write the jobs in the CSV format of Batsim, which evalys reads.

        Parameters
        ----------
        path : path
            The file; an existing one is replaced.

        Raises
        ------
        ValueError
            If the replay has no processors (``nodes=False``).
        OSError
            If the file cannot be written; no partial file is left.

        Notes
        -----
        The columns are ``job_id``, ``workload_name``, ``submission_time``,
        ``requested_number_of_resources``, ``requested_time``, ``success``,
        ``starting_time``, ``execution_time``, ``finish_time``, ``waiting_time``,
        ``turnaround_time``, ``stretch``, ``allocated_resources`` (spans such as ``0-3
        7``; the processors of several sites are numbered consecutively).
        """
        data = self._csv().encode()
        with open_atomic(path) as file:
            file.write(data)

    def _csv(self) -> str:
        jobs = self.jobs
        if not self.has_nodes:
            raise ValueError(
                "this replay did not place jobs; repeat it with nodes=True"
            )
        row, low, count = self.parts(np.arange(len(jobs)))
        spans = [
            str(a) if n == 1 else f"{a}-{a + n - 1}"
            for a, n in zip(low.tolist(), count.tolist(), strict=True)
        ]
        edge = np.searchsorted(row, np.arange(len(jobs) + 1)).tolist()
        resources = [" ".join(spans[a:b]) for a, b in pairwise(edge)]
        response = jobs["wait"] + jobs["run"]
        columns: dict[str, list[Any]] = {
            "job_id": jobs["job"].tolist(),
            "workload_name": ["trace"] * len(jobs),
            "submission_time": jobs["submit"].tolist(),
            "requested_number_of_resources": jobs["processors"].tolist(),
            "requested_time": jobs["estimate"].tolist(),
            "success": (~self.killed).astype(int).tolist(),
            "starting_time": jobs["start"].tolist(),
            "execution_time": jobs["run"].tolist(),
            "finish_time": jobs["end"].tolist(),
            "waiting_time": jobs["wait"].tolist(),
            "turnaround_time": response.tolist(),
            "stretch": jobs["slowdown"].tolist(),
            "allocated_resources": resources,
        }
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(_csv_cell, row)) for row in rows)]
        return "\n".join(lines) + "\n"


def slowdowns(
    wait: NDArray[np.float64], run: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return the columns ``slowdown`` and ``bounded_slowdown`` of `Replay.jobs`."""
    response = wait + run
    slowdown = np.full(len(run), np.nan)
    np.divide(response, run, out=slowdown, where=run > 0)
    bounded = np.maximum(response / np.maximum(run, MIN_BOUNDED_RUN), 1.0)
    return {"slowdown": slowdown, "bounded_slowdown": bounded}


def _csv_cell(value: Any) -> str:
    """Return a value as text; floats with all digits, NaN as an empty cell."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.17g}"
    return str(value)


def _distribution(name: str, values: NDArray[np.float64]) -> dict[str, float]:
    """Return mean, median, percentiles and maximum, with `name` as prefix."""
    shares = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
    quantiles = np.quantile(values, list(shares.values()))
    found = {f"{name}_mean": float(values.mean())}
    for share, quantile in zip(shares, quantiles, strict=True):
        found[f"{name}_{share}"] = float(quantile)
    return found


def _step_function(
    start: NDArray[np.float64], end: NDArray[np.float64], width: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the sum of the widths of the spans that contain a time, over time."""
    time, place = np.unique(np.concatenate((start, end)), return_inverse=True)
    change = np.zeros(len(time), np.int64)
    np.add.at(change, place, np.concatenate((width, -width)))
    steps = np.zeros(len(time), STEP)
    steps["time"], steps["value"] = time, np.cumsum(change)
    return steps
