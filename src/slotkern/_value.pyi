from typing import Any

from slotkern._core import PreparedSlots, Request

STATIC_SIGNATURE: str
MOVING_SIGNATURE: str

def capsule_signature(capsule: Any) -> str | None: ...
def find(
    pool: PreparedSlots,
    request: Request,
    worth: str,
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
