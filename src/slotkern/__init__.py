"""slotkern: exact co-allocation windows over the free time slots of unlike nodes."""

from slotkern._core import (
    CRITERIA,
    SLOT,
    Request,
    Window,
    find_window,
    find_windows,
)
from slotkern._pool import SlotPool
from slotkern.alternatives import Alternatives, find_alternatives
from slotkern.environment import Environment, generate_environment
from slotkern.io import (
    from_arrow,
    from_pandas,
    read_slots,
    to_arrow,
    to_pandas,
    write_slots,
)
from slotkern.plot import plot_gantt
from slotkern.search import Explanation, explain
from slotkern.slots import SlotError, make_slots, validate_slots

__version__ = "0.1.0"

__all__ = [
    "CRITERIA",
    "SLOT",
    "Alternatives",
    "Environment",
    "Explanation",
    "Request",
    "SlotError",
    "SlotPool",
    "Window",
    "explain",
    "find_alternatives",
    "find_window",
    "find_windows",
    "from_arrow",
    "from_pandas",
    "generate_environment",
    "make_slots",
    "plot_gantt",
    "read_slots",
    "to_arrow",
    "to_pandas",
    "validate_slots",
    "write_slots",
]
