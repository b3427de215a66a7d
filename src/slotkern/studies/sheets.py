"""Tables of a report as data, with conversion to rich tables and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slotkern.foundation.extras import extra

with extra():
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

__all__ = ["Sheet"]

_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
}


@dataclass(frozen=True)
class Sheet:
    """A table: the name of its file, its title, and cells as text.

    `align` has one letter per column: l for text, r for numbers.
    """

    name: str
    title: str
    align: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_rich(self) -> Table:
        """Make a rich table for printing.

        Cells are Text objects: rich would interpret "[...]" in a str as markup and
        ":name:" as an emoji.
        """
        table = Table(
            title=Text(self.title, "table.title"),
            title_justify="left",
            box=SIMPLE_HEAD,
            pad_edge=False,
        )
        for letter, heading in zip(self.align, self.headings, strict=True):
            table.add_column(
                Text(heading), justify="left" if letter == "l" else "right"
            )
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def to_latex(self) -> str:
        """Make a LaTeX table with caption and label, for booktabs and graphicx.

        A table wider than the line is scaled to its width.
        """
        caption = _latex_text(" ".join(self.title.split()))
        lines = [
            r"% needs \usepackage{booktabs,graphicx}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{self.name}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{self.align}}}",
            r"\toprule",
            _latex_row(self.headings, "l" * len(self.align)),
            r"\midrule",
            *(_latex_row(row, self.align) for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _latex_row(cells: Sequence[str], align: str) -> str:
    shown = [_latex_text(cell) for cell in cells]
    for column, kind in enumerate(align):
        if kind == "r":  # set a minus sign, not a hyphen
            shown[column] = re.sub(r"(?<![\w.])-(?=[\d.])", "$-$", shown[column])
    return " & ".join(shown) + r" \\"
