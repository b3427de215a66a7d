"""Users of a service: names, roles and digests of their tokens, in a TOML file.

    [alice]
    role = "book"
    sha256 = "2c26b46b68ffc68f..."

A token has 256 random bits, so a plain SHA-256 of it cannot be inverted by guessing.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from slotkern.foundation.checks import meant, one_of, quote

__all__ = ["ROLES", "User", "add_user", "digest_of", "read_users"]

#: Each role has the rights of those before it.
ROLES = ("read", "book", "administer")

_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEYS = ("role", "sha256")
#: A file of 10,000 users has a third of this size in bytes.
_MOST_BYTES = 4 << 20


class User(NamedTuple):
    """A person or program with a token."""

    name: str
    role: str

    def has_role(self, role: str) -> bool:
        """Return whether the rights of a role are among those of the user."""
        return ROLES.index(self.role) >= ROLES.index(role)


def digest_of(token: str) -> str:
    """Return the digest by which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_users(path: Path) -> dict[str, User]:
    """Return the users of a file by the digests of their tokens.

    Raises
    ------
    PermissionError
        If others than its owner may read or write the file, or it belongs to another
        user than that of the process or root.
    ValueError
        For an invalid name, role or digest, for unknown or missing keys, for two users
        with the same token, and for a file without users.
    """
    users = _read(path)
    if not users:
        raise ValueError(f"{path}: no users; `slotkern ledger token` adds one")
    return users


def _read(path: Path) -> dict[str, User]:
    """Return the users of a file, which may have none; see `read_users`."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())  # of the open file: its name may change
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path}: the list of users must be a regular file")
        if status.st_mode & 0o077:
            mode = stat.S_IMODE(status.st_mode)
            why = f"its mode is {mode:04o}, so that others may use it: chmod 600 {path}"
            raise PermissionError(1, why, str(path))
        if status.st_uid not in (0, os.geteuid()):
            raise PermissionError(1, "it belongs to another user", str(path))
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"{path}: the list of users has more than {_MOST_BYTES} bytes")
    try:
        table = tomllib.loads(data.decode())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    users: dict[str, User] = {}
    for name, given in table.items():
        digest, user = _user(f"{path}: [{name}]", name, given)
        if digest in users:
            raise ValueError(f"{path}: {name} and {users[digest].name} have one token")
        users[digest] = user
    return users


def _user(where: str, name: str, given: Any) -> tuple[str, User]:
    """Check a table of the file; return the digest and the user."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{where}: a name has up to 64 letters, digits and _.@-, got {quote(name)}"
        )
    if not isinstance(given, dict):
        raise ValueError(f"{where} must be a table with role and sha256")
    for key in given:
        if key not in _KEYS:
            raise ValueError(
                f"{where}: unknown key {quote(key)}; allowed are {', '.join(_KEYS)}"
                f"{meant(key, _KEYS)}"
            )
    for key in _KEYS:
        if key not in given:
            raise ValueError(f"{where}: {key} is missing")
    role = one_of(f"{where}: role", given["role"], ROLES)
    digest = given["sha256"]
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError(
            f"{where}: sha256 must be 64 hexadecimal digits, got {quote(digest)}"
        )
    return digest, User(name, role)


def add_user(path: Path, name: str, role: str) -> str:
    """Add a user to a file, which is created with mode 0600; return the token."""
    token = secrets.token_urlsafe(32)
    digest = digest_of(token)
    _user(f"{path}: [{name}]", name, {"role": role, "sha256": digest})
    try:
        names = {user.name for user in _read(path).values()}
    except FileNotFoundError:
        names = set()
    if name in names:
        raise ValueError(f"{path}: there is a user {name}; remove the table first")
    # An editor may have left the last line without its end.
    text = f'\n["{name}"]\nrole = "{role}"\nsha256 = "{digest}"\n'
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    file = os.open(path, flags, 0o600)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
    return token
