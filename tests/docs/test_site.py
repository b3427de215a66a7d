"""Tests of the site: reference, gallery, and the built pages in a real browser.

`make docs` builds the pages; without them, or without a browser, the tests that need
them are skipped with a reason.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

import slotkern as sk

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*/*.py"))
PLACES = ("left", "center")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

built = pytest.mark.skipif(not SITE.exists(), reason="no pages: make docs builds them")


# --- sources


def test_reference_lists_all_public_names() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.rst")
    listed = [
        name
        for page in pages
        for block in re.findall(
            r"currentmodule:: slotkern\n(.*?)(?=\.\. currentmodule|\Z)",
            page.read_text(encoding="utf-8"),
            re.S,
        )
        for name in re.findall(r"^   (\w+)$", block, re.M)
    ]
    assert sorted(listed) == sorted(sk.__all__)


def test_gallery_titles_are_questions() -> None:
    assert len(GALLERY) >= 20
    titles = [ast.get_docstring(ast.parse(path.read_text())) for path in GALLERY]
    assert all(title and title.splitlines()[0].endswith("?") for title in titles)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("path", GALLERY, ids=[path.stem for path in GALLERY])
def test_gallery_example_ends_with_figure(path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    pytest.importorskip("numba")
    *body, last = ast.parse(path.read_text(encoding="utf-8")).body
    assert isinstance(last, ast.Expr)
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(ast.Module(body, []), str(path), "exec"), names)
    shown = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
    assert isinstance(shown, figure.Figure)
    assert any(axes.has_data() for axes in shown.axes)
    shown.canvas.draw()  # text that does not fit causes a warning, which is an error
    titles = [axes.get_title(loc=place) for axes in shown.axes for place in PLACES]
    assert any(titles) or shown.get_suptitle()


# --- built pages


class Links(HTMLParser):
    """The link targets of a page, and the anchors that it defines."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, Any]]) -> None:
        """Collect targets and anchors of a tag."""
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        self.targets += [found[key] for key in ("href", "src") if found.get(key)]


@built
def test_internal_links_are_valid() -> None:
    found = [
        page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts
    ]
    pages = {page: Links(page) for page in found}
    assert len(pages) > 100
    dead = []
    for page, links in pages.items():
        for link in links.targets:
            path, name = urldefrag(link)
            if re.match(r"\w+:|//", path):
                continue
            target = (page.parent / unquote(path.split("?")[0])).resolve()
            target = target if path else page
            linked = pages.get(target)
            if not target.exists() or (name and linked and name not in linked.names):
                dead.append(f"{page.relative_to(SITE)}: {link}")
    assert not dead


@built
def test_pages_for_programs() -> None:
    listed = (SITE / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"^- \[.+\]\((.+)\)$", listed, re.M)
    assert listed.startswith("# slotkern\n\n> Which n of these unlike nodes")
    assert [link for link in links if not (SITE / link).is_file()] == []
    sources = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/howto").glob("*.md")]
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in sources]
    assert {*pages} - {*links} == {"index.md"}
    for page in pages:
        assert (SITE / page).read_bytes() == (ROOT / "docs" / page).read_bytes()
    schema = json.loads((SITE / "schemas" / "find.json").read_bytes())
    assert schema["properties"]["window"]["type"] == ["object", "null"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if BROWSER is None:
        pytest.skip("no chromium (Debian: chromium)")
    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
    flags += ["--disable-background-networking"]
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=flags)
        yield started
        started.close()


def opened(browser: Any, scheme: str = "light") -> tuple[Any, list[str]]:
    """Return a new page, and the list of its network requests."""
    page, requests = browser.new_page(color_scheme=scheme), []
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("file:", "data:", "blob:"))
            else requests.append(request.url)
        ),
    )
    return page, requests


@built
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("find_window", "reference/names/slotkern.find_window.html"),
        ("budget", "requests.html"),
        ("EASY", "replay.html"),
        ("cancel", "howto.html"),
        ("slurm", "howto.html"),
        ("lock", "howto.html"),
        ("gpu", "howto/share-nodes.html"),
        ("rack", "howto/one-rack.html"),
        ("price", "howto/cheapest-hours.html"),
        ("when", "howto/when.html"),
    ],
)
def test_search_finds_a_page_among_the_first_three(
    browser: Any, words: str, page: str
) -> None:
    shown, requests = opened(browser)
    shown.goto(f"{(SITE / 'search.html').as_uri()}?q={words}")
    shown.wait_for_selector("#search-results p.search-summary", timeout=20_000)
    shown.wait_for_function(
        "document.querySelector('#search-results p.search-summary').innerText"
        ".match(/[0-9]/)"
    )
    links = shown.locator("#search-results ul.search li > a").all()
    found = [link.get_attribute("href").split("?")[0] for link in links[:3]]
    assert any(each.split("#")[0].endswith(page) for each in found), found
    assert requests == []
    shown.close()


PAGES = [
    "index",
    "start",
    "guides",
    "machine",
    "gallery/index",
    "gallery/1_find/plot_01_tonight",
    "reference/searching",
    "reference/commands",
    "reference/names/slotkern.SlotPool",
    "science",
    "peers",
]


@built
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_page_meets_wcag(browser: Any, name: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    shown, requests = opened(browser, scheme)
    shown.goto((SITE / f"{name}.html").as_uri())
    assert shown.locator("html").get_attribute("data-theme") == scheme
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    found = axe.Axe().run(shown, options=rules).response["violations"]
    violations = [
        (each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found
    ]
    assert violations == []
    assert requests == []
    shown.close()


@built
def test_help_texts_show_options_as_they_are_typed() -> None:
    page = (SITE / "reference" / "commands.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", page[page.index("<article") :])
    assert "book it with --book" in text
    assert not re.findall("\u2013[a-z]|`|[\u2018\u2019\u201c\u201d]", text)


@built
def test_pages_fit_a_phone_screen(browser: Any) -> None:
    shown, _ = opened(browser)
    shown.set_viewport_size({"width": 360, "height": 740})
    for name in ("index", "start", "howto", "criteria", "gallery/index", "science"):
        shown.goto((SITE / f"{name}.html").as_uri())
        wide = shown.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, name
    shown.close()


@built
@pytest.mark.parametrize(("width", "kind"), [(360, "narrow"), (1280, "wide")])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_of_the_home_page_suit_the_width(
    browser: Any, width: int, kind: str, scheme: str
) -> None:
    shown, _ = opened(browser, scheme)
    shown.set_viewport_size({"width": width, "height": 740})
    shown.goto((SITE / "index.html").as_uri())
    pictures = [
        each for each in shown.locator("article img").all() if each.is_visible()
    ]
    assert len(pictures) == 2
    for each in pictures:
        assert f"only-{kind}" in each.get_attribute("class").split()
        assert each.evaluate("it => it.clientWidth / it.naturalWidth") > 0.4
    shown.close()
