"""The command line: ``slotkern find``, ``alternatives``, ``slots-from-trace``,
``batch``, ``trace``, ``replay``, ``generate``, ``bench``, ``reproduce``, ``study``.

Exit codes: 0 when something was found or written, 1 when no window exists (the
explanation is printed), 2 for bad input (one line on stderr), 130 when interrupted.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern._core import REQUEST_FIELDS
from slotkern.commands.batch import batch
from slotkern.extras import EXTRAS, extra
from slotkern.files.slots import format_of
from slotkern.studies.commands import register as register_studies

from . import tables
from .community import community
from .flows import register as register_flows
from .terminal import drop_output, show, write, written

with extra():
    import typer
    from typer.core import TyperGroup

#: The base of all complaints about the arguments; typer exports no name for it.
ClickException: Any = typer.BadParameter.__mro__[2]


class OneLineErrors(TyperGroup):
    """A group of commands whose every complaint is one line on stderr."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command; without arguments, show the help."""
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        name = prog_name or "slotkern"
        try:
            code = super().main(words, name, complete_var, False, **extra)
            write("")  # what is left of the help, too
        except BrokenPipeError:
            drop_output()
            code = 141  # as if killed by SIGPIPE
        except ClickException as error:
            message = error.format_message() + _given(error, words)
            code = _complain(message, getattr(error, "ctx", None))
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            code = _complain(str(error))
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            code = _complain(f"{place}{error.strerror or error}")
        except (ValueError, TypeError) as error:
            code = _complain(str(error))
        except MemoryError as error:
            code = _complain(
                f"out of memory: {error}" if str(error) else "out of memory"
            )
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run the command and stop in silence when nobody reads on."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(141) from None


def _given(error: Any, words: Sequence[str]) -> str:
    """What was given for the option that an error is about, if it was given."""
    for name in getattr(getattr(error, "param", None), "opts", ()):
        for word, after in reversed([*pairwise([*words, ""])]):
            if (word == name and after) or word.startswith(f"{name}="):
                return f", got {after if word == name else word[len(name) + 1 :]!r}"
    return ""


def _complain(message: str, context: Any = None) -> int:
    """Print one line on stderr and return the exit code of bad input."""
    command = getattr(context, "command_path", "slotkern")
    print(f"{command}: {' '.join(message.split())}", file=sys.stderr)
    return 2


