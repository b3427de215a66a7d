"""Output streams that are closed, full, ASCII only or not read; no result is lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_study import SMALL

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def slots_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slots") / "slots.npz"
    sk.write_slots(path, sk.generate_environment("square", nodes=20, seed=1).slots)
    return path


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def shell(line: str, *words: Any, folder: Path, **environment: str) -> Any:
    """Run a line of bash in which "$@" is slotkern and its arguments."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "slotkern"]
    return subprocess.run(
        [*command, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | environment,
    )


def find(slots_file: Path, *more: Any) -> tuple[Any, ...]:
    return ("find", slots_file, "--nodes", 3, "--volume", 100, *more)


@pytest.mark.parametrize("more", [(), ("--json",), ("--budget", 1)])
def test_closed_streams_give_no_traceback(
    slots_file: Path, tmp_path: Path, more: tuple[Any, ...]
) -> None:
    words = find(slots_file, *more)
    code = 1 if "--budget" in more else 0
    lost = "slotkern: standard output: Bad file descriptor\n"
    for line, expected in (
        ('"$@" >&-', (2, "", lost)),
        ('"$@" >&- 2>&-', (2, "", "")),
        ('"$@" 2>&- >/dev/null', (code, "", "")),
    ):
        done = shell(line, *words, folder=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == expected
    done = shell('"$@" 2>&-', *words, "--gap", -1, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_file_written_with_closed_output_is_whole(tmp_path: Path) -> None:
    words = ("generate", "--output", "env.npz", "--nodes", 5)
    assert shell('"$@" >&- 2>&-', *words, folder=tmp_path).returncode == 2
    expected = sk.generate_environment(nodes=5).slots
    assert (sk.read_slots(tmp_path / "env.npz") == expected).all()


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("more", [(), ("--json",), ("--budget", 1)])
def test_a_full_device_is_named(
    slots_file: Path, tmp_path: Path, more: tuple[Any, ...]
) -> None:
    done = shell('"$@" >/dev/full', *find(slots_file, *more), folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "slotkern: standard output: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("find", "--help")])
def test_help_that_cannot_be_written_is_an_error(tmp_path: Path, words: Any) -> None:
    for line, why in (
        ('"$@" >/dev/full', "No space left on device"),
        ('"$@" >&-', "Bad file descriptor"),
    ):
        done = shell(line, *words, folder=tmp_path)
        message = f"slotkern: standard output: {why}\n"
        assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.parametrize("more", [(), ("--budget", 1)])
def test_a_closed_pipe_gives_no_traceback(
    slots_file: Path, tmp_path: Path, more: tuple[Any, ...]
) -> None:
    line = 'set -o pipefail; (sleep 0.2; "$@") | true'
    done = shell(line, *find(slots_file, *more), folder=tmp_path)
    assert (done.returncode, done.stderr) == (141, "")


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_file_that_does_not_fit_is_named(tmp_path: Path, study_file: Path) -> None:
    for words, named in (
        (("generate", "--output", "env.npz"), "env.npz"),
        (("study", study_file, "--cycles", 20), "small/cycles/"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "slotkern", *map(str, words)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            preexec_fn=limited,
        )
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1
        assert named in done.stderr
        assert "File too large" in done.stderr


# --- results of a study


def written(folder: Path) -> set[str]:
    return {path.name for path in (folder / "out" / "small").iterdir()}


WHOLE = {"cycles", "study.json", "summary.csv", "comparison.csv", "report.txt"}
PICTURES = {"bars.png", "curves.png"}


@pytest.mark.parametrize(
    ("line", "environment", "code"),
    [
        ('set -o pipefail; "$@" | true', {}, 141),
        ('"$@" >&- 2>&-', {}, 2),
        ('"$@"', {"PYTHONIOENCODING": "ascii"}, 0),
        ('LC_ALL=C "$@"', {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 0),
    ],
)
def test_no_output_loses_a_summary(
    study_file: Path,
    tmp_path: Path,
    line: str,
    environment: dict[str, str],
    code: int,
) -> None:
    words = ("study", study_file, "--cycles", 20)
    done = shell(line, *words, folder=tmp_path, **environment)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert written(tmp_path) == WHOLE | PICTURES
    assert "±" in (tmp_path / "out/small/report.txt").read_text(encoding="utf-8")
    if environment:
        assert done.stdout.isascii()
        assert " +-" in done.stdout


def test_a_failed_picture_loses_no_numbers(study_file: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "small" / "bars.png").mkdir(parents=True)
    done = shell('"$@"', "study", study_file, "--cycles", 20, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "bars.png" in done.stderr
    assert "Nobody knows why." in done.stdout
    assert written(tmp_path) >= WHOLE


# --- errors before the work starts


def test_outputs_that_cannot_be_written_are_refused_first(
    slots_file: Path, study_file: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    from typer.testing import CliRunner

    from slotkern.commands import main as cli

    def too_late(*_: Any, **__: Any) -> None:
        raise AssertionError("the work was done first")

    monkeypatch.setattr("slotkern.studies.times.measure_times", too_late)
    monkeypatch.setattr(sk, "read_slots", too_late)
    monkeypatch.setattr("slotkern.studies.campaign._compute_all", too_late)
    for words, reason in (
        (("bench", "scaling", "--out", study_file), "a file, not a folder"),
        (("study", study_file, "--out", study_file), "a file, not a folder"),
        (("study", study_file, "--out", study_file / "x"), "a file, not a folder"),
        (("study", study_file, "--workers", 999999), "workers: 999999 is more than"),
        (find(slots_file, "--plot", "a.xlsx"), "a.xlsx"),
        (("alternatives", *find(slots_file, "--plot", "a.txt")[1:]), "a.txt"),
    ):
        result = CliRunner().invoke(cli.app, [*map(str, words)])
        assert result.exit_code == 2, result.output
        assert reason in result.stderr
        assert result.stderr.count("\n") == 1
