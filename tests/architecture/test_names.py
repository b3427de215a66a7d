"""The public names: type checkers, the lazy imports and ``__all__`` see the same."""

from __future__ import annotations

import ast
from pathlib import Path

import slotkern as sk


def test_names_for_type_checkers_are_those_loaded_lazily() -> None:
    tree = ast.parse(Path(sk.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    checked = {
        (node.module, name.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    lazy = {(f"slotkern.{home}", name) for name, home in sk._HOME.items()}
    assert checked == lazy


def test_all_lists_every_public_name_once() -> None:
    assert len(set(sk.__all__)) == len(sk.__all__)
    assert set(sk._HOME) <= set(sk.__all__)
    for name in sk.__all__:
        assert getattr(sk, name) is not None
    eager = {name for name in sk.__all__ if name not in sk._HOME}
    assert eager == {
        "CRITERIA",
        "NoWindowError",
        "PoolFileChangedError",
        "Request",
        "SLOT",
        "SlotError",
        "UndecidedError",
        "Window",
        "WindowTable",
        "find_window",
        "find_windows",
        "get_include",
        "make_slots",
        "validate_slots",
    }
