"""The content of the pages of `sk.view`, and how they are written."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk
from slotkern.foundation.checks import visible
from slotkern.viewer.collect import collect_own_items
from slotkern.viewer.packing import pack_columns, to_script_json

ROOT = Path(__file__).parents[2]
PART = [("node", "i4"), ("start", "f8"), ("end", "f8")]


class Page(HTMLParser):
    """The texts and attributes of a page's elements, found by an HTML parser."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        self.attributes.append((tag, given))
        self.inside = given.get("id") or tag
        self.texts.setdefault(self.inside, "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[self.inside] += data


def read(view: sk.View) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return the description and the columns of a page, read as its script does."""
    page = Page(view.html)
    about = json.loads(page.texts["about"])
    raw = np.frombuffer(
        zlib.decompress(base64.b64decode(page.texts["columns"])), np.uint8
    )
    columns, at = {}, 0
    for name, each in about["columns"].items():
        dtype = np.dtype("<" + each["kind"])
        size = dtype.itemsize * each["length"]
        mine = raw[at : at + size].reshape(dtype.itemsize, -1).T
        columns[name] = np.ascontiguousarray(mine).view(dtype).ravel()
        at += size
    assert at == len(raw)
    return about, columns


def test_prices_that_change_are_steps() -> None:
    machine = sk.Machine(
        {"name": ["a", "b", "c"], "price": [1, 2, 3], "tariff": ["spot", "spot", ""]}
    )
    spot = sk.Tariff([6, 22, 90], [0.5, 1, 0.25, 7])
    free = sk.free_slots(machine, start=0, end=48, tariffs={"spot": spot})
    about, columns = read(sk.view(free))
    assert [each["name"] for each in about["prices"]] == ["no tariff", "spot"]
    assert columns["price_0_edge"].tolist() == [0, 48]
    assert columns["price_0_low"].tolist() == columns["price_0_high"].tolist() == [3]
    assert columns["price_1_edge"].tolist() == [0, 6, 22, 48]
    assert columns["price_1_low"].tolist() == [0.5, 1, 0.25]
    assert columns["price_1_high"].tolist() == [1, 2, 0.5]
    assert read(sk.view(slots()))[0]["prices"] == []


def test_prices_of_a_clock_have_its_unit() -> None:
    pytest.importorskip("matplotlib")
    machine = sk.Machine({"name": ["a"], "price": [2]})
    day: Any = {"start": "2026-05-04", "end": "2026-05-05", "zone": "UTC", "unit": "h"}
    free = sk.free_slots(machine, **day, tariffs={"night": {"06:00": 1, "22:00": 0.5}})
    (price,) = read(sk.view(free))[0]["prices"]
    assert price["name"] == "night, per h"
    _, below = sk.plot_gantt(free).get_figure().axes
    assert below.get_ylabel() == "price per h"


def slots() -> Any:
    return sk.make_slots(
        node=[7, 3, 3],
        start=[0, 0, 60],
        end=[90, 40, math.inf],
        performance=[1, 2, 2],
        price=[1, 2, 2.5],
    )


# --- content


def test_the_page_contains_every_slot_and_part() -> None:
    rows = slots()
    window = sk.find_window(rows, sk.Request(2, 30), "start")
    assert window is not None
    about, columns = read(sk.view(rows, window))
    assert columns["node_id"].tolist() == [3, 7]
    assert columns["node_performance"].tolist() == [2, 1]
    assert columns["free_row"].tolist() == [0, 0, 1]
    assert columns["free_start"].tolist() == [0, 60, 0]
    assert columns["free_end"].tolist() == [40, math.inf, 90]
    assert columns["free_price"].tolist() == [2, 2.5, 1]
    parts = window.slots
    order = np.argsort(parts["node"])
    for name in ("start", "end", "cost"):
        assert columns[f"part_{name}"] == pytest.approx(parts[name][order])
    assert about["rest"] == "busy"
    assert about["first"] == 0
    assert about["last"] == pytest.approx(99)  # a margin shows that one slot has no end
    assert about["items"]["names"] == ["best by start"]
    assert about["items"]["count"] == 1


def test_a_page_of_100000_slots_is_small() -> None:
    rng = np.random.default_rng(3)
    nodes, each = 20_000, 5
    cuts = np.sort(rng.uniform(0, 3 * 86400, (nodes, 2 * each)), axis=1)
    rows = sk.make_slots(
        node=np.repeat(np.arange(nodes), each),
        start=cuts[:, 0::2].ravel(),
        end=cuts[:, 1::2].ravel(),
        performance=1,
        price=rng.uniform(0, 1, nodes * each),
    )
    names = sk.Machine.homogeneous(nodes, prefix="node")
    pool = sk.SlotPool(rows, machine=names)
    found = sk.find_alternatives(pool, sk.Request(8, 2000), limit=200)
    view = sk.view(pool, found)
    assert len(found) == 200
    assert len(view.html) < 3_000_000
    about, columns = read(view)
    order = np.lexsort((rows["start"], rows["node"]))
    assert np.array_equal(columns["free_start"], rows["start"][order])
    assert np.array_equal(columns["free_end"], rows["end"][order])
    assert about["nodes"]["names"] == names.names.tolist()
    assert repr(view) == "View(20,000 nodes, 100,000 free slots, 200 windows)"


def test_tasks_leave_the_rest_unknown_and_a_horizon_is_the_edge() -> None:
    tasks = np.array([(3, 45, 55)], PART)
    about, columns = read(sk.view(slots(), tasks=tasks, horizon=80))
    assert about["rest"] == "blank"
    assert about["last"] == 80
    assert columns["busy_row"].tolist() == [0]
    assert columns["busy_start"].tolist() == [45]


def test_dates_and_names_of_a_machine() -> None:
    table = sk.Machine({"name": ["anna", "bert", "carl"], "performance": [1, 2, 3]})
    busy = {"node": ["carl"], "start": ["2026-10-24"], "end": ["2026-10-26"]}
    free = sk.free_slots(
        table, busy, start="2026-10-24", end="2026-10-26", zone="Europe/Berlin"
    )
    about, columns = read(sk.view(free, horizon="2026-10-25 12:00"))
    assert about["nodes"]["names"] == ["anna", "bert", "carl"]  # carl is never free
    assert columns["node_performance"].tolist() == [1, 2, 3]
    clock = about["clock"]
    assert clock["zone"] == "Europe/Berlin"
    assert clock["unit"] == 1000
    assert clock["origin"] == 1_792_792_800_000  # midnight in Berlin, in summer
    changes = {int(at): offset for at, offset in clock["offsets"]}
    assert changes[1_792_890_000_000] == 3600  # 2026-10-25 01:00 UTC
    assert about["last"] == 37 * 3600


def test_owners_of_a_pool_have_a_colour_each() -> None:
    pool = sk.SlotPool(slots())
    for start, owner in ((0, "alice"), (10, "bob"), (20, "alice")):
        window = pool.find(sk.Request(1, 5, earliest=start), "start")
        assert window is not None
        pool.book(window, owner=owner)
    about, columns = read(sk.view(pool))
    assert about["groups"] == {"noun": "owner", "names": ["alice", "bob"]}
    assert sorted(columns["item_group"].tolist()) == [0, 0, 1]


def test_disabled_time_of_a_pool_is_apart_from_busy_time() -> None:
    pool = sk.SlotPool(
        sk.make_slots(node=[3, 7, 9], start=0, end=40, performance=1, price=1)
    )
    assert "disabled_row" not in read(sk.view(pool))[1]
    pool.disable([7], start=10)
    pool.disable([3], start=5, end=20, owner="fan")
    pool.disable([3], start=15, end=30, owner="disk")
    pool.disable([9], owner="fan")  # never free: it keeps its row
    about, columns = read(sk.view(pool))
    assert about["reasons"] == ["disk", "down", "fan"]
    assert columns["node_id"].tolist() == [3, 7, 9]
    assert columns["disabled_row"].tolist() == [0, 0, 1, 2]
    assert columns["disabled_start"].tolist() == [5, 20, 10, -math.inf]
    assert columns["disabled_end"].tolist() == [20, 30, math.inf, math.inf]
    assert columns["disabled_reason"].tolist() == [2, 0, 1, 2]
    assert (about["first"], about["last"]) == (0, 40)


def test_a_batch_has_all_alternatives_and_marks_the_chosen() -> None:
    rows = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    done = sk.schedule_batch(rows, [sk.Request(1, 30, name="a"), sk.Request(2, 30)])
    about, columns = read(sk.view(done))
    assert about["items"]["count"] == len(done.alternatives)
    assert np.flatnonzero(columns["item_chosen"]).tolist() == sorted(done.chosen)
    assert about["items"]["names"][0] == "a (1)"
    assert len(set(about["items"]["names"])) == len(done.alternatives)
    assert np.array_equal(columns["item_group"], done.owner)
    # The same with explicit slots.
    assert read(sk.view(rows, done))[0]["items"] == about["items"]


def test_cycles_executions_alternatives_and_windows_alone() -> None:
    rows = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    jobs = [sk.Request(2, 20), sk.Request(1, 20), sk.Request(2, 10)]
    flow = sk.run_cycles(rows, jobs, [0, 5, 12], length=10)
    about, columns = read(sk.view(flow))
    assert [mark["time"] for mark in about["marks"]] == flow.times.tolist()
    starts = np.sort(flow.start[np.isfinite(flow.start)])
    assert np.sort(columns["item_start"]).tolist() == starts.tolist()
    done = sk.schedule_batch(rows, jobs)
    ran = done.execute(seed=1)
    assert read(sk.view(ran))[1]["item_start"].tolist() == ran.start.tolist()
    found = sk.find_alternatives(rows, sk.Request(2, 10))
    about, columns = read(sk.view(found))
    assert about["rest"] == "busy"
    assert columns["item_finish"].tolist() == found.finish.tolist()
    assert columns["item_number"].tolist() == [*range(1, len(found) + 1)]
    about, columns = read(sk.view(found[0]))
    assert about["rest"] == "blank"
    assert columns["node_id"].tolist() == [0, 1]


def test_a_replay_shows_its_jobs_on_their_processors(tmp_path: Path) -> None:
    text = "; MaxProcs: 4\n; UnixStartTime: 1700000000\n"
    jobs = [(1, 0, 50, 3), (2, 10, 30, 2), (3, 20, 10, 1)]
    for number, submit, run, wide in jobs:
        text += f"{number} {submit} 0 {run} {wide} -1 -1 {wide} {run} -1 1 {number} "
        text += "1 1 1 -1 -1 -1\n"
    path = tmp_path / "t.swf"
    path.write_text(text)
    done = sk.replay(
        sk.read_trace(path), policy="fcfs", blocked=[(100, 120, 4), (130, 140, 2)]
    )
    about, columns = read(sk.view(done))
    assert about["rest"] == "free"
    assert about["nodes"] == {"noun": "processor", "count": 4, "names": None}
    assert columns["item_start"].tolist() == done.jobs["start"].tolist()
    taken = np.zeros(len(done), int)
    np.add.at(taken, columns["part_item"], columns["part_count"])
    assert taken.tolist() == done.jobs["processors"].tolist()
    for item in range(len(done)):
        mine = columns["part_item"] == item
        rows = [
            row
            for low, count in zip(
                columns["part_row"][mine], columns["part_count"][mine], strict=True
            )
            for row in range(low, low + count)
        ]
        assert sorted(rows) == done.nodes(item).tolist()
    # The blocked processors are known only if all are blocked.
    assert columns["busy_start"].tolist() == [100] * 4
    unplaced = sk.replay(sk.read_trace(path), policy="fcfs", nodes=False)
    with pytest.raises(ValueError, match="did not place jobs"):
        sk.view(unplaced)


def test_windows_of_other_classes_are_accepted() -> None:
    window = SimpleNamespace(
        start=1.0, finish=4.0, slots=np.array([(7, 1, 4), (11, 1, 3)], PART)
    )
    about, columns = read(sk.view(slots(), [None, window]))
    assert columns["node_id"].tolist() == [3, 7, 11]
    assert about["items"]["names"] == ["window 1"]
    assert about["items"]["fields"] == []


def test_rows_name_the_group_of_the_finest_level() -> None:
    table = {"name": ["n[1-2]", "n3"], "rack": ["r1", "r2"], "site": "a"}
    machine = sk.Machine(table, levels=["rack", "site"])
    about, _ = read(sk.view(sk.free_slots(machine, start=0, end=9)))
    assert about["nodes"]["names"] == ["n1 (r1)", "n2 (r1)", "n3 (r2)"]


def test_equal_names_are_made_unique() -> None:
    window = sk.find_window(slots(), sk.Request(1, 5))
    assert window is not None
    named = [SimpleNamespace(start=0.0, finish=5.0, slots=window.slots, name=name)
             for name in ("a", "a (3)", "a")]  # fmt: skip
    about, _ = read(sk.view(slots(), named))
    assert about["items"]["names"] == ["a", "a (3)", "a (3) (3)"]


# --- errors


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        ((3,), {}, TypeError, "fields node, start and end, got int"),
        ((slots(), [3]), {}, TypeError, "windows must contain windows only, got 3"),
        ((slots(), slots()), {}, TypeError, "windows must contain windows only"),
        ((slots(),), {"tasks": [1]}, TypeError, "tasks must have the fields"),
        ((slots(),), {"horizon": -1}, ValueError, "horizon is -1.0"),
        (
            (slots(),),
            {"horizon": "2026-01-01"},
            TypeError,
            "without a clock it must be a number",
        ),
        ((slots(),), {"height": 10}, ValueError, "height must be at least 200"),
        ((slots(),), {"height": "9"}, TypeError, "height must be an integer"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: Any, options: Any, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        sk.view(*arguments, **options)


def test_pages_are_written_atomically(tmp_path: Path) -> None:
    view = sk.view(slots(), title="naïve “schedule” \ud800")
    path = tmp_path / "a.html"
    view.save(path)
    assert path.read_bytes().decode("ascii") == view.html.encode(
        "ascii", "xmlcharrefreplace"
    ).decode("ascii")
    with pytest.raises(ValueError, match=r"one of \.html, \.htm, not '\.png'"):
        view.save(tmp_path / "a.png")
    with pytest.raises(OSError, match="none"):
        view.save(tmp_path / "none" / "a.html")
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]


# --- safety


EVIL = "</script><script>alert(1)</script><!-- \u2028 \u202e \x00 & \" ' ]]>"


def test_foreign_text_is_escaped() -> None:
    table = sk.Machine({"name": [EVIL, "b"]})
    free = sk.free_slots(table, start="2026-01-01", end="2026-01-02", zone="UTC")
    pool = sk.SlotPool(free)
    window = pool.find(sk.Request(2, walltime="1:00:00", name=EVIL))
    view = sk.view(pool, {EVIL: window}, title=EVIL)
    page = Page(view.html)
    scripts = [given for tag, given in page.attributes if tag == "script"]
    assert len(scripts) == 3
    assert "alert(1)" not in page.texts["script"]
    about = json.loads(page.texts["about"])
    shown = visible(EVIL)
    assert "\\u2028 \\u202e \\x00 &" in shown
    assert about["title"] == about["nodes"]["names"][0] == shown
    assert page.texts["title"] == shown
    frame = Page(view._repr_html_())
    ((tag, given),) = frame.attributes
    assert (tag, given["sandbox"], given["srcdoc"]) == (
        "iframe",
        "allow-scripts",
        view.html,
    )
    assert given["title"] == shown


@given(st.text())
def test_any_text_survives_in_a_script_element(text: str) -> None:
    encoded = to_script_json({"text": text})
    assert encoded.isascii()
    assert not set("<>&") & set(encoded)
    assert json.loads(encoded) == {"text": text}
    forbidden = set("\u202a\u202b\u202d\u202e\u2066\u2067\u2028\x00\n")
    assert not forbidden & set(visible(text))


def test_names_in_any_language_stay_as_they_are() -> None:
    for name in ("Zürich", "שלום", "节点", "नोड", "a\u200db", "n 1", "👩‍🔬"):
        assert visible(name) == name


def test_only_its_own_script_and_style_may_run() -> None:
    page = Page(sk.view(slots()).html)
    policy = next(
        given["content"] or ""
        for tag, given in page.attributes
        if given.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        digest = hashlib.sha256(page.texts[tag].encode()).digest()
        assert f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert "unsafe" not in policy
    links = [given for _, given in page.attributes if {"src", "href"} & given.keys()]
    assert links == []
    assert not re.search(r"https?://", page.texts["script"] + page.texts["style"])


@given(st.lists(st.floats(allow_nan=False)), st.lists(st.integers(0, 2**31 - 1)))
def test_columns_are_unpacked_exactly(floats: list[float], ints: list[int]) -> None:
    given = {"a": np.array(floats, ">f8"), "b": np.array(ints, np.int32)}
    raw = np.frombuffer(
        zlib.decompress(base64.b64decode(pack_columns(given))), np.uint8
    )
    cut = 8 * len(floats)
    back = np.ascontiguousarray(raw[:cut].reshape(8, -1).T).view("<f8").ravel()
    assert back.tolist() == floats
    back = np.ascontiguousarray(raw[cut:].reshape(4, -1).T).view("<i4").ravel()
    assert back.tolist() == ints


def test_notebooks_get_text_and_html() -> None:
    view = sk.view(slots(), height=300)
    bundle = view._repr_mimebundle_(include=None, exclude=None)
    assert (
        bundle["text/plain"] == repr(view) == "View(2 nodes, 3 free slots, 0 windows)"
    )
    assert 'height="300"' in bundle["text/html"]


def test_nothing_but_numpy_is_needed() -> None:
    code = (
        "import sys\n"
        "for name in ('matplotlib', 'pandas', 'pyarrow', 'numba', 'typer', 'rich'):\n"
        "    sys.modules[name] = None\n"
        "import slotkern as sk\n"
        "slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)\n"
        "window = sk.find_window(slots, sk.Request(1, 3))\n"
        "print(len(sk.view(slots, window).html) > 1000)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


# --- build of the script


def test_the_script_is_built_from_its_source(tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    source = ROOT / "viewer"
    modules = source / "node_modules"
    if not modules.exists():
        for name in ("package.json", "package-lock.json", "tsconfig.json", "build.mjs"):
            shutil.copy(source / name, tmp_path)
        shutil.copytree(source / "source", tmp_path / "source")
        source = tmp_path
        command = ["npm", "ci", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=source, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"npm cannot fetch the builder: {done.stderr[-300:]}")
    subprocess.run(["npm", "run", "check"], cwd=source, check=True)
    out = tmp_path / "out"
    subprocess.run(["node", "build.mjs", str(out)], cwd=source, check=True)
    for name in ("viewer.js", "viewer.css"):
        committed = (ROOT / "src" / "slotkern" / "viewer" / name).read_bytes()
        assert (out / name).read_bytes() == committed, "run make viewer"


def test_a_reservation_is_named_after_its_owner() -> None:
    machine = sk.Machine({"name": ["n[1-3]"]})
    pool = sk.SlotPool(sk.free_slots(machine, start=0, end=9))
    pool.reserve("n[1-2]", 1, 2, owner="maintenance")
    pool.reserve("n3", 1, 2, owner="maintenance")
    pool.book(pool.find(sk.Request(1, 1, name="job")), owner="alice")
    names = list(collect_own_items(pool).names)
    assert sorted(names) == ["job", "maintenance", "maintenance (2)"]


def shared_pool() -> sk.HostPool:
    """Return two nodes: one with parts of a half, a quarter and a whole, one free."""
    machine = sk.Machine({"name": ["anna", "bert"], "cores": [8, 8]}, capacity="cores")
    pool = sk.HostPool(sk.free_slots(machine, start=0, end=10))
    for cores, start in ((4, 0), (2, 0), (8, 6)):
        job = sk.Request(1, 4, share={"cores": cores}, earliest=start)
        pool.book(pool.find(job), owner=f"{cores}")
    return pool


def test_parts_of_shared_nodes_are_stacked_by_height() -> None:
    _, columns = read(sk.view(shared_pool()))
    assert columns["part_row"].tolist() == [0, 0, 0]
    tall = 1 / columns["part_lanes"]
    assert tall.tolist() == [0.5, 0.25, 1]
    assert (columns["part_lane"] * tall).tolist() == [0, 0.5, 0]


def test_parts_of_whole_nodes_have_no_heights() -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
    _, columns = read(sk.view(slots, sk.find_window(slots, sk.Request(2, 3))))
    assert not {"part_lane", "part_lanes"} & set(columns)
