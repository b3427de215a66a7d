"""Tests of saving and loading pools, also damaged files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pools import random_slots

import slotkern as sk


def test_save_and_load(tmp_path):
    path = tmp_path / "pool.npz"
    pool = sk.SlotPool(random_slots(9))
    pool.save(path)
    fresh = sk.SlotPool.load(path)
    assert fresh.slots.tolist() == pool.slots.tolist()
    early = sk.SlotPool(pool.slots)
    early.advance(-5)  # before all slots
    early.save(path)
    assert sk.SlotPool.load(path).now == -5
    where = pool.slots["tag"] > 2
    assert fresh.find(sk.Request(1, 2, where=where)) == pool.find(
        sk.Request(1, 2, where=where)
    )
    windows = [w for w in pool.schedule([sk.Request(2, 9)] * 6) if w is not None]
    pool.advance(4)
    pool.remove_node(6)
    pool.save(path, overwrite=True)  # the other pool has saved to the same file
    loaded = sk.SlotPool.load(path)
    for name in ("slots", "origin", "booked", "nodes"):
        assert getattr(loaded, name).tolist() == getattr(pool, name).tolist()
    assert loaded.now == pool.now
    for window in windows:
        pool.release(window)
        loaded.release(window)
    assert loaded.slots.tolist() == pool.slots.tolist()
    assert os.listdir(tmp_path) == ["pool.npz"]


def test_damaged_files_raise_one_error(tmp_path):
    path = tmp_path / "pool.npz"
    pool = sk.SlotPool(random_slots(9))
    pool.book(pool.find(sk.Request(2, 5)))
    pool.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="not a complete slotkern pool"):
            sk.SlotPool.load(path)
    for _ in range(60):
        bad = bytearray(whole)
        bad[int(rng.integers(len(bad)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(bad))
        try:
            loaded = sk.SlotPool.load(path)
        except ValueError as error:
            message = str(error)
        else:  # a byte without meaning for the pool
            assert loaded.slots.tolist() == pool.slots.tolist()
            continue
        assert "not a complete slotkern pool" in message
    np.savez(path, origin=np.zeros(3))
    with pytest.raises(
        ValueError, match="not a complete slotkern pool: it has no 'format'"
    ):
        sk.SlotPool.load(path)
    path.write_text("rubbish")
    with pytest.raises(ValueError, match="slotkern pool: it is not a zip archive"):
        sk.SlotPool.load(path)
    with pytest.raises(FileNotFoundError):
        sk.SlotPool.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match=r"none/pool\.npz'$"):
        pool.save(tmp_path / "none" / "pool.npz")
    with pytest.raises(OSError, match=f"{tmp_path.name}'$"):
        pool.save(tmp_path)


def test_flipped_bits_raise_or_are_harmless(tmp_path):
    path = tmp_path / "pool.npz"
    pool = sk.SlotPool(random_slots(3)[:6])
    pool.book(pool.find(sk.Request(1, 1)))
    pool.save(path)
    whole = path.read_bytes()
    errors = set()
    bits = np.random.default_rng(1).permutation(len(whole) * 8)[:3000]
    for bit in bits.tolist():
        bad = bytearray(whole)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        try:
            loaded = sk.SlotPool.load(path)
        except ValueError as error:
            errors.add(str(error))
            continue
        for name in ("slots", "origin", "booked"):
            assert getattr(loaded, name).tolist() == getattr(pool, name).tolist()
        assert loaded.now == pool.now
    assert len(errors) > 20
    for text in errors:
        assert text.startswith(f"{path}: not a complete slotkern pool: ")
        assert len(text.splitlines()) == 1


@pytest.mark.parametrize("packing", [8, 12, 14])  # deflate, bzip2, lzma
def test_compressed_members_are_rejected(tmp_path, packing):
    """A few kB that unpack to gigabytes are rejected before memory is allocated."""
    path = tmp_path / "pool.npz"
    sk.SlotPool(random_slots(9)).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(name, content + bytes(10**7))
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    with pytest.raises(ValueError, match="has an unsupported compression"):
        sk.SlotPool.load(path)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "format",
            np.array("slotkern pool 9"),
            "its format is not one of 'slotkern pool 4'",
        ),
        ("format", np.array([["slotkern pool 1"]]), "its format is not"),
        ("origin", np.zeros(3), "origin has the type float64"),
        ("origin", np.zeros((2, 2), sk.SLOT), "origin has the type"),
        ("now", np.array([1.0, 2.0]), "now is [1.0, 2.0]"),
        ("now", np.array(np.nan), "now is nan"),
        ("now", np.array("1"), "now is '1'"),
        ("gone", np.array([1.5]), "gone has the type float64"),
        ("gone", np.array([12345], "i4"), "a removed node is unknown"),
        ("free", np.zeros(3, "c16"), "free has the type complex128"),
        ("booked", np.zeros(3, sk.SLOT), "booked has the type"),
    ],
)
def test_invalid_arrays_are_rejected(tmp_path, name, value, message):
    path = tmp_path / "pool.npz"
    sk.SlotPool(random_slots(9)).save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    np.savez(path, **arrays | {name: value})
    with pytest.raises(ValueError, match="not a complete slotkern pool") as caught:
        sk.SlotPool.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def as_spans(rows):
    fields = [("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8")]
    return np.array(
        [(node, node, start, start + length) for node, start, length in rows],
        np.dtype(fields, align=True),
    )


SPANS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(1, 3)), max_size=4
)


@given(SPANS, SPANS)
def test_overlapping_spans_are_rejected(tmp_path_factory, free, booked):
    path = tmp_path_factory.mktemp("pool") / "pool.npz"
    slots = sk.make_slots(node=[0, 1], start=0, end=20, performance=1, price=[1.0, 2.0])
    sk.SlotPool(slots).save(path)
    spans = [as_spans(sorted(rows)) for rows in (free, booked)]
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    np.savez(path, **arrays | dict(zip(("free", "booked"), spans, strict=True)))
    clash = any(
        a[0] == b[0] and a[1] < b[1] + b[2] and b[1] < a[1] + a[2]
        for a, b in combinations(free + booked, 2)
    )
    if clash:
        with pytest.raises(ValueError, match="pool: spans overlap"):
            sk.SlotPool.load(path)
        return
    pool = sk.SlotPool.load(path)
    assert len(pool.slots) == len(free)
    assert len(pool.booked) == len(booked)


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes and links")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json", ".CSV"])
def test_save_rejects_other_suffixes(tmp_path, suffix):
    path = tmp_path / f"p{suffix}"
    pool = sk.SlotPool(sk.make_slots(node=0, start=[0], end=9, performance=1, price=1))
    with pytest.raises(ValueError, match=f"a pool is saved as .npz, not as {suffix}"):
        pool.save(path)
    assert not path.exists()


def test_save_preserves_links_and_permissions(tmp_path):
    pool = sk.SlotPool(random_slots(9))
    path, link = tmp_path / ("x" * 250), tmp_path / "link"
    link.symlink_to(path)
    pool.save(os.fsencode(link))
    path.chmod(0o644)
    pool.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o644
    assert sk.SlotPool.load(os.fsencode(path)).slots.tolist() == pool.slots.tolist()
    pool.save("/dev/null")
    assert not os.path.isfile("/dev/null")
    assert sorted(os.listdir(tmp_path)) == ["link", path.name]


SAVER = """
import sys
import numpy as np
import slotkern as sk
slots = sk.make_slots(node=np.arange(3000), start=0, end=100, performance=1, price=1)
pool = sk.SlotPool(slots)
while True:
    window = pool.find(sk.Request(3, 1), "start")
    pool.book(window)
    pool.save(sys.argv[1])
    print("saved", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process by signal")
def test_kill_while_saving_leaves_a_complete_file(tmp_path):
    path = tmp_path / "pool.npz"
    for delay in (0.0, 0.013, 0.029, 0.051):
        saver = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE
        )
        assert saver.stdout.readline() == b"saved\n"
        time.sleep(delay)
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        saver.stdout.close()
        loaded = sk.SlotPool.load(path)
        free = (loaded.slots["end"] - loaded.slots["start"]).sum()
        taken = (loaded.booked["end"] - loaded.booked["start"]).sum()
        assert free + taken == 3000 * 100
        assert len(loaded.booked) % 3 == 0
        assert len(loaded.booked) > 0
