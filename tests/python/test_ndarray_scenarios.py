# tests/python/test_ndarray_scenarios.py: what nanobind asks of its own ndarray, asked of Tenon's parameters and results; docs/guides/from_nanobind.md has the table.
from __future__ import annotations

import array
import gc
import io
import struct
import sys
import weakref

import pytest
from isolation import run_isolated
from real_support import has, need

np = need("numpy")
need("nanobind")

import bound_ndarray_nanobind as t  # noqa: E402


def refused(call, *args) -> str:
    """The message of a refusal, in one line."""
    with pytest.raises(TypeError) as caught:
        call(*args)
    return str(caught.value).replace("\n", " ")


def frozen(a):
    a.flags.writeable = False
    return a


class Freed:
    """How many objects of C++ go away within the block, and while it is asked."""

    def __init__(self) -> None:
        gc.collect()
        self.before = t.freed()

    @property
    def count(self) -> int:
        gc.collect()
        return t.freed() - self.before


class Speaks:
    """Speaks DLPack by its two methods alone, and remembers what it was asked."""

    def __init__(self, inner) -> None:
        self.inner, self.asked = inner, {}

    def __dlpack__(self, **asked):
        self.asked = asked
        return self.inner.__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


class SpeaksBarely:
    """The same, from before there were keywords and devices."""

    def __init__(self, inner) -> None:
        self.inner = inner

    def __dlpack__(self):
        return self.inner.__dlpack__()


# --- what an array says of itself -------------------------------------------------------------------------------------


def test_shape_and_sizes():
    a = np.zeros((3, 4, 5))
    assert t.shape_of(a) == [3, 4, 5]
    assert t.strides_of(a) == [20, 5, 1]
    assert t.sizes_of(a) == (3, 60, 8, 480)  # axes, elements, bytes of one, bytes of all
    assert t.axes_agree(a) and t.axes_agree(a[::-2, :, 1:])


def test_an_array_without_axes():
    a = np.zeros(())
    assert (t.shape_of(a), t.sizes_of(a)) == ([], (0, 1, 8, 8))


@pytest.mark.parametrize("type", ["float32", "bool", "uint32", "complex64", "float16"])
def test_the_element_type_is_told(type):
    a = np.zeros(1, type)
    assert (t.is_float(a), t.is_bool(a)) == (type == "float32", type == "bool")


def test_a_capsule_can_be_taken_once():
    for a in np.zeros(()), np.zeros((3, 4, 5)):
        capsule = a.__dlpack__()
        assert t.shape_of(capsule) == list(a.shape)
        assert "it has been consumed already" in refused(t.shape_of, capsule)


def test_a_capsule_that_is_refused_is_not_taken():
    capsule = np.zeros((3, 4, 5)).__dlpack__()
    assert "wrong dtype" in refused(t.take_float32, capsule)
    assert t.shape_of(capsule) == [3, 4, 5]


@pytest.mark.parametrize(
    "memory", [bytearray(range(10)), b"0123456789", memoryview(b"0123456789")], ids=lambda m: type(m).__name__
)
def test_bytes_are_arrays_of_bytes(memory):
    assert t.sizes_of(memory) == (1, 10, 1, 10)
    assert t.order_of(memory) == "C"


# --- None -------------------------------------------------------------------------------------------------------------


def test_none_is_refused_unless_it_is_let_in():
    assert "argument 'x' is None: expected any[...]" in refused(t.shape_of, None)


@pytest.mark.parametrize("function", [t.sizes_or_none, t.sizes_or_default])
def test_none_that_is_let_in_is_an_array_that_holds_nothing(function):
    """By `.none()` and by a default that is None, as with nanobind's; the signature says so."""
    assert function(None) == (False, 0, 0, True)  # not valid, no elements, no bytes, no object
    assert function(np.zeros((3, 4))) == (True, 12, 96, False)
    assert "| None" in function.__doc__
    assert "is not an array" in refused(function, [1])


