# tests/python/test_bound_results.py: results that name their library are arrays of it, and what the function says; an `out` that is given is what comes back.
from __future__ import annotations

import array
import gc
import sys
import weakref

import pytest
from bound_results import of_binder, results  # noqa: F401
from isolation import run_isolated
from quick import rest_is_slow
from real_support import has, need

# --- the library that is named ----------------------------------------------------------------------------------------


def test_an_array_of_numpy(results):
    np = need("numpy")
    a = results.numpy_2d(2, 3)
    assert type(a) is np.ndarray
    assert (a.dtype, a.shape, a.tolist()) == (np.float32, (2, 3), [[0, 1, 2], [3, 4, 5]])
    a[0, 0] = 7  # it may be written to, and nobody else has it
    assert (a.flags.writeable, a[0, 0]) == (True, 7)


def test_of_any_rank_and_from_a_vector(results):
    need("numpy")
    assert results.numpy_any(3).tolist() == [0, 1, 2]
    assert results.numpy_any(0).tolist() == []


def test_const_elements_are_read_only(results):
    need("numpy")
    a = results.numpy_const(3)
    assert not a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1


def test_a_tensor_of_torch(results):
    torch = need("torch")
    t = results.torch_1d(3)
    assert type(t) is torch.Tensor
    assert (t.dtype, t.tolist()) == (torch.float32, [0, 1, 2])
    t += 1
    assert t.tolist() == [1, 2, 3]


def test_an_array_of_jax(results):
    jax = need("jax")
    a = results.jax_1d(3)
    assert isinstance(a, jax.Array)
    assert a.tolist() == [1, 1, 1]


OF_LIBRARY = """
import bound_results_{binder} as results
t = results.{function}(3)
assert type(t).__module__.split(".")[0] == "{library}", type(t)
assert t.numpy().tolist() == [0, 1, 2]
"""


@pytest.mark.parametrize("binder", rest_is_slow(["capi", "pybind11", "nanobind"], "nanobind"))
@pytest.mark.parametrize(("function", "library"), [("tensorflow_1d", "tensorflow"), ("paddle_1d", "paddle")])
def test_a_tensor_of(binder, function, library):
    """In processes of their own: not all of these libraries bear one another."""
    if not has(library):
        pytest.skip(f"{library} is not installed")
    if binder != "capi":
        pytest.importorskip(binder)
    run_isolated(OF_LIBRARY.format(binder=binder, function=function, library=library))


def test_a_memoryview(results):
    m = results.memory_1d(3)
    assert type(m) is memoryview
    assert (m.format, m.shape, m.readonly, m.tolist()) == ("f", (3,), True, [0, 1, 2])
    m = results.memory_2d(2, 3)
    assert (m.shape, m.readonly, m.tolist()) == ((2, 3), False, [[0, 1, 2], [3, 4, 5]])
    m[1, 2] = 9.0
    assert m[1, 2] == 9


def test_a_tensor_of_the_callers_as_another_librarys(results):
    np, torch = need("numpy"), need("torch")
    a = np.arange(3.0)
    t, m = results.torch_of(a), results.memory_of(a)
    assert (type(t), type(m)) == (torch.Tensor, memoryview)
    a[1] = 7  # nothing was copied
    assert t.tolist() == m.tolist() == [0, 7, 2]


def test_in_containers(results):
    np, torch = need("numpy"), need("torch")
    assert results.maybe_numpy(0) is None
    assert type(results.maybe_numpy(2)) is np.ndarray
    assert [type(t) for t in results.list_of_torch(3)] == [torch.Tensor] * 3
    assert [t.tolist() for t in results.list_of_torch(3)] == [[], [0], [0, 1]]
    a, t = results.two_libraries(2)
    assert (type(a), type(t)) == (np.ndarray, torch.Tensor)
    a, n = results.numpy_and_number(2)
    assert (a.tolist(), n) == ([0, 1], 2)
    assert {name: a.tolist() for name, a in results.dict_of_numpy(2).items()} == {"first": [0, 1]}


