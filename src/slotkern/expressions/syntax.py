"""The syntax that filters and limits share, and the errors of expressions.

The text is parsed with Python's grammar and never evaluated as Python. The parsers of
filters and limits convert the syntax nodes of a short allowlist to their own types, and
raise a `Fault` for any other node.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

from slotkern.foundation.checks import meant

__all__ = ["Fault", "abbreviate", "no_column", "number_of", "one_line", "parse"]


class Fault(Exception):
    """An error in an expression: its reason, and the syntax node or the character.

    Characters are those of the stripped text, counted from 1.
    """

    def __init__(
        self, reason: str, node: ast.AST | None = None, character: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.node = node
        self.character = character

    def character_in(self, text: str) -> int:
        """Return the character of the text at which the error is; 1 if unknown."""
        stripped = text.strip()
        character = self.character or 1
        if self.node is not None:  # its offset is in bytes of UTF-8
            before = stripped.encode()[: getattr(self.node, "col_offset", 0)]
            character = len(before.decode(errors="ignore")) + 1
        return character + len(text) - len(text.lstrip())


def parse(text: str) -> ast.expr:
    """Return the syntax tree of a text, or raise `Fault`."""
    stripped = one_line(text)
    try:
        with warnings.catch_warnings():  # such as for "\d" in a string, or "1if"
            warnings.simplefilter("error")
            return ast.parse(stripped, mode="eval").body
    except SyntaxError as error:
        at_end = len(stripped) + 1  # if the parser gives no position
        raise Fault(error.msg, character=error.offset or at_end) from None
    except (RecursionError, MemoryError):
        raise Fault("nested too deeply") from None
    except ValueError as error:  # a NUL character, or an integer of too many digits
        raise Fault(str(error)) from None


def one_line(text: str) -> str:
    """Return the stripped text with spaces in place of line breaks."""
    return text.strip().replace("\n", " ").replace("\r", " ")


def number_of(node: ast.expr) -> int | float | None:
    """Return the value of a number with or without a sign; None for other nodes."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        node = node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return sign * value


def no_column(name: str, known: Sequence[str]) -> str:
    """Return the reason of an error for a name that is not a column."""
    there = ", ".join(known)
    return f"no column {name!r}; there are {there}{meant(name, known)}"


def abbreviate(text: str, most: int = 200) -> str:
    """Return at most the first `most` characters of a text."""
    return text if len(text) <= most else text[:most] + "..."
