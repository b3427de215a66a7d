"""slotkern: exact co-allocation windows over the free time slots of unlike nodes."""

__version__ = "0.1.0"
