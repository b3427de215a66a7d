"""Filters: expressions over slot columns, such as ``memory >= 64 and site == 'a'``.

The text is parsed with Python's grammar and checked against a short allowlist of syntax
nodes; it is never evaluated as Python. The checked tree is computed column by column.
"""

from __future__ import annotations

import ast
import io
import itertools
import operator
import tokenize
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import meant
from slotkern.foundation.hostlists import expand, is_hostlist

__all__ = ["compile_where", "evaluate"]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MEMBERSHIP = (ast.In, ast.NotIn)
_EQUALITY = (ast.Eq, ast.NotEq)
_NAMES = {
    ast.Attribute: "an attribute",
    ast.BinOp: "arithmetic",
    ast.Call: "a call",
    ast.Dict: "a dictionary",
    ast.IfExp: "a conditional",
    ast.Is: "'is'",
    ast.IsNot: "'is not'",
    ast.JoinedStr: "a formatted string",
    ast.Lambda: "a lambda",
    ast.List: "a list",
    ast.NamedExpr: "an assignment",
    ast.Subscript: "an index",
    ast.Tuple: "a tuple",
    ast.UnaryOp: "this unary operator",
}
#: Columns of node names; a text that is compared with them may be a hostlist.
_HOSTS = ("name", "node_name", "host")
_MAX_DEPTH = 50
_MAX_TERMS = 10_000
_MAX_LENGTH = 2**16


def compile_where(text: str) -> ast.expr:
    """Return the checked syntax tree of a filter expression.

    Parameters
    ----------
    text : str
        Comparisons (also chained) of column names with numbers, strings, True, False
        or other columns, ``in`` and ``not in`` with a list or tuple of literals, and
        boolean columns alone; joined by ``and``, ``or``, ``not`` and parentheses. A
        text that is compared with the columns ``name``, ``node_name`` and ``host`` may
        be a hostlist: ``name in 'n[001-004]'``.

    Returns
    -------
    ast.expr
        The tree, which `evaluate` computes. The trees of recent texts are cached.

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        For a syntax error, any other expression (a call, arithmetic ...), nesting
        deeper than 50, more than 10,000 names and literals, or more than 65,536
        characters; the message names the part and its position.

    Notes
    -----
    O(length of the text).

    Examples
    --------
    >>> from slotkern.where import compile_where
    >>> compile_where("memory >= 64 and ")
    Traceback (most recent call last):
    ...
    ValueError: where 'memory >= 64 and ', character 17: invalid syntax
    """
    if not isinstance(text, str):
        raise TypeError(f"where must be a string, not {type(text).__name__}")
    return _parse(text)


def columns(text: str) -> frozenset[str]:
    """Return the names of the columns that a filter expression reads.

    Examples
    --------
    >>> from slotkern.where import columns
    >>> sorted(columns("memory >= 64 and site in ['a', 'b']"))
    ['memory', 'site']
    """
    names = ast.walk(compile_where(text))
    return frozenset(node.id for node in names if isinstance(node, ast.Name))


def evaluate(text: str, slots: NDArray[Any], machine: Any = None) -> NDArray[np.bool_]:
    """Return which slots pass a filter expression.

    Parameters
    ----------
    text : str
        The expression, see `compile_where`.
    slots : structured array, shape (n,)
        Every field is a column: numbers, booleans, or strings (also bytes in UTF-8,
        and objects that are all ``str``).
    machine : Machine, optional
        Its node names are the columns ``name`` and ``node_name``, unless the slots have
        columns of these names.

    Returns
    -------
    boolean array, shape (n,)

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        As `compile_where`; also for an unknown column, a comparison of different kinds
        (a string with a number), and a NaN in a column that is compared.

    Notes
    -----
    O(n) for each comparison, and for each literal after ``in``. The memory is a few
    times n bytes, independent of the length of the expression.

    Examples
    --------
    >>> import numpy as np
    >>> from slotkern.where import evaluate
    >>> columns = [("memory", "i4"), ("site", "U1")]
    >>> nodes = np.array([(32, "a"), (64, "b")], dtype=columns)
    >>> evaluate("memory >= 64 or site in ('c', 'd')", nodes)
    array([False,  True])
    """
    tree = compile_where(text)
    try:
        passed = _truth(tree, _Columns(slots, machine))
    except _FilterError as fault:
        raise fault.error(text) from None
    return np.array(np.broadcast_to(passed, slots.shape))


