"""Random environments of the papers, and random prices by time."""

from slotkern.environment.generate import PRESETS, Environment, generate_environment
from slotkern.environment.laws import Load, Price, Uniform
from slotkern.environment.prices import generate_prices

__all__ = [
    "PRESETS",
    "Environment",
    "Load",
    "Price",
    "Uniform",
    "generate_environment",
    "generate_prices",
]
