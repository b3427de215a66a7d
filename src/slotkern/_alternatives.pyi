from collections.abc import Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._request import Request
from slotkern._windows import Window, WindowTable
from slotkern.typing import Criterion, Shape, Slots

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
