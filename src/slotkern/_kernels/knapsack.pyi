from collections.abc import Sequence
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from slotkern.display.table import Table

MAX_EACH: int
MAX_LIMITS: int
CONSTRAINED_WORK: int

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
    def to_pandas(self) -> pd.DataFrame: ...
    def to_arrow(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def _repr_html_(self) -> str: ...
    def _as_table(self) -> Table: ...
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
def last_work() -> int: ...
def choose_constrained(
    cost: ArrayLike,
    value: ArrayLike,
    n: int,
    budget: float,
    limits: Sequence[tuple[ArrayLike, str, float]],
    gap: float,
    max_work: int | None,
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

@final
class OneEach:
    def __init__(
        self,
        rows: NDArray[np.int64],
        value: float,
        weight: float,
        proven: bool,
        bound: float,
        least: float,
        feasible: bool,
    ) -> None: ...
    @property
    def rows(self) -> NDArray[np.int64]: ...
    @property
    def value(self) -> float: ...
    @property
    def weight(self) -> float: ...
    @property
    def proven(self) -> bool: ...
    @property
    def bound(self) -> float: ...
    @property
    def least(self) -> float: ...
    @property
    def feasible(self) -> bool: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def to_arrow(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def _repr_html_(self) -> str: ...
    def _as_table(self) -> Table: ...
    def __eq__(self, other: object, /) -> bool: ...

ONE_EACH_WORK: int

def choose_one_each(
    value: ArrayLike,
    weight: ArrayLike,
    first: ArrayLike,
    limit: float,
    maximize: bool,
    gap: float,
    max_work: int | None,
) -> OneEach: ...
def trade_off(
    value: ArrayLike,
    weight: ArrayLike,
    first: ArrayLike,
    maximize: bool,
    max_work: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]: ...
