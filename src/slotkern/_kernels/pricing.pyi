from typing import Any, TypeAlias

from numpy.typing import ArrayLike, NDArray

from slotkern._kernels.request import Request

_Window: TypeAlias = tuple[float, float, NDArray[Any], NDArray[Any], float, float]

class Prices:
    def __init__(
        self,
        nodes: int,
        node: ArrayLike,
        start: ArrayLike,
        end: ArrayLike,
        rate: ArrayLike,
    ) -> None: ...
    @property
    def nodes(self) -> int: ...
    @property
    def largest(self) -> float: ...
    @property
    def pieces(self) -> int: ...
    def paid(self, node: ArrayLike, start: float, end: ArrayLike) -> float: ...

class Pricer:
    def __init__(
        self,
        nodes: int,
        node: ArrayLike,
        price: ArrayLike,
        target: str | ArrayLike,
        expense: str | ArrayLike,
        sign: float,
        origin: float,
        square: bool,
    ) -> None: ...
    def add_job(self, request: Request, usable: ArrayLike, own: ArrayLike) -> None: ...
    def least(
        self,
        job: int,
        free: Any,
        prices: Prices,
        factor: float = 0.0,
        spans: int = 1,
    ) -> tuple[float, list[_Window]]: ...
    def least_of_all(
        self, free: Any, prices: Prices, factor: float = 0.0, spans: int = 1
    ) -> tuple[list[float], list[list[_Window]]]: ...
    def walk(
        self,
        free: Any,
        plan: dict[int, Any],
        prices: Prices,
        factor: float,
        penalty: float,
        least: ArrayLike,
        limit: float,
        searches: int,
        heat: tuple[float, float],
    ) -> tuple[dict[int, _Window], int]: ...
