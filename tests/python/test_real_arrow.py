# tests/python/test_real_arrow.py: Arrow's interfaces between us and the libraries that speak them: values, addresses, lifetimes, both ways.
from __future__ import annotations

import gc

import pytest
import tenon_exports
from real_support import COPIED, READ_ONLY, expect, has, need, nothing_kept, poke, raw, references
from tenon_exports import Counter

import tenon

pa = need("pyarrow")
np = need("numpy")

NAMES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
pytestmark = pytest.mark.filterwarnings("error")


def numbers(name="int32", count=12):
    return np.arange(count).astype(name)


def array(name="int32", count=12):
    return pa.array(numbers(name, count), getattr(pa, name)())


def address(a):
    return a.buffers()[-1].address


class Arrow:
    """Of an object's protocols, Arrow's array alone: PyArrow's arrays would be taken by DLPack otherwise."""

    def __init__(self, obj):
        self.obj = obj

    def __arrow_c_array__(self, requested_schema=None):
        return self.obj.__arrow_c_array__(requested_schema)


class OnDevice(Arrow):
    __arrow_c_array__ = None

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        return self.obj.__arrow_c_device_array__(requested_schema, **kwargs)


# --- pyarrow: arrays --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [Arrow, OnDevice])
@pytest.mark.parametrize("name", NAMES)
def test_array(name, way):
    a = array(name)
    t = tenon.asdlpack(way(a))
    expect(t, address=address(a), shape=(12,), dtype=name, itemsize=np.dtype(name).itemsize, readonly=True)
    assert raw(t) == numbers(name).tobytes()


@pytest.mark.parametrize("way", [Arrow, OnDevice])
@pytest.mark.parametrize("cut", [slice(2, None), slice(1, 4), slice(11, None), slice(12, None), slice(3, 3)], ids=str)
def test_sliced_array(cut, way):
    a = array()[cut]
    t = tenon.asdlpack(way(a))
    assert (t.shape, raw(t)) == ((len(a),), numbers()[cut].tobytes())
    if len(a):
        assert t.data_ptr == address(a) + 4 * a.offset


def test_same_as_by_dlpack():
    a = array()[3:]
    one, other = tenon.asdlpack(a), tenon.asdlpack(Arrow(a))
    assert (one.data_ptr, one.shape, one.dtype, one.flags) == (other.data_ptr, other.shape, other.dtype, other.flags)


def test_nulls():
    with pytest.raises(BufferError, match="fill_null"):
        tenon.asdlpack(Arrow(pa.array([1, None, 3])))
    t = tenon.asdlpack(Arrow(pa.array([1, None, 3, 4])[2:]))
    assert np.from_dlpack(t).tolist() == [3, 4]
    with pytest.raises(BufferError, match="got 1"):
        tenon.asdlpack(Arrow(pa.array([1, 2, None, 4])[1:]))
    filled = pa.array([1, None, 3]).fill_null(2)
    assert np.from_dlpack(tenon.asdlpack(Arrow(filled))).tolist() == [1, 2, 3]


REFUSED = {
    "bool": (lambda: pa.array([True]), "uint8"),
    "null": (lambda: pa.nulls(3), "null"),
    "string": (lambda: pa.array(["a"]), "strings"),
    "string view": (lambda: pa.array(["a"], pa.string_view()), "strings"),
    "binary": (lambda: pa.array([b"a"]), "binary"),
    "fixed-size binary": (lambda: pa.array([b"a"], pa.binary(1)), "binary"),
    "date": (lambda: pa.array([1], pa.date32()), "dates"),
    "time": (lambda: pa.array([1], pa.time64("us")), "times of day"),
    "timestamp": (lambda: pa.array([1], pa.timestamp("s")), "timestamps"),
    "timestamp with zone": (lambda: pa.array([1], pa.timestamp("s", "Europe/Vienna")), "timestamps"),
    "duration": (lambda: pa.array([1], pa.duration("s")), "durations"),
    "interval": (lambda: pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "intervals"),
    "decimal": (lambda: pa.array([1], pa.decimal128(5)), "decimals"),
    "list": (lambda: pa.array([[1], [2, 3]]), "lists"),
    "large list": (lambda: pa.array([[1]], pa.large_list(pa.int8())), "lists"),
    "list view": (lambda: pa.array([[1]], pa.list_view(pa.int8())), "lists"),
    "struct": (lambda: pa.array([{"a": 1}]), "column"),
    "map": (lambda: pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), "maps"),
    "dictionary": (lambda: pa.array(["a"]).dictionary_encode(), "dictionary"),
    "union": (lambda: pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]),
              "unions"),
    "run-end": (lambda: pa.compute.run_end_encode(pa.array([1, 1, 2])), "run-end"),
    "batch": (lambda: pa.record_batch({"a": [1]}), "column"),
    "list of strings": (lambda: pa.array([["a", "b"]], pa.list_(pa.string(), 2)), "strings"),
    "null list": (lambda: pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), "nulls"),
    "null in a list": (lambda: pa.array([[1, 2], [3, None]], pa.list_(pa.int8(), 2)), "nulls"),
}


