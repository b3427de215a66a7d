"""Comments, docstrings, pages and help texts follow the rules of the language page.

The rules are the patterns of ``ci/language.py``; each must find its bad example below
and accept the good one, so that no rule is dead.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import slotkern as sk

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "develop" / "glossary.md"


def load() -> ModuleType:
    path = ROOT / "ci" / "language.py"
    spec = importlib.util.spec_from_file_location("language", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["language"] = module  # NamedTuple resolves its annotations there
    spec.loader.exec_module(module)
    return module


language = load()


@pytest.mark.parametrize("pattern", language.BANNED, ids=lambda p: p.name)
def test_no_text_matches_a_banned_pattern(pattern: object) -> None:
    found = [
        f"{f.passage.path}:{f.passage.line}: {f.sentence[:100]}"
        for f in FINDINGS
        if f.pattern is pattern
    ]
    assert found == []


FINDINGS = list(language.findings())

#: For each pattern a sentence that it must find, and a plain one that it must accept.
EXAMPLES = {
    "relative clause as a sentence": (
        "What the first thread makes.",
        "The value that the first thread makes. What is a slot?",
    ),
    "fronted genitive": (
        "Of each block the least key is kept.",
        "Of 100 mutants, 51 were found. Of course.",
    ),
    "where as if": (
        "It is faster where there are few nodes.",
        "The folder where slotkern is installed.",
    ),
    "so many as a variable": (
        "Sorts so many items at once.",
        "There are so many that sorting pays. As many as n.",
    ),
    "of which": ("The groups, of which one is left.", "One of the groups is left."),
    "agent without a name": (
        "An error for who has no clock.",
        "An error for callers without a clock.",
    ),
    "tell, say, hear, ask of things": (
        "The pool tells the sweep.",
        "The pool notifies the sweep.",
    ),
    "know, learn of things": ("The pool knows the bound.", "The known bound is used."),
    "look, stand, lend, seat": (
        "// The sweep looks at each slot.",
        "// The sweep examines each slot that a lookup returns.",
    ),
    "branch misprediction": (
        "Half of them are guessed wrong.",
        "Half of the branches are mispredicted.",
    ),
    "prefetch": ("The row is on its way.", "The row is prefetched."),
    "is no noun": (
        "A cell that is no number.",
        "There is no cell that is not a number, and none is no later than its end.",
    ),
    "beside, begin": (
        "The rows that fit beside the begin of a job.",
        "The rows besides those that fit at the start of a job.",
    ),
    "archaic words": ("It was read in vain.", "The read had no effect."),
}


@pytest.mark.parametrize("pattern", language.BANNED, ids=lambda p: p.name)
def test_each_pattern_finds_its_example(pattern: re.Pattern[str]) -> None:
    bad, good = EXAMPLES[pattern.name]  # type: ignore[attr-defined]
    found = [bool(pattern.regex.search(s)) for s in language.sentences(bad)]  # type: ignore[attr-defined]
    assert any(found)
    assert not any(pattern.regex.search(s) for s in language.sentences(good))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "text", "kinds"),
    [
        ("a.hpp", '// Adds.\nint a = f("// no");\n/* Ends. */', ["comment"] * 2),
        ("a.py", '"""Adds."""\nx = 1  # Counts.\n', ["docstring", "comment"]),
        ("a.py", "f(help='The file.')\n", ["help"]),
        ("a.pyx", '"""Adds."""\nx = "# no"  # yes', ["docstring", "comment"]),
        ("a.md", "Text.\n\n```\ncode of which\n```\n\nMore.", ["page"] * 2),
    ],
)  # fmt: skip
def test_prose_is_found_and_code_is_not(name: str, text: str, kinds: list[str]) -> None:
    found = list(language.READERS[Path(name).suffix](text))
    assert [kind for _, kind, _ in found] == kinds
    assert not any("no" in body or "code" in body for _, _, body in found)


def cpp_classes() -> Iterator[str]:
    """Names of classes, enumerations and concepts of the headers, nested ones too."""
    definition = re.compile(
        r"\b(?:struct|class|enum) (?:class )?(?:alignas\([^)]*\) )?"
        r"(\w+)(?: final)?\s*[:{]"
        r"|\bconcept (\w+) ="
    )
    for path in (ROOT / "src" / "_native" / "slotkern").rglob("*.hpp"):
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        yield from (match[1] or match[2] for match in definition.finditer(code))


def python_classes() -> Iterator[str]:
    """Names of all classes, nested ones and those of compiled modules included."""
    for path in (ROOT / "src" / "slotkern").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node.name
    package = ROOT / "src" / "slotkern"
    for path in (*package.rglob("*.pyx"), *package.rglob("*.pxi")):
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r"^ *(?:cdef )?class (\w+)", text, re.M)


@pytest.mark.parametrize("classes", [cpp_classes, python_classes])
def test_no_two_classes_share_a_name(classes) -> None:
    counts = Counter(classes())
    assert len(counts) > 50
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_public_name_is_documented() -> None:
    pages = [*(ROOT / "docs" / "reference").glob("*.rst"), GLOSSARY]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in sk.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_every_file_named_in_the_glossary_exists() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| `([\w/.]+)` \|", text, re.M)
    assert len(rows) > 40
    homes = (ROOT / "src" / "_native" / "slotkern", ROOT / "src" / "slotkern")
    assert [
        row for row in rows if not any((home / row).exists() for home in homes)
    ] == []


def test_the_glossary_defines_a_term_once() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    terms = Counter(re.findall(r"^\| ([^|]+) \|.*\| `", text, re.M))
    assert len(terms) > 40
    assert [term for term, count in terms.items() if count > 1] == []


ABBREVIATIONS = re.compile(
    r"\b(idx|cnt|tmp|cfg|mgr|proc|num_procs|res|vec|arr|dict_|lst|cb|msg|sz)\b"
)


def test_names_of_arguments_are_not_abbreviated() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{arg.lineno}: {arg.arg}"
        for path in (ROOT / "src" / "slotkern").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.arguments)
        for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs)
        if ABBREVIATIONS.fullmatch(arg.arg)
    ]
    assert found == []
