"""Errors as problems of HTTP: the status, and the reason."""

from __future__ import annotations

from slotkern.foundation.errors import UndecidedError
from slotkern.foundation.logger import log
from slotkern.ledger import errors
from slotkern.service.writer import Overloaded

__all__ = ["Problem", "problem_of"]


class Problem(Exception):
    """A refusal with its status."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None):
        super().__init__(detail)
        self.status, self.headers = status, headers


#: The status of each error, the first that fits; all others are faults of the program.
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.NotYours, 403),
    (errors.Taken, 409),
    (errors.Expired, 410),
    (errors.TokenUsed, 422),
    (errors.LedgerError, 503),  # Busy, Unknown: repeat the request with its token
    (Overloaded, 503),
    (UndecidedError, 422),
    (ValueError, 400),
    (TypeError, 400),
    (OverflowError, 400),
    (ModuleNotFoundError, 501),  # an extra that only some requests need
)
_AGAIN = {"retry-after": "1"}


def problem_of(error: Exception, what: str, stored: bool = False) -> Problem:
    """Return the refusal of an error; log a fault of the program with its call.

    An error after a change was `stored` is a fault, because a client takes a refusal
    for a change that was not made.
    """
    if stored:
        log.error("%s is stored, but its answer failed", what, exc_info=error)
        return Problem(500, f"{what} is stored, but its answer failed: see the log")
    if isinstance(error, Problem):
        return error
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return Problem(status, str(error), _AGAIN if status == 503 else None)
    log.error("%s", what, exc_info=error)
    return Problem(500, "a fault of the program, see its log")
