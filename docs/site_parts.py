"""Extensions of the site.

Names of slotkern in code become links, figures of examples are found without pyplot,
notebooks are copied, and the page of the command line is generated from its help texts.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform

import slotkern

PUBLIC = frozenset(slotkern.__all__)
#: `find_window`, `sk.find_window`, `SlotPool.book()`
NAME = re.compile(r"(?:sk\.|slotkern\.)?(\w+)((?:\.\w+)?)(?:\(\))?")


class Search(SearchEnglish):
    """The index of the search, with words of questions that others leave out."""

    stopwords = SearchEnglish.stopwords - {"when", "where"}


class LinkNames(SphinxTransform):
    """Convert public names in inline code to links."""

    default_priority = 400

    def apply(self, **options: Any) -> None:
        """Wrap the names in references, which Sphinx resolves."""
        for literal in [*self.document.findall(nodes.literal)]:
            found = NAME.fullmatch(literal.astext())
            inside = isinstance(
                literal.parent,
                (nodes.reference, nodes.title, addnodes.pending_xref),
            )
            if found is None or inside or found[1] not in PUBLIC:
                continue
            thing = getattr(slotkern, found[1])
            member = found[2] if hasattr(thing, found[2][1:] or "__doc__") else ""
            if member and not callable(getattr(thing, member[1:])):
                member = ""  # attributes are on the page of their class
            link = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=f"slotkern.{found[1]}{member}",
                refexplicit=True,
                refwarn=False,
                refdoc=self.env.docname,
            )
            literal.replace_self(link)
            link += literal


def on_one_line(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, given: Any, result: Any
) -> tuple[str, Any] | None:
    """Join the lines of a compiled class's signature: Sphinx expects one per line."""
    if what != "class":
        return None
    text = getattr(thing, "__text_signature__", None)
    return (" ".join(text.split()), None) if text and "\n" in text else None


#: Descriptions of data, instead of the docstrings of their types.
DATA = {
    "SLOT": "The required fields of a slot array; further fields are allowed.",
    "SWF": "The fields of the Standard Workload Format, in its order; -1 is unknown.",
    "GWF": "The fields of the Grid Workload Format, in its order; -1 is unknown.",
    "CRITERIA": "The criteria optimized by a sweep alone, with their optima.",
    "POLICIES": "The policies of `replay` by name.",
    "CSS": "The cyclic scheduling scheme: one batch, alternatives by first fit.",
}


def described(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Describe data by its contents, and attributes in the list of their class."""
    short = name.rpartition(".")[2]
    if short in DATA and not callable(thing):
        lines[:] = [DATA[short], "", *_contents(thing), ""]
    for k, line in enumerate(lines):
        lines[k] = re.sub(r":obj:`(\w+) <[\w.]+>`", r"``\1``", line)


def _contents(thing: Any) -> list[str]:
    """List the fields of a dtype, or the entries of a mapping."""
    if fields := getattr(thing, "names", None):
        return [f"- ``{name}``: {thing[name]}" for name in fields]
    if isinstance(thing, dict):
        return [
            f"- ``{name}``: " + (value if isinstance(value, str) else f"``{value!r}``")
            for name, value in thing.items()
        ]
    return [f"``{thing!r}``"]


def figures(
    block: tuple[str, str, int],
    block_vars: dict[str, Any],
    gallery_conf: dict[str, Any],
) -> str:
    """Save the figure that ends a block of an example; pyplot is not needed."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    figure = block_vars["example_globals"].get("___")
    if not isinstance(figure, Figure):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=figure.dpi)
    return str(figure_rst([path], gallery_conf["src_dir"], _title(figure, block[1])))


def _title(figure: Any, text: str) -> str:
    """Return the title of a picture, used as its alternative text."""
    titles = [axes.get_title() for axes in figure.axes]
    first = next((title for title in titles if title), "the picture of this example")
    return str(first).replace("\\$", "$").replace("\n", " ")


