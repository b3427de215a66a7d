"""The user's own criteria, and the valuation that every criterion compiles to.

A criterion is a name, a column, an array of one value per slot or a function; the
kernel needs a kind, its data and the sign of the sum (`Valuation`).
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.search import CRITERIA
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.values import (
    MOVING_SIGNATURE,
    NAMED_VALUES,
    STATIC_SIGNATURE,
    capsule_signature,
    evaluate_parts,
)
from slotkern.foundation.checks import meant, quote, visible
from slotkern.foundation.extras import extra

__all__ = [
    "PLACEMENT_CRITERIA",
    "Criterion",
    "Minimize",
    "Profile",
    "criterion",
    "minimize",
    "profile",
]

#: Criteria whose value depends on the distances of a window to its neighbours.
PLACEMENT_CRITERIA = {
    name: value.doc for name, value in NAMED_VALUES.items() if value.moving
}


class Valuation(NamedTuple):
    """A criterion compiled for the kernel.

    `worth` is its kind ("column", "function" or a named value), `data` the column or
    the capsule, `sign` +1 to maximize the sum and -1 to minimize it, and `fixed` is
    True if the value depends on the slot alone.
    """

    worth: str
    data: Any
    sign: float
    name: str
    fixed: bool = False


@dataclass(frozen=True)
class Minimize:
    """A criterion whose sum is minimized; made by `minimize`."""

    criterion: Any

    def __repr__(self) -> str:
        return f"minimize({self.criterion!r})"


def minimize(criterion: Any) -> Minimize:
    """Reverse a criterion: its sum over the window is minimized.

    Parameters
    ----------
    criterion : str, array of float64, or a function made by `criterion`
        A field's name, one value per row, or a function made by `criterion`. Built-in
        criteria, such as ``"cost"`` and ``"leftover"``, have a direction already.

    Returns
    -------
    Minimize
        A criterion for `find_window`.

    Raises
    ------
    TypeError
        If `criterion` is already the result of `minimize`.

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
class Profile:
    """A second price over time; made by `profile`."""

    tariff: Any
    weight: str | None = None

    def __repr__(self) -> str:
        more = "" if self.weight is None else f", {self.weight!r}"
        name = repr(self.tariff) if isinstance(self.tariff, str) else "Tariff"
        return f"profile({name}{more})"


def profile(tariff: Any, weight: str | None = None) -> Profile:
    """Return the integral of a function of time over all parts, to be minimized.

    Parameters
    ----------
    tariff : str or Tariff
        The function: a name among the tariffs of the slots, or a `Tariff`, such as the
        grams of CO2 for each kilowatt-hour.
    weight : str, optional
        A numeric column of the slots that multiplies it, such as kilowatts; by default
        1.

    Returns
    -------
    Profile
        For ``find_window(slots, request, minimize(profile("carbon")))``.

    Notes
    -----
    `find_window` returns the window of the least sum of ``weight * integral`` over all
    starts within the budget. If the budget does not bind, the window is exact, and of
    values that agree to 28 bits the earliest start stands. If it does, ``gap`` (0.001
    by default) is the proven relative distance from the optimum; `Window.bound` holds
    for all starts. ``max_work`` is then the maximum number of subset problems
    (knapsacks, 20,000 by default).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=24, performance=1, price=[2, 3])
    >>> carbon = sk.Tariff([10, 16], [400, 100, 400])
    >>> green = sk.minimize(sk.profile(carbon))
    >>> window = sk.find_window(slots, sk.Request(1, 4), green)
    >>> window.start, window.value, window.cost
    (10.0, 400.0, 8.0)
    """
    if not isinstance(tariff, str) and not hasattr(tariff, "integral"):
        raise TypeError(f"tariff must be a name or a Tariff, got {quote(tariff)}")
    if weight is not None and not isinstance(weight, str):
        raise TypeError(f"weight must be the name of a column, got {quote(weight)}")
    return Profile(tariff, weight)


