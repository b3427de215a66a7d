from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern.expressions.groups import Rule
from slotkern.expressions.limits import Limit
from slotkern.foundation.special_fields import SpecialField
from slotkern.typing import Duration, Time

class RequestField(NamedTuple):
    name: str
    kind: Literal["number", "time", "duration"]
    default: float
    unit: str
    label: str
    text: str

inf: float
FIELDS: dict[str, RequestField]
SPECIAL_FIELDS: dict[str, SpecialField]
MAX_LIMITS: int
REQUEST_FIELDS: tuple[str, ...]

class Request:
    where: str | NDArray[np.bool_] | None
    limits: tuple[Limit, ...]
    name: str | None
    rules: tuple[Rule, ...]
    special: dict[str, Any] | None
    as_given: dict[str, tuple[Any, Any]] | None
    def __init__(
        self,
        nodes: int,
        volume: float | None = None,
        *,
        budget: float = ...,
        min_performance: float = 0.0,
        earliest: Time = ...,
        deadline: Time = ...,
        max_price: float = ...,
        setup: Duration = 0.0,
        step: Duration = 0.0,
        latest: Time = ...,
        max_runtime: Duration = ...,
        where: str | ArrayLike | None = None,
        limits: str | Limit | Iterable[str | Limit] | None = (),
        within: str | None = None,
        share: Mapping[str, int] | None = None,
        stack: int = 1,
        tree: Mapping[str, int] | None = None,
        whole: str | None = None,
        uses: Mapping[str, int | str] | None = None,
        account: str | None = None,
        walltime: Duration | None = None,
        reference: float = 1.0,
        name: str | None = None,
    ) -> None: ...
    def _fields(self) -> dict[str, Any]: ...
    def _value_as_given(self, name: str, value: Any) -> Any: ...
    @property
    def nodes(self) -> int: ...
    @property
    def volume(self) -> Any: ...
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
    @property  # the properties above are written by ci/fields.py
    def reference(self) -> float: ...
    @property
    def walltime(self) -> Duration | None: ...
    @property
    def within(self) -> str | None: ...
    @property
    def share(self) -> Mapping[str, int] | None: ...
    @property
    def stack(self) -> int: ...
    @property
    def tree(self) -> Mapping[str, int] | None: ...
    @property
    def whole(self) -> str | None: ...
    @property
    def uses(self) -> Mapping[str, int | str] | None: ...
    @property
    def account(self) -> str | None: ...
    def length(self, performance: ArrayLike) -> NDArray[np.float64]: ...
    def replace(self, **changes: Any) -> Request: ...

def suitable_rows(request: Request, table: NDArray[np.void]) -> NDArray[np.bool_]: ...
