"""Imports that a fork must not interrupt.

Functions of slotkern import what few callers need when they are first called. A child
that is forked while another thread runs such an import inherits the lock of the module
that is half imported, and waits for it for ever. Before a fork this process completes
the imports that other threads run, and runs those that calls of pools may need.
"""

from __future__ import annotations

import logging as logging  # has hooks for forks, which no running hook may add
import os
import sys
from importlib import import_module

__all__ = ["LATE", "complete_imports"]

#: What the functions of the extension modules, and of what they call, import late.
LATE = (
    "slotkern._find",
    "slotkern._pool_state",
    "slotkern._value",
    "slotkern.alternatives",
    "slotkern.criteria",
    "slotkern.explanation",
    "slotkern.hostlists",
    "slotkern.limits",
    "slotkern.machine.closures",
    "slotkern.machine.durations",
    "slotkern.machine.jobs",
    "slotkern.machine.ledger",
    "slotkern.machine.moments",
    "slotkern.machine.terms",
    "slotkern.pool_file",
    "slotkern.search",
    "slotkern.display_table",
    "slotkern.where",
    "threading",
)


def complete_imports() -> None:
    """Complete what other threads import of slotkern, and import what pools need."""
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if name.startswith("slotkern") and getattr(spec, "_initializing", False):
            import_module(name)
    if "slotkern._pool" in sys.modules:  # what threads share
        for name in LATE:
            import_module(name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=complete_imports)
