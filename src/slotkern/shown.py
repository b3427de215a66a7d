"""What things show of themselves: a table, for notebooks and for other libraries.

A class tells by ``_shown`` what its table is. `Shown` makes of it what people and
libraries ask for: HTML, a frame of pandas, an Arrow table or stream; `Drawn` adds a
picture. A class of a compiled door, which has no such bases, takes over their methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from slotkern.shown_table import Table

__all__ = ["Drawn", "Shown"]


class Shown:
    """What has a table, `_shown`."""

    __slots__ = ()

    def _shown(self) -> Table:
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas.DataFrame.

        Times are numbers; with a clock there are dates too, as ``start_time`` beside
        ``start``, in its zone; with a machine, ``node_name`` beside ``node``.
        """
        from slotkern.files.tables import frame_of

        return frame_of(self._shown())

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow.Table, with the columns of `to_pandas`."""
        from slotkern.files.tables import arrow_of

        return arrow_of(self._shown())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table for whatever reads Arrow streams: polars, duckdb, pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The table as notebooks show it."""
        from slotkern.html_table import html_of

        return html_of(self._shown())


class Drawn(Shown):
    """What has a table and a picture."""

    __slots__ = ()

    def plot(self, *arguments: Any, **options: Any) -> Figure:
        """Return a picture, which a notebook shows by itself.

        Arguments and options are those of the function of `slotkern` that draws it; see
        the page on notebooks.
        """
        from slotkern.plotting.dispatch import draw_result

        return draw_result(self, *arguments, **options)
