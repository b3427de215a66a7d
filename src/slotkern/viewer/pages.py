"""The function `view`: a schedule as one HTML file with data, script and style."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slotkern.files.atomic import AnyPath, as_path, open_atomic
from slotkern.foundation.checks import hint_keywords, integer, number, visible
from slotkern.plotting.times import parse_time
from slotkern.viewer.collect import collect_items, collect_own_items, make_background
from slotkern.viewer.packing import describe_scene, pack_columns, to_script_json
from slotkern.viewer.scene import Background, Items

if TYPE_CHECKING:
    from slotkern.typing import Time

__all__ = ["SUFFIXES", "View", "checked_page_path", "view"]

SUFFIXES = (".html", ".htm")


class View:
    """A schedule as an HTML page; made by `view`.

    A notebook displays it if it is the last value of a cell; `save` writes a file.
    Both contain the same page, which uses no network.

    Attributes
    ----------
    title : str
    height : int
        Height in a notebook, in pixels.
    """

    __slots__ = ("_page", "_summary", "height", "title")

    def __init__(self, title: str, height: int, summary: str, page: str) -> None:
        self.title, self.height, self._summary, self._page = (
            title,
            height,
            summary,
            page,
        )

    def __repr__(self) -> str:
        return visible(f"View({self._summary})")

    @property
    def html(self) -> str:
        """The page as text."""
        return self._page

    def save(self, path: AnyPath, *, refresh: float | None = None) -> None:
        """Write the page to a file, atomically.

        Parameters
        ----------
        path : path
            ``.html`` or ``.htm``.
        refresh : float, optional
            Seconds after which a browser loads the file again, for a file that is
            written again and again; at least 1, rounded up.

        Raises
        ------
        ValueError
            For another suffix, and for less than a second.
        OSError
            If the file cannot be written; no partial file is left.
        """
        target, page = checked_page_path(path), self.encoded(refresh)
        with open_atomic(target) as file:
            file.write(page)

    def encoded(self, refresh: float | None = None) -> bytes:
        """Return the page in ASCII; see `save`."""
        page = self._page
        if refresh is not None:
            seconds = math.ceil(number("refresh", refresh, least=1))
            again = f'<meta http-equiv="refresh" content="{seconds}">\n'
            page = page.replace("<title>", f"{again}<title>", 1)
        return page.encode("ascii", "xmlcharrefreplace")

    def _repr_html_(self) -> str:
        """Return an iframe with the page, which may only run its own script."""
        return (
            f'<iframe srcdoc="{escape(self._page)}" sandbox="allow-scripts" '
            f'title="{escape(visible(self.title))}" width="100%" '
            f'height="{self.height}" style="border:0"></iframe>'
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the page as text and as HTML, for notebooks."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def checked_page_path(path: AnyPath) -> Path:
    """Return the path of a page; raise ValueError for another suffix."""
    target = as_path(path)
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(
            f"{target}: a page's suffix is one of {known}, not {target.suffix!r}"
        )
    return target


@hint_keywords
def view(
    slots: Any,
    windows: Any = None,
    *,
    tasks: npt.NDArray[Any] | None = None,
    horizon: Time | None = None,
    title: str | None = None,
    height: int = 520,
) -> View:
    """Return an HTML page of a schedule: free and busy time, and windows.

    The page can be zoomed, moved, filtered and printed by mouse, touch or keys; it
    selects windows, steps through them and lists them as a table. Its colours are light
    or dark, as those of the reader's system. It is one HTML file and uses no network.

    Parameters
    ----------
    slots : structured array, SlotPool, or a result
        The free slots. A pool is shown with the bookings of its owners, an
        `Environment` with its tasks, a `Replay` with its jobs on their processors, a
        `Schedule` with all alternatives of a batch and the chosen ones, `Cycles` with
        the windows of each cycle, `Alternatives` and an `Execution` with the slots that
        were searched; a `Window`, `Plan` or `WindowTable` is shown alone.
    windows : Window, Plan, iterable or mapping of name to Window, or any of these
        The windows to show on the slots; by default those of `slots`.
    tasks : structured array, optional
        Spans in which nodes are occupied: fields node, start, end. By default all time
        of a node that is not free is busy.
    horizon : float or date, optional
        The right edge, in the slots' time units. By default the latest finite time.
    title : str, optional
        The title; by default a description of `slots` and `windows`.
    height : int, optional
        Height in a notebook, in pixels; at least 200.

    Returns
    -------
    View
        The page; ``save(path)`` writes it, and a notebook displays it.

    Raises
    ------
    ValueError
        If the horizon is not a finite time after the first start; for a replay whose
        jobs have no processors.
    TypeError
        If slots or tasks lack the fields node, start and end, or a window is invalid.

    Notes
    -----
    O(s log s) for s slots, tasks and parts. The page holds 20,000 nodes, 100,000 slots
    and 200 windows in less than 3 MB. It contains every slot, in compressed form.

    In names, invisible characters and characters that change the direction of text are
    shown as escapes.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 1], start=[0, 0, 60], end=[90, 40, 100],
    ...                       performance=[1, 2, 2], price=[1, 2, 2])
    >>> page = sk.view(slots, sk.find_window(slots, sk.Request(2, 30)))
    >>> page
    View(2 nodes, 3 free slots, 1 window)
    >>> page.html.startswith("<!doctype html>")
    True
    """
    tall = integer("height", height, least=200)
    # objects
    background = make_background(slots, tasks)
    items = collect_own_items(slots) if windows is None else collect_items(windows)
    # calendar
    clock = background.clock or items.clock
    edge = None if horizon is None else parse_time(clock, horizon, "horizon")
    # numbers
    named = (
        f"slotkern: {_default_title(slots, windows)}" if title is None else str(title)
    )
    about, columns = describe_scene(named, background, items, edge)
    # page
    page = _page(about, pack_columns(columns))
    return View(named, tall, _summary(background, items), page)


def _summary(background: Background, items: Items) -> str:
    """Return the numbers of nodes, free slots and windows as text."""
    free, count = len(background.free), len(items)
    nodes = len(np.union1d(background.nodes, items.parts["node"]))
    parts = [_count(nodes, background.noun)]
    if free or not count:
        parts.append(_count(free, "free slot"))
    return ", ".join([*parts, _count(count, items.noun)])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _default_title(slots: Any, windows: Any) -> str:
    """Return a title that describes the kind of the objects shown."""
    kinds = {
        "Replay": "a trace, replayed",
        "Schedule": "a batch and its alternatives",
        "Cycles": "cycles of batches",
        "Execution": "a batch as it ran",
        "Alternatives": "alternatives",
    }
    for thing in (windows, slots):
        if (kind := kinds.get(type(thing).__name__)) is not None:
            policy = getattr(thing, "policy", None)
            return f"{kind}, {policy}" if isinstance(policy, str) else kind
    return "free time and windows"


def _page(about: dict[str, Any], columns: str) -> str:
    script, style, policy = _load_assets()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(about['title'])}</title>\n<style>{style}</style>\n</head>\n"
        "<body>\n<noscript>This schedule is drawn by a script, which is part of this "
        "file.</noscript>\n"
        f'<script type="application/json" id="about">{to_script_json(about)}</script>\n'
        f'<script type="text/plain" id="columns">{columns}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


@lru_cache(maxsize=1)
def _load_assets() -> tuple[str, str, str]:
    """Return the script, the style, and the Content-Security-Policy.

    The policy allows exactly this script and this style, by their hashes.
    """
    here = Path(__file__).parent
    texts = [
        (here / f"viewer.{kind}").read_text(encoding="ascii").strip()
        for kind in ("js", "css")
    ]
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in texts
    ]
    policy = (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; "
        f"style-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'"
    )
    return texts[0], texts[1], policy
