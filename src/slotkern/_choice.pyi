from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_EACH: int

@final
class Choice:
    def __init__(
        self,
        rows: NDArray[np.int64],
        value: float,
        cost: float,
        proven: bool,
        bound: float,
    ) -> None: ...
    @property
    def rows(self) -> NDArray[np.int64]: ...
    @property
    def value(self) -> float: ...
    @property
    def cost(self) -> float: ...
    @property
    def proven(self) -> bool: ...
    @property
    def bound(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

def choose(
    cost: ArrayLike,
    value: ArrayLike,
    n: int,
    budget: float,
    gap: float,
    max_work: int | None,
    memory_limit: float,
    method: str,
) -> Choice | None: ...
def choose_each(
    cost: ArrayLike,
    value: ArrayLike,
    n: int,
    budget: float,
    gap: float,
    max_work: int | None,
    memory_limit: float,
    method: str,
) -> list[Choice | None]: ...
