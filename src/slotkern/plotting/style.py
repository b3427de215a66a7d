"""Style and output shared by all pictures: colours, fonts, literal text, atomic files.

Saved files are reproducible: equal figures give equal bytes.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern.files.atomic import open_atomic
from slotkern.foundation.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "boxes",
    "check_picture_path",
    "escape_label",
    "label_axes",
    "new_figure",
    "save_axes",
    "save_figure",
]

# Colours of Okabe and Ito, distinguishable with every kind of colour blindness.
WINDOW_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Colours on which text is dark.
LIGHT = ("#E69F00", "#56B4E9", "#CC79A7")
# Hatches; 6 colours x 7 hatches give 42 distinct styles.
HATCHES = ("", "////", "....", "xxxx", "||||", "----", "\\\\\\\\")
BUSY, FREE, INK, FAINT = "#B4B9C0", "#EDF2F7", "#20262E", "#79818C"
# Disabled time is hatched in white on a colour that no window has.
DISABLED, DISABLED_HATCH = "#6B4446", "////"

SUFFIXES = (".png", ".svg", ".pdf")
FONT = 8.5


def check_picture_path(path: str | os.PathLike[str] | None) -> Path | None:
    """Return the path; ValueError for an unknown suffix, before any search starts."""
    if path is None:
        return None
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        suffixes = ", ".join(SUFFIXES)
        raise ValueError(
            f"{target}: a picture's suffix is one of {suffixes}, not {target.suffix!r}"
        )
    return target


def escape_label(text: object) -> str:
    """Return a text that matplotlib draws literally.

    Dollar signs are escaped (no formulas), and a leading underscore gets a space (it
    would hide the entry from a legend).
    """
    shown = str(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def new_figure(width: float, height: float, dpi: int = 130) -> Figure:
    """Return an empty figure of a size in inches, which notebooks display."""
    from slotkern.plotting.notebook_figure import NotebookFigure

    return NotebookFigure(figsize=(width, height), dpi=dpi, layout="constrained")


def label_axes(ax: Axes, across: str, up: str) -> None:
    """Label both axes and remove the frame at the top and right."""
    ax.set_xlabel(across, color=INK)
    ax.set_ylabel(up, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=FAINT)


def boxes(left: Any, right: Any, low: Any, high: Any) -> list[NDArray[np.float64]]:
    """Return the corners of rectangles, for a PolyCollection."""
    corners = ((left, low), (right, low), (right, high), (left, high))
    return list(np.stack([np.stack(corner, -1) for corner in corners], axis=1))


def save_figure(figure: Figure, target: Path | None) -> Figure:
    """Write a figure atomically to `target`, if given, and return the figure.

    Dates and random ids are removed: equal figures give equal bytes.
    """
    if target is None:
        return figure
    with extra():
        import matplotlib

    kind = target.suffix.lower()[1:]
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "slotkern"}):
        figure.savefig(drawn, format=kind, metadata=stamp)
    with open_atomic(target) as file:
        file.write(drawn.getvalue())
    return figure


def save_axes(ax: Axes, target: Path | None, title: str | None = None) -> Figure:
    """Set the title of axes, write their figure as `save_figure`, and return it."""
    if title is not None:
        ax.set_title(escape_label(title), loc="left", color=INK)
    figure: Any = ax.figure.figure
    return save_figure(figure, target)
