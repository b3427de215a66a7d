"""Compares choices and searches by value with exhaustive search on extreme numbers.

``python benchmarks/extremes.py --choices 100000 --searches 100000 --seed 1`` draws
cases of the kinds in tests/support/extremes.py, counts them, and stops at the first
wrong answer, whose case it prints.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from extremes import (
    SHAPES,
    SOURCES,
    check_each,
    check_items,
    check_search,
    drawn,
    items,
    searches,
)

OPTIONS = ({}, {}, {}, {"method": "search"}, {"max_work": 3}, {"gap": 0.01})


def choices(count: int, source: random.Random) -> None:
    """Check `choose`, and for about every tenth case `choose_each`."""
    done = found = 0
    while done < count:
        case, options = items(drawn(source)), source.choice(OPTIONS)
        try:
            found += check_items(case, **options)
            done += 1
            if source.random() < 0.1:
                done += check_each(case, **options)
        except Exception:
            print(f"wrong: {case} {options}")
            raise
    print(f"{done:,} choices, {found:,} of choose with an answer: none wrong")


def windows(count: int, source: random.Random) -> None:
    """Check searches from every kind of source, in both shapes."""
    done = found = 0
    while done < count:
        case = searches(drawn(source), drawn(source))
        options = source.choice(({}, {}, {"max_work": 2}, {"gap": 0.01}))
        try:
            found += check_search(case, **options)
        except Exception:
            print(f"wrong: {case.slots.tolist()} {case.request} {options}")
            raise
        done += len(SOURCES) * len(SHAPES)
    print(f"{done:,} searches by value, {found:,} with a window: none wrong")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choices", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for part, count in ((choices, options.choices), (windows, options.searches)):
        begin = perf_counter()
        part(count, random.Random(options.seed))
        print(f"  {perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