def test_a_default_that_is_none_may_be_left_out():
    assert t.sizes_or_default() == (False, 0, 0, True)
    assert t.optional_size() == t.optional_size(None) == -1
    assert t.optional_size(np.zeros(3)) == 3
    assert "argument 'x' is missing" in refused(t.sizes_or_none)


def test_none_is_never_what_a_call_is_refused_for():
    assert t.second_or_none(None, np.zeros(3, np.float32)) == (False, 3)
    assert t.second_or_none(np.zeros(3), None) == (True, 0)
    assert "argument 'y' has the wrong dtype" in refused(t.second_or_none, None, np.zeros(3))
    assert "argument 'x' is not an array" in refused(t.second_or_none, [1], None)


def test_an_array_that_holds_nothing_can_be_copied_and_not_returned():
    assert t.copy_or_none() is False
    assert t.copy_or_none(np.zeros((2, 2), np.float32)) is True
    a = np.zeros(3)
    assert t.same_or_none(a) is a
    with pytest.raises(RuntimeError, match="the array is empty.*take and return a std::optional"):
        t.same_or_none(None)


# --- signatures -------------------------------------------------------------------------------------------------------

SIGNATURES = {
    "take_uint32": "uint32|writable uint32[...]",
    "take_float32": "float32|writable float32[...]",
    "take_const_float32": "float32|float32[...]",
    "take_complex64": "complex64|writable complex64[...]",
    "take_bool": "bool_|writable bool[...]",
    "take_shape": "float32|writable float32[3, *, 4]",
    "take_rows_of_four": "float32|writable C-contiguous float32[*, *, 4]",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_constraint_stands_in_the_signature(name):
    type, words = SIGNATURES[name].split("|")
    assert getattr(t, name).__doc__ == f"{name}(x: tenon.typing.Array[numpy.{type}, typing.Literal['{words}']]) -> None"


def test_each_overload_has_a_signature():
    array_on = "tenon.typing.Array[typing.Any, typing.Literal['any[...] on {}']]"
    assert t.device_of.__doc__.splitlines() == [f"device_of(arg: {array_on.format(d)}, /) -> str" for d in ("cpu", "cuda")]


RESULTS = {
    "as_numpy": "typing.Annotated[numpy.typing.NDArray[numpy.float32], 'float32[2, 4]']",
    "static_rows": "typing.Annotated[numpy.typing.NDArray[numpy.float32], 'float32[2, 4]']",
    "as_torch": "typing.Annotated[torch.Tensor, 'float32[2, 4]']",
    "as_memoryview": "typing.Annotated[memoryview, 'float64[*, *]']",
    "as_tensor": "tenon.Tensor",
}


@pytest.mark.parametrize("name", RESULTS)
def test_the_result_stands_in_the_signature(name):
    assert getattr(t, name).__doc__ == f"{name}() -> {RESULTS[name]}"


# --- what is taken and what is refused --------------------------------------------------------------------------------

TAKEN = {
    "take_uint32": "uint32",
    "take_float32": "float32",
    "take_const_float32": "float32",
    "take_complex64": "complex64",
    "take_const_complex64": "complex64",
    "take_bool": "bool",
}
TYPES = ["uint32", "float32", "complex64", "bool", "float64", "int32", "uint8", "float16"]


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("type", TYPES)
def test_the_element_type_is_never_guessed(name, type):
    function, a = getattr(t, name), np.ones(1, type)
    if TAKEN[name] == type:
        assert function(a) is None
    else:
        assert (
            f"argument 'x' has the wrong dtype: expected {'' if 'const' in name else 'writable '}{TAKEN[name]}[...], got {type}[1]"
            in refused(function, a)
        )


def test_const_takes_what_may_not_be_written_to():
    for of_type, name in ("float32", "take_{}float32"), ("complex64", "take_{}complex64"), ("int8", "take_{}any"):
        a = frozen(np.ones(1, of_type))
        assert getattr(t, name.format("const_"))(a) is None
        assert "is read-only" in refused(getattr(t, name.format("")), a)


@pytest.mark.parametrize("shape", [(3, 0, 4), (3, 5, 4)])
def test_a_shape_that_fits(shape):
    assert t.take_shape(np.zeros(shape, np.float32)) is None


@pytest.mark.parametrize(("shape", "complaint"), [
    ((3, 5), "has the wrong number of axes"),
    ((3, 5, 4, 6), "has the wrong number of axes"),
    ((2, 5, 4), "has the wrong extent on axis 0"),
    ((3, 5, 6), "has the wrong extent on axis 2"),
])  # fmt: skip
def test_a_shape_that_does_not_fit(shape, complaint):
    assert complaint + ": expected writable float32[3, *, 4]" in refused(t.take_shape, np.zeros(shape, np.float32))


def test_overloads_by_the_order_of_numpys_arrays():
    for order in "CF":
        a = np.zeros((3, 5, 4, 6), order=order)
        assert (t.order_of(a), t.order_of(a[:, 2])) == (order, "?")


def test_overloads_by_the_order_of_pytorchs_tensors():
    torch = need("torch")
    rows = torch.zeros(3, 5)
    columns = rows.t().contiguous().t()
    assert (t.order_of(rows), t.order_of(columns)) == ("C", "F")
    assert (t.order_of(rows[:, 2:5]), t.order_of(columns[1:3])) == ("?", "?")


def test_overloads_by_device():
    assert t.device_of(np.zeros(3)) == "cpu"
    torch = need("torch")
    assert t.device_of(torch.zeros(3)) == "cpu"
    if torch.cuda.is_available():
        assert t.device_of(torch.zeros(3, device="cuda")) == "cuda"


def test_an_array_of_one_column_is_contiguous_both_ways():
    a = np.zeros((2, 1), np.float32)
    for function in t.take_columns, t.take_dense:
        assert function(a) is None
    assert t.take_dense(np.zeros((2, 3), np.float32, order="F")) is None
    assert "wrong memory order" in refused(t.take_dense, np.zeros((4, 6), np.float32)[:, ::2])


SIZES = [(1, 100, 1025), (100, 1, 1025), (0, 100, 1025), (100, 0, 1025), (100, 1025, 0), (100, 0, 0), (0, 0, 0)]


@pytest.mark.parametrize("shape", SIZES)
def test_axes_of_one_and_of_none_are_contiguous(shape):
    assert t.take_rows(np.ones(shape, np.float32)) is None
    assert t.take_rows(need("torch").ones(shape)) is None


@pytest.mark.parametrize("shape", [(0, 100), (100, 0), (1, 100), (100, 1)])
def test_columns_of_one_and_of_none_are_contiguous(shape):
    assert t.take_columns(need("torch").ones(shape).t().contiguous().t()) is None


def test_strides_that_are_no_whole_elements():
    whole = np.zeros((2, 6), np.float32)[:, :4].view(np.complex64)
    assert t.strides_of(whole) == [3, 1]
    assert t.take_complex64(whole) is None
    half = np.zeros((2, 5), np.float32)[:, :4].view(np.complex64)
    for function in t.take_complex64, t.strides_of:
        assert "the step in bytes is not a multiple of the element size" in refused(function, half)


@pytest.mark.parametrize("obj", [[1.0, 2.0], (1.0,), 3.5, "text", object(), {}, range(3)], ids=lambda o: type(o).__name__)
def test_what_is_no_array(obj):
    assert not t.is_array(obj)
    assert f"argument 'x' is not an array: expected any[...] on any device, got {type(obj).__name__}" in refused(t.shape_of, obj)


def test_a_class_is_no_array():
    assert not t.is_array(np.ndarray)
    assert "from the class 'numpy.ndarray'; pass an instance of it" in refused(t.shape_of, np.ndarray)


# --- conversion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["uint32", "bool", "float64", "int8", "float16"])
def test_what_is_converted(type):
    whole = np.ones((2, 2), type)
    strided = np.ones((2, 2, 10), type)[:, :, 4]
    assert (t.square(whole), t.square(strided)) == (1, 1)
    for a in whole, strided:
        assert "wrong dtype" in refused(t.square_as_it_is, a)


def test_order_alone_is_converted():
    a = np.ones((2, 2, 10), np.float32)[:, :, 4]
    assert t.square(a) == 1
    assert "wrong memory order" in refused(t.square_as_it_is, a)
    assert t.square_as_it_is(np.ones((2, 2), np.float32)) == 1


def test_what_pytorch_converts():
    torch = need("torch")
    for a in torch.ones(2, 2, dtype=torch.int32), torch.ones(2, 2, 10)[:, :, 4], torch.ones(2, 2, 10, dtype=torch.int32)[:, :, 4]:
        assert t.square(a) == 1
        refused(t.square_as_it_is, a)


def test_what_jax_converts():
    jnp = need("jax").numpy
    for a in (
        jnp.ones((2, 2), "int32"),
        jnp.ones((2, 2), bool),
        jnp.ones((2, 2, 10))[:, :, 4],
        jnp.ones((2, 2, 10), "int32")[:, :, 4],
    ):
        assert t.square(a) == 1
    for type in "int32", "uint8":
        assert "wrong dtype" in refused(t.square_as_it_is, jnp.ones((2, 2), type))
    assert t.order_of(jnp.zeros((3, 5, 4, 6))) == "C"


def test_shape_is_never_converted():
    assert "wrong extent on axis 1" in refused(t.square, np.ones((2, 3), np.float64))


def test_an_imaginary_part_is_never_dropped():
    """No overload for real numbers takes complex ones."""
    assert "or convertible with narrowing, got complex128[2, 2]" in refused(t.square, np.ones((2, 2), complex))
    for value in 1, np.uint32(1):
        a = np.array([1 + 2j, 3 + 4j])
        assert t.set_first(a, value) == "complex"
        assert a.tolist() == [1, 3 + 4j]


WHOLE_OR_REAL = {"whole": ["int8", "uint8", "int32"], "real": ["uint32", "int64", "float32", "float64"]}


@pytest.mark.parametrize("taken", WHOLE_OR_REAL)
def test_an_overload_is_not_taken_by_what_would_be_cut_down_to_it(taken):
    """Where nanobind takes the first: 1 for 1.5."""
    for type in WHOLE_OR_REAL[taken]:
        assert t.whole_or_real(np.ones(2, type)) == taken
    assert "2. whole_or_real(" in refused(t.whole_or_real, np.ones(2, "complex64"))


def test_elements_that_share_memory_are_not_written_to():
    """Where nanobind's are, each over the other."""
    assert "has elements that share memory" in refused(t.fill, need("torch").ones(1, 4).expand(3, 4))


def test_a_subclass_with_a_module_of_its_own_making():
    class Dynamic(type):
        @property
        def __module__(cls):
            return "".join(["num", "py", ".dynamic"])

    class Derived(np.ndarray, metaclass=Dynamic):
        pass

    assert t.square(np.ones((2, 2), np.uint32).view(Derived)) == 1


def test_rows_are_made_of_anything_and_only_if_need_be():
    for a in np.array([[1, 2], [3, 4]]), need("torch").tensor([[1, 2], [3, 4]]), np.array([[1j, 2], [3, 4]]):
        assert t.in_rows(a) is a
        made = t.in_rows(a.T)
        assert type(made) is type(a) and made is not a
        assert (made == a.T).all() and t.order_of(made) == "C"


# --- elements ---------------------------------------------------------------------------------------------------------


def test_bytes_are_written_to_in_place():
    memory = bytearray(10)
    t.count_up(memory)
    assert memory == bytearray(range(10))
    assert "1. count_up(" in (said := refused(t.count_up, b"ten bytes.")) and "is read-only" in said


def test_the_overload_that_fits_writes():
    for shape in (10,), (10, 3):
        a = np.zeros(shape, np.float32)
        t.count_up(a)
        assert a.ravel().tolist() == list(range(a.size))


def test_an_image():
    image = np.arange(120, dtype=np.uint8).reshape(8, 5, 3)
    expected = np.minimum(255, 2 * image.astype(int))
    t.brighten(image)
    assert (image == expected).all()
    assert "wrong extent on axis 2" in refused(t.brighten, np.zeros((8, 5, 4), np.uint8))
    assert "wrong number of axes" in refused(t.brighten, np.zeros(1, np.uint8))


def test_views_of_every_order():
    expected = [[10 * i + j for j in range(4)] for i in range(3)]
    for function, order in (t.fill, "C"), (t.fill, "F"), (t.fill_rows, "C"), (t.fill_columns, "F"):
        a = np.zeros((3, 4), np.float32, order=order)
        function(a)
        assert a.tolist() == expected


def test_a_view_of_a_type_that_is_looked_at_first():
    for type, factor in ("float32", 2), ("float64", 1):
        a = np.ones((2, 2), type)
        t.double_if_float32(a)
        assert (a == factor).all()
    one_axis = np.ones(4, np.float32)
    t.double_if_float32(one_axis)
    assert (one_axis == 1).all()


def test_complex_elements():
    a = np.array([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]], np.complex64)
    expected = a * (-1 + 2j)
    t.turn(a)
    assert np.allclose(a, expected)
    t.negate_flat(a)
    assert np.allclose(a, -expected)
    t.double_if_float32(a.view(np.float32))
    assert np.allclose(a, -2 * expected)


