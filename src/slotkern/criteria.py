"""Criteria of the user's own, and what `find_window` makes of every kind."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._core import PreparedSlots
from slotkern._find import CRITERIA
from slotkern._value import (
    MOVING_SIGNATURE,
    NAMED_VALUES,
    STATIC_SIGNATURE,
    capsule_signature,
    part_values,
)
from slotkern.checks import meant, shown, visible
from slotkern.extras import extra

__all__ = ["PLACEMENT_CRITERIA", "Criterion", "Minimize", "criterion", "minimize"]

#: Criteria that depend on where between its neighbours a window lies.
PLACEMENT_CRITERIA = {
    name: value.doc for name, value in NAMED_VALUES.items() if value.moving
}


class Valuation(NamedTuple):
    """What the kernel is told: the kind, its data, the sign of the sum, and a name."""

    worth: str
    data: Any
    sign: float
    name: str
    fixed: bool = False


@dataclass(frozen=True)
class Minimize:
    """A criterion whose sum is to be as small as possible; made by `minimize`."""

    criterion: Any

    def __repr__(self) -> str:
        return f"minimize({self.criterion!r})"


def minimize(criterion: Any) -> Minimize:
    """Turn a criterion round: its sum over the window is minimized.

    Parameters
    ----------
    criterion : str, array of float64, or a function made by `criterion`
        A field's name, one value a row, or a criterion of your own.

    Returns
    -------
    Minimize
        To be given to `find_window`.

    Raises
    ------
    TypeError
        For what `minimize` made already.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=0, end=10, performance=2, price=1,
    ...                       watts=[90.0, 60.0, 70.0])
    >>> window = sk.find_window(slots, sk.Request(2, 8), sk.minimize("watts"))
    >>> window.value, window.nodes
    (130.0, (1, 2))
    """
    if isinstance(criterion, Minimize):
        raise TypeError("minimize(minimize(...)) is the criterion itself")
    return Minimize(criterion)


@dataclass(frozen=True)
class Criterion:
    """A compiled criterion of the user's own; made by `criterion`."""

    function: Callable[..., float]
    uses_start: bool

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", "criterion")

    def __repr__(self) -> str:
        return visible(f"criterion({self.name})")

    def __call__(self, *arguments: Any) -> float:
        """The plain Python function, for trying it out."""
        return self.function(*arguments)

    @property
    def fixed(self) -> bool:
        """Whether the value depends on the slot alone, as a column's does."""
        return not self.uses_start and not _looks_at_length(self.function)

    def __reduce__(self) -> Any:
        # With @criterion this object is found where pickle looks for its function.
        plain = getattr(self.function, "py_func", self.function)
        module, name = plain.__module__, getattr(plain, "__name__", "")
        if getattr(sys.modules.get(module), name, None) == self:
            return _named, (module, name)
        return Criterion, (self.function, self.uses_start)

    def capsule(self, dtype: np.dtype[np.void]) -> Any:
        """The function compiled for slots of this dtype, as a capsule."""
        return _compiled(self.function, self.uses_start, dtype).capsule


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


@overload
def criterion(function: Callable[..., float], /) -> Criterion: ...
@overload
def criterion(
    *, uses_start: bool = False
) -> Callable[[Callable[..., float]], Criterion]: ...
def criterion(
    function: Callable[..., float] | None = None, /, *, uses_start: bool = False
) -> Criterion | Callable[[Callable[..., float]], Criterion]:
    """Make a criterion of a Python function, compiled with numba.

    The values of a window's n slots are summed, and the sum is maximized; `minimize`
    turns that round. No Python runs while the kernel searches.

    Parameters
    ----------
    function : callable
        ``f(slot, length)`` gives the value of using a slot for `length`; `slot` is a
        record with all fields of the array. With ``uses_start`` it is
        ``f(slot, start, length)`` and is evaluated anew at each step.
    uses_start : bool
        Whether the value depends on the start of the window.

    Returns
    -------
    Criterion
        To be given to `find_window`.

    Raises
    ------
    ModuleNotFoundError
        If numba is missing, at the first search.
    ValueError
        At a search, if the function raises or its value is not finite; the message
        names the row.

    Notes
    -----
    The function is compiled once for each dtype of slots (about a second). A static one
    is called once a slot and group of performance, and once more for the parts of the
    answer; one that does not use `length` at all, once a slot. ``method="lite"`` and
    `step_values` call it at every step.

    Examples
    --------
    >>> import slotkern as sk
    >>> @sk.criterion
    ... def energy(slot, length):
    ...     return (50 + 10 * slot.performance**2) * length
    >>> slots = sk.make_slots(node=[0, 1, 2], start=0, end=20, performance=[2, 3, 4],
    ...                       price=1)
    >>> window = sk.find_window(slots, sk.Request(1, 24), sk.minimize(energy))
    >>> window.nodes, window.value
    ((0,), 1080.0)
    """
    if function is None:
        return lambda f: criterion_of(f, uses_start)
    return criterion_of(function, uses_start)


