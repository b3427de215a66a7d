"""Shell completion for options with a fixed set of values; counts in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["SHAPES", "complete_from", "format_count"]

SHAPES = ("ragged", "square")


def complete_from(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion callback for an option that takes one of the words.

    Parameters
    ----------
    words : iterable of str
        Allowed values; one that ends in a colon is the prefix of values with a
        parameter.
    """
    choices = tuple(words)

    def complete(incomplete: str) -> list[str]:
        return [word for word in choices if word.startswith(incomplete)]

    return complete


def format_count(count: int, thing: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    Examples
    --------
    >>> format_count(1, "job"), format_count(1200, "job")
    ('1 job', '1,200 jobs')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
