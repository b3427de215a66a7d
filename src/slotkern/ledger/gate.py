"""The lock of writers of one file, and the file systems on which it works.

SQLite's own lock is acquired by sleeping and trying again for up to 0.1 s, which lets
one process continue while others wait for seconds. This lock is acquired before it and
tried again at least every 2 ms. It also separates checkpoints of two processes, which
versions of SQLite before 3.51.3 need.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from slotkern.ledger.errors import Busy, Elsewhere

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None  # type: ignore[assignment]

__all__ = ["Gate", "file_system", "refuse_remote"]

_SHORTEST, _LONGEST = 0.0002, 0.002  # seconds between two attempts


class Gate:
    """A ``flock`` on a file of its own, which contains the holder's process id."""

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        if os.fstat(self._file).st_uid == os.getuid():
            os.fchmod(self._file, mode)  # the umask must not exclude other writers

    def enter(self, patience: float) -> None:
        """Acquire the lock; raise `Busy` after `patience` seconds."""
        end, nap = time.monotonic() + patience, _SHORTEST
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    holder = os.pread(self._file, 12, 0).decode("ascii", "replace")
                    raise Busy(
                        f"{self.path}: process {holder.strip() or '?'} has held the "
                        f"lock for more than {patience:g} s; nothing has changed"
                    ) from None
            time.sleep(nap)
            nap = min(nap * 1.5, _LONGEST)
        os.pwrite(self._file, b"%-12d" % os.getpid(), 0)

    def leave(self) -> None:
        """Release the lock, also if it is not held."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; a child process of a fork must not release the lock."""
        os.close(self._file)


#: File systems that other machines may write, or that do not share memory maps.
_REMOTE = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "lustre", "gpfs", "beegfs"),
        *("ceph", "afs", "ocfs2", "gfs2", "virtiofs", "vboxsf", "orangefs", "pvfs2"),
        *("glusterfs", "davfs", "panfs"),
    }
)


def file_system(path: Path, mounts: str = "/proc/self/mountinfo") -> str:
    """Return the type of the file system of a file as Linux names it; "" if unknown."""
    place = Path(os.path.realpath(path))
    try:
        lines = Path(mounts).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found, length = "", -1
    for line in lines:
        left, _, right = line.partition(" - ")
        octal = os.fsencode(left.split()[4]).decode("unicode_escape")  # \040 is a space
        point = os.fsdecode(octal.encode("latin-1"))
        if place.is_relative_to(point) and len(point) >= length:
            found, length = right.split()[0], len(point)  # the last mount hides others
    return found


def refuse_remote(path: Path) -> None:
    """Raise `Elsewhere` for a file on a file system of several machines."""
    kind = file_system(path)
    plain_fuse = kind.startswith("fuse") and kind not in ("fuse.overlayfs", "fuseblk")
    if kind in _REMOTE or plain_fuse:
        raise Elsewhere(
            f"{path} is on a file system of type {kind}, where SQLite cannot keep the "
            "writers of several machines apart; use a local disk"
        )
    if fcntl is None:
        raise Elsewhere(f"{path}: this system has no flock, which ledgers need")
