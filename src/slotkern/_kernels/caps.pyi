from collections.abc import Iterable, Mapping
from typing import TypeAlias

from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.machine.clock import Clock

NODES: str
RESERVED: str

_Charge: TypeAlias = tuple[int, Mapping[str, int] | None, str | None]

class Counter: ...

class CapacityRule:
    what: str
    account: str | None
    each: bool
    when: str | None
    steps: tuple[tuple[float, int | None], ...]
    weekly: int | None
    counters: dict[str | None, Counter]
    def __init__(
        self,
        what: str,
        account: str | None,
        each: bool,
        when: str | None,
        steps: Iterable[tuple[float, int | None]],
        weekly: int | None = None,
    ) -> None: ...
    @property
    def key(self) -> tuple[str, str | None, bool, str | None]: ...
    def spans(
        self, account: str | None = None
    ) -> list[tuple[float, float, int | None, int]]: ...

class Caps:
    rules: tuple[CapacityRule, ...]
    names: frozenset[str]
    now: float
    def __init__(
        self,
        rules: Iterable[CapacityRule] = (),
        charges: Iterable[tuple[Window, _Charge]] = (),
        now: float = ...,
    ) -> None: ...
    def set_rules(self, rules: Iterable[CapacityRule]) -> None: ...
    def set_rule(self, rule: CapacityRule) -> None: ...
    def applies(self, request: Request) -> bool: ...
    def rules_of(self, request: Request) -> list[tuple[CapacityRule, int]]: ...
    def with_rules(self, rules: Iterable[CapacityRule]) -> Caps: ...
    def spans(
        self, request: Request, first: float = ..., length: float = 0.0
    ) -> list[tuple[float, float]]: ...
    def drop_past(self) -> None: ...
    def charged(self) -> list[tuple[Window, _Charge]]: ...
    def copy(self) -> Caps: ...
    def windows_from(self, start: float) -> list[Window]: ...
    def shortage(self, window: Window) -> str: ...

def describe(
    rule: CapacityRule,
    account: str | None,
    start: float,
    end: float,
    limit: int,
    used: int,
    clock: Clock | None = None,
) -> str: ...
