"""Stores the figures of benchmarks with machine and date, for the pages.

`make bench` writes benchmarks/measured.json, with one entry per benchmark, and
ci/measured.py generates tables and pictures from it.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk
from slotkern._kernels.base import kernel_target

FILE = Path(__file__).parent / "measured.json"


@dataclass(frozen=True)
class Measured:
    """One comparison: the median seconds of a rival and of slotkern."""

    what: str
    rival: float
    own: float
    against: str = "the papers' algorithm, compiled"


@dataclass(frozen=True)
class Ablation:
    """A workload: its least seconds, and the ratios of times without each structure."""

    what: str
    own: float
    without: dict[str, float]


def machine() -> dict[str, str | int | float]:
    """Return the hardware and the versions on which the figures depend."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
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
        "loops": kernel_target(),
    }


def store(part: str, rows: Sequence[Measured | Ablation], **more: Any) -> None:
    """Replace the stored rows of a benchmark."""
    figures = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    figures[part] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "rows": [asdict(row) for row in rows],
        **more,
    }
    FILE.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
