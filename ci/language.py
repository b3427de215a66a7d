"""Checks the prose of the project: comments, docstrings, pages and help texts.

``python ci/language.py`` prints every sentence that matches a banned pattern, with its
file and line, and exits with 1 if there is one. ``--count`` prints how often each
pattern occurs in each part of the tree; ``--root PATH`` reads another checkout.

The list of patterns is ``BANNED``. Each entry contains the kinds of text it applies to
and what to write instead; ``docs/develop/glossary.md`` lists the terms. The check reads
Python (``ast`` and ``tokenize``), Cython, C++ and JavaScript comments, Markdown and
reStructuredText outside code blocks, and ``help=`` texts of commands.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Passage(NamedTuple):
    """A block of prose: the file relative to the root, its first line and the text."""

    path: str
    line: int
    kind: str  # "comment", "docstring", "page" or "help"
    text: str


class Pattern(NamedTuple):
    """A banned pattern, the kinds of text in which it is banned, and what to write."""

    name: str
    regex: re.Pattern[str]
    advice: str
    kinds: frozenset[str]


ALL = frozenset({"comment", "docstring", "page", "help"})
CODE = frozenset({"comment"})
PROSE = frozenset({"comment", "docstring"})


def _ban(
    name: str, regex: str, advice: str, kinds: frozenset[str] = ALL, flags: int = re.I
) -> Pattern:
    return Pattern(name, re.compile(regex, flags), advice, kinds)


#: Patterns are matched against single sentences with white space collapsed.
BANNED = (
    _ban(
        "relative clause as a sentence",
        r"^(What|Whether|Who|Whoever|Whatever|Whichever)\b(?!.*\?$)",
        "start with a noun or a verb: 'Returns whether ...', 'The rows that ...'",
        flags=0,
    ),
    _ban(
        "fronted genitive",
        r"^Of (?!course|the \d|\d)",
        "'For each block, the least key' instead of 'Of each block the least key'",
        flags=0,
    ),
    _ban(
        "where as if",
        r"^Where\b(?!.*\?$)|\bwhere (it|they|there|no|none|nothing|nobody|one|ones|many"
        r"|few|all|that|this|those|these|not|what|who|several|others|you|we) ",
        "write 'if', 'when' or 'because'",
        flags=0,
    ),
    _ban(
        "so many as a variable",
        r"\bso (many|much|few) (?!as\b)(?!that\b)\w+|\bas ever\b",
        "name the quantity: 'the n cheapest nodes'",
    ),
    _ban("of which", r"\bof (which|whom)\b|\bwhereof\b", "repeat the noun"),
    _ban(
        "agent without a name",
        r"\b(for|to|of|by|from|with|that|if|and) who (has|needs|wants|uses)\b"
        r"|\bwhoever\b",
        "name the actor: the caller, the user, the thread",
    ),
    _ban(
        "tell, say, hear, ask of things",
        r"\b(tells?|told|hears?|heard|says?|said|unheard)\b",
        "returns, reports, raises, prints, states, contains",
    ),
    _ban(
        "know, learn of things",
        r"\b(knows|knew|learns?|learnt|forgets?|forgot)\b",
        "stores, caches, computes, accepts",
    ),
    _ban(
        "look, stand, lend, seat",
        r"\b(looks?|looked|looking) (at|for|through|again|once)\b"
        r"|\b(stands?|stood) (?!for\b)|\b(lends?|lent|seats?)\b",
        "examines, searches, is stored, is listed",
        CODE,
    ),
    _ban(
        "branch misprediction",
        r"\bguess(ed|es)? wrong\b|\bwithout a guess\b",
        "branch misprediction",
    ),
    _ban(
        "prefetch",
        r"\b(is|are|be) on (its|their) way\b",
        "prefetched, or named exactly",
    ),
    _ban(
        "is no noun",
        r"(?<!there )\b(is|are|was|were) no "
        r"(?!longer|more|less|worse|other|different|(?!number)\w+er\b)",
        "'is not a number' instead of 'is no number'",
        PROSE,
    ),
    _ban(
        "beside, begin",
        r"\bbeside\b(?! :)|\bthe begin of\b",
        "besides, with, next to; the start of",
        PROSE,
    ),
    _ban(
        "archaic words",
        r"\b(nought|in vain|dearer|dearest|at the door|anew|thereof|theirs alone"
        r"|to be had|no sooner)\b",
        "plain words: zero, without result, more expensive, again",
    ),
)

SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\"'(])")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, with white space collapsed."""
    text = re.sub(r"(?m)^\s*[=~^-]{4,}\s*$", "", text)  # underlined headings
    paragraphs = re.split(r"\n\s*\n|\n\s*(?=[-*] )|\n(?=\|)", text)
    found: list[str] = []
    for paragraph in paragraphs:
        flat = " ".join(paragraph.split()).lstrip("-*#| ")
        found += [s for s in SENTENCE.split(flat) if s]
    return found


