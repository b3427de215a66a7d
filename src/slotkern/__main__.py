"""Entry point of ``python -m slotkern`` and of the command ``slotkern``."""

from __future__ import annotations

import signal
import sys

from slotkern.foundation.extras import EXTRAS


def main() -> None:
    """Run the command line; without its extra, print the command that installs it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else a process in the background
        # Nothing is written yet: Ctrl-C during the imports needs no traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from slotkern.commands.main import app
        from slotkern.commands.terminal import prepare_streams
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        sys.exit(run_without_extras(sys.argv[1:], str(missing)))
    prepare_streams()
    signal.signal(signal.SIGINT, handler)
    # Batch systems end jobs with SIGTERM; treated as Ctrl-C, so that workers stop too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except KeyboardInterrupt:  # before or after the command
        sys.exit(130)


def run_without_extras(words: list[str], missing: str) -> int:
    """Run the commands that need no extra; for others, print what to install.

    Returns the exit code.
    """
    from slotkern.commands.about import info_lines, version_line

    if words not in (["--version"], ["info"]):
        print(f"slotkern: {missing}", file=sys.stderr)
        return 2
    print(*([version_line()] if words == ["--version"] else info_lines()), sep="\n")
    return 0


if __name__ == "__main__":
    main()
