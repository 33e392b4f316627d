# tests/python/test_bound_loops.py: for_each, elements and broadcasting in bound functions; numbers as arrays; and functions of single numbers, vectorized.
from __future__ import annotations

import gc
import importlib
import math

import pytest
from real_support import need

MODULES = ("capi", "pybind11", "nanobind")


@pytest.fixture(scope="module", params=MODULES)
def loops(request):
    """Each of the modules, by turns."""
    if request.param != "capi":
        pytest.importorskip(request.param)
    return importlib.import_module(f"bound_loops_{request.param}")


@pytest.fixture(scope="module", params=MODULES[1:])
def of_binder(request):
    pytest.importorskip(request.param)
    return importlib.import_module(f"bound_loops_{request.param}")


@pytest.fixture(scope="module")
def np():
    return need("numpy")


def layouts(np):
    """The same values in memory of every kind."""
    x = np.arange(24.0).reshape(2, 3, 4)
    wide = np.zeros((4, 3, 8))
    wide[::2, :, ::2] = x
    return [x, np.asfortranarray(x), wide[::2, :, ::2], x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1], x.transpose(2, 0, 1).copy().transpose(1, 2, 0)]


# --- loops -------------------------------------------------------------------------------------------------------


def test_for_each_broadcasts_as_numpy_does(loops, np):
    for x in layouts(np):
        for y in [np.arange(4.0), np.arange(3.0)[:, None], np.arange(2.0)[:, None, None], np.array(1.0), *layouts(np)]:
            assert np.array_equal(loops.added(x, y), x + y)
            assert np.array_equal(loops.added(y, x), y + x)
    assert loops.added(np.ones((0, 3)), np.ones((1, 3))).shape == (0, 3)


def test_for_each_writes_to_any_layout(loops, np):
    x, y = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(4, 3).T
    for out in (x.copy(), np.asfortranarray(x), np.zeros((3, 8))[:, ::2]):
        wanted = out + y
        loops.add_to(out, y)
        assert np.array_equal(out, wanted)


def test_shapes_that_differ_are_named(loops, np):
    with pytest.raises(ValueError) as refused:
        loops.add_to(np.ones((2, 3)), np.ones((2, 4)))
    assert str(refused.value) == (
        "add_to(): argument 'y': shape[1]: it must have the same shape as the first (got 4, expected 3); pass arrays of one "
        "shape; in C++, tenon::broadcast lets them broadcast (numpy.ndarray)"
    )
    with pytest.raises(ValueError, match=r"added\(\): argument 'y': shape\[0\]: it does not broadcast .* \(got 5, expected 3\); axes"):
        loops.added(np.ones((2, 3)), np.ones(5))


def test_elements_are_in_row_major_order(loops, np):
    for x in [*layouts(np), np.array(7.0), np.ones((0, 2)), np.broadcast_to(np.arange(3.0), (2, 3))]:
        assert loops.listed(x) == x.ravel().tolist()


# --- numbers as arrays -------------------------------------------------------------------------------------------

TAKEN = {
    "float64": [0.5, 3, True, math.inf, 1e308, -(2**70)],
    "float32": [0.1, 3, math.inf, -math.inf, math.nan],
    "int8": [127, -128, True],
    "uint8": [0, 255],
    "int64": [2**63 - 1, -(2**63)],
    "uint64": [2**64 - 1, 2**63, 0],
    "bool": [True, False],
    "complex64": [1j, 1.5, 2],
}
REFUSED = {
    "float64": [(1j, "imaginary part would be lost"), (10**400, "too large")],
    "float32": [(1e39, "too large"), (2**200, "too large")],
    "int8": [(128, "out of the range"), (-129, "out of the range"), (1.0, "fraction might be lost"), (2**80, "out of the range")],
    "uint8": [(-1, "out of the range"), (256, "out of the range")],
    "int64": [(2**63, "out of the range")],
    "uint64": [(-1, "out of the range"), (2**64, "out of the range"), (-(2**63) - 1, "out of the range")],
    "bool": [(1, "only True and False")],
    "complex64": [(1e39j, "too large")],
}


