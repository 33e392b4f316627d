# tests/python/test_bound_overloads.py: overloads, methods, constructors and operators that take arrays, by both binders.
from __future__ import annotations

import array
import importlib
import re

import pytest
from isolation import run_isolated
from producers import CUDA, ROCM, Producer, exactly_once, raising
from real_support import need

np = need("numpy")

NUMBER = {"pybind11": "typing.SupportsFloat | typing.SupportsIndex", "nanobind": "float"}
INTEGER = {"pybind11": "typing.SupportsInt | typing.SupportsIndex", "nanobind": "int"}
VECTOR = "got {dtype}[2] with strides (1,), writable, on cpu (numpy.ndarray)"


def annotated(phrase: str) -> str:
    element = "typing.Any" if "any" in phrase or "convertible" in phrase else "numpy." + re.search(r"[a-z]+\d+", phrase)[0]
    return f"tenon.typing.Array[{element}, typing.Literal['{phrase}']]"


@pytest.fixture(scope="module", params=("pybind11", "nanobind"))
def binder(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture(scope="module")
def bound(binder):
    return importlib.import_module(f"bound_{binder}")


def refusal(function, *args, **keywords) -> str:
    """The message of the TypeError, once the function has been refused something before."""
    for _ in range(2):
        with pytest.raises(TypeError) as caught:
            function(*args, **keywords)
    caught.value.__traceback__ = None
    return str(caught.value)


def listed(name: str, *overloads: tuple[str, str]) -> str:
    """The message that no overload fits: each by its signature and the reason."""
    lines = [f"{name}(): no overload takes these arguments:"]
    for number, (signature, reason) in enumerate(overloads, 1):
        lines += [f"    {number}. {signature}", f"       {reason}"]
    return "\n".join(lines)


# --- which overload --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function, argument, result", [
    ("by_dtype", lambda: np.ones(2, "f4"), "float32"),
    ("by_dtype", lambda: np.ones(2, "f8"), "float64"),
    ("by_rank", lambda: np.ones(2, "f4"), "vector"),
    ("by_rank", lambda: np.ones((2, 2), "f4"), "matrix"),
    ("by_relation", lambda: np.ones((2, 2), "f4"), "square"),
    ("by_relation", lambda: np.ones((2, 3), "f4"), "matrix"),
    ("by_place", lambda: np.ones(2, "f4"), "host"),
    ("by_place", lambda: Producer(shape=(6,), device=CUDA), "cuda"),
    ("array_or_number", lambda: np.ones(1), "array"),
    ("array_or_number", lambda: 1.5, "number"),
    ("array_or_number", lambda: 2, "number"),
    ("number_or_array", lambda: np.ones(1), "array"),
    ("number_or_array", lambda: 1.5, "number"),
    ("number_or_array", lambda: 2, "number"),
    ("text_last", lambda: np.ones(2, "f4"), "array"),
    ("text_last", lambda: "a", "text a"),
    ("converting", lambda: np.ones(2, "f4"), "converted"),
    ("converting", lambda: np.ones(2, "f8"), "as it is"),
    ("converting", lambda: np.ones(2, "i4"), "converted"),
    ("never_converting", lambda: np.ones(2, "f4"), "taken"),
    ("rows_converted", lambda: np.ones((2, 2), "f8"), 2),
    ("rows_converted", lambda: np.ones(2, "f8"), 1),
], ids=lambda value: value if isinstance(value, (str, int)) else "")
def test_chosen(bound, function, argument, result):
    assert getattr(bound, function)(argument()) == result


def test_chosen_by_arity(bound):
    x = np.ones(2, "f4")
    assert (bound.by_arity(x), bound.by_arity(x, x), bound.by_arity(x, y=x)) == (1, 2, 2)


@pytest.mark.parametrize("shapes, result", [((2, 2), "equal"), ((2, 3), "others"), (((2, 3), 3), "rows")])
def test_chosen_by_how_lengths_are_related(bound, shapes, result):
    assert bound.by_lengths(*(np.ones(shape, "f4") for shape in shapes)) == result
    assert bound.by_lengths(**dict(zip("yx", (np.ones(shape, "f4") for shape in reversed(shapes)), strict=True))) == result


def test_a_capsule_goes_to_the_overload_that_lengths_allow(bound):
    fakes = [Producer(shape=(size,)).struct for size in (2, 3)]
    with exactly_once(*fakes):
        assert bound.by_lengths(*(fake.capsule() for fake in fakes)) == "others"


def test_no_lengths_fit(bound):
    matrix, row = np.ones((2, 3), "f4"), np.ones(2, "f4")
    got = "got float32[2] with strides (1,), writable, on cpu (numpy.ndarray); pass one of that shape"
    assert refusal(bound.by_lengths, matrix, row).endswith(
        "argument 'y' has the wrong extent on axis 0: expected float32[m] (m = 3, as argument 'x' has on axis 1), " + got)
    assert refusal(bound.by_lengths, matrix, row).count("argument 'x' has the wrong number of axes") == 2


