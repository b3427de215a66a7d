"""Checks of arguments, and the words of error messages.

A value of the wrong type raises TypeError, a value out of its range ValueError; both
messages contain the name of the argument and the value. Neither a bool nor text is
accepted as a number.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

__all__ = [
    "Source",
    "column_label",
    "hide_unknown",
    "hint_keywords",
    "integer",
    "meant",
    "named",
    "number",
    "one_of",
    "quote",
    "row_label",
    "unknown_keyword",
    "visible",
]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: Bidirectional classes and further marks that change the direction of text.
_DIRECTIONAL_CLASSES = frozenset(
    ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
)
_DIRECTIONAL_MARKS = frozenset("\u200e\u200f\u061c")


class Source(str):
    """The name of a table in errors, with a function that locates its rows.

    Parameters
    ----------
    name : str
    place : function
        Maps the number of a row, from 0, to its location, such as "line 5".

    Examples
    --------
    >>> source = Source("a.csv", lambda row: f"line {row + 2}")
    >>> row_label("jobs", 3), row_label(source, 3)
    ('row 3', 'line 5')
    """

    __slots__ = ("place",)

    place: Callable[[int], str]

    def __new__(cls, name: str, place: Callable[[int], str]) -> Self:
        """Create a str that also maps row numbers to locations."""
        source = super().__new__(cls, name)
        source.place = place
        return source


def row_label(table: str, row: int) -> str:
    """Return the location of a row in errors: "row 3", or that of its `Source`."""
    return table.place(row) if isinstance(table, Source) else f"row {row}"


def column_label(table: str, column: str) -> str:
    """Return the name of a column in errors; that of a `Source` is one as well."""
    name = f"{table}: {column}"
    return Source(name, table.place) if isinstance(table, Source) else name


def integer(
    name: str, value: Any, least: int | None = None, most: int | None = None
) -> int:
    """Check that a value is an integer of Python or numpy between two limits.

    Examples
    --------
    >>> integer("threads", 2, least=1)
    2
    >>> integer("threads", "2", least=1)
    Traceback (most recent call last):
        ...
    TypeError: threads must be an integer, got '2'
    """
    found = value if type(value) is int else _integer(name, value)
    if least is not None and found < least:
        raise ValueError(f"{name} must be at least {least}, got {quote(found)}")
    if most is not None and found > most:
        raise ValueError(f"{name} must be at most {most}, got {quote(found)}")
    return found


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    finite: bool = True,
) -> float:
    """Convert a number to float, and check that it is not NaN and within its limits.

    Examples
    --------
    >>> number("gap", 0, least=0)
    0.0
    >>> number("gap", -1, least=0)
    Traceback (most recent call last):
        ...
    ValueError: gap must not be negative, got -1
    """
    found = value if type(value) is float else _number(name, value)
    if not math.isfinite(found):
        if math.isnan(found):
            raise ValueError(f"{name} must not be NaN")
        if finite:
            raise ValueError(f"{name} must be finite, got {quote(value)}")
    if least is not None and found < least:
        rule = "not be negative" if least == 0 else f"be at least {least:g}"
        raise ValueError(f"{name} must {rule}, got {quote(value)}")
    if above is not None and not found > above:
        raise ValueError(f"{name} must be more than {above:g}, got {quote(value)}")
    return found


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """Check that a word is one of those allowed.

    Examples
    --------
    >>> one_of("shape", "round", ("square", "ragged"))
    Traceback (most recent call last):
        ...
    ValueError: shape must be one of square, ragged; got 'round'
    >>> one_of("shape", "raged", ("square", "ragged"))
    Traceback (most recent call last):
        ...
    ValueError: shape must be one of square, ragged; got 'raged'; did you mean 'ragged'?
    """
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise ValueError(
            f"{name} must be one of {', '.join(words)}; got {quote(value)}"
            f"{meant(value, words)}"
        )
    return value


def meant(name: Any, known: Iterable[str]) -> str:
    """Propose a known name in place of an unknown one, for the end of an error.

    Parameters
    ----------
    name : object
        The unknown name.
    known : iterable of str
        The names that are allowed.

    Returns
    -------
    str
        ``"; did you mean 'x'?"`` for the most similar known name; empty if none is
        similar. Upper and lower case do not count.

    Examples
    --------
    >>> meant("Budgt", ["nodes", "budget"]), meant("size", ["nodes", "budget"])
    ("; did you mean 'budget'?", '')
    """
    if not isinstance(name, str):
        return ""
    from difflib import get_close_matches

    alike = {key.casefold(): key for key in known}
    found = get_close_matches(name.casefold()[:100], alike, n=1, cutoff=0.7)
    return f"; did you mean {alike[found[0]]!r}?" if found else ""


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error of a keyword argument that a function does not have.

    Examples
    --------
    >>> unknown_keyword("find", "budgt", ["nodes", "budget"]).args[0]
    "find() got an unexpected keyword argument 'budgt'; did you mean 'budget'?"
    """
    return TypeError(
        f"{function}() got an unexpected keyword argument {name!r}{meant(name, known)}"
    )


