"""Conversion of display tables to pandas frames and Arrow tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slotkern.display.table import Table
from slotkern.foundation.extras import extra

from .arrow import pyarrow, to_table
from .columns import plain_columns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["arrow_of", "frame_of"]


def frame_of(table: Table) -> pd.DataFrame:
    """Convert a table to a pandas.DataFrame, with dates in the zone of the clock."""
    with extra():
        import pandas as pd

    frame = pd.DataFrame(plain_columns(table.all_columns(), "pandas"))
    for name, utc in table.dates().items():
        zone = table.clock.origin.tzinfo
        frame[name] = pd.Series(pd.DatetimeIndex(utc, tz="UTC").tz_convert(zone))
    return frame


def arrow_of(table: Table) -> Any:
    """Convert a table to a pyarrow.Table, with dates in the zone of the clock."""
    pa = pyarrow()
    found = to_table(table.all_columns())
    for name, utc in table.dates().items():
        kind = pa.timestamp(table.clock.tick, tz=_zone(table.clock.zone))
        found = found.append_column(name, pa.array(utc).cast(kind))
    return found


def _zone(name: str | None) -> str:
    """Return the zone in the notation of Arrow: a name or an offset."""
    offset = (name or "UTC").removeprefix("UTC")
    return offset if re.fullmatch(r"[+-]\d\d:\d\d", offset) else name or "UTC"
