"""Output to standard output and standard error.

Every text that the commands print passes through this module. It handles streams that
are closed, full, unbuffered or limited to ASCII, escapes control characters of names
that come from files, and fits tables to the width of the terminal. Files and pipes get
every column.
"""

from __future__ import annotations

import codecs
import logging
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from slotkern.foundation.checks import visible
from slotkern.foundation.extras import extra
from slotkern.foundation.logger import log

with extra():
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.progress import Progress
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "discard_output",
    "escaped_text",
    "find_failed_stream",
    "log_to_stderr",
    "prepare_streams",
    "progress",
    "progress_bars",
    "show",
    "stdout_console",
    "write",
]

Step = TypeVar("Step")

#: ASCII replacements of characters that a stream cannot encode; others are escaped.
REPLACEMENTS = {"±": "+-"}


def _encode_fallback(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(
        REPLACEMENTS.get(sign, ascii(sign)[1:-1]) for sign in text
    ), error.end


codecs.register_error("slotkern", _encode_fallback)


def prepare_streams() -> None:
    """Reopen both streams, buffered and with a fallback for characters they lack.

    A closed stream becomes the null device. Without a buffer (PYTHONUNBUFFERED) Python
    does not report that only part of a long text was written.
    """
    for name, number in (("stdout", 1), ("stderr", 2)):
        given = getattr(sys, name)
        if given is None:  # closed by the caller; no other file may get its number
            # Writing results to a closed stdout is an error (the null device is opened
            # for reading only); messages to a closed stderr are dropped.
            mode = os.O_RDONLY if name == "stdout" else os.O_WRONLY
            null = os.open(os.devnull, mode)
            if null != number:
                os.dup2(null, number)
                os.close(null)
        encoding = "utf-8" if given is None else given.encoding
        stream = os.fdopen(
            number, "w", encoding=encoding, errors="slotkern", closefd=False
        )
        stream.reconfigure(line_buffering=name == "stderr" or stream.isatty())
        setattr(sys, name, stream)


def discard_output() -> None:
    """Redirect standard output to the null device after a write failed."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def find_failed_stream() -> str:
    """Return "standard output" if flushing it fails, else ""; discard the rest."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
        return "standard output"
    return ""


def write(text: str) -> None:
    """Write text to standard output.

    Raises
    ------
    OSError
        If the text cannot be written; its filename is "standard output".
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise OSError(error.errno, error.strerror, "standard output") from None


def escaped_text(text: object, style: str = "") -> Text:
    """Return a cell for a table: markup is literal, control characters are escaped."""
    return Text(_visible_lines(str(text)), style)


def _visible_lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


class SafeConsole(Console):
    """A console that escapes control characters, for example of file names."""

    def render_str(self, text: str, *options: Any, **more: Any) -> Text:
        """Return a text with control characters escaped."""
        return super().render_str(_visible_lines(text), *options, **more)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield segments; control characters in their text are escaped."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text.isprintable() or text == "\n":
                yield segment
            else:
                yield Segment(_visible_lines(text), segment.style)


@contextmanager
def stdout_console(width: int = 10_000) -> Iterator[Console]:
    """Yield a console; its output is written to standard output in one call at the end.

    Text is literal: no markup, no emoji. Lines are wrapped at the width of the
    terminal, or at `width` characters in files and pipes.
    """
    console = SafeConsole(
        width=None if sys.stdout.isatty() else width,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        yield console
    write(capture.get())


def show(*things: RenderableType) -> None:
    """Print tables or lines of text to standard output; fit tables to a terminal."""
    with stdout_console() as console:
        for thing in things:
            if isinstance(thing, Table) and sys.stdout.isatty():
                fit_to_width(thing, console)
            console.print(thing)


#: Headings of columns that are never removed to fit a table to the terminal.
_ESSENTIAL_COLUMNS = (
    *("job", "name", "owner", "reason", "why not", "shape", "best by"),
    *("node", "nodes", "cost"),
    *("start", "end", "finish", "start_time", "finish_time"),
)


def fit_to_width(table: Table, console: Console) -> None:
    """Fit a table to the width of the console: drop columns, then fold long cells.

    Columns are dropped from the right, except the essential ones (job, node, time and
    cost); the caption lists the dropped ones.
    """
    left_out: list[str] = []
    wide = console.options.update(width=10_000)
    while console.measure(table, options=wide).maximum > console.width:
        more = [
            c for c in table.columns if str(c.header) not in ("", *_ESSENTIAL_COLUMNS)
        ]
        if not more:
            break
        left_out.insert(0, str(more[-1].header))
        table.columns.remove(more[-1])
        for index, column in enumerate(table.columns):
            column._index = index
    for column in table.columns:
        column.overflow = "fold"
    if left_out:
        lines = [*([table.caption] if table.caption else [])]
        lines.append(
            f"columns hidden on this narrow terminal: {', '.join(left_out)}; a file or "
            "a pipe gets all columns"
        )
        table.caption = "\n".join(map(str, lines))


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Print the package's log messages from level INFO to standard error, at the end.

    One line per message. Nothing is printed if the block raises an error, so that an
    error remains a single line.
    """
    notes: list[str] = []
    collector = logging.Handler()
    collector.emit = lambda record: notes.append(record.getMessage())  # type: ignore[method-assign]
    level = log.level
    log.addHandler(collector)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(collector)
    for note in notes:
        print(visible(note), file=sys.stderr)


def progress_bars() -> Progress:
    """Return progress bars on standard error, disabled unless it is a terminal."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def progress(what: str, steps: Collection[Step]) -> Iterator[Iterator[Step]]:
    """Yield an iterator over the steps that shows their progress as a bar."""
    with progress_bars() as shown:
        yield iter(shown.track(steps, description=what))
