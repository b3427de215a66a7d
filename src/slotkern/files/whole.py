"""Writing a file whole or not at all: the one way in which all files are written.

The bytes go into a draft beside the file, are flushed to the disk, and take the file's
place by a rename. Killed at any moment, the file is what it was or complete.

A draft is named after its file and locked while its writer lives. One that nobody locks
is of a killed writer, and the next that writes this file removes it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import EISDIR, ENOTDIR
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: no draft is known to be dead, and none is removed
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "AnyPath",
    "as_path",
    "hold_file",
    "make_folder",
    "open_whole",
    "refuse_folder",
]

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)

#: Of this many writers of one file that are killed together no draft stays.
_MOST_AT_ONCE = 8


def as_path(path: AnyPath) -> Path:
    """Return a path given as text, as bytes or as an object.

    Raises
    ------
    TypeError, ValueError
        For anything else, and for a path with a null character.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        kind = type(path).__name__
        raise TypeError(f"a path is text, bytes or os.PathLike, not {kind}") from None
    if "\0" in text:
        raise ValueError(f"{text!r}: a path cannot hold a null character")
    return Path(text)


def refuse_folder(path: Path) -> None:
    """Raise the system's error for a folder in the place of a file."""
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))


@contextmanager
def open_whole(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a file for writing; what is there is replaced when the block ends well.

    Parameters
    ----------
    path : path
        A link is followed. A device, a pipe or a socket is written directly.

    Yields
    ------
    binary file

    Raises
    ------
    OSError
        Naming `path`, when it cannot be written: the file is as it was, and no draft is
        left. The same holds for any error in the block.

    Notes
    -----
    The bytes are on the disk before the rename, and the rename is before this returns
    (``fsync`` of the file and of its folder), so that a loss of power afterwards loses
    nothing. A file that is there keeps its mode, and its owner where the system allows;
    a new one gets what the umask says. Other hard links to it keep the old content.
    """
    path = as_path(path)
    try:
        there = os.stat(path)
    except FileNotFoundError:
        there = None
    if there is None or stat.S_ISREG(there.st_mode):
        target = Path(os.path.realpath(path))
        opened: AbstractContextManager[BinaryIO] = _drafted(target, there)
    else:  # open() says what is wrong with a folder
        opened = open(path, "wb")  # noqa: SIM115
    try:
        with opened as file:
            yield file
    except OSError as error:
        if error.errno is None:  # of a library, not of the system
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def _drafted(target: Path, there: os.stat_result | None) -> Iterator[BinaryIO]:
    if there is not None:  # a file that may not be written is not replaced either
        os.close(os.open(target, os.O_WRONLY))
    mode = None if there is None else stat.S_IMODE(there.st_mode)
    drafts = _drafts(target)
    draft, handle = _new_draft(drafts, 0o666 if mode is None else mode & 0o666)
    file = os.fdopen(handle, "wb")
    try:
        for other in itertools.islice(drafts, _MOST_AT_ONCE):
            _remove_if_dead(other)
        yield file
        file.flush()
        if there is not None and mode is not None and fcntl:
            with suppress(OSError):
                os.fchown(handle, there.st_uid, there.st_gid)
            os.fchmod(handle, mode)
        os.fsync(handle)
        if not fcntl:
            file.close()  # Windows does not rename what is open
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):  # where the disk is full, this fails again
            file.close()
        with suppress(OSError):
            os.unlink(draft)
        raise
    file.close()
    _flush_folder(target.parent)


def _drafts(target: Path) -> Iterator[Path]:
    """The names of drafts of `target`."""
    # Short whatever the target is called: names end at 255 bytes.
    name = hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()
    for i in itertools.count():
        yield target.with_name(f".slotkern-{name}-{i}.tmp")


def _new_draft(drafts: Iterator[Path], mode: int) -> tuple[Path, int]:
    """Return the first name that is free, as a file that is locked, and its handle."""
    while True:
        draft = next(drafts)
        _remove_if_dead(draft)
        with suppress(FileExistsError):
            handle = os.open(draft, _FLAGS | os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            if _lock(handle, without=True) and _is_at(draft, handle):
                return draft, handle
            os.close(handle)  # another writer took it for dead before it was locked


def _remove_if_dead(draft: Path) -> None:
    """Remove a draft that no writer holds."""
    try:
        handle = os.open(draft, _FLAGS | os.O_RDONLY)
    except OSError:  # there is none, or it is somebody else's
        return
    try:
        if _lock(handle, without=False) and _is_at(draft, handle):
            os.unlink(draft)
    except OSError:  # nor can it be removed
        pass
    finally:
        os.close(handle)


def _lock(handle: int, without: bool) -> bool:
    """Lock an open file; False if another has it, `without` where nothing is locked."""
    if not fcntl:
        return without
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without
    return True


class _Held(threading.local):
    """The files whose lock this thread holds, by their real path."""

    def __init__(self) -> None:
        self.paths: set[str] = set()


_held = _Held()


@contextmanager
def hold_file(
    path: AnyPath, on_wait: Callable[[], object] | None = None
) -> Iterator[None]:
    """Hold a file's lock while the block runs, to read, change and replace the file.

    Parameters
    ----------
    path : path
        A link is followed. Nothing is locked if there is no such regular file.
    on_wait : callable, optional
        Called once if another thread or process holds the lock and this one waits.

    Notes
    -----
    The lock is advisory (``flock``): it excludes other blocks of this kind, in this
    process and in others, and no other access. Blocks nest within one thread. The lock
    ends with its process. Without ``flock``, as on Windows, the block runs unlocked.

    `open_whole` replaces the file by a rename, so that a waiting block may get the lock
    of a file that has left the path; it then waits for the lock of the new file.
    """
    target = os.path.realpath(as_path(path))
    if target in _held.paths:
        yield
        return
    handle = _locked_file(Path(target), on_wait)
    _held.paths.add(target)
    try:
        yield
    finally:
        _held.paths.discard(target)
        if handle is not None:
            os.close(handle)


def _locked_file(target: Path, on_wait: Callable[[], object] | None) -> int | None:
    """Return a handle of the file at this path that holds its lock, or None."""
    while fcntl:
        try:
            if not stat.S_ISREG(os.stat(target).st_mode):
                return None
            handle = _opened(target)
        except OSError:  # the caller's own access raises the error
            return None
        try:
            if not _lock(handle, without=True):
                if on_wait is not None:
                    on_wait()
                    on_wait = None
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(target, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    return None


def _opened(target: Path) -> int:
    """Open a file for its lock, which some file systems give to writers only."""
    flags = _FLAGS | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(target, flags | os.O_RDWR)
    except PermissionError:
        return os.open(target, flags | os.O_RDONLY)


def _is_at(path: Path, handle: int) -> bool:
    """Return whether an open file still has this path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _flush_folder(folder: Path) -> None:
    """Put the rename on the disk, where a folder can be opened and flushed."""
    if fcntl:
        with suppress(OSError):  # the file is there, whole
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of this name, made with all above it if it is not there.

    Raises
    ------
    OSError
        When it cannot be made; for a file in its place, naming that file.
    """
    folder = Path(path)
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(ENOTDIR, "a file, not a folder", str(place))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