def test_a_tensor_that_is_kept_is_shared(of_binder):
    np = need("numpy")
    a = np.ones(3, np.float32)
    keeper = of_binder.Keeper(a)
    one, other = keeper.numbers(), keeper.numbers()
    del keeper
    a[1] = 5
    assert one.tolist() == other.tolist() == [1, 5, 1]
    of_float64 = of_binder.Keeper(np.ones(3))
    with pytest.raises(RuntimeError, match="declared to return float32"):
        of_float64.numbers()


def test_memory_goes_with_the_array(results):
    np = need("numpy")

    class Source(np.ndarray):
        pass

    source = np.ones(3).view(Source)
    gone = weakref.ref(source)
    a = results.numpy_of(source)
    del source
    gc.collect()
    assert gone() is not None and a.tolist() == [1, 1, 1]
    del a
    gc.collect()
    assert gone() is None


# --- what is not as the function says -----------------------------------------------------------------------------------


def test_another_element_type(results):
    np = need("numpy")
    assert results.numpy_float64(np.ones(3)).tolist() == [1, 1, 1]
    said = r"^tenon: the function is declared to return float64\[\*\] as numpy has it, and returned float32\[3\], on cpu, which has the wrong dtype$"
    with pytest.raises(RuntimeError, match=said):
        results.numpy_float64(np.ones(3, np.float32))


def test_another_rank_shape_or_memory(results):
    np = need("numpy")
    with pytest.raises(RuntimeError, match=r"float64\[2, 3\], on cpu, which has the wrong number of axes$"):
        results.numpy_float64(np.ones((2, 3)))
    assert results.numpy_threes(2, 3).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"declared to return float32\[\*, 3\] .* returned float32\[2, 4\], on cpu, which has the wrong extent on axis 1$"):
        results.numpy_threes(2, 4)
    with pytest.raises(RuntimeError, match=r"returned float64\[3\], read-only, on cpu, which is read-only$"):
        results.numpy_float64(np.broadcast_to(np.float64(1), (3,)))


def test_a_tensor_that_could_not_be_made(results):
    need("numpy")
    with pytest.raises((BufferError, ValueError), match="shape"):
        results.impossible(3)


def test_a_tensor_that_was_moved_away(results):
    with pytest.raises(BufferError, match="the tensor is empty: nothing was put into it, or it was moved away"):
        results.numpy_moved()


def test_one_of_a_list(results):
    need("numpy")
    with pytest.raises(RuntimeError, match=r"declared to return float32\[\*, \*\] .* returned float32\[2\]"):
        results.list_of_wrong(2)


MISSING = """
import sys
import bound_results_{binder} as results
sys.modules["{library}"] = None      # as if it were not installed
for _ in range(2):
    try:
        results.{function}(3)
    except ImportError as error:
        assert "tenon: {library} is not installed; pip install {distribution}" in str(error), error
        assert type(error.__cause__) is ModuleNotFoundError
    else:
        raise AssertionError("made")
"""


@pytest.mark.parametrize("binder", ["capi", "pybind11", "nanobind"])
@pytest.mark.parametrize(
    ("function", "library", "distribution"),
    [
        ("numpy_any", "numpy", "numpy"), ("torch_1d", "torch", "torch"), ("jax_1d", "jax", "jax"),
        ("cupy_1d", "cupy", "cupy-cuda13x"), ("paddle_1d", "paddle", "paddlepaddle"), ("list_of_torch", "torch", "torch"),
    ],
)  # fmt: skip
def test_a_library_that_is_not_there(binder, function, library, distribution):
    if binder != "capi":
        pytest.importorskip(binder)
    run_isolated(MISSING.format(binder=binder, function=function, library=library, distribution=distribution))


UNIMPORTED = """
import sys
import bound_results_{0} as results
assert "numpy" not in sys.modules
a = results.numpy_any(2)
assert type(a) is sys.modules["numpy"].ndarray and a.tolist() == [0, 1]
"""


@pytest.mark.parametrize("binder", ["capi", "pybind11", "nanobind"])
def test_a_library_that_nobody_has_imported_is(binder):
    need("numpy")
    if binder != "capi":
        pytest.importorskip(binder)
    run_isolated(UNIMPORTED.format(binder))


