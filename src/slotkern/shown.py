"""Former names of `slotkern.display`, for extension modules compiled before it."""

from slotkern.display import HasPlot as Drawn
from slotkern.display import HasTable as Shown

__all__ = ["Drawn", "Shown"]
