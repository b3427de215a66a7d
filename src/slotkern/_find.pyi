from collections.abc import Iterable
from typing import Any, Literal, overload

from slotkern._core import PreparedSlots
from slotkern._request import Request
from slotkern._windows import Window, WindowTable
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
def find_once(
    pool: PreparedSlots,
    request: Request,
    criterion: Criterion,
    *,
    shape: Shape,
    method: Literal["exact", "lite"],
) -> Window | None: ...
def find_builtin(
    slots: Slots,
    request: Request,
    criterion: BuiltIn,
    shape: Shape,
    max_work: int | None = None,
) -> Window | None: ...
