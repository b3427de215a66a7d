"""Tests of the validation of slot arrays and requests."""

import copy
import pickle

import numpy as np
import pytest

import slotkern as sk

GOOD = {
    "node": [0, 1, 0],
    "start": [0.0, 1.0, 5.0],
    "end": [4.0, 9.0, 8.0],
    "performance": [2.0, 3.0, 2.0],
    "price": [1.0, 2.0, 3.0],
}


def slots(**changes):
    """Return the valid slots, unchecked, with changed cells: field=(row, value)."""
    array = np.empty(3, sk.SLOT)
    for name, values in GOOD.items():
        array[name] = values
    for name, (row, value) in changes.items():
        array[name][row] = value
    return array


def test_valid_slots_pass_and_make_slots_sorts():
    sk.validate_slots(slots())
    shuffled = {name: np.array(values)[[2, 0, 1]] for name, values in GOOD.items()}
    made = sk.make_slots(**shuffled, site=["c", "a", "b"])
    assert made[list(GOOD)].tolist() == slots().tolist()
    assert made["site"].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"node": (1, -3)}, "node", "row 1: node -3 is negative"),
        ({"start": (1, np.nan)}, "start", "row 1: start nan is not finite (node 1)"),
        ({"start": (1, -np.inf)}, "start", "row 1: start -inf is not finite"),
        ({"end": (1, np.nan)}, "end", "row 1: end is nan"),
        ({"end": (1, 1.0)}, "end", "row 1: end 1.0 is not after start 1.0"),
        ({"performance": (2, 0.0)}, "performance", "row 2: performance 0.0 is not"),
        ({"performance": (2, -2.0)}, "performance", "row 2: performance -2.0 is not"),
        ({"performance": (2, np.inf)}, "performance", "row 2: performance inf is not"),
        (
            {"performance": (2, 5.0)},
            "performance",
            "5.0 differs from 2.0 (node 0); see row 0",
        ),
        ({"price": (0, -1.0)}, "price", "row 0: price -1.0 is negative or not finite"),
        ({"price": (0, np.nan)}, "price", "row 0: price nan is negative or not finite"),
        ({"price": (0, np.inf)}, "price", "row 0: price inf is negative or not finite"),
        (
            {"end": (0, 5.5)},
            "start",
            "start 5.0 lies before end 5.5: slots of one node",
        ),
        (
            {"start": (0, 2.0)},
            "start",
            "not sorted by (start, node): (1.0, 1) comes after (2.0, 0)",
        ),
    ],
)
def test_errors_name_the_first_invalid_row(change, field, message):
    bad = slots(**change)
    job = sk.Request(1, 1)
    for accept in (sk.validate_slots, sk.SlotPool, lambda s: sk.find_window(s, job)):
        with pytest.raises(sk.SlotError) as caught:
            accept(bad)
        assert message in str(caught.value)
        assert caught.value.field == field
    assert pickle.loads(pickle.dumps(caught.value)).row == caught.value.row


def test_errors_name_the_first_of_two_invalid_rows():
    bad = slots(price=(0, -1.0), end=(2, 0.0))
    with pytest.raises(sk.SlotError, match="row 0: price"):
        sk.validate_slots(bad)


def test_errors_of_make_slots_name_the_row_as_given():
    with pytest.raises(sk.SlotError, match=r"row 0: end 0\.5 .* \(node 7\)"):
        sk.make_slots(node=[7, 3], start=[5, 0], end=[0.5, 4], performance=1, price=2)
    with pytest.raises(
        sk.SlotError, match=r"row 0: start 1.0 lies before end 4.0.*see row 1"
    ):
        sk.make_slots(node=[3, 3], start=[1, 0], end=[5, 4], performance=1, price=2)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"node": [0.5, 1]}, ValueError, "node 0.5 is not an integer"),
        ({"node": [0, 2**31]}, ValueError, "node 2147483648 is not an integer from 0"),
        ({"node": [0, np.nan]}, ValueError, "node nan is not an integer"),
        ({"node": ["a", "b"]}, TypeError, "column 'node' must hold numbers"),
        ({"price": ["a", "b"]}, TypeError, "column 'price' must hold numbers"),
        ({"price": [1, 2, 3]}, ValueError, "different .* values: node 2, price 3"),
        ({"site": ["a"]}, ValueError, "different .* values: node 2, site 1"),
        ({"price": np.ma.array([1, 2], mask=[0, 1])}, ValueError, "masked values"),
        ({"price": [[1, 2]]}, ValueError, "column 'price' has 2 dimensions"),
    ],
)
def test_errors_of_make_slots_name_the_column(columns, error, message):
    good = {"node": [0, 1], "start": 0, "end": 4, "performance": 1, "price": 2}
    with pytest.raises(error, match=message):
        sk.make_slots(**{**good, **columns})


