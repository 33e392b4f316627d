# tests/python/test_real_pyarrow.py: Arrow arrays, tensors and buffers: offset and order applied, nulls and packed bits refused, read-only kept.
from __future__ import annotations

import gc

import pytest
from real_support import COPIED, READ_ONLY, expect, need, nothing_kept, poke, raw, references

import tenon

pa = need("pyarrow")
np = need("numpy")

TYPES = {
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16",
    "uint32": "uint32", "uint64": "uint64", "float16": "float16", "float32": "float32", "float64": "float64",
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("error")


def array(name, count=6):
    return pa.array(np.arange(count).astype(name), getattr(pa, name)())


def address(a):
    return a.buffers()[1].address + a.offset * (a.type.bit_width // 8)


# --- Array ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
def test_array(name):
    a = array(name)
    t = tenon.asdlpack(a)
    expect(
        t, address=address(a), shape=(6,), dtype=TYPES[name], itemsize=np.dtype(name).itemsize, readonly=True
    )
    assert raw(t) == np.arange(6).astype(name).tobytes()
    back = np.from_dlpack(t)
    assert back.ctypes.data == address(a)
    assert not back.flags.writeable
    np.testing.assert_array_equal(back, a.to_numpy())


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("cut", [slice(2, None), slice(1, 4), slice(5, None), slice(2, 3)], ids=str)
def test_sliced_array(name, cut):
    a = array(name)[cut]
    assert a.offset > 0
    t = tenon.asdlpack(a)
    expect(
        t,
        address=address(a),
        shape=(len(a),),
        dtype=TYPES[name],
        itemsize=np.dtype(name).itemsize,
        readonly=True,
    )
    assert raw(t) == np.arange(6).astype(name)[cut].tobytes()


def test_slice_of_a_slice():
    a = array("int32", 20)[3:15].slice(2, 5)
    t = tenon.asdlpack(a)
    assert (t.data_ptr, np.from_dlpack(t).tolist()) == (address(a), [5, 6, 7, 8, 9])


@pytest.mark.parametrize(
    "a", [pa.array([], pa.int32()), array("int32")[6:], array("int32")[3:3]], ids=["new", "end", "inside"]
)
def test_empty_array(a):
    t = tenon.asdlpack(a)
    assert (t.shape, t.dtype, t.nbytes, t.readonly) == ((0,), "int32", 0, True)


def test_array_of_one_element():
    t = tenon.asdlpack(pa.array([7], pa.int16()))
    assert np.from_dlpack(t).tolist() == [7]


def test_never_writable():
    a = array("int32")
    with nothing_kept(a), pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(a, readonly=False)
    assert tenon.asdlpack(a, device="cpu").flags == READ_ONLY


def test_copy_is_writable_and_apart():
    a = array("int32")
    t = tenon.asdlpack(a, copy=True, readonly=False)
    assert (t.flags, raw(t)) == (COPIED, np.arange(6, dtype=np.int32).tobytes())
    poke(t, 0, b"\xff\xff\xff\xff")
    assert a.to_pylist() == list(range(6))


def test_array_over_numpy_memory():
    host = np.arange(100, dtype=np.float64)
    a = pa.array(host)
    t = tenon.asdlpack(a)
    assert t.data_ptr == address(a)
    assert raw(t) == host.tobytes()


REFUSED = {
    "nulls": lambda: pa.array([1, None, 3]),
    "all null": lambda: pa.nulls(3),
    "nulls of a type": lambda: pa.nulls(3, pa.float32()),
    "bool": lambda: pa.array([True, False]),
    "string": lambda: pa.array(["a", "b"]),
    "binary": lambda: pa.array([b"a"]),
    "date": lambda: pa.array([1, 2], pa.date32()),
    "timestamp": lambda: pa.array([1, 2], pa.timestamp("s")),
    "duration": lambda: pa.array([1, 2], pa.duration("s")),
    "time": lambda: pa.array([1, 2], pa.time64("us")),
    "decimal": lambda: pa.array([1, 2], pa.decimal128(5)),
    "list": lambda: pa.array([[1], [2, 3]]),
    "struct": lambda: pa.array([{"a": 1}]),
    "dictionary": lambda: pa.array(["a", "b"]).dictionary_encode(),
    "chunked": lambda: pa.chunked_array([[1, 2], [3]]),
    "scalar": lambda: pa.scalar(1),
    "table": lambda: pa.table({"a": [1]}),
    "batch": lambda: pa.record_batch({"a": [1]}),
    "field": lambda: pa.field("a", pa.int32()),
    "type": lambda: pa.int32(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    a = REFUSED[name]()
    with nothing_kept(a):
        for _ in range(3):
            with pytest.raises((TypeError, BufferError, pa.ArrowException)):
                tenon.asdlpack(a)
        with pytest.raises((TypeError, BufferError, pa.ArrowException)):
            tenon.asdlpack(a, copy=True)


def test_nulls_outside_the_slice_do_not_matter():
    a = pa.array([1, None, 3, 4])[2:]
    t = tenon.asdlpack(a)
    assert np.from_dlpack(t).tolist() == [3, 4]


def test_nulls_inside_the_slice_do():
    with pytest.raises((TypeError, BufferError, pa.ArrowException)):
        tenon.asdlpack(pa.array([1, 2, None, 4])[1:])


def test_good_array_after_a_refused_one():
    """The refusal is a TypeError, as of an old producer; later arrays must not be taken for legacy ones."""
    before = tenon.asdlpack(array("int64")).version
    with pytest.raises((TypeError, BufferError, pa.ArrowException)):
        tenon.asdlpack(pa.array([1, None]))
    t = tenon.asdlpack(array("int64"))
    assert (t.version, t.flags) == (before, READ_ONLY)


# --- Tensor -----------------------------------------------------------------------------------------

BASE = np.arange(24.0).reshape(2, 3, 4)
TENSORS = {
    "row-major": BASE,
    "column-major": np.asfortranarray(BASE),
    "transposed": BASE.T,
    "stepped": BASE[:, ::2, 1:],
    "one axis": np.arange(5, dtype=np.int16),
    "extent 1": BASE[:1, :, :1],
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensor(name):
    host = TENSORS[name]
    x = pa.Tensor.from_numpy(host)
    t = tenon.asdlpack(x)
    assert (t.data_ptr, t.shape, t.dtype) == (host.ctypes.data, host.shape, host.dtype.name)
    np.testing.assert_array_equal(np.from_dlpack(t), host)
    assert raw(t) == host.tobytes()


def test_tensor_over_read_only_memory():
    host = np.arange(6.0)
    host.flags.writeable = False
    t = tenon.asdlpack(pa.Tensor.from_numpy(host))
    assert t.readonly
    with pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(pa.Tensor.from_numpy(host), readonly=False)


def test_tensor_keeps_the_array_behind_it():
    host = np.arange(1000.0)
    before = references(host)
    t = tenon.asdlpack(pa.Tensor.from_numpy(host))
    gc.collect()
    assert references(host) > before
    assert raw(t) == host.tobytes()
    del t
    gc.collect()
    assert references(host) == before


# --- Buffer -----------------------------------------------------------------------------------------


def test_buffer_over_bytes():
    b = pa.py_buffer(b"abcd")
    with nothing_kept(b):
        t = tenon.asdlpack(b)
        assert t.dtype in ("int8", "uint8")
        expect(t, address=b.address, shape=(4,), dtype=t.dtype, itemsize=1, readonly=True)
        assert raw(t) == b"abcd"
        del t


def test_buffer_over_bytearray():
    store = bytearray(b"abcd")
    b = pa.py_buffer(store)
    t = tenon.asdlpack(b, readonly=False)
    poke(t, 0, b"z")
    assert store == b"zbcd"
    del b
    gc.collect()
    with pytest.raises(BufferError):
        store.append(1)
    del t
    gc.collect()
    store.append(1)


def test_allocated_buffer():
    before = pa.total_allocated_bytes()
    b = pa.allocate_buffer(1000)
    t = tenon.asdlpack(b, readonly=False)
    assert (t.data_ptr, t.nbytes) == (b.address, 1000)
    poke(t, 999, b"\x07")
    del b
    gc.collect()
    assert raw(t)[-1:] == b"\x07"
    assert pa.total_allocated_bytes() > before
    del t
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_sliced_buffer():
    b = pa.py_buffer(b"abcdef").slice(2, 3)
    t = tenon.asdlpack(b)
    assert (t.data_ptr, raw(t)) == (b.address, b"cde")


# --- lifetime ---------------------------------------------------------------------------------------


def test_memory_lives_as_long_as_the_tensor():
    gc.collect()
    before = pa.total_allocated_bytes()
    a = pa.array(list(range(1000)), pa.int64())
    t = tenon.asdlpack(a[5:])
    back = np.from_dlpack(t)
    del a, t
    gc.collect()
    assert pa.total_allocated_bytes() > before
    assert back.tolist() == list(range(5, 1000))
    del back
    gc.collect()
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("keywords", [{}, {"copy": True}, {"device": "cpu"}], ids=repr)
def test_no_memory_is_lost_over_many_imports(keywords):
    a = array("int64")
    before = pa.total_allocated_bytes()
    with nothing_kept(a):
        for _ in range(300):
            tenon.asdlpack(a, **keywords)
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("values, kind", [([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)), (["a"], pa.string())], ids=str)
def test_a_refusal_is_not_taken_for_an_unknown_keyword(values, kind):
    """PyArrow's TypeErrors are of a class of its own: it is not asked again in the old way, of which it warns."""
    a = pa.array(values, kind)
    if kind == pa.string():
        with pytest.raises(BufferError, match="Arrow"):
            tenon.asdlpack(a)
    else:
        assert tenon.asdlpack(a).tolist() == values