@pytest.mark.parametrize("way", [Arrow, OnDevice])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, way):
    need("pyarrow.compute")
    make, match = REFUSED[name]
    a = make()
    with nothing_kept(a), pytest.raises(BufferError, match=match) as caught:
        tenon.asdlpack(way(a))
    assert not isinstance(caught.value, tenon.MalformedError)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_dlpack_too(name):
    """An Array has `__dlpack__`, which refuses as well: the exception says what helps, and theirs stands behind it."""
    need("pyarrow.compute")
    make, match = REFUSED[name]
    a = make()
    with pytest.raises(BufferError, match=match) as caught:
        tenon.asdlpack(a)
    assert isinstance(caught.value.__context__, pa.ArrowException) is hasattr(a, "__dlpack__")


# --- pyarrow: lists and tensors ---------------------------------------------------------------------


def test_fixed_size_lists():
    values = array("float32", 24)
    a = pa.FixedSizeListArray.from_arrays(values, 6)
    t = tenon.asdlpack(a)
    expect(t, address=address(values), shape=(4, 6), dtype="float32", itemsize=4, readonly=True)
    np.testing.assert_array_equal(np.from_dlpack(t), numbers("float32", 24).reshape(4, 6))


def test_fixed_size_lists_of_fixed_size_lists():
    values = array("int16", 24)
    a = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(values, 3), 2)
    t = tenon.asdlpack(a)
    expect(t, address=address(values), shape=(4, 2, 3), dtype="int16", itemsize=2, readonly=True)
    np.testing.assert_array_equal(np.from_dlpack(t), numbers("int16", 24).reshape(4, 2, 3))


@pytest.mark.parametrize("first", [0, 3, 5])
@pytest.mark.parametrize("cut", [slice(None), slice(1, None), slice(1, 3), slice(4, None)], ids=str)
def test_slices_of_lists_over_slices_of_values(first, cut):
    values = array("int32", 26 + first)[first:]
    a = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(values, 2)[1:], 2)[cut]
    t = tenon.asdlpack(a)
    assert np.from_dlpack(t).tolist() == a.to_pylist()


def test_fixed_shape_tensors():
    storage = pa.FixedSizeListArray.from_arrays(array("int32", 72), 24)
    for shape, permutation in (([2, 3, 4], None), ([2, 3, 4], [2, 0, 1]), ([24], None), ([4, 6], [1, 0])):
        a = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), shape, permutation=permutation), storage)
        for piece, given in ((part, given) for part in (a, a[1:], a[2:]) for given in (Arrow(part), part)):
            ours = np.from_dlpack(tenon.asdlpack(given))
            # By hand, as the format says it: PyArrow itself, in to_numpy_ndarray() and in __dlpack__ since 26, gives
            # permuted ones strides by which elements overlap.
            order = [0, *(axis + 1 for axis in permutation or range(len(shape)))]
            values = np.asarray(piece.storage.flatten()).reshape(-1, *shape).transpose(order)
            np.testing.assert_array_equal(ours, values)
            assert ours.ctypes.data == values.ctypes.data


def test_null_behind_a_slice_of_lists():
    a = pa.array([[1, 2], None, [3, 4], [5, None]], pa.list_(pa.int8(), 2))
    assert np.from_dlpack(tenon.asdlpack(a[2:3])).tolist() == [[3, 4]]
    with pytest.raises(BufferError, match="null"):
        tenon.asdlpack(a[1:3])


# --- pyarrow: chunks, batches, tables ---------------------------------------------------------------


