"""Random environments of the papers: nodes, local tasks and free slots."""

from slotkern.environment.generate import PRESETS, Environment, generate_environment
from slotkern.environment.laws import Load, Price, Uniform

__all__ = [
    "PRESETS",
    "Environment",
    "Load",
    "Price",
    "Uniform",
    "generate_environment",
]
