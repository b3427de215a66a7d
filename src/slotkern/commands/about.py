"""Versions and installed extras, for ``--version`` and ``info``; needs no extra."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np

import slotkern as sk
from slotkern._kernels.base import kernel_target
from slotkern.foundation.extras import EXTRAS

__all__ = ["info_lines", "version_line"]


def version_line() -> str:
    """Return the line that `slotkern --version` prints."""
    return f"slotkern {sk.__version__}"


def info_lines() -> list[str]:
    """Return the lines that `slotkern info` prints."""
    lines = [
        version_line(),
        f"Python {platform.python_version()} ({sys.implementation.name})",
        f"numpy {np.__version__}",
        f"{platform.system()} {platform.release()} {platform.machine()}",
        f"loops compiled for: {kernel_target()}",
    ]
    for module, needed in EXTRAS.items():
        if find_spec(module) is None:
            lines.append(f"{module}: missing (slotkern[{needed}])")
        else:
            lines.append(f"{module} {_version(module)} (slotkern[{needed}])")
    return lines


def _version(module: str) -> str:
    try:
        return version(module)
    except PackageNotFoundError:
        return "of unknown version"