def test_chunked_array_of_one_chunk():
    a = array("float64")[2:]
    t = tenon.asdlpack(pa.chunked_array([a]))
    expect(t, address=address(a) + 16, shape=(10,), dtype="float64", itemsize=8, readonly=True)
    assert raw(t) == numbers("float64")[2:].tobytes()


def test_chunked_array_of_several():
    a = pa.chunked_array([[1, 2], [3]])
    with nothing_kept(a), pytest.raises(BufferError, match=r"combine_chunks\(\)"):
        tenon.asdlpack(a)
    together = a.combine_chunks()
    assert np.from_dlpack(tenon.asdlpack(together)).tolist() == [1, 2, 3]


def test_chunked_array_of_none_or_empty_ones():
    for a in (pa.chunked_array([], pa.int16()), pa.chunked_array([[], []], pa.int16())):
        t = tenon.asdlpack(a)
        assert (t.shape, t.dtype, t.readonly) == ((0,), "int16", True)
    a = pa.chunked_array([[], [1, 2], []], pa.int16())
    assert np.from_dlpack(tenon.asdlpack(a)).tolist() == [1, 2]


def test_columns():
    batch = pa.record_batch({"a": numbers(), "b": numbers("float32")})
    assert tenon.asdlpack(batch["b"]).data_ptr == address(batch["b"])
    sliced = batch[5:]
    assert np.from_dlpack(tenon.asdlpack(Arrow(sliced["a"]))).tolist() == [*range(5, 12)]
    table = pa.Table.from_batches([batch])
    assert tenon.asdlpack(table["a"]).data_ptr == address(batch["a"])
    for many in (batch, table, batch.to_struct_array()):
        with pytest.raises((BufferError, pa.ArrowException)):
            tenon.asdlpack(many)


def test_reader_that_fails():
    def batches():
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("no luck")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(BufferError, match="column"):
        tenon.asdlpack(reader)


def test_options():
    a = pa.chunked_array([array()])
    with nothing_kept(a), pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(a, readonly=False)
    t = tenon.asdlpack(a, copy=True, readonly=False)
    assert t.flags == COPIED
    poke(t, 0, b"\xff\xff\xff\xff")
    assert a[0].as_py() == 0
    assert tenon.asdlpack(a, device="cpu", copy=False).flags == READ_ONLY
    with pytest.raises(BufferError, match="copy=False"):
        tenon.asdlpack(a, device="cuda", copy=False)


@pytest.mark.parametrize("make", [Arrow, OnDevice, lambda a: pa.chunked_array([a])], ids=["array", "device", "stream"])
def test_memory_lives_as_long_as_the_tensor(make):
    gc.collect()
    before = pa.total_allocated_bytes()
    a = make(pa.array(list(range(1000)), pa.int64())[5:])
    t = tenon.asdlpack(a)
    back = np.from_dlpack(t)
    del a, t
    gc.collect()
    assert pa.total_allocated_bytes() > before
    assert back.tolist() == list(range(5, 1000))
    del back
    gc.collect()
    assert pa.total_allocated_bytes() == before


# --- pyarrow takes ours -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_pyarrow_takes_ours(name):
    host = numbers(name)
    before = references(host)
    a = pa.array(tenon.asdlpack(host))
    assert (a.type, address(a), a.null_count, len(a)) == (getattr(pa, name)(), host.ctypes.data, 0, 12)
    assert a.to_pylist() == host.tolist()
    a.validate(full=True)
    piece = a[5:]
    del a
    gc.collect()
    assert references(host) > before and piece.to_pylist() == host[5:].tolist()
    del piece
    gc.collect()
    assert references(host) == before


def test_pyarrow_takes_what_cpp_owns():
    counter = Counter()
    a = pa.array(tenon_exports.produce(counter, shape=(5,), dtype="int16"))
    gc.collect()
    assert counter.releases == 0 and len(a) == 5
    table = pa.table({"a": a})
    del a
    assert counter.releases == 0
    del table
    gc.collect()
    assert (counter.exports, counter.releases) == (1, 1)


def test_pyarrow_takes_nothing():
    a = pa.array(tenon.asdlpack(np.zeros(0, np.float32)))
    assert (len(a), a.type) == (0, pa.float32())
    a.validate(full=True)


