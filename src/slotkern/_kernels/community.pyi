from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

KINDS: tuple[str, ...]
ACTIONS: tuple[str, ...]
FATES: tuple[str, ...]
PLACEMENTS: dict[str, int]
BACKFILLING: dict[str, int]

_Ticket: TypeAlias = tuple[int, int]

class Message(NamedTuple):
    kind: Any
    sender: Any
    receiver: Any
    job: Any
    hop: Any
    place: Any
    contacted: Any
    negotiation: Any
    promise: Any
    times: Any

def simulate(
    submit: NDArray[np.float64],
    run: NDArray[np.float64],
    estimate: NDArray[np.float64],
    width: NDArray[np.int32],
    home: NDArray[np.int32],
    label: NDArray[np.int32],
    processors: NDArray[np.int32],
    speed: NDArray[np.float64],
    node_label: NDArray[np.int32],
    present: NDArray[np.uint8],
    change_time: NDArray[np.float64],
    change_node: NDArray[np.int32],
    change_joins: NDArray[np.uint8],
    *,
    backfill: str = "none",
    shortest_first: bool = False,
    placement: str | None = None,
    decision: float = 0.0,
    drawn: int = 0,
    first: NDArray[np.uint64] | None = None,
    to: NDArray[np.uint32] | None = None,
    rules: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    row: NDArray[np.int64] | None = None,
    willing: NDArray[np.uint8] | None = None,
    function: int = 0,
) -> tuple[Any, ...]: ...

class Agent:
    def __init__(
        self,
        node: int,
        processors: int,
        *,
        speed: float = 1,
        label: int = 0,
        seed: int = 0,
        first_serial: int = 0,
        omega: float = 1,
        varpi: float = 1,
        mu: float = 1,
        whole_node: bool = True,
        most_informed: int = 0xFFFFFFFF,
        promise_life: float = ...,
    ) -> None: ...
    def describe(
        self, job: int, processors: int, estimate: float, label: int = -1
    ) -> None: ...
    def submit(self, job: int) -> list[Any]: ...
    def contact(self, ticket: _Ticket, neighbours: Sequence[int]) -> list[Any]: ...
    def receive(self, message: Any, now: float) -> list[Any]: ...
    def decide(self, ticket: _Ticket) -> list[Any]: ...
    def reschedule(self, now: float) -> list[Any]: ...
    def resend(self, ticket: _Ticket) -> list[Any]: ...
    def retry(self, ticket: _Ticket) -> list[Any]: ...
    def leave(self) -> list[Any]: ...
    def join(self) -> list[Any]: ...
    def record_hop(self, job: int, hop: int) -> None: ...
    def hold(self, job: int, hop: int, entered: float) -> list[Any]: ...
    def hand_over(self, job: int, hop: int, to: int) -> list[Any]: ...
    def start(self, job: int) -> bool: ...
    def ended(self, waited: float) -> None: ...
    def expire(self, now: float) -> None: ...
    @property
    def waiting(self) -> list[tuple[int, int, float]]: ...
    @property
    def queue_load(self) -> float: ...
    @property
    def shadow_load(self) -> float: ...
    @property
    def promises(self) -> int: ...
    @property
    def negotiations(self) -> int: ...
    @property
    def present(self) -> bool: ...