SIGNATURES = {
    "numpy_2d": "typing.Annotated[numpy.typing.NDArray[numpy.float32], 'float32[*, *]']",
    "numpy_any": "typing.Annotated[numpy.typing.NDArray[numpy.float32], 'float32[...]']",
    "numpy_const": "typing.Annotated[numpy.typing.NDArray[numpy.float32], 'float32[*]']",
    "numpy_threes": "typing.Annotated[numpy.typing.NDArray[numpy.float32], 'float32[*, 3]']",
    "numpy_of": "typing.Annotated[numpy.typing.NDArray[typing.Any], 'any[...]']",
    "torch_1d": "typing.Annotated[torch.Tensor, 'float32[*]']",
    "jax_1d": "typing.Annotated[jax.Array, 'float32[*]']",
    "cupy_1d": "typing.Annotated[cupy.ndarray, 'float32[*]']",
    "tensorflow_1d": "typing.Annotated[tensorflow.Tensor, 'float32[*]']",
    "paddle_1d": "typing.Annotated[paddle.Tensor, 'float32[*]']",
    "memory_1d": "typing.Annotated[memoryview, 'float32[*]']",
    "list_of_torch": "list[typing.Annotated[torch.Tensor, 'float32[*]']]",
}


@pytest.mark.parametrize("function", SIGNATURES)
def test_the_signature_names_it(results, function):
    made = getattr(results, function)
    if hasattr(made, "__nb_signature__"):
        said = made.__nb_signature__[0][0]
    else:
        said = getattr(made, "__text_signature__", None) or ""
        said += made.__doc__ or ""
    assert f"-> {SIGNATURES[function]}" in said


# --- out= ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_out_is_what_comes_back(results, library):
    module = need(library)
    x = module.ones((2, 3), dtype=module.float32)
    for fresh in (results.scale(x), results.scale(x, None), results.scale(x, out=None)):
        assert type(fresh) is type(x)
        assert fresh.tolist() == [[2, 2, 2]] * 2
    out = module.zeros((2, 3), dtype=module.float32)
    assert results.scale(x, out=out) is out
    assert out.tolist() == [[2, 2, 2]] * 2
    assert results.scale(x, x) is x  # in place
    assert x.tolist() == [[2, 2, 2]] * 2


def test_out_of_another_library(results):
    np, torch = need("numpy"), need("torch")
    out = torch.zeros(3)
    assert results.scale(np.ones(3, np.float32), out=out) is out
    assert out.tolist() == [2, 2, 2]


def test_out_of_another_shape_than_the_result(results):
    np = need("numpy")
    x = np.ones((2, 3), np.float32)
    said = r"^tenon: the array given for the result has the shape \[3, 2\], and the result the shape \[2, 3\]$"
    for out in (np.zeros((3, 2), np.float32), np.zeros((3, 2), np.float32)):
        with pytest.raises(ValueError, match=said):
            results.scale(x, out=out)
        assert not out.any()
    with pytest.raises(ValueError, match=r"has the shape \[6\]"):
        results.scale(x, out=np.zeros(6, np.float32))


def test_out_that_does_not_fit_the_parameter(results):
    np = need("numpy")
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="argument 'out' has the wrong dtype: expected writable float32"):
        results.scale(x, out=np.zeros(3))
    with pytest.raises(TypeError, match="argument 'out' is read-only"):
        results.scale(x, out=np.broadcast_to(np.float32(0), (3,)))


def test_out_has_its_own_element_type_and_shape(results):
    np = need("numpy")
    x = np.arange(3, dtype=np.float32)
    fresh = results.outer(x)
    assert (fresh.dtype, fresh.tolist()) == (np.float64, [[0, 0, 0], [0, 1, 2], [0, 2, 4]])
    out = np.ones((3, 6))[:, ::2]
    assert results.outer(x, out=out) is out
    assert out.tolist() == fresh.tolist()


def test_out_of_any_element_type(results):
    np = need("numpy")
    assert results.like_any(np.ones((2, 2), np.int16)).dtype == np.int16


