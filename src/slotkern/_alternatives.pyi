from collections.abc import Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._request import Request
from slotkern._windows import Window, WindowTable
from slotkern.typing import Criterion, Shape, Slots

ATTRIBUTES: dict[str, str]
MOST_PARTS: int

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

def searched_slots(
    slots: Slots,
) -> tuple[NDArray[np.void], NDArray[np.int64] | None]: ...
def rows_that_hold(
    slots: NDArray[np.void], parts: NDArray[np.void]
) -> NDArray[np.int64]: ...
def gather(
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
def too_many(nodes: int) -> ValueError: ...
def endless() -> ValueError: ...