def test_a_capsule_goes_to_the_overload_that_fits(bound):
    fake = Producer(shape=(6,), dtype=(2, 64, 1)).struct
    with exactly_once(fake):
        assert bound.by_dtype(fake.capsule()) == "float64"


def test_what_every_overload_asks_for_is_given_back(bound):
    fake = Producer(shape=(6,), dtype=(0, 32, 1))
    with exactly_once(fake.struct, exports=None):
        refusal(bound.by_dtype, fake)


# --- none ------------------------------------------------------------------------------------------------------------


def test_no_dtype_fits(bound):
    got = VECTOR.format(dtype="int32")
    assert refusal(bound.by_dtype, np.ones(2, "i4")) == listed(
        "by_dtype",
        (f"by_dtype(x: {annotated('float32[*]')}) -> str",
         f"argument 'x' has the wrong dtype: expected float32[*], {got}; try x.astype('float32')"),
        (f"by_dtype(x: {annotated('float64[*]')}) -> str",
         f"argument 'x' has the wrong dtype: expected float64[*], {got}; try x.astype('float64')"))


def test_no_rank_fits(bound):
    got = "got float32[1, 1, 1] with strides (1, 1, 1), writable, on cpu (numpy.ndarray)"
    assert refusal(bound.by_rank, np.ones((1, 1, 1), "f4")) == listed(
        "by_rank",
        (f"by_rank(x: {annotated('float32[*]')}) -> str",
         f"argument 'x' has the wrong number of axes: expected float32[*], {got}; reshape it"),
        (f"by_rank(x: {annotated('float32[*, *]')}) -> str",
         f"argument 'x' has the wrong number of axes: expected float32[*, *], {got}; reshape it"))


def test_no_place_fits(bound):
    got = "got float32[6] with strides (1,), writable, on rocm:0 (producers.Producer)"
    assert refusal(bound.by_place, Producer(shape=(6,), device=ROCM)) == listed(
        "by_place",
        (f"by_place(x: {annotated('float32[*] on cuda')}) -> str",
         f"argument 'x' is on the wrong device: expected float32[*] on cuda, {got}; move it to that device"),
        (f"by_place(x: {annotated('float32[*]')}) -> str",
         f"argument 'x' is on the wrong device: expected float32[*] in host memory, {got}; move it to the CPU"))


@pytest.mark.parametrize("order", ["array_or_number", "number_or_array"])
def test_neither_array_nor_number(bound, binder, order):
    overloads = [
        (f"{order}(x: {annotated('float64[*]')}) -> str",
         "argument 'x' is not an array: expected float64[*], got str; try numpy.asarray(x, 'float64')"),
        (f"{order}(x: {NUMBER[binder]}) -> str", "the arguments do not fit"),
    ]
    if order == "number_or_array":
        overloads.reverse()
    assert refusal(getattr(bound, order), "a") == listed(order, *overloads)


def test_no_arity_fits(bound):
    one = f"by_arity(x: {annotated('float32[*]')}) -> int"
    two = f"by_arity(x: {annotated('float32[*]')}, y: {annotated('float32[*]')}) -> int"
    x = np.ones(2, "f4")
    assert refusal(bound.by_arity, x, np.ones(2)) == listed(
        "by_arity", (one, "takes 1 positional argument, got 2"),
        (two, "argument 'y' has the wrong dtype: expected float32[*], "
              f"{VECTOR.format(dtype='float64')}; try y.astype('float32')"))
    assert refusal(bound.by_arity, x, x, x) == listed(
        "by_arity", (one, "takes 1 positional argument, got 3"), (two, "takes 2 positional arguments, got 3"))
    assert refusal(bound.by_arity, y=x) == listed(
        "by_arity", (one, "has no argument 'y'"), (two, "argument 'x' is missing"))
    assert refusal(bound.by_arity, x, z=x) == listed(
        "by_arity", (one, "has no argument 'z'"), (two, "has no argument 'z'"))


def test_a_later_overload_without_arrays(bound):
    assert refusal(bound.text_last, 3) == listed(
        "text_last",
        (f"text_last(x: {annotated('float32[*]')}) -> str",
         "argument 'x' is not an array: expected float32[*], got int; try numpy.asarray(x, 'float32')"),
        ("text_last(x: str) -> str", "the arguments do not fit"))


def test_noconvert_refuses_what_would_have_to_be_converted(bound):
    assert refusal(bound.never_converting, np.ones(2)) == (
        "never_converting(): argument 'x' has the wrong dtype: expected float32[*], or convertible with narrowing, "
        f"{VECTOR.format(dtype='float64')}; try x.astype('float32')")


