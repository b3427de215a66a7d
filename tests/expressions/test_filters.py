"""Tests of filter expressions against Python row by row, and of their errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_peak import peak_of

from slotkern.expressions.filters import compile_where, evaluate

COLUMNS = np.dtype(
    [
        ("memory", "i4"),
        ("load", "f8"),
        ("big", "u8"),
        ("gpu", "?"),
        ("site", "U2"),
        ("os", "S4"),
        ("rack", "O"),
    ]
)
SLOTS = np.array(
    [
        (32, 0.5, 1, True, "a", "x", "r1"),
        (64, -1.0, 2**63, False, "b", "yé".encode(), "r22"),
        (64, np.inf, 2**64 - 1, True, "", "", ""),
    ],
    dtype=COLUMNS,
)

# Hypothesis composes expressions of these names; Python evaluates them row by row.
NUMBER = st.sampled_from(["memory", "load", "big", "64", "-1", "0.5", "2**63"])
TEXT = st.sampled_from(["site", "os", "rack", "'a'", "'yé'", '"r1"', "''"])
ORDER = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def _chain(operands: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operands = operands.map(lambda name: str(2**63) if name == "2**63" else name)
    more = st.lists(st.tuples(ORDER, operands), min_size=1, max_size=3)
    return st.builds(
        lambda first, rest: " ".join([first, *(f"{o} {x}" for o, x in rest)]),
        operands,
        more,
    )


def _member(name: str, literals: list[str]) -> st.SearchStrategy[str]:
    chosen = st.lists(st.sampled_from(literals), max_size=3)
    listed = chosen.map(lambda parts: "[" + ", ".join(parts) + "]")
    return st.builds(
        lambda words, values: f"{name} {words} {values}",
        st.sampled_from(["in", "not in"]),
        listed,
    )


ATOM = st.one_of(
    _chain(NUMBER),
    _chain(TEXT),
    _member("memory", ["32", "64.0", "-1"]),
    _member("rack", ["'r1'", "'none'"]),
    st.sampled_from(["gpu", "True", "False", "gpu == True", "gpu != (memory > 32)"]),
)
EXPRESSION = st.recursive(
    ATOM,
    lambda inner: st.one_of(
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=8,
)


@given(EXPRESSION)
def test_expressions_equal_python_row_by_row(text: str) -> None:
    rows = [dict(zip(COLUMNS.names, row, strict=True)) for row in SLOTS.tolist()]
    for row in rows:
        row["os"] = row["os"].decode()
    expected = [bool(eval(text, {"__builtins__": {}}, row)) for row in rows]
    passed = evaluate(text, SLOTS)
    assert passed.dtype == np.bool_
    assert passed.tolist() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory >= 64 and site == 'b'", [False, True, False]),
        ("  memory >= 64 and site == 'b'\n", [False, True, False]),
        ("0 < load <= 0.5", [True, False, False]),
        ("(not gpu\r\n or memory == 32)\n", [True, True, False]),
        ("load > 1e308", [False, False, True]),
        ("big >= 9223372036854775808", [False, True, True]),
        ("memory in (+32, -64)", [True, False, False]),
        ("memory in ()", [False, False, False]),
        ("True", [True, True, True]),
        (" and ".join(["gpu"] * 5000), [True, False, True]),
    ],
)
def test_examples(text: str, expected: list[bool]) -> None:
    assert evaluate(text, SLOTS).tolist() == expected
    assert evaluate(text, SLOTS[:0]).shape == (0,)


def test_results_are_writable_and_not_shared() -> None:
    passed = evaluate("gpu", SLOTS)
    passed[:] = False
    assert SLOTS["gpu"].any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "character 1: invalid syntax"),
        ("memory >= 64 and", "character 17: invalid syntax"),
        ("  memory = 3", "character 10: write '==' in place of '='"),
        ("'a=b' != 'é' and (gpu = True)", "character 23: write '==' in place"),
        ("memory = 3 or site = 'a'", "character 8: write '==' in place of '='"),
        ("memory = 3 or site =", "character 8: invalid syntax"),
        ("memory = > 3", "character 8: invalid syntax"),
        ("memory >= 3 gpu == '='", "character 13: invalid syntax"),
        ("(gpu", "character 1: '(' was never closed"),
        ("gpu\0", "null bytes"),
        ("site == 'é' and foo(1)", "character 17: a call is not supported"),
        ("site.upper == 'A'", "character 1: an attribute is not supported"),
        ("load + 1 > 2", "character 1: arithmetic is not supported"),
        ("gpu & gpu", "write 'and', 'or' in place of '&', '|'"),
        ("~gpu", "this unary operator is not supported"),
        ("-memory < 3", "this unary operator is not supported"),
        ("-True < memory", "a sign before True is not supported"),
        ("site[0] == 'a'", "an index is not supported"),
        ("gpu if gpu else gpu", "a conditional is not supported"),
        ("lambda: gpu", "a lambda is not supported"),
        ("(x := gpu)", "an assignment is not supported"),
        ("f'{site}' == 'a'", "a formatted string is not supported"),
        ("[gpu for gpu in site]", "ListComp is not supported"),
        ("memory is 3", "character 11: 'is' is not supported"),
        ("memory is not 3", "'is not' is not supported"),
        ("memory == None", "None is not supported"),
        ("os == b'x'", "b'x' is not supported"),
        ("memory == (1, 2)", "a tuple is not supported"),
        ("'a' in site", "'in' needs a list of literals"),
        ("memory in [load]", "'in' needs a list of literals"),
        ("memory in [1] in [2]", "'in' cannot be chained"),
        ("not " * 51 + "gpu", "nested more than 50 deep"),
        ("not " * 15_000 + "gpu", "nested too deeply"),
        ("(" * 5000 + "gpu" + ")" * 5000, "too many nested parentheses"),
        ("memory < 1" + "0" * 5000, "digits"),
    ],
)
def test_invalid_syntax_is_refused_by_compile_where(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="where") as caught:
        compile_where(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu and disk > 3", "character 9: no column 'disk'; there are memory, load,"),
        ("disk in ()", "no column 'disk'"),
        ("site == ssd", "character 9: no column 'ssd'; put text in quotes: 'ssd'"),
        ("linux != os", "character 1: no column 'linux'; put text in quotes"),
        ("memory == many", "no column 'many'; there are memory, load"),
        ("memory", "memory is a number, not true or false: compare it"),
        ("not site", "character 5: site is a string, not true or false"),
        ("site > 3", "site is a string, but 3 is a number: not comparable"),
        ("1 < memory < 'a'", "memory is a number, but 'a' is a string"),
        ("memory in (1, 'a')", "memory is a number, but 'a' is a string"),
        (
            "gpu and (\ngpu == 1)",
            "character 11: gpu is a truth value, but 1 is a number",
        ),
        ("gpu < True", "gpu is a truth value, which has no order"),
        ("load < 1" + "0" * 400, "the number is too large to compare"),
    ],
)
def test_invalid_columns_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="where") as caught:
        evaluate(text, SLOTS)
    assert message in str(caught.value)


def test_nan_is_an_error_that_names_the_row() -> None:
    slots = SLOTS.copy()
    slots["load"][1] = np.nan
    assert evaluate("memory > 32", slots).tolist() == [False, True, True]
    with pytest.raises(ValueError, match="column 'load' is NaN in row 1"):
        evaluate("load > 0", slots)


def test_errors_quote_the_cell_that_is_no_number() -> None:
    slots = np.array([("64",), ("much",), ("",), ("128",)], [("memory", "U4")])
    for text in ("memory >= 64", "64 <= memory"):
        with pytest.raises(ValueError, match="not comparable; memory is much in row 1"):
            evaluate(text, slots)
    with pytest.raises(ValueError, match=r"not comparable$"):
        evaluate("memory >= 64", slots[1:3])


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (b"\xff", "S1", "column 'x' is not UTF-8"),
        (7, "O", "column 'x' cannot be compared: it is object"),
        (1j, "c16", "column 'x' cannot be compared: it is complex128"),
        ((1, 2), "(2,)i4", "column 'x' cannot be compared: it is int32 of shape"),
    ],
)
def test_columns_of_other_types_are_refused(
    value: object, dtype: str, message: str
) -> None:
    slots = np.array([(value,)], dtype=[("x", dtype)])
    with pytest.raises(ValueError, match="character 1") as caught:
        evaluate("x == 'a'", slots)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", [None, 3, b"gpu"])
def test_text_must_be_a_string(text: object) -> None:
    with pytest.raises(TypeError, match="where must be a string"):
        compile_where(text)  # type: ignore[arg-type]


def test_memory_of_an_expression_is_bounded() -> None:
    many = np.zeros(200_000, COLUMNS)
    many["memory"] = np.arange(len(many))
    many["rack"] = ""
    text = " or ".join(f"memory == {i}" for i in range(3000))
    evaluate("memory == 1", many)
    passed, peak = peak_of(evaluate, text, many)
    assert passed.sum() == 3000
    assert peak < 50_000_000  # the memory does not grow with the terms
    many["rack"][7] = "x" * 100_000  # as fixed-width text, all rows would need 80 GB
    assert np.flatnonzero(evaluate("rack > 'w'", many)).tolist() == [7]
    for text, message in [
        (
            "memory in [" + "1," * 10_001 + "]",
            "character 20010: more than 10,000 names",
        ),
        ("gpu or " * 10_000 + "gpu", "character 65537: longer than 65,536 characters"),
        (r"site == '\d'", ": invalid escape sequence"),
        ("1if gpu", "character 1: invalid decimal literal"),
        ("memory < '" + "a" * 5000 + "'", "..."),
    ]:
        with pytest.raises(ValueError, match="where") as caught:
            evaluate(text, many)
        assert message in str(caught.value)
        assert len(str(caught.value)) < 600
