"""The simulation of a schedule whose jobs end before their reserved time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._kernels import batch as _batch
from slotkern._kernels.batch import REASONS
from slotkern._kernels.windows import WindowTable
from slotkern.batch.policies import backfill_of
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.foundation.checks import number, one_of
from slotkern.foundation.logger import log

if TYPE_CHECKING:
    from slotkern.batch.schedule import Schedule

__all__ = ["Execution", "execute", "true_shares"]


class UsedWindow(NamedTuple):
    """The used part of a window, with the attributes that plots read."""

    start: float
    finish: float
    slots: NDArray[np.void]
    runtime: float
    cost: float
    processor_time: float


UNDECIDED = REASONS.index("undecided")


@dataclass(frozen=True, eq=False)
class Execution(HasPlot):
    """The result of running a schedule with true lengths.

    Attributes
    ----------
    schedule : Schedule
    windows : WindowTable
        The window in which each job ran, with parts as long as reserved; None if the
        job never started.
    shares : ndarray of float64
        The share of its reserved length that each job used.
    promised : ndarray of float64
        The start of the first reservation of each job; NaN if the job had none before
        it started.
    reason : ndarray of uint8
        As in `Schedule`.
    ends, moves : int
        The number of parts that ended, and of reservations that moved to an earlier
        start.
    """

    schedule: Schedule
    windows: WindowTable
    shares: NDArray[np.float64]
    promised: NDArray[np.float64]
    reason: NDArray[np.uint8]
    ends: int
    moves: int

    @property
    def started(self) -> NDArray[np.bool_]:
        """True for each job that ran."""
        started: NDArray[np.bool_] = self.reason == 0
        return started

    @property
    def start(self) -> NDArray[np.float64]:
        """The start of each job."""
        return np.asarray(self.windows.start)

    @property
    def processor_time(self) -> NDArray[np.float64]:
        """The time that each job used, over all its parts."""
        return np.asarray(self.windows.processor_time * self.shares)

    @property
    def finish(self) -> NDArray[np.float64]:
        """The end of each job's last part."""
        return np.asarray(self.windows.start + self.windows.runtime * self.shares)

    def runs(self) -> dict[str, UsedWindow]:
        """Return the used part of each window by job name; no two of them overlap.

        A part ends at its start + its reserved length * share, which is exactly the
        time from which the next job may use the node. Costs are those of the reserved
        windows.
        """
        found = {}
        names = self.schedule.batch.names
        for name, window, share in zip(names, self.windows, self.shares, strict=True):
            if window is None:
                continue
            parts = window.slots.copy()
            # end - start is rounded and may overlap the next job by an ulp.
            whole = window.to_dict()["slots"]
            lengths = np.array([part["length"] for part in whole])
            parts["end"] = window.start + lengths * share
            found[name] = UsedWindow(
                window.start,
                window.start + share * window.runtime,
                parts,
                share * window.runtime,
                window.cost,
                share * window.processor_time,
            )
        return found

    def _as_table(self) -> Table:
        """Return one row per job: the promised start and the actual times."""
        of = self.windows._as_table()
        columns = {
            "name": np.array(self.schedule.batch.names, np.str_),
            "reason": np.array(
                [REASONS[code] for code in self.reason.tolist()], np.str_
            ),
            "promised": self.promised,
            "start": self.start,
            "finish": self.finish,
            "share": self.shares,
            "processor_time": self.processor_time,
            "nodes": of.columns["nodes"],
        }
        times = ("promised", "start", "finish")
        return of._replace(heading=repr(self), columns=columns, times=times, spans=())

    def __repr__(self) -> str:
        return (
            f"Execution({int(self.started.sum())} of {len(self.shares)} jobs, "
            f"{self.moves} moved up)"
        )


def true_shares(
    lengths: ArrayLike | None, jobs: int, seed: int, least: float
) -> NDArray[np.float64]:
    """Return each job's true work as a share of the reserved work, given or random."""
    if lengths is None:
        low = number("least", least, above=0)
        if low > 1:
            raise ValueError(f"least must be at most 1, got {least!r}")
        log.info("lengths are drawn from [%g, 1], seed %s", low, seed)
        return np.random.default_rng(seed).uniform(low, 1, jobs)
    shares = np.array(lengths, np.float64)
    if shares.shape != (jobs,):
        raise ValueError(
            f"lengths must have one entry for each of {jobs} jobs, got shape "
            f"{shares.shape}"
        )
    bad = _batch.find_invalid_share(shares)
    if bad >= 0:
        raise ValueError(
            f"lengths[{bad}] = {shares[bad]} is not a share of the reserved "
            "length in (0, 1]"
        )
    return shares


def execute(
    schedule: Schedule,
    jobs: _batch.CompiledJobs,
    sliced: int,
    shares: NDArray[np.float64],
    reschedule: str | None,
) -> Execution:
    """Run a schedule with true lengths; see `Schedule.execute`.

    The first `sliced` jobs of its order are those that backfilling did not place.
    """
    if reschedule is not None:
        one_of("reschedule", reschedule, ("backfill",))
    kind = backfill_of(schedule.policy)
    order = schedule._options.order
    planned, used = schedule.chosen, shares
    if order is not None:
        planned, used = planned[order], shares[order]
    fixed = sliced
    if reschedule is not None:
        fixed = 0
        kind = "conservative" if kind == "none" else kind
    if kind == "easy":
        planned = np.concatenate([planned[:fixed], np.full(len(planned) - fixed, -1)])
    windows, promised, reason, ends, moves = _batch.execute(
        jobs, schedule.shape, kind, schedule.alternatives, planned, fixed, used
    )
    if order is not None:
        place = np.argsort(order)
        windows, promised, reason = windows[place], promised[place], reason[place]
    # A job that was undecided in the plan may not be searched for again.
    reason[(reason != 0) & (schedule.reason == UNDECIDED)] = UNDECIDED
    return Execution(
        schedule=schedule,
        windows=windows,
        shares=shares,
        promised=promised,
        reason=reason,
        ends=ends,
        moves=moves,
    )
