"""SlotPool: what save writes and load reads, whole or not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from test_pool import random_slots

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
    pool.save(path)
    loaded = sk.SlotPool.load(path)
    for name in ("slots", "origin", "booked", "nodes"):
        assert getattr(loaded, name).tolist() == getattr(pool, name).tolist()
    assert loaded.now == pool.now
    for window in windows:
        pool.release(window)
        loaded.release(window)
    assert loaded.slots.tolist() == pool.slots.tolist()
    assert os.listdir(tmp_path) == ["pool.npz"]


def test_bad_files_give_one_clear_error(tmp_path):
    path = tmp_path / "pool.npz"
    pool = sk.SlotPool(random_slots(9))
    pool.book(pool.find(sk.Request(2, 5)))
    pool.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="not a whole slotkern pool"):
            sk.SlotPool.load(path)
    for _ in range(60):
        bad = bytearray(whole)
        bad[int(rng.integers(len(bad)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(bad))
        try:
            loaded = sk.SlotPool.load(path)
        except ValueError as error:
            message = str(error)
        else:  # a byte that says nothing about the pool
            assert loaded.slots.tolist() == pool.slots.tolist()
            continue
        assert "not a whole slotkern pool" in message
    np.savez(path, origin=np.zeros(3))
    with pytest.raises(
        ValueError, match="not a whole slotkern pool: it has no 'format'"
    ):
        sk.SlotPool.load(path)
    path.write_text("rubbish")
    with pytest.raises(ValueError, match="slotkern pool: it is no zip archive"):
        sk.SlotPool.load(path)
    with pytest.raises(FileNotFoundError):
        sk.SlotPool.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match=r"none/pool\.npz'$"):
        pool.save(tmp_path / "none" / "pool.npz")
    with pytest.raises(OSError, match=f"{tmp_path.name}'$"):
        pool.save(tmp_path)


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
def test_killed_while_saving(tmp_path):
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
