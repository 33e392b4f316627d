# tests/python/test_real_tvm_ffi.py: tvm-ffi tensors made from NumPy and PyTorch: one address from end to end.
from __future__ import annotations

import gc

import pytest
from real_support import COPIED, expect, need, nothing_kept, poke, raw, references

import tenon

tvm_ffi = need("tvm_ffi")
np = need("numpy")

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
]  # fmt: skip


def numbers(name, shape=(2, 3)):
    return (np.arange(int(np.prod(shape))) % 2).astype(name).reshape(shape)


@pytest.mark.parametrize("name", DTYPES)
def test_over_numpy(name):
    host = numbers(name)
    x = tvm_ffi.from_dlpack(host)
    t = tenon.asdlpack(x)
    expect(t, address=host.ctypes.data, shape=(2, 3), dtype=name, itemsize=host.itemsize, readonly=False)
    assert raw(t) == host.tobytes()
    back = np.from_dlpack(t)
    assert back.ctypes.data == host.ctypes.data
    np.testing.assert_array_equal(back, host)


@pytest.mark.parametrize("name", [*DTYPES, "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"])
def test_over_torch(name):
    torch = need("torch")
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    dtype = getattr(torch, name)
    size = torch.empty(0, dtype=dtype).element_size()
    x = (torch.arange(6 * size, dtype=torch.uint8) & 1).view(dtype)
    t = tenon.asdlpack(tvm_ffi.from_dlpack(x))
    expect(t, address=x.data_ptr(), shape=(6,), dtype=name, itemsize=size, readonly=False)
    assert raw(t) == bytes(x.view(torch.uint8).tolist())
    back = torch.from_dlpack(t)
    assert (back.data_ptr(), back.dtype) == (x.data_ptr(), dtype)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (1, 4, 1), (2,) * 6])
def test_shape(shape):
    host = numbers("float32", shape)
    t = tenon.asdlpack(tvm_ffi.from_dlpack(host))
    assert (t.shape, t.dtype) == (shape, "float32")
    assert raw(t) == host.tobytes()


@pytest.mark.parametrize("cut", [np.s_[:, ::2], np.s_[::-1], np.s_[1:, 1:]], ids=str)
def test_strides(cut):
    host = numbers("int32", (4, 6))[cut]
    t = tenon.asdlpack(tvm_ffi.from_dlpack(host))
    assert (t.data_ptr, t.shape) == (host.ctypes.data, host.shape)
    assert t.strides == tuple(s // 4 for s in host.strides)
    assert raw(t) == host.tobytes()


def test_writes_are_seen_both_ways():
    host = np.zeros(3, np.int32)
    t = tenon.asdlpack(tvm_ffi.from_dlpack(host), writable=True)
    poke(t, 1, b"\x01\0\0\0")
    host[2] = 2
    assert (host.tolist(), raw(t)) == ([0, 1, 2], host.tobytes())


def test_copy_is_apart():
    host = numbers("int32")
    t = tenon.asdlpack(tvm_ffi.from_dlpack(host), copy=True)
    assert (t.flags, raw(t)) == (COPIED, host.tobytes())
    assert t.data_ptr != host.ctypes.data


@pytest.mark.parametrize("keywords", [{"device": "cpu"}, {"copy": False}], ids=repr)
def test_asking_for_what_is_so_already_changes_nothing(keywords):
    host = numbers("int32")
    assert tenon.asdlpack(tvm_ffi.from_dlpack(host), **keywords).data_ptr == host.ctypes.data


def test_tvm_ffi_takes_a_tensor_of_tenon():
    host = numbers("float32")
    before = references(host)
    x = tvm_ffi.from_dlpack(tenon.asdlpack(host))
    t = tenon.asdlpack(x)
    assert (t.data_ptr, t.shape) == (host.ctypes.data, (2, 3))
    del x, t
    gc.collect()
    assert references(host) == before


def test_tvm_ffi_is_not_given_read_only_memory_as_writable():
    host = numbers("float32")
    host.flags.writeable = False
    try:
        x = tvm_ffi.from_dlpack(tenon.asdlpack(host))
    except BufferError:
        return
    assert tenon.asdlpack(x).readonly


def test_memory_lives_as_long_as_the_tensor():
    host = np.arange(1000)
    before = references(host)
    x = tvm_ffi.from_dlpack(host)
    t = tenon.asdlpack(x)
    del x
    gc.collect()
    assert references(host) > before
    assert raw(t) == host.tobytes()
    del t
    gc.collect()
    assert references(host) == before


def test_no_reference_is_lost_over_many_imports():
    host = np.arange(10)
    x = tvm_ffi.from_dlpack(host)
    with nothing_kept(host, x):
        for _ in range(300):
            tenon.asdlpack(x)


@pytest.mark.parametrize(
    "make",
    [lambda: tvm_ffi.Shape((1, 2)), lambda: tvm_ffi.convert([1, 2]), lambda: tvm_ffi.device("cpu", 0)],
    ids=["Shape", "Array", "Device"],
)
def test_other_objects_are_an_exception(make):
    with pytest.raises((TypeError, BufferError)):
        tenon.asdlpack(make())
