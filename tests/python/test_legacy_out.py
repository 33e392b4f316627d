# tests/python/test_legacy_out.py: read-only memory leaves as a legacy struct where its own library hands it out so, or where it goes to
# a library that never writes; and nowhere else.
import ctypes
import gc
import sys
import warnings

import fakes
import numpy as np
import pytest
import tenon
import tenon_exports
from isolation import isolated
from producers import exactly_once


def aligned(count=16, dtype="float32"):
    """Memory that JAX and TensorFlow take without a copy."""
    raw = np.zeros(count * np.dtype(dtype).itemsize + 64, "u1")
    first = -raw.ctypes.data % 64
    a = raw[first:][: count * np.dtype(dtype).itemsize].view(dtype)
    a[:] = np.arange(count)
    return a


def frozen(*args):
    a = aligned(*args)
    a.flags.writeable = False
    return a


def capsule_name(capsule):
    ask = ctypes.pythonapi.PyCapsule_GetName
    ask.restype, ask.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return ask(capsule).decode()


def leaves(t):
    return capsule_name(t.__dlpack__()) == "dltensor"


def is_kept_back(t):
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    return capsule_name(t.__dlpack__(max_version=(1, 0))) == "dltensor_versioned"


# --- what came as a legacy struct ---------------------------------------------------------------------


@isolated
def test_P24_memory_that_came_as_a_legacy_struct_leaves_as_one():
    struct = fakes.Struct(shape=(2, 3), versioned=False)
    with exactly_once(struct):
        t = tenon.asdlpack(struct.capsule())
        assert t.readonly and leaves(t)
        assert t.flags == 1  # nobody sees what is remembered
        del t


@isolated
def test_P24_it_is_remembered_by_every_tensor_over_the_memory():
    struct = fakes.Struct(shape=(2, 3), versioned=False)
    with exactly_once(struct):
        t = tenon.asdlpack(struct.capsule())
        again = tenon.asdlpack(t.__dlpack__(max_version=(1, 3)))
        assert again.readonly and leaves(again)
        third = tenon.asdlpack(again.__dlpack__())
        assert third.readonly and leaves(third)
        lent = tenon.asdlpack(t, stream=-1)  # by the C exchange table
        assert lent is not t and lent.readonly and leaves(lent)
        back = tenon._core.as_like(t, t)
        assert back is not t and back.readonly and leaves(back)
        del t, again, third, lent, back


@isolated
def test_P24_a_copy_is_writable_and_leaves_as_ever():
    struct = fakes.Struct(shape=(2, 3), versioned=False)
    with exactly_once(struct):
        t = tenon.asdlpack(struct.capsule(), copy=True)
        assert not t.readonly and leaves(t)


@isolated
def test_P24_what_somebody_made_read_only_is_kept_back():
    struct = fakes.Struct(shape=(2, 3), versioned=False)
    with exactly_once(struct):
        t = tenon.asdlpack(struct.capsule(), trust_legacy=True, readonly=True)
        assert t.readonly and is_kept_back(t)
        del t


@isolated
def test_P24_versioned_read_only_memory_is_kept_back():
    struct = fakes.Struct(shape=(2, 3), versioned=True, flags=1)
    with exactly_once(struct):
        t = tenon.asdlpack(struct.capsule())
        assert t.readonly and is_kept_back(t)
        del t


@pytest.mark.parametrize("make", [lambda: b"01234567", frozen, lambda: memoryview(b"0123")], ids=["bytes", "numpy", "memoryview"])
def test_P24_other_read_only_memory_is_kept_back(make):
    assert is_kept_back(tenon.asdlpack(make()))


# --- JAX ----------------------------------------------------------------------------------------------

JAX_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128 "
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
    "float4_e2m1fn int4 uint4 int2 uint2"
).split()


@pytest.fixture
def jax():
    found = pytest.importorskip("jax")
    with found.enable_x64(True) if hasattr(found, "enable_x64") else found.experimental.enable_x64():
        yield found


def jax_ways(jax):
    cpu = jax.devices("cpu")[0]
    return {
        "jax.dlpack.from_dlpack": jax.dlpack.from_dlpack,
        "jax.numpy.from_dlpack": jax.numpy.from_dlpack,
        "copy=False": lambda t: jax.dlpack.from_dlpack(t, copy=False),
        "device": lambda t: jax.dlpack.from_dlpack(t, device=cpu),
        "device, copy=False": lambda t: jax.dlpack.from_dlpack(t, device=cpu, copy=False),
        "to": lambda t: t.to("jax"),
        "to, copy=False": lambda t: t.to("jax", copy=False),
        "as_like": lambda t: tenon._core.as_like(t, jax.numpy.zeros(1)),
    }


@pytest.mark.parametrize("name", JAX_DTYPES)
def test_jax_gets_its_own_memory_back(jax, name):
    try:
        x = jax.device_put(jax.numpy.arange(12).reshape(3, 4).astype(name), jax.devices("cpu")[0])
        jax.dlpack.from_dlpack(x)
    except Exception as e:
        pytest.skip(f"this jax does not take {name} from itself: {type(e).__name__}")
    t = tenon.asdlpack(x)
    for way, take in jax_ways(jax).items():
        y = take(t)
        assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer(), way
        assert (y.dtype, y.shape) == (x.dtype, x.shape), way
        assert np.asarray(y).tobytes() == np.asarray(x).tobytes(), way


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 4)], ids=str)
def test_jax_gets_every_shape_back(jax, shape):
    x = jax.device_put(jax.numpy.ones(shape), jax.devices("cpu")[0])
    for way, take in jax_ways(jax).items():
        if way == "as_like" or x.size:
            assert np.array_equal(take(tenon.asdlpack(x)), x), way


