"""Filters: expressions over slot columns, such as ``memory >= 64 and site == 'a'``.

The text is parsed to a tree of `Term`, which is computed column by column.
"""

from __future__ import annotations

import ast
import io
import itertools
import operator
import tokenize
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from slotkern.expressions.syntax import (
    Fault,
    abbreviate,
    no_column,
    number_of,
    one_line,
    parse,
)
from slotkern.foundation.checks import meant
from slotkern.foundation.hostlists import expand, is_hostlist

__all__ = ["Term", "columns_of_filter", "compile_where", "evaluate"]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNSUPPORTED = {
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


def compile_where(text: str) -> Term:
    """Return the checked tree of a filter expression.

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
    Term
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
    >>> from slotkern.expressions.filters import compile_where
    >>> compile_where("memory >= 64 and ")
    Traceback (most recent call last):
    ...
    ValueError: where 'memory >= 64 and ', character 17: invalid syntax
    """
    if not isinstance(text, str):
        raise TypeError(f"where must be a string, not {type(text).__name__}")
    return _compiled(text)


def columns_of_filter(text: str) -> frozenset[str]:
    """Return the names of the columns that a filter expression reads.

    Examples
    --------
    >>> from slotkern.expressions.filters import columns_of_filter
    >>> sorted(columns_of_filter("memory >= 64 and site in ['a', 'b']"))
    ['memory', 'site']
    """
    nodes = ast.walk(compile_where(text).source)
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


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
    >>> from slotkern.expressions.filters import evaluate
    >>> columns = [("memory", "i4"), ("site", "U1")]
    >>> nodes = np.array([(32, "a"), (64, "b")], dtype=columns)
    >>> evaluate("memory >= 64 or site in ('c', 'd')", nodes)
    array([False,  True])
    """
    tree = compile_where(text)
    try:
        passed = tree.truth(_Columns(slots, machine))
    except Fault as fault:
        raise _error(text, fault) from None
    return np.array(np.broadcast_to(passed, slots.shape))


@dataclass(slots=True)
class Term:
    """A checked part of a filter, and the syntax node from which it was made."""

    source: ast.expr

    def __str__(self) -> str:
        return ast.unparse(self.source)

    def fault(self, reason: str) -> Fault:
        return Fault(reason, self.source)

    def value(self, columns: _Columns) -> Any:
        """Return the value: an array over the slots, or a literal."""
        raise NotImplementedError

    def truth(self, columns: _Columns) -> Any:
        """Return the truth for each slot; raise `Fault` for other kinds of values."""
        value = self.value(columns)
        if _kind(value) != "truth value":
            kind = _kind(value)
            raise self.fault(f"{self} is a {kind}, not true or false: compare it")
        return value


@dataclass(slots=True)
class _Literal(Term):
    literal: bool | int | float | str

    def value(self, columns: _Columns) -> Any:
        return self.literal


@dataclass(slots=True)
class _Column(Term):
    name: str

    def value(self, columns: _Columns) -> Any:
        return columns.get(self)


@dataclass(slots=True)
class _Not(Term):
    operand: Term

    def value(self, columns: _Columns) -> Any:
        return np.logical_not(self.operand.truth(columns))


@dataclass(slots=True)
class _Joint(Term):
    """Terms joined by ``and`` or ``or``, or the comparisons of a chain."""

    join: Callable[[Any, Any], Any]
    parts: list[Term]

    def value(self, columns: _Columns) -> Any:
        return reduce(self.join, (part.truth(columns) for part in self.parts))


@dataclass(slots=True)
class _Comparison(Term):
    left: Term
    compare: Callable[[Any, Any], Any]
    right: Term

    def value(self, columns: _Columns) -> Any:
        left, right = self.left, self.right
        is_equality = self.compare in (operator.eq, operator.ne)
        if is_equality and (host := next(filter(_is_host, (right, left)), None)):
            text = left if host is right else right
            if is_hostlist(_text(text) or ""):
                found = _are_hosts(host, [text], columns)
                if found is not None:
                    return found if self.compare is operator.eq else ~found
        for side, beside in ((left, right), (right, left)):
            if _is_bare_text(side, beside, columns):
                name = str(side)
                hint = meant(name, columns.all_names())
                raise side.fault(
                    f"no column {name!r}; put text in quotes: {name!r}{hint}"
                )
        a, b = left.value(columns), right.value(columns)
        if _kind(a) != _kind(b):
            raise left.fault(
                f"{left} is a {_kind(a)}, but {right} is a {_kind(b)}: not comparable"
                f"{_first_text(left, a, b)}{_first_text(right, b, a)}"
                f"{_plain_truth(left, a)}{_plain_truth(right, b)}"
            )
        if _kind(a) == "truth value" and not is_equality:
            raise left.fault(f"{left} is a truth value, which has no order")
        try:
            return self.compare(a, b)
        except OverflowError:  # an integer literal beyond the range of float64
            raise left.fault("the number is too large to compare") from None


@dataclass(slots=True)
class _Member(Term):
    """A column or literal, and its comparisons with the literals after ``in``."""

    left: Term
    equal: list[_Comparison]

    def value(self, columns: _Columns) -> Any:
        literals = [each.right for each in self.equal]
        if _is_host(self.left):
            hosts = _are_hosts(self.left, literals, columns)
            if hosts is not None:
                return hosts
        found: Any = np.zeros(np.shape(self.left.value(columns)), np.bool_)
        for each in self.equal:
            found = np.logical_or(found, each.value(columns))
        return found


@lru_cache(maxsize=256)
def _compiled(text: str) -> Term:
    try:
        if len(text) > _MAX_LENGTH:
            reason = f"longer than {_MAX_LENGTH:,} characters"
            raise Fault(reason, character=_MAX_LENGTH + 1)
        tree = _parsed(text)
        term = _term(tree, 0)
        if len(text) > _MAX_TERMS:  # a shorter text has fewer names and literals
            _check_count(tree)
    except Fault as fault:
        raise _error(text, fault) from None
    return term


def _check_count(tree: ast.expr) -> None:
    leaves = (n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Constant))
    for one_more in itertools.islice(leaves, _MAX_TERMS, None):
        reason = f"more than {_MAX_TERMS:,} names and literals: pass a boolean array"
        raise Fault(reason, one_more)


def _parsed(text: str) -> ast.expr:
    try:
        return parse(text)
    except Fault:
        if (sign := _assignment(one_line(text))) is None:
            raise
        raise Fault("write '==' in place of '='", character=sign + 1) from None


def _assignment(text: str) -> int | None:
    """Return the position of the first '=' if '==' for each corrects the text."""
    with suppress(Fault, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        signs = [token.start[1] for token in tokens if token.string == "="]
        pieces = [
            text[i:j] for i, j in itertools.pairwise([0, *(k + 1 for k in signs), None])
        ]
        parse("=".join(pieces))
        return signs[0]
    return None


def _error(text: str, fault: Fault) -> ValueError:
    """Return the error with the position and the reason of a fault."""
    return ValueError(
        f"where {abbreviate(text)!r}, character {fault.character_in(text)}: "
        f"{abbreviate(fault.reason, 300)}"
    )


def _term(node: ast.expr, depth: int) -> Term:
    """Convert a syntax node, or raise `Fault` if filters do not support it."""
    if depth > _MAX_DEPTH:
        raise Fault(f"nested more than {_MAX_DEPTH} deep", node)
    match node:
        case ast.Name(id=name):
            return _Column(node, name)
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return _Literal(node, value)
        case ast.BoolOp(op=joint, values=parts):
            join = np.logical_and if isinstance(joint, ast.And) else np.logical_or
            return _Joint(node, join, [_term(part, depth + 1) for part in parts])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _Not(node, _term(operand, depth + 1))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=value)):
            if (signed := number_of(node)) is None:
                raise Fault(f"a sign before {value!r} is not supported", node)
            return _Literal(node, signed)
        case ast.Compare():
            return _comparison(node, depth)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            raise Fault("write 'and', 'or' in place of '&', '|'", node)
    kind = type(node)
    words = _UNSUPPORTED.get(kind, kind.__name__)
    words = repr(node.value) if isinstance(node, ast.Constant) else words
    raise Fault(f"{words} is not supported", node)


def _comparison(node: ast.Compare, depth: int) -> Term:
    for op, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn):
            if len(node.ops) > 1:
                raise Fault("'in' cannot be chained", node)
            return _membership(node, op, right, depth)
        if type(op) not in _COMPARE:
            raise Fault(f"{_UNSUPPORTED[type(op)]} is not supported", right)
    sides = [_term(side, depth + 1) for side in (node.left, *node.comparators)]
    chain: list[Term] = [
        _Comparison(node, left, _COMPARE[type(op)], right)
        for op, (left, right) in zip(node.ops, itertools.pairwise(sides), strict=True)
    ]
    return chain[0] if len(chain) == 1 else _Joint(node, np.logical_and, chain)


def _membership(node: ast.Compare, op: ast.cmpop, right: ast.expr, depth: int) -> Term:
    is_host = isinstance(node.left, ast.Name) and node.left.id in _HOSTS
    match right:
        case ast.Constant(value=str()) if is_host:
            literals: list[ast.expr] = [right]
        case ast.List(elts=literals) | ast.Tuple(elts=literals) if all(
            isinstance(literal, ast.Constant | ast.UnaryOp) for literal in literals
        ):
            pass
        case _:
            hint = ", or a hostlist in quotes, such as 'n[001-004]'" if is_host else ""
            reason = f"'in' needs a list of literals, such as ('a', 'b'){hint}"
            raise Fault(reason, right)
    left = _term(node.left, depth + 1)
    values = [_term(literal, depth + 1) for literal in literals]
    equal = [_Comparison(node, left, operator.eq, value) for value in values]
    member = _Member(node, left, equal)
    return _Not(node, member) if isinstance(op, ast.NotIn) else member


def _is_host(term: Term) -> TypeGuard[_Column]:
    return isinstance(term, _Column) and term.name in _HOSTS


def _text(term: Term) -> str | None:
    """Return the text of a literal; None for other terms."""
    literal = term.literal if isinstance(term, _Literal) else None
    return literal if isinstance(literal, str) else None


def _is_bare_text(side: Term, other: Term, columns: _Columns) -> TypeGuard[_Column]:
    """Return whether a name lacks quotes: no column, and the other side is text."""
    if not isinstance(side, _Column) or columns.has(side.name):
        return False
    return (
        isinstance(other, _Column)
        and columns.has(other.name)
        and _kind(columns.get(other)) == "string"
    )


def _are_hosts(host: _Column, literals: list[Term], columns: _Columns) -> Any:
    """Return which nodes are in hostlists; None unless all are text and names."""
    texts = [x for literal in literals if (x := _text(literal)) is not None]
    if len(texts) < len(literals):
        return None
    names, rows = columns.names(host)
    if _kind(names) != "string":
        return None
    wanted: set[str] = set()
    for literal, text in zip(literals, texts, strict=True):
        try:
            known = is_hostlist(text) and (names == text).any()
            wanted.update([text] if known else expand(text))
        except ValueError as error:
            raise literal.fault(str(error)) from None
    found = np.isin(names, np.array([*wanted], np.str_))
    return found if rows is None else found[rows]


def _plain_truth(term: Term, values: Any) -> str:
    """Propose the column alone if a truth value is compared with a number or text."""
    if _kind(values) != "truth value" or not isinstance(term, _Column):
        return ""
    return f"; write {term} or not {term} alone"


def _first_text(term: Term, values: Any, beside: Any) -> str:
    """Quote the first cell that is not a number, if some cells of the column are."""
    kinds = _kind(values), _kind(beside)
    if not isinstance(term, _Column) or kinds != ("string", "number"):
        return ""
    wrong = [
        row for row, cell in enumerate(values.tolist()) if not _is_number_text(cell)
    ]
    if not wrong or len(wrong) == len(values):
        return ""
    return f"; {term} is {values[wrong[0]]!s:.80} in row {wrong[0]}"


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

    def get(self, column: _Column) -> NDArray[Any]:
        name = column.name
        if name not in self._ready:
            if self._is_name(name):
                names, rows = self.names(column)
                self._ready[name] = names[rows]
            else:
                self._ready[name] = self._checked(column)
        return self._ready[name]

    def names(self, column: _Column) -> tuple[NDArray[Any], Any]:
        """Return node names, and the node of each row; None if names are per row."""
        if not self._is_name(column.name):
            return self.get(column), None
        names, rows = self._machine.names, self._slots["node"]
        if len(rows) and rows.max() >= len(names):  # nodes that the machine lacks
            names, rows = np.append(names, ""), rows.clip(max=len(names))
        return names, rows

    def _is_name(self, name: str) -> bool:
        """Return whether a column contains the names of the machine's nodes."""
        return (
            self._machine is not None
            and name in ("name", "node_name")
            and name not in (self._slots.dtype.names or ())
        )

    def _checked(self, column: _Column) -> NDArray[Any]:
        name = column.name
        if name not in (self._slots.dtype.names or ()):
            raise column.fault(no_column(name, self.all_names()))
        values: NDArray[Any] = self._slots[name]
        kind = values.dtype.kind
        if kind == "S":
            try:
                return np.strings.decode(values, "utf-8")
            except UnicodeDecodeError as error:
                raise column.fault(f"column {name!r} is not UTF-8: {error}") from None
        if kind == "O" and all(issubclass(k, str) for k in set(map(type, values))):
            return values  # not converted: a long text would widen each row
        if kind not in "biufU" or values.ndim != 1:
            shape = f"{values.dtype} of shape {values.shape}"
            raise column.fault(f"column {name!r} cannot be compared: it is {shape}")
        if kind == "f" and (missing := np.isnan(values)).any():
            raise column.fault(f"column {name!r} is NaN in row {int(missing.argmax())}")
        return values


def _kind(value: Any) -> str:
    """Return the kind of a column or literal: truth value, string or number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"  # numpy makes an object of a large integer
    kinds = {"b": "truth value", "U": "string", "O": "string"}
    return kinds.get(np.asarray(value).dtype.kind, "number")
