"""Limits on the parts of a window: on sums, ``sum(storage) >= 500``, and group rules.

The text is parsed to `Limit` objects. The term of a sum is a product of columns and
numbers. Group rules bound the number of groups that the parts touch, ``distinct(rack)
<= 2``, or the number of parts in one group, ``most(rack) <= 4``; `groups` reads the
columns.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.expressions.syntax import Fault, abbreviate, no_column, number_of, parse
from slotkern.foundation.checks import meant, number, one_of, quote
from slotkern.foundation.special_fields import level_name

__all__ = ["Limit", "Uses", "limits_of", "uses_of"]

#: The name in a term for the length of a part, in time units.
LENGTH = "length"

#: The names of limits in texts: a sum, and the two kinds of group rules.
KINDS = ("sum", "distinct", "most")
MAX_COUNT = 2**31 - 1  # the largest number of nodes of a request
_SIDES: dict[type[ast.cmpop], Literal["<=", ">="]] = {ast.LtE: "<=", ast.GtE: ">="}
_STRICT: dict[type[ast.cmpop], Literal["<=", ">="]] = {ast.Lt: "<=", ast.Gt: ">="}
_MIRRORED: dict[str, Literal["<=", ">="]] = {"<=": ">=", ">=": "<="}
_MAX_TEXT_LENGTH = 10_000
_MAX_USE = 1e290
#: Sums of multiples of 1 / _RESOLUTION are exact up to _MAX_EXACT / _RESOLUTION.
_RESOLUTION, _MAX_EXACT = 1024, 2.0**52
#: Tolerance for rounded decimals, as a share of the amount.
_DECIMAL_ROUNDING = 2.0**-50
_MAX_SUM = 2.0**31 * _MAX_USE  # a part of the largest use on each possible node


@dataclass(frozen=True, eq=False)
class Limit:
    """A limit on a sum over the parts of a window, or on the groups that they touch.

    Parameters
    ----------
    of : str, array, or a function made by `criterion`
        The use of a part: a product of columns, numbers and ``length`` (the run time of
        the part) such as ``"power * length"``; an array with one value for each row of
        exactly the slots that will be searched; or a function of the slot and the
        length. For the other kinds: the name of the column whose values are the groups.
    side : {"<=", ">="}
        Whether the sum is at most or at least the amount.
    amount : float
        For the other kinds an integer, at least 1.
    kind : {"sum", "distinct", "most"}
        distinct: the number of groups that the parts touch. most: the number of parts
        in one group, at most the amount in each.

    Raises
    ------
    ValueError, TypeError
        For any other value; the message names it.

    Notes
    -----
    The sum is exact and rounded once, so it does not depend on the order of the parts.
    To tolerate rounded decimals, it may violate the limit by up to 2^-50 of the amount:
    the sum of 6 times 0.1 meets 0.6.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=0, end=9, performance=1,
    ...                       price=[1, 2, 3], storage=[10, 20, 40])
    >>> job = sk.Request(2, 4, limits=[sk.Limit("storage", ">=", 50)])
    >>> sk.find_window(slots, job, "cost").nodes
    (0, 2)
    """

    of: Any
    side: Literal["<=", ">="]
    amount: float
    kind: Literal["sum", "distinct", "most"] = "sum"

    def __post_init__(self) -> None:
        one_of("the side of a limit", self.side, ("<=", ">="))
        one_of("the kind of a limit", self.kind, KINDS)
        object.__setattr__(
            self, "amount", number("the amount of a limit", self.amount) + 0.0
        )
        if self.kind != "sum":
            self._check_rule()
        elif isinstance(self.of, str):
            _factors(self.of)
        elif not (callable(self.of) and hasattr(self.of, "capsule")):
            object.__setattr__(self, "of", _checked_array(self.of))

    def _check_rule(self) -> None:
        """Check the level and the count of a group rule."""
        level_name(self.of, f"the level of {self.kind}")
        if self.kind == "most" and self.side == ">=":
            raise ValueError(
                f"most({self.of}) bounds the nodes in each group from above: write "
                f"most({self.of}) <= {self.amount:g}, or distinct({self.of}) for the "
                "number of groups"
            )
        if not (self.amount.is_integer() and 1 <= self.amount <= MAX_COUNT):
            most = f" and at most {MAX_COUNT:,}" if self.amount > MAX_COUNT else ""
            raise ValueError(
                f"{self.kind}({self.of}) {self.side} {self.amount:g}: the count must "
                f"be an integer of at least 1{most}"
            )

    @property
    def text(self) -> str | None:
        """The limit as text that `Request` accepts; None for arrays and functions."""
        if not isinstance(self.of, str):
            return None
        return f"{self.kind}({self.of}) {self.side} {self._amount}"

    @property
    def _amount(self) -> str:
        """The amount as text; a count of a group rule without a point."""
        return repr(self.amount if self.kind == "sum" else int(self.amount))

    @cached_property
    def unit(self) -> float:
        """The largest number that divides all sums of an array; 0 if unknown."""
        return Uses(self.of, by_length=False).unit()

    def reachable(self, unit: float) -> float:
        """Return the tightest amount that admits the same sums.

        Sums are multiples of `unit` (0: unknown), so the amount can be rounded to the
        next multiple without excluding a sum. With the rounded amount a search can
        prune sets whose sums lie between the two.

        Examples
        --------
        >>> from slotkern import Limit
        >>> Limit("memory", ">=", 513).reachable(64.0)
        576.0
        """
        amount = self.amount
        if unit == 0 or not abs(amount) * _RESOLUTION < _MAX_EXACT:
            return amount
        count = round(amount / unit)
        if self.side == ">=":
            return (count + (count * unit < _last_admitted_sum(self))) * unit
        return (count - (count * unit > _last_admitted_sum(self))) * unit

    def __repr__(self) -> str:
        kind = "" if self.kind == "sum" else f", {self.kind!r}"
        return f"Limit({quote(self.of)}, {self.side!r}, {self._amount}{kind})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Limit):
            return NotImplemented
        mine = self.side, self.amount, self.kind
        if mine != (other.side, other.amount, other.kind):
            return False
        if isinstance(self.of, np.ndarray) and isinstance(other.of, np.ndarray):
            return bool(np.array_equal(self.of, other.of))
        return type(self.of) is type(other.of) and bool(self.of == other.of)

    def __hash__(self) -> int:
        of = self.of if isinstance(self.of, str) else None
        return hash((of, self.side, self.amount, self.kind))


def limits_of(limits: Any, within: Any = None) -> tuple[Limit, ...]:
    """Convert a text, or a sequence of texts and Limits, to limits.

    `within` is the level of a single group; it must not contradict the limits.
    """
    if limits is None:
        return ()
    if isinstance(limits, str | Limit):
        limits = [limits]
    try:
        limits = list(limits)
    except TypeError:
        raise TypeError(f"limits must be a sequence, got {quote(limits)}") from None
    found: list[Limit] = []
    for k, limit in enumerate(limits):
        if isinstance(limit, str):
            found += _parsed(limit)
        elif isinstance(limit, Limit):
            found.append(limit)
        else:
            raise TypeError(f"limits[{k}] must be text or a Limit, got {quote(limit)}")
    for limit in found:
        _check_possible(limit)
    implied = [] if within is None else [Limit(within, "<=", 1, "distinct")]
    _check_contradictions(implied + found)
    return tuple(found)


class Uses(NamedTuple):
    """The use of a part in each row, and whether it is multiplied by the length."""

    weight: NDArray[np.float64]
    by_length: bool

    def unit(self) -> float:
        """Return the largest number that divides all sums; 0 if none is known.

        Examples
        --------
        >>> import numpy as np
        >>> from slotkern.expressions.limits import Uses
        >>> Uses(np.array([64.0, 256.0]), by_length=False).unit()
        64.0
        """
        fine = self.weight * _RESOLUTION
        if self.by_length or not np.abs(fine).sum() < _MAX_EXACT:
            return 0.0
        whole = fine.astype(np.int64)
        return (
            float(np.gcd.reduce(whole)) / _RESOLUTION if (whole == fine).all() else 0.0
        )


def columns_of_term(of: str) -> frozenset[str]:
    """Return the names of the columns that a term, or a group rule, reads.

    Examples
    --------
    >>> from slotkern.expressions.limits import columns_of_term
    >>> sorted(columns_of_term("2 * power * length"))
    ['power']
    """
    factors = _factors(of)
    return frozenset(f for f in factors if isinstance(f, str) and f != LENGTH)


def uses_of(of: str, slots: NDArray[Any]) -> Uses:
    """Evaluate a term over the columns: return the use of a part in each slot.

    Examples
    --------
    >>> import numpy as np
    >>> from slotkern.expressions.limits import uses_of
    >>> slots = np.array([(3.0, 2), (4.0, 5)], [("power", "f8"), ("cores", "i4")])
    >>> uses_of("power * cores * length", slots)
    Uses(weight=array([ 6., 20.]), by_length=True)
    """
    weight = np.ones(len(slots))
    for factor in _factors(of):
        if factor == LENGTH:
            continue
        values = (
            _column(slots, factor, of)
            if isinstance(factor, str)
            else np.float64(factor)
        )
        with np.errstate(over="ignore"):
            weight = weight * values
    large = np.flatnonzero(~(np.abs(weight) <= _MAX_USE))
    if large.size:
        row = large[0]
        raise ValueError(
            f"limit on sum({of}): the value of row {row} is {weight[row]}, beyond "
            f"{_MAX_USE:g}, where sums overflow"
        )
    return Uses(weight, LENGTH in _factors(of))


def _column(slots: NDArray[Any], name: str, of: str) -> NDArray[np.float64]:
    names = slots.dtype.names or ()
    if name not in names:
        raise ValueError(f"limit on sum({of}): {no_column(name, names)}")
    column = slots[name]
    if column.dtype.kind not in "biuf" or column.ndim != 1:
        raise ValueError(
            f"limit on sum({of}): column {name!r} holds no numbers: it is "
            f"{column.dtype} of shape {column.shape}"
        )
    values = column.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise ValueError(
            f"limit on sum({of}): column {name!r} is {values[wrong[0]]} in row "
            f"{wrong[0]}"
        )
    return values


def _checked_array(of: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(of)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise TypeError(
            "a limit is on a term over columns, an array of numbers or a function made "
            f"by criterion, got {quote(of)}"
        )
    array = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(array) <= _MAX_USE))
    if wrong.size:
        row = wrong[0]
        raise ValueError(
            f"the value of row {row} of a limit must be finite and within "
            f"{_MAX_USE:g}, got {array[row]}"
        )
    array.flags.writeable = False
    return array


def _check_possible(limit: Limit) -> None:
    """Raise ValueError for a limit that no sum can meet, whatever the columns."""
    if limit.kind != "sum":
        return
    far = limit.amount if limit.side == ">=" else -limit.amount
    if far > _MAX_SUM:
        raise ValueError(
            f"no sum keeps {_words(limit)}: parts use at most {_MAX_USE:g} each"
        )
    if not isinstance(limit.of, str) or far <= 0:
        return
    factors = _factors(limit.of)
    sign = math.prod(
        float(np.sign(factor)) for factor in factors if not isinstance(factor, str)
    )
    names = [factor for factor in factors if isinstance(factor, str)]
    even = all(name == LENGTH or names.count(name) % 2 == 0 for name in names)
    if sign == 0:
        raise ValueError(f"no sum keeps {_words(limit)}: {limit.of} is always 0")
    if even and (sign > 0) != (limit.side == ">="):
        never = "negative" if sign > 0 else "positive"
        raise ValueError(f"no sum keeps {_words(limit)}: {limit.of} is never {never}")


def _check_contradictions(limits: list[Limit]) -> None:
    """Raise ValueError if two limits on the same sum or level exclude each other."""
    for k, one in enumerate(limits):
        for other in limits[:k]:
            low, high = (one, other) if one.side == ">=" else (other, one)
            if (
                low.side == ">="
                and high.side == "<="
                and low.kind == high.kind
                and _last_admitted_sum(low) > _last_admitted_sum(high)
                and (
                    _same_sum(low.of, high.of)
                    if low.kind == "sum"
                    else low.of == high.of
                )
            ):
                raise ValueError(
                    f"limits contradict each other: {_words(low)} and {_words(high)}"
                )


def _last_admitted_sum(limit: Limit) -> float:
    """Return the amount with its tolerance for rounded decimals."""
    slack = abs(limit.amount) * _DECIMAL_ROUNDING
    return limit.amount - slack if limit.side == ">=" else limit.amount + slack


def _same_sum(one: Any, other: Any) -> bool:
    """Return whether two sums are equal to the last bit for all columns."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return Limit(one, "<=", 0) == Limit(other, "<=", 0)
    a, b = _factors(one), _factors(other)
    if (LENGTH in a) != (LENGTH in b):
        return False
    first, second = ([f for f in x if f not in (LENGTH, 1.0)] for x in (a, b))
    # Products are computed from left to right; two factors can be exchanged exactly.
    return first == second or (len(first) == 2 and first == second[::-1])