def criterion_of(function: Callable[..., float], uses_start: bool) -> Criterion:
    """Check that it is a function at all."""
    if not callable(function):
        raise TypeError(f"criterion needs a function, got {function!r}")
    return Criterion(function, bool(uses_start))


def known_criteria() -> list[str]:
    """The names of the built-in criteria."""
    return [*CRITERIA, *NAMED_VALUES]


def values_of_windows(
    criterion: Any,
    pool: PreparedSlots,
    rows: NDArray[np.int64],
    parts: NDArray[np.void],
    lengths: NDArray[np.float64],
) -> tuple[NDArray[np.float64], bool]:
    """What windows found among these slots are worth, and whether more is better.

    Parameters
    ----------
    criterion
        As `find_window` takes it, but for the names of `known_criteria` that are no
        placement criterion: those are attributes of windows.
    pool : PreparedSlots
        The slots that were searched.
    rows, lengths : arrays, shape (k, n)
        The row of `pool` that holds each part, and how long it runs.
    parts : structured array, shape (k, n)
        As `Alternatives.parts`.
    """
    worth, data, sign, name, _ = valuation_of(criterion, pool, known_criteria())
    if worth in NAMED_VALUES:
        sign = NAMED_VALUES[worth].sign
        endless = np.isinf(pool.slots["end"][rows])
        if NAMED_VALUES[worth].needs_end and endless.any():
            row = int(rows[endless][0])
            raise ValueError(
                f"slot row {row}: end is inf, but {name} needs the next task's start"
            )
    if worth == "column":
        values = data[rows]
    else:
        flat = (
            np.ascontiguousarray(a).ravel() for a in (rows, parts["start"], lengths)
        )
        values = part_values(pool, worth, data, name, *flat).reshape(rows.shape)
    # In the order of cost, one after the other, as a search sums them.
    order = np.argsort(parts["cost"], axis=1, kind="stable")
    totals = np.take_along_axis(values, order, axis=1).cumsum(axis=1)[:, -1]
    return totals, sign > 0


class _Compiled(NamedTuple):
    capsule: Any
    owner: Any  # keeps the machine code alive


@lru_cache(maxsize=128)
def _looks_at_length(function: Callable[..., float]) -> bool:
    """Whether a static function uses its second argument, as numba reads it."""
    with extra():
        from numba.core import compiler, ir
    read = compiler.run_frontend(getattr(function, "py_func", function))
    length = read.arg_names[1]
    return any(
        variable.name == length
        for block in read.blocks.values()
        for statement in block.body
        if not isinstance(
            getattr(statement, "value", None), ir.Arg
        )  # where it comes in
        for variable in statement.list_vars()
    )


