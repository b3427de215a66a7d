"""The tables that Slurm's commands print, and their times, lengths and numbers.

`table` splits the text of ``sinfo``, ``squeue`` or ``sacct -P`` into rows: cells by
heading. The headings in the text decide which columns there are, so the user's own
formats are read as well. A row converts its cells; every error names the file, the
line, the heading and the value.

Times are seconds since 1970: epoch seconds (``SLURM_TIME_FORMAT=%s``), or local dates,
which need a clock with a zone. An unknown time is NaN, an unlimited length is inf.
Cost: linear in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slotkern.foundation.checks import quote
from slotkern.foundation.hostlists import expand

from .calendar import NO_LIMIT
from .clock import Clock

__all__ = ["MISSING", "Row", "epoch_clock", "table"]

#: Words for a value that Slurm does not have, in lower case.
MISSING = frozenset(
    ("", "unknown", "none", "n/a", "(null)", "not_set", "invalid", "partition_limit")
)
_LENGTH = re.compile(
    r"(?:([0-9]{1,6})-)?(?:([0-9]{1,7}):)?([0-9]{1,7}):([0-9]{2})(?:\.[0-9]{1,9})?"
)
_DATE_LINE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r" +([0-9]{1,2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) ([0-9]{4})"
)
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
#: Bound on numbers: all integers up to it are float64.
_WHOLE = 2**53
#: Times beyond the year 9999 are not dates.
_LAST_TIME = 253_402_300_799


def epoch_clock(zone: str | None) -> Clock:
    """Return the clock of seconds since 1970, whose local dates are of a zone."""
    return Clock("1970-01-01T00:00:00Z", zone=zone)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, or one record of JSON: `cells` by heading.

    `line` is the number of the line in `source`, or the path of the record, such as
    ``nodes[3]``.
    """

    source: str
    line: int | str
    cells: Mapping[str, str]

    @property
    def place(self) -> str:
        """The source and the line or record, for errors."""
        line = f"line {self.line}" if isinstance(self.line, int) else self.line
        return f"{self.source}, {line}"

    def error(self, heading: str, allowed: str) -> ValueError:
        """Return the error for the value under a heading; `allowed` is its end."""
        value = quote(self.cells.get(heading, ""))
        return ValueError(f"{self.place}, {heading}: {value} {allowed}")

    def heading(self, *names: str) -> str | None:
        """Return the first of these headings that the row has."""
        return next((name for name in names if name in self.cells), None)

    def text(self, *names: str) -> str:
        """Return the text under the first heading there is; "" if it is missing."""
        name = self.heading(*names)
        value = "" if name is None else self.cells[name].strip()
        return "" if value.lower() in MISSING else value

    def time(self, name: str, clock: Clock) -> float:
        """Return the time under a heading in seconds since 1970; NaN if unknown."""
        value = self.text(name)
        if not value:
            return math.nan
        if value.isascii() and value.isdigit():
            if len(value) > 12 or int(value) > _LAST_TIME:
                raise self.error(name, "is no time before the year 10000")
            return float(value)
        return clock.time(value, f"{self.place}, {name}")

    def length(self, name: str) -> float:
        """Return the seconds of ``days-hours:minutes:seconds``; NaN if unknown."""
        value = self.text(name)
        if not value:
            return math.nan
        if value.upper() in NO_LIMIT:
            return math.inf
        match = _LENGTH.fullmatch(value)
        if match is None:
            raise self.error(
                name, "is no length such as 30:00, 4:00:00, 1-12:00:00 or UNLIMITED"
            )
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

    def whole(self, name: str) -> int:
        """Return the integer under a heading; ``16+`` is 16, a missing one is -1.

        Slurm abbreviates large numbers: ``5K`` is 5 * 1024.
        """
        value = self.text(name).rstrip("+")
        match = re.fullmatch(r"([0-9]{1,15})([KMG]?)", value)
        if not value:
            return -1
        if match is None:
            raise self.error(name, "is no whole number")
        number = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
        if number > _WHOLE:
            raise self.error(name, "is larger than 2**53")
        return number

    def hosts(self, name: str, most: int) -> list[str]:
        """Return the names of the hostlist under a heading, at most `most`."""
        value = self.text(name)
        try:
            return expand(value, most) if value else []
        except ValueError as error:
            raise ValueError(f"{self.place}, {name}: {error}") from None


