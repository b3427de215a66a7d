from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import SLOT_STARTS as SLOT_STARTS

STATIC_SIGNATURE: str
MOVING_SIGNATURE: str

class NamedValue(NamedTuple):
    source_index: int
    doc: str
    moving: bool
    needs_end: bool
    mean: bool
    sign: float

NAMED_VALUES: dict[str, NamedValue]

def capsule_signature(capsule: Any) -> str | None: ...
def evaluate_parts(
    pool: PreparedSlots,
    source: str,
    data: Any,
    name: str,
    rows: NDArray[np.int64],
    starts: NDArray[np.float64],
    lengths: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def find(
    pool: PreparedSlots,
    request: Request,
    source: str,
    data: Any,
    sign: float,
    name: str,
    shape: str,
    *,
    lite: bool,
    any_start: bool,
    group_span: bool,
    gap: float,
    max_work: int,
    memory: float,
    record: bool,
    fixed: bool = False,
) -> Any: ...
