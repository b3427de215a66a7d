"""Compare the policy `Optimal` with all schedules of tiny batches.

    python fuzz/batches.py [--cases N] [--first K] [--seed S]

A case is a function of the seed and its number: up to three jobs on two or three nodes,
any target, with and without a limit, in both shapes. ``tests/batch/test_optimal.py``
enumerates all schedules in plain Python. Jobs, target and bound must agree. The first
difference ends the run with exit code 1 and the command that repeats the case. Printed:
the number of cases of each target, and the share that is proven. Cost: about 20 ms for
a case.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS / "batch"))

from test_optimal import check  # noqa: E402

PAUSE = 60  # seconds between two lines of progress


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count, proven, shown = Counter[str](), Counter[str](), time.monotonic()
    for case in range(options.first, options.first + options.cases):
        try:
            aim, is_proven = check([options.seed, case])
        except Exception:
            traceback.print_exc()
            print(
                f"python fuzz/batches.py --seed {options.seed} --first {case} --cases 1"
            )
            sys.exit(1)
        count[" ".join(aim)] += 1
        proven[" ".join(aim)] += is_proven
        if time.monotonic() > shown + PAUSE:
            shown = time.monotonic()
            print(f"{case + 1 - options.first} cases", flush=True)
    for name in sorted(count):
        share = proven[name] / count[name]
        print(f"{name:24}{count[name]:7,} cases equal, {share:.1%} proven")


if __name__ == "__main__":
    main()
