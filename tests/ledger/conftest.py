"""Places of new ledgers, of both stores."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.ledgers import NewPlace
from tests.support.postgres import Cluster, missing, temporary_cluster

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