def test_pyarrow_is_told_why_not():
    for host, match in ((np.zeros((2, 2)), "ravel"), (np.zeros(4)[::2], "copy"), (np.zeros(2, bool), "uint8"),
                        (np.zeros(2, complex), "no format")):
        with pytest.raises(BufferError, match=match):
            pa.array(tenon.asdlpack(host))


def test_there_and_back():
    host = numbers("float64")
    t = tenon.asdlpack(host)
    for _ in range(5):
        t = tenon.asdlpack(Arrow(pa.array(t)))
    assert t.data_ptr == host.ctypes.data and t.readonly
    before = references(host)
    del t
    gc.collect()
    assert references(host) < before


def test_schema():
    assert pa.DataType._import_from_c_capsule(tenon.asdlpack(numbers("uint16")).__arrow_c_schema__()) == pa.uint16()


# --- polars -----------------------------------------------------------------------------------------


@pytest.fixture
def pl():
    return need("polars")


def where(series):
    return series.to_numpy(allow_copy=False).ctypes.data


@pytest.mark.parametrize("name", [n for n in NAMES if n != "float16"])
def test_polars_series(pl, name):
    s = pl.Series(numbers(name))
    t = tenon.asdlpack(s)
    assert (t.shape, t.dtype, t.readonly) == ((12,), name, True)
    assert raw(t) == numbers(name).tobytes()
    assert t.data_ptr == tenon.asdlpack(s).data_ptr == where(s), "not a copy"


def test_polars_slices_chunks_and_nulls(pl):
    s = pl.Series(numbers())
    assert np.from_dlpack(tenon.asdlpack(s[3:7])).tolist() == [3, 4, 5, 6]
    assert tenon.asdlpack(s[3:]).data_ptr == tenon.asdlpack(s).data_ptr + 12
    chunked = pl.concat([s, s], rechunk=False)
    with pytest.raises(BufferError, match=r"rechunk\(\)"):
        tenon.asdlpack(chunked)
    assert tenon.asdlpack(chunked.rechunk()).shape == (24,)
    with pytest.raises(BufferError, match="fill_null"):
        tenon.asdlpack(pl.Series([1, None]))
    assert np.from_dlpack(tenon.asdlpack(pl.Series([1, None]).fill_null(7))).tolist() == [1, 7]
    assert tenon.asdlpack(pl.Series([], dtype=pl.Int16)).shape == (0,)


def test_polars_lists_of_a_fixed_size(pl):
    s = pl.Series([[1, 2, 3], [4, 5, 6]], dtype=pl.Array(pl.Int32, 3))
    assert np.from_dlpack(tenon.asdlpack(s)).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.from_dlpack(tenon.asdlpack(s[1:])).tolist() == [[4, 5, 6]]


def test_polars_refused(pl):
    for obj, match in ((pl.DataFrame({"a": [1]}), "column"), (pl.Series(["a"]), "strings"), (pl.Series([True]), "uint8"),
                       (pl.Series([[1], [2, 3]]), "lists")):
        with pytest.raises(BufferError, match=match):
            tenon.asdlpack(obj)
    assert tenon.asdlpack(pl.DataFrame({"a": [1.5]})["a"]).dtype == "float64"


def test_polars_memory_lives_as_long_as_the_tensor(pl):
    t = tenon.asdlpack(pl.Series(range(100_000)))
    gc.collect()
    junk = [pl.Series([7] * 100_000) for _ in range(5)]
    assert np.from_dlpack(t).tolist() == [*range(100_000)]
    del junk


def test_polars_takes_ours(pl):
    host = numbers("float32")
    before = references(host)
    s = pl.Series(tenon.asdlpack(host))
    assert s.to_list() == host.tolist() and where(s) == host.ctypes.data
    gc.collect()
    assert references(host) > before
    del s
    gc.collect()
    assert references(host) == before


# --- pandas -----------------------------------------------------------------------------------------


@pytest.fixture
def pd():
    found = need("pandas")
    if not hasattr(found.Series, "__arrow_c_stream__"):
        pytest.skip("this pandas has no __arrow_c_stream__")
    return found


def test_pandas_series(pd):
    for name in NAMES:
        host = numbers(name)
        t = tenon.asdlpack(pd.Series(host))
        assert (t.shape, t.dtype, t.readonly, raw(t)) == ((12,), name, True, host.tobytes())
    backed = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array()])))
    assert tenon.asdlpack(backed).data_ptr == address(backed.array._pa_array.chunk(0))