@dataclass(frozen=True)
class Criterion:
    """A criterion compiled from a Python function; made by `criterion`."""

    function: Callable[..., float]
    uses_start: bool

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", "criterion")

    def __repr__(self) -> str:
        return visible(f"criterion({self.name})")

    def __call__(self, *arguments: Any) -> float:
        """Call the plain Python function, for trying it out."""
        return self.function(*arguments)

    @property
    def fixed(self) -> bool:
        """True if the value depends on the slot alone, like a column."""
        return not self.uses_start and not _uses_length(self.function)

    def __reduce__(self) -> Any:
        # A function decorated with @criterion is found by name, as pickle requires.
        plain = getattr(self.function, "py_func", self.function)
        module, name = plain.__module__, getattr(plain, "__name__", "")
        if getattr(sys.modules.get(module), name, None) == self:
            return _named, (module, name)
        return Criterion, (self.function, self.uses_start)

    def capsule(self, dtype: np.dtype[np.void]) -> Any:
        """Compile the function for slots of this dtype; returns a capsule."""
        return _compile(self.function, self.uses_start, dtype).capsule


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
    """Make a criterion from a Python function, compiled with numba.

    The values of a window's n slots are summed, and the sum is maximized; `minimize`
    reverses that. No Python code runs while the kernel searches.

    Parameters
    ----------
    function : callable
        ``f(slot, length)`` returns the value of using a slot for `length`; `slot` is a
        record with all fields of the array. With ``uses_start`` the signature is
        ``f(slot, start, length)``, and the function is evaluated at every step.
    uses_start : bool
        Whether the value depends on the start of the window.

    Returns
    -------
    Criterion
        A criterion for `find_window`.

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
    is called once per slot and performance group, and once more for the parts of the
    result; one that does not use `length` is called once per slot. ``method="lite"``
    and `step_values` call it at every step.

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
    """Make a criterion of a function; raises TypeError for anything else."""
    if not callable(function):
        raise TypeError(f"criterion needs a function, got {function!r}")
    return Criterion(function, bool(uses_start))


def criterion_names() -> list[str]:
    """Return the names of the built-in criteria."""
    return [*CRITERIA, *NAMED_VALUES]


def is_maximized(criterion: Any) -> bool:
    """Return whether larger sums of a value criterion are better."""
    if isinstance(criterion, Minimize):
        return False
    named = isinstance(criterion, str) and criterion in NAMED_VALUES
    return NAMED_VALUES[criterion].sign > 0 if named else True


def values_of_windows(
    criterion: Any,
    pool: PreparedSlots,
    rows: NDArray[np.int64],
    parts: NDArray[np.void],
    lengths: NDArray[np.float64],
) -> tuple[NDArray[np.float64], bool]:
    """Compute the values of windows, and whether more is better.

    Parameters
    ----------
    criterion
        As for `find_window`, except the names of `criterion_names` that are not
        placement criteria: those are attributes of windows.
    pool : PreparedSlots
        The slots that were searched.
    rows, lengths : arrays, shape (k, n)
        The row of `pool` that holds each part, and the length of the part.
    parts : structured array, shape (k, n)
        As `Alternatives.parts`.
    """
    worth, data, sign, name, _ = compile_criterion(criterion, pool, criterion_names())
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
        values = evaluate_parts(pool, worth, data, name, *flat).reshape(rows.shape)
    # Sum in order of cost, sequentially, as a search does, to get the same rounding.
    order = np.argsort(parts["cost"], axis=1, kind="stable")
    totals = np.take_along_axis(values, order, axis=1).cumsum(axis=1)[:, -1]
    return totals, sign > 0


class _CompiledFunction(NamedTuple):
    capsule: Any
    owner: Any  # keeps the machine code alive


@lru_cache(maxsize=128)
def _uses_length(function: Callable[..., float]) -> bool:
    """Return whether the code of a static function reads its second argument."""
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
        )  # the assignment of the argument itself
        for variable in statement.list_vars()
    )


def _check_parameters(function: Any, uses_start: bool, title: str) -> None:
    """Raise an error if a function cannot be called with a slot and a length."""
    wanted = ("slot", "start", "length") if uses_start else ("slot", "length")
    try:
        signature = inspect.signature(getattr(function, "py_func", function))
    except ValueError:  # a built-in function without a signature
        return
    try:
        signature.bind(*wanted)
    except TypeError:
        raise TypeError(
            f"criterion {title}{signature} must take ({', '.join(wanted)})"
        ) from None


@lru_cache(maxsize=128)
def _compile(
    function: Callable[..., float], uses_start: bool, dtype: np.dtype[np.void]
) -> _CompiledFunction:
    with extra():
        import numba
    title = getattr(function, "__name__", "criterion")
    _check_parameters(function, uses_start, title)
    try:
        inner = function if hasattr(function, "py_func") else numba.njit(function)
        record = numba.from_dtype(dtype)
    except Exception as error:
        raise TypeError(f"criterion {title} does not compile: {error}") from error
    carray = numba.carray  # type: ignore[attr-defined]
    pointer, real = numba.types.CPointer(record), numba.types.float64
    out = numba.types.CPointer(real)

    # The kernel expects a status: exceptions cannot cross machine code.
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
    except KeyError as error:  # numba raises this for a missing field of a record
        raise TypeError(
            f"criterion {title} does not compile: slots have no field {error}"
        ) from error
    except Exception as error:
        raise TypeError(f"criterion {title} does not compile: {error}") from error
    name = ctypes.c_char_p(text.encode())
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return _CompiledFunction(new(compiled.address, name, None), (compiled, name))


def _column(values: NDArray[Any], rows: int, name: str) -> NDArray[np.float64]:
    """Return the values as one finite float64 per row, or raise an error."""
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


def compile_criterion(
    criterion: Any, pool: PreparedSlots, known: Sequence[str]
) -> Valuation:
    """Determine the kind, the data and the sign of a criterion.

    A string names a built-in criterion or a numeric field, or is "minimize(field)"; an
    array holds one value per row; a Criterion or a capsule is a function.
    """
    if isinstance(criterion, Minimize):
        name = criterion.criterion
        if isinstance(name, str) and (
            name in NAMED_VALUES
            or (name in CRITERIA and name not in (pool.slots.dtype.names or ()))
        ):
            doc = CRITERIA[name] if name in CRITERIA else NAMED_VALUES[name].doc
            raise ValueError(
                f"minimize does not apply to criterion {name!r}, which is {doc}; give "
                f"{name!r} alone, or minimize a column, an array or a function"
            )
        inner = compile_criterion(name, pool, known)
        if inner.sign < 0:
            raise ValueError(f"minimize({inner.name}) is the criterion itself")
        return inner._replace(sign=-1.0, name=f"minimize({inner.name})")
    if isinstance(criterion, str):
        if criterion in NAMED_VALUES:
            return Valuation(criterion, None, 1.0, criterion)
        fields: Any = pool.slots.dtype.fields or {}
        if criterion in fields and fields[criterion][0].kind in "iuf":
            column = _column(pool.slots[criterion], len(pool), repr(criterion))
            return Valuation("column", column, 1.0, criterion)
        if criterion.startswith("minimize(") and criterion.endswith(")"):
            return compile_criterion(
                Minimize(criterion[len("minimize(") : -1]), pool, known
            )
        numeric = [name for name, field in fields.items() if field[0].kind in "iuf"]
        raise ValueError(
            f"criterion must be one of {', '.join(known)}, or a numeric field "
            f"({', '.join(numeric)}), or minimize(field); got {quote(criterion)}"
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
        pool.require_original_rows("criterion")
        return Valuation("column", _column(criterion, len(pool), "array"), 1.0, "array")
    hint = "; write minimize(profile(...))" if isinstance(criterion, Profile) else ""
    raise TypeError(
        f"criterion must be one of {', '.join(known)}, a field's name, an array, "
        f"minimize(...), or made by @criterion; got {quote(criterion)}{hint}"
    )