def _words(limit: Limit) -> str:
    return limit.text or repr(limit)


# --- the text


def _error(text: str, reason: str) -> ValueError:
    return ValueError(f"limit {abbreviate(text)!r}: {reason}")


def _tree(text: str) -> ast.expr:
    if len(text) > _MAX_TEXT_LENGTH:
        raise _error(text, f"longer than {_MAX_TEXT_LENGTH:,} characters")
    try:
        return parse(text)
    except Fault as fault:
        at = f"character {fault.character_in(text)}: " if fault.character else ""
        raise _error(text, f"{at}{fault.reason}") from None


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Limit, ...]:
    """Return the limits of one text, joined by ``and``."""
    tree = _tree(text)
    both = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
    found: list[Limit] = []
    for part in tree.values if both else [tree]:  # type: ignore[attr-defined]
        found += _comparison(part, text)
    return tuple(found)


def _comparison(node: ast.expr, text: str) -> list[Limit]:
    """Return the limits of ``sum(a) >= 5``, ``5 <= sum(a)`` or ``3 <= sum(a) <= 5``."""
    if not isinstance(node, ast.Compare):
        raise _error(
            text,
            "is no comparison such as sum(storage) >= 500 or distinct(rack) <= 2",
        )
    sides = [node.left, *node.comparators]
    measures = [_measure(side, text) for side in sides]
    at = [k for k, measure in enumerate(measures) if measure is not None]
    if len(at) != 1 or len(sides) > 3 or (len(sides) == 3 and at != [1]):
        raise _error(
            text,
            "compare one sum(...) with a number, or between two; distinct(level) and "
            "most(level) likewise",
        )
    kind, of = measures[at[0]]  # type: ignore[misc]
    found = []
    for k, op in enumerate(node.ops):
        amount = sides[k] if at[0] == k + 1 else sides[k + 1]
        strict = _STRICT.get(type(op))
        side = _SIDES.get(type(op), strict)
        turned = side if at[0] == k or side is None else _MIRRORED[side]
        if strict is not None or turned is None:
            noun = "a sum" if kind == "sum" else kind
            hint = "" if turned is None else _closed(kind, of, turned, amount)
            raise _error(text, f"{noun} is compared with <= or >={hint}")
        number = _literal(amount, text)
        try:
            found.append(Limit(of, turned, number, kind))
        except ValueError as error:
            if kind == "sum":
                raise
            raise _error(text, str(error)) from None
    return found


