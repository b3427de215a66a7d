"""Changes of a `HostPool` other than bookings: reservations, closures and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.amounts import amounts_of
from slotkern.foundation.checks import quote
from slotkern.machine.spans import FreeSlots
from slotkern.pool.caps import check_weeks, extend_weeks, has_weeks
from slotkern.pool.host_bookings import HostBookings
from slotkern.pool.ledger import (
    check_owner,
    ids_of,
    raise_unfit,
    spans_of,
    time_of,
)
from slotkern.pool.share_spans import SPAN

if TYPE_CHECKING:
    from slotkern.machine.capacity import Capacity
    from slotkern.machine.clock import Clock
    from slotkern.machine.nodes import Machine
    from slotkern.pool.share_windows import ShareWindow
    from slotkern.typing import Time

__all__ = ["HostChanges"]


class HostChanges(HostBookings):
    """Base class of `HostPool`: time is reserved, closed, advanced and added."""

    machine: Machine
    clock: Clock | None

    @property
    def capacity(self) -> Capacity:
        """The amounts that nodes share."""
        return cast("Capacity", self.machine.capacity)

    def reserve(
        self,
        nodes: Any,
        start: Time,
        end: Time,
        *,
        share: Mapping[str, int] | None = None,
        owner: str = "reserved",
        partly: bool = False,
        rule: str | None = None,
    ) -> None:
        """Withhold a share of nodes for a time, for maintenance or existing jobs.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names of the machine's nodes, or ids.
        start, end : float, date or str
            The span [start, end).
        share : mapping of str to int, optional
            What is withheld of each node; None for whole nodes.
        owner : str
            The owner; ``release(owner)`` gives the share back.
        partly : bool
            True: withhold the share even if it is not free. A node that lacks some of
            it holds nothing more until other jobs have ended or were released.
        rule : str, optional
            As for `SlotPool.reserve`.

        Raises
        ------
        ValueError, TypeError
            For a share that is not free, unless `partly`, an unknown node, and a span
            that ends before it starts. The pool is then unchanged.
        """
        check_owner(owner)
        if rule is None:
            each = [self._spans(nodes, start, end)]
        else:
            times = spans_of(self.clock, start, end, rule)
            each = [self._spans(nodes, *span) for span in times]
        spans = np.concatenate(each)
        amounts = self.capacity.amounts[spans["row"]]
        if share is not None:
            given = self.capacity.demand(amounts_of("share", share))
            amounts = np.ascontiguousarray(np.broadcast_to(given, amounts.shape))
        if not np.isfinite(spans["end"]).all():
            raise ValueError("a reservation needs a finite end")
        if not partly:
            self._check_free(each, np.split(amounts, len(each)), rule)
        self._rows.reserve(spans, amounts, owner)

    def _check_free(
        self,
        spans: Sequence[NDArray[np.void]],
        amounts: Sequence[NDArray[np.int64]],
        rule: str | None,
    ) -> None:
        """Raise ValueError if the spans of a date lack amounts; it names all dates."""
        wrong = []
        for span, wanted in zip(spans, amounts, strict=True):
            try:
                self._rows.check_free(span, wanted, self.clock)
            except ValueError as error:
                wrong.append((float(span["start"][0]), str(error)))
        raise_unfit(self.clock, wrong, len(spans), rule)

    def disable(
        self,
        nodes: Any,
        start: Time | None = None,
        end: Time | None = None,
        owner: str = "down",
    ) -> list[ShareWindow]:
        """Close nodes for a time; return the windows with an owner that it affects.

        Parameters and errors are those of `SlotPool.disable`.
        """
        check_owner(owner)
        spans = self._spans(nodes, start, end)
        self._rows.disable(spans, owner)
        first, last = spans["start"][0], spans["end"][0]
        return [
            window
            for window, _ in self._owned_windows()
            if window.start < last
            and window.finish > first
            and np.isin(window.nodes, spans["row"]).any()
        ]

    def enable(self, nodes: Any) -> None:
        """Open nodes that `disable` closed; what is booked there stays booked.

        Raises
        ------
        ValueError, TypeError
            For a node that is not disabled, naming it; the pool is then unchanged.
        """
        rows = ids_of(cast(Any, self), nodes).astype(np.int64)
        for row in rows.tolist():
            if row not in self._rows.closed["node"]:
                name = quote(self.machine.names[row].item())
                raise ValueError(f"node {name} is not disabled")
        self._rows.enable(rows)

    @property
    def closed(self) -> NDArray[np.void]:
        """Closed time that is not past: node, start, end, owner, disabled (True)."""
        return self._rows.closed

    def _spans(
        self, nodes: Any, start: Time | None, end: Time | None
    ) -> NDArray[np.void]:
        """Return a span of each of these nodes; None as start or end has no limit."""
        first = self.now if start is None else time_of(self.clock, start, "start")
        last = np.inf if end is None else time_of(self.clock, end, "end")
        if not first < last:
            raise ValueError(f"end {end} does not lie after start {start}")
        rows = ids_of(cast(Any, self), nodes)
        spans = np.empty(len(rows), SPAN)
        spans["row"], spans["end"] = rows, last
        spans["start"] = first if np.isfinite(first) else self._rows.limits[0]
        return spans

    def advance(self, now: Time) -> None:
        """Set the current time; nothing before it is free any more.

        Raises
        ------
        ValueError, TypeError
            For a time before `now`.
        """
        time = time_of(self.clock, now, "now")
        if time < self.now:
            raise ValueError(f"now {now} lies before the pool's now, {self.now:g}")
        self._rows.advance(time)
        if self._capacities is not None:
            self._capacities.advance(time)
        for key, (window, _) in [*self._booked.items()]:
            if window.finish <= time:
                self._booked.pop(key, None)

    def add_slots(self, free: FreeSlots) -> None:
        """Add free amounts of the same machine in time that the pool does not have yet.

        Parameters
        ----------
        free : FreeSlots
            Of an equal machine and clock, such as that of the next week.

        Raises
        ------
        ValueError, TypeError
            For another machine or clock, for time that the pool has already, and for
            time without an end in a pool with quotas at hours of the week.
        """
        if not isinstance(free, FreeSlots):
            raise TypeError(f"free must be FreeSlots, got {type(free).__name__}")
        if free.machine != self.machine or free.clock != self.clock:
            raise ValueError("free must have the machine and clock of the pool")
        check_weeks(cast(Any, self), cast(Any, free.amounts))
        self._rows.add(cast(Any, free.amounts))
        if has_weeks(cast(Any, self)):
            extend_weeks(cast(Any, self))
