"""The administrator's page prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "machine.md"


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        promised = re.findall(r"^# (.*)$", block, re.M)
        printed = capsys.readouterr().out.splitlines()
        assert [line.rstrip() for line in printed] == promised
