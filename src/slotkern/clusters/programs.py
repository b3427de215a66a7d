"""Runs the programs of a scheduler, and raises the errors that their messages mean.

Programs get lists of arguments, never a shell, and no input.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from .protocol import ClusterError, UnreachableError

__all__ = ["Meanings", "run_program"]

#: Parts of a program's messages, in lower case, and the error that they mean.
Meanings = Sequence[tuple[type[ClusterError], Sequence[str]]]


def run_program(
    words: Sequence[str],
    environment: Mapping[str, str],
    timeout: float,
    *,
    prefix: Sequence[str] = (),
    meanings: Meanings = (),
    hints: Mapping[type[ClusterError], str] | None = None,
    missing: str = "",
) -> str:
    """Run a program and return its output.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments.
    environment : mapping
        All variables of the program.
    timeout : float
        Seconds to wait for it.
    prefix : sequence of str
        Words before the program, such as ``sudo -n``.
    meanings, hints
        The error of a message, by parts of it, and the end of that error's text.
    missing : str
        What to do if the program is not installed.

    Raises
    ------
    ClusterError
        Or a subclass of it, if the program fails, is missing, or gives no answer.
    """
    argv = [*prefix, *words]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreachableError(
            f"{words[0]} gave no answer within {timeout:g} s"
        ) from None
    except FileNotFoundError:
        raise ClusterError(
            f"the program {argv[0]} is not installed here{missing}"
        ) from None
    except OSError as error:  # not executable, or its arguments are too long
        raise ClusterError(f"{argv[0]}: {error.strerror}") from None
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode == 0:
        return output
    message = " ".join(done.stderr.decode("utf-8", "replace").split())
    message = message or " ".join(output.split()) or f"exit code {done.returncode}"
    text = (message + output).lower()
    for kind, parts in meanings:
        if any(part in text for part in parts):
            raise kind(f"{words[0]}: {message}{(hints or {}).get(kind, '')}")
    raise ClusterError(f"{words[0]}: {message}")
