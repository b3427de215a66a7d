"""Invalid input of commands: exit code 2 and one line that names the value."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import JOB, refused, run


def test_bad_files_are_named(tmp_path: Path) -> None:
    refused(run("find", tmp_path / "none.csv", *JOB), tmp_path / "none.csv", "No such")
    odd = tmp_path / "slots.xls"
    odd.write_text("")
    refused(run("find", odd, *JOB), odd)
    bad = tmp_path / "bad.csv"
    bad.write_text("node,start,end,performance,price\n0,0,9,1,1\n1,5,4,1,1\n")
    refused(run("find", bad, *JOB), bad, "line 3", "end", "4")
    bad.write_text("node,start,end,performance,price\n0,0,9,1,1\n1,5,x,1,1\n")
    refused(run("find", bad, *JOB), bad, "line 3", "end", "x")
    bad.write_text("node,start,end,price\n0,0,9,1\n")
    refused(run("find", bad, *JOB), bad, "performance")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--nodes", "0", "--volume", "1"], ["nodes", "0"]),
        (["--nodes", "x", "--volume", "1"], ["--nodes"]),
        (["--nodes", "2.5", "--volume", "1"], ["--nodes"]),
        (["--nodes", "2", "--volume", "-1"], ["volume", "-1"]),
        (["--nodes", "2", "--volume", "nan"], ["volume", "NaN"]),
        (["--nodes", "2"], ["--volume"]),
        ([*JOB, "--budget", "-5"], ["budget", "-5"]),
        ([*JOB, "--deadline", "soon"], ["--deadline"]),
        ([*JOB, "--criterion", "best"], ["best"]),
        ([*JOB, "--shape", "round"], ["round"]),
        ([*JOB, "--method", "magic"], ["magic"]),
        ([*JOB, "--where", "memory >= 64"], ["memory"]),
        ([*JOB, "--where", "q >= "], ["q >="]),
        ([*JOB, "--where", "q = 3"], ["q = 3", "write '==' in place of '='"]),
        ([*JOB, "--plot", "gantt.gif"], ["gantt.gif", ".png"]),
        ([*JOB, "--fast"], ["--fast"]),
    ],
)
def test_bad_options_are_named(
    slots_file: Path, words: list[str], named: list[str]
) -> None:
    refused(run("find", slots_file, *words), *named)


@pytest.mark.parametrize(
    "words", [["fnid"], ["bench"], ["find"], ["bench", "scaling", "--cycles", "0"]]
)
def test_bad_commands_take_one_line(words: list[str]) -> None:
    refused(run(*words), " ".join(["slotkern", *words[:-2]]))


def test_a_wrong_argument_is_not_taken_for_a_word_of_the_command() -> None:
    done = run("ledger", "log", "a\0.db")
    refused(done, "null character")
    assert "got" not in done.stderr


def test_a_file_that_does_not_exist_is_not_refused_for_its_suffix(
    tmp_path: Path,
) -> None:
    for command in ("trace", "replay"):
        refused(run(command, tmp_path / "none.txt"), "none.txt: No such file")


def test_a_text_file_of_another_encoding_is_named(tmp_path: Path) -> None:
    text = tmp_path / "latin.toml"
    text.write_bytes("a = 1\nname = 'M\u00fcnchen'".encode("latin-1"))
    for words in (["study"], ["cluster", "show", "--site"]):
        refused(run(*words, text), f"{text}, line 2: byte 0xfc is not UTF-8 text")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["find", "a.npz", "--nodes", "5", "--volume", "abc"], "abc"),
        (["find", "a.npz", "--nodes=1.5", "--volume", "1"], "1.5"),
        (["bench", "scaling", "--cycles", "-1"], "-1"),
        (["reproduce", "aep", "--cycles", "0"], "0"),
        (["reproduce", "aep", "--seed", "-3"], "-3"),
        (["find", "SLOTS", "--nodes", "5", "--volume", "1", "--seed", "-4"], "-4"),
    ],
)
def test_an_invalid_value_is_printed(
    slots_file: Path, words: list[str], value: str
) -> None:
    given = [str(slots_file) if word == "SLOTS" else word for word in words]
    refused(run(*given), value)


def test_a_missing_extra_is_named(
    slots_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "slotkern.plotting.notebook_figure", raising=False)
    result = run("find", slots_file, *JOB, "--plot", "gantt.png")
    refused(result, "matplotlib", "pip install 'slotkern[plot]'")


def test_internal_errors_are_not_hidden(
    slots_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(sk, "find_window", broken)
    result = run("find", slots_file, *JOB)
    assert isinstance(result.exception, RuntimeError)


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 74.5 GiB for an array")

    monkeypatch.setattr(sk, "generate_environment", full)
    refused(
        run("generate", "--output", "a.csv"), "out of memory: Unable to allocate 74"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_one_line_with_the_file(tmp_path: Path) -> None:
    full = tmp_path / "full.csv"
    full.symlink_to("/dev/full")
    refused(
        run("generate", "--nodes", 9, "--output", full),
        f"{full}: No space left on device",
    )


def test_a_wrong_output_is_refused_before_the_work(tmp_path: Path) -> None:
    refused(
        run("generate", "--nodes", 10**6, "--output", tmp_path / "a.xlsx"),
        tmp_path / "a.xlsx",
        "the suffix '.xlsx' is not one of",
    )
    trace = tmp_path / "nowhere.swf"
    options = ["--at", "0", "--horizon", "9"]
    refused(
        run("slots-from-trace", trace, *options, "--output", tmp_path / "a.xlsx"),
        "the suffix '.xlsx' is not one of",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_trace_is_not_overwritten_by_its_slots(tmp_path: Path) -> None:
    trace, link = tmp_path / "trace.csv", tmp_path / "link.csv"
    trace.write_text("; MaxProcs: 4\n1 0 0 9 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    link.symlink_to(trace)
    before = trace.read_text()
    for output in (trace, link):
        refused(
            run(
                "slots-from-trace", trace, "--at", 0, "--horizon", 9, "--output", output
            ),
            f"{output} is an input of this command",
        )
    assert trace.read_text() == before


NODES = "name,performance,price\na,1,0.5\nb,2,0.5\n"
BUSY = "node,start,end\na,2026-10-25 06:00,2026-10-25 07:00\n"
DAY = ["--start", "2026-10-25", "--end", "2026-10-26", "--zone", "UTC"]


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    slots, jobs, machine, busy, pool, trace = (
        tmp_path / name
        for name in ("s.csv", "j.csv", "m.csv", "b.csv", "p.npz", "easy.swf")
    )
    slots.write_text("node,start,end,performance,price\n0,0,9,1,1\n")
    jobs.write_text("nodes,volume\n1,1\n")
    machine.write_text(NODES)
    busy.write_text(BUSY)
    trace.write_text("; MaxProcs: 4\n1 0 0 9 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert run("free", machine, *DAY, "--output", pool).exit_code == 0
    (tmp_path / "link.csv").symlink_to(jobs)
    files = [slots, jobs, machine, busy, trace]
    before = [file.read_bytes() for file in files]
    job = ["--nodes", 1, "--volume", 1]
    for words, output in (
        (["find", slots, *job], slots),
        (["alternatives", slots, *job], slots),
        (["compare", slots, *job], slots),
        (["free", machine, "--busy", busy, *DAY], machine),
        (["free", machine, "--busy", busy, *DAY], busy),
        (["schedule", slots, jobs], slots),
        (["schedule", pool, jobs], tmp_path / "link.csv"),
        (["batch", slots, jobs], slots),
        (["batch", slots, jobs], jobs),
    ):
        done = run(*words, "--output", output)
        refused(done, f"--output: {output} is an input of this command")
    done = run("replay", trace, "--policy", "fcfs", "--policy", "easy")
    assert done.exit_code == 0
    done = run("replay", trace, "--policy", "easy", "--output", tmp_path)
    refused(done, f"--output: {trace} is an input of this command")
    assert [file.read_bytes() for file in files] == before


def test_a_pool_file_may_be_replaced(tmp_path: Path) -> None:
    machine, jobs, pool = (tmp_path / name for name in ("m.csv", "j.csv", "p.npz"))
    machine.write_text(NODES)
    jobs.write_text("nodes,walltime\n1,1h\n")
    assert run("free", machine, *DAY, "--output", pool).exit_code == 0
    for owner in ("alice", "bob"):
        done = run("schedule", pool, jobs, "--owner", owner, "--output", pool)
        assert done.exit_code == 0
    assert sk.SlotPool.load(pool).owners == ["alice", "bob"]


@pytest.mark.parametrize(
    ("nodes", "busy", "words"),
    [
        ("name,performance\na,1\nb,fast\n", BUSY, "m.csv, line 3: performance 'fast'"),
        ('name,price\na,"0,75"\n', BUSY, "m.csv, line 2: price '0,75' is not"),
        ("name,price\n\na,1\nb,-1\n", BUSY, "m.csv, line 4: price -1.0 is not"),
        ("name\na\nb\na\n", BUSY, "m.csv, line 4: 'a' is the name of line 2"),
        ("name,price\na,1\n ,1\n", BUSY, "m.csv, line 3: the name is empty"),
        (NODES, BUSY + "c,2026-10-25,\n", "b.csv: node, line 3: 'c' is no node"),
        (NODES, BUSY + "a,noon,\n", "b.csv: start, line 3: 'noon' is no date"),
        (NODES, BUSY + "a,,\n", "b.csv: start, line 3: a time is missing"),
        (
            NODES,
            BUSY + "a,2026-10-25 09:00,2026-10-25 08:00\n",
            "b.csv, line 3: the span ends at 2026-10-25 08:00:00",
        ),
        (
            NODES,
            BUSY + "a,2026-10-25 09:00+00:00,\n",
            "b.csv: start, line 2: 2026-10-25 06:00 has no time zone, but "
            "2026-10-25 09:00+00:00 in line 3 has one",
        ),
    ],
)
def test_errors_in_a_table_name_their_line(
    tmp_path: Path, nodes: str, busy: str, words: str
) -> None:
    machine, spans = tmp_path / "m.csv", tmp_path / "b.csv"
    machine.write_text(nodes)
    spans.write_text(busy)
    options = [*DAY, "--output", tmp_path / "pool.npz"]
    refused(run("free", machine, "--busy", spans, *options), f"{tmp_path}/{words}")


@pytest.mark.parametrize(
    "words",
    [
        ["find", "FOLDER", *JOB],
        ["free", "FOLDER", *DAY, "--output", "pool.npz"],
        ["trace", "FOLDER"],
        ["replay", "FOLDER"],
        ["batch", "SLOTS", "FOLDER"],
        ["schedule", "SLOTS", "FOLDER"],
    ],
)
def test_a_folder_is_refused_as_a_file(
    slots_file: Path, tmp_path: Path, words: list[str]
) -> None:
    places = {"FOLDER": str(tmp_path), "SLOTS": str(slots_file)}
    given = [places.get(word, word) for word in words]
    refused(run(*given), f"{tmp_path}: Is a directory")


def test_an_invalid_address_is_refused(tmp_path: Path) -> None:
    done = run("reproduce", "aep", "--cluster", "foo", "--out", tmp_path)
    refused(done, "--cluster: 'foo' is no address such as tcp://")


def test_jobs_of_one_name_are_refused(tmp_path: Path) -> None:
    slots, jobs = tmp_path / "s.csv", tmp_path / "j.csv"
    slots.write_text("node,start,end,performance,price\n0,0,9,1,1\n")
    jobs.write_text("name,nodes,volume\na,1,1\na,1,1\n")
    for command in ("batch", "schedule"):
        refused(run(command, slots, jobs), jobs, "line 3", "'a' is the name of line 2")


def test_an_error_in_one_of_many_jobs_names_it(tmp_path: Path) -> None:
    slots, jobs = tmp_path / "s.csv", tmp_path / "j.csv"
    slots.write_text("node,start,end,performance,price,memory\n0,0,9,1,1,64\n")
    for column, cell in (("where", "memry >= 1"), ("limits", "sum(memry) >= 1")):
        jobs.write_text(f"name,nodes,volume,{column}\na,1,1,\nb,1,1,{cell}\n")
        for command in ("batch", "schedule"):
            refused(run(command, slots, jobs), "line 3: b: ", "no column 'memry'")
        jobs.write_text(f"nodes,volume,{column}\n1,1,\n1,1,{cell}\n")
        refused(run("batch", slots, jobs), f"{jobs}, line 3: job 2: ")


def test_an_empty_file_of_slots_is_reported(tmp_path: Path) -> None:
    slots = tmp_path / "s.csv"
    slots.write_text("node,start,end,performance,price\n")
    done = run("find", slots, *JOB)
    assert done.exit_code == 1
    assert done.stdout == "No window fits: there are no slots.\n"