QUALIFIED = ["by_value", "by_const_ref", "by_rvalue_ref", "open_by_value"]


@pytest.mark.parametrize("name", QUALIFIED)
@pytest.mark.parametrize(
    "make",
    [np.zeros, lambda n: array.array("d", n * [0]), lambda n: memoryview(array.array("d", n * [0]))],
    ids=["numpy", "array", "memoryview"],
)
def test_writable_however_it_is_passed(name, make):
    x = make(5)
    assert getattr(t, name)(x) is True
    assert list(x) == [0, 1.5, 2.5, 0, 0]
    assert t.read_only_says_so(x) is False


@pytest.mark.parametrize("name", QUALIFIED)
def test_read_only_however_it_is_passed(name):
    for x in frozen(np.zeros(5)), memoryview(bytes(40)).cast("d"):
        assert getattr(t, name)(x) is False
        assert list(x) == 5 * [0]
        assert t.read_only_says_so(x) is True


@pytest.mark.parametrize("name", QUALIFIED)
def test_pytorchs_tensors_are_writable_however_they_are_passed(name):
    torch = need("torch")
    x = torch.zeros(5, dtype=torch.float64)
    assert getattr(t, name)(x) is True
    assert x.tolist() == [0, 1.5, 2.5, 0, 0]


def test_jaxs_arrays_are_read_only():
    jax = need("jax")
    x = jax.numpy.zeros(3, "float32")
    assert t.take_const_float32(x) is None
    assert "is read-only" in refused(t.take_float32, x)


