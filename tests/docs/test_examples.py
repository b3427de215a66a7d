"""Tests that the examples of docstrings, README and pages run and print as shown."""

import doctest
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slotkern as sk

ROOT = Path(__file__).parents[2]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def documented():
    """Yield name and docstring of every public callable and of its methods."""
    for name in sk.__all__:
        thing = getattr(sk, name)
        if not callable(thing):
            continue
        yield name, thing.__doc__
        for method, inner in vars(thing).items() if isinstance(thing, type) else ():
            if not method.startswith("_"):
                yield f"{name}.{method}", inner.__doc__


EXAMPLES = {name: text for name, text in documented() if text and ">>>" in text}


def test_main_functions_have_examples():
    for name in ("find_window", "Request", "SlotPool", "make_slots", "explain"):
        assert name in EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"np": np, "sk": sk}
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], names, name, name, 0)
    output = []
    results = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=output.append)
    assert results.attempted
    assert not results.failed, "".join(output)


def test_every_public_callable_is_documented():
    for name in sk.__all__:
        assert (getattr(sk, name).__doc__ or "").strip(), name


def test_readme_example(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed == re.findall(r"^# (.*)$", code, re.M)
    assert len(printed) == 2
    assert (tmp_path / "window.png").stat().st_size > 0
    home = (ROOT / "docs" / "index.md").read_text()
    assert all(f"# {line}\n" in home for line in printed)


def python_of(page):
    """Return the concatenated Python blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))


GUIDES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")]
PAGES = [page for page in sorted(GUIDES) if python_of(page)]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_code_of_pages_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "page.py"  # numba caches functions of files only
    code = python_of(page).replace("5000", "5")
    path.write_text(code, encoding="utf-8")
    runpy.run_path(str(path))
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    expected = set(re.findall(r"^# (.*)", code, re.M))  # comments that show the output
    assert expected <= printed


def commands_of(page):
    """Return the commands of a page that run when the site is built."""
    text = page.read_text(encoding="utf-8")
    return "".join(re.findall(r"```\{run\}\n(.*?)```", text, re.S))


WITH_COMMANDS = [page for page in sorted(GUIDES) if commands_of(page)]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=[p.stem for p in WITH_COMMANDS])
def test_commands_of_pages_run(page, tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("matplotlib")
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("there is no bash")
    there = f"slotkern() {{ '{sys.executable}' -m slotkern \"$@\"; }}\n"
    done = subprocess.run(
        [shell, "-c", there + commands_of(page)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) > 5


def test_commands_of_start_page(tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("pyarrow")
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("there is no bash")
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    (commands,) = [
        block
        for block in re.findall(r"```\{run\}\n(.*?)```", text, re.S)
        if "printf" in block
    ]
    assert len(re.findall(r"^\w", commands, re.M)) == 5
    there = f"slotkern() {{ '{sys.executable}' -m slotkern \"$@\"; }}\n"
    done = subprocess.run(
        [shell, "-c", f"{there}{commands}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert (tmp_path / "tonight.png").read_bytes().startswith(b"\x89PNG")
    assert "2026-10-24" in done.stdout
    assert "No window fits." in done.stdout
