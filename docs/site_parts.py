"""What the site needs beside its extensions.

Names of slotkern in code become links, figures of examples are found without pyplot,
notebooks are fetched, and the command line is described by what it says of itself.
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
from sphinx.transforms import SphinxTransform

import slotkern

PUBLIC = frozenset(slotkern.__all__)
#: `find_window`, `sk.find_window`, `SlotPool.book()`
NAME = re.compile(r"(?:sk\.|slotkern\.)?(\w+)((?:\.\w+)?)(?:\(\))?")


class LinkNames(SphinxTransform):
    """Make links of names that are public, where they stand as code in a text."""

    default_priority = 400

    def apply(self, **options: Any) -> None:
        """Wrap them in references, which are resolved with all others."""
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
                member = ""  # attributes stand on the page of their class
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
    """A long signature of a compiled class as one: lines would be taken for several."""
    if what != "class":
        return None
    text = getattr(thing, "__text_signature__", None)
    return (" ".join(text.split()), None) if text and "\n" in text else None


#: What data says of itself is what its type says; this is said instead.
DATA = {
    "SLOT": "The fields of a slot, of which every slot array has these and any others.",
    "SWF": "The fields of the Standard Workload Format, in its order; -1 is unknown.",
    "GWF": "The fields of the Grid Workload Format, in its order; -1 is unknown.",
    "CRITERIA": "The criteria that a sweep alone optimizes, and what is best by each.",
    "POLICIES": "The policies of `replay` by name.",
    "CSS": "The cyclic scheduling scheme: one batch, alternatives by first fit.",
}


def described(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Describe data by what it holds, and attributes where their class lists them."""
    short = name.rpartition(".")[2]
    if short in DATA and not callable(thing):
        lines[:] = [DATA[short], "", *_held(thing), ""]
    for k, line in enumerate(lines):
        lines[k] = re.sub(r":obj:`(\w+) <[\w.]+>`", r"``\1``", line)


def _held(thing: Any) -> list[str]:
    """The fields of a type, or the entries of a mapping, as a list."""
    if fields := getattr(thing, "names", None):
        return [f"- ``{name}``: {thing[name]}" for name in fields]
    if isinstance(thing, dict):
        return [
            f"- ``{name}``: " + (said if isinstance(said, str) else f"``{said!r}``")
            for name, said in thing.items()
        ]
    return [f"``{thing!r}``"]


def figures(
    block: tuple[str, str, int],
    block_vars: dict[str, Any],
    gallery_conf: dict[str, Any],
) -> str:
    """The figure that a block of an example ends with: no picture needs pyplot."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    figure = block_vars["example_globals"].get("___")
    if not isinstance(figure, Figure):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=figure.dpi)
    return str(figure_rst([path], gallery_conf["src_dir"], _title(figure, block[1])))


def _title(figure: Any, text: str) -> str:
    """What stands above a picture, for those who do not see it."""
    said = [axes.get_title() for axes in figure.axes]
    first = next((each for each in said if each), "the picture of this example")
    return str(first).replace("\\$", "$").replace("\n", " ")


class Run(Directive):
    """Commands of a shell, and below them what they print when the page is built.

    The commands of one page run in one folder, so that a later block finds the files of
    an earlier one. Anything on standard error is a warning, and so fails the build.
    """

    has_content = True
    folders: ClassVar[dict[str, tempfile.TemporaryDirectory[str]]] = {}

    def run(self) -> list[nodes.Node]:
        """The commands and their output, as two blocks."""
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
    """Every command with its arguments and options, as `--help` says them."""

    def run(self) -> list[nodes.Node]:
        """Sections, one a command."""
        import typer

        from slotkern.commands.main import app

        group = typer.main.get_command(app)
        context = typer.Context(group, info_name="slotkern")
        lines = [line for each in _below(group, context) for line in _command(*each)]
        into = nodes.section()
        into.document = self.state.document
        text = StringList(lines, source="the command line")
        self.state.nested_parse(text, 0, into, match_titles=True)
        return into.children


def _below(group: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    """The commands of a group and of the groups in it, by their whole names."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = type(context)(command, context, name)
        if hasattr(command, "list_commands"):
            yield from _below(command, inner)
        else:
            yield inner.command_path.removeprefix("slotkern "), command, inner


def _command(name: str, command: Any, context: Any) -> list[str]:
    """One command in reStructuredText."""
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
    return [_escaped(line.strip()) for line in text.replace("\b", "").splitlines()]


def _escaped(text: str) -> str:
    return re.sub(r"([\\*`_|])", r"\\\1", text)


def notebooks(app: Sphinx) -> None:
    """Take what stands beside the other examples for pages, which are executed."""
    here = Path(app.srcdir)
    (here / "notebooks").mkdir(exist_ok=True)
    for path in sorted((here.parent / "examples").glob("*.ipynb")):
        shutil.copy2(path, here / "notebooks")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all of it."""
    app.add_transform(LinkNames)
    app.add_directive("commands", Commands)
    app.add_directive("run", Run)
    app.connect("builder-inited", notebooks)
    app.connect("autodoc-process-signature", on_one_line, priority=100)
    app.connect("autodoc-process-docstring", described, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
