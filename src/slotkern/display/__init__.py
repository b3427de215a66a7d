"""Results as tables and pictures, for notebooks and for other libraries.

A class derived from `HasTable` returns its table from ``_as_table``; the base class
converts it to HTML, to a pandas frame, and to an Arrow table or stream. `HasPlot` adds
a picture. Compiled classes cannot have these bases, so they assign the methods instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slotkern.foundation.adapters import adapter

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from slotkern.display.table import Table

__all__ = ["HasPlot", "HasTable"]


class HasTable:
    """Base class of results with a table, `_as_table`."""

    __slots__ = ()

    def _as_table(self) -> Table:
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas.DataFrame.

        Times are numbers. With a clock, each time column has a column of dates next to
        it (``start_time`` for ``start``) in the zone of the clock; with a machine,
        ``node_name`` is next to ``node``.
        """
        frame: pd.DataFrame = adapter("frame_of")(self._as_table())
        return frame

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow.Table, with the columns of `to_pandas`."""
        return adapter("arrow_of")(self._as_table())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as an Arrow stream, for polars, duckdb or pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Return the table as HTML, which notebooks display."""
        from slotkern.display.html import html_of

        return html_of(self._as_table())


class HasPlot(HasTable):
    """Base class of results with a table and a picture."""

    __slots__ = ()

    def plot(self, *arguments: Any, **options: Any) -> Figure:
        """Return a picture, which notebooks display.

        Arguments and options are those of the function of `slotkern` that draws it; the
        page on notebooks lists them.
        """
        figure: Figure = adapter("draw_result")(self, *arguments, **options)
        return figure
