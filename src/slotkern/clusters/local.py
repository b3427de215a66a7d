"""The cluster of this computer: the scheduler that a site file names, or that answers.

If the programs of several schedulers are installed here, each gets a request.
"""

from __future__ import annotations

import shutil

from slotkern.files.atomic import AnyPath, as_path
from slotkern.foundation.checks import one_of

from .booking import SiteAccess
from .oar import OarCluster
from .protocol import ClusterError
from .site import Site, read_site
from .slurm import SlurmCluster

__all__ = ["open_cluster"]

_ADAPTERS: dict[str, type[SlurmCluster | OarCluster]] = {
    "slurm": SlurmCluster,
    "oar": OarCluster,
}
#: The name of each scheduler, and a program of it.
_PROGRAMS = {"slurm": ("Slurm", "scontrol"), "oar": ("OAR", "oarstat")}


def open_cluster(path: AnyPath | None = None, system: str = "") -> SiteAccess:
    """Return the cluster of a site file, or the one of this computer.

    Parameters
    ----------
    path : path, optional
        The site file; by default there are no prices, and all nodes are alike.
    system : {"", "slurm", "oar"}
        The scheduler; by default that of the site file, or the one that answers here.

    Returns
    -------
    SiteAccess

    Raises
    ------
    ClusterError
        If no scheduler answers here, or both do.
    ValueError, TypeError, OSError
        For an invalid site file, or one of another scheduler; see `read_site`.
    """
    if system:
        one_of("system", system, _ADAPTERS)
    site = _read(path, system)
    if system and site.system != system:
        raise ValueError(
            f"{as_path(path or '')}: system is {site.system!r}, but the command has "
            f"--{system}; leave one of them out"
        )
    if not site.system:
        site = _read(path, _system_here(site))
    return SiteAccess(_ADAPTERS[site.system](site), site)


def _read(path: AnyPath | None, system: str) -> Site:
    return Site.of_system(system) if path is None else read_site(path, system)


def _system_here(site: Site) -> str:
    """Return the scheduler to which the site's keys belong, or that answers."""
    if site.conf or site.group:
        return "slurm" if site.conf else "oar"
    here = [name for name, (_, each) in _PROGRAMS.items() if shutil.which(each)]
    if not here:
        words = " nor ".join(f"{each} of {name}" for name, each in _PROGRAMS.values())
        raise ClusterError(
            f"neither {words} is installed here; on a computer without a scheduler, "
            "plan from pasted texts with slotkern free --sinfo"
        )
    if len(here) == 1:
        return here[0]
    faults: dict[str, ClusterError] = {}
    for name in here:
        try:
            _ADAPTERS[name](site).ping()
        except ClusterError as error:
            faults[name] = error
    answering = [name for name in here if name not in faults]
    if not answering:
        words = "; ".join(map(str, faults.values()))
        raise ClusterError(f"no scheduler answers here: {words}")
    if len(answering) > 1:
        raise ClusterError(
            "Slurm and OAR both answer here; choose one with --slurm, --oar or the key "
            "system of a site file"
        )
    return answering[0]