# --- is it an array? --------------------------------------------------------------------------------------------------


def test_what_is_an_array():
    a = np.zeros(1)
    for obj in (
        a,
        array.array("d", [1]),
        memoryview(b"xy"),
        bytearray(b"xyz"),
        a.__dlpack__(),
        Speaks(a),
        SpeaksBarely(a),
        t.Matrix(),
    ):
        assert t.is_array(obj), obj
    assert t.is_array(need("torch").zeros(1))
    assert not t.is_array(None)


def test_whoever_has_the_method_alone_is_taken():
    assert t.shape_of(SpeaksBarely(np.zeros((2, 3)))) == [2, 3]


@pytest.mark.skipif(sys.version_info < (3, 15), reason="array.array has no complex numbers before Python 3.15")
def test_complex_numbers_of_pythons_array():
    a = array.array("Zf", [1 + 2j])
    assert t.take_complex64(a) is None and t.take_complex64(memoryview(a)) is None


# --- results ----------------------------------------------------------------------------------------------------------

ROWS = [[1, 2, 3, 4], [5, 6, 7, 8]]
COLUMNS = [[1, 3, 5, 7], [2, 4, 6, 8]]


def test_the_very_object_comes_back():
    torch = need("torch")
    for a in np.array([1, 2, 3]), torch.tensor([1, 2, 3]), array.array("d", [1]), t.as_numpy(), t.as_torch(), t.as_tensor():
        assert t.same(a) is a
    assert "is None" in refused(t.same, None)


