"""Queue policies, and all policies of replays by name.

A queue policy combines an order of the waiting jobs with a kind of backfilling.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.replay import BACKFILLING, PRIORITY_SIGNATURE
from slotkern.foundation.checks import number, one_of
from slotkern.foundation.extras import extra
from slotkern.replays.cycles import CyclePolicy
from slotkern.replays.windows import WindowPolicy

__all__ = ["POLICIES", "Multifactor", "QueuePolicy", "resolve_policy"]


@dataclass(frozen=True)
class Multifactor:
    """Priorities that change with time; the job with the largest priority is first.

    ``age * min(wait / longest_wait, 1) + size * processors / all processors + share *
    fair``, where ``fair = 1 / (1 + users * usage of the user / usage of all)``: 1 for a
    user who has used nothing, 1/2 for one who has used an equal share.

    Attributes
    ----------
    age, size, share : float
        The weights.
    longest_wait : float
        Seconds of waiting after which the age factor does not grow any more.
    half_life : float
        Seconds; usage (processor seconds) is halved at every multiple of `half_life`
        after the first submission. At least 1, or inf.

    References
    ----------
    The factors are those of the "Multifactor Priority Plugin" of the Slurm Workload
    Manager, whose share is 2**(-usage / share): the same at 0 and at an equal share.
    """

    age: float = 1.0
    size: float = 0.0
    share: float = 1.0
    longest_wait: float = 7 * 86400.0
    half_life: float = 7 * 86400.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("age", "size", "share"):
            number(name, getattr(self, name))
        number("longest_wait", self.longest_wait, above=0)
        number("half_life", self.half_life, least=1, finite=False)


@dataclass(frozen=True, eq=False)
class QueuePolicy:
    """A queue policy.

    Attributes
    ----------
    backfill : {"none", "easy", "conservative", "first-fit"}
        The jobs that may start before earlier ones: none; those that do not delay the
        start of the first job, according to the estimates; those that delay no
        reservation of an earlier job; all that fit.
    order : {"arrival", "shortest", "largest"}, Multifactor, array or function
        The order of waiting jobs: by submission; shortest estimate first; largest
        estimate * processors first; by `Multifactor`; by descending priority from an
        array with one number for each job of the trace; by descending value of a
        function ``f(now, submit, estimate, processors, user)``, which numba compiles
        and which is called for every waiting job at every event. Ties are broken by
        submission.

        Under conservative backfilling a job gets a reservation when it arrives,
        whatever the order; the order determines which reservation is moved forward
        first when time becomes free.
    """

    backfill: Literal["none", "easy", "conservative", "first-fit"] = "easy"
    order: Any = "arrival"

    def __post_init__(self) -> None:
        """Validate the fields, except for those that depend on the jobs."""
        one_of("backfill", self.backfill, BACKFILLING)
        if isinstance(self.order, str):
            one_of("order", self.order, ORDERS)
        is_known_kind = isinstance(self.order, str | Multifactor | np.ndarray)
        if not is_known_kind and not callable(self.order):
            raise TypeError(
                "order must be a name, Multifactor, an array or a function, "
                f"got {self.order!r}"
            )

    def options(
        self,
        rows: NDArray[np.int64],
        total: int,
        estimate: NDArray[np.float64],
        width: NDArray[np.int32],
        user: NDArray[np.int64],
    ) -> dict[str, Any]:
        """Return the keyword arguments of the kernel that define the order.

        `rows` are the rows of the jobs in the trace, which has `total` rows.
        """
        order = self.order
        if isinstance(order, str):
            key = ORDERS[order](estimate, width)
            return {} if key is None else {"key": key}
        if isinstance(order, Multifactor):
            numbers = (order.age, order.size, order.share)
            times = (order.longest_wait, min(order.half_life, 1e300))
            users, dense = np.unique(user, return_inverse=True)
            shares = (*numbers, *times, len(users))
            return {"multifactor": shares, "user": dense.astype(np.int32)}
        if isinstance(order, np.ndarray):
            if order.shape != (total,) or order.dtype.kind not in "iuf":
                raise ValueError(
                    f"order has shape {order.shape} and dtype {order.dtype}; it needs "
                    f"one number for each of {total} jobs"
                )
            key = -order[rows].astype(np.float64)
            if not np.isfinite(key).all():
                row = int(rows[(~np.isfinite(key)).argmax()])
                raise ValueError(
                    f"order: the priority of row {row} is {order[row]}, not finite"
                )
            return {"key": key}
        return {
            "function": _compile_order(order).capsule,
            "user": user.astype(np.int32),
        }


ORDERS: dict[str, Callable[..., NDArray[np.float64] | None]] = {
    "arrival": lambda estimate, width: None,
    "shortest": lambda estimate, width: estimate,
    "largest": lambda estimate, width: -(estimate * width),
}

#: Policies by name.
POLICIES: dict[str, QueuePolicy | WindowPolicy | CyclePolicy] = {
    "fcfs": QueuePolicy("none"),
    "easy": QueuePolicy("easy"),
    "conservative": QueuePolicy("conservative"),
    "first-fit": QueuePolicy("first-fit"),
    "sjf": QueuePolicy("none", "shortest"),
    "laf": QueuePolicy("none", "largest"),
    "multifactor": QueuePolicy("none", Multifactor()),
    "easy-sjf": QueuePolicy("easy", "shortest"),
    "easy-laf": QueuePolicy("easy", "largest"),
    "easy-multifactor": QueuePolicy("easy", Multifactor()),
    "conservative-sjf": QueuePolicy("conservative", "shortest"),
    "conservative-laf": QueuePolicy("conservative", "largest"),
    "conservative-multifactor": QueuePolicy("conservative", Multifactor()),
    "window-start": WindowPolicy("start"),
    "window-start-compressed": WindowPolicy("start", compress="start"),
    "window-cost": WindowPolicy("cost", slack=3600),
    "window-dependable": WindowPolicy("dependable", slack=3600),
    "window-coordinated": WindowPolicy("coordinated", slack=3600),
    "batch-slicer": CyclePolicy(),
}


def resolve_policy(given: Any) -> tuple[str, QueuePolicy | WindowPolicy | CyclePolicy]:
    """Return the name and the policy for a policy or the name of one.

    The name of a policy object is made of its kind and its order or criterion.
    """
    if isinstance(given, CyclePolicy):
        return f"cycles/{type(given.policy).__name__}", given
    if isinstance(given, WindowPolicy):
        return f"window/{given.criterion}", given
    if isinstance(given, QueuePolicy):
        order = given.order
        kind = order if isinstance(order, str) else type(order).__name__.lower()
        return f"{given.backfill}/{kind}", given
    name = one_of("policy", given, POLICIES)
    return name, POLICIES[name]


@dataclass(frozen=True)
class _CompiledOrder:
    """A priority function compiled for the kernel."""

    capsule: Any
    owner: Any  # references that keep the machine code alive


@lru_cache(maxsize=32)
def _compile_order(function: Callable[..., float]) -> _CompiledOrder:
    """Compile a priority function; an exception in it is returned as status 1."""
    with extra():
        import numba
    title = getattr(function, "__name__", "order")
    try:
        inner = function if hasattr(function, "py_func") else numba.njit(function)
        real, whole = numba.types.float64, numba.types.int64

        @numba.njit
        def value_of(now, submit, estimate, processors, user):  # type: ignore[no-untyped-def]
            return float(inner(now, submit, estimate, processors, user))

        def entry(now, submit, estimate, processors, user, priority):  # type: ignore[no-untyped-def]
            try:
                priority[0] = value_of(now, submit, estimate, processors, user)
            except Exception:
                return 1
            return 0

        out = numba.types.CPointer(real)
        signature = numba.types.int32(real, real, real, whole, whole, out)
        compiled = numba.cfunc(signature)(entry)
    except Exception as error:
        raise TypeError(f"order {title} does not compile: {error}") from error
    name = ctypes.c_char_p(PRIORITY_SIGNATURE.encode())
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return _CompiledOrder(new(compiled.address, name, None), (compiled, name))
