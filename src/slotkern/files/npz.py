"""numpy's own archives: one structured array ``slots``, or an array per column."""

from __future__ import annotations

import io
import warnings
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.slots import make_slots

from .columns import (
    Columns,
    Fault,
    Format,
    column_names,
    of_text,
    plain_columns,
    row_place,
)


def _decode(data: bytes) -> Columns:
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise Fault("not a sound npz file: it is no zip archive")
    try:
        archive = np.load(io.BytesIO(data), allow_pickle=False)
        arrays = [(name, archive[name]) for name in archive.files]
    except Exception as error:  # whatever the parser trips over
        raise Fault(f"not a sound npz file: {error}") from None
    if [name for name, _ in arrays] == ["slots"]:
        slots = arrays[0][1]
        if slots.dtype.names is None:
            raise Fault(f"slots is of {slots.dtype}, not a structured array")
        return {name: slots[name] for name in slots.dtype.names}
    column_names(name for name, _ in arrays)
    return dict(arrays)


def _encode(slots: NDArray[Any]) -> bytes:
    columns = plain_columns(slots, "npz")
    for name, column in columns.items():
        columns[name] = of_text(name, column)  # objects would be pickled
    sink = io.BytesIO()
    with warnings.catch_warnings():
        # Names beyond Latin-1 take version 3.0, which numpy has read since 1.17.
        warnings.filterwarnings("ignore", "Stored array in format 3.0", UserWarning)
        np.savez(sink, allow_pickle=False, slots=make_slots(**columns))
    return sink.getvalue()


FORMAT = Format(_decode, _encode, lambda _, record: row_place(record))