def test_a_capsule_that_nobody_takes_frees():
    freed = Freed()
    capsule = t.as_legacy_capsule()
    assert '"dltensor"' in repr(capsule)
    assert freed.count == 0
    del capsule
    assert freed.count == 1


def test_a_capsule_that_numpy_takes():
    class Hands:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    freed = Freed()
    capsule = t.as_legacy_capsule()
    a = np.from_dlpack(Hands())
    del capsule
    assert (a.tolist(), freed.count) == (ROWS, 0)
    del a
    assert freed.count == 1


@pytest.mark.parametrize(("name", "library", "values"), [
    ("as_numpy", "numpy", ROWS),
    ("columns_as_numpy", "numpy", COLUMNS),
    ("as_torch", "torch", ROWS),
    ("as_memoryview", "builtins", ROWS),
    ("columns_as_memoryview", "builtins", COLUMNS),
])  # fmt: skip
def test_memory_lives_as_long_as_the_array(name, library, values):
    freed = Freed()
    a = getattr(t, name)()
    assert type(a).__module__ == library
    assert (tuple(a.shape), a.tolist(), freed.count) == ((2, 4), values, 0)
    a[1, 2] = 9  # it may be written to
    assert a[1, 2] == 9
    del a
    assert freed.count == 1


def test_jax_gets_its_own_unless_the_memory_is_aligned():
    jax = need("jax")
    freed = Freed()
    a = t.as_jax()
    assert isinstance(a, jax.Array) and a.tolist() == ROWS
    del a
    assert freed.count == 1


