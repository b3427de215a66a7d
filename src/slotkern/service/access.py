"""Access to a service: who sends a request, and how many a second."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence

from slotkern.service.problems import Problem
from slotkern.service.users import User, digest_of

__all__ = ["Access"]

#: Browsers ask for a name and a token only if Basic is the one scheme of the header.
_CHALLENGE = {"www-authenticate": 'Basic realm="slotkern", charset="UTF-8"'}


class Access:
    """The users of a service, and what each of them has left of the rate.

    A user may send `rate` requests at once; then they refill evenly in a second.
    """

    def __init__(self, users: Mapping[str, User], rate: float) -> None:
        self._users, self._rate = users, rate
        self._left = {user.name: (rate, 0.0) for user in users.values()}

    def admit(self, method: str, headers: Sequence[bytes]) -> User:
        """Return the user of the Authorization header.

        Browsers send the Basic scheme with any request to the service, also those that
        another site makes them send: it is accepted for reading only.

        Raises
        ------
        Problem
            401 without a valid token or with several headers, 429 above the rate.
        """
        if len(headers) > 1:  # a proxy may have checked another one
            reason = f"{len(headers)} Authorization headers; one is allowed"
            raise Problem(401, reason, _CHALLENGE)
        header = headers[0].decode("latin-1") if headers else ""
        scheme, _, value = header.partition(" ")
        user = None
        if scheme.lower() == "bearer":
            user = self._users.get(digest_of(value.strip()))
        elif scheme.lower() == "basic" and method in ("GET", "HEAD"):
            user = self._basic(value)
        if user is None:
            raise Problem(401, "this needs a valid token", _CHALLENGE)
        now = time.monotonic()
        left, since = self._left[user.name]
        left = min(self._rate, left + (now - since) * self._rate)
        if left < 1:
            wait = {"retry-after": "1"}
            raise Problem(429, f"more than {self._rate:g} requests a second", wait)
        self._left[user.name] = left - 1, now
        return user

    def _basic(self, value: str) -> User | None:
        try:
            name, _, token = (
                base64.b64decode(value, validate=True).decode().partition(":")
            )
        except ValueError:
            return None
        user = self._users.get(digest_of(token))
        return user if user is not None and user.name == name else None
