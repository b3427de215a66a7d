from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import Caps
from slotkern._kernels.request import Request
from slotkern._kernels.search import Alternatives
from slotkern._kernels.slots import CLOSURE as CLOSURE
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window, WindowTable
from slotkern.compound.plan import Plan
from slotkern.expressions.limits import Limit
from slotkern.files.atomic import AnyPath
from slotkern.ledger.shared import SharedPool
from slotkern.machine.clock import Clock
from slotkern.machine.nodes import Machine
from slotkern.replays.forecast import Forecast
from slotkern.search.holes import Holes
from slotkern.tariffs.tariff import Tariff
from slotkern.typing import BuiltIn, Criterion, Shape, Slots, Time

class Bookings(WindowTable):
    @property
    def reason(self) -> NDArray[np.uint8]: ...
    @property
    def reasons(self) -> list[str]: ...
    @property
    def booked(self) -> NDArray[np.bool_]: ...
    def listing(self) -> NDArray[np.void]: ...
    @property
    def plans(self) -> dict[int, Plan] | None: ...
    @classmethod
    def of(cls, windows: Any, **options: Any) -> Any: ...

def check_queued(
    pool: SlotPool, request: Request, i: int, *, single: bool = True
) -> None: ...
def bookings_from_windows(
    windows: Iterable[Window | Plan | None],
    reason: NDArray[np.uint8],
    criterion: str,
    shape: str,
    names: list[str | None] | None = None,
    context: Any = None,
) -> Bookings: ...

ADDRESSES: dict[str, int]

class ChangingSlots(PreparedSlots):
    def _free(self) -> tuple[NDArray[np.void], NDArray[np.int64] | None]: ...
    def _state(self) -> dict[str, NDArray[Any]]: ...
    @property
    def _version(self) -> int: ...
    def _free_since(
        self, version: int
    ) -> tuple[int, NDArray[np.int32] | None, NDArray[np.void]]: ...
    def _replace_free(
        self, nodes: NDArray[np.int32], spans: NDArray[np.void]
    ) -> None: ...
    def _full_state(
        self,
    ) -> tuple[NDArray[np.void], dict[str, NDArray[Any]], float]: ...

_Nodes: TypeAlias = str | int | Sequence[str] | Sequence[int] | NDArray[Any]
_During: TypeAlias = tuple[Time | None, Time | None]

NO_CLOSURES: NDArray[np.void]

class SlotPool(ChangingSlots):
    _capacities: Caps | None
    def __init__(
        self,
        slots: Slots,
        *,
        clock: Clock | None = None,
        machine: Machine | None = None,
        tariffs: Mapping[str, Tariff] | None = None,
        caps: Mapping[str, Any] | None = None,
    ) -> None: ...
    @property
    def caps(self) -> NDArray[np.void]: ...
    def set_cap(
        self,
        name: str,
        amount: Any,
        start: Time | None = None,
        end: Time | None = None,
    ) -> None: ...
    def quota(
        self,
        what: str,
        amount: int | None,
        *,
        account: str = "*",
        each: bool = False,
        when: str | None = None,
    ) -> None: ...
    @property
    def _generations(self) -> dict[str, Any]: ...
    @property
    def origin(self) -> NDArray[np.void]: ...
    @property
    def now(self) -> float: ...
    @property
    def booked(self) -> NDArray[np.void]: ...
    def by_node(self) -> Iterator[tuple[int, NDArray[np.void]]]: ...
    def find_alternatives(
        self, request: Request, criterion: Criterion = "first", **options: Any
    ) -> Alternatives: ...
    def forecast(self, request: Request, queue: Any, **options: Any) -> Forecast: ...
    def holes(self, at: Time | None = None, **options: Any) -> Holes: ...
    def handle(self) -> int: ...
    def limits_handle(
        self, limits: str | Limit | Iterable[str | Limit] | None
    ) -> int: ...
    def book(
        self, window: Window | Iterable[Window | None], owner: str | None = None
    ) -> None: ...
    @property
    def owners(self) -> list[str]: ...
    def windows(self, owner: str | None = None) -> list[Window]: ...
    @property
    def closed(self) -> NDArray[np.void]: ...
    @property
    def _closures(self) -> NDArray[np.void]: ...
    def _full_state_and_closures(
        self,
    ) -> tuple[NDArray[np.void], dict[str, NDArray[Any]], float, NDArray[np.void]]: ...
    def _replace_closures(
        self,
        expected: NDArray[np.void],
        closures: NDArray[np.void],
        nodes: NDArray[np.int32],
    ) -> bool: ...
    def bookings(
        self, *, nodes: _Nodes | None = None, during: _During | None = None
    ) -> NDArray[np.void]: ...
    def disable(
        self,
        nodes: _Nodes,
        start: Time | None = None,
        end: Time | None = None,
        owner: str = "down",
    ) -> list[Window]: ...
    def enable(self, nodes: _Nodes) -> None: ...
    def reserve(
        self,
        nodes: _Nodes,
        start: Time,
        end: Time,
        *,
        owner: str | None = None,
        partly: bool = False,
        rule: str | None = None,
    ) -> list[Window]: ...
    def starts(
        self, request: Request, *, shape: Shape = "square"
    ) -> NDArray[np.void]: ...
    def utilization(
        self, start: Time | None = None, end: Time | None = None
    ) -> float: ...
    def copy(self) -> SlotPool: ...
    def _replace_state(self, other: SlotPool) -> None: ...
    def _owned_windows(self) -> list[tuple[Window, str]]: ...
    def release(
        self, window: Window | Plan | str, *, name: str | None = None
    ) -> None: ...
    def advance(self, now: Time) -> None: ...
    def remove_node(self, node: int | str) -> None: ...
    def add_slots(self, slots: Slots) -> None: ...
    def schedule(
        self,
        requests: Any,
        criterion: BuiltIn = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
    ) -> Bookings: ...
    def save(self, path: AnyPath, *, overwrite: bool = False) -> None: ...
    @staticmethod
    def load(path: AnyPath) -> SlotPool: ...
    def share(self, where: AnyPath, *, user: str | None = None) -> SharedPool: ...
    @staticmethod
    def open(
        where: AnyPath,
        *,
        user: str | None = None,
        durable: Literal["disk", "crash"] = "disk",
        patience: float = 30.0,
        readonly: bool = False,
    ) -> SharedPool: ...

NO_SPANS: NDArray[np.void]

def restore_pool(
    origin: NDArray[np.void],
    state: dict[str, NDArray[Any]],
    now: float,
    context: Any = None,
    owned: Iterable[tuple[Window, str]] = (),
    generations: dict[str, Any] | None = None,
    closures: NDArray[np.void] | None = None,
    capacities: Caps | None = None,
) -> SlotPool: ...
def add_slots(pool: SlotPool, slots: Slots) -> None: ...
