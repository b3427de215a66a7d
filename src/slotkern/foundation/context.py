"""The clock and the machine that belong to slots and to results of searches."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["SlotContext", "context_of"]


class SlotContext(NamedTuple):
    """The clock and machine that interpret the numbers of slots.

    Attributes
    ----------
    clock : Clock or None
        Converts between dates and numbers.
    machine : Machine or None
        Names and columns of the nodes.
    """

    clock: Any = None
    machine: Any = None


def context_of(slots: Any) -> SlotContext | None:
    """Return the clock and machine of slots; None if they have neither."""
    found = SlotContext(*(getattr(slots, each, None) for each in SlotContext._fields))
    return None if all(each is None for each in found) else found