def test_what_ends_a_call_ends_it_for_every_overload(bound):
    for exception in (KeyboardInterrupt("enough"), MemoryError("enough"), SystemExit("enough")):
        fake = raising(exception)
        with pytest.raises(type(exception), match="enough"):
            bound.by_dtype(fake)
        assert type(fake).calls == 1


def test_the_cause_is_the_producers_own(bound):
    mine = ValueError("its own words")
    refusal(bound.by_dtype, 1)
    with pytest.raises(TypeError) as caught:
        bound.by_dtype(raising(mine))
    assert caught.value.__cause__ is mine
    assert str(caught.value).count("was refused: expected float") == 2


def test_what_concerns_no_array_stays_as_it_is(bound, binder):
    """A number where text belongs: that is the binder's to say."""
    message = refusal(bound.fail, array.array("d", [1]), 3)
    assert message.startswith("fail(): incompatible function arguments. The following argument types are supported:")


# --- from the first call on, or the second ---------------------------------------------------------------------------

FIRST = """
import bound_{binder} as bound
messages = []
for function in (bound.unlisted, bound.unlisted, bound.explained.by_dtype if {explained} else bound.unlisted):
    try:
        function(3)
    except TypeError as error:
        messages.append(str(error))
first, second, other = messages
ours = ": no overload takes these arguments:\\n    1. "
assert (ours in first) == {at_once}, first
assert first.startswith("unlisted(): incompatible function arguments.") != {at_once}, first
assert ours in second and second.count("is not an array: expected float") == 2, second
assert ours in other, other
"""


def test_pybind11_lists_the_reasons_from_the_second_refusal_on_and_when_told_from_the_first():
    pytest.importorskip("pybind11")
    run_isolated(FIRST.format(binder="pybind11", at_once=False, explained=True))


def test_nanobind_lists_the_reasons_from_the_first_refusal_on():
    pytest.importorskip("nanobind")
    run_isolated(FIRST.format(binder="nanobind", at_once=True, explained=False))


# --- classes ---------------------------------------------------------------------------------------------------------


def test_constructors(bound):
    x = np.ones((2, 3), "f4")
    assert np.asarray(bound.Model(x).weights()).shape == (2, 3)
    assert np.asarray(bound.Model(4).weights()).shape == (4,)
    assert np.asarray(bound.Model(x, 1).weights()).shape == (4,)
    assert np.asarray(bound.Model(rows=x, more=2).weights()).shape == (5,)


def test_no_constructor_fits(bound, binder):
    start = "bound_pybind11.Model(" if binder == "pybind11" else "__init__(self, "
    end = ")" if binder == "pybind11" else ") -> None"
    # nanobind counts the object itself, as Python does.
    one, two = (1, 2) if binder == "pybind11" else (2, 3)
    takes = f"takes {one} positional argument{'s' if one > 1 else ''}, got {two}"
    number = INTEGER[binder]
    assert refusal(bound.Model, np.ones((2, 2)), 1) == listed(
        "__init__", (f"{start}weights: {annotated('any[...] on any device')}{end}", takes), (f"{start}n: {number}{end}", takes),
        (f"{start}rows: {annotated('float32[*, *]')}, more: {number}{end}",
         "argument 'rows' has the wrong dtype: expected float32[*, *], got float64[2, 2] with strides (2, 1), writable, "
         "on cpu (numpy.ndarray); try rows.astype('float32')"))


def test_methods(bound):
    model = bound.Model(3)
    x = np.ones(2, "f4")
    assert (model.width(x), model.width(x=x), model(x), bound.Model.size_of(x)) == (5, 5, 5, 2)
    model.forget(x)
    assert list(x) == [0, 0] and model.width(x) == 2
    said = f"argument 'x' has the wrong dtype: expected float32[*], {VECTOR.format(dtype='float64')}; try x.astype('float32')"
    for name, method in (("width", model.width), ("__call__", model), ("size_of", bound.Model.size_of)):
        assert refusal(method, np.ones(2)) == f"{name}(): {said}"
    assert refusal(model.forget, np.ones(2, "i1")).startswith("forget(): argument 'x' has the wrong dtype: expected writable")


def test_a_tensor_that_a_class_holds_is_given_out_again_and_again(bound):
    fake = Producer(shape=(6,))
    with exactly_once(fake.struct):
        model = bound.Model(fake)
        first, second = np.asarray(model.weights()), np.asarray(model.weights())
        assert np.shares_memory(first, second)
        del model, first
        assert fake.struct.releases == 0
        assert second.shape == (6,)
        del second


def test_operators_leave_it_to_the_other_side(bound):
    model = bound.Model(3)
    assert model + np.ones(2, "f4") == 5

    class Other:
        def __radd__(self, model):
            return "other"

    for _ in range(2):
        assert model + Other() == "other"
        assert model.__add__("text") is NotImplemented
        with pytest.raises(TypeError, match=r"^unsupported operand type\(s\) for \+: "):
            model + "text"
