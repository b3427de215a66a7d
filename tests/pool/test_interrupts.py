"""Tests of signals during calls that would last minutes, and of forks meanwhile."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import slotkern as sk

SETUP = """
import signal, sys
import numpy as np
import slotkern as sk

# A process in the background ignores SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

def crowd(nodes, end=1e9, performance=1):
    return sk.make_slots(
        node=np.arange(nodes), start=0, end=end, performance=performance, price=1
    )

def queue(nodes, slots, own_speeds):
    "One slot after the other, so that no two nodes are ever free together."
    start = np.arange(slots) * 10.0
    node = np.arange(slots) % nodes
    return sk.make_slots(
        node=node, start=start, end=start + 9, price=1,
        performance=(1 + node / nodes) if own_speeds else 1.0,
    )

def priced(nodes, n, cells, excess):
    "A job on nodes whose rates change at `cells` times, and a budget for some nodes."
    from slotkern._kernels.pricing import Pricer, Prices
    from slotkern.batch.pricing import Free
    whole, price = np.arange(nodes), rng.uniform(1, 3, nodes)
    edge = np.sort(rng.uniform(0, 600, (nodes, cells + 1)), 1)
    pricer = Pricer(nodes, whole, price, "runtime", "cost", 1.0, 0.0, False)
    budget = 60 * np.sort(price)[:n].sum() * excess
    job = sk.Request(n, 1, budget=budget)
    pricer.add_job(job, np.ones(nodes, bool), np.full(nodes, 60.0))
    free = Free(whole, whole, np.zeros(nodes), np.full(nodes, 600.0))
    first, last = edge[:, :-1].ravel(), edge[:, 1:].ravel()
    rate = rng.uniform(0, 1, nodes * cells)
    return pricer, free, Prices(nodes, np.repeat(whole, cells), first, last, rate)

def ready():
    print("ready", flush=True)

rng = np.random.default_rng(1)
"""

CALLS = {
    "schedule": """
        pool = sk.SlotPool(crowd(20_000))
        jobs = [sk.Request(5_000, 10 + i % 7) for i in range(20_000)]
        call = lambda: pool.schedule(jobs)
    """,
    "find": """
        slots = queue(2_000, 1_000_000, True)
        call = lambda: sk.find_window(slots, sk.Request(2, 5), "start")
    """,
    "simulate_community": """
        jobs, nodes = sk.generate_community(jobs=200_000, nodes=1000)
        call = lambda: sk.simulate_community(jobs, nodes, "dec-g")
    """,
    "find in a changed pool": """
        pool = sk.SlotPool(queue(2_000, 1_000_000, True))
        pool.book(pool.find(sk.Request(1, 5)))
        call = lambda: pool.find(sk.Request(2, 5), "start")
    """,
    "find_windows": """
        pool = sk.SlotPool(queue(100, 20_000, True))
        jobs = [sk.Request(2, 5 + i % 7 / 9) for i in range(200_000)]
        call = lambda: sk.find_windows(pool, jobs)
    """,
    "find_windows in threads": """
        pool = sk.SlotPool(queue(100, 20_000, True))
        jobs = [sk.Request(2, 5 + i % 7 / 9) for i in range(200_000)]
        call = lambda: sk.find_windows(pool, jobs, threads=4)
    """,
    "find_alternatives": """
        slots = queue(500, 1_000_000, True)
        call = lambda: sk.find_alternatives(slots, sk.Request(2, 5))
    """,
    "choose": """
        cost = rng.random(400_000) + 1
        call = lambda: sk.choose(cost, cost, 200_000, cost.sum() / 2 - 0.1)
    """,
    "choose_each": """
        cost = rng.random(2_000) + 1
        call = lambda: sk.choose_each(cost, cost, 2_000, cost.sum() / 2)
    """,
    "search by value": """
        slots = sk.generate_environment("square", nodes=20_000, seed=1).slots
        job = sk.Request(200, 800, budget=20_000)
        call = lambda: sk.step_values(slots, job, "coordinated", max_work=10**12)
    """,
    "search under limits": """
        gb = rng.random(200)
        slots = sk.make_slots(
            node=np.arange(200), start=0, end=100, performance=1, price=1, gb=gb
        )
        job = sk.Request(9, 1, limits="2.5000001 <= sum(gb) <= 2.50000010001")
        call = lambda: sk.find_window(slots, job, "start", max_work=10**12)
    """,
    "choose under limits": """
        gb, cost = rng.random(2_000), rng.random(2_000)
        limit = [(gb, "<=", 20), (gb, ">=", 19.9999999999)]
        call = lambda: sk.choose(cost, cost, 50, 25, limits=limit, max_work=10**12)
    """,
    "least window at prices": """
        pricer, free, prices = priced(2_000, 1_000, 300, np.inf)
        call = lambda: pricer.least(0, free, prices)
    """,
    "least windows of all jobs": """
        pricer, free, prices = priced(2_000, 1_000, 300, np.inf)
        call = lambda: pricer.least_of_all(free, prices)
    """,
    "least window within a budget": """
        pricer, free, prices = priced(1_000, 10, 500, 1.01)
        call = lambda: pricer.least(0, free, prices)
    """,
    "a published search": """
        slots = crowd(20_000)
        job = sk.Request(5_000, 10)
        how = {"criterion": "cost", "shape": "ragged", "method": "published"}
        assert sk.find_window(slots[:9], job.replace(nodes=2), **how)  # compiled
        call = lambda: sk.find_window(slots, job, **how)
    """,
    "a published table": """
        slots = sk.make_slots(**{name: crowd(200)[name] for name in sk.SLOT.names},
                              q=np.arange(200.0))
        job = sk.Request(99, 10, budget=30_000)
        how = {"criterion": "q", "method": "published"}
        assert sk.find_window(slots[:9], job.replace(nodes=2), **how)
        call = lambda: sk.find_window(slots, job, **how)
    """,
}
CAUGHT = """
ready()
try:
    call()
