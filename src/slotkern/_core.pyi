from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern.machine.clock import Clock
from slotkern.machine.nodes import Machine
from slotkern.typing import (
    BuiltIn,
    Criterion,
    Duration,
    Method,
    Placement,
    Shape,
    Slots,
    Span,
    Time,
    ValueCriterion,
)

SLOT: np.dtype[np.void]
PART: np.dtype[np.void]
CRITERIA: dict[str, str]
inf: float

_Slots: TypeAlias = NDArray[np.void]

REQUEST_FIELDS: tuple[str, ...]

class Request:
    where: str | NDArray[np.bool_] | None
    name: str | None
    said: dict[str, tuple[Any, Any]] | None
    def __init__(
        self,
        nodes: int,
        volume: float | None = None,
        *,
        budget: float = ...,
        min_performance: float = ...,
        earliest: Time = ...,
        deadline: Time = ...,
        max_price: float = ...,
        setup: Duration = 0.0,
        step: Duration = 0.0,
        latest: Time = ...,
        max_runtime: Duration = ...,
        where: str | ArrayLike | None = None,
        walltime: Duration | None = None,
        reference: float = 1.0,
        name: str | None = None,
    ) -> None: ...
    def _fields(self) -> dict[str, Any]: ...
    def _as_said(self, name: str, value: Any) -> Any: ...
    @property
    def nodes(self) -> int: ...
    @property
    def volume(self) -> Any: ...
    @property
    def reference(self) -> float: ...
    @property
    def walltime(self) -> Duration | None: ...
    @property
    def budget(self) -> float: ...
    @property
    def min_performance(self) -> float: ...
    @property
    def earliest(self) -> Any: ...
    @property
    def deadline(self) -> Any: ...
    @property
    def max_price(self) -> float: ...
    @property
    def setup(self) -> Any: ...
    @property
    def step(self) -> Any: ...
    @property
    def latest(self) -> Any: ...
    @property
    def max_runtime(self) -> Any: ...
    def length(self, performance: ArrayLike) -> NDArray[np.float64]: ...
    def replace(self, **changes: Any) -> Request: ...

class PreparedSlots:
    @property
    def slots(self) -> _Slots: ...
    terms: tuple[Clock | None, Machine | None] | None
    @property
    def clock(self) -> Clock | None: ...
    @property
    def machine(self) -> Machine | None: ...
    def __init__(
        self,
        slots: Slots,
        *,
        clock: Clock | None = None,
        machine: Machine | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nodes(self) -> NDArray[np.int32]: ...
    def check_rows(self, name: str) -> None: ...
    def find(
        self, request: Request, criterion: Criterion = "finish", **options: Any
    ) -> Window | None: ...

class Window:
    start: float
    finish: float
    runtime: float
    cost: float
    processor_time: float
    value: float
    bound: float
    proven: bool
    criterion: str
    shape: Shape
    effort: dict[str, int] | None
    name: str | None
    terms: tuple[Clock | None, Machine | None] | None
    @property
    def clock(self) -> Clock | None: ...
    @property
    def machine(self) -> Machine | None: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def start_time(self) -> datetime | None: ...
    @property
    def finish_time(self) -> datetime | None: ...
    @property
    def duration(self) -> timedelta | None: ...
    @property
    def slots(self) -> _Slots: ...
    @property
    def nodes(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def to_pandas(self) -> Any: ...
    def to_arrow(self) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...
    @staticmethod
    def from_dict(whole: Mapping[str, Any]) -> Window: ...

def in_numbers(slots: Slots, request: Request) -> Request: ...
def restored_slots(slots: _Slots, terms: Any) -> PreparedSlots: ...
def array_of(slots: Slots) -> _Slots: ...
def check_slots(slots: Slots) -> None: ...
def prepared(slots: Slots) -> PreparedSlots: ...
def check_volume(slots: Slots, request: Request) -> None: ...
def filter_rows(
    slots: Slots, where: str | NDArray[np.bool_] | None
) -> tuple[_Slots, NDArray[np.bool_] | None]: ...
def window_of(
    slots: _Slots,
    rows: NDArray[np.int64],
    start: float,
    asked: Request,
    criterion: str,
    shape: str,
    value: float | None = None,
    longest: float = 0.0,
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
) -> Window | None: ...
def find_windows(
    slots: Slots,
    requests: Iterable[Request],
    criterion: Criterion = "finish",
    *,
    shape: Shape = "square",
    method: Method = "exact",
    threads: int = 1,
    **options: Any,
) -> list[Window | None]: ...
