"""No header and no module uses a later layer, and the picture is up to date."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import slotkern as sk

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    path = ROOT / "ci" / "layers.py"
    spec = importlib.util.spec_from_file_location("layers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["layers"] = module  # the types of its named tuples are looked up there
    spec.loader.exec_module(module)
    return module


layers = load()


def test_uses_go_one_way() -> None:
    assert layers.faults(layers.uses()) == []


def test_adapters_are_functions_of_later_layers() -> None:
    """A function of an earlier layer is imported instead."""
    order = list(layers.LAYERS)
    seen = set()
    for path in (*(ROOT / "src").rglob("*.pyx"), *(ROOT / "src").rglob("*.py")):
        module = layers._binding(ROOT, path)
        for name in re.findall(r'\badapter\("(\w+)"\)', layers.text_of(path)):
            place = sk._ADAPTERS[name].partition(":")[0].removeprefix("slotkern.")
            user, used = layers.layer_of(module), layers.layer_of(place)
            assert order.index(user) <= order.index(used), (module, name)
            seen.add(name)
    assert seen == sk._ADAPTERS.keys()


def test_every_header_and_module_is_found() -> None:
    seen = {name for use in layers.uses() for name in use[:2]}
    headers = {
        path.relative_to(ROOT / layers.HEADERS).as_posix()
        for pattern in ("*.hpp", "*.def")
        for path in (ROOT / layers.HEADERS).rglob(pattern)
    }
    bindings = {
        ".".join(path.relative_to(ROOT / layers.PYTHON).with_suffix("").parts)
        for path in (ROOT / layers.PYTHON).rglob("*.pyx")
    }
    assert {name for name in seen if "/" in name} == headers
    assert bindings <= seen
    tops = {
        path.stem
        for path in (ROOT / layers.PYTHON).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__"}
    assert {top for top in tops if not layers.layer_of(top)} == set()


def test_the_picture_is_up_to_date() -> None:
    drawn = layers.PICTURE.read_text(encoding="utf-8")
    assert drawn == layers.draw(layers.uses()), "run python ci/layers.py"


def test_the_page_names_every_layer() -> None:
    page = (ROOT / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert rows == list(layers.LAYERS)


def test_paths_named_on_pages_exist() -> None:
    for name in ("docs/develop/architecture.md", "CONTRIBUTING.md", "docs/cpp.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for path in re.findall(r"`((?:src|tests|ci|docs|benchmarks)/[\w/.]+)`", text):
            assert (ROOT / path).exists(), (name, path)
        for path in re.findall(r"`slotkern/([\w/]+\.hpp)`", text):
            assert (ROOT / layers.HEADERS / path).exists(), (name, path)


@pytest.mark.parametrize(
    "path", sorted((ROOT / layers.HEADERS).rglob("*.hpp")), ids=str
)
def test_includes_are_sorted(path: Path) -> None:
    own = re.findall(r'^#include "(.*)"', path.read_text(encoding="utf-8"), re.M)
    assert all(name.startswith("slotkern/") for name in own)
    headers = [name for name in own if name.endswith(".hpp")]  # a .def has a place
    assert headers == sorted(headers)


@pytest.mark.parametrize(
    ("path", "text", "announced"),
    [
        ("src/_native/slotkern/choice/a.hpp", '#include "slotkern/slots/b.hpp"', 2),
        ("src/_native/slotkern/base/a.hpp", '#include "slotkern/slots/b.hpp"', 2),
        ("src/_native/slotkern/attic/a.hpp", '#include "slotkern/base/b.hpp"', 1),
        ("src/slotkern/_kernels/pool.pyx", "from slotkern.plotting import gantt", 2),
        ("src/slotkern/_kernels/pool.pyx", "cimport slotkern.plotting", 2),
        (
            "src/slotkern/search/delegated.py",
            "def f():\n    from slotkern import studies",
            2,
        ),
        ("src/slotkern/slots.py", "from .plotting import gantt", 2),
        ("src/slotkern/plotting/gantt.py", "from ..commands import main", 2),
        ("src/slotkern/replays/cycles.py", "from slotkern import Request", 2),
        ("src/slotkern/attic.py", "import slotkern.slots", 1),
    ],
)
def test_a_use_against_the_rule_is_found(
    tmp_path: Path, path: str, text: str, announced: int
) -> None:
    for name in (
        "plotting/__init__",
        "plotting/gantt",
        "studies/__init__",
        "commands/__init__",
        "commands/main",
        "slots",
    ):
        there = tmp_path / "src" / "slotkern" / f"{name}.py"
        there.parent.mkdir(parents=True, exist_ok=True)
        there.touch()
    target = tmp_path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    faults = layers.faults(layers.uses(tmp_path))
    words = {1: "belongs to no layer", 2: "must not use"}[announced]
    assert faults
    assert all(words in fault for fault in faults)


@pytest.mark.parametrize("late", [False, True])
def test_a_cycle_is_found(late: bool) -> None:
    assert layers.faults([]) == []
    there = layers.Use("pool.file", "pool.closures", False)
    back = layers.Use("pool.closures", "pool.file", late)
    assert layers.faults([there]) == []
    assert any("a cycle" in fault for fault in layers.faults([there, back]))


def test_imports_for_type_checkers_do_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "slotkern"
    folder.mkdir(parents=True)
    (folder / "slots.py").touch()
    (folder / "extras.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from slotkern import slots\n"
    )
    assert layers.uses(tmp_path) == []


def test_names_that_the_package_loads_lazily_count(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "slotkern"
    folder.mkdir(parents=True)
    (folder / "slots.py").write_text("from slotkern import SLOT\n")
    (folder / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from slotkern.slots import make_slots\n"
    )
    assert any("a cycle" in fault for fault in layers.faults(layers.uses(tmp_path)))
