"""``python -m slotkern`` and the ``slotkern`` command."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line, or say in one line what has to be installed for it."""
    try:
        from slotkern.commands.main import app
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        print(
            "slotkern: the command line needs typer and rich: "
            'pip install "slotkern[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)
    # Batch systems end a job by SIGTERM: as with Ctrl-C, no worker stays behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


if __name__ == "__main__":
    main()
