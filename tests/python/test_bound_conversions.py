# tests/python/test_bound_conversions.py: what `convert` converts, and what it leaves to the author's word: nothing that would lose a part of a value.
from __future__ import annotations

import warnings

import pytest
from bound_hazards import hazards, of_binder  # noqa: F401
from real_support import need


def numpy_of(values, dtype: str):
    return need("numpy").array(values, dtype)


def torch_of(values, dtype: str):
    torch = need("torch")
    return torch.tensor(values, dtype=getattr(torch, dtype))


def jax_of(values, dtype: str):
    jax = need("jax")
    return jax.device_put(jax.numpy.array(values, dtype), jax.devices("cpu")[0])


LIBRARIES = {"numpy": numpy_of, "torch": torch_of, "jax": jax_of}


@pytest.fixture(params=LIBRARIES)
def make(request):
    if request.param != "jax":
        yield LIBRARIES[request.param]
        return
    config = need("jax").config
    before = config.jax_enable_x64
    config.update("jax_enable_x64", True)  # else it knows neither float64 nor int64
    yield jax_of
    config.update("jax_enable_x64", before)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_F94_no_imaginary_part_is_dropped(hazards, make, dtype):
    x = make([1 + 2j], dtype)
    for function in (hazards.as_float64, hazards.as_float32, hazards.as_int32, lambda x: hazards.listed_float64([x])):
        with pytest.raises(TypeError, match="has the wrong dtype"):
            function(x)
    assert tuple(hazards.as_complex(x)) == (1.0, 2.0)
    assert hazards.either_converted(x) == "complex"


def test_F94_overloads_are_not_taken_by_conversions_that_lose(of_binder, make):
    assert of_binder.overloaded(make([1 + 2j], "complex64")) == "complex128"
    assert of_binder.overloaded(make([1], "int32")) == "float64"
    assert of_binder.overloaded(make([1], "int16")) == "float32"


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_F94_no_fraction_is_dropped(hazards, make, dtype):
    x = make([1.5], dtype)
    for function in (hazards.as_int32, hazards.as_uint8):
        with pytest.raises(TypeError, match="has the wrong dtype"):
            function(x)
    if dtype != "float64":
        assert hazards.as_float32(x) == 1.5
    assert hazards.as_float64(x) == 1.5


def test_F94_no_bits_are_dropped(hazards, make):
    for function, values, dtype in (
        (hazards.as_float32, [1.1], "float64"),
        (hazards.as_float32, [2**24 + 1], "int32"),
        (hazards.as_int32, [2**32 + 1], "int64"),
        (hazards.as_uint8, [-1], "int8"),
        (hazards.as_uint8, [256], "int32"),
    ):
        with pytest.raises(TypeError, match="has the wrong dtype"):
            function(make(values, dtype))


def test_what_keeps_every_value_is_converted(hazards, make):
    assert hazards.as_float64(make([3], "int32")) == 3.0
    assert hazards.as_float64(make([1.5], "float32")) == 1.5
    assert hazards.as_float32(make([True], "bool")) == 1.0
    assert hazards.as_int32(make([200], "uint8")) == 200
    assert hazards.as_uint8(make([True], "bool")) == 1
    assert tuple(hazards.as_complex(make([1.5], "float32"))) == (1.5, 0.0)
    assert hazards.listed_float64([make([2], "int16")]) == 2.0


def test_narrowing_is_the_authors_word(hazards, make):
    assert hazards.narrowed_float32(make([1.5], "float64")) == 1.5
    assert hazards.narrowed_float32(make([3], "int64")) == 3.0
    assert hazards.narrowed_int16(make([-3], "int64")) == -3
    assert hazards.narrowed_int16(make([200], "uint8")) == 200
    for function, x in (
        (hazards.narrowed_float32, make([1 + 2j], "complex64")),
        (hazards.narrowed_int16, make([1.5], "float32")),
        (hazards.narrowed_int16, make([1 + 2j], "complex64")),
    ):
        with pytest.raises(TypeError, match="has the wrong dtype: expected .*, or convertible with narrowing, got "):
            function(x)


def quietly(function, x):
    """NumPy and PyTorch warn when an imaginary part is dropped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(x)


def test_loss_is_the_authors_word(hazards, make):
    assert hazards.lossy_float32(make([1.1], "float64")) == pytest.approx(1.1)
    assert hazards.lossy_uint8(make([1.75], "float32")) == 1
    assert hazards.lossy_uint8(make([257], "int32")) == 1
    assert quietly(hazards.lossy_float32, make([1 + 2j], "complex64")) == 1.0
    assert quietly(hazards.lossy_uint8, make([3 + 2j], "complex64")) == 3


def test_loss_only_where_nothing_of_a_set_can_hold_it(hazards, make):
    assert hazards.lossy_either(make([1], "int16")) == "float32"
    assert hazards.lossy_either(make([1], "int32")) == "int32"
    assert hazards.lossy_either(make([1.5], "float64")) == "float32"
    assert quietly(hazards.lossy_either, make([1 + 2j], "complex128")) == "float32"
    assert quietly(hazards.lossy_either, make([1 + 2j], "complex64")) == "float32"


def test_an_overload_before_a_lossy_one_is_taken(of_binder, make):
    assert of_binder.overloaded_lossy(make([1 + 2j], "complex64")) == "complex128"
    assert of_binder.overloaded_lossy(make([1.5], "float64")) == "complex128"
    assert of_binder.overloaded_lossy(make([1.5], "float32")) == "float32"


def test_other_things_are_not_changed_with_any_loss(hazards):
    numpy = need("numpy")
    with pytest.raises(TypeError) as caught:
        hazards.lossy_float32(numpy.ones((2, 2)))
    assert str(caught.value) == (
        "lossy_float32(): argument 'x' has the wrong number of axes: expected float32[*], or convertible with loss, got "
        "float64[2, 2] with strides (2, 1), writable, on cpu (numpy.ndarray); reshape it")


def test_the_words_say_what_is_converted(hazards):
    numpy = need("numpy")
    with pytest.raises(TypeError) as caught:
        hazards.as_float32(numpy.ones(3))
    assert str(caught.value) == (
        "as_float32(): argument 'x' has the wrong dtype: expected float32[*], or convertible, got float64[3] with strides "
        "(1,), writable, on cpu (numpy.ndarray); try x.astype('float32')")


@pytest.mark.parametrize("function", ["then_index", "then_float"])
def test_numbers_that_are_too_large_are_said_to_be(function):
    """Of a kind that is taken, so that the kind is not what is wrong."""
    import bound_hazards_capi

    with pytest.raises(TypeError, match=r"argument '\w+' does not fit: expected (int|float), got int out of its range"):
        getattr(bound_hazards_capi, function)(need("numpy").ones(3), 10**400)
