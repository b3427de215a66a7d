"""Writes the measured figures into the pages: tables, sentences, pictures.

    python ci/measured.py

`make bench` stores the figures in benchmarks/measured.json, with machine and date.
README.md and some pages of docs/ contain placeholders between comments; the pictures
are docs/ratios-*.svg; the narrow ones are for phones. benchmarks/history/VERSION.json
keeps the rows of the README for each version, and docs/history-*.svg draws their
ratios. A test checks that pages and pictures are up to date.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks" / "measured.json"
PAGES = ("README.md", "docs/index.md", "docs/measured.md", "docs/peers.md")
PICTURES = tuple(
    f"docs/ratios-{width}{mode}.svg"
    for width in ("", "narrow-")
    for mode in ("light", "dark")
)
HISTORY = ROOT / "benchmarks" / "history"
HISTORY_PICTURES = ("docs/history-light.svg", "docs/history-dark.svg")

#: Benchmarks against other programs; they are listed on the page of peers.
OTHERS = ("peers", "planner", "distance")

#: The ablation of the search structures, which has a table of its own.
LAYERS = "layers"

#: The rows of each benchmark that the README shows, by the beginning of their names.
SHOWN = {
    "ratios": (
        "cheapest window, ragged, n = 5: 100 nodes, 2,030 slots, of 1,000 jobs",
        "shortest window, ragged, n = 5: 400 nodes",
        "earliest window, ragged, n = 5: 400 nodes",
        "cheapest window, square",
    ),
    "alternatives": ("all alternatives, ragged, n = 5: 100 nodes",),
    "additive": (
        "largest sum of a value (MaxQ), square, n = 7: 100 nodes of 100",
        "farthest from local tasks (DEP), square, n = 7: 100 nodes of 100",
    ),
    "loop": ("find and book, ragged, n = 5: one of 20,206 jobs, 1,000",),
}

INKS = {  # ink, faint ink, line, rival, own
    "light": ("#20262e", "#5b6470", "#d5dce4", "#79818c", "#0072b2"),
    "dark": ("#e6edf3", "#9aa4b0", "#3a424d", "#9aa4b0", "#56b4e9"),
}


def duration(seconds: float) -> str:
    """Format a time with three digits and its unit."""
    units = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))
    factor, unit = next((each for each in units if seconds * each[0] >= 1), units[-1])
    value = seconds * factor
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}\N{NO-BREAK SPACE}{unit}"


def times(row: dict[str, Any]) -> str:
    """Format the ratio of the rival's time to that of slotkern."""
    ratio = row["rival"] / row["own"]
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def shown(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the README, in its order."""
    found = []
    for part, names in SHOWN.items():
        for name in names:
            rows = [
                row for row in figures[part]["rows"] if row["what"].startswith(name)
            ]
            if len(rows) != 1:
                raise SystemExit(f"{MEASURED}: {len(rows)} rows of {part}: {name}")
            found += rows
    return found


def circumstances(part: dict[str, Any]) -> str:
    """Return machine, versions and date of a benchmark."""
    on = part["machine"]
    return (
        f"{part['date']}, slotkern {on['slotkern']}, one core of {on['cores']} of "
        f"{on['processor']} ({on['loops']}), {on['system']}, Python {on['python']}, "
        f"load {on['load']}"
    )


def tables(figures: dict[str, Any], names: Iterable[str]) -> str:
    """Return one table per benchmark."""
    lines: list[str] = []
    for name in names:
        part = figures[name]
        lines += [f"## `benchmarks/{name}.py`", "", f"{circumstances(part)}.", ""]
        lines += ["| | against | takes | slotkern | ratio |", "|---|---|---|---|---|"]
        lines += [
            f"| {row['what']} | {row['against']} | {duration(row['rival'])} | "
            f"{duration(row['own'])} | {times(row)} |"
            for row in part["rows"]
        ]
        lines.append("")
    return "\n".join(lines).rstrip()


def ablation(part: dict[str, Any]) -> str:
    """Return the table of times without each search structure."""
    columns = list(part["rows"][0]["without"])
    lines = [f"{circumstances(part)}.", ""]
    lines += [f"| | takes | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for row in part["rows"]:
        cells = [
            f"**{x:.2f}**" if x >= 1.2 or x < 0.95 else f"{x:.2f}"
            for x in row["without"].values()
        ]
        lines.append(
            f"| {row['what']} | {duration(row['own'])} | {' | '.join(cells)} |"
        )
    sizes = " | ".join(f"n = {n}" for n in part["sizes"])
    lines += ["", f"| µs of a search of 1,000 nodes | {sizes} |"]
    lines.append("|---" * (len(part["sizes"]) + 1) + "|")
    lines += [
        f"| {row['what']} | {' | '.join(f'{x:.3g}' for x in row['microseconds'])} |"
        for row in part["parts"]
    ]
    return "\n".join(lines)


def sentence(figures: dict[str, Any], folder: str) -> str:
    """Return the paragraph below the first example; `folder` is that of the pages."""
    rows = shown(figures)
    ratios = sorted(row["rival"] / row["own"] for row in rows)
    first = rows[0]
    what, _, jobs = first["what"].partition(", of ")
    early = next(
        row
        for row in figures["ratios"]["rows"]
        if row["what"].startswith(f"{what}, the first")
    )
    paragraph = (
        f"A search ({what.replace(':', ' of')}) takes **{duration(first['own'])}** on "
        f"average over {jobs} on a pool. The papers' algorithm, compiled, takes "
        f"{times(first)} times as long; during the first 20 searches, before the "
        f"pool's caches are filled, the factor is {times(early)}. The chart shows "
        f"searches with factors from {ratios[0]:,.0f} to {ratios[-1]:,.0f}. All "
        "figures are medians of one run of both programs with compared answers "
        f"({figures['ratios']['date']}, {figures['ratios']['machine']['processor']}): "
        f"[measured]({folder}measured.md), [peers]({folder}peers.md)."
    )
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)


def pages(figures: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Return each page and picture with the figures filled in."""
    papers = [name for name in figures if name not in (*OTHERS, LAYERS)]
    texts = {
        "layers": ablation(figures[LAYERS]) if LAYERS in figures else "",
        "tables": tables(figures, papers),
        "peers": tables(figures, [name for name in figures if name in OTHERS]),
        "sentence": sentence(figures, "docs/"),
        "home": sentence(figures, ""),
    }
    for name in PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        for key, new in texts.items():
            page = re.sub(
                rf"(<!-- measured: {key} -->\n).*?(<!-- end -->)",
                lambda place, new=new: f"{place[1]}\n{new}\n\n{place[2]}",
                page,
                flags=re.S,
            )
        yield ROOT / name, page
    for name in PICTURES:
        mode = name.removesuffix(".svg").rpartition("-")[2]
        yield ROOT / name, picture(shown(figures), mode, "narrow" in name)
    now = record(figures)
    path = HISTORY / f"{now['slotkern']}.json"
    yield path, json.dumps(now, indent=1) + "\n"
    others = [each for each in HISTORY.glob("*.json") if each != path]
    known = [json.loads(each.read_text(encoding="utf-8")) for each in others] + [now]
    known.sort(key=lambda each: [int(x) for x in each["slotkern"].split(".")])
    for name in HISTORY_PICTURES:
        yield ROOT / name, history(known, name.partition("-")[2][:-4])


def record(figures: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of the figures of a version: the rows of the README."""
    first = figures[next(iter(SHOWN))]["machine"]
    return {
        "slotkern": first["slotkern"],
        "processor": first["processor"],
        "dates": {part: figures[part]["date"] for part in SHOWN},
        "rows": shown(figures),
    }


def history(known: list[dict[str, Any]], mode: str) -> str:
    """Draw the ratio of each row for each version on a logarithmic axis."""
    ink, faint, line, _, own = INKS[mode]
    width, height, left, top, bottom = 840, 330, 60, 30, 294
    step = 90  # between two versions
    ratios = [
        {row["what"]: row["rival"] / row["own"] for row in each["rows"]}
        for each in known
    ]
    high = math.ceil(max(math.log10(max(each.values())) for each in ratios))

    def place(ratio: float) -> float:
        return round(bottom - math.log10(ratio) / high * (bottom - top), 1)

    out = [
        heading(width, height, "Ratio to the papers' algorithm, by version"),
        text(8, 14, "times as fast as the papers' algorithm, compiled", ink),
    ]
    xs = [left + 40 + step * k for k in range(len(known))]
    for power in range(high + 1):
        y, end = place(10.0**power), xs[-1] + 6
        out.append(f'<line x1="{left}" y1="{y}" x2="{end}" y2="{y}" stroke="{line}"/>')
        out.append(text(left - 8, y + 4, f"{10**power:,}", faint, 'text-anchor="end"'))
    for x, each in zip(xs, known, strict=True):
        out.append(text(x, height - 12, each["slotkern"], ink, 'text-anchor="middle"'))
    label = top - 10.0
    for what, ratio in sorted(ratios[-1].items(), key=lambda item: -item[1]):
        points = [
            (x, place(each[what]))
            for x, each in zip(xs, ratios, strict=True)
            if what in each
        ]
        joined = " ".join(f"{x},{y}" for x, y in points)
        out.append(f'<polyline points="{joined}" fill="none" stroke="{own}"/>')
        out += [f'<circle cx="{x}" cy="{y}" r="4" fill="{own}"/>' for x, y in points]
        label = max(label + 28, place(ratio))  # labels do not overlap
        ends = f'x2="{xs[-1] + 40}" y2="{label}"'
        out.append(
            f'<line x1="{xs[-1] + 6}" y1="{place(ratio)}" {ends} stroke="{line}"/>'
        )
        name = what.replace(", ragged, n = 5", "").replace(", n = 7", "")
        out.append(text(xs[-1] + 44, label + 4, f"{ratio:,.0f}: {name}", ink))
    return "\n".join([*out, "</svg>", ""])


def text(x: float, y: float, words: str, colour: str, more: str = "") -> str:
    """Return a text of a picture."""
    return f'<text x="{x}" y="{y}" fill="{colour}" {more}>{escape(words)}</text>'


def heading(width: int, height: int, title: str) -> str:
    """Return the first lines of a picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-size="12.5" '
        "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', "
        f'sans-serif">\n<title>{escape(title)}</title>'
    )


def picture(rows: list[dict[str, Any]], mode: str, is_narrow: bool = False) -> str:
    """Draw both times of each row as joined dots on a logarithmic axis.

    The names of the rows are left of the dots; in a narrow picture above them.
    """
    ink, faint, line, rival, own = INKS[mode]
    if is_narrow:
        width, left, right, row, top, name_above = 360, 28, 326, 84, 46, 40
    else:
        width, left, right, row, top, name_above = 840, 330, 780, 42, 44, 0
    height = top + row * len(rows) + 30
    low, high = -6, math.ceil(max(math.log10(each["rival"]) for each in rows))

    def place(seconds: float) -> float:
        share = (math.log10(seconds) - low) / (high - low)
        return round(left + share * (right - left), 1)

    middle = 'text-anchor="middle"'
    out = [
        heading(
            width,
            height,
            "Time of one search: slotkern and what it is measured against",
        ),
        f'<circle cx="{left}" cy="16" r="5" fill="{own}"/>',
        text(left + 10, 20, "slotkern", ink),
        f'<circle cx="{left + 90}" cy="16" r="5" fill="{rival}"/>',
        text(left + 100, 20, "the papers' algorithm, compiled", ink),
    ]
    for power in range(low, high + 1):
        x = place(10.0**power)
        bottom = height - 26
        out.append(
            f'<line x1="{x}" y1="{top - 10}" x2="{x}" y2="{bottom}" stroke="{line}"/>'
        )
        label = {-6: "1 µs", -3: "1 ms", 0: "1 s"}.get(power, "")
        out.append(text(x, height - 8, label, faint, middle) if label else "")
    for k, each in enumerate(rows):
        y = top + row * k + 14 + name_above
        a, b = place(each["own"]), place(each["rival"])
        name, _, size = each["what"].partition(": ")
        name = name.replace(", ragged, n = 5", "").replace(", n = 7", "")
        out += [
            text(8, y - name_above, name[0].upper() + name[1:], ink),
            text(8, y - name_above + 14, size, faint, 'font-size="10.5"'),
            f'<line x1="{a}" y1="{y}" x2="{b}" y2="{y}" stroke="{rival}" '
            'stroke-width="2"/>',
            f'<circle cx="{a}" cy="{y}" r="6" fill="{own}"/>',
            f'<circle cx="{b}" cy="{y}" r="6" fill="{rival}"/>',
            text((a + b) / 2, y - 5, f"{times(each)} times", ink, middle),
            text(a, y + 18, duration(each["own"]), faint, f'{middle} font-size="10.5"'),
            text(
                b, y + 18, duration(each["rival"]), faint, f'{middle} font-size="10.5"'
            ),
        ]
    return "\n".join([*filter(None, out), "</svg>", ""])


def main() -> None:
    """Write all pages and pictures."""
    for path, content in pages(json.loads(MEASURED.read_text(encoding="utf-8"))):
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