class Run(Directive):
    """Runs shell commands when the page is built and shows their output.

    The commands of one page share a folder, so later blocks find the files of earlier
    ones. Output on standard error fails the build.
    """

    has_content = True
    folders: ClassVar[dict[str, tempfile.TemporaryDirectory[str]]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the commands and their output as two blocks."""
        commands = "\n".join(self.content)
        env = self.state.document.settings.env
        folder = self.folders.setdefault(env.docname, tempfile.TemporaryDirectory())
        here = f'slotkern() {{ {shlex.quote(sys.executable)} -m slotkern "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", here + commands],
            cwd=folder.name,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stderr:
            raise self.error(f"{commands}\n{done.stderr}")
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        output = "\n".join(lines).strip("\n")
        shown = [nodes.literal_block(commands, commands, language="sh")]
        if output:
            shown.append(nodes.literal_block(output, output, language="text"))
            shown[-1]["classes"].append("output")
        return list(shown)


def one_style(gallery_conf: dict[str, Any], name: str) -> None:
    """Give all pictures of the gallery the style of the package's own pictures."""
    import matplotlib as mpl

    from slotkern.plotting.style import FAINT, INK

    mpl.rcParams.update(
        {
            "axes.labelcolor": INK,
            "axes.labelsize": 9,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": 10.5,
            "figure.dpi": 130,
            "figure.titlesize": 10.5,
            "font.size": 9,
            "legend.fontsize": 8.5,
            "legend.frameon": False,
            "xtick.color": FAINT,
            "ytick.color": FAINT,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
        }
    )


class Commands(Directive):
    """Lists every command with its arguments and options, from its help texts."""

    def run(self) -> list[nodes.Node]:
        """Return one section per command."""
        import typer

        from slotkern.commands.main import app

        group = typer.main.get_command(app)
        context = typer.Context(group, info_name="slotkern")
        lines = [line for each in _below(group, context) for line in _command(*each)]
        into = nodes.section()
        into.document = self.state.document
        text = StringList(lines, source="the command line")
        self.state.nested_parse(text, 0, into, match_titles=True)
        for section in into.children:  # quotes and hyphens stay as they are typed
            section["support_smartquotes"] = False
        return into.children


def _below(group: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the commands of a group and its subgroups with their full names."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = type(context)(command, context, name)
        if hasattr(command, "list_commands"):
            yield from _below(command, inner)
        else:
            yield inner.command_path.removeprefix("slotkern "), command, inner


def _command(name: str, command: Any, context: Any) -> list[str]:
    """Return the reStructuredText of one command."""
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [name, "-" * len(name), "", *_paragraphs(command.help or ""), ""]
    lines += [".. code-block:: text", "", f"   {context.command_path} {usage}", ""]
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            record = (parameter.make_metavar(context), getattr(parameter, "help", ""))
        if "--help" not in record[0]:
            rows.append((record[0], record[1] or ""))
    if rows:
        lines += [".. list-table::", "   :widths: 35 65", "   :class: options", ""]
    for term, text in rows:
        lines += [f"   * - ``{term}``", f"     - {_escaped(' '.join(text.split()))}"]
    return [*lines, ""]


def _paragraphs(text: str) -> list[str]:
    lines = [line.strip() for line in text.replace("\b", "").splitlines()]
    return _escaped("\n".join(lines)).split("\n")


def _escaped(text: str) -> str:
    """Return a help text as reStructuredText: options and text in backticks as code."""
    pieces = re.split(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*)", text)
    plain = [re.sub(r"([\\*`_|])", r"\\\1", each) for each in pieces[::3]]
    code = [one or other for one, other in zip(pieces[1::3], pieces[2::3], strict=True)]
    literal = [rf"\ ``{each}``\ " for each in code]
    return "".join(
        each for pair in zip(plain, [*literal, ""], strict=True) for each in pair
    )


def notebooks(app: Sphinx) -> None:
    """Copy the example notebooks into the site, which executes them."""
    here = Path(app.srcdir)
    (here / "notebooks").mkdir(exist_ok=True)
    for path in sorted((here.parent / "examples").glob("*.ipynb")):
        shutil.copy2(path, here / "notebooks")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register transforms, directives and event handlers."""
    app.add_transform(LinkNames)
    app.add_search_language(Search)
    app.add_directive("commands", Commands)
    app.add_directive("run", Run)
    app.connect("builder-inited", notebooks)
    app.connect("autodoc-process-signature", on_one_line, priority=100)
    app.connect("autodoc-process-docstring", described, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