def hide_unknown(function: Any) -> tuple[str, ...]:
    """Hide the ``**unknown`` of a compiled function, and return its other parameters.

    The function raises `unknown_keyword` for what it finds there; its signature shows
    what it takes.
    """
    signature = inspect.signature(function)
    shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=shown)
    return tuple(p.name for p in shown)


def hint_keywords(
    function: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Wrap a function so that an unknown keyword argument raises with a proposal.

    The function must not accept ``**options``. Calls that succeed cost nothing more.
    """

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except TypeError:
            code = function.__code__
            known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            for name in kwargs:
                if name not in known:
                    title = function.__qualname__
                    raise unknown_keyword(title, name, known) from None
            raise

    return call


def quote(value: Any) -> str:
    """Return the repr of a value on one line of at most 80 characters.

    Examples
    --------
    >>> quote(3), quote("x" * 100)[-3:]
    ('3', '...')
    """
    if getattr(value, "shape", None) == () and value.dtype.kind in "biufU":
        value = value.item()  # the repr of numpy contains the name of the type
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return f"an integer of {value.bit_length()} bits"
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def named(who: str, error: Exception) -> str:
    """Return the message of an error about a job, which may name it already.

    Examples
    --------
    >>> named("a", ValueError("no node")), named("a", ValueError("a: no node"))
    ('a: no node', 'a: no node')
    """
    text = str(error)
    return text if text.startswith(f"{who}: ") else f"{who}: {text}"


def visible(text: Any) -> str:
    """Escape the control characters and direction marks of a text.

    Terminals execute escape sequences, and terminals and pages reverse text at such
    marks; names from user data may contain both. Line breaks are escaped as well.

    Examples
    --------
    >>> visible("node\\u202egnp.exe"), visible("a\\x00b")
    ('node\\\\u202egnp.exe', 'a\\\\x00b')
    """
    found = str(text)
    return found if found.isprintable() else "".join(map(_escape_hidden, found))


def _escape_hidden(sign: str) -> str:
    import unicodedata  # seldom needed, and not loaded by numpy

    hidden = (
        unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(sign) in _DIRECTIONAL_CLASSES
        or sign in _DIRECTIONAL_MARKS
    )
    return sign.encode("unicode_escape").decode() if hidden else sign


def _integer(name: str, value: Any) -> int:
    if _is_bool(value):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {quote(value)}") from None


def _number(name: str, value: Any) -> float:
    if _is_bool(value) or isinstance(value, (str, bytes, complex)):
        raise TypeError(f"{name} must be a number, got {quote(value)}")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"{name} must be a number, got {quote(value)}") from None
    except OverflowError:
        raise ValueError(f"{name} is too large: {quote(value)}") from None


def _is_bool(value: Any) -> bool:
    # numpy.bool is not a subclass of bool, but float() accepts it.
    return (
        isinstance(value, bool)
        or getattr(getattr(value, "dtype", None), "kind", "") == "b"
    )
