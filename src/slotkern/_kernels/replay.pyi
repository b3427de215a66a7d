from collections.abc import Callable, Collection
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

def format_rows(rows: NDArray[Any]) -> bytes: ...

class LineError(ValueError): ...

@final
class TraceParser:
    def __new__(
        cls,
        dtype: DTypeLike,
        words: Collection[str],
        comment: str,
        skip: bool,
        further: bool = False,
    ) -> TraceParser: ...
    @property
    def dtype(self) -> np.dtype[np.void]: ...
    def feed(self, chunk: bytes) -> None: ...
    def finish(self) -> NDArray[Any]: ...
    def line_of(self, row: int) -> int: ...
    def further(self) -> list[tuple[NDArray[np.int64], tuple[str, ...]]]: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def comments(self) -> str: ...
    @property
    def skipped(self) -> int: ...
    @property
    def remarks(self) -> tuple[str, ...]: ...
    @property
    def words(self) -> dict[str, tuple[str, ...]]: ...

BACKFILLING: dict[str, int]
PRIORITY_SIGNATURE: str

def replay(
    submit: NDArray[np.float64],
    run: NDArray[np.float64],
    estimate: NDArray[np.float64],
    width: NDArray[np.int32],
    processors: int,
    blocked_start: NDArray[np.float64],
    blocked_end: NDArray[np.float64],
    blocked_width: NDArray[np.int32],
    backfill: str,
    *,
    user: NDArray[np.int32] | None = None,
    key: NDArray[np.float64] | None = None,
    multifactor: tuple[float, float, float, float, float, int] | None = None,
    function: Any = None,
    nodes: bool = True,
    before: NDArray[np.int32] | None = None,
    think: NDArray[np.float64] | None = None,
    progress: Callable[[int], object] | None = None,
) -> tuple[
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    int,
]: ...