def test_no_window_in_empty_slots():
    empty = np.empty(0, sk.SLOT)
    sk.validate_slots(empty)
    assert len(sk.make_slots(node=[], start=[], end=[], performance=[], price=[])) == 0
    for shape in ("square", "ragged"):
        assert sk.find_window(empty, sk.Request(1, 1), shape=shape) is None
        assert sk.find_window(sk.SlotPool(empty), sk.Request(1, 1), shape=shape) is None


def test_any_native_layout_gives_the_same_window():
    array = slots()
    packed = array.astype(np.dtype([(n, array.dtype[n]) for n in array.dtype.names]))
    wide = np.zeros(
        3, [("site", "U3"), *[(n, array.dtype[n]) for n in array.dtype.names[::-1]]]
    )
    for name in array.dtype.names:
        wide[name] = array[name]
    strided = np.repeat(array, 2)[::2]
    backwards = array[::-1].copy()[::-1]
    readonly = array.copy()
    readonly.flags.writeable = False
    loaded = pickle.loads(pickle.dumps(array))
    want = sk.find_window(array, sk.Request(2, 6), "cost")
    for other in (
        packed,
        wide,
        strided,
        backwards,
        readonly,
        loaded,
        array.view(np.recarray),
    ):
        assert sk.find_window(other, sk.Request(2, 6), "cost") == want
        assert sk.find_window(sk.SlotPool(other), sk.Request(2, 6), "cost") == want


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([1, 2], TypeError, "array, a SlotPool or an Environment, got list"),
        (np.zeros(3), TypeError, "structured array with the fields of SLOT"),
        (np.zeros(3, [("node", "i4")]), ValueError, "no field 'start'; they have node"),
        (
            slots().astype(slots().dtype.newbyteorder(">")),
            TypeError,
            "'node' .* got '>i4'",
        ),
        (
            slots().astype([(n, "f8") for n in sk.SLOT.names]),
            TypeError,
            "field 'node' of slots must be native int32, got '<f8'",
        ),
        (slots().reshape(3, 1), ValueError, "one-dimensional, got 2"),
        (None, TypeError, "got NoneType"),
        (np.ma.array(np.zeros(1, sk.SLOT)), TypeError, "slots must have no mask"),
    ],
)
def test_invalid_slot_arrays_are_refused(bad, error, message):
    for accept in (sk.SlotPool, lambda s: sk.find_window(s, sk.Request(1, 1))):
        with pytest.raises(error, match=message):
            accept(bad)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"nodes": 0}, ValueError, "nodes must be at least 1, got 0"),
        ({"nodes": 2.0}, TypeError, "nodes must be an integer, got 2.0"),
        ({"nodes": True}, TypeError, "nodes must be an integer, got True"),
        ({"nodes": "5"}, TypeError, "nodes must be an integer, got '5'"),
        ({"nodes": 2**40}, ValueError, "nodes must be at most 2147483647"),
        ({"volume": 0}, ValueError, "volume must be positive and finite, got 0"),
        ({"volume": np.inf}, ValueError, "volume must be positive and finite, got inf"),
        ({"volume": np.nan}, ValueError, "volume must not be NaN"),
        ({"volume": None}, TypeError, "needs either a volume or a walltime"),
        ({"volume": "7"}, TypeError, "volume must be a number, got '7'"),
        ({"volume": 10**400}, ValueError, "volume is too large"),
        ({"budget": -1}, ValueError, "budget must not be negative, got -1"),
        ({"budget": np.nan}, ValueError, "budget must not be NaN"),
        (
            {"min_performance": np.inf},
            ValueError,
            "min_performance must be finite, got inf",
        ),
        ({"min_performance": -1}, ValueError, "min_performance must not be negative"),
        ({"earliest": np.inf}, ValueError, "earliest must not be inf"),
        ({"earliest": np.nan}, ValueError, "earliest must not be NaN"),
        ({"deadline": np.nan}, ValueError, "deadline must not be NaN"),
        ({"deadline": -np.inf}, ValueError, "deadline must not be -inf"),
        ({"max_price": -2}, ValueError, "max_price must not be negative"),
        ({"setup": -1}, ValueError, "setup must not be negative, got -1"),
        ({"setup": np.inf}, ValueError, "setup must be finite, got inf"),
        ({"step": -0.5}, ValueError, "step must not be negative, got -0.5"),
        ({"step": "soon"}, ValueError, "step: 'soon' is no duration"),
        ({"latest": -np.inf}, ValueError, "latest must not be -inf"),
        ({"latest": np.nan}, ValueError, "latest must not be NaN"),
        ({"earliest": 3, "latest": 2}, ValueError, "earliest 3 lies after latest 2"),
        ({"max_runtime": 0}, ValueError, "max_runtime must be positive, got 0"),
        (
            {"where": [1, 0]},
            TypeError,
            "where must be an expression or a one-dimensional bool",
        ),
        ({"where": "price >"}, ValueError, "price >"),
    ],
)
def test_errors_of_requests_name_the_field_and_the_value(arguments, error, message):
    with pytest.raises(error, match=message):
        sk.Request(**{"nodes": 1, "volume": 1, **arguments})


