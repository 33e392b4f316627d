# tests/python/test_real_numpy.py: NumPy arrays of every kind become the Tensor NumPy itself describes, over the same memory.
from __future__ import annotations

import gc
import weakref

import pytest
from real_support import (
    COPIED,
    expect,
    has,
    keeps_alive,
    need,
    nothing_kept,
    poke,
    raw,
    references,
)

import tenon

np = need("numpy")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from numpy.lib.stride_tricks import as_strided  # noqa: E402

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
# C types that share a size: each is a type number of its own in NumPy.
LETTERS = "?bBhHiIlLqQefdFD"


def element_strides(a):
    return tuple(s // a.itemsize for s in a.strides)


def agrees(t, a):
    """The Tensor says what NumPy says, and the memory is the same."""
    expect(
        t,
        address=a.__array_interface__["data"][0],
        shape=a.shape,
        strides=element_strides(a),
        dtype=a.dtype.name,
        itemsize=a.itemsize,
        readonly=not a.flags.writeable,
    )
    assert raw(t) == a.tobytes()
    assert t.is_contiguous is a.flags.c_contiguous


def comes_back(t, a):
    """NumPy, given the Tensor, sees the array it came from."""
    b = np.from_dlpack(t)
    assert (b.shape, b.dtype) == (a.shape, a.dtype)
    np.testing.assert_array_equal(b, a)
    if a.size:  # what is empty leaves without an address: NumPy makes an array of its own for it
        assert b.__array_interface__["data"][0] == a.__array_interface__["data"][0]
        assert b.strides == a.strides
        assert b.flags.writeable is a.flags.writeable


def numbers(dtype, shape=(3, 4)):
    count = int(np.prod(shape))
    return (np.arange(count) % 7 - 2).astype(dtype).reshape(shape)


# --- dtypes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype(dtype):
    a = numbers(dtype)
    t = tenon.asdlpack(a)
    agrees(t, a)
    comes_back(t, a)


@pytest.mark.parametrize("letter", LETTERS)
def test_every_c_type_by_its_letter(letter):
    a = numbers(letter)
    assert a.dtype.char == letter
    agrees(tenon.asdlpack(a), a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_read_through_torch(dtype):
    torch = need("torch")
    a = numbers(dtype)
    back = torch.from_dlpack(tenon.asdlpack(a))
    assert back.data_ptr() == a.ctypes.data
    assert tuple(back.shape) == a.shape
    np.testing.assert_array_equal(back.numpy(), a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_writes_are_seen_both_ways(dtype):
    a = np.zeros(3, dtype)
    t = tenon.asdlpack(a, readonly=False)
    one = np.ones((), dtype)
    a[1] = one
    assert raw(t) == a.tobytes() != bytes(3 * a.itemsize)
    poke(t, 2, one.tobytes())
    assert a.tolist() == [0, 1, 1]
    np.from_dlpack(t)[0] = one
    assert a.tolist() == [1, 1, 1]


LONG_DOUBLE_IS_DOUBLE = pytest.mark.skipif(np.dtype("g").itemsize == 8, reason="long double is double here")


@pytest.mark.filterwarnings("ignore:The chararray class is deprecated")
@pytest.mark.parametrize(
    ("make", "reason", "way_out"),
    [
        pytest.param(lambda: np.arange(3, dtype=">i4"), "byte order", "a.astype(a.dtype.newbyteorder('='))", id="swapped"),
        pytest.param(lambda: np.ones(3, ">c16"), "byte order", "a.astype(a.dtype.newbyteorder('='))", id="swapped complex"),
        pytest.param(lambda: np.array([3, 1], object), "Python objects", "a.astype('float64')", id="object"),
        pytest.param(lambda: np.array(["a"]), "text", "convert it to numbers first", id="str"),
        pytest.param(lambda: np.array([b"a"]), "text", "convert it to numbers first", id="bytes"),
        pytest.param(lambda: np.array(["a"], np.dtypes.StringDType()), "text", "convert it to numbers first", id="T"),
        pytest.param(lambda: np.zeros(3, "M8[s]"), "times", "a.view('int64')", id="datetime64"),
        pytest.param(lambda: np.zeros(3, "m8[s]"), "times", "a.view('int64')", id="timedelta64"),
        pytest.param(lambda: np.zeros(3, ">M8[s]"), "byte order", None, id="swapped datetime64"),
        pytest.param(lambda: np.zeros(3, "V4"), "bytes without a type", "a.copy().view('uint8')", id="void"),
        pytest.param(lambda: np.zeros(3, [("name", "i4"), ("b", "f4")]), "structures", "a['name']", id="structured"),
        pytest.param(lambda: np.rec.array([(1, 2.0)], names="name,b"), "structures", "a['name']", id="record array"),
        pytest.param(lambda: np.char.array(["a"]), "text", "convert it to numbers first", id="chararray"),
        pytest.param(
            lambda: np.ones(3, "g"), "long doubles", "a.astype('float64')", marks=LONG_DOUBLE_IS_DOUBLE, id="longdouble"
        ),
        pytest.param(
            lambda: np.ones(3, "G"), "long doubles", "a.astype('complex128')", marks=LONG_DOUBLE_IS_DOUBLE, id="clongdouble"
        ),
        pytest.param(lambda: np.zeros(3, "u1,f4")["f1"], "multiple of the element size", None, id="field off its steps"),
    ],
)  # fmt: skip
def test_what_dlpack_has_no_word_for_is_refused_with_a_way_out(make, reason, way_out):
    a = make()
    with nothing_kept(a):
        for options in ({}, {}, {"copy": True}, {"device": "cpu"}):
            with pytest.raises(BufferError) as caught:
                tenon.asdlpack(a, **options)
            said = str(caught.value)
            assert said.startswith("tenon: '") and "' object: " in said
            assert reason in said and (way_out or "; ") in said
    if way_out is not None and way_out.startswith("a"):
        out = eval(way_out, {"a": a})
        agrees(tenon.asdlpack(out), out)


def test_byte_order_that_is_the_machines_own_is_taken():
    for spelled in ("<i4", "=i4", "<f8", "|u1", ">u1"):
        a = np.arange(3).astype(spelled)
        agrees(tenon.asdlpack(a), a)


# --- layouts ----------------------------------------------------------------------------------------

BASE = np.arange(120, dtype=np.int32).reshape(4, 5, 6)
LAYOUTS = {
    "0-d": np.array(7, np.int32),
    "0-d of a view": BASE[3, 4, 5, ...],
    "empty": np.zeros((0,), np.int32),
    "empty, other extents": np.zeros((3, 0, 5), np.int32),
    "empty slice": BASE[2:2],
    "whole": BASE,
    "offset": BASE[1:],
    "inner slice": BASE[:, 1:3, 2:],
    "stepped": BASE[::2, ::3, ::4],
    "reversed": BASE[::-1, :, ::-1],
    "reversed by two": BASE[:, ::-2],
    "transposed": BASE.T,
    "axes moved": BASE.transpose(1, 2, 0),
    "Fortran": np.asfortranarray(BASE),
    "one element": BASE[1:2, 1:2, 1:2],
    "extent 1 inside": BASE[:, :1, :],
    "new axes": BASE[None, :, None],
    "diagonal": BASE[:, :, 0].diagonal(),
    "overlapping windows": np.lib.stride_tricks.sliding_window_view(np.arange(9, dtype=np.int32), 4),
    "64 axes": np.arange(4, dtype=np.int32).reshape((1,) * 30 + (2,) + (1,) * 32 + (2,)),
    "33 axes": np.arange(4, dtype=np.int32).reshape((2,) + (1,) * 31 + (2,)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name):
    a = LAYOUTS[name]
    t = tenon.asdlpack(a)
    agrees(t, a)
    comes_back(t, a)


def test_broadcast_is_read_only_with_stride_zero():
    a = np.broadcast_to(np.arange(3.0), (4, 3))
    t = tenon.asdlpack(a)
    agrees(t, a)
    assert t.strides == (0, 1)
    comes_back(t, a)
    with pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(a, readonly=False)


def test_elements_sharing_memory_are_not_given_out_for_writing():
    a = as_strided(np.zeros(4), (3, 2), (8, 8))
    agrees(tenon.asdlpack(a), a)
    with pytest.raises(BufferError, match="share memory"):
        tenon.asdlpack(a, readonly=False)


def test_read_only():
    a = np.arange(3)
    a.flags.writeable = False
    t = tenon.asdlpack(a)
    agrees(t, a)
    comes_back(t, a)
    with pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(a, readonly=False)
    a.flags.writeable = True
    assert not tenon.asdlpack(a, readonly=False).readonly
    assert t.readonly  # what was given read-only stays so


def test_unaligned():
    store = bytearray(b"\xff" + np.arange(4.0).tobytes())
    a = np.frombuffer(store, np.float64, offset=1)
    assert not a.flags.aligned
    t = tenon.asdlpack(a)
    agrees(t, a)
    assert t.data_ptr % 8 != 0
    poke(t, 3, np.float64(9).tobytes())
    assert a.tolist() == [0, 1, 2, 9]


FIELDS = np.zeros(4, [("a", "i4"), ("b", "f8"), ("c", "u1"), ("d", "i2")])


@pytest.mark.parametrize(
    ("field", "stride"), [("a", None), ("b", None), ("c", 15), ("d", None)], ids=["i4", "f8", "u1", "i2"]
)
def test_field_of_a_packed_structure(field, stride):
    """15 bytes apart: only one-byte elements can say so in elements."""
    a = FIELDS[field]
    assert a.strides == (15,)
    if stride is not None:
        agrees(tenon.asdlpack(a), a)
        assert tenon.asdlpack(a).strides == (stride,)
        return
    with nothing_kept(a), pytest.raises(BufferError, match="multiple"):
        tenon.asdlpack(a)


def test_field_strides_that_do_divide_are_taken():
    a = np.zeros(4, [("a", "f8"), ("b", "f8")])["b"]
    a[:] = range(4)
    t = tenon.asdlpack(a)
    agrees(t, a)
    assert t.strides == (2,)
    comes_back(t, a)


def test_an_odd_step_along_an_axis_of_one_element_does_not_matter():
    a = FIELDS["b"][:1]
    assert a.strides == (15,)
    t = tenon.asdlpack(a)
    assert (t.shape, t.data_ptr, raw(t)) == ((1,), a.ctypes.data, a.tobytes())


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((3,), (2**62,)),
        ((3,), (-(2**62),)),
        ((2**20, 2**20), (2**62, 2**62)),
        ((2, 2, 2), (2**62, 2**62, 2**62)),
        ((2,), (-(2**63),)),
    ],
)
def test_strides_that_leave_the_address_space_are_refused(shape, strides):
    a = as_strided(np.zeros(4), shape, strides)
    with nothing_kept(a), pytest.raises(ValueError, match="strides"):
        tenon.asdlpack(a)


def test_absurd_strides_of_an_empty_array_do_not_matter():
    a = as_strided(np.zeros(4), (0, 3), (2**62, -(2**62)))
    t = tenon.asdlpack(a)
    assert (t.shape, t.size, t.nbytes, t.is_contiguous) == ((0, 3), 0, 0, True)


# --- relatives of the array -------------------------------------------------------------------------


class Plain(np.ndarray):
    pass


class Overriding(np.ndarray):
    calls = 0

    def __dlpack__(self, **keywords):
        type(self).calls += 1
        return super().__dlpack__(**keywords)


def test_subclass():
    a = np.arange(6.0).reshape(2, 3)[:, ::-1].view(Plain)
    t = tenon.asdlpack(a)
    agrees(t, np.asarray(a))
    comes_back(t, np.asarray(a))
    a.flags.writeable = False
    assert tenon.asdlpack(a).readonly


def test_subclass_that_overrides_dlpack_is_called():
    a = np.arange(3.0).view(Overriding)
    Overriding.calls = 0
    agrees(tenon.asdlpack(a), np.asarray(a))
    assert Overriding.calls == 1


def test_matrix():
    a = np.arange(6.0).reshape(2, 3).view(np.matrix)
    agrees(tenon.asdlpack(a), np.asarray(a))


@pytest.mark.parametrize(("mode", "readonly"), [("r+", False), ("r", True), ("c", False)])
def test_memmap(tmp_path, mode, readonly):
    path = tmp_path / "numbers"
    np.arange(6, dtype=np.float32).tofile(path)
    a = np.memmap(path, dtype=np.float32, mode=mode, shape=(2, 3))
    t = tenon.asdlpack(a)
    agrees(t, np.asarray(a))
    assert t.readonly is readonly
    del a
    gc.collect()
    assert raw(t) == np.arange(6, dtype=np.float32).tobytes()
    if mode == "r+":
        poke(t, 5, np.float32(50).tobytes())
        del t
        gc.collect()
        assert np.fromfile(path, np.float32)[5] == 50


def test_masked_array_without_a_mask():
    a = np.ma.array([1, 2, 3])
    agrees(tenon.asdlpack(a), a.data)


def test_masked_array_that_hides_something_is_refused():
    """The memory behind a masked element holds a number that the array does not show."""
    a = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    with pytest.raises(BufferError, match="filled"):
        tenon.asdlpack(a)
    assert np.from_dlpack(tenon.asdlpack(a.filled(9))).tolist() == [1, 9, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_is_a_read_only_0_d_tensor(dtype):
    s = np.ones((), dtype)[()]
    assert isinstance(s, np.generic)
    with nothing_kept(s):
        t = tenon.asdlpack(s)
        expect(t, address=None, shape=(), dtype=dtype, itemsize=s.itemsize, readonly=True)
        assert raw(t) == s.tobytes()
        assert np.from_dlpack(t)[()] == s
        with pytest.raises(BufferError, match="read-only"):
            tenon.asdlpack(s, readonly=False)
        del t


@pytest.mark.parametrize("scalar", [np.str_("a"), np.longdouble(1)], ids=["str", "longdouble"])
def test_scalar_without_a_dlpack_word_is_refused(scalar):
    if scalar.itemsize == 8:
        pytest.skip("long double is double here")
    with pytest.raises(BufferError):
        tenon.asdlpack(scalar)


@pytest.mark.parametrize("scalar", [np.datetime64(5, "s"), np.timedelta64(5, "s")], ids=["datetime", "timedelta"])
def test_a_single_time_is_refused_as_an_array_of_them_is(scalar):
    """Its buffer, NumPy says, is eight numbers of one byte."""
    with pytest.raises(BufferError, match="times.*convert to numbers"):
        tenon.asdlpack(scalar)


def test_the_class_is_no_array():
    with pytest.raises(TypeError, match="instance"):
        tenon.asdlpack(np.ndarray)


# --- copies and devices -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_copy_is_other_memory(name):
    a = LAYOUTS[name]
    t = tenon.asdlpack(a, copy=True, readonly=False)
    assert (t.shape, t.dtype, t.flags) == (a.shape, "int32", COPIED)
    assert raw(t) == a.tobytes()
    if a.size:
        assert not np.shares_memory(np.from_dlpack(t), a)


def test_copy_of_a_read_only_array_is_writable():
    a = np.broadcast_to(np.arange(3), (2, 3))
    t = tenon.asdlpack(a, copy=True, readonly=False)
    assert not t.readonly
    poke(t, 0, np.int64(9).tobytes())
    assert a[0, 0] == 0
    assert raw(t)[:8] == np.int64(9).tobytes()


@pytest.mark.parametrize("keywords", [{"copy": False}, {"device": "cpu"}, {"device": (1, 0)}], ids=repr)
def test_asking_for_what_is_so_already_changes_nothing(keywords):
    a = BASE[:, ::2]
    agrees(tenon.asdlpack(a, **keywords), a)


def test_other_device_is_refused_without_a_copy():
    with pytest.raises(BufferError, match="copy=False"):
        tenon.asdlpack(np.arange(3), device="cuda:0", copy=False)


# --- lifetime ---------------------------------------------------------------------------------------


class Watched(np.ndarray):
    """A subclass of its own, so that weak references to it are of no other array."""


@pytest.mark.parametrize("subclass", [np.ndarray, Watched], ids=["ndarray", "subclass"])
def test_array_lives_as_long_as_the_tensor(subclass):
    keeps_alive(lambda: np.arange(1000).view(subclass), weakref.ref)


def test_references_are_given_back():
    a = np.arange(10)
    before = references(a)
    t = tenon.asdlpack(a)
    assert references(a) == before + 1
    u = np.from_dlpack(t)
    v = tenon.asdlpack(t)
    del t
    gc.collect()
    assert references(a) > before
    assert raw(v) == a.tobytes() == u.tobytes()
    del u, v
    gc.collect()
    assert references(a) == before


@pytest.mark.parametrize("keywords", [{}, {"copy": True}, {"device": "cpu"}, {"readonly": False}], ids=repr)
def test_no_reference_is_lost_over_many_imports(keywords):
    a = np.arange(10)
    with nothing_kept(a, a.dtype):
        for _ in range(500):
            tenon.asdlpack(a, **keywords)


def test_resize_of_an_array_that_is_held():
    a = np.arange(4)
    t = tenon.asdlpack(a)
    before = raw(t)
    with pytest.raises(ValueError, match="referenc"):
        a.resize(4096)
    assert raw(t) == before


# --- any array --------------------------------------------------------------------------------------


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    count = int(np.prod(shape))
    a = np.frombuffer(bytearray(draw(st.binary(min_size=16, max_size=16)) * (count + 1)), np.uint8)
    a = a[: count * np.dtype(dtype).itemsize].view(dtype).reshape(shape, order=draw(st.sampled_from("CF")))
    if dtype == "bool":
        a.view(np.uint8)[...] &= 1
    for step in draw(st.lists(st.sampled_from(["slice", "transpose", "broadcast", "newaxis", "freeze"]), max_size=4)):
        if step == "slice" and a.ndim:
            cut = st.builds(
                slice, st.integers(-4, 4), st.none() | st.integers(-4, 4), st.sampled_from([None, 1, 2, 3, -1, -2])
            )
            a = a[tuple(draw(cut) for _ in range(draw(st.integers(1, a.ndim))))]
        elif step == "transpose":
            a = a.transpose(draw(st.permutations(range(a.ndim))))
        elif step == "broadcast":
            a = np.broadcast_to(a, (draw(st.integers(0, 3)), *a.shape))
        elif step == "newaxis":
            a = a[..., None]
        elif step == "freeze":
            a = a.view()
            a.flags.writeable = False
    return a


@settings(max_examples=400, deadline=None)
@given(a=arrays())
def test_any_array_reads_as_numpy_says(a):
    t = tenon.asdlpack(a)
    assert (t.shape, t.strides) == (a.shape, element_strides(a))
    assert (t.dtype, t.itemsize, t.size, t.nbytes) == (a.dtype.name, a.itemsize, a.size, a.nbytes)
    assert t.data_ptr == a.__array_interface__["data"][0]
    assert t.readonly is not a.flags.writeable
    assert t.is_contiguous is a.flags.c_contiguous
    assert raw(t) == a.tobytes()
    comes_back(t, a)
    c = tenon.asdlpack(a, copy=True)
    assert raw(c) == a.tobytes()
    assert c.is_contiguous


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
@settings(max_examples=100, deadline=None)
@given(a=arrays())
def test_any_array_reads_the_same_in_torch(a):
    torch = need("torch")
    if any(s < 0 for s in a.strides):
        return  # PyTorch has no negative strides
    b = torch.from_dlpack(tenon.asdlpack(a))
    assert tuple(b.shape) == a.shape
    assert b.numpy().tobytes() == a.tobytes()