@pytest.mark.parametrize("dtype", TAKEN)
def test_numbers_that_fit_are_taken(loops, dtype):
    function = getattr(loops, f"taken_{dtype}")
    for value in TAKEN[dtype]:
        assert function(value) == "0 number", value
    for value, why in REFUSED[dtype]:
        with pytest.raises(TypeError, match=f"argument 'x' is not taken: expected {dtype}\\[...\\], or convertible, or a number, got {type(value).__name__}: .*{why}"):
            function(value)


def test_numbers_are_rounded_to_the_nearest_half(loops, np):
    exact = np.arange(2**16, dtype=np.uint16).view(np.float16)
    exact = exact[np.isfinite(exact)].astype(float)[::37]
    between = (exact + np.roll(exact, 1)) / 2
    for value in [*exact, *between, 0.1, 65519.0, 2**-25, 2**-24 * 0.50001, 1e-300, 5e-324, math.inf, -math.inf, -0.0]:
        assert loops.float16_bits(float(value)) == np.float16(value).view(np.uint16), value
    assert math.isnan(np.uint16(loops.float16_bits(math.nan)).view(np.float16))
    for value in (65520.0, -65520.0, 1e300):
        with pytest.raises(TypeError, match="too large"):
            loops.float16_bits(value)
    for value, bits in ((1.0, 0x3F80), (-2.0, 0xC000), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (3.38e38, 0x7F7E), (2**-133, 1)):
        assert loops.bfloat16_bits(value) == bits, value
    with pytest.raises(TypeError, match="too large"):
        loops.bfloat16_bits(3.4e38)


def test_what_is_no_number_is_refused(loops):
    for value in ("1", [1.0], (1.0,)):
        with pytest.raises(TypeError, match=r"is not an array: .*or a number.*; try numpy.asarray\(x, 'float64'\)"):
            loops.taken_float64(value)
    with pytest.raises(TypeError):
        loops.taken_float64(None)


def test_numbers_of_numpy_are_arrays_without_axes(loops, np):
    assert loops.taken_float64(np.float64(1.5)) == loops.taken_float64(np.float32(1.5)) == "0 array"
    assert loops.taken_float64(np.array(1.5)) == "0 array"
    with pytest.raises(TypeError):
        loops.taken_int8(np.int64(1))


def test_numbers_come_back_as_numbers(loops, np):
    for value in (2.5, 3, True):
        back = loops.given_back(value)
        assert back == value and isinstance(back, (float, int))
    x = np.ones(3)
    assert loops.given_back(x) is x
    assert isinstance(loops.of_shape(2.5, False), float)
    with pytest.raises(TypeError, match="a number has no library that could make an array with axes"):
        loops.of_shape(2.5, True)


def test_arrays_over_numbers_are_kept_by_whoever_copies_them(loops, np):
    for value in range(1000):
        loops.remember(value + 0.5)
    gc.collect()
    assert loops.sums([1, 2.5, np.ones((2, 2)), True]) == [1.0, 2.5, 4.0, 1.0]


# --- functions of single numbers -----------------------------------------------------------------------------------


def test_numbers_give_a_number(loops):
    for result, wanted in (
        (loops.hypot3(1, 2.0, 3), 14.0),
        (loops.scaled(4), 8),
        (loops.scaled(4, False), 4),
        (loops.turned(2), 2j),
        (loops.is_even(4), True),
        (loops.halved(3), 1.5),
        (loops.times(2), 6.0),
    ):
        assert result == wanted and type(result) is type(wanted)


def test_arrays_of_any_layout_broadcast(loops, np):
    for x in layouts(np):
        for y in (2.0, np.arange(4.0), np.arange(3.0)[:, None], np.array(3.0)):
            result = loops.hypot3(x, y, 1)
            assert type(result) is np.ndarray and result.dtype == np.float64
            assert np.array_equal(result, x * x + y * y + 1)
            assert np.array_equal(loops.hypot3(1, y, x), result)
    assert loops.hypot3(np.ones((0, 4)), np.ones(4), 1).shape == (0, 4)
    assert loops.hypot3(np.array(2.0), 1, 1).shape == ()


