"""Tariffs: prices that change at known times while a part runs."""

from .mapping import Tariffs
from .tariff import Tariff

__all__ = ["Tariff", "Tariffs"]
