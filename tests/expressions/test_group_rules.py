"""Group rules of requests: their texts, objects and errors, and levels of slots."""

import pickle

import numpy as np
import pytest

import slotkern as sk
from slotkern.expressions.groups import Rule, check_nesting, groups_of, rules_of
from slotkern.foundation.special_fields import refuse_special


def rules(limits=(), within=None):
    return sk.Request(4, 1, limits=limits, within=within).limits


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("distinct(rack) <= 2", [("rack", "<=", 2, "distinct")]),
        ("2 <= distinct(rack)", [("rack", ">=", 2, "distinct")]),
        (
            "2 <= distinct(rack) <= 3",
            [("rack", ">=", 2, "distinct"), ("rack", "<=", 3, "distinct")],
        ),
        ("most(rack) <= 4", [("rack", "<=", 4, "most")]),
        ("4 >= most(rack)", [("rack", "<=", 4, "most")]),
        (
            "distinct(rack) <= 2 and sum(gb) >= 5",
            [("rack", "<=", 2, "distinct"), ("gb", ">=", 5, "sum")],
        ),
    ],
)
def test_rules_are_parsed_beside_sums(text, found):
    limits = rules(text)
    assert [(x.of, x.side, x.amount, x.kind) for x in limits] == found
    assert rules([x.text for x in limits]) == limits
    assert rules([eval(repr(x), {"Limit": sk.Limit}) for x in limits]) == limits


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("most(rack) >= 2", r"write most\(rack\) <= 2, or distinct\(rack\)"),
        ("most(rack) <= 0", "integer of at least 1"),
        ("distinct(rack) <= 1.5", "integer of at least 1"),
        ("distinct(rack) >= -1", "integer of at least 1"),
        ("distinct(rack) <= 1e999", "the amount of a limit"),
        ("distinct(rack) == 2", "distinct is compared with <= or >=$"),
        ("distinct(rack) < 2", r"<= or >=; write distinct\(rack\) <= 1$"),
        ("2 > most(rack)", r"<= or >=; write most\(rack\) <= 1$"),
        ("distinct(rack) > 2", r"<= or >=; write distinct\(rack\) >= 3$"),
        ("distinct(rack) < 1", "distinct is compared with <= or >=$"),
        ("distinct(rack, site) <= 2", r"one name of a column, as distinct\(rack\)"),
        ("most(2 * rack) <= 2", r"one name of a column, as most\(rack\)"),
        ("distinkt(rack) <= 2", "did you mean 'distinct'"),
        ("distinct(rack) <= most(site)", "compare one sum"),
        ("distinct(rack)", "is no comparison"),
        ("distinct(rack) >= 3 and distinct(rack) <= 2", "contradict each other"),
    ],
)
def test_invalid_rules_are_rejected(limits, message):
    with pytest.raises(ValueError, match=message):
        rules(limits)


def test_invalid_levels_are_rejected():
    with pytest.raises(TypeError, match="within must be the name of a column, got 3"):
        rules(within=3)
    with pytest.raises(ValueError, match="one name of a column such as rack"):
        rules(within="rack and site")
    with pytest.raises(ValueError, match="contradict each other"):
        rules("distinct(rack) >= 2", within="rack")
    with pytest.raises(ValueError, match="the level of most must be one name"):
        sk.Limit("a b", "<=", 2, "most")
    with pytest.raises(ValueError, match="the kind of a limit must be one of"):
        sk.Limit("rack", "<=", 2, "distinkt")
    with pytest.raises(TypeError, match="did you mean 'within'"):
        sk.Request(2, 1, withim="rack")


def test_limits_on_sums_and_rules_are_counted_apart():
    limits = [f"sum(w{k}) <= 1" for k in range(6)] + ["most(rack) <= 1"]
    assert len(rules(limits)) == 7
    with pytest.raises(ValueError, match="at most 6 limits, got 7"):
        rules([*limits, "sum(w6) <= 1"])


def test_within_is_a_field_like_any_other():
    request = sk.Request(8, 2, within="rack", limits="most(rack) <= 4", name="a")
    assert repr(request) == (
        "Request(nodes=8, volume=2.0, limits=(Limit('rack', '<=', 4, 'most'),), "
        "within='rack', name='a')"
    )
    copy = pickle.loads(pickle.dumps(request))
    assert (copy, hash(copy)) == (request, hash(request))
    assert (copy.within, copy.rules) == ("rack", request.rules)
    free = request.replace(within=None)
    assert free != request
    assert (free.within, free.special) == (None, None)
    assert free.replace(within="rack") == request
    assert sk.Request(8, 2, limits=None).rules == () == sk.Request(8, 2).rules


