"""Mutation of the inputs of fuzzed readers, and the check of their errors."""

from __future__ import annotations

import gzip
import io
import random
import re
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "Target",
    "mutate",
    "mutate_archive",
    "mutate_packed",
    "mutate_words",
    "result_or_error",
]

TOKENS: Sequence[bytes] = (
    *(b"0 1 -1 2147483648 9223372036854775808 1e308 1e-320 inf nan -0 007 1_0".split()),
    *(
        b'" "" , ; \n \r \r\n \t \0 \xff \xef\xbb\xbf [ ] { } ( ) : null true'.split(
            b" "
        )
    ),
    *(b"node start end performance price Infinity and or not in == <= ' \\".split()),
    *(b"{'descr':'|O' (4611686018427387904,) <U99 PAR1 PK\x03\x04 PK\x01\x02".split()),
    b"9" * 5000,
    b"[" * 300,
    b"x" * 140_000,
)


class Target(NamedTuple):
    """A reader to fuzz: its seed inputs, its check of an input, and its mutations."""

    seeds: Callable[[Path], list[bytes]]
    check: Callable[[bytes, Path], bool]
    mutate: Callable[[bytes, list[bytes], random.Random], bytes]


def mutate(data: bytes, seeds: list[bytes], rng: random.Random) -> bytes:
    """Return a mutant of the data: bits, bytes, pieces or tokens changed."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 40, 200)))
        other = rng.choice(seeds)
        first = rng.randrange(len(other) + 1)
        match rng.randrange(9):
            case 0 if at < len(data):  # a bit
                flipped = bytes([data[at] ^ 1 << rng.randrange(8)])
                data = data[:at] + flipped + data[at + 1 :]
            case 1 if at < len(data):  # a byte
                data = data[:at] + rng.randbytes(1) + data[at + 1 :]
            case 2:
                data = data[:at] + data[end:]
            case 3:
                data = data[:at] + data[at:end] * rng.choice((2, 3, 50)) + data[end:]
            case 4:
                data = data[:at]
            case 5:
                data = data[:at] + other[first : first + end - at] + data[end:]
            case 6:
                data = data[:at] + other[first:]
            case _:
                data = data[:at] + rng.choice(TOKENS) + data[rng.choice((at, end)) :]
    return data[:400_000]


def mutate_words(data: bytes, seeds: list[bytes], rng: random.Random) -> bytes:
    """Return a mutant of a text: words replaced by words of the seeds or by tokens."""
    if rng.random() < 0.3:
        return mutate(data, seeds, rng)
    words = re.split(rb"(\w+|\s+)", data)
    others = re.split(rb"(\w+|\s+)", rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(words))
        words[at] = rng.choice((rng.choice(others), rng.choice(TOKENS[:45]), b""))
    return b"".join(words)


def mutate_archive(data: bytes, seeds: list[bytes], rng: random.Random) -> bytes:
    """Return a mutant of a zip archive: of its bytes, or of a member (valid CRC)."""
    if rng.random() < 0.4:
        return mutate(data, seeds, rng)
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(sink, "w") as new:
        members = [(info.filename, old.read(info)) for info in old.infolist()]
        chosen = rng.randrange(len(members))
        packing = rng.choice((zipfile.ZIP_STORED,) * 4 + (8, 12, 14))
        for number, (name, content) in enumerate(members):
            if number == chosen:
                kind = rng.randrange(8)
                if kind == 0:
                    continue
                if kind == 1:
                    name = rng.choice(("slots", "now.npy", "x.npy", "é.npy", ".npy"))
                elif kind < 5:  # after the header of the array
                    content = content[:128] + mutate(content[128:], [content], rng)
                else:
                    content = mutate(content, [other for _, other in members], rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # duplicate member names
                new.writestr(name, content, packing)
    return sink.getvalue()


def mutate_packed(data: bytes, seeds: list[bytes], rng: random.Random) -> bytes:
    """Return a mutant of a gzip file: of its bytes, or of its text (valid CRC)."""
    if rng.random() < 0.4:
        return mutate(data, seeds, rng)
    texts = [gzip.decompress(seed) for seed in seeds]
    text = mutate_words(gzip.decompress(data), texts, rng)
    return gzip.compress(text, 1, mtime=0)


def result_or_error(call: Callable[[], Any], name: str) -> Any:
    """Return the result of the call, or None if it raised a well-formed error."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        text = str(error)
        assert name in text, f"the error does not name {name}: {text}"
        assert "\n" not in text, f"an error of several lines: {text}"
        assert len(text) < 1500, f"an error of {len(text)} characters: {text}"
        return None
