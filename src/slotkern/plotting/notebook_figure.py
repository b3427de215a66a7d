"""A figure that shows itself: once in a notebook, whatever was set up there before."""

from __future__ import annotations

import io

from slotkern.extras import extra

with extra():
    from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]


class NotebookFigure(Figure):
    """A figure without pyplot, which notebooks show as what a cell returns.

    With ``%matplotlib inline`` they have their own way for figures, and take it instead
    of this one; without, they know only what a figure says of itself.
    """

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png")
        return drawn.getvalue()
