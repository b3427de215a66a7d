"""Checks of given clocks, machines and tariffs."""

from __future__ import annotations

from typing import Any

from slotkern.foundation.checks import quote
from slotkern.foundation.context import SlotContext
from slotkern.tariffs.mapping import Tariffs

from .clock import Clock
from .nodes import Machine

__all__ = ["checked_context"]


def checked_context(
    known: SlotContext | None, clock: Any, machine: Any, tariffs: Any = None
) -> SlotContext:
    """Check and return what is given of a context; by default, that of the slots.

    Tariffs may be any mapping of names to `Tariff`.
    """
    if clock is not None and not isinstance(clock, Clock):
        raise TypeError(f"clock must be a Clock, got {quote(clock)}")
    if machine is not None and not isinstance(machine, Machine):
        raise TypeError(f"machine must be a Machine, got {quote(machine)}")
    if tariffs is not None and not isinstance(tariffs, Tariffs):
        tariffs = Tariffs(tariffs)
    had = known or SlotContext()
    return SlotContext(
        clock or had.clock,
        had.machine if machine is None else machine,
        had.tariffs if tariffs is None else tariffs,
    )
