from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._pool import SlotPool
from slotkern.typing import Slots

def restored(
    origin: NDArray[np.void], state: dict[str, NDArray[Any]], now: float
) -> SlotPool: ...
def add_slots(pool: SlotPool, slots: Slots) -> None: ...
