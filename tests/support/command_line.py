"""Commands run, and what each must say."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from slotkern.commands.main import app

JOB = ["--nodes", "5", "--volume", "310"]


def run(*arguments: Any) -> Any:
    """What a command says and how it exits, within this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


def python(*arguments: Any, **options: Any) -> Any:
    """A process of this interpreter."""
    words = [sys.executable, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, **options)


def strict(text: str) -> Any:
    """JSON without what JSON does not know."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def refused(result: Any, *words: Any) -> None:
    """Exit code 2 and one line on stderr with these words, nothing on stdout."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for word in words:
        assert str(word) in result.stderr
