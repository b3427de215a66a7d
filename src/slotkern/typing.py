"""Types for annotations: the slots that functions accept, and names such as criteria.

A type checker reports ``find_window(slots, job, "finsh")``, but it cannot check the
names of user columns: write ``Field("memory")``, which is the plain str at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NewType, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import datetime

    from typing_extensions import CapsuleType

    from slotkern.search.criteria import Criterion as OwnCriterion
    from slotkern.search.criteria import Minimize

__all__ = [
    "BuiltIn",
    "Criterion",
    "Duration",
    "Field",
    "FrontCriterion",
    "HoldsSlots",
    "Method",
    "Placement",
    "Shape",
    "Slots",
    "Span",
    "Time",
    "ValueCriterion",
]

Shape: TypeAlias = Literal["square", "ragged"]
Method: TypeAlias = Literal["exact", "lite", "published", "published-lite"]
Placement: TypeAlias = Literal["slot-start", "any"]
Span: TypeAlias = Literal["window", "group"]

#: The criteria of `slotkern.CRITERIA`.
BuiltIn: TypeAlias = Literal["first", "start", "finish", "runtime", "cost"]
#: The name of a numeric column, whose sum is maximized.
Field = NewType("Field", str)
#: Criteria that optimize a sum of values: named ones, columns, arrays, functions.
ValueCriterion: TypeAlias = (
    "Literal['processor_time', 'dependable', 'coordinated', 'leftover'] | Field | "
    "NDArray[Any] | Minimize | OwnCriterion | CapsuleType"
)
Criterion: TypeAlias = "BuiltIn | ValueCriterion"
#: The criteria of `slotkern.pareto`.
FrontCriterion: TypeAlias = (
    "Literal['start', 'finish', 'runtime', 'cost', 'processor_time'] | Field | "
    "NDArray[Any] | Minimize | OwnCriterion"
)


#: A number in clock units, or a date or duration that a clock converts to one.
Time: TypeAlias = "float | str | datetime.date | np.datetime64"
Duration: TypeAlias = "float | str | datetime.timedelta | np.timedelta64"


class HoldsSlots(Protocol):
    """A SlotPool, an Environment, or any other object with an array of slots."""

    @property
    def slots(self) -> NDArray[Any]: ...


Slots: TypeAlias = NDArray[np.void] | HoldsSlots
