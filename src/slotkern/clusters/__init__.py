"""Clusters as their schedulers report them: read, planned on, booked."""

from .booking import SiteAccess, book, book_all, check_booking
from .files import read_slurm_files
from .oar import OarCluster
from .oar_texts import read_oar
from .planning import ClusterPlan, PlannedWindow
from .protocol import (
    BookingConflictError,
    BookingDeniedError,
    ClusterBooking,
    ClusterError,
    LiveCluster,
    NameTakenError,
    UnreachableError,
)
from .recorded import RecordedCluster
from .site import Site, read_site
from .slurm import SlurmCluster
from .snapshot import Partition, Snapshot
from .texts import read_slurm

__all__ = [
    "BookingConflictError",
    "BookingDeniedError",
    "ClusterBooking",
    "ClusterError",
    "ClusterPlan",
    "LiveCluster",
    "NameTakenError",
    "OarCluster",
    "Partition",
    "PlannedWindow",
    "RecordedCluster",
    "Site",
    "SiteAccess",
    "SlurmCluster",
    "Snapshot",
    "UnreachableError",
    "book",
    "book_all",
    "check_booking",
    "read_oar",
    "read_site",
    "read_slurm",
    "read_slurm_files",
]
