"""Imports that a fork must not interrupt.

Functions of slotkern import rarely used modules on their first call. If a process forks
while another thread runs such an import, the child inherits the import lock of the
partly imported module and waits for it forever. A fork hook therefore completes running
imports first, and imports all modules that methods of pools import late.
"""

from __future__ import annotations

import logging as logging  # registers fork hooks, which a hook must not do
import os
import sys
from importlib import import_module

__all__ = ["LATE_IMPORTS", "complete_imports"]

#: The modules that functions of the extension modules, and their callees, import late.
LATE_IMPORTS = (
    "slotkern._kernels.search",
    "slotkern._kernels.pool",
    "slotkern._kernels.values",
    "slotkern.calendars.rules",
    "slotkern.compound.find",
    "slotkern.compound.jobs",
    "slotkern.compound.plan",
    "slotkern.compound.schedule",
    "slotkern.compound.start_intervals",
    "slotkern.compound.tables",
    "slotkern.display.table",
    "slotkern.expressions.filters",
    "slotkern.expressions.groups",
    "slotkern.expressions.limits",
    "slotkern.foundation.extras",
    "slotkern.foundation.hostlists",
    "slotkern.ledger.shared",
    "slotkern.machine.calendar",
    "slotkern.machine.context",
    "slotkern.machine.jobs",
    "slotkern.pool.closures",
    "slotkern.pool.file",
    "slotkern.pool.ledger",
    "slotkern.pool.share_windows",
    "slotkern.search.alternatives",
    "slotkern.search.blame",
    "slotkern.search.criteria",
    "slotkern.search.delegated",
    "slotkern.search.explanation",
    "slotkern.search.profiles",
    "slotkern.search.share_explanation",
    "slotkern.search.sum_uses",
    "threading",
    "unicodedata",
)


def complete_imports() -> None:
    """Complete imports that other threads run, and import `LATE_IMPORTS` for pools."""
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if name.startswith("slotkern") and getattr(spec, "_initializing", False):
            import_module(name)
    if "slotkern._kernels.pool" in sys.modules:  # pools are shared by threads
        for name in LATE_IMPORTS:
            import_module(name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=complete_imports)
