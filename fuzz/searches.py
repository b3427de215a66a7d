"""Compare searches and schedules with plain definitions, for as many cases as asked.

    python fuzz/searches.py [TARGET ...] [--cases N] [--first K] [--seed S]

Runs tests of ``tests/`` that compare random cases with exhaustive search. A case is a
function of the seed, the target and its number. The first case that differs ends its
target with the command that repeats the case, and the run with exit code 1.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [
    str(TESTS / name)
    for name in ("..", "support", "window", "pool", "batch", "domains")
]
# The tests below are imported with these settings.
settings.register_profile(
    "long", deadline=None, database=None, suppress_health_check=[*HealthCheck]
)
settings.load_profile("long")

import test_caps  # noqa: E402
import test_compound  # noqa: E402
import test_domains  # noqa: E402
import test_host_pool_model  # noqa: E402
import test_remote  # noqa: E402
import test_ruled_searches  # noqa: E402

MOST_BYTES = 4096  # that a case draws; cases that need more are not counted
PAUSE = 60  # seconds between two lines of progress

Test = Callable[..., None]


class Target(NamedTuple):
    """Tests that take turns, and what a case of each compares."""

    tests: list[Test]
    text: str


def with_folder(test: Any, folder: Path) -> Test:
    """Return a test of drawn data whose first argument is a folder."""
    inner = test.hypothesis.inner_test

    @given(st.data())
    def run(data: st.DataObject) -> None:
        inner(folder, data)

    return run


def sequences_of_capacities(folder: Path) -> Test:
    """Return the test of changes of capacities, whose first argument makes folders."""

    class Folders:
        def mktemp(self, _name: str) -> Path:
            return folder

    @given(st.integers(0, 2**64).map(random.Random))
    def run(rnd: random.Random) -> None:
        test: Any = test_caps.test_sequences_of_changes_against_the_model
        test.hypothesis.inner_test(Folders(), rnd)

    return run


def batches() -> Test:
    """Return the test of the best schedule."""

    @given(st.integers(0, 2**64))
    def run(seed: int) -> None:
        import test_optimal  # needs HiGHS

        test_optimal.check(seed)

    return run


def targets(folder: Path) -> dict[str, Target]:
    """Return all targets by name; their files are written to the folder."""
    ruled, compound = test_ruled_searches, test_compound
    shares = test_host_pool_model
    return {
        "groups": Target(
            [
                ruled.test_searches_under_group_rules_equal_exhaustive_search,
                ruled.test_searches_under_group_rules_of_competing_groups,
            ],
            "20 searches of one request under group rules",
        ),
        "compounds": Target(
            [
                compound.test_roles_on_different_nodes_equal_all_disjoint_sets,
                compound.test_roles_on_common_nodes_equal_all_disjoint_sets,
                compound.test_any_of_takes_the_first_best_option,
                compound.test_chains_equal_all_pairs_on_a_fine_grid,
                compound.test_starts_are_those_of_all_windows,
            ],
            "1 to 4 searches of one job of several parts",
        ),
        "capacities": Target(
            [
                sequences_of_capacities(folder),
                test_caps.test_schedule_equals_find_and_book,
            ],
            "a sequence of 5 or 6 searches and changes",
        ),
        "shares": Target(
            [
                with_folder(
                    shares.test_any_sequence_of_changes_equals_the_model, folder
                ),
                shares.test_schedule_equals_finding_and_booking,
                shares.test_after_all_is_released_the_pool_equals_the_new_one,
            ],
            "a sequence of 3 to 10 searches and changes",
        ),
        "domains": Target(
            [test_domains.test_searches_equal_those_of_the_joined_pool],
            "40 searches over domains, with changes in between",
        ),
        "remote": Target(
            [test_remote.test_searches_equal_those_of_domains],
            "24 searches over agents of domains, with changes in between",
        ),
        "batches": Target([batches()], "the best schedule of 1 to 3 jobs"),
    }


def run(name: str, target: Target, first: int, cases: int, seed: int) -> bool:
    """Run cases from `first` on; return False after one that differs."""
    done, begin = 0, time.monotonic()
    reported, number = begin, first
    while done < cases:
        test: Any = target.tests[number % len(target.tests)]
        data = random.Random(f"{seed} {name} {number}").randbytes(MOST_BYTES)
        try:
            used = test.hypothesis.fuzz_one_input(data)
        except Exception:
            traceback.print_exc()
            print(
                f"{name}: case {number} differs; repeat it with\n  python "
                f"fuzz/searches.py {name} --seed {seed} --first {number} --cases 1"
            )
            return False
        done, number = done + (used is not None), number + 1
        if time.monotonic() > reported + PAUSE:
            reported = time.monotonic()
            rate = done / (reported - begin)
            print(f"{name}: {done:,} cases, {rate:,.0f} a second", flush=True)
    print(f"{name}: {done:,} cases equal ({target.text}), seed {seed}", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", nargs="*", metavar="TARGET")
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # Files that are flushed take most of the time of a case on a disk.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        known = targets(Path(folder))
        for name in given.target:
            if name not in known:
                parser.error(f"TARGET is one of {', '.join(known)}, got {name}")
        equal = [
            run(name, known[name], given.first, given.cases, given.seed)
            for name in given.target or known
        ]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
