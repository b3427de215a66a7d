"""Draw the picture of the README's example, wide and for phones, into ``docs``.

    python ci/pictures.py

The example is run as it is printed. The narrow picture shows the same windows.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

import slotkern as sk

ROOT = Path(__file__).parents[1]
NARROW = (5.0, 2.6)  # inches


def main() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(found[1], "README.md", "exec"), names)
        (ROOT / "docs" / "window.png").write_bytes(Path("window.png").read_bytes())
        os.chdir(ROOT)
    mpl.rcParams["savefig.dpi"] = 150
    figure = Figure(figsize=NARROW, layout="constrained")
    sk.plot_gantt(
        names["slots"],
        names["windows"],
        ax=figure.subplots(),
        path=ROOT / "docs" / "window-narrow.png",
        title="Two nodes of three",
    )


if __name__ == "__main__":
    main()
