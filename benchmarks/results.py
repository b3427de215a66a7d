"""Keeps what was measured, with machine and date, for the pages that show it.

`make bench` fills benchmarks/measured.json, a part for each benchmark, and
ci/measured.py writes tables and pictures from it.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import slotkern as sk
from slotkern._base import clones

FILE = Path(__file__).parent / "measured.json"


@dataclass(frozen=True)
class Measured:
    """One search: the median seconds that a rival takes, and those of slotkern."""

    what: str
    rival: float
    own: float
    against: str = "the papers' algorithm, compiled"


def machine() -> dict[str, str | int | float]:
    """What the figures depend on beside the program."""
    name = platform.processor() or platform.machine()
    told = Path("/proc/cpuinfo")
    if told.exists():
        lines = told.read_text(encoding="utf-8").splitlines()
        names = [line for line in lines if line.startswith("model name")]
        name = names[0].partition(":")[2].strip() if names else name
    return {
        "processor": name,
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else -1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "slotkern": sk.__version__,
        "loops": clones(),
    }


def keep(part: str, rows: list[Measured]) -> None:
    """Put the rows of a benchmark in the place of its older ones."""
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    kept[part] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "rows": [asdict(row) for row in rows],
    }
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