def test_element_types_are_converted_without_loss(loops, np):
    assert np.array_equal(loops.hypot3(np.arange(3, dtype=np.int16), np.arange(3, dtype=np.float32), True), [1, 3, 9])
    assert loops.scaled(np.arange(3, dtype=np.int8), np.array([True, False, True])).tolist() == [0, 1, 4]
    even = loops.is_even(np.arange(4, dtype=np.uint8))
    assert even.dtype == bool and even.tolist() == [True, False, True, False]
    assert loops.turned(np.array([1.0, 2.0])).tolist() == [1j, 2j]
    for function, x in ((loops.hypot3, np.array([1j])), (loops.scaled, np.array([1.5])), (loops.is_even, np.array([1]))):
        with pytest.raises(TypeError, match="has the wrong dtype"):
            function(*[x] * (3 if function is loops.hypot3 else 1))


def test_the_result_is_of_the_first_library(loops, np):
    torch = need("torch")
    t, x = torch.arange(3.0), np.arange(3.0)
    assert loops.hypot3(t, x, 1).tolist() == [1, 3, 9] and isinstance(loops.hypot3(t, x, 1), torch.Tensor)
    assert isinstance(loops.hypot3(1, t.double(), x), torch.Tensor)
    assert isinstance(loops.hypot3(1, x, t), np.ndarray)
    # A number of NumPy's, or what else has no axes, says less than an array.
    assert isinstance(loops.hypot3(np.float64(1), 1, t), torch.Tensor)
    assert isinstance(loops.hypot3(1, 1, np.float64(1)), np.ndarray)
    assert isinstance(loops.hypot3(1.0, torch.tensor(2.0), 1), torch.Tensor)
    assert loops.shifted(t.flip(0)[::2], "abc").tolist() == [5.0, 3.0]


def test_arrays_of_jax(loops, np):
    jax = need("jax")
    result = loops.halved(jax.numpy.arange(3, dtype="float32"))
    assert isinstance(result, jax.Array) and result.tolist() == [0, 0.5, 1]


def test_what_is_no_number_is_passed_on(loops, np):
    assert loops.shifted(np.zeros(2, np.float32), "ab").tolist() == [2.0, 2.0]
    assert loops.shifted(1.5, "ab") == 3.5
    with pytest.raises(TypeError):
        loops.shifted(1.5, 2)


def test_shapes_that_do_not_broadcast_are_named(loops, np):
    with pytest.raises(ValueError) as refused:
        loops.hypot3(np.ones((2, 3)), 1, np.ones(4))
    assert str(refused.value) == (
        "tenon: arguments 1 and 3 have shapes that do not broadcast: (2, 3) and (4,); axes are matched from the last on: "
        "each pair must be equal, or one of them 1"
    )


def test_lists_are_refused_with_what_to_do(loops):
    with pytest.raises(TypeError, match=r"argument 'x' is not an array: expected float64\[...\], or convertible, or a number, got list; try numpy.asarray\(x, 'float64'\)"):
        loops.hypot3([1.0], 1, 1)


def test_what_the_function_throws_is_raised(loops, np):
    assert loops.root(np.array([2.0])).tolist() == [4.0]
    with pytest.raises(ValueError, match="no root of a negative number"):
        loops.root(np.array([2.0, -1.0]))


def test_signatures_say_that_numbers_are_taken(of_binder):
    words = "float64[...], or convertible, or a number"
    signature = of_binder.hypot3.__doc__
    assert signature.count(words) == 3 and "'float64[...], or a number'" in signature.replace(words, "")


def test_overloads_are_told_apart_by_the_kind_of_number(of_binder, np):
    assert [of_binder.kind(x) for x in (1, 1.0, 1j)] == [1, 2, 3]
    assert [of_binder.kind(np.ones(1, t)).item() for t in ("int64", "float64", "complex128")] == [1, 2, 3]
