from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._pool import NO_CLOSURES as NO_CLOSURES
from slotkern._pool import SlotPool
from slotkern._windows import Window
from slotkern.typing import Slots

NO_SPANS: NDArray[np.void]

def restore_pool(
    origin: NDArray[np.void],
    state: dict[str, NDArray[Any]],
    now: float,
    terms: Any = None,
    owned: Iterable[tuple[Window, str]] = (),
    generations: dict[str, Any] | None = None,
    closures: NDArray[np.void] | None = None,
) -> SlotPool: ...
def add_slots(pool: SlotPool, slots: Slots) -> None: ...
