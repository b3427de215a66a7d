"""Words: what a shell offers for options that take one of some, and one of a thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["SHAPES", "complete_from", "format_count"]

SHAPES = ("ragged", "square")


def complete_from(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what completes an option that takes one of the words.

    Parameters
    ----------
    words : iterable of str
        Those that end in a colon go on with what no shell can know.
    """
    known = tuple(words)

    def complete(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


def format_count(count: int, thing: str) -> str:
    """Return so many things in words.

    Examples
    --------
    >>> counted(1, "job"), counted(1200, "job")
    ('1 job', '1,200 jobs')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
