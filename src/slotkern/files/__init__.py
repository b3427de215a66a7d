"""File formats for slots by suffix. A new format is a module and an entry below."""

from . import arrow, csv, json, npz
from .columns import Format

__all__ = ["FORMATS", "Format"]

FORMATS: dict[str, Format] = {
    ".csv": csv.FORMAT,
    ".parquet": arrow.FORMAT,
    ".json": json.JSON,
    ".jsonl": json.JSON_LINES,
    ".npz": npz.FORMAT,
}
