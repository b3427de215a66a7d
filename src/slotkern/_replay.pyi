from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