# --- inputs that are no library's arrays ----------------------------------------------------------------------------------


def series_of_pandas():
    need("pyarrow")  # by which pandas gives its memory
    return need("pandas").Series([1.0, 2.0], dtype="float32")


def column_of_polars():
    return need("polars").Series([1.0, 2.0], dtype=need("polars").Float32)


def memory_of_python(kind):
    import array
    import ctypes

    made = array.array("f", [1, 2])
    return {
        "array": made, "memoryview": memoryview(made), "memoryview of bytes": memoryview(bytes(made)).cast("f"),
        "ctypes": (ctypes.c_float * 2)(1, 2),
    }[kind]  # fmt: skip


SHOWN = {
    "pandas": series_of_pandas, "polars": column_of_polars,
    **{kind: lambda kind=kind: memory_of_python(kind) for kind in ("array", "memoryview", "memoryview of bytes", "ctypes")},
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_memory_alone_is_answered_in_numpy(results, name):
    np = need("numpy")
    x = SHOWN[name]()
    for _ in range(2):  # the second time it is remembered
        y = results.scale(x)
        assert (type(y), y.dtype, y.tolist()) == (np.ndarray, np.float32, [2, 4])


@pytest.mark.parametrize("name", ["bytes", "bytearray", "PIL"])
def test_bytes_and_images_are_answered_in_numpy(results, name):
    np = need("numpy")
    if name == "PIL":
        x = need("PIL.Image").new("RGB", (3, 2))
        shape = (2, 3, 3)
    else:
        x, shape = {"bytes": b"ab", "bytearray": bytearray(b"ab")}[name], (2,)
    y = results.like_any(x)
    assert (type(y), y.dtype, y.shape, y.flags.writeable) == (np.ndarray, np.uint8, shape, True)


def test_a_tensor_is_answered_by_a_tensor(results):
    np = need("numpy")
    import tenon

    y = results.scale(tenon.asdlpack(np.ones(2, np.float32)))
    assert type(y) is tenon.Tensor
    assert np.asarray(y).tolist() == [2, 2]


NO_NUMPY = """
import array, sys
sys.modules["numpy"] = None
import tenon
import bound_results_{0} as results
for _ in range(2):
    y = results.scale(array.array("f", [1, 2]))
    assert type(y) is tenon.Tensor, type(y)
    assert memoryview(y).tolist() == [2, 4]
"""


@pytest.mark.parametrize("binder", ["capi", "pybind11", "nanobind"])
def test_without_numpy_it_is_a_tensor(binder):
    if binder != "capi":
        pytest.importorskip(binder)
    run_isolated(NO_NUMPY.format(binder))


# --- what a function throws for an exception of Python's ---------------------------------------------------------------

SAID = "it does not have as many elements as the vector"


@pytest.mark.parametrize("where", ["attached", "released", "another thread"])
def test_it_is_that_exception_wherever_it_came_up(results, where, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda told: None)  # a thread of its own has nobody to tell
    x = array.array("f", [1])
    for _ in range(2):
        with pytest.raises(BufferError, match=SAID):
            results.or_raise_elsewhere(x, where)


def test_it_says_so_when_there_is_none(results):
    with pytest.raises(RuntimeError, match="no Python exception is pending: it was cleared"):
        results.throw_for_nothing(array.array("f", [1]))


def test_a_function_without_arrays_raises_it(results):
    with pytest.raises(BufferError, match=SAID) as raised:
        results.raise_without_arrays()
    assert raised.value.__cause__ is None and raised.value.__context__ is None


def test_what_is_caught_can_be_read_and_thrown_again(results):
    assert SAID in results.catch_and("go on")
    with pytest.raises(BufferError, match=SAID):
        results.catch_and("throw it")


def test_a_new_result_of_a_set_of_types_has_the_type_of_the_argument(results):
    np = need("numpy")
    for dtype in ("float32", "float64"):
        x = np.ones((2, 3), dtype)
        made = results.like_set(x)
        assert (made.dtype, made.shape, made is x) == (dtype, (2, 3), False)
        assert results.like_set(x, x) is x
