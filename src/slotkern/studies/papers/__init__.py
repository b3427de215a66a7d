"""The papers' studies as TOML files, and the numbers that the papers print.

``NAME.toml`` is the study NAME; ``published.toml`` holds the numbers of all papers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["PAPERS", "published", "study_text"]

_PUBLISHED = "published.toml"


def _names() -> tuple[str, ...]:
    files = {file.name for file in resources.files(__package__).iterdir()}
    return tuple(
        sorted(
            name.removesuffix(".toml")
            for name in files - {_PUBLISHED}
            if name.endswith(".toml")
        )
    )


#: The names of the papers' studies.
PAPERS = _names()


def study_text(name: str) -> str:
    """Return the TOML text of one of the papers' studies."""
    return _read(f"{name}.toml")


def published(path: Any) -> Any:
    """Return the published numbers at a dotted path, such as ``aep.quality.start``.

    An argument that is not a path (numbers given in the study itself) is returned
    unchanged.

    Returns
    -------
    float, list or dict
        A number, numbers along a sweep, or numbers by algorithm (a string if the paper
        gives no number).

    Raises
    ------
    ValueError
        If there is nothing at the path.

    Examples
    --------
    >>> from slotkern.studies.papers import published
    >>> published("aep.quality.runtime")["minruntime"]
    33
    """
    if not isinstance(path, str):
        return path
    figures: Any = _all_published()
    for key in path.split("."):
        if not isinstance(figures, Mapping) or key not in figures:
            raise ValueError(f"there are no published figures at {path!r}")
        figures = figures[key]
    return figures


@cache
def _all_published() -> dict[str, Any]:
    return tomllib.loads(_read(_PUBLISHED))


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
