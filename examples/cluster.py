"""Run a study on a dask cluster.

On a real cluster, start a scheduler and workers with slotkern installed, and pass the
scheduler's address:

    dask scheduler
    dask worker tcp://SCHEDULER:8786 --nworkers auto --nthreads 1   (on each machine)
    python examples/cluster.py tcp://SCHEDULER:8786

Without an address, a cluster of two worker processes on this machine is started. The
results equal those of `workers=1` bit for bit. The workers send them back, so only
this process needs access to the output folder.
"""

import sys

from distributed import Client, LocalCluster

from slotkern import studies


def main() -> None:
    """Run 1,000 cycles of the study aep and print the mean costs."""
    study = studies.load_study("aep")
    if len(sys.argv) > 1:
        campaign = studies.run(
            study, 1000, out="out/cluster", cluster=sys.argv[1], progress=True
        )
    else:
        with (
            LocalCluster(n_workers=2, threads_per_worker=1) as cluster,
            Client(cluster) as client,
        ):
            campaign = studies.run(
                study, 1000, out="out/cluster", cluster=client, progress=True
            )
    summary = studies.Summary(campaign)
    base = study.settings[0]
    for algorithm in base.algorithms:
        cost = summary.estimate(base, algorithm.name, "cost")
        print(f"{algorithm.label:>22}: {cost.mean:8.1f} ± {cost.error:.1f}")


if __name__ == "__main__":
    main()
