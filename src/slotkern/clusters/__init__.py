"""Clusters as their schedulers report them: nodes, busy spans and their reasons."""

from .files import read_slurm_files
from .snapshot import Partition, Snapshot
from .texts import read_slurm

__all__ = ["Partition", "Snapshot", "read_slurm", "read_slurm_files"]
