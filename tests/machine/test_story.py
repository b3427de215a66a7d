"""Test that the code of the administrator's page prints the output stated there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "machine.md"


def test_the_administrators_page_prints_the_stated_output(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        expected = re.findall(r"^# (.*)$", block, re.M)
        printed = capsys.readouterr().out.splitlines()
        assert [line.rstrip() for line in printed] == expected
