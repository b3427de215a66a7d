"""Tests of hostlists: expanded, folded, and accepted in place of node names."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk
from slotkern.foundation.hostlists import MAX_NAMES, abridge, count, expand, fold

NAMES = st.text(alphabet='n0129[],"- \té٣', min_size=1).filter(str.strip)
NUMBERED = st.from_regex(r"\A[ab]?[0-9]{1,2}[xy][0-9]{1,3}\Z")


@given(st.lists(NAMES, min_size=1, max_size=12) | st.lists(NUMBERED, min_size=1))
def test_folded_names_expand_to_the_same_list(names: list[str]) -> None:
    assert expand(fold(names)) == names
    assert expand(fold(sorted(names))) == sorted(names)
    assert count(fold(names)) == len(names)
    assert expand(fold(names, ", ")) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[001-003,007]", ["n001", "n002", "n003", "n007"]),
        ("n1,n[3-5]", ["n1", "n3", "n4", "n5"]),
        ("rack[1-2]n[09-10]", ["rack1n09", "rack1n10", "rack2n09", "rack2n10"]),
        ("[8-11]", ["8", "9", "10", "11"]),
        (' a , "b,[c]""d" ,e[1]-ib', ["a", 'b,[c]"d', "e1-ib"]),
        ("a name", ["a name"]),
    ],
)
def test_hostlists_are_expanded(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n9", "n10", "n11"], "n[9-11]"),
        ([f"n{k:03}" for k in range(98, 102)], "n[098-101]"),
        ([f"r{r}n{k:02}" for r in (1, 2, 4) for k in range(3)], "r[1-2,4]n[00-02]"),
        (["login", "n1", "gpu[a]"], 'login,n1,"gpu[a]"'),
        ([], ""),
    ],
)
def test_names_are_folded(names: list[str], text: str) -> None:
    assert fold(names) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu[a]", "[a] holds 'a', which is no number or range"),
        ("gpu[a]", 'in double quotes, such as "gpu[a]"'),
        ("n[1-2", "character 2: '[' has no partner"),
        ("n1]", "character 3: ']' has no partner"),
        ("a,,b", "a name is empty"),
        ("n[4-1]", "the range 4-1 ends before it begins"),
        ("n[001-16]", "different numbers of digits"),
        ("n[0-999999999]", "has 1,000,000,000 nodes; at most 1,048,576"),
        ("[0-9]" * 60, "has more than 10^18 nodes"),
    ],
)
def test_invalid_hostlists_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="hostlist") as caught:
        expand(text)
    assert message in str(caught.value)


def test_long_lists_are_abridged_between_names() -> None:
    odd = [f"n{k:03}" for k in range(1, 400, 2)]
    text = abridge(odd)
    shown, rest = text.split(" ... +")
    assert len(shown) <= 60
    assert expand(shown) + odd[-int(rest) :] == odd
    assert abridge(odd[:1] * 2, most=1) == f"{odd[0]} ... +1"


def test_a_hostlist_in_a_machine_table_is_many_nodes(tmp_path: Path) -> None:
    path = tmp_path / "machine.csv"
    path.write_text('name,performance,price\nnode[001-004],1,0\n"a1,a[2-3]",2,0.5\n')
    machine = sk.Machine.read(path)
    assert machine.names.tolist() == expand("node[001-004],a[1-3]")
    assert machine.price.tolist() == [0.0] * 4 + [0.5] * 3
    cores = sk.Machine({"name": ["n[1-2]", "m"], "c": [2, 1]}, processors="c")
    assert cores.names.tolist() == ["n1/0", "n1/1", "n2/0", "n2/1", "m/0"]
    # Errors contain the row or line of the input.
    path.write_text("name,performance\nnode[001-004],1\nx,0\n")
    with pytest.raises(ValueError, match="line 3: performance 0"):
        sk.Machine.read(path)
    for names, message in (
        (["n[1-2]", "n2"], "row 1: 'n2' is the name of row 0"),
        (["a", "n[1,1]"], "row 1: the hostlist has 'n1' twice"),
        (["a", "gpu[a]"], "row 1: hostlist 'gpu\\[a\\]'"),
        ([f"{k}n[0-{MAX_NAMES - 1}]" for k in range(17)], "have 17,825,792 nodes"),
    ):
        with pytest.raises(ValueError, match=message):
            sk.Machine({"name": names})


def test_names_with_brackets_are_quoted(tmp_path: Path) -> None:
    machine = sk.Machine({"name": ['"gpu[a]"', '"a,b"', "n1", '"n[1-2]"', "n2"]})
    names = ["gpu[a]", "a,b", "n1", "n[1-2]", "n2"]
    assert machine.names.tolist() == names
    # Names of the machine precede hostlists; quoted text is always a name.
    assert machine.ids(names).tolist() == [0, 1, 2, 3, 4]
    assert machine.ids('"a,b",n[1-2],n1').tolist() == [1, 2, 4, 2]
    assert pickle.loads(pickle.dumps(machine)) == machine
    assert sk.Machine(machine.to_dict()) == machine
    pool = sk.SlotPool(sk.free_slots(machine, start=0, end=9))
    pool.save(tmp_path / "pool.npz")
    assert sk.SlotPool.load(tmp_path / "pool.npz").machine == machine
    pool.book(pool.find(sk.Request(2, 1)), owner="a")
    assert pool.bookings()["nodes"].tolist() == ['"gpu[a]","a,b"']


def machine() -> sk.Machine:
    return sk.Machine({"name": ["n[001-004]", "x"], "beamer": [True, False]})


def test_busy_spans_and_prices_of_hostlists() -> None:
    busy = {"node": ["n[001-003]", "x"], "start": [2.0, 0.0], "end": [4.0, 1.0]}
    each = {
        "node": ["n001", "n002", "n003", "x"],
        "start": [2.0, 2.0, 2.0, 0.0],
        "end": [4.0, 4.0, 4.0, 1.0],
    }
    how: dict[str, Any] = {"start": 0, "end": 9}
    prices = {
        "node": ["n[001-002]", "x"],
        "start": [0, 1],
        "end": [9, 2],
        "price": [3, 4],
    }
    plain = {
        "node": ["n001", "n002", "x"],
        "start": [0, 0, 1],
        "end": [9, 9, 2],
        "price": [3, 3, 4],
    }
    found = sk.free_slots(machine(), busy, prices=prices, **how).slots
    assert (found == sk.free_slots(machine(), each, prices=plain, **how).slots).all()
    every = {"node": "n[001-002]", "start": [1.0, 3.0], "end": [2.0, 4.0]}
    free = sk.free_slots(machine(), every, **how).slots
    assert np.bincount(free["node"]).tolist() == [3, 3, 1, 1, 1]
    with pytest.raises(ValueError, match="row 1: 'n005' is no node"):
        sk.free_slots(machine(), busy | {"node": ["x", "n[003-005]"]}, **how)
    nodes = ["n[001-002]", "n002"]
    two = {"node": nodes, "start": 0, "end": [9, 9], "price": [1, 2]}
    with pytest.raises(ValueError, match="prices, row 1: overlaps the span of row 0"):
        sk.free_slots(machine(), prices=two, **how)


def test_reservation_of_a_hostlist() -> None:
    pool = sk.SlotPool(sk.free_slots(machine(), start=0, end=9))
    pool.reserve("n[002-003]", 1, 2, owner="down")
    pool.reserve(["n[001,004]", "x"], 1, 2, owner="down")
    assert pool.bookings()["nodes"].tolist() == ["n002,n003", "n001,n004,x"]
    assert "nodes=n[002-003])" in repr(pool.windows("down")[0])
    with pytest.raises(ValueError, match="a node occurs twice"):
        pool.reserve("n[002-003],n002", 3, 4, owner="down")
    with pytest.raises(ValueError, match="hostlist of 2"):
        pool.remove_node("n[001-002]")


@pytest.mark.parametrize("kind", [lambda free: free, sk.SlotPool])
@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("name == 'n003'", "n003"),
        ("node_name == 'n003'", "n003"),
        ("name in 'n[001-002],x'", "n[001-002],x"),
        ("name in ('x', 'n[002,004]')", "n[002,004],x"),
        ("name not in ('x', 'n[002,004]')", "n[001,003]"),
        ("name != 'n[001-004]'", "x"),
        ("beamer and name == 'n[004-009]'", "n004"),
        ("name > 'n003'", "n004,x"),
    ],
)
def test_filters_accept_node_names(kind: Any, where: str, names: str) -> None:
    slots = kind(sk.free_slots(machine(), start=0, end=9))
    request = sk.Request(len(expand(names)), 1, where=where)
    window = sk.find_window(slots, request)
    assert window is not None
    assert list(window.names) == expand(names)
    assert sk.find_window(slots, request.replace(nodes=request.nodes + 1)) is None
    (again,) = sk.find_windows(slots, [request])
    assert again == window
    assert sk.find_alternatives(slots, request)[0].nodes == window.nodes


def test_errors_of_filters_on_names() -> None:
    free = sk.free_slots(machine(), start=0, end=9)

    def fault(where: str) -> str:
        with pytest.raises(ValueError, match="where") as caught:
            sk.find_window(free, sk.Request(1, 1, where=where))
        return str(caught.value)

    assert "character 9: hostlist 'n[a]'" in fault("name in 'n[a]'")
    assert "a hostlist in quotes" in fault("name in n[1-2]")
    assert "no column 'rack'; there are name, node," in fault("rack == 'a'")
    assert fault("beamer == 1").endswith("; write beamer or not beamer alone")
    why = str(sk.explain(free, sk.Request(1, 1, where="name == 'n9'")))
    assert "no slot passes the filter: name is one of n[001-004],x" in why
    # A column of the slots precedes the machine's names; unknown nodes have no name.
    own = sk.make_slots(node=[0, 9], start=0, end=9, performance=1, price=1)
    pool = sk.SlotPool(own, machine=machine())
    assert pool.find(sk.Request(1, 1, where="name == ''")).nodes == (9,)
    named = sk.make_slots(node=0, start=[0], end=9, performance=1, price=1, host=["r1"])
    assert sk.find_window(named, sk.Request(1, 1, where="host in 'r[1-2]'")) is not None
