"""`Placing`: search and book, again after conflicts, and recovery by tokens.

`Domains` and `RemoteDomains` have their own searches and bookings; how these are
repeated is the same. Each attempt of a token has a token of its own in the ledgers,
because ledgers keep those of attempts that were undone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.domains.booking import CONFLICTS, DomainBooking, Ledger, recover_parts
from slotkern.foundation.checks import quote
from slotkern.foundation.logger import log
from slotkern.ledger.codec import job_text, plain, to_json, token_digest

if TYPE_CHECKING:
    from slotkern.ledger.bookings import Booking
    from slotkern.typing import Criterion, Shape

__all__ = ["HOLD", "Placing"]

#: Attempts to search and book before a conflict is raised.
TRIES = 5
#: The time in seconds after which parts end that a killed process has not confirmed.
HOLD = 60.0

_T = TypeVar("_T")


class Placing(ABC):
    """The operations that search and book, and repeat both."""

    @abstractmethod
    def _find(self, request: Request, criterion: Any, shape: Any) -> Window | None:
        """Return the best window over all domains."""

    @abstractmethod
    def _book(
        self,
        window: Any,
        owner: str | None,
        hold: float | str,
        token: str | None,
        asked: str | None = None,
    ) -> Any:
        """Book windows, in ledgers by the token of the request asked."""

    @abstractmethod
    def _ledgers(self, asked: str | None) -> Mapping[str, Ledger]:
        """Return all domains as ledgers, for tokens; `asked` is None in `recover`."""

    @abstractmethod
    def _repeated(
        self, parts: Mapping[str, list[Booking]], token: str
    ) -> DomainBooking:
        """Return the booking of an earlier call from its parts in all ledgers."""

    def place(
        self,
        request: Request,
        criterion: Criterion = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        token: str | None = None,
        hold: float | str = HOLD,
    ) -> DomainBooking | None:
        """Find and book the best window; search again if a local manager was quicker.

        Parameters
        ----------
        request, criterion, shape
            As for `find`.
        owner, hold
            As for `book`.
        token : str, optional
            Makes it safe to repeat the call after any failure, also in another process:
            the same token returns the same booking, with ``repeated=True``. Parts that
            a killed process left are completed or released first; see `recover`. All
            domains must be ledgers.

        Returns
        -------
        DomainBooking or None
            None if no window exists.

        Raises
        ------
        ValueError, slotkern.ledger.LedgerError
            As for `book`, after five attempts; with a token also for a domain that is
            no ledger.
        slotkern.ledger.TokenUsed
            If the token belongs to another request, criterion, shape or owner.
        """

        def search() -> Window | None:
            return self._find(request, criterion, shape)

        asked = None if token is None else _digest_of(request, criterion, shape, owner)
        booked: DomainBooking | None
        booked = self._book_found(search, owner, hold, token, asked)[1]
        return None if booked is None else booked._replace(token=token)

    def recover(self, token: str) -> DomainBooking | None:
        """Complete or undo what a killed process has booked with a token.

        Parameters
        ----------
        token : str
            The token of an earlier `place`; over remote domains also that in the note
            of an error of `book`.

        Returns
        -------
        DomainBooking or None
            The booking, if all its parts are booked now. None if there is none: parts
            without their others have been released.

        Raises
        ------
        ValueError
            For a domain that keeps no tokens; if a domain with a part of the booking is
            not among these. Nothing has changed then.
        slotkern.ledger.LedgerError
            If a ledger cannot be read or written: repeat the call.

        Notes
        -----
        The parts are completed if one was confirmed, and released otherwise, or if some
        have been released. Call it when the process that placed the token has ended:
        it releases the holds of one that still runs. All domains of the booking must
        be among these, because only all of them show whether it is complete. Parts that
        are past count as booked. `SharedPool.compact` drops old tokens.
        """
        return self._recover(token)[0]

    def _recover(
        self, token: str, asked: str | None = None
    ) -> tuple[DomainBooking | None, str]:
        """Return the booking of a token, and the token of the next attempt."""
        if not isinstance(token, str):
            raise TypeError(f"token must be text, got {quote(token)}")
        ledgers = self._ledgers(asked)
        for attempt in count():
            name = f"{token}#{attempt}"
            parts = recover_parts(ledgers, name, asked)
            if parts is None:
                return None, name
            if parts:
                return self._repeated(parts, token), name
        raise AssertionError("unreachable")

    def _book_found(
        self,
        search: Callable[[], _T],
        owner: str | None,
        hold: float | str,
        token: str | None = None,
        asked: str | None = None,
    ) -> tuple[_T | None, Any]:
        """Book what a search returns; after a conflict search again.

        Returns what was found, and its bookings; None if nothing was found. With a
        token, the booking may be that of an earlier call.
        """
        name = None
        for left in reversed(range(TRIES)):
            if token is not None:
                repeated, name = self._recover(token, asked)
                if repeated is not None:
                    return None, repeated
            found = search()
            if found is None:
                break
            try:
                return found, self._book(found, owner, hold, name, asked)
            except CONFLICTS as error:
                if not left:
                    raise
                log.info("%s; searched again", error)
        return None, None


def _digest_of(request: Request, criterion: Any, shape: str, owner: str | None) -> str:
    """Return the digest of all that a token of `place` identifies."""
    how = to_json([owner, plain(criterion), shape])
    return token_digest(job_text(request), how.encode()).hex()