def _closed(kind: str, of: str, side: str, amount: ast.expr) -> str:
    """Propose the closed bound that equals a strict bound on a count."""
    value = number_of(amount)
    if kind == "sum" or not isinstance(value, int):
        return ""
    bound = value - 1 if side == "<=" else value + 1
    return f"; write {kind}({of}) {side} {bound}" if bound >= 1 else ""


def _measure(
    node: ast.expr, text: str
) -> tuple[Literal["sum", "distinct", "most"], str] | None:
    """Return the kind and the term of ``sum(term)`` or ``distinct(level)``, or None."""
    match node:
        case ast.Call(func=ast.Name(id="sum"), args=[term], keywords=[]):
            of = ast.unparse(term)
            try:
                _factors(of)
            except ValueError as error:
                raise _error(text, str(error)) from None
            return "sum", of
        case ast.Call(
            func=ast.Name(id="distinct" | "most" as kind),
            args=[ast.Name(id=level)],
            keywords=[],
        ):
            return kind, level
        case ast.Call(func=ast.Name(id="distinct" | "most" as kind)):
            raise _error(text, f"{kind} takes one name of a column, as {kind}(rack)")
        case ast.Call(func=ast.Name(id=name)) if name != "sum":
            raise _error(
                text,
                f"{ast.unparse(node)} is no sum of one term, distinct(level) or "
                f"most(level){meant(name, KINDS)}",
            )
        case ast.Call():
            raise _error(text, f"{ast.unparse(node)} is no sum of one term")
    return None


def _literal(node: ast.expr, text: str) -> float:
    value = number_of(node)
    if value is None:
        raise _error(text, f"{ast.unparse(node)} is no number")
    try:
        return float(value)
    except OverflowError:
        raise _error(text, "the number is too large") from None


@lru_cache(maxsize=256)
def _factors(of: str) -> tuple[str | float, ...]:
    """Return the factors of a term, from left to right."""
    tree = _tree(of)
    found: list[str | float] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        found.append(_factor(tree.right, of))
        tree = tree.left
    found.append(_factor(tree, of))
    if found.count(LENGTH) > 1:
        raise _error(of, "length occurs twice in a product")
    if not any(isinstance(factor, str) for factor in found):
        raise _error(of, "names no column")
    return tuple(reversed(found))


def _factor(node: ast.expr, of: str) -> str | float:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant | ast.UnaryOp):
        value = _literal(node, of)
        return number("a factor of a limit", value)
    raise _error(of, f"{ast.unparse(node)} is neither a column nor a number")
