"""Workload traces, and the fields of their formats."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.foundation.context import SlotContext
from slotkern.machine.clock import Clock

__all__ = ["GWF", "SWF", "Trace"]

#: The fields of the Standard Workload Format, in its order. Times are in seconds, sizes
#: in kilobytes; -1 means unknown.
SWF = np.dtype(
    [
        ("job", "i8"),
        ("submit", "f8"),
        ("wait", "f8"),
        ("run_time", "f8"),
        ("allocated", "i8"),
        ("cpu_time", "f8"),
        ("memory", "f8"),
        ("requested", "i8"),
        ("requested_time", "f8"),
        ("requested_memory", "f8"),
        ("status", "i8"),
        ("user", "i8"),
        ("group", "i8"),
        ("executable", "i8"),
        ("queue", "i8"),
        ("partition", "i8"),
        ("preceding", "i8"),
        ("think_time", "f8"),
    ]
)

#: The fields of the Grid Workload Format, in its order; the first 16 are those of
#: the Standard Workload Format. Those in `WORDS` contain dictionary codes of words.
GWF = np.dtype(
    [(name, SWF[name].str) for name in (SWF.names or ())[:16]]
    + [
        ("origin_site", "i8"),
        ("last_site", "i8"),
        ("structure", "i8"),
        ("structure_parameters", "i8"),
        ("network", "f8"),
        ("disk", "f8"),
        ("resources", "i8"),
        ("requested_platform", "i8"),
        ("requested_network", "f8"),
        ("requested_disk", "f8"),
        ("requested_resources", "i8"),
        ("organization", "i8"),
        ("project", "i8"),
    ]
)
_WORDS = """
user group executable queue partition origin_site last_site structure
structure_parameters resources requested_platform requested_resources organization
project
"""
WORDS = frozenset(_WORDS.split())


@dataclass(frozen=True, repr=False)
class Trace(HasPlot):
    """The jobs of a workload trace, and its header.

    Attributes
    ----------
    jobs : structured array of dtype `SWF` or `GWF`
        The jobs in the order of the file, unless cleaned. Times are in seconds since
        the start of the trace, memory is in kilobytes; -1 means unknown.
    header : mapping of str to str
        The lines ``; Name: text`` of the header; the texts of a name that
        occurs more than once are joined by line breaks.
    comments : str
        All comment lines, unchanged.
    words : mapping of str to tuple of str
        For the Grid Workload Format, the words of the dictionary codes of each field:
        ``trace.words["user"][trace.jobs["user"][0]]``.
    source : str
        The file.
    skipped : int
        The number of malformed lines that ``errors="skip"`` left out.
    remarks : tuple of str
        The errors of the first of these lines.
    repairs : mapping of str to int
        The number of jobs that each repair of ``clean=`` has changed or left out.
    """

    jobs: NDArray[Any]
    header: Mapping[str, str] = field(default_factory=dict)
    comments: str = ""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""
    skipped: int = 0
    remarks: tuple[str, ...] = ()
    repairs: Mapping[str, int] = field(default_factory=dict)

    @property
    def processors(self) -> int | None:
        """The processors of the machine (``MaxProcs`` of the header), or None."""
        text = self.header.get("MaxProcs", "").partition("\n")[0]
        found = re.match(r"[0-9]{1,18}\b", text)
        return int(found[0]) if found and int(found[0]) > 0 else None

    @property
    def clock(self) -> Clock | None:
        """The clock of the trace, whose origin is ``UnixStartTime``; None if unknown.

        Its zone is ``TimeZoneString`` of the header, if that names a zone.
        """
        start = self.header.get("UnixStartTime", "").partition("\n")[0]
        found = re.match(r"[0-9]{1,10}\b", start)
        if not found or int(found[0]) == 0:
            return None
        origin = dt.datetime.fromtimestamp(int(found[0]), dt.UTC)
        zone = self.header.get("TimeZoneString", "").partition("\n")[0].strip()
        try:
            return Clock(origin, zone=zone or None)
        except ValueError:  # the text names no zone
            return Clock(origin)

    def __len__(self) -> int:
        return len(self.jobs)

    def _as_table(self) -> Table:
        """Return a table with one row per job."""
        return Table.from_array(
            repr(self),
            self.jobs,
            context=None if self.clock is None else SlotContext(self.clock),
            times=("submit",),
            spans=("wait", "run_time", "requested_time"),
        )

    def __repr__(self) -> str:
        facts = [f"{len(self)} jobs"]
        if self.processors is not None:
            facts.append(f"processors={self.processors}")
        if self.skipped:
            facts.append(f"skipped={self.skipped}")
        facts += [f"{name}={count}" for name, count in self.repairs.items()]
        return f"Trace({self.source!r}, {', '.join(facts)})"

    def with_jobs(self, jobs: NDArray[Any], repairs: Mapping[str, int]) -> Trace:
        """Return a copy of the trace with other jobs and further repairs."""
        return replace(self, jobs=jobs, repairs={**self.repairs, **repairs})
