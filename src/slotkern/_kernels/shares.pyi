from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._kernels.caps import Caps
from slotkern._kernels.pool import Bookings
from slotkern._kernels.request import Request
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window
from slotkern.foundation.amounts import Amounts
from slotkern.foundation.context import SlotContext
from slotkern.pool.share_windows import ShareWindow
from slotkern.typing import BuiltIn, Shape, Slots

MAX_SHARE: int
HOST_SPAN: np.dtype[np.void]

def check_amounts(amounts: NDArray[Any], name: str) -> None: ...
def form_key(request: Any) -> tuple[Any, ...] | None: ...

class HostJob:
    given: Request
    resolved: Request
    form: Any
    part: Any
    def __init__(
        self, given: Request, resolved: Request, form: Any, part: Any
    ) -> None: ...

class BookedJob:
    table: Bookings
    row: int
    job: HostJob
    def window(self) -> ShareWindow: ...
    @property
    def finish(self) -> float: ...

class ShareQueue:
    table: Bookings
    def __init__(
        self,
        criterion: BuiltIn,
        shape: Shape,
        jobs: list[HostJob],
        windows: list[BookedJob | None],
        reasons: list[str],
        capacities: Caps | None,
        owner: str | None,
        owned: dict[Any, Any],
        context: SlotContext | None = None,
    ) -> None: ...

class SharedHosts:
    @property
    def hosts(self) -> PreparedSlots: ...
    @property
    def capacity(self) -> NDArray[np.int64]: ...

class ChangingHosts(SharedHosts):
    @property
    def now(self) -> float: ...
    @property
    def version(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def closed(self) -> NDArray[np.void]: ...
    def reserve(self, spans: NDArray[np.void], amounts: ArrayLike) -> None: ...
    def unreserve(self, spans: NDArray[np.void], amounts: ArrayLike) -> None: ...
    def add(self, spans: NDArray[np.void], free: ArrayLike) -> None: ...
    def disable(self, spans: NDArray[np.void]) -> None: ...
    def enable(self, rows: Sequence[int] | NDArray[np.int64]) -> None: ...
    def advance(self, now: float) -> None: ...
    def free_spans(self, demand: ArrayLike) -> NDArray[np.void]: ...
    def profile(
        self, row: int
    ) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.bool_]]: ...
    def integrals(
        self, start: float = ..., end: float = ...
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def state(self) -> dict[str, Any]: ...

class ShareCore(ChangingHosts):
    def __init__(
        self,
        hosts: Slots | PreparedSlots,
        capacity: ArrayLike,
        spans: NDArray[np.void],
        free: ArrayLike,
    ) -> None: ...
    def find(
        self,
        request: Request,
        demand: ArrayLike,
        prices: ArrayLike | None = None,
        *,
        stack: int = 1,
        criterion: BuiltIn = "start",
        shape: Shape = "square",
        method: Literal["auto", "rows", "views"] = "auto",
    ) -> Window | None: ...
    def add_tree(self, hosts: Sequence[int], first: Sequence[Sequence[int]]) -> int: ...
    def check(self, request: Request) -> None: ...
    def schedule(
        self,
        queue: ShareQueue,
        requests: list[Request],
        parts: list[tuple[ArrayLike, ArrayLike | None, int] | TreeSearch],
        reason: Callable[[int], str],
    ) -> None: ...
    def book(self, window: Window, demand: ArrayLike) -> None: ...
    def release(self, window: Window, demand: ArrayLike) -> None: ...
    @staticmethod
    def restore(
        hosts: Slots | PreparedSlots, capacity: ArrayLike, state: dict[str, Any]
    ) -> ShareCore: ...
    def copy(self) -> ShareCore: ...

class TreeSearch:
    share: Amounts | None
    def __init__(
        self,
        core: ShareCore,
        tree: int,
        demand: NDArray[np.int32],
        prices: NDArray[np.float64],
        counts: Sequence[int],
        whole: bool,
        stack: int,
        share: Amounts | None,
        kind: type[ShareWindow],
    ) -> None: ...
    def check(self, request: Request) -> None: ...
    def find(
        self, request: Request, criterion: str, shape: str
    ) -> ShareWindow | None: ...
    def window_of(self, table: Bookings, row: int, request: Request) -> ShareWindow: ...