except KeyboardInterrupt:
    print("stopped")
else:
    print("finished")
again = sk.find_window(crowd(3), sk.Request(2, 5))
print("and went on" if again.start == 0 else again)
"""


def run(*snippets: str):
    """Start a process, and wait until it is ready and a moment longer."""
    program = "\n".join(map(textwrap.dedent, (SETUP, *snippets)))
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    return process


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_interrupts_long_call(name):
    process = run(CALLS[name], CAUGHT)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=1500)
    assert out.splitlines() == ["stopped", "and went on"]


STOPPED = """
def stop(number, frame):
    raise TimeoutError(signal.Signals(number).name)

signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGALRM, stop)
if by_timer:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
ready()
try:
    call()
except TimeoutError as error:
    print(error)
else:
    print("finished")
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
@pytest.mark.parametrize(
    "name",
    [
        "schedule",
        "simulate_community",
        "find_windows in threads",
        "find_alternatives",
        "choose",
        "search by value",
        "search under limits",
        "choose under limits",
        "a published search",
    ],
)
def test_sigterm_handler_interrupts_long_call(name):
    process = run("by_timer = False", CALLS[name], STOPPED)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=1500)
    assert out.split() == ["SIGTERM"]


@pytest.mark.skipif(os.name != "posix", reason="needs timers")
def test_timer_signal_interrupts_long_call():
    process = run("by_timer = True", CALLS["search under limits"], STOPPED)
    out, _ = process.communicate(timeout=1500)
    assert out.split() == ["SIGALRM"]