@lru_cache(maxsize=128)
def _compiled(
    function: Callable[..., float], uses_start: bool, dtype: np.dtype[np.void]
) -> _Compiled:
    with extra():
        import numba
    title = getattr(function, "__name__", "criterion")
    try:
        inner = function if hasattr(function, "py_func") else numba.njit(function)
        record = numba.from_dtype(dtype)
    except Exception as error:
        raise TypeError(f"criterion {title} does not compile: {error}") from error
    carray = numba.carray  # type: ignore[attr-defined]
    pointer, real = numba.types.CPointer(record), numba.types.float64
    out = numba.types.CPointer(real)

    # The kernel wants a status: an exception must not get lost in machine code.
    if uses_start:

        @numba.njit
        def moving_value(slots, start, length):  # type: ignore[no-untyped-def]
            return float(inner(slots[0], start, length))

        def entry(slot, start, length, value):  # type: ignore[no-untyped-def]
            slots = carray(slot, 1)
            try:
                value[0] = moving_value(slots, start, length)
            except Exception:
                return 1
            return 0

        signature = numba.types.int32(pointer, real, real, out)
        text = MOVING_SIGNATURE
    else:

        @numba.njit
        def static_value(slots, length):  # type: ignore[no-untyped-def]
            return float(inner(slots[0], length))

        def entry(slot, length, value):  # type: ignore[no-untyped-def,misc]
            slots = carray(slot, 1)
            try:
                value[0] = static_value(slots, length)
            except Exception:
                return 1
            return 0

        signature = numba.types.int32(pointer, real, out)
        text = STATIC_SIGNATURE
    try:
        compiled = numba.cfunc(signature)(entry)
    except KeyError as error:  # numba's way to say that a record has no such field
        raise TypeError(
            f"criterion {title} does not compile: slots have no field {error}"
        ) from error
    except Exception as error:
        raise TypeError(f"criterion {title} does not compile: {error}") from error
    name = ctypes.c_char_p(text.encode())
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return _Compiled(new(compiled.address, name, None), (compiled, name))


def _column(values: NDArray[Any], rows: int, name: str) -> NDArray[np.float64]:
    """One finite float64 a row, or one clear error."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"criterion {name} must hold numbers, got dtype {array.dtype}")
    if array.shape != (rows,):
        raise ValueError(
            f"criterion {name} has shape {array.shape} for {rows} slots; it needs one "
            "value for each row of the searched array"
        )
    column = np.ascontiguousarray(array, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(column))
    if len(wrong):
        raise ValueError(
            f"criterion {name}: the value of row {wrong[0]} is {column[wrong[0]]}"
        )
    return column


def valuation_of(criterion: Any, pool: PreparedSlots, known: list[str]) -> Valuation:
    """Find out what kind of criterion this is.

    A string names a built-in criterion or a numeric field, or is "minimize(field)"; an
    array holds one value a row; a Criterion or a capsule is a function.
    """
    if isinstance(criterion, Minimize):
        inner = valuation_of(criterion.criterion, pool, known)
        if inner.sign < 0:
            raise ValueError(f"minimize({inner.name}) is the criterion itself")
        if inner.worth not in ("column", "function"):
            raise ValueError(f"minimize does not apply to criterion {inner.name!r}")
        return inner._replace(sign=-1.0, name=f"minimize({inner.name})")
    if isinstance(criterion, str):
        if criterion in NAMED_VALUES:
            return Valuation(criterion, None, 1.0, criterion)
        fields: Any = pool.slots.dtype.fields or {}
        if criterion in fields and fields[criterion][0].kind in "iuf":
            column = _column(pool.slots[criterion], len(pool), repr(criterion))
            return Valuation("column", column, 1.0, criterion)
        if criterion.startswith("minimize(") and criterion.endswith(")"):
            return valuation_of(Minimize(criterion[len("minimize(") : -1]), pool, known)
        numeric = [name for name, field in fields.items() if field[0].kind in "iuf"]
        raise ValueError(
            f"criterion must be one of {', '.join(known)}, or a numeric field "
            f"({', '.join(numeric)}), or minimize(field); got {shown(criterion)}"
            f"{meant(criterion, (*known, *numeric))}"
        )
    if isinstance(criterion, Criterion):
        return Valuation(
            "function",
            criterion.capsule(pool.slots.dtype),
            1.0,
            criterion.name,
            criterion.fixed,
        )
    if capsule_signature(criterion) is not None:
        return Valuation("function", criterion, 1.0, "capsule")
    if isinstance(criterion, np.ndarray):
        pool.check_rows("criterion")
        return Valuation("column", _column(criterion, len(pool), "array"), 1.0, "array")
    raise TypeError(
        f"criterion must be one of {', '.join(known)}, a field's name, an array, "
        f"minimize(...), or made by @criterion; got {shown(criterion)}"
    )
