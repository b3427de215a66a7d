"""The command line: ``slotkern demo``, ``find``, ``front``, ``alternatives``,
``compare``, ``slots-from-trace``, ``free``, ``explain``, ``starts``, ``holes``,
``when``, ``schedule``, ``bookings``, ``release``, ``reserve``, ``disable``, ``enable``,
``view``, ``caps``, ``batch``, ``cycles``, ``trace``, ``replay``, ``community``,
``generate``, ``bench``, ``reproduce``, ``study``, ``cluster``, ``watch``, ``ledger``,
``serve``, ``mcp``, ``schema``, ``info``.

Exit codes: 0 if something was found or written, 1 if no window exists (an explanation
is printed), 2 for invalid input (one line on stderr), 130 if interrupted, 141 if the
reader of a pipe closed it, 75 if a ledger was busy: the same command may succeed later.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

from slotkern.commands import (
    batch,
    bench,
    bookings,
    caps,
    cluster,
    community,
    comparison,
    cycles,
    demo,
    environments,
    flows,
    forecasts,
    ledger,
    machine,
    mcp,
    schemas,
    serve,
    studies,
    windows,
)
from slotkern.commands.about import version_line
from slotkern.commands.flags import Application, Group
from slotkern.commands.terminal import discard_output, find_failed_stream, show, write
from slotkern.foundation.checks import visible
from slotkern.foundation.extras import EXTRAS, extra

with extra():
    import typer


#: Maximum length of an error message in characters; longer ones lose their middle.
_MOST_TEXT = 2000


class OneLineErrors(Group):
    """A group of commands that reports every error as one line on stderr."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command; without arguments, print the help."""
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        name = prog_name or "slotkern"
        try:
            code = super().main(words, name, complete_var, False, **extra)
            write("")  # flush, so that errors of writing the help are reported, too
        except BrokenPipeError:
            discard_output()
            code = 141  # as if killed by SIGPIPE
        except Exception as error:
            message = _message(error, words)
            if message is None:
                raise
            code = _print_error(message, getattr(error, "ctx", None))
            if _is_temporary(error):
                code = 75
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with 141 if the reader of a pipe closed it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_output()
            raise typer.Exit(141) from None


def _message(error: Exception, words: Sequence[str]) -> str | None:
    """Return the message of an error that the caller can correct, else None."""
    format_usage_error = getattr(error, "format_message", None)  # typer's errors
    if format_usage_error is not None:
        return f"{format_usage_error()}{_given_value(error, words)}"
    if _is_ledger_error(error):
        return str(error)
    match error:
        case ModuleNotFoundError():
            return str(error) if error.name in EXTRAS else None
        case OSError():
            place = error.filename or find_failed_stream()
            what = error.strerror or str(error)
            return f"{place}: {what}" if place else what
        case ValueError() | TypeError() | OverflowError():
            return str(error)
        case MemoryError():
            return f"out of memory: {error}" if str(error) else "out of memory"
    return None


def _is_temporary(error: Exception) -> bool:
    """Return whether the same command may succeed later: EX_TEMPFAIL of sysexits."""
    errors: Any = sys.modules.get("slotkern.ledger.errors")
    return errors is not None and isinstance(error, (errors.Busy, errors.Unknown))


def _is_ledger_error(error: Exception) -> bool:
    errors: Any = sys.modules.get("slotkern.ledger.errors")
    return errors is not None and isinstance(error, errors.LedgerError)


def _given_value(error: Any, words: Sequence[str]) -> str:
    """Return ", got VALUE" for the option that an error is about, "" if not given."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for name in (name for name in names if name.startswith("-")):  # not an argument
        for word, after in reversed([*pairwise([*words, ""])]):
            if (word == name and after) or word.startswith(f"{name}="):
                return f", got {after if word == name else word[len(name) + 1 :]!r}"
    return ""


def _print_error(message: str, context: Any = None) -> int:
    """Print one line on stderr and return the exit code of invalid input, 2."""
    command = getattr(context, "command_path", "slotkern")
    text = " ".join(message.split())
    if len(text) > _MOST_TEXT:
        text = f"{text[: _MOST_TEXT // 2]} ... {text[-_MOST_TEXT // 2 :]}"
    print(f"{command}: {visible(text)}", file=sys.stderr)
    return 2


app = Application(
    name="slotkern",
    cls=OneLineErrors,
    pretty_exceptions_enable=False,
    help="Find, book and schedule exact co-allocation windows over the free time slots "
    "of heterogeneous nodes.",
)


def _version(wanted: bool) -> None:
    if wanted:
        show(version_line())
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    pass


for commands in (
    demo,
    windows,
    forecasts,
    comparison,
    environments,
    machine,
    bookings,
    caps,
    cluster,
    batch,
    cycles,
    flows,
    community,
    bench,
    studies,
    ledger,
    serve,
    mcp,
    schemas,
):
    commands.register(app)
