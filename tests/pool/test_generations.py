"""Tests of two writers of one pool file: no saved change is overwritten silently."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import slotkern as sk
from slotkern.files.archive import write_archive
from slotkern.files.atomic import lock_file

BOOK = """
import sys, slotkern as sk
from slotkern.files.atomic import lock_file
path, owner = sys.argv[1:]
for _ in range(5):
    with lock_file(path):
        pool = sk.SlotPool.load(path)
        pool.book(pool.find(sk.Request(1, 1)), owner=owner)
        pool.save(path)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    slots = sk.make_slots(node=range(4), start=0, end=9, performance=1, price=1)
    sk.SlotPool(slots).save(tmp_path / "pool.npz")
    return tmp_path / "pool.npz"


def booked(pool: sk.SlotPool, owner: str) -> sk.SlotPool:
    pool.book(pool.find(sk.Request(2, 3)), owner=owner)
    return pool


def test_save_rejects_file_changed_since_load(path: Path) -> None:
    one, other = sk.SlotPool.load(path), sk.SlotPool.load(path)
    copies = [other.copy(), pickle.loads(pickle.dumps(other))]
    booked(one, "alice").save(path)
    booked(one, "alice").save(path)  # the first save has updated its generation
    saved = path.read_bytes()
    for late in (other, *copies):
        message = r"pool is of generation 1 \(\w+\), the file has generation 3 \(\w+\)"
        with pytest.raises(sk.PoolFileChangedError, match=message) as caught:
            booked(late, "bob").save(path)
        assert pickle.loads(pickle.dumps(caught.value)).found == caught.value.found
        assert path.read_bytes() == saved
    os.symlink(path, path.with_name("link.npz"))
    with pytest.raises(sk.PoolFileChangedError, match=r"link\.npz: the file changed"):
        other.save(path.with_name("link.npz"))
    other.save(path.with_name("elsewhere.npz"))
    other.save(path, overwrite=True)
    assert sk.SlotPool.load(path).owners == ["bob"]
    with pytest.raises(sk.PoolFileChangedError, match="generation 4"):
        one.save(path)
    path.unlink()
    one.save(path)  # there is no file to overwrite


def test_equal_generations_differ_by_content(path: Path) -> None:
    first = path.read_bytes()
    one = sk.SlotPool.load(path)
    booked(one, "alice").save(path)
    path.write_bytes(first)
    booked(sk.SlotPool.load(path), "bob").save(path)
    with pytest.raises(sk.PoolFileChangedError, match=r"generation 2 .*generation 2"):
        one.save(path)
    path.write_text("none")
    with pytest.raises(sk.PoolFileChangedError, match="generation 0"):
        one.save(path)


def test_files_without_generation_differ_by_bytes(path: Path) -> None:
    with np.load(path) as whole:
        older = {name: whole[name] for name in whole if "generation" not in name}
    with open(path, "wb") as file:
        write_archive(file, older)
    one, other = sk.SlotPool.load(path), sk.SlotPool.load(path)
    booked(one, "alice").save(path)
    with pytest.raises(sk.PoolFileChangedError, match=r"of generation 0 .*tion 1"):
        other.save(path)


@pytest.mark.parametrize(
    ("name", "value"), [("generation", -1), ("generation digest", 3)]
)
def test_invalid_generation_is_rejected(path: Path, name: str, value: object) -> None:
    with np.load(path) as whole:
        arrays = dict(whole) | {name: np.array(value)}
    with open(path, "wb") as file:
        write_archive(file, arrays)
    with pytest.raises(
        ValueError, match=r"not a complete slotkern pool: .* generation"
    ):
        sk.SlotPool.load(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_processes_with_file_lock_lose_no_bookings(
    path: Path,
) -> None:
    words = [sys.executable, "-c", BOOK, str(path)]
    writers = [subprocess.Popen([*words, owner]) for owner in ("alice", "bob")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    table = sk.SlotPool.load(path).bookings()
    assert sorted(table["owner"].tolist()) == ["alice"] * 5 + ["bob"] * 5


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_file_lock_is_reentrant_and_exclusive(path: Path) -> None:
    waits = threading.Event()
    done: list[str] = []

    def write() -> None:
        with lock_file(path, waits.set):
            done.append("other")

    with lock_file(path), lock_file(path):
        other = threading.Thread(target=write)
        other.start()
        assert waits.wait(30)
        sk.SlotPool.load(path).save(
            path
        )  # the other thread waits although the file is replaced
        done.append("this")
    other.join(30)
    assert done == ["this", "other"]
    with lock_file(path.with_name("none.npz")), lock_file(os.devnull):
        pass


def test_save_continues_after_interrupt_past_replacement(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = sk.SlotPool.load(path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("slotkern.files.atomic.flush_folder", interrupt)
        with pytest.raises(KeyboardInterrupt):
            booked(pool, "alice").save(path)
    assert sk.SlotPool.load(path).owners == ["alice"]
    booked(pool, "bob").save(path)
    assert sk.SlotPool.load(path).owners == ["alice", "bob"]


def test_failed_save_keeps_generation(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, new = sk.SlotPool.load(path), sk.SlotPool(sk.SlotPool.load(path).slots)

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("slotkern.pool.generations.write_archive", fail)
        for each in (pool, new):
            with pytest.raises(OSError, match="full"):
                each.save(path)
    booked(pool, "alice").save(path)
    new.save(path)  # it was never loaded from the file
    assert sk.SlotPool.load(path).owners == []


def test_equal_pools_have_equal_files(tmp_path: Path) -> None:
    files = []
    for byte in (0x00, 0xAB):  # in the padding between fields, as in fresh memory
        raw = np.full(9 * sk.SLOT.itemsize, byte, np.uint8)
        slots = raw.view(sk.SLOT)
        slots["node"], slots["start"], slots["end"] = np.arange(9), 0, 100
        slots["performance"], slots["price"] = 1, 1
        folder = tmp_path / str(byte)
        folder.mkdir()
        booked(sk.SlotPool(slots), "alice").save(folder / "pool.npz")
        sk.write_slots(folder / "slots.npz", slots)
        files.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert files[0] == files[1]
