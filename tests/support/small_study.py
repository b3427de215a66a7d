"""A small study, and helpers that read its output files."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from slotkern import studies

SMALL = """
name = "small"
seed = 7
chunk = 10
metrics = ["start", "finish", "cost", "nearest", "farthest", "q"]

[environment]
preset = "square"
nodes = 20
interval = 800

[job]
nodes = 3
volume = 500
budget = 300
shape = "ragged"

[algorithms]
first = { label = "AMP", criterion = "first" }
finish = { label = "minFinish", criterion = "finish" }
cost = { label = "minCost", criterion = "cost" }

[[sweep]]
name = "base"

[[sweep]]
name = "budget"
share = 0.5
algorithms = ["cost"]
grid.job.budget = [125, 200, 400]

[[compare]]
metric = "cost"
published = { cost = 180.0, first = 1.0, finish = "dearer" }

[[compare]]
metric = "cost"
best = "cost"
against = ["first", "finish"]
worst = true
published = 0.1

[[compare]]
metric = "cost"
sweep = "budget"
against = ["cost"]
published = [100, 200, 300]

[[remark]]
kind = "unmatched"
algorithms = ["first"]
metrics = ["cost"]
text = "Nobody knows why."

[[figure]]
name = "bars"
metrics = ["cost"]

[[figure]]
name = "curves"
sweep = "budget"
metrics = ["cost"]
"""

TWINS = (
    SMALL[: SMALL.index("[[sweep]]")].replace(
        'criterion = "cost" }', 'criterion = "cost", twin = true }'
    )
    + """
[[compare]]
metric = "cost"
published = { cost = 120.0 }
"""
)


def load_small(folder: Path, text: str = SMALL) -> studies.Study:
    """Return the small study, or another, read from a file in the folder."""
    path = folder / "small.toml"
    path.write_text(text)
    return studies.load_study(path)


def contents(folder: Path) -> dict[str, Any]:
    """Return the data set of a campaign, by file."""
    files = sorted((folder / "cycles").glob("*.parquet"))  # without temporary files
    return {file.name: parquet.read_table(file).to_pydict() for file in files}


def same(one: Any, other: Any) -> bool:
    """Return True if two data sets are identical, NaN included."""
    return str(one) == str(other)
