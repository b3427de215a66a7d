"""Machines of named nodes, clocks for dates, and the free slots around busy spans."""

from .clock import Clock
from .nodes import Machine
from .spans import FreeSlots, free_slots

__all__ = ["Clock", "FreeSlots", "Machine", "free_slots"]
