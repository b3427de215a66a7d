"""The command line as a process: help, streams, exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import JOB, python, run, strict
from rich.markup import render
from typer.main import get_command

from slotkern.commands.main import app


def test_version_and_help() -> None:
    assert run("--version").stdout == f"slotkern {sk.__version__}\n"
    top = run()
    assert top.exit_code == 0
    for command in ("find", "slots-from-trace", "generate", "bench"):
        assert command in top.stdout
        assert run(command, "--help").exit_code == 0


def texts(command: Any) -> Iterator[str]:
    """Yield the help texts of a command, its options and its subcommands."""
    yield command.help or ""
    for option in command.params:
        yield getattr(option, "help", None) or ""
    for inner in getattr(command, "commands", {}).values():
        yield from texts(inner)


def test_no_help_text_becomes_an_emoji() -> None:
    for text in texts(get_command(app)):  # rich would replace :end: by an emoji
        assert render(text).plain == text


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from slotkern.commands.main import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'matplotlib', 'pyarrow', 'numba', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_without_typer_one_line_says_what_to_install() -> None:
    code = (
        "import sys, runpy\n"
        "sys.modules['typer'] = None\n"
        "runpy.run_module('slotkern', run_name='__main__')"
    )
    done = python("-c", code)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'slotkern[cli]'" in done.stderr


def test_as_a_process(slots_file: Path, tmp_path: Path) -> None:
    done = python("-m", "slotkern", "find", slots_file, *JOB, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert strict(done.stdout)["window"]
    done = python("-m", "slotkern", "find", slots_file, *JOB, "--budget", "1")
    assert (done.returncode, done.stderr) == (1, "")
    done = python("-m", "slotkern", "find", tmp_path / "none.csv", *JOB)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_gives_no_traceback(tmp_path: Path) -> None:
    many = 20_000
    slots = sk.make_slots(
        node=np.arange(many), start=0.0, end=9.0, performance=1.0, price=1.0
    )
    path = tmp_path / "many.npz"
    sk.write_slots(path, slots)
    words = ["-m", "slotkern", "find", path, "--nodes", many, "--volume", 1, "--json"]
    with subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "{\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.parametrize(
    "words", [(), ("find",), ("batch",), ("bench",), ("bench", "scaling")]
)
def test_flags_take_no_value_and_show_no_type(words: tuple[str, ...]) -> None:
    printed = run(*words, "--help").stdout
    assert "--help" in printed
    assert "bool" not in printed.lower()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent by kill")
def test_ctrl_c_during_the_imports_gives_no_traceback() -> None:
    code = (
        "import builtins, os, signal, sys\n"
        "from slotkern.__main__ import main\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *more):\n"
        "    if name == 'typer':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *more)\n"
        "builtins.__import__ = interrupted\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()"
    )
    done = python("-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
