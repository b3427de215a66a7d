from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._windows import Window, WindowTable

REASONS: tuple[str, ...]

class Bookings(WindowTable):
    @property
    def reason(self) -> NDArray[np.uint8]: ...
    @property
    def reasons(self) -> list[str]: ...
    @property
    def booked(self) -> NDArray[np.bool_]: ...
    def listing(self) -> NDArray[np.void]: ...
    @classmethod
    def of(cls, windows: Any, **options: Any) -> Any: ...

def bookings_from_windows(
    windows: Iterable[Window | None],
    reason: NDArray[np.uint8],
    criterion: str,
    shape: str,
    names: list[str | None] | None = None,
    terms: Any = None,
) -> Bookings: ...
