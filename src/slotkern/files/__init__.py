"""File formats for slots by suffix. A new format is a module and an entry below."""

from . import arrow, csv, json, npz
from .columns import Format

__all__ = ["FORMATS", "SUFFIXES", "Format"]

FORMATS: dict[str, Format] = {
    ".csv": csv.FORMAT,
    ".parquet": arrow.FORMAT,
    ".json": json.JSON,
    ".jsonl": json.JSON_LINES,
    ".npz": npz.FORMAT,
}

#: All suffixes in words, for help and messages.
SUFFIXES = " or ".join(", ".join(FORMATS).rsplit(", ", 1))
