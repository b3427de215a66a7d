"""Batches: many jobs of a virtual organization, scheduled as a whole under its policy.

"Preference-based fair resource sharing and scheduling optimization in Grid VOs"
(Toporkov et al. 2014). `schedule_batch` gives every job a window under one of the
`policies`, `Schedule.execute` simulates the schedule with jobs that end early, and
`run_cycles` schedules a flow of jobs cycle by cycle.
"""

from slotkern.batch.cycles import Cycles, run_cycles
from slotkern.batch.jobs import Batch, read_batch
from slotkern.batch.policies import BSF, CSS, Backfilling, BatchSlicer, Optimal
from slotkern.batch.schedule import Schedule
from slotkern.batch.scheduling import schedule_batch

__all__ = [
    "BSF",
    "CSS",
    "Backfilling",
    "Batch",
    "BatchSlicer",
    "Cycles",
    "Optimal",
    "Schedule",
    "read_batch",
    "run_cycles",
    "schedule_batch",
]
