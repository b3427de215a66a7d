import datetime as dt
from typing import Any

class Said:
    @property
    def ns(self) -> int: ...
    @property
    def said(self) -> str: ...

class Moment(Said):
    aware: bool
    fold: bool | None
    def __init__(self, ns: int, aware: bool, fold: bool | None, said: Any) -> None: ...

class Duration(Said):
    def __init__(self, ns: int, said: Any) -> None: ...

class Scale:
    def __init__(
        self, origin: int, tick: int, per: int, zone: dt.tzinfo | None
    ) -> None: ...
    def number(self, said: Said) -> float | None: ...

def quick_meaning(value: Any, lasts: bool) -> Moment | Duration | None: ...
