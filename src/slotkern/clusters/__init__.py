"""Read, plan on and book clusters, as their schedulers report them."""

from .booking import SiteAccess, book, book_all, check_booking
from .files import read_slurm_files
from .local import open_cluster
from .oar import OarCluster
from .oar_texts import read_oar
from .planning import ClusterPlan, PlannedWindow
from .protocol import (
    AmbiguousNameError,
    BookingConflictError,
    BookingDeniedError,
    ClusterBooking,
    ClusterError,
    LiveCluster,
    NameTakenError,
    UnreachableError,
)
from .queues import ClusterQueue, QueuedJob, forecast_start
from .recorded import RecordedCluster
from .site import Site, read_site
from .slurm import SlurmCluster
from .snapshot import Partition, Snapshot
from .texts import read_slurm

__all__ = [
    "AmbiguousNameError",
    "BookingConflictError",
    "BookingDeniedError",
    "ClusterBooking",
    "ClusterError",
    "ClusterPlan",
    "ClusterQueue",
    "LiveCluster",
    "NameTakenError",
    "OarCluster",
    "Partition",
    "PlannedWindow",
    "QueuedJob",
    "RecordedCluster",
    "Site",
    "SiteAccess",
    "SlurmCluster",
    "Snapshot",
    "UnreachableError",
    "book",
    "book_all",
    "check_booking",
    "forecast_start",
    "open_cluster",
    "read_oar",
    "read_site",
    "read_slurm",
    "read_slurm_files",
]