def passages(root: Path = ROOT, parts: tuple[str, ...] = ()) -> Iterator[Passage]:
    """Return all prose of the tracked files under ``parts`` (default: all parts)."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", *parts],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in sorted(listed):
        path = root / name
        if not path.is_file():
            continue
        read = READERS.get(path.suffix)
        if read is not None:
            text = path.read_text(encoding="utf-8")
            yield from (Passage(name, *found) for found in read(text))


def _blocks(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Join comments on consecutive lines to passages."""
    start, block = 0, list[str]()
    for line, text in [*lines, (-9, "")]:
        if block and line != start + len(block):
            yield start, "comment", "\n".join(block)
            block = []
        if not block:
            start = line
        block.append(text)


_C = re.compile(
    r"//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/"
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`',
    re.S,
)


def _c_comments(text: str) -> Iterator[tuple[int, str, str]]:
    found = []
    for match in _C.finditer(text):
        body = match["line"] if match["line"] is not None else match["block"]
        if body is None:
            continue
        first = text.count("\n", 0, match.start()) + 1
        for i, line in enumerate(body.split("\n")):
            found.append((first + i, line.strip(" */<")))
    return _blocks(found)


_PYX = re.compile(
    r'#(?P<line>[^\n]*)|"""(?P<doc>(?:\\.|.)*?)"""'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
    re.S,
)


def _cython(text: str) -> Iterator[tuple[int, str, str]]:
    found = []
    for match in _PYX.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["line"] is not None:
            found.append((line, match["line"].strip(" :")))
        elif match["doc"] is not None:
            yield line, "docstring", _without_examples(match["doc"])
    yield from _blocks(found)


def _python(text: str) -> Iterator[tuple[int, str, str]]:
    tree = ast.parse(text)
    with_docstring = (
        ast.Module,
        ast.ClassDef,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
    )
    for node in ast.walk(tree):
        if isinstance(node, with_docstring):
            doc = ast.get_docstring(node)
            if doc:
                yield node.body[0].lineno, "docstring", _without_examples(doc)
        elif (
            isinstance(node, ast.keyword)
            and node.arg == "help"
            and isinstance(node.value, ast.Constant)
        ):
            yield node.value.lineno, "help", str(node.value.value)
    found = [
        (token.start[0], token.string.lstrip("#: "))
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from _blocks(found)


def _without_examples(doc: str) -> str:
    """Drop doctest lines with their output, literal blocks and inline code."""
    kept, example = [], False
    for line in doc.splitlines():
        example = line.strip().startswith(">>>") or (example and bool(line.strip()))
        kept.append("" if example else line)
    return _without_code("\n".join(kept))


def _without_code(text: str) -> str:
    text = re.sub(r"(?ms)::\n\n(?:[ ]+[^\n]*\n|\n)+", "\n\n", text)
    return re.sub(r"``[^`]+``|`[^`]+`", "X", text)


def _page(text: str) -> Iterator[tuple[int, str, str]]:
    """Markdown or reStructuredText without code blocks, front matter and HTML."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]+", "", match[0])

    text = re.sub(r"(?ms)\A---\n.*?^---$", blank, text)
    text = re.sub(r"(?ms)^ *(```+|~~~+).*?^ *\1 *$", blank, text)
    text = re.sub(r"(?s)<!--.*?-->|<[^>\n]*>", blank, text)
    text = re.sub(r"``[^`]+``|`[^`]+`", "X", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    line = 1
    for block in re.split(r"(\n\s*\n)", text):
        if block.strip():
            yield line, "page", block
        line += block.count("\n")


READERS = {
    ".hpp": _c_comments,
    ".h": _c_comments,
    ".cpp": _c_comments,
    ".c": _c_comments,
    ".ts": _c_comments,
    ".js": _c_comments,
    ".pyx": _cython,
    ".pxd": _cython,
    ".py": _python,
    ".pyi": _python,
    ".md": _page,
    ".rst": _page,
}


class Finding(NamedTuple):
    """A sentence that matches a banned pattern."""

    passage: Passage
    pattern: Pattern
    sentence: str


def findings(root: Path = ROOT, parts: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Return every sentence under ``parts`` that matches a banned pattern."""
    for passage in passages(root, parts):
        for sentence in sentences(passage.text):
            for pattern in BANNED:
                if passage.kind in pattern.kinds and pattern.regex.search(sentence):
                    yield Finding(passage, pattern, sentence)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("parts", nargs="*", help="files or folders; default: all")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--count", action="store_true", help="print a table of counts")
    options = parser.parse_args()
    found = list(findings(options.root, tuple(options.parts)))
    if options.count:
        table = Counter(
            (f.pattern.name, "/".join(f.passage.path.split("/")[:2])) for f in found
        )
        for (pattern, part), count in sorted(table.items()):
            print(f"{count:6d}  {pattern:35s} {part}")
        print(f"{len(found):6d}  in all")
        return
    for passage, pattern, sentence in found:
        print(f"{passage.path}:{passage.line}: {pattern.name}: {sentence[:150]}")
        print(f"    {pattern.advice}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
