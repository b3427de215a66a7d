from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import Caps
from slotkern._kernels.request import Request
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window, WindowTable
from slotkern.compound.plan import Plan
from slotkern.machine.jobs import Compound
from slotkern.typing import (
    BuiltIn,
    Criterion,
    Method,
    Placement,
    Shape,
    Slots,
    Span,
    ValueCriterion,
)

CRITERIA: dict[str, str]

@overload
def find_window(
    slots: Slots,
    request: Request,
    criterion: BuiltIn = "finish",
    *,
    shape: Shape = "square",
    method: Method = "exact",
    placement: Placement = "slot-start",
    span: Literal["window"] = "window",
    gap: float = 0.0,
    max_work: int | None = None,
    seed: int = 0,
    required: Literal[True],
) -> Window: ...
@overload
def find_window(
    slots: Slots,
    request: Request,
    criterion: ValueCriterion,
    *,
    shape: Shape = "square",
    method: Method = "exact",
    placement: Placement = "slot-start",
    span: Span = "window",
    gap: float = 0.0,
    max_work: int | None = None,
    seed: int = 0,
    required: Literal[True],
) -> Window: ...
@overload
def find_window(
    slots: Slots,
    request: Request,
    criterion: BuiltIn = "finish",
    *,
    shape: Shape = "square",
    method: Method = "exact",
    placement: Placement = "slot-start",
    span: Literal["window"] = "window",
    gap: float = 0.0,
    max_work: int | None = None,
    seed: int = 0,
    required: bool = False,
) -> Window | None: ...
@overload
def find_window(
    slots: Slots,
    request: Request,
    criterion: ValueCriterion,
    *,
    shape: Shape = "square",
    method: Method = "exact",
    placement: Placement = "slot-start",
    span: Span = "window",
    gap: float = 0.0,
    max_work: int | None = None,
    seed: int = 0,
    required: bool = False,
) -> Window | None: ...
@overload
def find_window(
    slots: Slots,
    request: Compound,
    criterion: BuiltIn = "finish",
    *,
    shape: Shape = "square",
    required: Literal[True],
) -> Plan: ...
@overload
def find_window(
    slots: Slots,
    request: Compound,
    criterion: BuiltIn = "finish",
    *,
    shape: Shape = "square",
    required: bool = False,
) -> Plan | None: ...
def find_windows(
    slots: Slots,
    requests: Iterable[Request],
    criterion: Criterion = "finish",
    *,
    shape: Shape = "square",
    method: Method = "exact",
    threads: int = 1,
    **options: Any,
) -> WindowTable: ...
def depends_on_bookings(request: Request) -> bool: ...
def find_limited(
    slots: PreparedSlots,
    request: Request,
    criterion: str,
    shape: str,
    limits: tuple[float, ...] = ...,
    *,
    own_rows: bool = False,
) -> Window | None: ...
def find_together(
    slots: PreparedSlots,
    requests: list[Request],
    shape: str,
    limits: tuple[float, ...] = ...,
) -> list[Window] | None: ...

ANY_TIME: tuple[float, ...]

def find_once(
    pool: PreparedSlots,
    request: Request,
    criterion: Criterion,
    *,
    shape: Shape,
    method: Literal["exact", "lite"],
) -> Window | None: ...
def find_under(
    pool: PreparedSlots,
    request: Request,
    criterion: Any,
    *,
    shape: str,
    capacities: Caps | None,
    options: Any = None,
) -> Window | None: ...
def find_by_spans(
    find: Callable[[Request], Window | None],
    request: Request,
    criterion: Any,
    capacities: Caps | None,
    performance: float,
) -> Window | None: ...
def find_builtin(
    slots: Slots,
    request: Request,
    criterion: BuiltIn,
    shape: Shape,
    max_work: int | None = None,
) -> Window | None: ...

ATTRIBUTES: dict[str, str]
MAX_PARTS: int

class Alternatives(WindowTable):
    @property
    def searched(self) -> tuple[Any, NDArray[np.int64] | None]: ...
    def __iter__(self) -> Iterator[Window]: ...
    @overload
    def __getitem__(self, index: int | np.integer[Any], /) -> Window: ...
    @overload
    def __getitem__(self, index: slice | list[int] | NDArray[Any], /) -> Self: ...
    def best(self, criterion: Criterion = "finish") -> Window | None: ...
    def pareto(self, *criteria: Criterion) -> Alternatives: ...

def current_slots(
    slots: Slots,
) -> tuple[NDArray[np.void], NDArray[np.int64] | None]: ...
def find_slot_rows(
    slots: NDArray[np.void], parts: NDArray[np.void]
) -> NDArray[np.int64]: ...
def alternatives_from_windows(
    windows: Sequence[Window],
    n: int,
    criterion: str,
    shape: str,
    searched: tuple[NDArray[np.void], NDArray[np.int64] | None],
) -> Alternatives: ...
def first_alternatives(
    slots: Slots,
    request: Request,
    shape: Shape,
    limit: int | None,
) -> Alternatives: ...
def too_many_error(nodes: int) -> ValueError: ...
def endless_error() -> ValueError: ...
