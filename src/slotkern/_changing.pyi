from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._core import PreparedSlots

ADDRESSES: dict[str, int]

class ChangingSlots(PreparedSlots):
    def _free(self) -> tuple[NDArray[np.void], NDArray[np.int64] | None]: ...
    def _state(self) -> dict[str, NDArray[Any]]: ...
    def _full_state(
        self,
    ) -> tuple[NDArray[np.void], dict[str, NDArray[Any]], float]: ...