def test_requests_have_repr_equality_copy_and_pickle():
    job = sk.Request(np.int64(3), 10, budget=5, where="price < 2", deadline=np.inf)
    assert repr(job) == "Request(nodes=3, volume=10.0, budget=5.0, where='price < 2')"
    assert pickle.loads(pickle.dumps(job)) == job == copy.deepcopy(job)
    assert hash(job) == hash(copy.copy(job))
    assert job.replace(budget=6).budget == 6
    assert job.replace(budget=6) != job
    masked = sk.Request(1, 1, where=np.array([True, False]))
    assert pickle.loads(pickle.dumps(masked)) == masked
    with pytest.raises(ValueError, match="read-only"):
        masked.where[0] = False


@pytest.mark.parametrize(
    ("volume", "setup", "step", "length"),
    [
        (4, 0, 1, 4),  # an integer quotient is not rounded up
        (4, 0.5, 1, 5),
        (0.1 + 0.2, 0, 0.1, 3 * 0.1),  # 3.0000000000000004 steps are rounded to three
        (3 * (1 + 6 * 2.0**-52), 0, 1, 4),  # more than 4 ulp above, rounded up
        (7, 2, 0, 9),
        (1e-300, 0, 1e300, 1e300),  # at least one step
        (5, 0, 5e-324, 5),  # a step below an ulp of the length has no effect
    ],
)
def test_the_length_of_a_part(volume, setup, step, length):
    job = sk.Request(1, volume, setup=setup, step=step)
    assert job.length(1).item() == length
    slots = sk.make_slots(node=[0], start=0, end=np.inf, performance=1, price=2)
    for shape in ("square", "ragged"):
        window = sk.find_window(slots, job.replace(budget=2 * length), shape=shape)
        assert (window.runtime, window.cost) == (length, 2 * length)
        less = 2 * length * (1 - 2.0**-49)
        assert sk.find_window(slots, job.replace(budget=less), shape=shape) is None


def test_lengths_for_invalid_performances():
    job = sk.Request(1, 6, step=4)
    assert job.length([[1, 6], [2, 3]]).tolist() == [[8, 4], [4, 4]]
    for wrong in (0, -1, np.nan, [1, 0]):
        with pytest.raises(ValueError, match="performance must be positive, got"):
            job.length(wrong)


def test_a_volume_that_does_not_move_the_clock_is_refused():
    late = sk.make_slots(
        node=[0, 0], start=[1e17, 2e17], end=[2e17, 3e17], performance=1, price=1
    )
    with pytest.raises(ValueError, match=r"volume 1\.0 is too small"):
        sk.find_window(late, sk.Request(1, 1))
    with pytest.raises(ValueError, match="too small"):
        sk.find_window(late, sk.Request(1, 1), method="published")
    with pytest.raises(ValueError, match="too small"):
        sk.find_windows(late, [sk.Request(1, 1)])
    half = sk.make_slots(  # half an ulp: rounded away at 1e15, not at odd times
        node=[0, 0, 1],
        start=[1e15 - 1, 1e15, 1e15 + 0.125],
        end=[1e15, 1e15 + 1, 1e15 + 1],
        performance=1,
        price=1,
    )
    for source in (half, sk.SlotPool(half)):
        with pytest.raises(ValueError, match=r"volume 0\.0625 is too small"):
            sk.find_window(source, sk.Request(2, 0.0625), "start")
    endless = sk.make_slots(node=[0, 1], start=[0, 5], end=1e18, performance=1, price=1)
    assert sk.find_window(endless, sk.Request(2, 10)).start == 5


@pytest.mark.parametrize("name", ["criterion", "shape", "method", "placement"])
def test_errors_list_the_known_words(name):
    arguments = {"criterion": "finish", "method": "published", name: "sideways"}
    if name == "shape":
        del arguments["method"]
    with pytest.raises(ValueError, match="sideways"):
        sk.find_window(slots(), sk.Request(1, 1), **arguments)


def test_a_filter_array_must_match_the_slots():
    job = sk.Request(1, 1, where=np.ones(2, bool))
    for source in (slots(), sk.SlotPool(slots())):
        with pytest.raises(ValueError, match="where has 2 values for 3 slots"):
            sk.find_window(source, job)
        with pytest.raises(ValueError, match="where has 2 values for 3 slots"):
            sk.find_windows(source, [job])
