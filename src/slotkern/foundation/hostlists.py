"""Hostlists: many node names as one short text, such as ``rack[1-2]n[01-16]``.

`expand` reads the notation of Slurm, PBS and ClusterShell, `fold` writes it. For every
list of names, ``expand(fold(names)) == names``: order and repetitions are preserved.

Cost: `expand` is linear in the number of names that it returns, which it checks before
it allocates them. `fold` takes linear time for each number that a name contains.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product

from slotkern.foundation.checks import quote

__all__ = ["MAX_NAMES", "abridge", "count", "expand", "fold", "is_hostlist", "quoted"]

#: The upper bound for the names of one hostlist.
MAX_NAMES = 2**20
#: The characters with a meaning in a hostlist.
_SPECIAL = frozenset("[],")
#: The most digits of a number; longer ones are text.
_DIGITS = 18
_RANGE = re.compile(rf"([0-9]{{1,{_DIGITS}}})(?:-([0-9]{{1,{_DIGITS}}}))?")
_TOKENS = re.compile(rf"[0-9]{{1,{_DIGITS}}}|[^0-9]+")
#: A term: a quoted name, or text outside of and numbers within brackets.
_QUOTED = re.compile(r'\s*"((?:[^"]|"")*)"\s*(,|$)')
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")

_Range = tuple[int, int, int]  # first, last, least number of digits
_Term = list[str | list[_Range]]


def is_hostlist(text: str) -> bool:
    """Return whether a text contains a bracket or a comma, or begins with a quote.

    Any other text is a single name, and so is a text with control characters.
    """
    return text[:1] == '"' or (_is_special(text) and text.isprintable())


def _is_special(text: str) -> bool:
    return text[:1] == '"' or not _SPECIAL.isdisjoint(text)


def expand(text: str, most: int = MAX_NAMES) -> list[str]:
    """Return the names of a hostlist, in its order.

    Parameters
    ----------
    text : str
        Names and ranges, separated by commas: ``n1,n[3-5]``. Brackets hold numbers and
        ranges; the first number of a range has the least number of digits of all:
        ``n[001-004,007]``. Several brackets in a term yield all combinations, the last
        one varying fastest. A name in double quotes is literal (``""`` for a quotation
        mark).
    most : int
        The largest allowed number of names.

    Raises
    ------
    ValueError
        For brackets that do not close or hold anything but numbers and ranges, for an
        empty name, for a range that ends before it begins, and for more than `most`
        names.

    Examples
    --------
    >>> from slotkern.foundation.hostlists import expand
    >>> expand("rack[1-2]n[09-10],gpu7")
    ['rack1n09', 'rack1n10', 'rack2n09', 'rack2n10', 'gpu7']
    >>> expand('"gpu[a]"')
    ['gpu[a]']
    """
    if not _is_special(text):
        return [text]
    terms = _terms(text)
    _counted(text, terms, most)
    return [name for term in terms for name in _names(term)]


def _counted(text: str, terms: list[_Term], most: int) -> int:
    total = sum(map(_size, terms))
    if total > most:
        size = f"{total:,}" if total < 10**_DIGITS else f"more than 10^{_DIGITS}"
        raise ValueError(
            f"hostlist {quote(text)} has {size} nodes; at most {most:,} are allowed"
        )
    return total


def count(text: str, most: int = MAX_NAMES) -> int:
    """Return the number of names of a hostlist, without creating them.

    Raises
    ------
    ValueError
        As `expand` does.

    Examples
    --------
    >>> from slotkern.foundation.hostlists import count
    >>> count("n[0000-9999]")
    10000
    """
    return _counted(text, _terms(text), most) if _is_special(text) else 1


def quoted(name: str) -> str:
    """Return the hostlist of one name: the name, in quotes if it needs them.

    Examples
    --------
    >>> from slotkern.foundation.hostlists import quoted
    >>> quoted("n1"), quoted("gpu[a]")
    ('n1', '"gpu[a]"')
    """
    if not _is_special(name) and name == name.strip():
        return name
    inner = name.replace('"', '""')
    return f'"{inner}"'


def fold(names: Iterable[str], between: str = ",") -> str:
    """Return the hostlist of names, which `expand` turns into the same list.

    Neighbours in the list are merged if they differ in one number. A name that contains
    a bracket or a comma, or begins or ends with a blank, is quoted. `between` separates
    the terms: a comma, and blanks for readability.

    Examples
    --------
    >>> from slotkern.foundation.hostlists import fold
    >>> fold(["n001", "n002", "n003", "n007", "login"])
    'n[001-003,007],login'
    >>> fold(f"rack{r}n{k:02}" for r in (1, 2) for k in range(1, 17))
    'rack[1-2]n[01-16]'
    """
    terms = [_tokens(name) for name in names]
    merged = len(terms) + 1
    while len(terms) < merged:
        merged = len(terms)
        terms = [*_merged(terms)]
    return between.join(map(_text, terms))


def abridge(names: Sequence[str], most: int = 60, between: str = ",") -> str:
    """Return the hostlist of names, cut to the first names if it is too long.

    Parameters
    ----------
    names : sequence of str
    most : int
        The largest number of characters of the hostlist, which has at least one name.
    between : str
        As for `fold`.

    Examples
    --------
    >>> from slotkern.foundation.hostlists import abridge
    >>> abridge([f"n{k}" for k in range(9)])
    'n[0-8]'
    >>> abridge(["anna", "bert", "carl", "dora"], most=12)
    'anna,bert ... +2'
    """
    text = fold(names, between)
    if len(text) <= most or len(names) < 2:
        return text
    fits, step = 1, 1  # invariant: the first `fits` names fit, or fits is 1
    while len(fold(names[: fits + step], between)) <= most:
        fits += step
        step *= 2
    while step := step // 2:
        if len(fold(names[: fits + step], between)) <= most:
            fits += step
    return f"{fold(names[:fits], between)} ... +{len(names) - fits}"


# --- reading


def _terms(text: str) -> list[_Term]:
    found: list[_Term] = []
    at = 0
    while at <= len(text):
        if quoted := _QUOTED.match(text, at):
            name = quoted[1].replace('""', '"')
            term: _Term = [name] if name.strip() else []
            at = quoted.end() if quoted[2] else len(text) + 1
        else:
            term, at = _term(text, at)
        if not term:
            raise ValueError(
                f"hostlist {quote(text)}: a name is empty; write names and ranges "
                "between commas, such as n1,n[3-5]"
            )
        found.append(term)
    return found


def _term(text: str, at: int) -> tuple[_Term, int]:
    """Parse the term at a position; return it and the position after its comma."""
    term: _Term = []
    while at < len(text) and text[at] != ",":
        piece = _PIECE.match(text, at)
        if piece is None:
            sign = text[at]
            raise ValueError(
                f"hostlist {quote(text)}, character {at + 1}: {sign!r} has no "
                f"partner; {_ADVICE}"
            )
        at = piece.end()
        term.append(piece[2] if piece[1] is None else _ranges(piece[1], text))
    if term and isinstance(term[0], str):
        term[0] = term[0].lstrip()
    if term and isinstance(term[-1], str):
        term[-1] = term[-1].rstrip()
    term = [piece for piece in term if piece]
    return term, at + 1


_ADVICE = (
    "brackets hold numbers and ranges, such as n[001-004,007]; put a name that "
    'contains a bracket or a comma in double quotes, such as "gpu[a]"'
)


def _ranges(body: str, text: str) -> list[_Range]:
    found = []
    for word in body.split(","):
        match = _RANGE.fullmatch(word.strip())
        if match is None:
            raise ValueError(
                f"hostlist {quote(text)}: [{body:.40}] holds {quote(word)}, which is "
                f"no number or range; {_ADVICE}"
            )
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ValueError(
                f"hostlist {quote(text)}: the range {word.strip()} ends before it "
                "begins; write the lower number first"
            )
        if len(last) < len(first) or (len(last) > len(first) and last[0] == "0"):
            raise ValueError(
                f"hostlist {quote(text)}: the ends of the range {word.strip()} have "
                "different numbers of digits; write it as in 001-016"
            )
        found.append((int(first), int(last), len(first)))
    return found


def _size(term: _Term) -> int:
    return math.prod(
        1 if isinstance(piece, str) else sum(b - a + 1 for a, b, _ in piece)
        for piece in term
    )


def _names(term: _Term) -> Iterator[str]:
    pieces = [
        [piece]
        if isinstance(piece, str)
        else [f"{k:0{w}}" for a, b, w in piece for k in range(a, b + 1)]
        for piece in term
    ]
    return map("".join, product(*pieces))


# --- writing

#: Text, or the numbers at one position of a name; a quoted name is one text.
_Token = str | tuple[str, ...]
_Tokens = tuple[_Token, ...]


@lru_cache(maxsize=2**16)
def _tokens(name: str) -> _Tokens:
    if (whole := quoted(name)) != name:
        return (whole,)
    return tuple(
        (token,) if token[0] in "0123456789" else token
        for token in _TOKENS.findall(name)
    )


def _merged(terms: list[_Tokens]) -> Iterator[_Tokens]:
    """Merge neighbours that differ at one position; those before it have one number."""
    term, place, numbers = terms[0] if terms else (), -1, []
    for other in terms[1:]:
        at = _difference(term, other)
        if at >= 0 and place in (-1, at):
            if place < 0:
                place, numbers = at, [*term[at]]
            numbers += other[at]
            continue
        yield term if place < 0 else (*term[:place], tuple(numbers), *term[place + 1 :])
        term, place, numbers = other, -1, []
    if terms:
        yield term if place < 0 else (*term[:place], tuple(numbers), *term[place + 1 :])


def _difference(one: _Tokens, other: _Tokens) -> int:
    """Return the only position at which terms differ, or -1 if they cannot merge."""
    if len(one) != len(other):
        return -1
    place = -1
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        if a == b:
            if place < 0 and not isinstance(a, str) and len(a) > 1:
                return (
                    -1
                )  # an earlier position varies, so a merge would change the order
        elif place >= 0 or isinstance(a, str) or isinstance(b, str):
            return -1
        else:
            place = k
    return place


def _text(term: _Tokens) -> str:
    return "".join(
        token
        if isinstance(token, str)
        else token[0]
        if len(token) == 1
        else f"[{','.join(_runs(token))}]"
        for token in term
    )


def _runs(numbers: Sequence[str]) -> Iterator[str]:
    """Yield numbers as ranges of consecutive ones with equal width."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number == f"{int(last) + 1:0{len(first)}}":
            last = number
            continue
        yield first if first == last else f"{first}-{last}"
        first = last = number
    yield first if first == last else f"{first}-{last}"
