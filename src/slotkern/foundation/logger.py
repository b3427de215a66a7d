"""The logger ``slotkern`` of the standard library.

A warning reports that part of the input was left out; an info reports which default
replaced missing data. Nothing is printed unless the program configures logging, as by
``logging.basicConfig(level="INFO")``.
"""

from __future__ import annotations

import logging

__all__ = ["log"]

log = logging.getLogger("slotkern")
log.addHandler(logging.NullHandler())
