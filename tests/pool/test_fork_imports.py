"""Tests of a fork while another thread's first call of a pool imports a module."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import slotkern as sk
from slotkern.forks import LATE_IMPORTS

SLOW = """
import os, sys, threading, time
import slotkern as sk
pool = sk.SlotPool(sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1))
pool.book(pool.find(sk.Request(2, 3)), owner="ann")
began = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("slotkern.search"):
            began.set()
            time.sleep(0.1)

sys.meta_path.insert(0, Slow())
first = threading.Thread(target=pool.find_alternatives, args=(sk.Request(2, 3),))
first.start()
if not began.wait(60):
    sys.exit("no late import")
child = os.fork()
if child == 0:
    os._exit(len(pool.find_alternatives(sk.Request(2, 3))) - 2)
first.join()
for _ in range(1000):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        sys.exit(status)
    time.sleep(0.01)
os.kill(child, 9)
os.waitpid(child, 0)
sys.exit("the child hangs")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_child_does_not_wait_for_import_lock() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW], capture_output=True, text=True, timeout=1500
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_late_imports_of_bindings_happen_before_fork() -> None:
    sources = Path(__file__).parents[2] / "src" / "slotkern"
    if not sources.is_dir():
        pytest.skip("the sources are not here")
    paths = [*sources.rglob("*.pyx"), *sources.rglob("*.pxi")]
    texts = [path.read_text() for path in paths]
    late = re.compile(r"^ +(?:from (slotkern[\w.]*) import|import (\w+))", re.M)
    found = {a or b for text in texts for a, b in late.findall(text)}
    for text in texts:
        for name in re.findall(r'adapter\("(\w+)"\)', text):
            found.add(sk._ADAPTERS[name].partition(":")[0])
    assert found - {"slotkern"} <= {*LATE_IMPORTS}, (
        "name it in LATE_IMPORTS of slotkern/forks.py"
    )


def test_late_imports_of_python_modules_are_listed() -> None:
    package = Path(sk.__file__).parent
    found = set()
    for name in LATE_IMPORTS:
        path = package.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'adapter\("(\w+)"\)', text):
            found.add((sk._ADAPTERS[name].partition(":")[0], name))
        tree = ast.parse(text)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                found |= {
                    (module, name)
                    for node in ast.walk(function)
                    if isinstance(node, ast.ImportFrom) and node.module
                    for module in modules_of(node)
                }
    unknown = {use for use in found if use[0].startswith("slotkern")}
    assert {module for module, _ in unknown} <= {*LATE_IMPORTS, "slotkern"}, unknown


def modules_of(node: ast.ImportFrom) -> list[str]:
    """Return the modules of an import; ``_kernels`` has no names but modules."""
    module = str(node.module)
    if module != "slotkern._kernels":
        return [module]
    return [f"{module}.{each.name}" for each in node.names]
