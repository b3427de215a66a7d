"""Checks of given clocks, machines and tariffs; conversion of dates in requests."""

from __future__ import annotations

from typing import Any

from slotkern._kernels.request import FIELDS, Request
from slotkern.foundation.checks import quote
from slotkern.foundation.context import SlotContext
from slotkern.tariffs.mapping import Tariffs

from .clock import Clock
from .nodes import Machine

__all__ = ["checked_context", "resolve_times"]


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


def resolve_times(
    request: Request, clock: Clock | None, place: int | None = None
) -> Request:
    """Convert the dates and durations of a request to numbers of a clock.

    Raises
    ------
    ValueError
        If there is no clock, or a date has no exact number; the message contains the
        request (or its place in the sequence), the field and the value.
    """
    who = request.name or ("" if place is None else f"requests[{place}]")
    at = f"{who}: " if who else ""
    fields = request._fields()
    known = request.as_given or {}
    dated = {name: both for name, both in known.items() if both[1] is not None}
    if clock is None:
        name, (value, _) = next(iter(dated.items()))
        raise ValueError(
            f"{at}{name} is {quote(value)}, but these slots have no clock; "
            "search what free_slots returns (a pool that `slotkern free` wrote), or "
            "SlotPool(slots, clock=Clock(origin, zone=...))"
        )
    for name, (_, meant) in dated.items():
        if name in FIELDS and FIELDS[name].kind == "time":
            fields[name] = clock.time(meant, f"{at}{name}")
        else:
            fields[name] = clock.duration(meant, f"{at}{name}")
    if "walltime" in dated:
        del fields["volume"]
    for name, field in FIELDS.items():
        if (
            field.kind == "time"
            and field.default > 0
            and fields["earliest"] > fields[name]
        ):
            given_last = getattr(request, name)
            raise ValueError(
                f"{at}earliest {request.earliest} lies after {name} {given_last}"
            )
    return Request(**fields)
