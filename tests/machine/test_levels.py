"""Levels of machines: columns that name groups of nodes, from fine to coarse."""

import copy
import pickle

import numpy as np
import pytest

import slotkern as sk

TABLE = {
    "name": ["n[1-2]", "n[3-4]", "n5"],
    "rack": ["r1", "r2", "r3"],
    "site": ["a", "a", "b"],
}
LEVELS = ["rack", "site"]


def test_levels_are_kept_with_the_machine(tmp_path):
    machine = sk.Machine(TABLE, levels=LEVELS)
    assert machine.levels == ("rack", "site")
    assert sk.Machine(TABLE).levels == ()
    assert machine != sk.Machine(TABLE)
    for same in (pickle.loads(pickle.dumps(machine)), copy.deepcopy(machine)):
        assert same == machine
        assert same.levels == machine.levels
    free = sk.free_slots(machine, start=0, end=10)
    assert free.slots["rack"].tolist() == ["r1", "r1", "r2", "r2", "r3"]
    pool = sk.SlotPool(free)
    pool.save(tmp_path / "pool.npz")
    for loaded in (sk.SlotPool.load(tmp_path / "pool.npz"), copy.copy(pool)):
        assert loaded.machine == machine


def test_levels_of_a_file(tmp_path):
    path = tmp_path / "machine.csv"
    path.write_text("name,rack,site\nn[1-2],r1,a\nn3,,a\n")
    with pytest.raises(ValueError, match=r"line 3: the level 'rack' is empty"):
        sk.Machine.read(path, levels=["rack"])
    assert sk.Machine.read(path, levels="site").levels == ("site",)


@pytest.mark.parametrize(
    ("levels", "change", "message"),
    [
        (["rakc"], {}, "no column 'rakc' for a level.*did you mean 'rack'"),
        (["rack", "rack"], {}, "levels has 'rack' twice"),
        (["rack"], {"rack": ["r1", "", "r3"]}, "row 1: the level 'rack' is empty"),
        (["rack"], {"rack": [1, np.nan, 3]}, "row 1: the level 'rack' is empty"),
        (
            ["site", "rack"],
            {},
            r"site 'a' lies in rack 'r1' \(row 0\) and in rack 'r2' \(row 1\); list "
            "the levels from the finest to the coarsest",
        ),
        (
            ["rack", "site"],
            {"rack": ["r1", "r2", "r1"]},
            r"rack 'r1' lies in site 'a' \(row 0\) and in site 'b' \(row 2\)",
        ),
    ],
)
def test_invalid_levels_are_refused(levels, change, message):
    with pytest.raises(ValueError, match=message):
        sk.Machine(TABLE | change, levels=levels)
    with pytest.raises(TypeError, match="a level must be the name of a column"):
        sk.Machine(TABLE, levels=[3])
