"""The result of a simulated community: a row for each job, messages, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.community import FATES
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.foundation.checks import visible

__all__ = ["COMMUNITY_RESULT", "CommunityRun", "compare_communities"]

DONE = FATES.index("done")

#: The outcome of a job. Times are in seconds; NaN for an event that did not occur.
COMMUNITY_RESULT = np.dtype(
    [
        ("submit", "f8"),
        ("queued", "f8"),
        ("start", "f8"),
        ("end", "f8"),
        ("processors", "i4"),
        ("home", "i4"),
        ("label", "i4"),
        ("node", "i4"),
        ("moves", "u4"),
        ("fate", "u1"),
    ],
    align=True,
)


@dataclass(frozen=True, repr=False, eq=False)
class CommunityRun(HasPlot):
    """A simulated community; made by `simulate_community`.

    Attributes
    ----------
    jobs : structured array
        A row for each job, in the order given: ``submit``, ``queued`` (the time at
        which it first entered the queue of a node), ``start``, ``end``, ``processors``,
        ``home``, ``label``, ``node`` (the last node that received it, or -1), ``moves``
        (the number of moves from queue to queue), ``fate`` (index of `fates`).
    nodes : structured array
    name : str
    scenario : Independent, Centralized or Community
    sent, own : dict of str to int
        The number of messages to other nodes, and of a node to itself, by kind.
    counts : dict
        The number of ``events``, of messages ``lost`` and of ``suspensions``; at the
        end, the open ``promises`` and their ``shadow_load`` (processor seconds).
    host : int or None
        The node that hosts the central scheduler.
    """

    jobs: NDArray[np.void]
    nodes: NDArray[np.void]
    name: str
    scenario: Any
    sent: Mapping[str, int]
    own: Mapping[str, int]
    counts: Mapping[str, float]
    host: int | None

    #: The possible fates of a job.
    fates = FATES

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        done = len(self.completed)
        return visible(
            f"CommunityRun({self.name}, {done:,} of {len(self):,} jobs completed)"
        )

    @property
    def completed(self) -> NDArray[np.int64]:
        """The rows of the jobs that have ended."""
        return np.flatnonzero(self.jobs["fate"] == DONE)

    def failures(self) -> dict[str, int]:
        """Return the number of failed jobs, by reason.

        Returns
        -------
        dict of str to int
            "no node": none of the nodes that the scenario considers can run the job;
            "no offer": no node has offered to run it; "stranded": its node has left and
            no other node has offered to run it.
        """
        counts = np.bincount(self.jobs["fate"], minlength=len(FATES)).tolist()
        return {
            fate: count
            for fate, count in zip(FATES, counts, strict=True)
            if count and fate != "done"
        }

    def metrics(self, rows: NDArray[Any] | None = None) -> dict[str, float]:
        """Return the aggregate metrics.

        Parameters
        ----------
        rows : ndarray, optional
            The jobs whose times are averaged: row numbers or a mask; by default all
            completed jobs. Failed jobs are left out.

        Returns
        -------
        dict of str to float
            - ``completion``: completed jobs / jobs;
            - ``response``, ``waiting``, ``slowdown``: means of end - submission, start
              - submission, and response / max(1 s, end - start); ``waiting_median``;
            - ``own``: the share of completed jobs that ran on the node to which they
              were submitted, or on the host of the central scheduler;
            - ``moved``: the share of jobs that were moved at least once;
            - ``uptime``: from the first submission to the last end; ``utilization``:
              processor seconds used / (processors * uptime);
            - for each kind of message, the mean number per job, including messages of a
              node to itself (``accept_request`` ...); ``request_others``: requests to
              other nodes; ``messages``: all kinds but REVOKE and RECEIPT, as counted in
              the paper.

            NaN for a mean over no jobs.
        """
        jobs = self.jobs
        chosen = jobs["fate"] == DONE
        if rows is not None:
            mask = np.zeros(len(jobs), np.bool_)
            mask[rows] = True
            chosen = chosen & mask
        done = jobs[chosen]
        run = done["end"] - done["start"]
        response = done["end"] - done["submit"]
        waiting = done["start"] - done["submit"]
        home = done["home"] if self.host is None else self.host
        found = {
            "completion": _mean(jobs["fate"] == DONE),
            "response": _mean(response),
            "waiting": _mean(waiting),
            "waiting_median": float(np.median(waiting)) if len(done) else np.nan,
            "slowdown": _mean(response / np.maximum(run, 1.0)),
            "own": _mean(done["node"] == home),
            "moved": _mean(done["moves"] > 0),
        }
        ended = jobs[jobs["fate"] == DONE]
        uptime = np.nan
        if len(ended):
            uptime = float(ended["end"].max() - jobs["submit"].min())
        used = float((ended["processors"] * (ended["end"] - ended["start"])).sum())
        found["uptime"] = uptime
        capacity = float(self.nodes["processors"].sum()) * uptime
        found["utilization"] = used / capacity if capacity else np.nan
        count = max(1, len(jobs))
        for kind, number in self.sent.items():
            found[kind] = (number + self.own[kind]) / count
        found["request_others"] = self.sent["request"] / count
        found["messages"] = (
            sum(self.sent[kind] + self.own[kind] for kind in MESSAGES) / count
        )
        return found

    def states(self) -> NDArray[Any]:
        """Return the number of jobs in each state over time (figure 3 of the paper).

        Returns
        -------
        structured array
            ``time``, and the numbers from that time on: ``submitted``, ``waiting`` (not
            started yet), ``running``, ``completed``, ``suspended`` (submitted but not
            run until the end), and ``busy``, the processors in use.
        """
        jobs, done = self.jobs, self.jobs[self.completed]
        time = np.unique(np.concatenate((jobs["submit"], done["start"], done["end"])))
        names = ("submitted", "waiting", "running", "completed", "suspended", "busy")
        steps = np.zeros(len(time), [("time", "f8"), *((name, "i8") for name in names)])
        failed = jobs["submit"][jobs["fate"] != DONE]
        submitted, started, ended, suspended = (
            np.searchsorted(np.sort(each), time, side="right")
            for each in (jobs["submit"], done["start"], done["end"], failed)
        )
        steps["time"], steps["submitted"] = time, submitted
        steps["waiting"] = submitted - started - suspended
        steps["running"], steps["completed"] = started - ended, ended
        steps["suspended"] = suspended
        width = done["processors"].astype(np.int64)
        for when, sign in ((done["start"], 1), (done["end"], -1)):
            np.add.at(steps["busy"], np.searchsorted(time, when), sign * width)
        steps["busy"] = steps["busy"].cumsum()
        return steps

    def flow(self) -> NDArray[np.int64]:
        """Return the number of completed jobs by home node and executing node.

        Returns
        -------
        ndarray of int64, shape (nodes, nodes)
            Row: home node; column: node on which the jobs ran.
        """
        done = self.jobs[self.completed]
        size = len(self.nodes)
        pair = done["home"].astype(np.int64) * size + done["node"]
        return np.bincount(pair, minlength=size * size).reshape(size, size)

    def _as_table(self) -> Table:
        """Return a table with one row for each job."""
        found = self.metrics()
        names = ("completion", "response", "waiting", "slowdown", "messages")
        facts = {name: found[name] for name in names} | self.failures()
        return Table.from_array(repr(self), self.jobs, facts=facts)


#: The kinds of messages that the paper counts.
MESSAGES = (
    "request",
    "accept_request",
    "assign_request",
    "inform",
    "accept_inform",
    "assign_inform",
)


def compare_communities(runs: Sequence[CommunityRun]) -> NDArray[np.bool_]:
    """Return a mask of the jobs that were completed in all runs.

    Failed jobs do not count in the means of a scenario, which may make a scenario with
    many failures look better than it is. ``run.metrics(compare_communities(runs))``
    compares all scenarios over the same jobs. The runs must be of the same jobs.

    Raises
    ------
    ValueError
        If there is no run, or the runs have different numbers of jobs.

    Examples
    --------
    >>> import slotkern as sk
    >>> jobs, nodes = sk.generate_community(jobs=200, seed=3)
    >>> runs = [sk.simulate_community(jobs, nodes, name) for name in ("ind", "dec-g")]
    >>> bool(sk.compare_communities(runs).all())
    False
    """
    if not runs:
        raise ValueError("compare_communities needs at least one run")
    sizes = {len(run) for run in runs}
    if len(sizes) > 1:
        raise ValueError(f"the runs have different numbers of jobs: {sorted(sizes)}")
    common: NDArray[np.bool_] = np.all(
        [run.jobs["fate"] == DONE for run in runs], axis=0
    )
    return common


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else np.nan