class _FilterError(Exception):
    """An error in an expression: its reason, and the part in which it is."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        self.position = getattr(node, "col_offset", 0)  # in bytes of UTF-8
        self.reason = reason

    def error(self, text: str) -> ValueError:
        before = text.strip().encode()[: self.position].decode(errors="ignore")
        return _error(text, len(before) + 1, self.reason)


def _error(text: str, character: int, reason: str) -> ValueError:
    """Return the error at a character of the stripped text, counted from 1."""
    character += len(text) - len(text.lstrip())
    shown = text if len(text) <= 200 else text[:200] + "..."
    reason = reason if len(reason) <= 300 else reason[:300] + "..."
    return ValueError(f"where {shown!r}, character {character}: {reason}")


@lru_cache(maxsize=256)
def _parse(text: str) -> ast.expr:
    if len(text) > _MAX_LENGTH:
        raise _error(text, _MAX_LENGTH + 1, f"longer than {_MAX_LENGTH:,} characters")
    try:
        one_line = text.replace("\n", " ").replace("\r", " ")
        tree = _tree(one_line.strip())
        _check(tree, 0)
        leaves = (n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Constant))
        for one_more in itertools.islice(leaves, _MAX_TERMS, None):
            reason = (
                f"more than {_MAX_TERMS:,} names and literals: pass a boolean array"
            )
            raise _FilterError(one_more, reason)
    except SyntaxError as error:
        at_end = len(text.strip()) + 1  # if the parser gives no position
        sign = _assignment(one_line.strip())
        if sign is not None:
            raise _error(text, sign + 1, "write '==' in place of '='") from None
        raise _error(text, error.offset or at_end, error.msg) from None
    except (RecursionError, MemoryError):
        raise _error(text, 1, "nested too deeply") from None
    except _FilterError as fault:
        raise fault.error(text) from None
    except ValueError as error:  # a NUL character, or an integer of too many digits
        raise _error(text, 1, str(error)) from None
    return tree


def _tree(text: str) -> ast.expr:
    with warnings.catch_warnings():  # such as for "\d" in a string, or "1if"
        warnings.simplefilter("error")
        return ast.parse(text, mode="eval").body


def _assignment(text: str) -> int | None:
    """Return the position of the first '=' if '==' for each corrects the text."""
    with suppress(SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        signs = [token.start[1] for token in tokens if token.string == "="]
        pieces = [
            text[i:j] for i, j in itertools.pairwise([0, *(k + 1 for k in signs), None])
        ]
        _tree("=".join(pieces))
        return signs[0]
    return None


def _check(node: ast.expr, depth: int) -> None:
    """Raise an error for any node that `_value` cannot compute."""
    if depth > _MAX_DEPTH:
        raise _FilterError(node, f"nested more than {_MAX_DEPTH} deep")
    match node:
        case ast.Name() | ast.Constant(value=bool() | int() | float() | str()):
            parts: list[ast.expr] = []
        case ast.BoolOp(values=parts):
            pass
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            parts = [operand]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=value)):
            if not _is_number(value):
                raise _FilterError(node, f"a sign before {value!r} is not supported")
            parts = []
        case ast.Compare(left=left, ops=ops, comparators=rest):
            parts = [left]
            for op, right in zip(ops, rest, strict=True):
                if isinstance(op, _MEMBERSHIP):
                    if len(ops) > 1:
                        raise _FilterError(node, "'in' cannot be chained")
                    parts += _literals(right, left)
                elif type(op) in _COMPARE:
                    parts.append(right)
                else:
                    raise _FilterError(right, f"{_NAMES[type(op)]} is not supported")
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            raise _FilterError(node, "write 'and', 'or' in place of '&', '|'")
        case _:
            kind = type(node)
            name = repr(node.value) if isinstance(node, ast.Constant) else None
            name = name or _NAMES.get(kind, kind.__name__)
            raise _FilterError(node, f"{name} is not supported")
    for part in parts:
        _check(part, depth + 1)


def _literals(node: ast.expr, left: ast.expr) -> list[ast.expr]:
    """Return the literals of the list, or the hostlist, after ``in``."""
    if (
        _is_host(left)
        and isinstance(node, ast.Constant)
        and isinstance(node.value, str)
    ):
        return [node]
    if isinstance(node, ast.List | ast.Tuple) and all(
        isinstance(literal, ast.Constant | ast.UnaryOp) for literal in node.elts
    ):
        return node.elts
    hint = ", or a hostlist in quotes, such as 'n[001-004]'" if _is_host(left) else ""
    raise _FilterError(node, f"'in' needs a list of literals, such as ('a', 'b'){hint}")


def _is_host(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in _HOSTS


def _truth(node: ast.expr, columns: _Columns) -> Any:
    """Return the truth of `node` for each slot."""
    value = _value(node, columns)
    if _kind(value) != "truth value":
        part = ast.unparse(node)
        raise _FilterError(
            node, f"{part} is a {_kind(value)}, not true or false: compare it"
        )
    return value


def _value(node: ast.expr, columns: _Columns) -> Any:
    """Return the value of a checked `node`: an array over the slots, or a literal."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return columns.get(node, name)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return np.logical_not(_truth(operand, columns))
        case ast.UnaryOp(op=sign, operand=ast.Constant(value=value)):
            assert isinstance(value, int | float)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BoolOp(op=joint, values=parts):
            join = np.logical_and if isinstance(joint, ast.And) else np.logical_or
            return reduce(join, (_truth(part, columns) for part in parts))
    assert isinstance(node, ast.Compare)
    passed: Any = True
    left = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        passed = np.logical_and(passed, _compare(left, op, right, columns))
        left = right
    return passed


