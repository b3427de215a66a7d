"""Places of ledgers: files of SQLite, and URLs of PostgreSQL databases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from slotkern.files.atomic import AnyPath, as_path
from slotkern.foundation.checks import quote as shown

__all__ = [
    "Address",
    "as_place",
    "is_url",
    "parse_url",
]

_SCHEMES = ("postgresql://", "postgres://")
#: Parameters of the connection unless the URL has others: a lost peer is noticed.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}


def is_url(where: object) -> bool:
    """Return whether a place is the URL of a database."""
    return isinstance(where, str) and where.startswith(_SCHEMES)


def as_place(where: AnyPath) -> Path | str:
    """Return a URL unchanged and anything else as a path."""
    return where if isinstance(where, str) and is_url(where) else as_path(where)


class Address(NamedTuple):
    """A parsed URL: for libpq, the schema, and the text of messages."""

    url: str
    pool: str
    name: str  # without a password


def parse_url(url: str) -> Address:
    """Return the parts of ``postgresql://[user[:password]@]host/database?pool=name``.

    Raises
    ------
    ValueError
        If the name of the pool is missing, or not a word of lower-case letters, digits
        and underscores that begins with a letter.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    pool = options.pop("pool", None)
    user, at, host = parts.netloc.rpartition("@")
    place = f"postgresql://{user.partition(':')[0]}{at}{host}{parts.path}"
    if pool is None:
        raise ValueError(
            f"{place}: the name of the pool is missing; write {place}?pool=NAME"
        )
    if not re.fullmatch("(?!pg_)[a-z][a-z0-9_]{0,50}", pool):
        raise ValueError(
            f"{place}: pool={shown(pool)} is not allowed: use at most 51 lower-case "
            "letters, digits and underscores, a letter first, and not pg_"
        )
    query = urlencode(_DEFAULTS | options, quote_via=quote)
    full = f"postgresql://{parts.netloc}{parts.path}?{query}"
    return Address(full, pool, f"{place}?pool={pool}")
