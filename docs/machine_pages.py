"""Extension of the site: its pages for programs and language models.

After the build, each page that was written in Markdown is also in the site as
Markdown, next to its HTML and named in it as an alternative. ``llms.txt`` lists the
pages by the sections of the site (llmstxt.org), and ``schemas/`` has the JSON Schemas
of ``slotkern schema``. The sources are copied: no page is built twice.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from slotkern.commands.schemas import SCHEMAS, schema_of

#: Pages of single names: the pages of their groups list them.
_NAMES = "reference/names/"


def is_markdown(env: BuildEnvironment, page: str) -> bool:
    """Return whether a page was written in Markdown."""
    return Path(env.doc2path(page)).suffix == ".md"


def name_alternative(
    app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any
) -> None:
    """Name the Markdown of a page in the head of its HTML."""
    if page in app.env.all_docs and is_markdown(app.env, page):
        name = f"{page.rpartition('/')[2]}.md"
        link = f'<link rel="alternate" type="text/markdown" href="{name}">'
        context["metatags"] = f"{context.get('metatags', '')}{link}"


def write_pages(app: Sphinx, error: Exception | None) -> None:
    """Write the Markdown pages, ``llms.txt`` and the schemas."""
    if error is not None or app.builder.format != "html":
        return
    site, env = Path(app.outdir), app.env
    for page in filter(lambda page: is_markdown(env, page), env.all_docs):
        target = site / f"{page}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(env.doc2path(page), target)
    (site / "llms.txt").write_text("\n".join(listing(env)) + "\n", encoding="utf-8")
    (site / "schemas").mkdir(exist_ok=True)
    for command in SCHEMAS:
        text = json.dumps(schema_of(command), indent=2)
        (site / "schemas" / f"{command.replace(' ', '-')}.json").write_text(text)


def listing(env: BuildEnvironment) -> Iterator[str]:
    """Yield the lines of ``llms.txt``: a section for each part of the site."""
    home = Path(env.doc2path("index")).read_text(encoding="utf-8")
    question = re.search(r"^\*(.+)\*$", home, re.M)
    assert question is not None, "the home page has no question"
    yield from ("# slotkern", "", f"> {question[1]}")
    for section in env.toctree_includes["index"]:
        yield from ("", f"## {env.titles[section].astext()}", "")
        yield from (line_of(env, page) for page in [section, *below(env, section)])


def below(env: BuildEnvironment, page: str) -> Iterator[str]:
    """Yield the pages under a page in the order of the site."""
    for inner in env.toctree_includes.get(page, ()):
        if not inner.startswith(_NAMES):
            yield inner
            yield from below(env, inner)


def line_of(env: BuildEnvironment, page: str) -> str:
    """Return the link to a page; its Markdown if there is one."""
    suffix = ".md" if is_markdown(env, page) else ".html"
    return f"- [{env.titles[page].astext()}]({page}{suffix})"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event handlers."""
    app.connect("html-page-context", name_alternative)
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
