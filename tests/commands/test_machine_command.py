"""Commands with node names and dates: free, schedule, find, batch, replay, info."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import refused, run

import slotkern as sk

MACHINE = "name,price,memory\nn00,0.4,64\nn01,0.4,64\nn02,0.5,128\n"
BUSY = """node,start,end
n00,2026-10-24 18:00,2026-10-25 04:00
n01,2026-10-24 12:00,2026-10-24 20:00
"""
HORIZON = ["--start", "2026-10-24 18:00", "--end", "2026-10-26", "--unit", "h"]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    (tmp_path / "m.csv").write_text(MACHINE)
    (tmp_path / "b.csv").write_text(BUSY)
    path = tmp_path / "pool.npz"
    done = run(
        *("free", tmp_path / "m.csv", "--busy", tmp_path / "b.csv", *HORIZON),
        *("--zone", "Europe/Berlin", "--output", path),
    )
    assert done.exit_code == 0, done.stderr
    assert "FreeSlots(3 slots of 3 nodes, hours since 2026-10-24T18:00" in done.stdout
    return path


def test_find_and_explain_in_names_and_dates(pool: Path) -> None:
    job = ["--nodes", 2, "--walltime", "4:00:00", "--earliest", "2026-10-25 00:00"]
    done = run("find", pool, *job)
    assert done.exit_code == 0, done.stderr
    assert "n01   2026-10-25 00:00+02:00   2026-10-25 03:00+01:00   " in done.stdout
    assert "runtime 4:00:00   cost 3.60" in done.stdout
    printed = json.loads(run("find", pool, *job, "--json").stdout)
    assert printed["request"]["walltime"] == "4:00:00"
    assert printed["request"]["earliest"] == "2026-10-25 00:00"
    assert printed["window"]["start"] == 6
    for command in ("compare", "alternatives"):
        printed = run(command, pool, *job).stdout
        assert "2026-10-25 00:00+02:00" in printed
        assert "2026-10-25 03:00+01:00" in printed
    assert "n[01-02]" in run("alternatives", pool, *job).stdout
    late = run(
        *("explain", pool, "--nodes", 3, "--walltime", "4h"),
        *("--deadline", "2026-10-25 05:00"),
    )
    assert late.exit_code == 1
    assert "it fits with a deadline of 2026-10-25 08:00:00+01:00" in late.stdout


def test_the_title_of_a_found_window(pool: Path, tmp_path: Path) -> None:
    page, job = tmp_path / "p.html", ["--nodes", 2, "--walltime", "4h"]
    for given, title in (
        ([], "pool.npz: 2 nodes at once, square"),
        (["--title", "Ocean on Saturday"], "Ocean on Saturday"),
    ):
        done = run("find", pool, *job, "--html", page, *given)
        assert done.exit_code == 0, done.stderr
        assert f"<title>{title}" in page.read_text()


def test_schedule_a_table_of_jobs(pool: Path, tmp_path: Path) -> None:
    jobs = tmp_path / "j.csv"
    jobs.write_text("name,nodes,walltime,budget\nocean,2,4:00:00,10\nall,9,1h,\n")
    booked, page = tmp_path / "booked.npz", tmp_path / "page.html"
    options = ("--owner", "bob", "--output", booked, "--html", page)
    done = run("schedule", pool, jobs, *options)
    assert done.exit_code == 0, done.stderr
    assert '"names":["ocean"]' in page.read_text(encoding="ascii")
    assert "ocean   booked   n[01-02]   3.60   2026-10-24 20:00" in done.stdout
    assert "1 of 2 jobs booked" in done.stdout
    assert "nan" not in done.stdout  # the cost of a failed job is an empty cell
    later = sk.SlotPool.load(booked)
    assert [(w.name, w.names) for w in later.windows("bob")] == [
        ("ocean", ("n01", "n02"))
    ]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--volume", 1, "--walltime", 2], "one of --volume and --walltime"),
        ([], "one of --volume and --walltime is needed, and only one"),
        (["--walltime", "4:00"], "walltime: '4:00' could be hours, minutes"),
        (["--walltime", "4h", "--deadline", "soon"], "--deadline: 'soon' is no date"),
        (["--walltime", "4h", "--max-runtime", "long"], "--max-runtime: 'long' is no"),
        (["--walltime", "4h", "--earliest", "2026-10-25 02:30"], "occurs twice"),
    ],
)
def test_invalid_names_and_dates_are_one_line(
    pool: Path, words: list[object], named: str
) -> None:
    done = run("find", pool, "--nodes", 2, *words)
    assert done.exit_code == 2
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_errors_name_the_job_of_a_table(pool: Path, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    for command, name, named in (
        ("schedule", "late", f"{jobs}, line 3: late"),
        ("schedule", "", f"{jobs}, line 3"),
        ("batch", "late", f"{jobs}, line 3: late"),
        ("batch", "", f"{jobs}, line 3: job 2"),
    ):
        jobs.write_text(
            f"name,nodes,walltime,earliest\nfine,1,1h,\n{name},1,1h,2026-10-25 02:30\n"
        )
        done = run(command, pool, jobs)
        assert done.exit_code == 2
        assert f"{named}: earliest: 2026-10-25 02:30 occurs twice" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_dates_need_a_clock(tmp_path: Path) -> None:
    slots = sk.make_slots(node=0, start=0, end=9, performance=1, price=1)
    sk.write_slots(tmp_path / "slots.csv", slots)
    done = run("find", tmp_path / "slots.csv", "--nodes", 1, "--walltime", "1h")
    assert done.exit_code == 2
    assert "these slots have no clock" in done.stderr


def test_dates_of_a_trace_with_a_start_time(tmp_path: Path) -> None:
    lines = [
        "; UnixStartTime: 848534400",
        "; TimeZoneString: America/New_York",
        "; MaxProcs: 4",
        "1 0 0 7200 2 -1 -1 2 7200 -1 1 1 1 1 -1 -1 -1 -1",
        "2 3600 0 36000 1 -1 -1 1 36000 -1 1 1 1 1 -1 -1 -1 -1",
    ]
    path = tmp_path / "t.swf"
    path.write_text("\n".join([*lines, ""]))
    clock = sk.read_trace(path).clock
    assert clock is not None
    assert clock.origin.isoformat() == "1996-11-20T19:00:00-05:00"
    output = tmp_path / "slots.csv"
    span = ["--at", "1996-11-20 20:00", "--horizon", "2h", "--output", output]
    done = run("slots-from-trace", path, *span)
    assert done.exit_code == 0, done.stderr
    assert "in [3,600, 10,800)" in done.stdout
    found = sk.slots_from_trace(path, 3600, 7200)
    assert sk.read_slots(output).tolist() == found.slots.tolist()
    assert found.clock == clock
    window = sk.find_window(found, sk.Request(1, walltime="1h"))
    assert window is not None
    assert str(window.start_time) == "1996-11-20 20:00:00-05:00"
    path.write_text("\n".join([*lines[2:], ""]))
    assert sk.read_trace(path).clock is None
    done = run("slots-from-trace", path, *span)
    assert "does not contain the start of the trace (UnixStartTime)" in done.stderr


def test_info_prints_versions() -> None:
    done = run("info")
    assert done.exit_code == 0
    assert f"slotkern {sk.__version__}" in done.stdout
    assert "numpy" in done.stdout


def test_a_batch_of_jobs_in_names_and_dates(pool: Path, tmp_path: Path) -> None:
    jobs = tmp_path / "j.csv"
    jobs.write_text("name,nodes,walltime,budget\nocean,2,4:00:00,10\nall,9,1h,\n")
    table = tmp_path / "answer.json"
    done = run("batch", pool, jobs, "--output", table)
    assert done.exit_code == 0, done.stderr
    assert "n[01-02]" in done.stdout
    assert "2026-10-24 20:00" in done.stdout
    first, second, failed = json.loads(table.read_text())
    assert [first["name"], second["name"], failed["name"]] == ["n01", "n02", None]
    assert first["start_time"] == "2026-10-24T20:00:00+02:00"
    assert (failed["reason"], failed["start"]) == ("nodes", None)


@pytest.mark.parametrize("command", ["schedule", "batch"])
def test_invalid_tables_of_jobs(command: str, pool: Path, tmp_path: Path) -> None:
    for text, words in (
        ("name;nodes;walltime\na;2;4:00:00\n", "separated by ';', not by commas"),
        (
            "name,nodes,walltime\na,2,4:00:00\nb,1,90\n",
            "line 3: walltime: '90' could be",
        ),
        ("name,nodes,hours\na,2,4\n", "unknown column 'hours'; jobs have name, nodes"),
        ("name,nodes,walltime\na,2\n", "line 2: 2 cells, not 3"),
        ("", "the file is empty"),
    ):
        jobs = tmp_path / "j.csv"
        jobs.write_text(text)
        done = run(command, pool, jobs)
        assert done.exit_code == 2
        assert words in done.stderr
        assert str(jobs) in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_tables_that_office_programs_write(tmp_path: Path) -> None:
    machine = tmp_path / "m.csv"
    machine.write_bytes(b"\xef\xbb\xbf" + MACHINE.replace("\n", "\r\n").encode())
    assert sk.Machine.read(machine).names.tolist() == ["n00", "n01", "n02"]
    machine.write_text(MACHINE.replace(",", ";").replace(".", ","))
    with pytest.raises(ValueError, match=r"m.csv: the columns are separated by ';'"):
        sk.Machine.read(machine)
    machine.write_text("name,price,name\nn00,1,2\n")
    with pytest.raises(ValueError, match=r"m.csv: column 'name' occurs twice"):
        sk.Machine.read(machine)


def test_a_replay_is_blocked_by_dates(tmp_path: Path) -> None:
    path = tmp_path / "t.swf"
    job = "1 0 0 3600 4 -1 -1 4 3600 -1 1 1 1 1 -1 -1 -1 -1"
    header = "; UnixStartTime: 848534400\n; TimeZoneString: America/New_York\n"
    path.write_text(f"{header}; MaxProcs: 4\n{job}\n")
    start, end = "1996-11-20T19:30", "1996-11-20 22:00"
    trace = sk.read_trace(path)
    done = sk.replay(trace, blocked=[(start, end, 4)])
    assert done.jobs["start"].tolist() == [10_800]
    outputs = [
        run("replay", path, "--blocked", words).stdout
        for words in (f"{start}/{end}:4", "1800:10800:4", "1800/10800:4")
    ]
    assert outputs[0].strip()
    assert len(set(outputs)) == 1
    for words, named in (
        ("soon/later:4", "blocked: row 0: 'soon' is no date"),
        (f"{start}:4", "is neither START:STOP:PROCESSORS in"),
        ("5:9", "is neither START:STOP:PROCESSORS in"),
    ):
        done = run("replay", path, "--blocked", words)
        assert done.exit_code == 2
        assert named in done.stderr
    path.write_text(f"; MaxProcs: 4\n{job}\n")
    done = run("replay", path, "--blocked", f"{start}/{end}:4")
    assert "does not contain the start of the trace (UnixStartTime)" in done.stderr


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("node,start,end\nn07,2026-10-25,\n", ": node, line 2: 'n07' is no node"),
        ("node,start,end\nn00,2026-10-26,2026-10-25\n", ", line 2: the span ends at"),
        ("node,start,end\nn00,soon,\n", ": start, line 2: 'soon' is no date"),
        ("node,start\nn00,2026-10-26\n", " has no column 'end'"),
    ],
)
def test_errors_of_busy_spans_name_their_file(
    tmp_path: Path, text: str, named: str
) -> None:
    machine, busy = tmp_path / "m.csv", tmp_path / "b.csv"
    machine.write_text(MACHINE)
    busy.write_text(text)
    done = run(
        *("free", machine, "--busy", busy, *HORIZON),
        *("--zone", "Europe/Berlin", "--output", tmp_path / "pool.npz"),
    )
    assert done.exit_code == 2
    assert f"slotkern: {busy}{named}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "pool.npz").exists()


def test_assumptions_are_printed(tmp_path: Path) -> None:
    nodes, busy = tmp_path / "m.csv", tmp_path / "b.csv"
    busy.write_text(BUSY + "n02,2026-10-25 18:00,\n")
    words = ("free", nodes, "--busy", busy, "--zone", "Europe/Berlin")
    output = ("--output", tmp_path / "pool.npz")
    nodes.write_text(MACHINE.replace("price", "Price"))
    done = run(*words, *HORIZON, *output)
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        f"{nodes} has no column 'performance': it is 1 of each node; it has Price, "
        "memory beside the names",
        f"{nodes} has no column 'price': it is 0 of each node; did you mean 'Price'?",
        "1 of 3 busy spans have no end: busy for ever",
    ]
    nodes.write_text("name\nn00\nn01\nn02\n")
    assert "beside" not in run(*words[:2], *words[4:], *HORIZON, *output).stderr
    nodes.write_text("name,performance,price\nn00,1,1\nn01,1,1\nn02,1,1\n")
    assert run(*words[:2], *words[4:], *HORIZON, *output).stderr == ""
    seconds = (*HORIZON[:-2], *output)
    printed = run(*words[:2], *words[4:], *seconds).stderr
    assert printed == "no --unit is given: prices are per second\n"
    nodes.write_text("name\nn00\n")  # an error prints one line and no log
    done = run(*words, *HORIZON, *output)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1


def test_durations_are_printed_in_words_with_a_clock(
    pool: Path, tmp_path: Path
) -> None:
    job = ["--nodes", 2, "--walltime", "4:00:00"]
    printed = run("find", pool, *job).stdout
    assert " 00:00   4:00:00 " in printed
    assert "times in Europe/Berlin, UTC+02:00" in printed
    assert printed.endswith("processor time 8 node hours\n")
    assert "4:00:00*   " in run("alternatives", pool, *job).stdout
    assert "8 node hours*" in run("compare", pool, *job).stdout
    jobs = tmp_path / "j.csv"
    jobs.write_text("nodes,walltime\n1,1h\n1,100min\n")
    options = ("--policy", "css", "--policy", "easy", "--execute")
    printed = run("batch", pool, jobs, *options).stdout
    assert re.search(r" css .* 2026-10-2.T[0-9:]{8}\+0[12]:00 ", printed)
    assert "1:20:00" in printed  # their mean runtime


def test_lengths_without_a_clock_are_numbers(tmp_path: Path) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
    sk.write_slots(tmp_path / "slots.csv", slots)
    printed = run("find", tmp_path / "slots.csv", "--nodes", 2, "--volume", 4).stdout
    assert printed.endswith("runtime 4   cost 8   processor time 8\n")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("earliest,deadline\na,1,1h,,\nb,1,1h,2026-12-02,2026-12-01\n", "b: earl"),
        ("where,budget\na,1,1h,,\nb,1,1h,memori >= 4,\n", "b: where 'memori >= 4'"),
    ],
)
def test_errors_of_named_jobs_have_their_line(
    tmp_path: Path, cells: str, message: str
) -> None:
    pool, jobs = tmp_path / "pool.npz", tmp_path / "jobs.csv"
    horizon = {"start": "2026-12-01", "end": "2026-12-03", "zone": "UTC"}
    sk.SlotPool(sk.free_slots(sk.Machine.homogeneous(2), **horizon)).save(pool)
    jobs.write_text(f"name,nodes,walltime,{cells}")
    refused(run("schedule", pool, jobs), f"jobs.csv, line 3: {message}")


def test_the_price_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("name,price\na,nan\nb,nan\n")
    given = ["--start", 0, "--end", 9, "--output", tmp_path / "pool.npz"]
    message = "nodes.csv, line 2: price is empty or NaN, not a number"
    refused(run("free", nodes, *given), message)


def test_find_prints_the_value_of_a_sum(tmp_path: Path) -> None:
    slots = tmp_path / "slots.csv"
    slots.write_text(
        "node,start,end,performance,price,kw\n0,0,9,1,2,1.5\n1,0,9,1,2,3\n"
    )
    given = ["find", slots, "--nodes", 2, "--volume", 4, "--criterion"]
    assert "minimize(kw) 4.50" in run(*given, "minimize(kw)").stdout
    *_, last = run(*given, "finish").stdout.splitlines()
    assert last.startswith("start 0   finish 4   ")  # the totals have it already


def test_a_start_that_is_no_time_of_day_is_named(tmp_path: Path) -> None:
    nodes, tariff = tmp_path / "nodes.csv", tmp_path / "night.csv"
    nodes.write_text("name,price\na,1\n")
    given = ["--start", "2026-12-01", "--end", "2026-12-03", "--zone", "UTC"]
    given += ["--tariffs", tariff, "--output", tmp_path / "pool.npz"]
    for start in ("25:00", "2026-12-02", "22:61", "22:00:75"):
        tariff.write_text(f"start,factor\n06:00,1\n{start},2\n")
        message = f"night.csv, line 3: start '{start}' is no time of day, as '06:00' is"
        refused(run("free", nodes, *given), message)


def test_a_name_that_occurs_twice_in_a_batch_has_both_lines(
    pool: Path, tmp_path: Path
) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,nodes,walltime,order\na,1,1h,2\njob 1,1,1h,3\n,1,1h,1\n")
    assert run("batch", pool, jobs).exit_code == 0
    jobs.write_text("name,nodes,walltime,order\n,1,1h,2\nb,1,1h,3\njob 1,1,1h,1\n")
    refused(
        run("batch", pool, jobs),
        "jobs.csv, line 4, column 'name': 'job 1' is the name of line 2 already",
    )
