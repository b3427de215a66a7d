"""What all pictures share: colours and sizes, text as it is, files written whole."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slotkern.extras import extra
from slotkern.files.whole import open_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["as_written", "checked_path", "save_figure"]

# Okabe and Ito's colours, which stay apart under every kind of colour blindness.
WINDOW_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# On these, text is dark.
LIGHT = ("#E69F00", "#56B4E9", "#CC79A7")
# With a hatch they make 42 looks that differ.
HATCHES = ("", "////", "....", "xxxx", "||||", "----", "\\\\\\\\")
BUSY, FREE, INK, FAINT = "#B4B9C0", "#EDF2F7", "#20262E", "#79818C"

SUFFIXES = (".png", ".svg", ".pdf")
FONT = 8.5


def checked_path(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(
            f"{target}: a picture's suffix is one of {known}, not {target.suffix!r}"
        )
    return target


def as_written(text: object) -> str:
    """The text for matplotlib to show as it is.

    A dollar sign begins no formula, and a line at its beginning hides no entry of a
    legend.
    """
    shown = str(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def save_figure(figure: Figure, target: Path) -> None:
    """Write a figure whole or not at all, and with the same bytes every time."""
    with extra():
        import matplotlib

    kind = target.suffix.lower()[1:]
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "slotkern"}):
        figure.savefig(drawn, format=kind, metadata=stamp)
    with open_whole(target) as file:
        file.write(drawn.getvalue())
