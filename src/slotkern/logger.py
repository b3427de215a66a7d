"""What is decided without being asked: the logger ``slotkern`` of the standard library.

Nothing is shown unless the program asks for it, as by ``logging.basicConfig(level=
"INFO")``. A warning says that something given was left out, an info which default was
taken where data was missing.
"""

from __future__ import annotations

import logging

__all__ = ["log"]

log = logging.getLogger("slotkern")
log.addHandler(logging.NullHandler())
