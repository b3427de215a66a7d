"""Hypothesis profiles and places of new ledgers.

Profiles are selected by the environment variable HYPOTHESIS_PROFILE:

- default: the same cases in every run
- fresh: the same number of new cases (`make fresh` prints the seed)
- many: a long run of new cases
- brief: a third of the default cases, for slow builds
- unshrunk: brief without shrinking, for runs in which only a failure counts

A test that needs more or fewer cases uses a fraction of the profile's number.

If SLOTKERN_SANITIZED is set, pools of a few slots use all search structures.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from slotkern._kernels.slots import index_options
from tests.support.ledgers import NewPlace
from tests.support.postgres import Cluster, missing, temporary_cluster

settings.register_profile(
    "default",
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fresh", settings.get_profile("default"), derandomize=False, print_blob=True
)
settings.register_profile("many", settings.get_profile("fresh"), max_examples=20_000)
settings.register_profile("brief", settings.get_profile("default"), max_examples=100)
settings.register_profile(
    "unshrunk", settings.get_profile("brief"), phases=[Phase.explicit, Phase.generate]
)
if "SLOTKERN_SANITIZED" in os.environ:
    index_options(small=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_numbers = count(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Return a running PostgreSQL server."""
    if reason := missing():
        pytest.skip(reason)
    with temporary_cluster() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> NewPlace:
    """Return a function that returns the place of a new ledger, for each store."""
    if request.param == "sqlite":
        return lambda: tmp_path / f"site{next(_numbers)}.db"
    url = request.getfixturevalue("cluster").url
    return lambda: f"{url}?pool=site{next(_numbers)}"


@pytest.fixture
def where(new_place: NewPlace) -> Path | str:
    """Return the place of a new ledger, for each store."""
    return new_place()
