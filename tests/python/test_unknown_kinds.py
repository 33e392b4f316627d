# tests/python/test_unknown_kinds.py: element types and devices without a name here are carried by every import and by DLPack's exports;
# only what must interpret them refuses, in our words.
import ctypes
import importlib
import pickle

import fakes
import numpy as np
import pytest
import tenon
import tenon_probe
from producers import exactly_once

#: DLPack triple, name, bytes of six elements.
ELEMENTS = {
    "newer code": ((99, 16, 1), "dtype(code=99, bits=16, lanes=1)", 12),
    "vector": ((2, 32, 4), "dtype(code=2, bits=32, lanes=4)", 96),
    "packed vector": ((0, 4, 2), "dtype(code=0, bits=4, lanes=2)", 6),
    "odd width": ((0, 24, 1), "dtype(code=0, bits=24, lanes=1)", 18),
    "less than a byte": ((99, 3, 1), "dtype(code=99, bits=3, lanes=1)", 3),
    "bits": ((6, 1, 1), "dtype(code=6, bits=1, lanes=1)", 1),
    "complex bfloat16": ((18, 32, 1), "bcomplex32", 24),
    "float128": ((2, 128, 1), "dtype(code=2, bits=128, lanes=1)", 96),
}
DEVICES = {
    (19, 0): "tpu:0",
    (20, 0): "tpu_host:0",
    (21, 3): "ascend:3",
    (5, 0): "device(5):0",
    (99, 7): "device(99):7",
    (2**31 - 1, 0): f"device({2**31 - 1}):0",
}
of_elements = pytest.mark.parametrize("triple, name, nbytes", ELEMENTS.values(), ids=ELEMENTS.keys())
of_devices = pytest.mark.parametrize("pair, name", DEVICES.items(), ids=DEVICES.values())
MEMORY = bytes(range(128))


def struct_of(capsule):
    seen = tenon.inspect(capsule).struct
    return seen.dtype, seen.device, seen.data


def made(triple):
    return fakes.Struct(shape=(2, 3), data=MEMORY, dtype=triple)


# --- carried ------------------------------------------------------------------------------------------


