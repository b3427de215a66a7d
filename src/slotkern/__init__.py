"""slotkern: exact co-allocation windows over the free time slots of unlike nodes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA, find_window, find_windows
from slotkern._kernels.slots import SLOT
from slotkern._kernels.windows import Window, WindowTable
from slotkern.foundation.adapters import register
from slotkern.foundation.errors import (
    NoWindowError,
    PoolFileChangedError,
    UndecidedError,
)
from slotkern.slots import SlotError, make_slots, validate_slots

if TYPE_CHECKING:
    from slotkern._kernels.pool import Bookings, SlotPool
    from slotkern.batch import (
        BSF,
        CSS,
        Backfilling,
        Batch,
        BatchSlicer,
        Cycles,
        Optimal,
        Schedule,
        read_batch,
        run_cycles,
        schedule_batch,
    )
    from slotkern.calendars import read_ics, to_ics
    from slotkern.communities.result import CommunityRun, compare_communities
    from slotkern.communities.scenarios import Centralized, Community, Independent
    from slotkern.communities.simulate import simulate_community
    from slotkern.communities.workload import (
        CommunityWorkload,
        community_from_trace,
        generate_community,
    )
    from slotkern.compound import AnyOf, Chain, Plan, Together, starts
    from slotkern.domains import (
        DomainBooking,
        Domains,
        RemoteDomain,
        RemoteDomains,
        remote_domain,
    )
    from slotkern.environment import (
        Environment,
        generate_environment,
        generate_prices,
    )
    from slotkern.expressions.limits import Limit
    from slotkern.files.slots import (
        from_arrow,
        from_pandas,
        read_slots,
        to_arrow,
        to_pandas,
        write_slots,
    )
    from slotkern.fronts import Front, pareto
    from slotkern.knapsack.choice import Choice, choose, choose_each
    from slotkern.knapsack.one_each import OneEach, TradeOff, choose_one_each, trade_off
    from slotkern.ledger import Booking, LedgerError, SharedHostPool, SharedPool
    from slotkern.machine import Clock, FreeSlots, Machine, free_slots
    from slotkern.plotting.gantt import plot_gantt
    from slotkern.plotting.neighbours import plot_neighbours
    from slotkern.plotting.steps import plot_steps
    from slotkern.pool.host_pool import HostPool
    from slotkern.pool.share_bookings import ShareBookings
    from slotkern.pool.share_windows import ShareWindow
    from slotkern.replays.cluster import Cluster
    from slotkern.replays.cycles import CyclePolicy
    from slotkern.replays.forecast import Forecast, forecast
    from slotkern.replays.jobs import resample_weeks
    from slotkern.replays.policies import POLICIES, Multifactor, QueuePolicy
    from slotkern.replays.replay import replay
    from slotkern.replays.result import Replay
    from slotkern.replays.windows import WindowPolicy
    from slotkern.search.alternatives import Alternatives, find_alternatives
    from slotkern.search.blame import CompoundExplanation
    from slotkern.search.budget import job_budget
    from slotkern.search.criteria import criterion, minimize, profile
    from slotkern.search.delegated import step_values
    from slotkern.search.explanation import Explanation, explain
    from slotkern.search.holes import Holes, holes
    from slotkern.tariffs import Tariff, Tariffs
    from slotkern.traces.clean import clean_trace
    from slotkern.traces.free_slots import TraceSlots, slots_from_trace
    from slotkern.traces.read import read_trace, write_trace
    from slotkern.traces.trace import GWF, SWF, Trace
    from slotkern.viewer.pages import View, view

__version__ = "0.1.0"

# Names that are imported on first use, so that `import slotkern` is fast. No module has
# the name of a public object, because importing the module would hide the object.
_LAZY = {
    "_kernels.pool": ("Bookings", "SlotPool"),
    "search.alternatives": ("Alternatives", "find_alternatives"),
    "batch": (
        "BSF",
        "CSS",
        "Backfilling",
        "Batch",
        "BatchSlicer",
        "Cycles",
        "Optimal",
        "Schedule",
        "read_batch",
        "run_cycles",
        "schedule_batch",
    ),
    "search.blame": ("CompoundExplanation",),
    "search.budget": ("job_budget",),
    "knapsack.choice": ("Choice", "choose", "choose_each"),
    "calendars": ("read_ics", "to_ics"),
    "communities.result": ("CommunityRun", "compare_communities"),
    "communities.scenarios": ("Centralized", "Community", "Independent"),
    "communities.simulate": ("simulate_community",),
    "communities.workload": (
        "CommunityWorkload",
        "community_from_trace",
        "generate_community",
    ),
    "compound": ("AnyOf", "Chain", "Plan", "Together", "starts"),
    "search.criteria": ("criterion", "minimize", "profile"),
    "domains": (
        "DomainBooking",
        "Domains",
        "RemoteDomain",
        "RemoteDomains",
        "remote_domain",
    ),
    "environment": ("Environment", "generate_environment", "generate_prices"),
    "search.explanation": ("Explanation", "explain"),
    "search.holes": ("Holes", "holes"),
    "files.slots": (
        "from_arrow",
        "from_pandas",
        "read_slots",
        "to_arrow",
        "to_pandas",
        "write_slots",
    ),
    "fronts": ("Front", "pareto"),
    "expressions.limits": ("Limit",),
    "ledger": ("Booking", "LedgerError", "SharedHostPool", "SharedPool"),
    "pool.host_pool": ("HostPool",),
    "pool.share_bookings": ("ShareBookings",),
    "pool.share_windows": ("ShareWindow",),
    "machine": ("Clock", "FreeSlots", "Machine", "free_slots"),
    "knapsack.one_each": ("OneEach", "TradeOff", "choose_one_each", "trade_off"),
    "plotting.gantt": ("plot_gantt",),
    "replays.cluster": ("Cluster",),
    "replays.cycles": ("CyclePolicy",),
    "replays.forecast": ("Forecast", "forecast"),
    "replays.jobs": ("resample_weeks",),
    "replays.policies": ("POLICIES", "Multifactor", "QueuePolicy"),
    "replays.replay": ("replay",),
    "replays.result": ("Replay",),
    "replays.windows": ("WindowPolicy",),
    "plotting.neighbours": ("plot_neighbours",),
    "search.delegated": ("step_values",),
    "plotting.steps": ("plot_steps",),
    "tariffs": ("Tariff", "Tariffs"),
    "traces.clean": ("clean_trace",),
    "traces.free_slots": ("TraceSlots", "slots_from_trace"),
    "traces.read": ("read_trace", "write_trace"),
    "traces.trace": ("GWF", "SWF", "Trace"),
    "viewer.pages": ("View", "view"),
}

# Places of the functions that methods of lower layers call by name.
_ADAPTERS = {
    "arrow_of": "slotkern.files.tables:arrow_of",
    "check_job": "slotkern.compound.jobs:check_job",
    "checked_context": "slotkern.machine.context:checked_context",
    "draw_result": "slotkern.plotting.dispatch:draw_result",
    "duration_of": "slotkern.machine.calendar:duration_of",
    "explain": "slotkern.search.explanation:explain",
    "explain_share": "slotkern.search.share_explanation:explain_share",
    "find_alternatives": "slotkern.search.alternatives:find_alternatives",
    "find_compound": "slotkern.compound.find:find_compound",
    "find_delegated": "slotkern.search.delegated:find_delegated",
    "check_sum": "slotkern.search.sum_uses:check_sum",
    "find_by_sums": "slotkern.search.sum_uses:find_by_sums",
    "find_by_profile": "slotkern.search.profiles:find_by_profile",
    "SearchOptions": "slotkern.search.delegated:SearchOptions",
    "find_window": "slotkern._kernels.search:find_window",
    "forecast": "slotkern.replays.forecast:forecast",
    "frame_of": "slotkern.files.tables:frame_of",
    "holes": "slotkern.search.holes:holes",
    "is_maximized": "slotkern.search.criteria:is_maximized",
    "load_pool": "slotkern.pool.file:load_pool",
    "moment_of": "slotkern.machine.calendar:moment_of",
    "jobs_of_rows": "slotkern.compound.tables:jobs_of_rows",
    "plan_of_outline": "slotkern.compound.plan:plan_of_outline",
    "open_ledger": "slotkern.ledger.opening:open_ledger",
    "save_host_pool": "slotkern.pool.share_files:save_host_pool",
    "save_pool": "slotkern.pool.file:save_pool",
    "schedule_compounds": "slotkern.compound.schedule:schedule_compounds",
    "share_pool": "slotkern.ledger.opening:share_pool",
    "share_window": "slotkern.pool.share_windows:share_window",
    "starts": "slotkern.compound.start_intervals:starts",
    "values_of_windows": "slotkern.search.criteria:values_of_windows",
}
register(_ADAPTERS)

_HOME = {name: module for module, names in _LAZY.items() for name in names}


def get_include() -> str:
    """Directory of the C++ headers, for ``-I``, as `slotkern/pool/schedule.hpp`.

    Returns
    -------
    str
        Needs a C++20 compiler and nothing else; no Python.

    Raises
    ------
    FileNotFoundError
        If the package was built without them.
    """
    from pathlib import Path

    from slotkern._kernels import base

    folder = Path(base.__file__).parents[1] / "include"
    if not (folder / "slotkern" / "pool" / "schedule.hpp").exists():
        raise FileNotFoundError(
            f"no slotkern headers in {folder}; install the package with "
            "`pip install .`, or use src/_native of the checkout"
        )
    return str(folder)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'slotkern' has no attribute {name!r}")
    import_module(
        "slotkern.forks"
    )  # imports logging, which `import slotkern` does not need
    value = getattr(import_module(f"slotkern.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})


__all__ = [
    "BSF",
    "CRITERIA",
    "CSS",
    "GWF",
    "POLICIES",
    "SLOT",
    "SWF",
    "Alternatives",
    "AnyOf",
    "Backfilling",
    "Batch",
    "BatchSlicer",
    "Booking",
    "Bookings",
    "Centralized",
    "Chain",
    "Choice",
    "Clock",
    "Cluster",
    "Community",
    "CommunityRun",
    "CommunityWorkload",
    "CompoundExplanation",
    "CyclePolicy",
    "Cycles",
    "DomainBooking",
    "Domains",
    "Environment",
    "Explanation",
    "Forecast",
    "FreeSlots",
    "Front",
    "Holes",
    "HostPool",
    "Independent",
    "LedgerError",
    "Limit",
    "Machine",
    "Multifactor",
    "NoWindowError",
    "OneEach",
    "Optimal",
    "Plan",
    "PoolFileChangedError",
    "QueuePolicy",
    "RemoteDomain",
    "RemoteDomains",
    "Replay",
    "Request",
    "Schedule",
    "ShareBookings",
    "ShareWindow",
    "SharedHostPool",
    "SharedPool",
    "SlotError",
    "SlotPool",
    "Tariff",
    "Tariffs",
    "Together",
    "Trace",
    "TraceSlots",
    "TradeOff",
    "UndecidedError",
    "View",
    "Window",
    "WindowPolicy",
    "WindowTable",
    "choose",
    "choose_each",
    "choose_one_each",
    "clean_trace",
    "community_from_trace",
    "compare_communities",
    "criterion",
    "explain",
    "find_alternatives",
    "find_window",
    "find_windows",
    "forecast",
    "free_slots",
    "from_arrow",
    "from_pandas",
    "generate_community",
    "generate_environment",
    "generate_prices",
    "get_include",
    "holes",
    "job_budget",
    "make_slots",
    "minimize",
    "pareto",
    "plot_gantt",
    "plot_neighbours",
    "plot_steps",
    "profile",
    "read_batch",
    "read_ics",
    "read_slots",
    "read_trace",
    "remote_domain",
    "replay",
    "resample_weeks",
    "run_cycles",
    "schedule_batch",
    "simulate_community",
    "slots_from_trace",
    "starts",
    "step_values",
    "to_arrow",
    "to_ics",
    "to_pandas",
    "trade_off",
    "validate_slots",
    "view",
    "write_slots",
    "write_trace",
]
