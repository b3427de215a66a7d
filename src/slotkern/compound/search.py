"""The state of one search for a job of several parts, and limits on its parts."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.search import depends_on_bookings, find_limited
from slotkern._kernels.slots import PreparedSlots, prepare_snapshot, resolve_times
from slotkern._kernels.windows import Window
from slotkern.compound.jobs import Job, requests_in
from slotkern.foundation.checks import one_of
from slotkern.foundation.context import SlotContext, context_of
from slotkern.foundation.special_fields import refuse_special

__all__ = ["NO_LIMITS", "CompoundSearch", "Limits"]


class Limits(NamedTuple):
    """Limits on the windows of a part of a job, besides those of its requests."""

    earliest: float = -math.inf
    latest: float = math.inf
    deadline: float = math.inf
    max_runtime: float = math.inf
    budget: float = math.inf

    def at_most(self, criterion: str, value: float) -> Limits:
        """Return the limits with plans by a criterion limited to a value."""
        k = _LIMIT_OF[criterion]
        return Limits._make((*self[:k], min(self[k], value), *self[k + 1 :]))


NO_LIMITS = Limits()
#: The place of the limit on each criterion.
_LIMIT_OF = {"start": 1, "finish": 2, "runtime": 3, "cost": 4}


class CompoundSearch:
    """The slots and the shape of one search, with what all parts of a job share."""

    def __init__(self, slots: Any, job: Job, shape: str) -> None:
        if shape not in ("square", "ragged"):
            one_of("shape", shape, ("square", "ragged"))
        self.shape, self.given = shape, slots
        self.proven = True  # False: a search under limits on sums spent its work
        #: True: facts about the slots may be cached, which only `add_slots` changes.
        self.keeps_slots = isinstance(slots, PreparedSlots)
        self.slots: PreparedSlots = slots if self.keeps_slots else PreparedSlots(slots)
        # A filter on start or end is evaluated on the free slots, as they are now.
        if self.keeps_slots and _depends_on_bookings(job):
            self.slots = prepare_snapshot(slots)

    @cached_property
    def context(self) -> SlotContext | None:
        """The clock, machine and tariffs of the slots."""
        return context_of(self.given)

    def resolved(self, request: Request) -> Request:
        """Return a request with all times as numbers.

        Raises
        ------
        ValueError
            For a special field that no part of a job can have.
        """
        if request.special is not None:
            refuse_special(request, "a job of several parts", ("within",))
        return resolve_times(self.given, request)

    def find(
        self, request: Request, criterion: str, limits: Limits = NO_LIMITS
    ) -> Window | None:
        """Return the best window of a request within further limits, or None."""
        window = find_limited(
            self.slots, self.resolved(request), criterion, self.shape, limits
        )
        if window is not None and not window.proven:
            self.proven = False
        return window

    @cached_property
    def free(self) -> PreparedSlots:
        """The free slots as they are now."""
        return prepare_snapshot(self.slots)

    @cached_property
    def table(self) -> NDArray[np.void]:
        """The free slots as they are now, sorted by start."""
        return self.free.slots

    @cached_property
    def starts(self) -> NDArray[np.float64]:
        """The different starts of the free slots, ascending."""
        return np.unique(self.table["start"])

    @property
    def has_tariffs(self) -> bool:
        """True if prices change while a part runs."""
        return getattr(self.given, "tariffs", None) is not None

    def next_start(self, time: float) -> float:
        """Return the first start of a slot after a time; infinite if there is none."""
        k = int(np.searchsorted(self.starts, time, "right"))
        return float(self.starts[k]) if k < len(self.starts) else math.inf


def _depends_on_bookings(job: Job) -> bool:
    """Return True if bookings change the filter or limits of some request; cached."""
    if isinstance(job, Request):
        return depends_on_bookings(job)
    found = job.__dict__.get("_depends_on_bookings")
    if found is None:
        found = any(map(depends_on_bookings, requests_in(job)))
        job.__dict__["_depends_on_bookings"] = found
    return bool(found)