def test_a_tensor_of_jax_goes_to_whoever_asks_for_a_legacy_capsule(jax):
    x = jax.numpy.arange(4.0)
    assert capsule_name(x.__dlpack__()) == "dltensor"  # it does itself
    t = tenon.asdlpack(x)
    assert t.readonly and leaves(t)
    torch = pytest.importorskip("torch")
    assert torch.utils.dlpack.from_dlpack(t.__dlpack__()).data_ptr() == x.unsafe_buffer_pointer()


def test_explain_says_that_jax_and_tensorflow_share_what_is_read_only():
    for obj in (frozen(), tenon.asdlpack(frozen())):
        assert tenon.explain(obj, "jax").outcome == "shared", obj
        assert tenon.explain(obj, "tensorflow").outcome == "shared", obj


def test_frozen_memory_is_shared_with_jax_by_name_and_by_nothing_else(jax):
    a = frozen()
    t = tenon.asdlpack(a)
    if jax.__version_info__ < (0, 12):  # later ones ask for the struct that can say so
        with pytest.raises(BufferError, match="read-only"):
            jax.dlpack.from_dlpack(t)
    for take in (lambda: t.to("jax"), lambda: t.to("jax", copy=False), lambda: t.to(jax.numpy), lambda: tenon._core.as_like(t, jax.numpy.zeros(1))):
        assert take().unsafe_buffer_pointer() == a.ctypes.data
    assert is_kept_back(t)  # the Tensor itself is what it was


def test_frozen_memory_that_is_not_row_major_is_shared_with_jax(jax):
    if jax.__version_info__ < (0, 10):
        pytest.skip("this jax does not look at strides")
    a = frozen().reshape(4, 4).T
    x = tenon.asdlpack(a).to("jax", copy=False)
    assert x.unsafe_buffer_pointer() == a.ctypes.data and np.array_equal(x, a)


def test_jax_never_writes_to_frozen_memory_not_even_when_it_is_donated(jax):
    """On the CPU. On a GPU it does when the array is donated, and `to` warns of it."""
    a = frozen(4096)
    before = a.tobytes()
    donate = jax.jit(lambda x: x + 1, donate_argnums=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = donate(tenon.asdlpack(a).to("jax"))
        y.block_until_ready()
        x = tenon.asdlpack(a).to("jax")
        x = x.at[0].set(99)
        x.block_until_ready()
    assert a.tobytes() == before and float(y[0]) == 1


def test_what_jax_shares_it_keeps_alive(jax):
    a = frozen()
    base = a
    while base.base is not None:
        base = base.base
    count = sys.getrefcount(base)
    x = tenon.asdlpack(a).to("jax", copy=False)
    del a
    gc.collect()
    assert float(x[3]) == 3 and sys.getrefcount(base) >= count
    jax.block_until_ready(x)
    del x
    gc.collect()
    assert sys.getrefcount(base) < count


# --- on a GPU: what can be said without one -----------------------------------------------------------


def on_gpu(**fields):
    return tenon.from_pointer(0x7F0000001000, (16,), "float32", device="cuda:0", **fields)


def handed_to_jax(t, monkeypatch):
    """What `to("jax")` would hand over, and its warnings; there is no GPU to try it on."""
    from tenon import _libraries

    given = []
    jax = _libraries.LIBRARIES["jax"]._replace(take=lambda t: given.append(_libraries._for_reading(t)), limits=())
    monkeypatch.setitem(_libraries.LIBRARIES, "jax", jax)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        t.to("jax")
    return given[0], [str(w.message) for w in seen]


def test_read_only_memory_of_a_gpu_is_shared_with_jax_and_it_warns_of_donation(monkeypatch):
    t = on_gpu(readonly=True)
    given, seen = handed_to_jax(t, monkeypatch)
    assert tenon._core.leaves_as_legacy(given) and given.data_ptr == t.data_ptr and not tenon._core.leaves_as_legacy(t)
    assert len(seen) == 1 and "donated" in seen[0]


def test_what_jax_handed_out_itself_goes_back_to_it_without_a_word(monkeypatch):
    assert handed_to_jax(tenon._core.relaxed(on_gpu(readonly=True)), monkeypatch)[1] == []
    assert handed_to_jax(on_gpu(), monkeypatch)[1] == []
    assert handed_to_jax(tenon.asdlpack(frozen()), monkeypatch)[1] == []  # on the CPU it never writes


# --- PyArrow ------------------------------------------------------------------------------------------


def test_arrays_of_pyarrow_leave_as_they_do_from_there():
    pa = pytest.importorskip("pyarrow")
    for a in (pa.array([1.0, 2.0]), pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(bytes(16))])):
        assert capsule_name(a.__dlpack__()) == "dltensor"
        t = tenon.asdlpack(a)
        assert t.readonly and leaves(t)


def test_tensors_of_pyarrow_leave_as_they_do_from_there():
    # Frozen ones not at all, from 26 on; what older ones did was a mistake, and is not repeated.
    pa = pytest.importorskip("pyarrow")
    assert is_kept_back(tenon.asdlpack(pa.Tensor.from_numpy(frozen())))


def test_tables_of_arrow_that_speak_no_dlpack_are_kept_back():
    pa = pytest.importorskip("pyarrow")
    assert is_kept_back(tenon.asdlpack(pa.chunked_array([[1.0, 2.0]])))


# --- C++ ----------------------------------------------------------------------------------------------


def test_cpp_shares_read_only_memory_with_libraries_that_never_write(jax):
    counter = tenon_exports.Counter()
    x = tenon_exports.like(counter, jax.numpy.zeros(1), shape=(16,), dtype="uint8", data=bytes(range(16)), readonly=True)
    assert bytes(np.asarray(x)) == bytes(range(16))