def test_an_array_without_axes_is_returned():
    freed = Freed()
    a = t.scalar()
    assert (a.shape, a[()]) == ((), 1)
    del a
    assert freed.count == 1


def test_an_array_without_elements_is_returned():
    a = t.empty()
    assert (a.shape, a.dtype) == ((0,), np.float32)
    assert t.as_tensor().shape == (2, 4)


def test_halves_without_a_type_in_cplusplus():
    a = t.halves()
    assert (a.dtype, a.tolist()) == (np.float16, [1, 2])
    b = t.bfloats()
    assert (str(b.dtype), b.shape) == ("bfloat16", (2,))
    assert need("torch").from_dlpack(b).tolist() == [1, 2]


def test_an_element_type_that_is_known_when_it_runs():
    for is_float, type in (True, "float32"), (False, "int32"):
        a = t.one_of_two(is_float)
        assert (a.shape, a.dtype, a[()]) == ((), type, 1)


def test_memory_that_is_never_freed_is_shown_in_place():
    for function, values in (t.static_rows, ROWS), (t.static_columns, COLUMNS):
        one, other = function(), function()
        assert one.tolist() == other.tolist() == values
        assert one.ctypes.data == other.ctypes.data
        assert not one.flags.writeable  # the type says const
        with pytest.raises(ValueError, match="read-only"):
            one[0, 0] = 1
        assert t.same(one) is one


def test_memory_on_the_stack_is_copied_by_a_vector():
    assert t.from_stack().tolist() == t.cast_to_object().tolist() == [1, 2, 3]


def test_two_arrays_of_one_owner():
    freed = Freed()
    first, second = t.two_of_one()
    assert (first.tolist(), second.tolist()) == ([1, 2], [3, 4, 5])
    del first
    assert (second.tolist(), freed.count) == ([3, 4, 5], 0)
    del second
    assert freed.count == 1


def test_a_memoryview_that_is_read_only_stays_so():
    view = t.as_const_memoryview()
    assert view.readonly
    with pytest.raises((TypeError, BufferError)):
        io.BytesIO(struct.pack("8f", *range(8))).readinto(view.obj)
    assert view.tolist() == ROWS


