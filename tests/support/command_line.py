"""Helpers that run commands and check their output."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from slotkern.commands.main import app

JOB = ["--nodes", "5", "--volume", "310"]


def run(*arguments: Any) -> Any:
    """Run a command in this process; return its output and its exit code."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


def python(*arguments: Any, **options: Any) -> Any:
    """Run this Python interpreter in a new process."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def strict(text: str) -> Any:
    """Parse JSON; fail on NaN and infinities, which are not JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def refused(result: Any, *words: Any) -> None:
    """Assert exit code 2, one line on stderr with these words, and no output."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for word in words:
        assert str(word) in result.stderr, result.stderr
