from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import WindowTable

MEASURES: tuple[str, ...]
REASONS: tuple[str, ...]
SLICE: np.dtype[np.void]

class CompiledJobs:
    def __init__(
        self,
        slots: NDArray[np.void] | PreparedSlots,
        requests: Sequence[Request],
        criteria: Iterable[str] | None,
    ) -> None: ...
    @property
    def has_unbounded_slot(self) -> bool: ...
    @property
    def slots(self) -> NDArray[np.void]: ...
    @property
    def prepared(self) -> PreparedSlots: ...

def select_windows(
    found: WindowTable, rows: NDArray[np.int64], names: list[str] | None = None
) -> WindowTable: ...
def schedule(
    jobs: CompiledJobs, options: Any, backfill: str
) -> tuple[
    WindowTable,
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint8],
    NDArray[np.void],
]: ...
def find_invalid_share(values: NDArray[np.float64]) -> int: ...
def execute(
    jobs: CompiledJobs,
    shape: str,
    backfill: str,
    alternatives: WindowTable,
    planned: NDArray[np.int64],
    fixed: int,
    shares: NDArray[np.float64],
) -> tuple[WindowTable, NDArray[np.float64], NDArray[np.uint8], int, int]: ...
def bound(jobs: CompiledJobs, options: Any) -> float: ...