def _compare(left: ast.expr, op: ast.cmpop, right: ast.expr, columns: _Columns) -> Any:
    if (hosts := _compare_hosts(left, op, right, columns)) is not None:
        return hosts
    if isinstance(op, _MEMBERSHIP):
        found: Any = np.zeros(np.shape(_value(left, columns)), np.bool_)
        for literal in _literals(right, left):
            found = np.logical_or(found, _compare(left, ast.Eq(), literal, columns))
        return found if isinstance(op, ast.In) else np.logical_not(found)
    for side, beside in ((left, right), (right, left)):
        if _is_bare_text(side, beside, columns):
            name = ast.unparse(side)
            hint = meant(name, columns.all_names())
            raise _FilterError(
                side, f"no column {name!r}; put text in quotes: {name!r}{hint}"
            )
    a, b = _value(left, columns), _value(right, columns)
    if _kind(a) != _kind(b):
        one, other = ast.unparse(left), ast.unparse(right)
        reason = f"{one} is a {_kind(a)}, but {other} is a {_kind(b)}: not comparable"
        hints = (
            hint(*sides)
            for hint in (_first_text, _plain_truth)
            for sides in ((left, a, right, b), (right, b, left, a))
        )
        raise _FilterError(left, reason + "".join(hints))
    if _kind(a) == "truth value" and not isinstance(op, _EQUALITY):
        raise _FilterError(
            left, f"{ast.unparse(left)} is a truth value, which has no order"
        )
    try:
        return _COMPARE[type(op)](a, b)
    except OverflowError:  # an integer literal beyond the range of float64
        raise _FilterError(left, "the number is too large to compare") from None


def _is_bare_text(side: ast.expr, other: ast.expr, columns: _Columns) -> bool:
    """Return whether a name lacks quotes: no column, and the other side is text."""
    if not isinstance(side, ast.Name) or columns.has(side.id):
        return False
    return (
        isinstance(other, ast.Name)
        and columns.has(other.id)
        and _kind(columns.get(other, other.id)) == "string"
    )


