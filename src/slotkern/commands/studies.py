"""``slotkern reproduce`` (studies of the papers) and ``slotkern study`` (your own)."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from slotkern.commands.completion import complete_from
from slotkern.commands.options import with_options
from slotkern.commands.terminal import stdout_console
from slotkern.foundation.checks import visible
from slotkern.foundation.extras import extra
from slotkern.studies.campaign import run
from slotkern.studies.figures import draw_figures
from slotkern.studies.load import as_formats, load_study
from slotkern.studies.papers import PAPERS, study_text
from slotkern.studies.report import print_report, write_tables
from slotkern.studies.study import FORMATS, Study
from slotkern.studies.summary import Summary
from slotkern.studies.times import measure_times

with extra():
    import typer

__all__ = ["register"]


@dataclass(frozen=True)
class StudyOptions:
    """The options of a run of a study."""

    cycles: Annotated[
        int | None, typer.Option(help="Number of cycles; by default that of the study.")
    ] = None
    workers: Annotated[int, typer.Option(help="Number of worker processes.")] = 1
    published_cycles: Annotated[
        int | None,
        typer.Option(
            help="Number of these cycles in which the published algorithms run as "
            "well; by default that of the study."
        ),
    ] = None
    seed: Annotated[
        int | None, typer.Option(help="Seed; by default that of the study.")
    ] = None
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; by default out/NAME.")
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Address of a dask scheduler whose workers run the cycles, such as "
            "tcp://host:8786; by default this machine."
        ),
    ] = None
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            autocompletion=complete_from(FORMATS),
            help=f"Format of tables and pictures: {', '.join(FORMATS)}; repeat for "
            "several. By default those of the study.",
        ),
    ] = None
    titles: Annotated[
        bool, typer.Option(help="Draw titles into the pictures, or not.")
    ] = True


@dataclass(frozen=True)
class ReproduceOptions(StudyOptions):
    """The options of a run of the papers' studies."""

    out: Annotated[
        Path,
        typer.Option(help="Folder of the results, with one subfolder per study."),
    ] = Path("out")
    toml: Annotated[
        bool,
        typer.Option(
            "--toml",
            help="Print the study's file instead of running it, for `slotkern study`.",
        ),
    ] = False


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(reproduce)
    app.command()(study)


@with_options
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_from((*PAPERS, "all")),
            help=f"Study to run: {', '.join(PAPERS)}, or all.",
        ),
    ],
    options: ReproduceOptions,
) -> None:
    """Run the studies of the papers; print published and obtained numbers side by side.

    Finished cycles are saved in --out; the same command resumes an
    interrupted run.
    """
    studies = (*PAPERS, "all")
    if name not in studies:
        raise ValueError(f"reproduce: {name!r} is none of {', '.join(studies)}")
    if options.toml:
        if name == "all":
            raise ValueError("--toml prints one study; 'all' is none")
        sys.stdout.write(study_text(name))
        return
    for paper in PAPERS if name == "all" else (name,):
        _run(load_study(paper, seed=options.seed), options, options.out / paper)


@with_options
def study(
    file: Annotated[Path, typer.Argument(help="File of the study, .toml.")],
    options: StudyOptions,
) -> None:
    """Run your own study and print its results (docs/studies.md describes the file).

    Finished cycles are saved in --out; the same command resumes an
    interrupted run.
    """
    # The study may import experiments and criteria from the folder of its file.
    sys.path.append(str(file.resolve().parent))
    _run(load_study(file, seed=options.seed), options, options.out)


def _run(study: Study, options: StudyOptions, out: Path | None) -> None:
    """Run or resume a campaign, print its report and the paths of its files."""
    if options.formats:
        study = replace(study, formats=as_formats("--format", options.formats))
    if not options.titles:
        study = replace(study, titles=False)
    cluster = options.cluster
    if cluster is not None and ":" not in cluster:
        raise ValueError(
            f"--cluster: {cluster!r} is no address such as tcp://host:8786"
        )
    folder = Path("out") / study.name if out is None else out
    try:
        campaign = run(
            study,
            options.cycles,
            out=folder,
            workers=options.workers,
            cluster=cluster,
            published_cycles=options.published_cycles,
            progress=sys.stderr.isatty(),
        )
    except KeyboardInterrupt:
        print(
            f"interrupted; finished cycles are saved in {visible(folder)}; run the "
            "same command to resume",
            file=sys.stderr,
        )
        raise
    # Tables are written before the report is printed, and the report is printed even if
    # drawing a picture fails.
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
