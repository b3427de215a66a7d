"""Tests of clusters of replays made from machines and other tables."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import slotkern as sk
from slotkern.replays.cluster import as_cluster


def test_a_machine_is_a_cluster():
    machine = sk.Machine(
        {"name": ["a", "b", "c"], "site": [2, 1, 2], "price": [3, 1, 3]}
    )
    cluster = as_cluster(machine, None)
    assert cluster.site.tolist() == [1, 2]
    assert cluster.processors.tolist() == [1, 2]
    assert cluster.price.tolist() == [1, 3]
    hosts = sk.Machine({"name": ["a", "b"], "processors": [8, 4]})
    assert as_cluster(hosts, None).processors.tolist() == [12]
    assert as_cluster(hosts, None).site.tolist() == [-1]
    cores = sk.Machine({"name": ["a", "b"], "cores": [8, 4]}, processors="cores")
    assert as_cluster(cores, None).processors.tolist() == [12]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_any_table_of_sites_is_a_cluster(frame):
    cluster = as_cluster(frame({"site": [1, 2], "processors": [4, 8]}), None)
    assert cluster.processors.tolist() == [4, 8]


def test_processors_of_a_site_are_equal():
    table = {"name": ["a", "b"], "performance": [1, 2]}
    with pytest.raises(
        ValueError, match="performance 2 of node b differs from 1 of a on its site"
    ):
        as_cluster(sk.Machine(table), None)
    with pytest.raises(TypeError, match="is not the number of a partition"):
        as_cluster(sk.Machine(table | {"site": ["x", "y"]}), None)
    with pytest.raises(TypeError, match="cluster must be a table"):
        as_cluster(object(), None)
