"""Times of queues of jobs that share hosts: a table of rows, views and whole nodes.

    python benchmarks/shares.py [HOSTS JOBS DEMANDS WIDEST]

Compiles `benchmarks/shares.cpp` with the C++ compiler of the system and runs it. The
program plans each queue on rows and on views, and stops if their windows differ.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLAGS = ["-std=c++20", "-O3", "-ffp-contract=off", "-DSLOTKERN_MULTIVERSION=1"]
HEADER = (
    "| hosts, jobs | parts | demands | rows | views | whole nodes | rows, MB |"
    " makespan, h | whole nodes, h |\n|---|---|---|---|---|---|---|---|---|"
)


def main() -> int:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        print("this benchmark needs a C++ compiler", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "shares")
        source = str(ROOT / "benchmarks" / "shares.cpp")
        include = f"-I{ROOT / 'src' / '_native'}"
        subprocess.run([compiler, *FLAGS, include, source, "-o", program], check=True)
        command = [program, *sys.argv[1:]]
        text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    print(HEADER)
    for row in csv.DictReader(text.stdout.splitlines()):
        print(
            f"| {int(row['hosts']):,}, {int(row['jobs']):,} | 1 to {row['widest']} "
            f"| {int(row['demands']):,} | {row['rows']} | {row['views'] or '-'} "
            f"| {row['whole']} | {row['megabytes']} | {row['shared hours']} "
            f"| {row['whole hours']} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
