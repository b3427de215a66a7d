"""The clock, machine and tariffs that belong to slots and to results of searches."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["SlotContext", "context_of"]


class SlotContext(NamedTuple):
    """The clock, machine and tariffs that interpret the numbers of slots.

    Attributes
    ----------
    clock : Clock or None
        Converts between dates and numbers.
    machine : Machine or None
        Names and columns of the nodes.
    tariffs : Tariffs or None
        The tariffs that the column ``tariff`` of the slots names.
    """

    clock: Any = None
    machine: Any = None
    tariffs: Any = None


def context_of(slots: Any) -> SlotContext | None:
    """Return the clock, machine and tariffs of slots; None if they have none."""
    found = SlotContext(*(getattr(slots, each, None) for each in SlotContext._fields))
    return None if all(each is None for each in found) else found
