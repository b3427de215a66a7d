"""A machine in its users' terms: named nodes, dates, and what is busy."""

from .clock import Clock
from .nodes import Machine
from .spans import FreeSlots, free_slots

__all__ = ["Clock", "FreeSlots", "Machine", "free_slots"]
