"""Adapters: every name that a lower layer calls is registered, and nothing else is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import slotkern as sk
from slotkern.foundation.adapters import adapter, register

SOURCES = Path(__file__).parents[2] / "src"
CALL = re.compile(r'\badapter\("(\w+)"\)')


def test_names_called_and_registered_are_equal() -> None:
    paths = [p for kind in ("pyx", "pxi", "py") for p in SOURCES.rglob(f"*.{kind}")]
    called = {name for p in paths for name in CALL.findall(p.read_text("utf-8"))}
    assert called == sk._ADAPTERS.keys()


@pytest.mark.parametrize("name", sorted(sk._ADAPTERS))
def test_the_function_exists_under_its_name(name: str) -> None:
    module, _, function = sk._ADAPTERS[name].partition(":")
    assert function == name
    assert adapter(name) is getattr(import_module(module), name)


def test_a_missing_optional_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_pandas.py").write_text(
        "raise ModuleNotFoundError('no pandas', name='pandas')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("slotkern.foundation.adapters._places", {})
    register({"missing": "needs_pandas:frame"})
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'slotkern\[pandas\]'"):
        adapter("missing")
