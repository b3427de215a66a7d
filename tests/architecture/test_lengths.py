"""Files and functions are short: lines of code, without comments and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
FILE, FUNCTION = 550, 70


def count(text: str) -> int:
    """Return the number of lines that are neither blank nor a comment."""
    lines = map(str.strip, text.splitlines())
    return sum(bool(line) and not line.startswith(("#", "//")) for line in lines)


def without_docstrings(text: str) -> str:
    return re.sub(r'^ *"""(?:.|\n)*?""" *\n', "", text, flags=re.M)


def functions(tree: ast.AST, lines: list[str]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0].lineno - 1
            body = "\n".join(lines[first : node.end_lineno]) + "\n"
            yield node.name, count(without_docstrings(body))


def test_files_are_short() -> None:
    kinds = ("hpp", "h", "def", "pyx", "pxi", "pxd", "py")
    paths = [path for kind in kinds for path in SOURCES.rglob(f"*.{kind}")]
    lengths = {p: count(without_docstrings(p.read_text("utf-8"))) for p in paths}
    assert len(lengths) > 200
    assert {str(p): n for p, n in lengths.items() if n > FILE} == {}


def test_functions_are_short() -> None:
    lengths = {}
    for path in (SOURCES / "slotkern").rglob("*.py"):
        text = path.read_text("utf-8")
        for name, n in functions(ast.parse(text), text.splitlines()):
            lengths[f"{path}: {name}"] = n
    assert len(lengths) > 1000
    assert {name: n for name, n in lengths.items() if n > FUNCTION} == {}


def test_code_is_counted_without_comments_and_docstrings() -> None:
    text = 'def f():\n    """One.\n\n    Two.\n    """\n\n    # why\n    return 1\n'
    assert list(functions(ast.parse(text), text.splitlines())) == [("f", 1)]
    assert count(without_docstrings(text)) == 2
