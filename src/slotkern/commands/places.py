"""Arguments that are a file, or the URL of a ledger in a database.

Commands use a `LedgerUrl` as they use a path: for its text, its name and its suffix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slotkern.files.atomic import as_path
from slotkern.foundation.extras import extra
from slotkern.ledger.places import is_url, parse_url

with extra():
    import typer

__all__ = ["LedgerUrl", "path", "where_of"]


class LedgerUrl:
    """The URL of a ledger; its text hides a password.

    Attributes
    ----------
    url : str
    name : str
        The name of the pool.
    suffix : str
        That of ledgers in files.
    """

    suffix = ".db"

    def __init__(self, url: str) -> None:
        address = parse_url(url)
        self.url, self.name, self._text = url, address.pool, address.name

    def __str__(self) -> str:
        """Return the URL without a password."""
        return self._text

    def __eq__(self, other: object) -> bool:
        """Return whether another value is the same URL."""
        return isinstance(other, LedgerUrl) and other.url == self.url

    def __hash__(self) -> int:
        """Return the hash of the URL."""
        return hash(self.url)

    def exists(self) -> bool:
        """Return False: nothing is in the file system."""
        return False


def path(value: Any) -> Any:
    """Return a Path, or the LedgerUrl of a URL. The help shows the name of this."""
    if isinstance(value, Path | LedgerUrl):
        return value
    try:
        return LedgerUrl(value) if is_url(value) else as_path(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def where_of(place: Path | LedgerUrl) -> Path | str:
    """Return the place as `SlotPool.open` takes it."""
    return place.url if isinstance(place, LedgerUrl) else place
