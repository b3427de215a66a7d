"""slotkern: exact co-allocation windows over the free time slots of unlike nodes."""

from slotkern._core import (
    CRITERIA,
    SLOT,
    Request,
    SlotPool,
    Window,
    find_window,
    find_windows,
)
from slotkern.alternatives import Alternatives, find_alternatives
from slotkern.choose import Choice, choose, choose_each
from slotkern.criterion import criterion, minimize
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
from slotkern.search import Explanation, explain, step_values
from slotkern.slots import SlotError, make_slots, validate_slots
from slotkern.trace import TraceSlots, slots_from_trace

__version__ = "0.1.0"

__all__ = [
    "CRITERIA",
    "SLOT",
    "Alternatives",
    "Choice",
    "Environment",
    "Explanation",
    "Request",
    "SlotError",
    "SlotPool",
    "TraceSlots",
    "Window",
    "choose",
    "choose_each",
    "criterion",
    "explain",
    "find_alternatives",
    "find_window",
    "find_windows",
    "from_arrow",
    "from_pandas",
    "generate_environment",
    "make_slots",
    "minimize",
    "plot_gantt",
    "read_slots",
    "slots_from_trace",
    "step_values",
    "to_arrow",
    "to_pandas",
    "validate_slots",
    "write_slots",
]
