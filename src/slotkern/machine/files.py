"""Tables of a machine in files: csv and parquet of any columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slotkern.files.arrow import pyarrow
from slotkern.files.whole import AnyPath, as_path

from .frames import columns_of

__all__ = ["read_columns"]


def read_columns(path: AnyPath, texts: Sequence[str] = ()) -> dict[str, Any]:
    """Return the columns of a table in a file.

    Parameters
    ----------
    path : path
        ``.csv`` with a header line, or ``.parquet``.
    texts : sequence of str
        Columns of a csv file that stay text, though they may look like numbers.

    Raises
    ------
    ValueError
        For another suffix, or what is no such file, naming it.
    OSError
        If it cannot be read.
    """
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: the suffix {suffix!r} is not one of .csv, .parquet")
    data = path.read_bytes()
    pa = pyarrow()
    try:
        source = pa.BufferReader(data)
        if suffix == ".parquet":
            table = pyarrow("parquet").read_table(source)
        else:
            csv = pyarrow("csv")
            # Dates stay text: what they mean is for the clock to say.
            kinds = {name: pa.string() for name in texts}
            convert = csv.ConvertOptions(column_types=kinds, timestamp_parsers=["-"])
            table = csv.read_csv(source, convert_options=convert)
        return columns_of(table, str(path))
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: no sound table: {reason}") from None