def table(
    text: str, source: str, headings: Iterable[str], clock: Clock
) -> tuple[list[Row], float]:
    """Split the text of a command into rows; also return the time it was printed at.

    Parameters
    ----------
    text : str
    source : str
        The name of the text in errors.
    headings : iterable of str
        The first line with one of these headings is the line of headings.
    clock : Clock
        The clock of `epoch_clock`, for the date line that ``squeue -l`` prints.

    Returns
    -------
    list of Row
        One for each line after the headings that is not blank.
    float
        NaN if the text begins with no date.
    """
    wanted, printed = frozenset(headings), math.nan
    lines = text.replace("\r\n", "\n").split("\n")
    for at, line in enumerate(lines):
        separator = next((sign for sign in "\x1f|" if sign in line), None)
        names = line.split(separator) if separator else line.split()
        if not wanted.isdisjoint(map(str.strip, names)):
            break
        if match := _DATE_LINE.fullmatch(line.strip()):
            month = _MONTHS.index(match[1]) // 3 + 1
            date = f"{match[4]}-{month:02}-{int(match[2]):02}T{match[3]}"
            printed = clock.time(date, f"{source}, line {at + 1}, the date")
        elif line.strip() or at + 1 == len(lines):
            raise ValueError(
                f"{source}, line {at + 1}: {quote(line)} is no line of headings with "
                f"one of {', '.join(sorted(wanted))}; paste the output with its "
                "headings (without -h)"
            )
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"{source}, line {at + 1}: the heading {quote(twice)} is twice"
        )
    ends = [] if separator else _right_ends(lines[at], names)
    rows = []
    for number, line in enumerate(lines[at + 1 :], at + 2):
        if line.strip():
            cells = (
                _separated(line, separator, len(names))
                if separator
                else _aligned(line, ends, len(names))
            )
            if len(cells) != len(names):
                raise ValueError(
                    f"{source}, line {number}: {len(cells)} fields, but {len(names)} "
                    f"headings: {quote(line.strip())}; print the columns with | "
                    "between them, as in -o '%i|%T|%N'"
                )
            values = map(str.strip, cells)
            rows.append(Row(source, number, dict(zip(names, values, strict=True))))
    return rows, printed


def _right_ends(line: str, names: list[str]) -> list[int]:
    """Return the ends of the headings up to NAME; none if it is the last or missing."""
    if "NAME" not in names[:-1]:
        return []
    ends = [match.end() for match in re.finditer(r"\S+", line)]
    return ends[: names.index("NAME") + 1]


def _separated(line: str, separator: str, count: int) -> list[str]:
    cells = line.split(separator)
    if len(cells) == count + 1 and not cells[-1]:  # sacct -p ends lines with a |
        cells.pop()
    return cells


def _aligned(line: str, ends: list[int], count: int) -> list[str]:
    """Split a line at blanks; the last cell may contain blanks, or be empty.

    The NAME of a job may contain blanks as well. ``squeue`` aligns the columns up to it
    at their right ends; later ones may be wider than their headings.
    """
    head = [line[a:b].strip() for a, b in zip([0, *ends], ends, strict=False)]
    if not all(line[end : end + 1] == " " for end in ends) or any(
        len(cell.split()) != 1 for cell in head[:-1]
    ):
        head, ends = [], []
    rest = line[ends[-1] :] if ends else line
    cells = head + rest.split(None, count - len(head) - 1)
    return [*cells, ""] if len(cells) == count - 1 else cells
