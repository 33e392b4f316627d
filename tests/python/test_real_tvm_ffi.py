# tests/python/test_real_tvm_ffi.py: tvm-ffi tensors made from NumPy and PyTorch, and ours taken by tvm-ffi through the exchange table: one address from end to end.
from __future__ import annotations

import ctypes
import gc

import pytest
import tenon_exports
from fakes_ctypes import Versioned
from producers import exactly_once
from real_support import COPIED, READ_ONLY, exchange_table, expect, need, nothing_kept, poke, raw, references

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
    t = tenon.asdlpack(tvm_ffi.from_dlpack(host), readonly=False)
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


def test_read_only_memory_is_said_to_be_so():
    """The struct has the flag. tvm-ffi has no read-only tensors and ignores it, as the standard asks of such."""
    host = numbers("float32")
    host.flags.writeable = False
    t = tenon.asdlpack(host)
    before = references(host)
    given = ctypes.c_void_p()
    assert exchange_table(type(t)).own(t, ctypes.byref(given)) == 0
    struct = Versioned.from_address(given.value)
    assert (struct.flags, struct.dl_tensor.data) == (READ_ONLY, host.ctypes.data)
    struct.deleter(given.value)
    x = tvm_ffi.from_dlpack(t)
    assert x.data_ptr() == host.ctypes.data
    del x
    gc.collect()
    assert references(host) == before


# --- by the exchange table --------------------------------------------------------------------------


class Closed(tenon_exports.Matrix):
    """Can only be had by its table: `__dlpack__` is there, and raises."""

    def __dlpack__(self, **keywords):
        raise AssertionError(f"asked for a capsule with {keywords}")


def test_from_dlpack_takes_the_table():
    m = Closed(2, 3)
    with nothing_kept(m):
        x = tvm_ffi.from_dlpack(m)
        assert (x.data_ptr(), tuple(x.shape), str(x.dtype)) == (m.address, (2, 3), "float32")
        del x


# What tvm-ffi gives a function that it calls, by how the function came about.
FUNCTIONS = {
    "of C++": lambda: (tvm_ffi.get_global_func("testing.echo"), []),
    "of Python": lambda: (lambda seen: (tvm_ffi.convert(lambda a: (seen.append(a.data_ptr()), a)[1]), seen))([]),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", ["Tensor", "own", "user class"])
def test_argument_goes_by_the_table_and_comes_back_as_ours(function, kind):
    """tvm-ffi makes what a function returns by the table of the arguments: ours in, ours out."""
    counter = tenon_exports.Counter()
    call, seen = FUNCTIONS[function]()

    def check():
        if kind == "user class":
            obj = Closed(2, 3)
            address, back_type = obj.address, type(tenon_exports.produce(tenon_exports.Counter()))
        else:
            obj = tenon_exports.produce(counter) if kind == "own" else tenon.asdlpack(tenon_exports.versioned(counter))
            address, back_type = obj.data_ptr, type(obj)
        back = call(obj)
        del obj
        gc.collect()
        assert seen in ([], [address])
        assert type(back) is back_type
        assert (back.data_ptr, back.shape, back.strides, back.dtype) == (address, (2, 3), (3, 1), "float32")
        assert counter.releases == 0
        assert raw(back) == ctypes.string_at(address, 24)

    with exactly_once(counter, exports=None):
        check()


@pytest.mark.parametrize("times", [2, 300])
def test_many_calls_lose_nothing(times):
    counter = tenon_exports.Counter()
    obj = tenon_exports.produce(counter)
    echo = tvm_ffi.get_global_func("testing.echo")
    with nothing_kept(obj):
        for _ in range(times):
            echo(obj)
            tvm_ffi.from_dlpack(obj)
    assert counter.releases == 0
    del obj
    gc.collect()
    assert counter.releases == 1


def test_tensors_in_containers():
    """What a function packs into a container is still the same memory, whatever type it has there."""
    counter = tenon_exports.Counter()

    def check():
        obj = tenon_exports.produce(counter)
        inside = list(tvm_ffi.get_global_func("testing.make_array_with_tensor")(obj))
        assert [tenon.asdlpack(x).data_ptr for x in inside] == [obj.data_ptr]

    with exactly_once(counter):
        check()


def test_argument_that_cannot_be_described_is_an_exception():
    m = Closed(2, 3)
    m.fault = 1
    with pytest.raises(RuntimeError, match="does not want to be described"):
        tvm_ffi.get_global_func("testing.echo")(m)


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
