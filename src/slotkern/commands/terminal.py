"""Standard output and standard error, whatever they are: closed, full, ASCII alone."""

from __future__ import annotations

import codecs
import logging
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from slotkern.checks import visible
from slotkern.extras import extra
from slotkern.logger import log

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

#: What stands for a sign that the terminal does not have; others become escapes.
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
    """Make both streams anew: such as are there, take every text, and are buffered.

    Without a buffer (PYTHONUNBUFFERED) Python does not notice that only a part of a
    long text was taken.
    """
    for name, number in (("stdout", 1), ("stderr", 2)):
        given = getattr(sys, name)
        if given is None:  # closed by the caller; the next file must not get its number
            # Results that nobody can get are an error, what is said beside them is not.
            mode = os.O_RDONLY if name == "stdout" else os.O_WRONLY
            hole = os.open(os.devnull, mode)
            if hole != number:
                os.dup2(hole, number)
                os.close(hole)
        encoding = "utf-8" if given is None else given.encoding
        stream = os.fdopen(
            number, "w", encoding=encoding, errors="slotkern", closefd=False
        )
        stream.reconfigure(line_buffering=name == "stderr" or stream.isatty())
        setattr(sys, name, stream)


def discard_output() -> None:
    """Send what is left for standard output, which takes no more, nowhere."""
    hole = os.open(os.devnull, os.O_WRONLY)
    os.dup2(hole, sys.stdout.fileno())
    os.close(hole)


def find_failed_stream() -> str:
    """Name standard output if it takes no more, and drop what is left for it."""
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
        Naming standard output, when it takes no more.
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
    """Return a text for a table as it is: no markup, control characters escaped."""
    return Text(_visible_lines(str(text)), style)


def _visible_lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


class SafeConsole(Console):
    """A console on which names of files cannot send control characters."""

    def render_str(self, text: str, *options: Any, **more: Any) -> Text:
        """Return a text with its control characters escaped."""
        return super().render_str(_visible_lines(text), *options, **more)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield segments; those that hold control characters are escaped."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text.isprintable() or text == "\n":
                yield segment
            else:
                yield Segment(_visible_lines(text), segment.style)


@contextmanager
def stdout_console(width: int = 10_000) -> Iterator[Console]:
    """Yield a console; what is printed there goes to standard output in one piece.

    Text is shown as it is: no markup, no emoji. Lines are wrapped to fit a terminal,
    and elsewhere at `width`.
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
    """Print tables or lines of text."""
    with stdout_console() as console:
        for thing in things:
            if isinstance(thing, Table) and sys.stdout.isatty():
                fit_to_width(thing, console)
            console.print(thing)


#: Columns that stay in a table that is wider than the terminal.
_ESSENTIAL_COLUMNS = (
    *("job", "name", "owner", "reason", "why not", "shape", "best by"),
    *("node", "nodes", "cost"),
    *("start", "end", "finish", "start_time", "finish_time"),
)


def fit_to_width(table: Table, console: Console) -> None:
    """Make a table as narrow as the console: drop columns, then break long cells.

    Columns go from the right, but those that say what runs, where and when; the caption
    names them. Files and pipes get all columns.
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
            f"left out, for the terminal is narrow: {', '.join(left_out)}; a file or a "
            "pipe gets all columns"
        )
        table.caption = "\n".join(map(str, lines))


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Tell on standard error what is decided within without being asked.

    At the end, a line each; nothing where it ends in an error, which is one line.
    """
    notes: list[str] = []
    keep = logging.Handler()
    keep.emit = lambda record: notes.append(record.getMessage())  # type: ignore[method-assign]
    level = log.level
    log.addHandler(keep)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(keep)
    for note in notes:
        print(visible(note), file=sys.stderr)


def progress_bars() -> Progress:
    """Return bars for long work: on standard error, and only on a terminal."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def progress(what: str, steps: Collection[Step]) -> Iterator[Iterator[Step]]:
    """Yield the steps of some work one by one, and show how many are done."""
    with progress_bars() as shown:
        yield iter(shown.track(steps, description=what))
