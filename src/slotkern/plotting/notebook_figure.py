"""A figure that a notebook displays once, with or without ``%matplotlib inline``."""

from __future__ import annotations

import io

from slotkern.foundation.extras import extra

with extra():
    from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]


class NotebookFigure(Figure):
    """A figure without pyplot that notebooks display as the result of a cell.

    With ``%matplotlib inline``, IPython uses its own formatter for figures; without it,
    IPython calls `_repr_png_`.
    """

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png")
        return drawn.getvalue()
