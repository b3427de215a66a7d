"""The papers' random environments."""

from slotkern.environment.generate import (
    PRESETS,
    Environment,
    Load,
    Price,
    Uniform,
    checked_integer,
    generate_environment,
)

__all__ = [
    "PRESETS",
    "Environment",
    "Load",
    "Price",
    "Uniform",
    "checked_integer",
    "generate_environment",
]
