"""Tests of atomic writes: complete or not at all, with the usual mode and owner."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import slotkern as sk
from slotkern.files import atomic
from slotkern.files.atomic import as_path, open_atomic

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX modes, links and locks")


def write(path: object, data: bytes = b"new") -> None:
    with open_atomic(path) as file:  # type: ignore[arg-type]
        file.write(data)


def test_swapped_arguments_of_write_slots_are_refused() -> None:
    slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[2])
    with pytest.raises(TypeError, match=r"a path is text, bytes or .*, not ndarray"):
        sk.write_slots(slots, "slots.csv")  # type: ignore[arg-type]


def test_paths_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 125)  # the limit of names is 255 bytes
    for given in (path, str(path), os.fsencode(path)):
        write(given, b"x" * 100_000)
        assert path.read_bytes() == b"x" * 100_000
        path.unlink()
    assert os.listdir(tmp_path) == []
    with pytest.raises(TypeError, match="int"):
        write(3)
    with pytest.raises(ValueError, match="null character"):
        write("a\0b")
    if os.name == "posix":
        odd = os.fsencode(tmp_path) + b"/\xff\xfe"
        write(odd)
        assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe"]
        assert as_path(odd).read_bytes() == b"new"


def test_an_error_in_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(error: BaseException) -> None:
        with open_atomic(path) as file:
            file.write(b"new")
            raise error

    for error in (ValueError("mine"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            fail(error)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_interrupt_during_the_search_for_stale_drafts_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []

    def stop(draft: Path) -> None:
        checked.append(draft)
        if len(checked) == 2:  # the own draft exists by now
            assert os.listdir(tmp_path) == [checked[0].name]
            raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "_remove_if_stale", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_errors_name_the_target_and_not_the_draft(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere/file'$"):
        write(tmp_path / "nowhere" / "file")
    with pytest.raises(IsADirectoryError, match=f"{tmp_path.name}'$"):
        write(tmp_path)
    with pytest.raises(OSError, match=r"File name too long: .*xxx'$"):
        write(tmp_path / ("x" * 256))


@posix
def test_mode_and_links_are_kept(tmp_path: Path) -> None:
    path, link, dangling = tmp_path / "file", tmp_path / "link", tmp_path / "dangling"
    before = os.umask(0o027)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o644, 0o600, 0o664, 0o755):
            path.chmod(mode)
            link.unlink(missing_ok=True)
            link.symlink_to("file")
            write(link, str(mode).encode())
            assert stat.S_IMODE(path.stat().st_mode) == mode
            assert link.is_symlink()
            assert path.read_text() == str(mode)
        dangling.symlink_to("target")
        write(dangling)
        assert (tmp_path / "target").read_bytes() == b"new"
    finally:
        os.umask(before)
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file", "link", "target"]


@posix
def test_pipes_and_devices_are_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join()
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    if os.path.exists("/dev/full"):
        link = tmp_path / "link"
        link.symlink_to("/dev/full")
        with pytest.raises(OSError, match=r"No space left on device: .*/link'$"):
            write(link, b"x" * 100_000)


LIMITED = """
import resource, sys
from slotkern.files.atomic import open_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    with open_atomic(sys.argv[1]) as file:
        file.write(b"x" * int(sys.argv[2]))
except OSError as error:
    print(error)
"""


@posix
@pytest.mark.parametrize("size", [4097, 1_000_000])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", LIMITED, str(path), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"[Errno 27] File too large: '{path}'\n"
    assert done.stderr == ""
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


STUCK = """
import sys, time
from slotkern.files.atomic import open_atomic
with open_atomic(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


@posix
def test_drafts_of_killed_writers_are_removed_and_of_live_writers_are_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    command = [sys.executable, "-c", STUCK, str(path)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"writing\n"
        write(path)  # while two processes write the same file
        assert path.read_bytes() == b"new"
        drafts = set(os.listdir(tmp_path)) - {"file"}
        assert len(drafts) == 2
        assert all(name.startswith(".slotkern-") for name in drafts)
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()
    write(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert os.listdir(tmp_path) == ["file"]


@posix
def test_concurrent_writers_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([65 + i]) * 50_000 for i in range(8)]

    def again(data: bytes) -> None:
        for _ in range(20):
            write(path, data)

    threads = [threading.Thread(target=again, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert path.read_bytes() in contents
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


@posix
def test_ctrl_c_between_two_statements_frees_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    path = tmp_path / "file"
    write(path)

    class Interrupting(set[str]):
        def add(self, element: str) -> None:
            super().add(element)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(atomic._locked_files, "paths", Interrupting())
        with pytest.raises(KeyboardInterrupt), atomic.lock_file(path):
            pass
        assert not atomic._locked_files.paths
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@posix
def test_ctrl_c_while_a_draft_is_made_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> bool:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "_is_at", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "file")
    assert os.listdir(tmp_path) == []
