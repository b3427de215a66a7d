"""Atomic replacement of files, and locks on files. All files are written this way.

The bytes are written to a draft in the same folder, flushed to the disk, and renamed to
the target. If the process is killed at any moment, the file has its old content or its
complete new content.

The name of a draft is derived from that of its file, and its writer holds a lock on it.
An unlocked draft is stale: its writer was killed, and the next writer of the file
removes it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from errno import EISDIR, ENOTDIR
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: stale drafts cannot be detected and are not removed
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "AnyPath",
    "as_path",
    "flush_folder",
    "lock_file",
    "make_folder",
    "new_draft",
    "open_atomic",
    "refuse_folder",
]

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)

#: The number of possible drafts of a file that each writer checks for stale ones.
_MAX_STALE_DRAFTS = 8

#: Suffixes of the files that SQLite keeps for a draft that is a database.
_DATABASE_SUFFIXES = ("-wal", "-shm", "-journal")


def as_path(path: AnyPath) -> Path:
    """Convert text, bytes or an os.PathLike object to a Path.

    Raises
    ------
    TypeError, ValueError
        If the value is of another type, or the path contains a null character.
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
    """Raise IsADirectoryError, as the system does, if the path is a folder."""
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))


@contextmanager
def open_atomic(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a file for writing; an existing file is replaced when the block succeeds.

    Parameters
    ----------
    path : path
        Symbolic links are followed. A device, a pipe or a socket is written directly.

    Yields
    ------
    binary file

    Raises
    ------
    OSError
        If `path`, which the message names, cannot be written. After this and any other
        error in the block, the file is unchanged and the draft is removed.

    Notes
    -----
    The file is flushed (``fsync``) before the rename, and its folder before this
    returns, so a later loss of power loses nothing. A replaced file keeps its mode, and
    its owner if the system permits; a new file gets the mode of the umask. Other hard
    links to the file keep the old content.
    """
    path = as_path(path)
    try:
        there = os.stat(path)
    except FileNotFoundError:
        there = None
    if there is None or stat.S_ISREG(there.st_mode):
        target = Path(os.path.realpath(path))
        opened: AbstractContextManager[BinaryIO] = _drafted(target, there)
    else:  # for a folder, open() raises the error
        opened = open(path, "wb")  # noqa: SIM115
    try:
        with opened as file:
            yield file
    except OSError as error:
        if error.errno is None:  # raised by a library, not by the system
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def _drafted(target: Path, there: os.stat_result | None) -> Iterator[BinaryIO]:
    if there is not None:  # raise if the caller has no permission to write the file
        os.close(os.open(target, os.O_WRONLY))
    mode = None if there is None else stat.S_IMODE(there.st_mode)
    with new_draft(target, 0o666 if mode is None else mode & 0o666) as (draft, file):
        yield file
        file.flush()
        if there is not None and mode is not None and fcntl:
            with suppress(OSError):
                os.fchown(file.fileno(), there.st_uid, there.st_gid)
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
        if not fcntl:
            file.close()  # Windows does not rename an open file
        os.replace(draft, target)
    flush_folder(target.parent)


@contextmanager
def new_draft(target: Path, mode: int = 0o666) -> Iterator[tuple[Path, BinaryIO]]:
    """Yield the path of a new draft of a file, and the draft, open and locked.

    The caller publishes the draft by a rename or a link; what is left of it is removed
    at the end. Stale drafts of the file are removed first.
    """
    drafts = _drafts(target)
    draft, file = _new_draft(drafts, mode)
    try:
        for other in itertools.islice(drafts, _MAX_STALE_DRAFTS):
            _remove_if_stale(other)
        yield draft, file
    finally:
        if not fcntl:
            with suppress(OSError):
                file.close()  # Windows does not remove an open file
        with suppress(OSError):  # the renamed draft may have a successor of its name
            if file.closed or _is_at(draft, file.fileno()):
                _remove(draft)
        with suppress(OSError):  # if the disk is full, closing fails again
            file.close()


def _drafts(target: Path) -> Iterator[Path]:
    """Yield the possible names of drafts of `target`."""
    # A hash, since a name is limited to 255 bytes.
    name = hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()
    for i in itertools.count():
        yield target.with_name(f".slotkern-{name}-{i}.tmp")


def _new_draft(drafts: Iterator[Path], mode: int) -> tuple[Path, BufferedWriter]:
    """Create and lock a draft under the first free name; return it and its file."""

    def create(path: str, flags: int) -> int:
        return os.open(path, flags | _FLAGS, mode)

    while True:
        draft = next(drafts)
        _remove_if_stale(draft)
        try:
            file = open(draft, "xb", opener=create)  # noqa: SIM115
        except FileExistsError:
            continue
        try:
            if _lock(file.fileno(), fallback=True) and _is_at(draft, file.fileno()):
                return draft, file
        except BaseException:
            file.close()  # without its lock the draft is stale
            _remove_if_stale(draft)
            raise
        file.close()  # race: another process removed the draft before the lock


def _remove_if_stale(draft: Path) -> None:
    """Remove a draft that no writer has locked."""
    try:
        handle = os.open(draft, _FLAGS | os.O_RDONLY)
    except OSError:  # it does not exist, or belongs to another user
        return
    try:
        if _lock(handle, fallback=False) and _is_at(draft, handle):
            _remove(draft)
    except OSError:  # the draft cannot be removed; leave it
        pass
    finally:
        os.close(handle)


def _remove(draft: Path) -> None:
    """Remove a draft and the files that SQLite keeps for it, the draft last."""
    for suffix in (*_DATABASE_SUFFIXES, ""):
        with suppress(FileNotFoundError):
            os.unlink(f"{draft}{suffix}")


def _lock(handle: int, fallback: bool) -> bool:
    """Lock an open file.

    Returns False if another process or thread holds the lock, and `fallback` if the
    system does not support locks.
    """
    if not fcntl:
        return fallback
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return fallback
    return True


class _LockedFiles(threading.local):
    """The real paths of the files that this thread has locked."""

    def __init__(self) -> None:
        self.paths: set[str] = set()


_locked_files = _LockedFiles()


@contextmanager
def lock_file(
    path: AnyPath, on_wait: Callable[[], object] | None = None
) -> Iterator[None]:
    """Lock a file while the block runs, to read, change and replace it.

    Parameters
    ----------
    path : path
        Symbolic links are followed. If there is no regular file, nothing is locked.
    on_wait : callable, optional
        Called once if another thread or process holds the lock, before waiting for it.

    Notes
    -----
    The lock is advisory (``flock``): it excludes other callers of `lock_file`, in this
    process and in others, but no other access. Blocks can be nested within a thread.
    The system releases the lock if the process ends. Without ``flock``, as on Windows,
    the block runs unlocked.

    `open_atomic` replaces the file by a rename, so a waiting caller may obtain the lock
    of the replaced file; it then waits for the lock of the new one.
    """
    target = os.path.realpath(as_path(path))
    if target in _locked_files.paths:
        yield
        return
    try:  # a signal handler may raise an error before and after each statement
        with _locked_file(target, on_wait):
            _locked_files.paths.add(target)
            yield
    finally:
        _locked_files.paths.discard(target)


def _locked_file(
    target: str, on_wait: Callable[[], object] | None
) -> AbstractContextManager[object]:
    """Open and lock the file at a path; an empty context if that is impossible.

    A file object, unlike a number, is closed also if nothing refers to it any more.
    """
    while fcntl:
        try:
            if not stat.S_ISREG(os.stat(target).st_mode):
                break
            file = _opened(target)
        except OSError:  # the caller raises the error when it opens the file
            break
        try:
            if not _lock(file.fileno(), fallback=True):
                if on_wait is not None:
                    on_wait()
                    on_wait = None
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            if _is_at(target, file.fileno()):
                return file
        except BaseException:
            file.close()
            raise
        file.close()
    return nullcontext()


def _opened(target: str) -> FileIO:
    """Open a file to lock it; some file systems lock only files open for writing."""
    try:
        return FileIO(target, "r+")
    except PermissionError:
        return FileIO(target, "r")


def _is_at(path: AnyPath, handle: int) -> bool:
    """Return whether `path` still refers to the open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def flush_folder(folder: Path) -> None:
    """Flush a rename to the disk, if the system can flush folders."""
    if fcntl:
        with suppress(OSError):  # the rename itself has succeeded
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder and its parents unless they exist; return its path.

    Raises
    ------
    OSError
        If the folder cannot be created; the message names a file that is in its place.
    """
    folder = Path(path)
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(ENOTDIR, "a file, not a folder", str(place))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