def test_rules_of_a_request_are_those_of_the_kernel():
    limits = ["3 >= distinct(site) >= 2", "sum(gb) >= 1", "most(rack) <= 4"]
    request = sk.Request(8, 1, limits=limits, within="room")
    assert rules_of(request) == (
        Rule("max_groups", "room", 1),
        Rule("max_groups", "site", 3),
        Rule("min_groups", "site", 2),
        Rule("max_parts", "rack", 4),
    )


def test_group_rules_are_refused_like_within():
    request = sk.Request(8, 1, within="rack", name="a")
    with pytest.raises(ValueError, match="a: x does not support within='rack'; it"):
        refuse_special(request, "x")
    refuse_special(request, "x", ("within",))
    request = sk.Request(8, 1, limits="most(rack) <= 2")
    with pytest.raises(ValueError, match=r"^x does not support most\(rack\) <= 2; it"):
        refuse_special(request, "x")
    refuse_special(request, "x", ("within",))
    refuse_special(sk.Request(8, 1, limits="sum(a) <= 2"), "x")


def slots_with(**columns):
    return sk.make_slots(
        node=[0, 1, 2, 1], start=[0, 0, 0, 5], end=[9, 4, 9, 9],
        performance=1, price=1, **columns,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("level", "codes", "count"),
    [
        (["b", "a", "b", "a"], [1, 0, 1, 0], 2),
        ([-3, 7, -3, 7], [0, 1, 0, 1], 2),
        ([True, False, True, False], [1, 0, 1, 0], 2),
        ([0.5, 0.5, 0.5, 0.5], [0, 0, 0, 0], 1),
        (np.array(["x", "y", "x", "y"], object), [0, 1, 0, 1], 2),
    ],
)
def test_groups_are_the_values_of_a_column(level, codes, count):
    found = groups_of("level", slots_with(level=np.asarray(level)))
    assert (found.of_row.tolist(), found.groups) == (codes, count)
    assert found.of_row.dtype == np.int32


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (["b", "a", "b", "c"], "node 1 is 'a' in row 1 and 'c' in row 3"),
        (["b", " ", "b", " "], r"'level' is empty in row 1 \(node 1\)"),
        ([1.0, 2.0, np.nan, 2.0], r"'level' is empty in row 2 \(node 2\)"),
        (np.array([None, "a", "b", "a"], object), "is empty in row 0"),
        (np.array(["NaT", "2026", "2026", "2026"], "M8[D]"), "is empty in row 0"),
    ],
)
def test_invalid_columns_are_no_levels(level, message):
    slots = slots_with(level=np.asarray(level))
    with pytest.raises(ValueError, match=message):
        groups_of("level", slots)


def test_unknown_levels_and_times_are_no_levels():
    slots = slots_with(rack=1)
    with pytest.raises(ValueError, match=r"no column 'rakc'.*did you mean 'rack'"):
        groups_of("rakc", slots)
    with pytest.raises(ValueError, match="'start' is a time of a slot"):
        groups_of("start", slots)


def test_levels_nest_or_the_error_names_two_rows():
    table = {
        "rack": np.array(["r1", "r1", "r2", "r2"]),
        "site": np.array(["a", "a", "b", "b"]),
        "line": np.array([1, 2, 1, 2]),
    }
    check_nesting(["rack", "site"], table, "machine", ordered=True)
    check_nesting(["site", "rack"], table, "machine")
    with pytest.raises(
        ValueError,
        match=r"rack 'r1' lies in line 1 \(row 0\) and in line 2 \(row 1\)",
    ):
        check_nesting(["rack", "line"], table, "machine")
    table["hall"] = np.array(["h", "h", "h", "h"])
    with pytest.raises(ValueError, match="from the finest to the coarsest"):
        check_nesting(["hall", "rack"], table, "machine", ordered=True)


@pytest.mark.parametrize(
    "rule", ["distinct(rack) <=", "distinct(rack) >=", "most(rack) <="]
)
def test_counts_of_rules_are_at_most_the_nodes_of_a_request(rule: str) -> None:
    assert sk.Request(1, 1, limits=f"{rule} 2147483647").rules[0].bound == 2**31 - 1
    for count in ("2147483648", "9223372036854775808", "1e30"):
        with pytest.raises(ValueError, match="at least 1 and at most 2,147,483,647"):
            sk.Request(1, 1, limits=f"{rule} {count}")
