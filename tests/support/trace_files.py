"""Small traces, and the folder of real ones."""

from __future__ import annotations

import os
from pathlib import Path

from slotkern import SWF

_FOLDER = Path(__file__).parents[3] / "shared" / "traces"
#: Real traces; SLOTKERN_TRACES names their folder.
REAL = sorted(Path(os.environ.get("SLOTKERN_TRACES", _FOLDER)).glob("*.swf.gz"))
Job = tuple[int, int, int]  # start, run time, width


def swf_line(number: int, **known: float) -> str:
    """Return a line of a trace whose other fields are unknown (-1)."""
    fields = dict.fromkeys(SWF.names, -1) | {"job": number} | known
    return "  ".join(f"{value:>4}" for value in fields.values())


def trace_text(jobs: list[Job], header: str = "") -> str:
    """Return the text of a trace."""
    lines = [
        swf_line(i, submit=start, wait=0, run_time=run_time, allocated=width)
        for i, (start, run_time, width) in enumerate(jobs, 1)
    ]
    return header + "".join(line + "\n" for line in lines)