@of_elements
def test_F44_C17_elements_are_carried(triple, name, nbytes):
    struct = made(triple)
    with exactly_once(struct):
        t = tenon.asdlpack(struct.capsule())
        assert (t.dtype, t.dtype.triple, t.nbytes, t.itemsize) == (name, triple, nbytes, -(-triple[1] * triple[2] // 8))
        assert t.dtype == tenon.dtype(name) == triple and pickle.loads(pickle.dumps(t.dtype)) == t.dtype
        assert name in repr(t) and name in t._repr_html_() and name in str(tenon.inspect(t))
        for options in ({"max_version": (1, 3)}, {}):
            assert struct_of(t.__dlpack__(**options)) == (triple, (1, 0), struct.address), options
        again = tenon.asdlpack(t.__dlpack__(max_version=(1, 3)))
        lent = tenon.asdlpack(t, stream=-1)
        assert (again.dtype, again.data_ptr, lent.dtype, lent.data_ptr) == (name, t.data_ptr) * 2
        del t, again, lent


@of_elements
def test_F44_cpp_holds_them(triple, name, nbytes):
    struct = made(triple)
    with exactly_once(struct):
        held = tenon_probe.hold(struct.capsule())
        assert held.describe()["dtype"] == name
        held.drop()


@of_devices
def test_C23_devices_are_carried(pair, name):
    struct = fakes.Struct(shape=(2, 3), device=pair)
    with exactly_once(struct):
        t = tenon.asdlpack(struct.capsule())
        assert (t.device, t.device.pair) == (name, pair) and t.device == tenon.device(name) == pair
        assert not t.device.is_host and name in repr(t) and name in t._repr_html_() and name in str(tenon.inspect(t))
        assert t.__dlpack_device__() == pair
        assert struct_of(t.__dlpack__(max_version=(1, 3)))[1] == pair
        assert tenon.asdlpack(t, stream=-1).device == pair
        del t


@of_devices
def test_a_pointer_on_such_a_device(pair, name):
    t = tenon.from_pointer(0x7F0000001000, (2, 3), "float32", device=pair)
    assert (t.device, t.device.pair) == (name, pair) and t.__dlpack_device__() == pair
    assert tenon.from_pointer(0x7F0000001000, (2,), "float32", device=name).device == pair


def test_names_of_devices_are_read_back():
    for text in ("device(0):0", "device(-1):0", "device():0", "device(1", "device(99", "device(99)x:0", "device(99):-1", "device(2):1"):
        with pytest.raises(TypeError, match="is no device"):
            tenon.device(text)
    assert tenon.device("device(99)") == (99, 0)


def test_elements_of_whole_bytes_are_copied():
    for triple, name, _ in ELEMENTS.values():
        struct = fakes.Struct(shape=(2, 3), strides=(1, 2), data=MEMORY, dtype=triple)
        size = triple[1] * triple[2] // 8
        with exactly_once(struct):
            if triple[1] * triple[2] % 8:
                with pytest.raises(BufferError, match="sub-byte|whole bytes|parts of bytes|fewer than 8 bits|contiguous"):
                    tenon.asdlpack(struct.capsule(), copy=True)
                continue
            t = tenon.asdlpack(struct.capsule(), copy=True)
            assert t.dtype == name and t.is_contiguous
            order = (0, 2, 4, 1, 3, 5)
            wanted = b"".join(MEMORY[size * i : size * (i + 1)] for i in order)
            assert ctypes.string_at(t.data_ptr, t.nbytes) == wanted


# --- refused by whoever must interpret ----------------------------------------------------------------


def unknown(triple=(99, 16, 1)):
    return tenon.from_pointer(ctypes.addressof(MEMORY_FOR_US), (2, 3), triple, owner=MEMORY_FOR_US)


MEMORY_FOR_US = ctypes.create_string_buffer(MEMORY, len(MEMORY))


@pytest.mark.parametrize("triple", [(99, 16, 1), (2, 32, 4), (0, 24, 1)], ids=str)
@pytest.mark.parametrize("way", [np.asarray, lambda t: t.__array__(), lambda t: t.numpy(), memoryview, lambda t: t.to("numpy")])
def test_F44_numpy_and_buffers_refuse_in_our_words(way, triple):
    with pytest.raises((BufferError, TypeError, ValueError), match="element type|format|dtype"):
        way(unknown(triple))


def test_F44_values_refuse_in_our_words():
    with pytest.raises((TypeError, BufferError), match="tenon: "):
        unknown().tolist()
    with pytest.raises((TypeError, BufferError), match="tenon: "):
        tenon.from_pointer(ctypes.addressof(MEMORY_FOR_US), (), (99, 16, 1), owner=MEMORY_FOR_US).item()


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow", "pyarrow"])
def test_F44_explain_and_to_say_that_a_library_has_no_such_type(library):
    pytest.importorskip(library)
    answer = tenon.explain(unknown(), library)
    assert answer.outcome == "refused" and "element type" in answer.reason, answer
    with pytest.raises(BufferError, match="element type"):
        unknown().to(library)


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow", "pyarrow", "cupy", "paddle", "numba"])
def test_C23_explain_says_that_a_library_has_nothing_there(library):
    t = tenon.from_pointer(0x7F0000001000, (2, 3), "float32", device=(99, 0))
    answer = tenon.explain(t, library)
    assert answer.outcome == "refused" and "device(99):0" in answer.reason, answer
    assert "library it comes from" in answer.fix


def test_C23_host_code_refuses_memory_it_cannot_reach():
    t = tenon.from_pointer(0x7F0000001000, (2, 3), "float32", device=(99, 0))
    for way in (memoryview, np.asarray, lambda t: t.numpy(), lambda t: t.tolist(), pickle.dumps, lambda t: tenon.asdlpack(t, copy=True),
                lambda t: tenon.asdlpack(t, device="cpu")):
        with pytest.raises((BufferError, TypeError, RuntimeError), match="device|host|CPU|interface"):
            way(t)


@pytest.fixture(params=("capi", "pybind11", "nanobind"))
def module(request):
    if request.param != "capi":
        pytest.importorskip(request.param)
    return importlib.import_module(f"bound_{request.param}")


@pytest.mark.parametrize("triple", [(99, 16, 1), (2, 32, 4)], ids=str)
def test_F44_bound_functions_refuse_what_they_must_interpret(module, triple):
    """A typed parameter by the element type, one of any type when it looks at the elements; what only looks on takes it."""
    t = unknown(triple)
    with pytest.raises(TypeError, match=r"(?s)dtype.*dtype\(code="):
        module.total_2d(t)
    with pytest.raises(ValueError, match="dtype: this function takes float32, float64 or int32, got dtype"):
        module.total_any(t)  # its own words
    assert module.anywhere(t)


def test_C23_bound_functions_refuse_memory_they_cannot_reach(module):
    t = tenon.from_pointer(0x7F0000001000, (2, 3), "float32", device=(99, 0))
    with pytest.raises(TypeError, match="device"):
        module.total_2d(t)
    assert module.anywhere(t)


def test_a_type_of_numpys_that_ml_dtypes_has():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, "bcomplex32"):
        pytest.skip("this ml_dtypes has no bcomplex32")
    a = unknown((18, 32, 1)).numpy()
    assert a.dtype == ml_dtypes.bcomplex32 and a.ctypes.data == ctypes.addressof(MEMORY_FOR_US)
    assert tenon.asdlpack(a).dtype.triple == (18, 32, 1)


# --- what contradicts itself --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [dict(dtype=(99, 0, 1)), dict(dtype=(99, 8, 0)), dict(dtype=(12, 16, 1)), dict(dtype=(17, 8, 1)), dict(dtype=(15, 4, 1)),
     dict(device=(0, 0)), dict(device=(-1, 0)), dict(device=(99, -1))],
    ids=str,
)
def test_F44_contradictions_are_refused_as_ever(fields):
    struct = fakes.Struct(shape=(2, 3), data=MEMORY, **fields)
    with exactly_once(struct):
        with pytest.raises(tenon.MalformedError):
            tenon.asdlpack(struct.capsule())
