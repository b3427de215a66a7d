"""Tests of errors that name a missing module and the command that installs it."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import slotkern as sk
from slotkern.foundation.extras import EXTRAS, extra

ROOT = Path(__file__).parents[2]
PACKAGE = Path(sk.__file__).parent

#: Modules, and calls that need them.
CALLS = [
    ("matplotlib", "sk.plot_gantt(slots)"),
    ("matplotlib", "sk.plot_steps(slots, job, 'processor_time')"),
    ("pandas", "sk.to_pandas(slots)"),
    ("pandas", "sk.from_pandas(None)"),
    ("pandas", "sk.find_window(slots, job).to_pandas()"),
    ("pandas", "sk.find_alternatives(slots, job).to_pandas()"),
    ("pyarrow", "sk.to_arrow(slots)"),
    ("pyarrow", "sk.from_arrow(None)"),
    ("pyarrow", "sk.write_slots('a.csv', slots); sk.read_slots('a.csv')"),
    ("pyarrow", "sk.write_slots('a.parquet', slots)"),
    ("pyarrow", "sk.find_window(slots, job).to_arrow()"),
    ("narwhals", "import pandas; sk.Machine(pandas.DataFrame({'name': ['a']}))"),
    ("numba", "sk.find_window(slots, job, method='published')"),
    ("numba", "sk.find_window(slots, job, sk.criterion(lambda s, d: 1.0))"),
    ("numba", "sk.find_alternatives(slots, job, method='published')"),
    ("numba", "import slotkern.published"),
    ("numba", "import slotkern.numba"),
    ("llvmlite", "import slotkern.numba"),
    ("rich", "import slotkern.commands.tables"),
    ("rich", "import slotkern.studies.report"),
    ("rich", "import slotkern.commands.main"),
    ("typer", "import slotkern.commands.main"),
    ("starlette", "import slotkern.service.app"),
    ("mcp", "import slotkern.service.mcp"),
    ("icalendar", "sk.to_ics(pool)"),
    ("dateutil", "pool.reserve(0, 0, 1, rule='FREQ=DAILY;COUNT=2')"),
    ("joblib", "studies.run(studies.load_study('aep'), 1, out='out')"),
    ("pyarrow", "studies.run(studies.load_study('aep'), 1, out='out')"),
    ("distributed", "studies.run(studies.load_study('aep'), 1, out='o', cluster='x')"),
]

PRELUDE = """
import sys
from importlib.abc import MetaPathFinder
class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == MODULE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
import slotkern as sk
if "studies" in CALL:
    from slotkern import studies
slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
job = sk.Request(2, 4)
clock = sk.Clock("2026-01-01", zone="UTC")
pool = sk.SlotPool(slots, clock=clock)
assert not [name for name in sys.modules if name.partition(".")[0] == MODULE]
sys.meta_path.insert(0, Missing())
try:
    exec(CALL)
except ModuleNotFoundError as error:
    print(error.name, error, sep="|")
"""


@pytest.mark.parametrize(("module", "call"), CALLS)
def test_missing_module_is_named(module: str, call: str, tmp_path: Path) -> None:
    code = f"MODULE, CALL = {module!r}, {call!r}\n{PRELUDE}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    command = f"pip install 'slotkern[{EXTRAS[module]}]'"
    assert done.stdout == f"{module}|this needs {module}: {command}\n"


def test_extras_are_declared_and_in_all() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    whole = extras["all"][0].partition("[")[2].rstrip("]").split(",")
    for module, name in EXTRAS.items():
        assert name in whole
        brings = " ".join(extras[name])
        assert module in brings or module in ("llvmlite", "distributed")
    assert set(whole) == set(EXTRAS.values())


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_pages_list_every_extra(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    table = text.partition("| extra | adds |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if "`" in line]
    listed = [name.strip("` ") for cell in cells for name in cell.split(",")]
    assert sorted(listed) == sorted(set(EXTRAS.values()))


def test_optional_modules_are_imported_inside_extra() -> None:
    bare = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        covered = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, (ast.With, ast.If))
            and ast.unparse(node).startswith(("with extra():", "if TYPE_CHECKING:"))
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                if name.partition(".")[0] in EXTRAS and id(node) not in covered:
                    bare.append(f"{path.name}:{node.lineno} {name}")
    assert not bare


def test_extra_passes_other_errors() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"), extra():
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(ZeroDivisionError), extra():
        raise ZeroDivisionError