def test_a_buffer_is_given_only_as_it_can_be_read():
    with pytest.raises(BufferError, match="make a contiguous copy"):
        struct.unpack_from("8f", t.columns_as_memoryview().obj)
    assert struct.unpack_from("8d", t.as_memoryview().obj) == (1, 2, 3, 4, 5, 6, 7, 8)


# --- a tensor that speaks to the array API ----------------------------------------------------------------------------


def test_a_capsule_of_the_version_that_is_asked_for():
    x = t.as_tensor()
    assert x.__dlpack_device__() == (1, 0)
    for asked, name in (
        ({}, "dltensor"),
        ({"max_version": None}, "dltensor"),
        ({"max_version": (0, 0)}, "dltensor"),
        ({"max_version": (1, 0)}, "dltensor_versioned"),
    ):
        assert f'"{name}"' in repr(x.__dlpack__(**asked))


def test_what_else_can_be_asked():
    x = t.as_tensor()
    for asked in {"copy": None}, {"copy": False}, {"dl_device": None}, {"dl_device": (1, 0)}, {"stream": None}:
        assert '"dltensor"' in repr(x.__dlpack__(**asked))
    with pytest.raises(BufferError, match="cannot be exported to"):
        x.__dlpack__(dl_device=(99, 0))
    with pytest.raises(ValueError, match="stream must be None for a tensor in host memory"):
        x.__dlpack__(stream=0)
    with pytest.raises(TypeError, match="max_version must be None or a"):
        x.__dlpack__(max_version=("1", "0"))
    with pytest.raises(TypeError, match="keyword arguments only"):
        x.__dlpack__(0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'version'"):
        x.__dlpack__(version=1)


def test_keywords_are_known_by_their_letters():
    x = t.as_tensor()
    with pytest.raises(BufferError):
        x.__dlpack__(**{"".join(["dl_", "device"]): (99, 0)})
    assert '"dltensor"' in repr(x.__dlpack__(**{"".join(["co", "py"]): False}))


def test_a_copy_is_made_where_one_is_asked_for():
    """Where nanobind's refuses."""
    freed = Freed()
    x = t.as_tensor()
    a = np.from_dlpack(x, copy=True)
    b = np.from_dlpack(x)
    del x
    b[0, 0] = 9
    assert (a[0, 0], freed.count) == (1, 0)
    del b
    assert (freed.count, a.tolist()) == (1, ROWS)


def test_a_tensor_outlives_itself_in_whoever_reads_it():
    for read in memoryview, np.asarray, np.from_dlpack, need("torch").from_dlpack, lambda x: x.__dlpack__():
        freed = Freed()
        x = t.as_tensor()
        y = read(x)
        del x
        assert freed.count == 0
        del y
        assert freed.count == 1


def test_memory_behind_an_offset():
    freed = Freed()
    x = t.behind_an_offset()
    assert np.from_dlpack(x).tolist() == memoryview(x).tolist() == ROWS
    assert t.shape_of(x) == [2, 4]
    del x
    assert freed.count == 1


def test_a_device_with_handles_for_addresses():
    """What lies behind an offset has the handle of the whole, which nobody adds to."""
    for offset in 0, 4:
        x = t.on_metal(offset)
        assert x.__dlpack_device__() == (8, 0)
        # device, number, two extents, the handle is as it was, and the offset
        assert t.read_metal(x) == t.read_metal(Speaks(x)) == (8, 0, 2, 3, True, offset)
    assert "is on the wrong device: expected C-contiguous float32[*, *] on metal" in refused(
        t.read_metal, np.zeros((2, 3), np.float32)
    )
    assert "in host memory" in refused(t.same, x)


def test_what_a_producer_is_asked_for():
    """DLPack 1.x, since no other says that memory is read-only; a producer that knows no keywords is asked again."""
    x = Speaks(frozen(np.zeros((2, 3), np.float32)))
    assert t.shape_of(x) == [2, 3]
    assert x.asked["max_version"] >= (1, 0)
    assert "is read-only" in refused(t.take_float32, x)


# --- memory inside of objects -----------------------------------------------------------------------------------------


def test_memory_inside_of_an_object_keeps_the_object():
    freed = Freed()
    m = t.Matrix()
    gone = weakref.ref(m) if type(m).__weakrefoffset__ else None
    one, other = m.shown(), m.shown()
    m.add(1)
    del m
    assert gone is None or gone() is not None
    one[1, 2] += 1
    assert (other[1, 2], other[2, 1], freed.count) == (2, 1, 0)
    assert one.flags.f_contiguous
    del one
    assert freed.count == 0
    del other
    assert freed.count == 1


def test_references_to_the_object_are_as_many_as_arrays():
    m = t.Matrix()
    before = sys.getrefcount(m)
    arrays = [m.shown() for _ in range(5)]
    assert sys.getrefcount(m) == before + 5
    del arrays
    gc.collect()
    assert sys.getrefcount(m) == before


def test_a_copy_of_memory_inside_of_an_object():
    freed = Freed()
    m = t.Matrix()
    a = m.copied()
    m.add(1)
    del m
    assert (freed.count, a.sum()) == (1, 0)


def test_an_object_that_moves_into_the_array():
    a = t.made()
    freed = Freed()
    assert (a.shape, a.sum(), freed.count) == ((4, 4), 16, 0)
    del a
    assert freed.count == 1


def test_an_object_that_is_an_array_itself():
    freed = Freed()
    m = t.Matrix()
    assert m.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(m.__dlpack__()) and '"dltensor_versioned"' in repr(m.__dlpack__(max_version=(1, 2)))
    a, b = np.from_dlpack(m), memoryview(m)
    m.add(0.5)
    assert a[3, 3] == b[3, 3] == 0.5
    assert t.shape_of(m) == [4, 4]
    del m, a
    assert freed.count == 0
    del b
    assert freed.count == 1


def test_a_member_that_is_an_array():
    a = np.ones(3, np.float32)
    keeper = t.Keeper(a)
    assert keeper.value is a
    b = np.zeros((2, 2), np.float32)
    before = sys.getrefcount(b)
    keeper.value = b
    assert keeper.value is b
    assert "has the wrong dtype" in refused(setattr, keeper, "value", np.zeros(3))
    del keeper
    gc.collect()
    assert sys.getrefcount(b) == before


def test_a_member_in_a_cycle_is_collected():
    class Derived(np.ndarray):
        pass

    a = np.ones(3, np.float32).view(Derived)
    a.keeper = t.Keeper(a)
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


# --- references and the end of the process ----------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_a_call_leaves_no_reference(library):
    module = need(library)
    zeros = module.numpy.zeros if library == "jax" else module.zeros
    a = zeros((2, 3), dtype=getattr(module, "float32", None) or "float32")
    before = sys.getrefcount(a)
    for _ in range(10):
        t.shape_of(a)
        t.take_const_float32(a)
        assert t.same(a) is a
        refused(t.take_uint32, a)
        refused(t.count_up, a)
    gc.collect()
    assert sys.getrefcount(a) <= before


LIBRARIES = {"tensorflow": "zeros((2, 3))", "paddle": "zeros((2, 3))"}
OF_ANOTHER = """
import {library}
import bound_ndarray_nanobind as t
x = {library}.{make}
assert t.shape_of(x) == [2, 3] and t.is_array(x) and t.same(x) is x
t.take_const_float32(x)
"""


@pytest.mark.slow  # seconds to import them; test_bound_results.py has a quick one
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_tensor_of_another_library(library):
    """In a process of its own: these two do not bear each other."""
    if not has(library):
        pytest.skip(f"{library} is not installed")
    run_isolated(OF_ANOTHER.format(library=library, make=LIBRARIES[library]))


KEPT = """
import sys
import numpy
import bound_ndarray_nanobind as t
keeper = t.Keeper(numpy.ones(3, "float32"))
sys.kept = [t.as_numpy(), t.as_tensor(), keeper, t.Matrix().shown(), t.on_metal(), t.static_rows()]
sys.kept.append(sys.kept)
print("done")
"""


def test_what_is_kept_goes_with_the_process():
    assert run_isolated(KEPT) == "done\n"
