# tests/python/test_like_copies.py: a library whose arrays hand out copies gets, from empty_like and bound functions, arrays with what was written.
from __future__ import annotations

import sys
import types

import pytest
from isolation import isolated, run_isolated
from real_support import has

pytestmark = pytest.mark.skipif(not has("numpy"), reason="numpy is not installed")
N = 1 << 20  # memory of a size that goes back to the system as soon as it is freed


def library(flagged: bool):
    """Its arrays lend memory that nothing keeps but the capsule, and say so or do not."""
    import numpy as np

    class Array:
        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **keywords):
            keywords.pop("copy", None)
            return self.values.__dlpack__(copy=True, **keywords) if flagged else self.values.copy().__dlpack__(**keywords)

        def __dlpack_device__(self):
            return (1, 0)

        def __array_namespace__(self, api_version=None):
            return lib

    Array.__module__ = "copylib"
    lib = sys.modules["copylib"] = types.ModuleType("copylib")
    lib.empty = lambda shape, dtype=None: Array(np.empty(shape, dtype or "float32"))
    lib.from_dlpack = lambda x: Array(np.from_dlpack(x))
    return Array, np


def used(binder: str, flagged: bool) -> None:
    import importlib

    Array, np = library(flagged)
    if binder == "exports":
        made = importlib.import_module("tenon_exports").empty_like(Array(np.zeros(3, "f4")), (N,), "float32")
        assert type(made) is Array and made.values.shape == (N,) and made.values.sum() is not None
        return
    bound = importlib.import_module(f"bound_{binder}")
    for _ in range(3):
        made = bound.scale(Array(np.ones(N, "f4")), 3.0)
        assert type(made) is Array and (made.values == 3).all(), "what was written is in it"


@isolated
def test_empty_like():
    used("exports", False)
    used("exports", True)


@isolated
def test_bound_capi():
    used("capi", False)
    used("capi", True)


@pytest.mark.skipif(not has("nanobind"), reason="nanobind is not installed")
@isolated
def test_bound_nanobind():
    used("nanobind", False)
    used("nanobind", True)


@pytest.mark.skipif(not has("pybind11"), reason="pybind11 is not installed")
@isolated
def test_bound_pybind11():
    used("pybind11", False)
    used("pybind11", True)


@isolated
def test_what_is_remembered_of_a_library_is_nobodys_to_find():
    """Functions of a library are kept where the collector shows them to nobody, who could take them away."""
    import gc

    import tenon_exports

    Array, np = library(False)
    assert type(tenon_exports.there_and_back(np.ones(3), Array(np.ones(3)))) is Array
    namespace = vars(sys.modules["copylib"])
    assert [found for found in gc.get_referrers(namespace["from_dlpack"]) if found is not namespace] == []


def handed_out(like, dtype: str, offset: int, *, described: bool = False):
    """What becomes of memory of the caller's so many bytes off 64: the array or the refusal, and where it was."""
    import ctypes

    import tenon_exports

    store = (ctypes.c_char * 256)()
    address = ctypes.addressof(store) + -ctypes.addressof(store) % 64 + offset
    counter = tenon_exports.Counter()
    make = tenon_exports.described_like if described else tenon_exports.like
    try:
        made = make(counter, like, address=address, shape=(4,), dtype=dtype)
    except BufferError as e:
        assert counter.releases == 1
        return str(e), address, store
    return made, address, store


def complex_numbers(package: str) -> None:
    import importlib

    import tenon

    like = importlib.import_module(package).ones([2])
    words = f"tenon: {package} does not take this tensor: its complex numbers are not aligned to 16 bytes, as {package} reads them"
    for described in (False, True):
        told, address, _store = handed_out(like, "complex128", 8, described=described)
        assert told == words + "; make a copy of it"
        for dtype, offset in (("complex128", 16), ("complex128", 0), ("complex64", 8), ("float64", 8), ("float32", 4)):
            made, there, _store = handed_out(like, dtype, offset, described=described)
            assert type(made) is type(like) and made.data_ptr() == there, (dtype, offset)
    with pytest.raises(BufferError) as caught:
        tenon.from_pointer(address, (4,), "complex128").to(package)
    assert str(caught.value) == words + "; pass copy=True"


@pytest.mark.parametrize("package", ["torch", "paddle"])
def test_complex_numbers_off_16_bytes_are_refused(package):
    """Both read them by instructions that end the process there; `Tensor.to` refuses them in the same words."""
    if not has(package):
        pytest.skip(f"{package} is not installed")
    run_isolated(f"import test_like_copies; test_like_copies.complex_numbers({package!r})")


@isolated
def test_complex_numbers_off_16_bytes_by_from_dlpack():
    """A library of the same name that has no exchange table."""
    Array, np = library(False)
    Array.__module__ = "paddle"
    sys.modules["paddle"] = sys.modules.pop("copylib")
    assert "not aligned to 16 bytes" in handed_out(Array(np.zeros(2)), "complex128", 8)[0]
    assert type(handed_out(Array(np.zeros(2)), "complex128", 16)[0]) is Array


def memory_of_tensorflow() -> None:
    import tensorflow

    import tenon

    for offset in (0, 16):
        made, address, _store = handed_out(tensorflow.ones([2]), "float32", offset)
        shared = tenon.asdlpack(tensorflow.experimental.dlpack.to_dlpack(made))
        assert (shared.data_ptr == address) is (offset == 0)


@pytest.mark.skipif(not has("tensorflow"), reason="tensorflow is not installed")
def test_tensorflow_gets_a_copy_of_memory_off_64_bytes():
    run_isolated("import test_like_copies; test_like_copies.memory_of_tensorflow()")
