"""Former names of `slotkern.display_table`, for extension modules compiled before."""

from slotkern.display_table import Table
from slotkern.display_table import join_nodes as joined

__all__ = ["Table", "joined"]

setattr(Table, "of", staticmethod(Table.from_array))  # noqa: B010