def test_pandas_refused(pd):
    with pytest.raises(BufferError, match="column"):
        tenon.asdlpack(pd.DataFrame({"a": [1]}))
    with pytest.raises(BufferError, match="nulls"):
        tenon.asdlpack(pd.Series([1, None], dtype="Int64"))
    with pytest.raises(BufferError, match="strings"):
        tenon.asdlpack(pd.Series(["a"]))


def test_pandas_memory_lives_as_long_as_the_tensor(pd):
    before = pa.total_allocated_bytes()
    host = numbers("int64", 1000)
    held = references(host)
    t = tenon.asdlpack(pd.Series(host, copy=False))
    gc.collect()
    assert raw(t) == host.tobytes()
    del t
    gc.collect()
    assert references(host) == held and pa.total_allocated_bytes() == before


# --- nanoarrow --------------------------------------------------------------------------------------


@pytest.fixture
def na():
    return need("nanoarrow")


def test_nanoarrow(na):
    for make in (na.c_array, na.Array):
        a = make(numbers("int16").tolist(), na.int16())
        t = tenon.asdlpack(a)
        assert (t.shape, t.dtype, t.readonly, raw(t)) == ((12,), "int16", True, numbers("int16").tobytes())
    c = na.c_array([1, 2, 3], na.int32())
    assert tenon.asdlpack(c).data_ptr == c.buffers[1]
    assert np.from_dlpack(tenon.asdlpack(c[1:])).tolist() == [2, 3]
    t = tenon.asdlpack(na.Array(range(1000), na.int64()))
    gc.collect()
    assert np.from_dlpack(t).tolist() == [*range(1000)]


def test_nanoarrow_refused(na):
    with pytest.raises(BufferError, match="nulls"):
        tenon.asdlpack(na.c_array([1, None], na.int32()))
    with pytest.raises(BufferError, match="strings"):
        tenon.asdlpack(na.c_array(["a"], na.string()))


def test_nanoarrow_takes_ours(na):
    host = numbers("uint32")
    before = references(host)
    c = na.c_array(tenon.asdlpack(host))
    assert (c.length, c.null_count, c.buffers[1]) == (12, 0, host.ctypes.data)
    assert na.Array(c).to_pylist() == host.tolist()
    assert na.c_schema(tenon.asdlpack(host)).format == "I"
    gc.collect()
    assert references(host) > before
    del c
    gc.collect()
    assert references(host) == before


# --- arro3 ------------------------------------------------------------------------------------------


@pytest.fixture
def ac():
    need("arro3")
    return need("arro3.core")


def test_arro3(ac):
    for name in NAMES:
        a = ac.Array.from_arrow(Arrow(array(name)))
        t = tenon.asdlpack(a)
        assert (t.shape, t.dtype, t.readonly, raw(t)) == ((12,), name, True, numbers(name).tobytes())
        assert raw(tenon.asdlpack(a.slice(3, 4))) == numbers(name)[3:7].tobytes()
    t = tenon.asdlpack(ac.ChunkedArray([ac.Array.from_arrow(Arrow(array()))]))
    gc.collect()
    assert raw(t) == numbers().tobytes()
    with pytest.raises(BufferError, match="chunks"):
        tenon.asdlpack(ac.ChunkedArray([ac.Array.from_arrow(Arrow(array()))] * 2))


def test_arro3_takes_ours(ac):
    host = numbers("float64")
    before = references(host)
    a = ac.Array.from_arrow(tenon.asdlpack(host))
    assert tenon.asdlpack(a).data_ptr == host.ctypes.data and raw(tenon.asdlpack(a)) == host.tobytes()
    gc.collect()
    assert references(host) > before
    del a
    gc.collect()
    assert references(host) == before


# --- one to the other -------------------------------------------------------------------------------


@pytest.mark.skipif(not has("polars") or not has("nanoarrow"), reason="needs polars and nanoarrow")
def test_around_the_libraries():
    import nanoarrow
    import polars

    host = numbers("int64", 1000)
    before = references(host)
    t = tenon.asdlpack(host)
    for step in (pa.array, polars.Series, nanoarrow.c_array, pa.array):
        t = tenon.asdlpack(step(t))
        assert t.data_ptr == host.ctypes.data and t.readonly
    del t
    gc.collect()
    assert references(host) == before
