"""The texts of ``tests/clusters/texts``, and the facts of their recording."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, NamedTuple

from slotkern.clusters import Snapshot, read_slurm

TEXTS = Path(__file__).parents[1] / "clusters" / "texts"
WEEK = 604800.0
FIELDS = ("sinfo-fields.txt", "squeue-epoch.txt", "reservations-epoch.txt")
PLAIN = ("sinfo-long.txt", "squeue-long.txt", "reservations.txt")


class Recorded(NamedTuple):
    """The texts of one version of Slurm.

    The jobs and reservations were made at `made`, and printed at `now`. In
    ``sacct.txt`` some are submitted a few seconds later, and all have ended.
    """

    version: str
    made: int
    now: int

    def path(self, name: str) -> Path:
        return TEXTS / self.version / name

    def text(self, name: str) -> str:
        return self.path(name).read_text()

    def read(self, *names: str, **options: Any) -> Snapshot:
        given: Any = {"now": self.now, "zone": "UTC"} | options
        return read_slurm(*map(self.text, names), **given)

    def after(self, *seconds: float) -> tuple[float, ...]:
        """Return times in seconds since `made` as seconds since `now`."""
        return tuple(each + self.made - self.now for each in seconds)

    def date(self, seconds: float) -> str:
        """Return a time in seconds since `made` as a date."""
        return f"{dt.datetime.fromtimestamp(self.made + seconds, dt.UTC):%F %T}"


RECORDED = (
    Recorded("22.05", 1795893003, 1795893004),
    Recorded("24.11", 1795893005, 1795893009),
)


def spans(snapshot: Snapshot, **options: Any) -> dict[str, list[tuple[float, float]]]:
    """Return the free spans by node in seconds since the snapshot."""
    free, found = snapshot.free_slots(**options), {}
    for node, start, end in free.slots[["node", "start", "end"]].tolist():
        found.setdefault(str(free.machine.names[node]), []).append((start, end))
    return found