def _compare_hosts(
    left: ast.expr, op: ast.cmpop, right: ast.expr, columns: _Columns
) -> Any:
    """Compare node names with hostlists; return None for any other comparison."""
    if isinstance(op, _EQUALITY) and _is_host(right):
        left, right = right, left
    if not isinstance(op, (*_EQUALITY, *_MEMBERSHIP)) or not _is_host(left):
        return None
    literals = _literals(right, left) if isinstance(op, _MEMBERSHIP) else [right]
    texts = [
        each.value
        for each in literals
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    if len(texts) < len(literals):
        return None
    if len(texts) == 1 and not is_hostlist(texts[0]) and isinstance(op, _EQUALITY):
        return None
    assert isinstance(left, ast.Name)
    names, rows = columns.names(left, left.id)
    if _kind(names) != "string":
        return None
    wanted: set[str] = set()
    for literal, text in zip(literals, texts, strict=True):
        try:
            known = is_hostlist(text) and (names == text).any()
            wanted.update([text] if known else expand(text))
        except ValueError as error:
            raise _FilterError(literal, str(error)) from None
    found = np.isin(names, np.array([*wanted], np.str_))
    if isinstance(op, ast.NotEq | ast.NotIn):
        found = ~found
    return found if rows is None else found[rows]


def _plain_truth(node: ast.expr, values: Any, other: ast.expr, beside: Any) -> str:
    """Propose the column alone if a truth value is compared with a number or text."""
    if _kind(values) != "truth value" or not isinstance(node, ast.Name):
        return ""
    return f"; write {node.id} or not {node.id} alone"


def _first_text(node: ast.expr, values: Any, other: ast.expr, beside: Any) -> str:
    """Quote the first cell that is not a number, if some cells of the column are."""
    if not isinstance(node, ast.Name) or (_kind(values), _kind(beside)) != (
        "string",
        "number",
    ):
        return ""
    wrong = [
        row for row, cell in enumerate(values.tolist()) if not _is_number_text(cell)
    ]
    if not wrong or len(wrong) == len(values):
        return ""
    return f"; {node.id} is {values[wrong[0]]!s:.80} in row {wrong[0]}"


def _is_number_text(text: str) -> bool:
    """Return whether float() accepts a text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Columns:
    """The columns of slots that an expression reads, each converted once."""

    def __init__(self, slots: NDArray[Any], machine: Any = None) -> None:
        self._slots = slots
        self._machine = machine
        self._ready: dict[str, NDArray[Any]] = {}

    def has(self, name: str) -> bool:
        return name in (self._slots.dtype.names or ()) or self._is_name(name)

    def all_names(self) -> tuple[str, ...]:
        """Return the names that an expression may use."""
        names = self._slots.dtype.names or ()
        return names if self._machine is None or "name" in names else ("name", *names)

    def get(self, node: ast.expr, name: str) -> NDArray[Any]:
        if name not in self._ready:
            if self._is_name(name):
                names, rows = self.names(node, name)
                self._ready[name] = names[rows]
            else:
                self._ready[name] = _checked_column(
                    node, name, self._slots, self._machine
                )
        return self._ready[name]

    def names(self, node: ast.expr, name: str) -> tuple[NDArray[Any], Any]:
        """Return node names, and the node of each row; None if names are per row."""
        if not self._is_name(name):
            return self.get(node, name), None
        names, rows = self._machine.names, self._slots["node"]
        if len(rows) and rows.max() >= len(
            names
        ):  # the slots have nodes that the machine lacks
            names, rows = np.append(names, ""), rows.clip(max=len(names))
        return names, rows

    def _is_name(self, name: str) -> bool:
        """Return whether a column contains the names of the machine's nodes."""
        return (
            self._machine is not None
            and name in ("name", "node_name")
            and name not in (self._slots.dtype.names or ())
        )


def _checked_column(
    node: ast.expr, name: str, slots: NDArray[Any], machine: Any
) -> NDArray[Any]:
    names = slots.dtype.names or ()
    if name not in names:
        there = names if machine is None or "name" in names else ("name", *names)
        hint = meant(name, there)
        raise _FilterError(
            node, f"no column {name!r}; there are {', '.join(there)}{hint}"
        )
    column = slots[name]
    if column.dtype.kind == "S":
        try:
            return np.strings.decode(column, "utf-8")
        except UnicodeDecodeError as error:
            raise _FilterError(node, f"column {name!r} is not UTF-8: {error}") from None
    if column.dtype.kind == "O" and all(
        issubclass(kind, str) for kind in set(map(type, column))
    ):
        return column  # not converted: a long text would widen each row
    if column.dtype.kind not in "biufU" or column.ndim != 1:
        kind = f"{column.dtype} of shape {column.shape}"
        raise _FilterError(node, f"column {name!r} cannot be compared: it is {kind}")
    if column.dtype.kind == "f" and (missing := np.isnan(column)).any():
        raise _FilterError(
            node, f"column {name!r} is NaN in row {int(missing.argmax())}"
        )
    return column


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    """Return the kind of a column or literal: truth value, string or number."""
    kind = np.asarray(value).dtype.kind if not _is_number(value) else "f"
    return {"b": "truth value", "U": "string", "O": "string"}.get(kind, "number")
