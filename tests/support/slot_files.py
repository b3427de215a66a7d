"""Slots and helpers shared by the tests of files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.files import FORMATS
from slotkern.files.slots import read_slots

SUFFIXES = list(FORMATS)
EXACT = [suffix for suffix, form in FORMATS.items() if form.is_typed]
HEADER = "node,start,end,performance,price\n"
SMALL = sk.make_slots(
    node=[4, 2, 4],
    start=[0, 0.1, 7],
    end=[5, np.inf, 9],
    performance=[2, 3.5, 2],
    price=[0, 1 / 3, 5e-324],
    memory=np.array([64, 128, 64], np.int16),
    site=["a", "", 'say "é", ok'],
    gpu=[True, False, True],
    load=np.array([0.5, np.nan, -np.inf], np.float32),
)


R1 = '{"node": 1, "start": 0, "end": 9, "performance": 1, "price": 1}'
R2 = R1.replace("1", "2", 1)


def read_text(tmp_path: Path, text: str | bytes, suffix: str = ".csv") -> NDArray[Any]:
    """Write a text to a slot file and read it as slots."""
    path = tmp_path / f"slots{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_slots(path)


def npz(**arrays: Any) -> bytes:
    """Return the bytes of an .npz archive."""
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


COLUMNS = {name: SMALL[name] for name in SMALL.dtype.names}
