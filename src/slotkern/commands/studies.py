"""The commands ``slotkern reproduce`` and ``slotkern study``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from slotkern.checks import visible
from slotkern.commands.completion import complete_from
from slotkern.commands.terminal import stdout_console
from slotkern.extras import extra
from slotkern.studies.campaign import run
from slotkern.studies.figures import draw_figures
from slotkern.studies.load import as_formats, load_study
from slotkern.studies.papers import PAPERS
from slotkern.studies.report import print_report, write_tables
from slotkern.studies.study import FORMATS, Study
from slotkern.studies.summary import Summary
from slotkern.studies.times import measure_times

with extra():
    import typer

__all__ = ["register"]

Cycles = Annotated[
    int | None, typer.Option(help="How many cycles; the study's own by default.")
]
Workers = Annotated[int, typer.Option(help="How many processes.")]
PublishedCycles = Annotated[
    int | None,
    typer.Option(help="On how many of them the papers' own algorithms run."),
]
Seed = Annotated[int | None, typer.Option(help="Replaces the study's seed.")]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        autocompletion=complete_from(FORMATS),
        help=f"{', '.join(FORMATS)}; more than once for several.",
    ),
]
Titles = Annotated[
    bool, typer.Option(help="Whether pictures have their titles in them.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Address of a dask scheduler whose workers do the work."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(reproduce)
    app.command()(study)


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_from((*PAPERS, "all")),
            help=f"{', '.join(PAPERS)}, or all.",
        ),
    ],
    cycles: Cycles = None,
    workers: Workers = 1,
    published_cycles: PublishedCycles = None,
    seed: Seed = None,
    out: Annotated[
        Path,
        typer.Option(help="Folder for the results; each study gets its own in it."),
    ] = Path("out"),
    cluster: Cluster = None,
    formats: Formats = None,
    titles: Titles = True,
) -> None:
    """Run the papers' studies and print published and obtained numbers side by side."""
    known = (*PAPERS, "all")
    if name not in known:
        raise ValueError(f"reproduce: {name!r} is not one of {', '.join(known)}")
    for paper in PAPERS if name == "all" else (name,):
        _run(
            load_study(paper, seed=seed),
            cycles,
            workers,
            published_cycles,
            out / paper,
            cluster,
            formats,
            titles,
        )


def study(
    file: Annotated[Path, typer.Argument(help="The study, a TOML file.")],
    cycles: Cycles = None,
    workers: Workers = 1,
    published_cycles: PublishedCycles = None,
    seed: Seed = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; out/NAME by default.")
    ] = None,
    cluster: Cluster = None,
    formats: Formats = None,
    titles: Titles = True,
) -> None:
    """Run a study of your own (docs/studies.md explains the file)."""
    # A study's own experiments and criteria may stand beside its file.
    sys.path.append(str(file.resolve().parent))
    _run(
        load_study(file, seed=seed),
        cycles,
        workers,
        published_cycles,
        out,
        cluster,
        formats,
        titles,
    )


def _run(
    study: Study,
    cycles: int | None,
    workers: int,
    published_cycles: int | None,
    out: Path | None,
    cluster: str | None,
    formats: list[str] | None,
    titles: bool,
) -> None:
    """Run or resume a campaign, print its report, and say where everything is."""
    if formats:
        study = replace(study, formats=as_formats("--format", formats))
    if not titles:
        study = replace(study, titles=False)
    if cluster is not None and ":" not in cluster:
        raise ValueError(
            f"--cluster: {cluster!r} is no address such as tcp://host:8786"
        )
    folder = Path("out") / study.name if out is None else out
    try:
        campaign = run(
            study,
            cycles,
            out=folder,
            workers=workers,
            cluster=cluster,
            published_cycles=published_cycles,
            progress=sys.stderr.isatty(),
        )
    except KeyboardInterrupt:
        print(
            f"interrupted; what is finished is in {visible(folder)}, the same command "
            "resumes",
            file=sys.stderr,
        )
        raise
    # What was computed is in files before anything is printed, and it is printed even
    # if a picture fails.
    summary = Summary(campaign)
    times = measure_times(study, twins=campaign.published_cycles > 0)
    files = write_tables(summary, times)
    try:
        files += draw_figures(summary, times)
    finally:
        with stdout_console(width=150) as console:
            print_report(summary, console, times)
            for path in files:
                console.print(str(path), soft_wrap=True, style="dim")
