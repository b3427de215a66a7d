"""File formats for slots by suffix. A new format is a module and an entry below."""

from collections.abc import Iterable

from . import arrow, csv, json, npz
from .columns import Format

__all__ = ["FORMATS", "SUFFIXES", "Format", "in_words"]

FORMATS: dict[str, Format] = {
    ".csv": csv.FORMAT,
    ".parquet": arrow.FORMAT,
    ".json": json.JSON,
    ".jsonl": json.JSON_LINES,
    ".npz": npz.FORMAT,
}


def in_words(suffixes: Iterable[str]) -> str:
    """Return suffixes as a list of alternatives, for help and messages.

    Examples
    --------
    >>> in_words([".csv", ".json", ".npz"])
    '.csv, .json or .npz'
    """
    return " or ".join(", ".join(suffixes).rsplit(", ", 1))


#: All suffixes in words.
SUFFIXES = in_words(FORMATS)
