"""Tests of reading, cleaning and writing of traces, with valid and invalid files."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memory_peak import peak_of
from trace_files import REAL, swf_line

import slotkern as sk
from slotkern._kernels.replay import TraceParser
from slotkern.traces.clean import REPAIRS

NAMES = sk.SWF.names or ()
GOOD = swf_line(1, submit=0, wait=0, run_time=1, allocated=1)


def written(tmp_path: Path, text: str | bytes, name: str = "bad.swf") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    return path


def test_standard_workload_format(tmp_path: Path) -> None:
    text = (
        "; Computer: caf\xe9\n;MaxProcs:  64 (of 70)\n; Note: one\n; Note: two\n\n"
        "  1 0 964980 97225.5 56 -1 -1 56 210000 -1 1 1 1 -1 -1 2 -1 -1\r\n"
        "; a comment between\n"
        "2\t10 0 1e2 +5 12.75 -1 -1 -1 -1 0 3 1 -1 -1 -1 1 30 ; and one behind\n"
        " \t\r\n"
        "3 11 0 .5 1. 1E-2 -1 -1 -1 -1 0 3 1 -1 -1 -1 1 0.1234567890123456789;x"
    )
    plain = written(tmp_path, text, "small.swf")
    packed = written(tmp_path, gzip.compress(plain.read_bytes()), "small.SWF.GZ")
    for path in (plain, packed):
        trace = sk.read_trace(path)
        jobs = trace.jobs
        assert jobs.dtype == sk.SWF
        assert len(NAMES) == 18
        assert jobs["job"].tolist() == [1, 2, 3]
        assert jobs["wait"].tolist() == [964980, 0, 0]
        assert jobs["run_time"].tolist() == [97225.5, 100, 0.5]
        assert jobs["allocated"].tolist() == [56, 5, 1]
        assert jobs["partition"].tolist() == [2, -1, -1]
        assert jobs["cpu_time"].tolist() == [-1, 12.75, 0.01]
        assert jobs["think_time"].tolist() == [-1, 30, 0.1234567890123456789]
        assert trace.header == {
            "Computer": "caf\xe9",
            "MaxProcs": "64 (of 70)",
            "Note": "one\ntwo",
        }
        assert trace.processors == 64
        assert trace.comments.endswith("; a comment between\n")
        assert len(trace) == 3
        assert repr(trace) == f"Trace({str(path)!r}, 3 jobs, processors=64)"


def test_grid_workload_format(tmp_path: Path) -> None:
    text = (
        "# Grid: one\n# JobID SubmitTime ...\n"
        "0 12 3 100 2 -1 512.5 2 -1 -1 1 U1 G1 X1 q0 -1 A/b A/c UNITARY -1 -1 -1 -1 "
        "Linux -1 -1 -1 VO1 -1\n"
        "1 13 3 100 2 -1 -1 2 -1 -1 1 U2 G1 -1 q0 -1 A/b A/b UNITARY -1 0.5 -1 -1 "
        "-1 -1 -1 -1 -1 p\n"
    )
    for name, data in (
        ("a.gwf", text.encode()),
        ("a.gwf.gz", gzip.compress(text.encode())),
    ):
        trace = sk.read_trace(written(tmp_path, data, name))
        assert trace.jobs.dtype == sk.GWF
        assert len(sk.GWF) == 29
        assert trace.header["Grid"] == "one"
        for field, words in {
            "user": ["U1", "U2"],
            "group": ["G1", "G1"],
            "executable": ["X1", None],
            "origin_site": ["A/b", "A/b"],
            "last_site": ["A/c", "A/b"],
            "requested_platform": ["Linux", None],
            "organization": ["VO1", None],
            "project": [None, "p"],
            "partition": [None, None],
        }.items():
            codes = trace.jobs[field].tolist()
            found = [None if k < 0 else trace.words[field][k] for k in codes]
            assert found == words
        assert trace.jobs["network"].tolist() == [-1, 0.5]
        assert trace.jobs["memory"].tolist() == [512.5, -1]
        assert len(sk.replay(trace, 4)) == 2
    with pytest.raises(ValueError, match=r"a\.gwf, line 1: 18 fields, not 29"):
        sk.read_trace(written(tmp_path, GOOD, "a.gwf"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ": the file is empty"),
        (f"; x\n{GOOD}\n\n{GOOD} 7\n", ", line 4: 19 fields, not 18"),
        (f"{GOOD}\n{GOOD[:-4]}\n", ", line 2: 17 fields, not 18"),
        (f"{GOOD} 1\n{GOOD} 1\n", ", line 1: 19 fields, not 18"),
        (GOOD.replace("0", "x", 1), ", line 1: submit 'x' is not a number"),
        (GOOD.replace("0", "1_0", 1), ", line 1: submit '1_0' is not a number"),
        (GOOD.replace("0", "0x1", 1), ", line 1: submit '0x1' is not a number"),
        (GOOD.replace("0", "1e", 1), ", line 1: submit '1e' is not a number"),
        (GOOD.replace("0", "1e+", 1), ", line 1: submit '1e+' is not a number"),
        (GOOD.replace("0", ".", 1), ", line 1: submit '.' is not a number"),
        (GOOD.replace("0", "-", 1), ", line 1: submit '-' is not a number"),
        (GOOD.replace("0", "1.2.3", 1), ", line 1: submit '1.2.3' is not a number"),
        (GOOD.replace("0", "nan", 1), ", line 1: submit 'nan' is not a number"),
        (f"{GOOD}\n;\n{GOOD.replace('0', 'inf', 1)}", ", line 3: submit 'inf' is not"),
        (
            GOOD.replace("0", "1e17", 1),
            ", line 1: submit '1e17' is not a number wi",
        ),
        (GOOD.replace("0", "1e999", 1), ", line 1: submit '1e999' is not a number wit"),
        (GOOD.replace("1", "1.5", 1), ", line 1: job '1.5' is not an integer"),
        # Such lines were once read as three copies of one job.
        (f"# {GOOD}\n{GOOD}\n", ", line 1: 19 fields, not 18"),
        (f"{GOOD[:-2]} #1", ", line 1: think_time '#1' is not a number"),
        # A long field once caused exponential time of a regular expression.
        (
            GOOD.replace("0", "9" * 20_000 + "x", 1),
            ", line 1: submit '" + "9" * 79,
        ),
        (GOOD.replace("0", "9" * 20_000, 1), ", line 1: submit '999999"),
        (b"\x00" * 100_000, ", line 1: more than 65,536 characters"),
        (GOOD.encode() + b"\n" + b"7" * 70_000 + b"\n", ", line 2: more than 65,536"),
        (b"\x00\x01\x02\xff" * 99, ", line 1: 1 fields, not 18"),
        (gzip.compress(GOOD.encode(), mtime=0), ", line 1: "),
        (
            f"{GOOD}\n{swf_line(2, submit=-86400)}",
            ", line 2: submit -86400 is before the trace begins",
        ),
    ],
)
def test_malformed_traces(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = written(tmp_path, text)
    for call in (sk.read_trace, lambda path: sk.slots_from_trace(path, 0, 1)):
        with pytest.raises(ValueError, match="bad") as caught:
            call(path)
        assert str(caught.value).startswith(str(path) + message)
        assert len(str(caught.value)) < len(str(path)) + 200


def test_numbers_with_many_digits_are_read(tmp_path: Path) -> None:
    text = GOOD.replace("0", "0" * 20_000 + "7." + "1" * 20_000, 1)
    trace = sk.read_trace(written(tmp_path, text))
    assert trace.jobs["submit"].tolist() == [float("7." + "1" * 40)]


def test_damaged_gzip_files(tmp_path: Path) -> None:
    sound = gzip.compress((f"{GOOD}\n" * 500).encode(), mtime=0)
    path = tmp_path / "bad.swf.gz"
    for text in (
        sound[:-9],
        sound[:5],
        b"plain",
        sound[:40] + b"?" + sound[41:],
        sound[:-6] + b"?" + sound[-5:],
    ):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"bad\.swf\.gz: not a valid gzip file"):
            sk.read_trace(path)
    path.write_bytes(sound + sound)  # two members are one file
    assert len(sk.read_trace(path)) == 1000
    for name in ("nowhere.swf", "a.csv"):
        with pytest.raises(FileNotFoundError):
            sk.read_trace(tmp_path / name)
    (tmp_path / "a.csv").write_bytes(sound)
    with pytest.raises(ValueError, match=r"a\.csv: the suffix is not one of"):
        sk.read_trace(tmp_path / "a.csv")


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "marked.swf"
    path.write_bytes(codecs.BOM_UTF8 + f"; MaxProcs: 4\n{GOOD}\n".encode())
    trace = sk.read_trace(path)
    assert (len(trace), trace.header["MaxProcs"]) == (1, "4")
    path.write_bytes(codecs.BOM_UTF8)
    with pytest.raises(ValueError, match="the file is empty"):
        sk.read_trace(path)


@pytest.mark.parametrize("filling", [b"\x00", b"\n", b"; comment\n", b" "])
def test_decompression_stops_at_the_limit(tmp_path: Path, filling: bytes) -> None:
    size = 2**26
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = filling * (2**20 // len(filling))
    data = b"".join(packer.compress(piece) for _ in range(size // len(piece)))
    path = written(tmp_path, data + packer.flush(), "bomb.swf.gz")
    assert path.stat().st_size < size / 200
    error, peak = peak_of(sk.read_trace, path, max_bytes=2**22)
    assert isinstance(error, ValueError)
    assert re.search(r"bomb\.swf\.gz(, line 1)?: more than", str(error))
    assert peak < 2**23


def test_bad_lines_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    bad = [f"{GOOD} 1", "x", GOOD.replace("0", "x", 1), swf_line(2, submit=-5)]
    path = written(tmp_path, "\n".join([GOOD, *bad, *map(str, range(20)), GOOD]))
    trace = sk.read_trace(path, errors="skip")
    assert len(trace) == 2
    assert trace.skipped == 24
    assert trace.remarks[:3] == (
        "line 2: 19 fields, not 18",
        "line 3: 1 fields, not 18",
        "line 4: submit 'x' is not a number",
    )
    assert len(trace.remarks) == 8
    assert "skipped=24" in repr(trace)
    with pytest.raises(ValueError, match="errors must be one of raise, skip"):
        sk.read_trace(path, errors="ignore")  # type: ignore[arg-type]


def test_repairs_are_applied_and_counted(tmp_path: Path) -> None:
    jobs = np.full(8, -1, sk.SWF)
    jobs["job"] = np.arange(8)
    jobs["submit"] = [5, 3, 4, 4, 9, -1, 6, 7]
    jobs["run_time"] = [10, 0, 10, 30, 10, 10, -1, 10]
    jobs["requested_time"] = [10, 10, 20, 20, -1, 10, 10, 10]
    jobs["allocated"] = [1, 1, 9, 1, -1, 1, 1, 0]
    jobs["requested"] = [1, 1, 1, 1, 2, 1, 1, -1]
    path = tmp_path / "a.swf"
    sk.write_trace(path, jobs, header={"MaxProcs": "8"})
    whole = sk.read_trace(path)
    assert whole.repairs == {}
    trace = sk.read_trace(path, clean="all")
    assert trace.jobs["job"].tolist() == [3, 0, 4]
    assert trace.jobs["run_time"].tolist() == [20, 10, 10]
    assert trace.repairs == {
        "partial": 0,
        "cancelled": 0,
        "unknown": 3,
        "zero-run": 1,
        "too-wide": 1,
        "overrun": 1,
        "order": 1,
    }
    assert whole.jobs["run_time"][3] == 30
    for name in REPAIRS:
        alone = sk.read_trace(path, clean=name)
        assert list(alone.repairs) == [name]
        assert sk.clean_trace(whole, [name]).jobs.tolist() == alone.jobs.tolist()
    with pytest.raises(
        ValueError, match="clean must be one of partial, cancelled, unknown"
    ):
        sk.read_trace(path, clean="nothing")
    sk.write_trace(path, jobs)
    with pytest.raises(ValueError, match=r"a\.swf: clean='too-wide': the header has"):
        sk.read_trace(path, clean="too-wide")
    assert "too-wide" not in sk.read_trace(path, clean="all").repairs


CELLS = st.floats(-(2.0**53), 2.0**53) | st.sampled_from([-1.0, -0.0, 0.0, 7.0])


@given(rows=st.lists(st.lists(CELLS, min_size=18, max_size=18), max_size=5))
def test_written_traces_are_read_bit_by_bit(
    tmp_path_factory: Any, rows: list[list[float]]
) -> None:
    jobs = np.zeros(len(rows), sk.SWF)
    for k, name in enumerate(NAMES):
        jobs[name] = [abs(row[k]) if name == "submit" else row[k] for row in rows]
    folder = tmp_path_factory.mktemp("written")
    for name in ("a.swf", "a.swf.gz"):
        sk.write_trace(
            folder / name, jobs, header={"Note": "one\ntwo", "MaxProcs": "3"}
        )
        trace = sk.read_trace(folder / name)
        assert trace.jobs.tobytes() == jobs.tobytes()
        assert trace.header == {"Note": "one\ntwo", "MaxProcs": "3"}
        assert trace.processors == 3


def test_values_beyond_the_format_are_not_written(tmp_path: Path) -> None:
    jobs = np.zeros(2, [("submit", "f8"), ("user", "f8"), ("more", "f8")])
    path = tmp_path / "a.swf"
    sk.write_trace(path, jobs)
    assert sk.read_trace(path).jobs["submit"].tolist() == [0, 0]
    for field, value in (("submit", np.nan), ("submit", 1e300), ("user", 0.5)):
        wrong = jobs.copy()
        wrong[field][1] = value
        with pytest.raises(ValueError, match=f"jobs: row 1: {field} .* is not"):
            sk.write_trace(path, wrong)
    with pytest.raises(TypeError, match="jobs must be a structured array, got list"):
        sk.write_trace(path, [1, 2])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="only the Standard Workload Format"):
        sk.write_trace(tmp_path / "a.gwf", jobs)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.swf"]


@given(
    lines=st.lists(
        st.lists(
            st.sampled_from(
                ["1", "-1", "2.5", "1e3", "x", ";", "#", "", "1;", "9" * 30]
            ),
            max_size=5,
        ),
        max_size=6,
    ),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    ending=st.sampled_from(["\n", "\r\n"]),
)
@example(lines=[["1", "1", "2.5", "1"], ["1", "1", "1"]], cuts=[], ending="\n")
def test_the_size_of_pieces_does_not_change_the_result(
    lines: list[list[str]], cuts: list[int], ending: str
) -> None:
    text = ending.join(" ".join(line) for line in lines).encode()
    dtype = np.dtype([("a", "i8"), ("b", "f8"), ("c", "i8")])

    def parsed(pieces: list[bytes]) -> Any:
        parser = TraceParser(dtype, {"c"}, ";", True)
        for piece in pieces:
            parser.feed(piece)
        rows = parser.finish()
        lines = [parser.line_of(row) for row in range(len(rows))]
        return rows.tolist(), parser.skipped, parser.remarks, parser.comments, lines

    expected, words = [], {}
    for number, line in enumerate(text.decode().split("\n"), 1):
        cells = line.partition(";")[0].split()
        try:
            whole, real, word = cells
            row = (float(whole), float(real))
            if row[0] % 1 or max(map(abs, row)) > 2**53:
                continue
        except ValueError:
            continue
        code = -1 if word == "-1" else words.setdefault(word, len(words))
        expected.append((int(row[0]), row[1], code, number))
    found = parsed([text])
    assert [(*row, k) for row, k in zip(found[0], found[4], strict=True)] == expected
    places = sorted(min(cut, len(text)) for cut in cuts)
    edges = [0, *places, len(text)]
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert parsed(pieces) == found


def test_at_after_the_end_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, swf_line(1, submit=5, wait=5, run_time=10, allocated=1))
    assert len(sk.slots_from_trace(path, 19, 5, processors=100).slots) == 100
    with pytest.raises(ValueError, match=r"bad\.swf: at 20 is not before the end of i"):
        sk.slots_from_trace(path, 20, 5)


def test_a_header_of_millions_of_processors_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, f"; MaxProcs: 16777216\n{GOOD}\n")
    message = (
        r"bad\.swf: 16777216 processors are not between 1 and 1048576; processors="
    )
    with pytest.raises(ValueError, match=message):
        sk.slots_from_trace(path, 0, 1)
    assert len(sk.slots_from_trace(path, 0, 1, processors=2).slots) == 1
    assert sk.replay(sk.read_trace(path)).jobs["start"].tolist() == [0]


@pytest.mark.skipif(not REAL, reason="the real traces are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_traces_against_a_plain_loop(path: Path) -> None:
    rows = []
    with gzip.open(path, "rt", encoding="latin-1") as file:
        for line in file:
            if line.strip() and not line.startswith(";"):
                rows.append([float(cell) for cell in line.split()])
    table = np.array(rows)
    jobs = sk.read_trace(path).jobs
    for k, name in enumerate(NAMES):
        assert (jobs[name] == table[:, k]).all()