@pytest.mark.skipif(os.name != "posix", reason="needs timers")
def test_repeated_timer_signals_do_not_prevent_completion():
    process = run(
        CALLS["search under limits"],
        """
        signals = []
        signal.signal(signal.SIGALRM, lambda *_: signals.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        ready()
        try:
            sk.find_window(slots, job, "start", max_work=10_000_000)
        except ValueError as error:
            print("max_work" in str(error), len(signals) > 1)
        """,
    )
    out, _ = process.communicate(timeout=1500)
    assert out.split() == ["True", "True"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_ctrl_c_undoes_booking_of_many_windows():
    process = run(
        """
        pool = sk.SlotPool(crowd(20_000))
        windows = list(sk.find_alternatives(pool, sk.Request(5_000, 10), limit=780))
        before = pool.slots
        ready()
        try:
            pool.book(windows, owner="me")
        except KeyboardInterrupt:
            print("stopped", len(windows))
        print(len(pool.booked), pool.owners, np.array_equal(pool.slots, before))
        pool.book(windows[:7], owner="me")
        print(len(pool.windows("me")))
        """
    )
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=1500)
    assert out.splitlines() == ["stopped 780", "0 [] True", "7"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_a_signal_stops_release_of_owner_between_windows():
    process = run(
        """
        import time

        signal.signal(signal.SIGALRM, signal.default_int_handler)
        pool = sk.SlotPool(crowd(20_000))
        windows = list(sk.find_alternatives(pool, sk.Request(5_000, 10), limit=120))
        before = pool.slots
        ready()
        pool.book(windows, owner="me")
        begun = time.perf_counter()
        pool.release("me")
        delay = 0.5 * (time.perf_counter() - begun)
        left = []
        while not left:
            pool.book(windows, owner="me")
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                pool.release("me")
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            left = pool.windows("me")
            if len(left) == 120:  # interrupted while it checked that all are booked
                pool.release("me")
                left, delay = [], 1.3 * delay
            elif not left:
                delay *= 0.8
        print(0 < len(left) < 120, len(pool.booked) == 5_000 * len(left))
        pool.release("me")
        print(len(pool.booked), np.array_equal(pool.slots, before))
        """
    )
    out, _ = process.communicate(timeout=1500)
    assert out.splitlines() == ["True True", "0 True"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_ctrl_c_returns_bookings_made_before():
    process = run(
        CALLS["schedule"],
        """
        ready()
        try:
            call()
        except KeyboardInterrupt as stop:
            done = stop.bookings
        print(0 < len(done) < len(jobs), done.booked.all())
        print(len(done.parts) == len(pool.booked) == 5_000 * len(done))
        print(len(done.names) == len(done.listing()) == len(done))
        for window in done:
            pool.release(window)
        print(pool.slots.tolist() == pool.origin.tolist())
        """,
    )
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=1500)
    assert out.split() == ["True"] * 5


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_ctrl_c_leaves_add_slots_atomic():
    process = run(
        """
        import os, threading, time

        slots = queue(2_000, 200_000, True)
        more = queue(2_000, 200_000, True)
        more["start"], more["end"] = more["start"] + 3e6, more["end"] + 3e6
        pool = sk.SlotPool(slots)
        pool.book(pool.find(sk.Request(1, 5)))
        whole, before = pool.copy(), pool.slots
        began = time.perf_counter()
        whole.add_slots(more)
        took, after = time.perf_counter() - began, whole.slots
        ready()
        stopped = 0
        for k in range(12):
            copy = pool.copy()
            try:
                stop = (os.getpid(), signal.SIGINT)
                kill = threading.Timer(took * k / 12, os.kill, stop)
                kill.start()
                copy.add_slots(more)
                kill.join()
            except KeyboardInterrupt:
                pass
            kill.join()
            added = len(copy) > len(before)
            stopped += not added
            assert np.array_equal(copy.slots, after if added else before)
            job = sk.Request(1, 7, earliest=3e6)
            assert (copy.find(job) is None) != added
            if not added:
                copy.add_slots(more)
                assert np.array_equal(copy.slots, after)
        print(stopped > 0)
        """,
    )
    out, _ = process.communicate(timeout=1500)
    assert out.split() == ["True"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_call_continues_after_handler_returns():
    process = run(
        """
        signals = []
        signal.signal(signal.SIGINT, lambda *_: signals.append(1))
        pool = sk.SlotPool(crowd(2_000))
        jobs = [sk.Request(1_000, 1 + i % 7) for i in range(8_000)]
        ready()
        done = pool.schedule(jobs)
        other = sk.SlotPool(crowd(2_000)).schedule(jobs[:50])
        print(len(signals), done.booked.all(), len(done), [*done[:50]] == [*other])
        """,
    )
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=1500)
    assert out.split() == ["1", "True", "8000", "True"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_continued_search_returns_no_duplicates():
    process = run(
        """
        signals = []
        signal.signal(signal.SIGINT, lambda *_: signals.append(1))
        slots, job = crowd(2_000), sk.Request(2, 1.0)
        first = sk.find_alternatives(slots, job, limit=400_000)
        ready()
        while not signals:
            other = sk.find_alternatives(slots, job, limit=400_000)
        print(len(signals), len(first), np.array_equal(first.table, other.table))
        parts = other.parts.ravel()
        print(len(np.unique(parts[["node", "start"]])) == len(parts))
        """,
    )
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=1500)
    assert out.split() == ["1", "400000", "True", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_child_can_use_pool_locked_by_another_thread():
    process = run(
        """
        import os, threading

        pool = sk.SlotPool(crowd(2_000))
        jobs = [sk.Request(1_000, 1 + i % 7) for i in range(8_000)]
        result = []
        thread = threading.Thread(target=lambda: result.append(pool.schedule(jobs)))
        thread.start()
        ready()
        for _ in range(5):
            child = os.fork()
            if child == 0:
                count = len(pool.booked)
                window = pool.find(sk.Request(3, 5))
                pool.book(window)
                whole = count % 1_000 == 0 and len(pool.booked) == count + 3
                os._exit(0 if whole else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print(thread.is_alive())
        thread.join()
        print(result[0].booked.all(), len(pool.booked) == 1_000 * len(jobs))
        """,
    )
    out, _ = process.communicate(timeout=1500)
    assert out.split()[1:] == ["True", "True"]


def test_search_with_too_many_threads():
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
    jobs = [sk.Request(1, 1 + k % 3) for k in range(100_000)]
    found = sk.find_windows(slots, jobs, threads=10**6)
    assert [window.start for window in found[:9]] == [0] * 9
    assert found[:300] == sk.find_windows(slots, jobs[:300])


def test_excessive_memory_is_rejected(monkeypatch):
    with pytest.raises(ValueError, match="n must be at most 10000000"):
        sk.choose_each([1, 2], [1, 2], 10**9, 5)
    with pytest.raises(ValueError, match=r"nodes: 50000000 nodes .* more than"):
        sk.generate_environment(nodes=5 * 10**7, load=(0.0, 0.0))
    endless = sk.make_slots(node=[0], start=0, end=2.4e15, performance=1, price=1)
    with pytest.raises(ValueError, match="4,000,000 parts; give a limit"):
        sk.find_alternatives(endless, sk.Request(1, 0.8))
    assert len(sk.find_alternatives(endless, sk.Request(1, 0.8), limit=7)) == 7
    monkeypatch.setattr("slotkern.search.alternatives.MAX_PARTS", 7)
    with pytest.raises(ValueError, match="give a limit"):
        sk.find_alternatives(endless, sk.Request(1, 0.8), "cost")
    assert len(sk.find_alternatives(endless, sk.Request(1, 0.8), "cost", limit=7)) == 7


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({"level": 1e-320, "exponent": -8.0}, "is 0.0 for performance"),
        ({"level": 1e305, "exponent": 8.0}, "is inf for performance"),
    ],
)
def test_overflowing_prices_are_rejected(law, message):
    with pytest.raises(ValueError, match=rf"price: .* {message}"):
        sk.generate_environment("aep", price=law)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_ctrl_c_interrupts_wait_for_pool_lock():
    process = run(
        CALLS["schedule"],
        """
        import os, threading, time
        pool.book(pool.find(jobs[0]))
        other = threading.Thread(target=call, daemon=True)
        other.start()
        time.sleep(0.3)  # now the thread has locked the pool
        ready()
        try:
            pool.schedule(jobs, owner="me")
        except KeyboardInterrupt as stop:
            print(len(stop.bookings), other.is_alive(), pool.owners, flush=True)
        os._exit(0)
        """,
    )
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=1500)
    assert out.split("\n")[0] == "0 True []"


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_ctrl_c_leaves_every_booking_with_owner():
    """The signal comes from a thread that runs whenever the GIL is released."""
    process = run(
        CALLS["schedule"],
        """
        import os, threading
        ready()
        stopped = 0
        for turn in range(25):
            pool = sk.SlotPool(crowd(2_000))
            jobs = [sk.Request(500, 10 + i % 7) for i in range(4_000)]
            timer = threading.Timer(0.002 * turn, os.kill, (os.getpid(), signal.SIGINT))
            done = []
            try:
                timer.start()
                done = pool.schedule(jobs, owner="me")
                timer.join()
            except KeyboardInterrupt as stop:
                done = getattr(stop, "bookings", done)
                stopped += 1
            mine = pool.windows("me")
            assert len(pool.booked) == sum(len(w.nodes) for w in mine)
            assert len(mine) == sum(w is not None for w in done)
        print(stopped)
        """,
    )
    out, _ = process.communicate(timeout=1500)
    assert int(out) == 25