app = typer.Typer(
    name="slotkern",
    cls=OneLineErrors,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Exact co-allocation windows over the free time slots of unlike nodes.",
)
bench = typer.Typer(help="Measure the searches on this machine.")
app.add_typer(bench, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        show(f"slotkern {sk.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    pass


# The options of a search, shared by `find` and `alternatives`.
SlotsFile = Annotated[
    Path, typer.Argument(help="Free slots: .csv, .parquet, .json, .jsonl or .npz.")
]
Nodes = Annotated[int, typer.Option(help="How many nodes at once.")]
Volume = Annotated[float, typer.Option(help="Work on each node.")]
Budget = Annotated[float, typer.Option(help="Most money in total.")]
Shape = Annotated[
    str, typer.Option(help="square: all parts finish together; or ragged.")
]
Method = Annotated[
    str,
    typer.Option(
        help="exact; lite: the n cheapest of each step; published, published-lite: "
        "the papers' algorithms."
    ),
]
LeastPerformance = Annotated[float, typer.Option(help="Least performance of a node.")]
Earliest = Annotated[float, typer.Option(help="No start before this time.")]
Deadline = Annotated[float, typer.Option(help="No finish after this time.")]
MaxPrice = Annotated[float, typer.Option(help="Most money per time unit of one slot.")]
Where = Annotated[
    str | None,
    typer.Option(help="Which slots may serve, as in \"memory >= 64 and site == 'a'\"."),
]
Placement = Annotated[
    str, typer.Option(help="slot-start, or any: for sums of values, any start.")
]
Span = Annotated[
    str, typer.Option(help="window, or group: the papers' looser square windows.")
]
Gap = Annotated[
    float, typer.Option(help="For sums of values: a relative distance that will do.")
]
MaxWork = Annotated[
    int | None, typer.Option(help="For sums of values: the most units of work.")
]
Seed = Annotated[int, typer.Option(help="For methods that draw at random.")]
Plot = Annotated[Path | None, typer.Option(help="Draw it: .png, .svg or .pdf.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object (see docs/json.md).")
]
WHAT_IS_BEST = (
    "first, start, finish, runtime, cost, processor_time, dependable, coordinated, the "
    "name of a numeric column, whose sum is maximized, or minimize(column)."
)


@app.command()
def find(
    slots: SlotsFile,
    nodes: Nodes,
    volume: Volume,
    budget: Budget = math.inf,
    criterion: Annotated[
        str, typer.Option(help=f"What is best: {WHAT_IS_BEST}")
    ] = "finish",
    shape: Shape = "square",
    method: Method = "exact",
    min_performance: LeastPerformance = 0.0,
    earliest: Earliest = -math.inf,
    deadline: Deadline = math.inf,
    max_price: MaxPrice = math.inf,
    where: Where = None,
    placement: Placement = "slot-start",
    span: Span = "window",
    gap: Gap = 0.0,
    max_work: MaxWork = None,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Find the best window for a job among free slots.

    Exits with 1 and the explanation when there is no window.
    """
    request = _request(locals())
    _check_plot(plot)
    free = sk.read_slots(slots)
    how: Any = {"criterion": criterion, "shape": shape, "method": method}
    how |= {"placement": placement, "span": span, "gap": gap, "max_work": max_work}
    window = sk.find_window(free, request, seed=seed, **how)
    why = None if window is not None else _why(free, request, shape)
    if window is not None and plot is not None:
        title = f"{slots.name}: {nodes} nodes at once, {shape}"
        sk.plot_gantt(free, window, path=plot, title=title)
    if as_json:
        _print_json(
            slots,
            (criterion, shape, method),
            request,
            window=None if window is None else _window_fields(free, window),
            explanation=None if why is None else why.to_dict() | {"text": str(why)},
        )
    elif window is not None:
        show(tables.window_table(free, window), tables.totals(window))
        if not window.proven:
            show(f"not proven to be the best; no value is better than {window.bound}")
    else:
        show(str(why))
    if window is None:
        raise typer.Exit(1)


@app.command()
def alternatives(
    slots: SlotsFile,
    nodes: Nodes,
    volume: Volume,
    budget: Budget = math.inf,
    criterion: Annotated[
        str,
        typer.Option(
            help="Which window is cut out next: first (all of them in one sweep), or "
            f"the best of what is left by {WHAT_IS_BEST}"
        ),
    ] = "first",
    shape: Shape = "square",
    method: Method = "exact",
    limit: Annotated[
        int | None, typer.Option(help="No more windows than this.")
    ] = None,
    pareto: Annotated[
        str | None,
        typer.Option(
            help="Keep what no other beats in all of these, as in cost,finish."
        ),
    ] = None,
    min_performance: LeastPerformance = 0.0,
    earliest: Earliest = -math.inf,
    deadline: Deadline = math.inf,
    max_price: MaxPrice = math.inf,
    where: Where = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Find all windows for a job that share no slot time.

    Exits with 1 and the explanation when there is none.
    """
    request = _request(locals())
    _check_plot(plot)
    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    free = sk.read_slots(slots)
    how: Any = {"criterion": criterion, "shape": shape, "method": method}
    found = sk.find_alternatives(free, request, limit=limit, **how)
    if pareto is not None:
        names: Any = (name.strip() for name in pareto.split(","))
        found = found.pareto(*names)
    why = None if found else _why(free, request, shape)
    if found and plot is not None:
        title = f"{slots.name}: {len(found)} alternatives of {nodes} nodes, {shape}"
        sk.plot_gantt(free, found, path=plot, title=title)
    if as_json:
        _print_json(
            slots,
            (criterion, shape, method),
            request,
            windows=[_window_fields(free, window) for window in found],
            explanation=None if why is None else why.to_dict() | {"text": str(why)},
        )
    elif why is None:
        show(tables.alternatives_table(found))
    else:
        show(str(why))
    if not found:
        raise typer.Exit(1)


def _check_plot(plot: Path | None) -> None:
    """Refuse a picture that cannot be drawn before anything is searched."""
    if plot is not None:
        from slotkern.plotting.gantt import checked_path

        checked_path(plot)


def _why(slots: Any, request: sk.Request, shape: Any) -> sk.Explanation:
    return sk.explain(slots, request, shape=shape)


def _request(options: dict[str, Any]) -> sk.Request:
    """The request that a command's options make."""
    return sk.Request(**{name: options[name] for name in REQUEST_FIELDS})


def _print_json(
    slots: Path, asked: tuple[str, str, str], request: sk.Request, **answer: Any
) -> None:
    """The object that docs/json.md describes."""
    heading = {"slotkern": sk.__version__, "file": str(slots)}
    heading |= dict(zip(("criterion", "shape", "method"), asked, strict=True))
    fields = {name: getattr(request, name) for name in REQUEST_FIELDS}
    whole = _plain(heading | {"request": fields} | answer)
    write(json.dumps(whole, indent=2, allow_nan=False) + "\n")


def _window_fields(slots: Any, window: Any) -> dict[str, Any]:
    """A window as docs/json.md describes it."""
    parts = window.slots
    chosen = slots[parts["row"]]
    columns = {name: parts[name] for name in parts.dtype.names}
    columns["length"] = parts["end"] - parts["start"]
    columns |= {n: chosen[n] for n in chosen.dtype.names if n not in columns}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    whole = {
        name: getattr(window, name)
        for name in (*tables.TOTALS, "value", "proven", "bound")
    }
    return whole | {"slots": [dict(zip(columns, row, strict=True)) for row in rows]}


def _plain(value: Any) -> Any:
    """The same in strict JSON's types; what is not finite becomes null."""
    match value:
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)


@app.command()
def generate(
    output: Annotated[Path, typer.Option(help="Where to write the slots.")],
    preset: Annotated[
        str,
        typer.Option(help="The papers' environments: aep, square, placement, vo."),
    ] = "aep",
    nodes: Annotated[int | None, typer.Option(help="How many nodes.")] = None,
    interval: Annotated[
        int | None, typer.Option(help="Length of the scheduling interval.")
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="Least and greatest share of local tasks on a node, as in 0.1:0.5.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same slots.")] = 0,
) -> None:
    """Write the free slots of a random environment to a file."""
    format_of(output)  # before the work: another suffix is refused
    shares = None if load is None else _shares(load)
    environment = sk.generate_environment(
        preset, nodes=nodes, interval=interval, load=shares, seed=seed
    )
    sk.write_slots(output, environment.slots)
    show(
        f"{output}: {environment.slots.size:,} free slots of "
        f"{environment.nodes.size:,} nodes in [0, {environment.horizon:,g}), "
        f"{environment.tasks.size:,} local tasks"
    )


def _shares(load: str) -> tuple[float, float]:
    """The two numbers of LOW:HIGH."""
    try:
        low, high = map(float, load.split(":"))
    except ValueError:
        raise ValueError(f"--load: {load!r} is not LOW:HIGH, as in 0.1:0.5") from None
    return low, high


@app.command("slots-from-trace")
def slots_from_trace(
    trace: Annotated[
        Path, typer.Argument(help="Standard Workload Format: .swf or .swf.gz.")
    ],
    at: Annotated[float, typer.Option(help="First second of the trace to look at.")],
    horizon: Annotated[float, typer.Option(help="How many seconds from there.")],
    output: Annotated[Path, typer.Option(help="Where to write the slots.")],
    processors: Annotated[
        int | None,
        typer.Option(help="Size of the machine, if not what the trace says."),
    ] = None,
    performance: Annotated[
        str,
        typer.Option(
            help="A number for all processors, or at random: uniform:LOW:HIGH."
        ),
    ] = "1",
    price: Annotated[
        str,
        typer.Option(
            help="Likewise, or market:LEVEL:EXPONENT:DEVIATION by performance."
        ),
    ] = "0",
    seed: Annotated[int, typer.Option(help="Seed of the laws.")] = 0,
) -> None:
    """Write the free slots that a workload trace leaves on its machine.

    Jobs stand where the trace records them; one that does not fit starts as soon as it
    can, and is counted as delayed. Speeds and prices are in no trace: every processor
    has performance 1 and price 0, unless you say otherwise.
    """
    from slotkern.traces.free_slots import slots_from_trace as free_slots

    format_of(output)
    if output.exists() and trace.exists() and output.samefile(trace):
        raise ValueError(f"{output}: the trace itself, which would be overwritten")
    found = free_slots(
        trace,
        at,
        horizon,
        processors=processors,
        performance=performance,
        price=price,
        seed=seed,
    )
    sk.write_slots(output, found.slots)
    show(
        f"{output}: {found.slots.size:,} free slots of {found.processors:,} processors "
        f"in [{at:,.10g}, {at + horizon:,.10g}); {found.jobs:,} jobs placed, "
        f"{found.delayed:,} of them delayed, {found.skipped:,} skipped"
    )


@bench.command()
def scaling(
    cycles: Annotated[
        int, typer.Option(min=1, help="Environments for each size.")
    ] = 20,
    out: Annotated[Path, typer.Option(help="Folder for the two figures.")] = Path(
        "out"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the environments.")] = 0,
) -> None:
    """Print working times by nodes and by interval, the paper's beside this machine's.

    The tables are Tables 1 and 2 of the paper on AEP, as ``reproduce aep`` prints
    them, with the power of nodes or interval that fits the times best.
    """
    from slotkern.files.whole import make_folder
    from slotkern.studies import load_study
    from slotkern.studies.figures import draw_times
    from slotkern.studies.report import print_times
    from slotkern.studies.times import measure_times

    make_folder(out)  # before, and not after, all has been measured
    study = load_study("aep", seed=seed)
    times = measure_times(study, twins=True, cycles=cycles)
    with written(width=150) as console:
        print_times(times, console)
    show(*map(str, draw_times(study, times, out)))


app.command()(batch)
app.command()(community)
register_flows(app)
register_studies(app)
