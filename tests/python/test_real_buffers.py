# tests/python/test_real_buffers.py: objects of the standard library that only speak the buffer protocol, and what holding them blocks.
from __future__ import annotations

import array
import ctypes
import gc
import io
import mmap
import pickle
import struct
import sys
import weakref
from multiprocessing import shared_memory

import pytest
from real_support import COPIED, expect, has, keeps_alive, need, nothing_kept, poke, raw, script

import tenon

LONG = 8 * struct.calcsize("l")
# The letters of the struct module: what an element is, and its size.
FORMATS = {
    "b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32",
    "l": f"int{LONG}", "L": f"uint{LONG}", "q": "int64", "Q": "uint64", "f": "float32", "d": "float64",
}  # fmt: skip


def address_of(obj) -> int:
    """Where a writable buffer begins, by ctypes."""
    return ctypes.addressof(ctypes.c_char.from_buffer(obj))


# --- bytes and bytearray ----------------------------------------------------------------------------


def test_bytes():
    b = b"\x00\x01\xfe\xff"
    with nothing_kept(b):
        t = tenon.asdlpack(b)
        address = ctypes.cast(ctypes.c_char_p(b), ctypes.c_void_p).value
        expect(t, address=address, shape=(4,), dtype="uint8", itemsize=1, readonly=True)
        assert raw(t) == b
        with pytest.raises(BufferError, match="read-only"):
            tenon.asdlpack(b, readonly=False)
        del t


@pytest.mark.parametrize("make", [bytes, bytearray])
def test_empty(make):
    expect(
        tenon.asdlpack(make()),
        address=None,
        shape=(0,),
        dtype="uint8",
        itemsize=1,
        readonly=make is bytes,
    )


def test_bytearray():
    b = bytearray(b"abcd")
    t = tenon.asdlpack(b, readonly=False)
    expect(t, address=address_of(b), shape=(4,), dtype="uint8", itemsize=1, readonly=False)
    b[0] = ord("z")
    assert raw(t) == b"zbcd"
    poke(t, 3, b"!")
    assert b == b"zbc!"


RESIZES = {
    "append": lambda b: b.append(1),
    "extend": lambda b: b.extend(b"123"),
    "clear": lambda b: b.clear(),
    "delete": lambda b: b.__delitem__(slice(0, 2)),
    "slice of another size": lambda b: b.__setitem__(slice(0, 1), b"12"),
    "pop": lambda b: b.pop(),
    "+=": lambda b: b.__iadd__(b"1"),
}


@pytest.mark.parametrize("name", RESIZES)
def test_bytearray_cannot_be_resized_while_held(name):
    b = bytearray(b"abcd")
    t = tenon.asdlpack(b)
    with pytest.raises(BufferError):
        RESIZES[name](b)
    assert (bytes(b), raw(t)) == (b"abcd", b"abcd")
    del t
    gc.collect()
    RESIZES[name](b)
    assert len(b) != 4


def test_bytearray_can_be_resized_after_a_copy():
    b = bytearray(b"abcd")
    t = tenon.asdlpack(b, copy=True)
    assert t.flags == COPIED
    b += b"e"
    assert (bytes(b), raw(t)) == (b"abcde", b"abcd")


def test_bytearray_stays_held_by_what_was_made_from_the_tensor():
    np = need("numpy")
    b = bytearray(b"abcd")
    view = np.from_dlpack(tenon.asdlpack(b))
    gc.collect()
    with pytest.raises(BufferError):
        b.append(1)
    assert view.tobytes() == b"abcd"
    view[0] = ord("z")
    assert b == b"zbcd"
    del view
    gc.collect()
    b.append(1)


def test_a_refused_buffer_is_given_back():
    b = bytearray(8)
    with pytest.raises(BufferError):
        tenon.asdlpack(memoryview(b).cast("P"))
    gc.collect()
    b.append(1)
    with pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(memoryview(b).toreadonly(), readonly=False)
    gc.collect()
    b.append(1)
    assert len(b) == 10


class Weak(bytearray):
    """A bytearray that weak references can watch."""


def test_bytearray_lives_as_long_as_the_tensor():
    keeps_alive(lambda: Weak(b"abcd"), weakref.ref)


# --- array.array ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", FORMATS)
def test_array(code):
    a = array.array(code, [1, 2, 100])
    t = tenon.asdlpack(a, readonly=False)
    expect(
        t, address=a.buffer_info()[0], shape=(3,), dtype=FORMATS[code], itemsize=a.itemsize, readonly=False
    )
    assert raw(t) == a.tobytes()
    poke(t, 0, struct.pack(code, 7))
    a[1] = 9
    assert a.tolist() == [7, 9, 100]
    assert raw(t) == a.tobytes()
    with pytest.raises(BufferError):
        a.append(1)
    del t
    gc.collect()
    a.append(1)


@pytest.mark.parametrize("code", FORMATS)
def test_empty_array(code):
    expect(
        tenon.asdlpack(array.array(code)),
        address=None,
        shape=(0,),
        dtype=FORMATS[code],
        itemsize=array.array(code).itemsize,
        readonly=False,
    )


def test_every_typecode_is_in_the_table():
    assert set(array.typecodes) - set("uw") == set(FORMATS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("code", [c for c in "uw" if c in array.typecodes])
def test_array_of_characters_is_refused(code):
    a = array.array(code, "ab")
    with nothing_kept(a), pytest.raises(BufferError, match="format"):
        tenon.asdlpack(a)


# --- memoryview -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["", "@"])
@pytest.mark.parametrize("code", [*FORMATS, "c", "?", "n", "N"])
def test_memoryview_cast(code, mark):
    named = {**FORMATS, "c": "uint8", "?": "bool", "n": f"int{8 * struct.calcsize('n')}"}
    named["N"] = "u" + named["n"]
    b = bytearray(range(1, 25)) if code != "?" else bytearray([0, 1] * 12)
    m = memoryview(b).cast(mark + code)
    expect(
        tenon.asdlpack(m),
        address=address_of(b),
        shape=m.shape,
        dtype=named[code],
        itemsize=m.itemsize,
        readonly=False,
    )
    assert raw(tenon.asdlpack(m)) == bytes(b)


def test_memoryview_of_pointers_is_refused():
    with pytest.raises(BufferError, match="format"):
        tenon.asdlpack(memoryview(bytearray(16)).cast("P"))


NUMBERS = bytearray(struct.pack("24i", *range(24)))
LAYOUTS = {
    "flat": lambda m: m,
    "sliced": lambda m: m[3:9],
    "stepped": lambda m: m[1::5],
    "reversed": lambda m: m[::-1],
    "reversed by two": lambda m: m[::-2],
    "empty slice": lambda m: m[5:5],
    "two axes": lambda m: m.cast("B").cast("i", [4, 6]),
    "three axes": lambda m: m.cast("B").cast("i", [2, 3, 4]),
    "read-only": lambda m: m.toreadonly(),
    "read-only slice": lambda m: m.toreadonly()[::3],
    "no axes": lambda m: m[7:8].cast("B").cast("i", []),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_memoryview_layout(name):
    m = LAYOUTS[name](memoryview(NUMBERS).cast("i"))
    t = tenon.asdlpack(m)
    expect(
        t,
        address=None,
        shape=tuple(m.shape),
        strides=tuple(s // 4 for s in m.strides),
        dtype="int32",
        itemsize=4,
        readonly=m.readonly,
    )
    assert raw(t) == m.tobytes()


def test_memoryview_addresses():
    start = address_of(NUMBERS)
    m = memoryview(NUMBERS).cast("i")
    assert tenon.asdlpack(m[3:]).data_ptr == start + 12
    assert tenon.asdlpack(m[::-1]).data_ptr == start + 23 * 4
    assert tenon.asdlpack(m[1::5]).data_ptr == start + 4


def test_memoryview_cannot_be_released_while_held():
    m = memoryview(bytearray(4))
    t = tenon.asdlpack(m)
    with pytest.raises(BufferError):
        m.release()
    assert raw(t) == bytes(4)
    del t
    gc.collect()
    m.release()
    with pytest.raises(ValueError, match="released"):
        tenon.asdlpack(m)


def test_memoryview_of_64_axes_is_the_most():
    m = memoryview(bytes(4)).cast("B", [1] * 63 + [4])
    t = tenon.asdlpack(m)
    assert (t.ndim, raw(t)) == (64, bytes(4))


def test_memoryview_read_through_numpy():
    np = need("numpy")
    for name, make in LAYOUTS.items():
        m = make(memoryview(NUMBERS).cast("i"))
        got = np.from_dlpack(tenon.asdlpack(m))
        np.testing.assert_array_equal(got, np.asarray(m), err_msg=name)
        if m.nbytes:  # what is empty leaves without an address
            assert got.ctypes.data == np.asarray(m).ctypes.data, name


@pytest.mark.parametrize("behind", ["bytearray(4)", "tenon.asdlpack(bytearray(4))"])
def test_memoryview_in_a_cycle_with_its_tensor(behind):
    """Older CPythons crash when the collector clears a memoryview that has lent its buffer."""
    script(f"""
import gc, tenon
gc.disable()
m = memoryview({behind})
t = tenon.asdlpack(m)
cycle = [m, t]
cycle.append(cycle)
del m, t, cycle
gc.collect()
""")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have __buffer__ since Python 3.12")
@pytest.mark.parametrize("keep", ["t", "memoryview(t)", "t.__dlpack__(max_version=(1, 0))"])
def test_class_with_buffers_in_a_cycle_with_its_tensors(keep):
    """What 3.12 puts between the class and its memoryview must not lead the collector to that."""
    script(f"""
import gc, tenon
saved = []
class B:
    def __init__(self): self.memory = bytearray(b"\\x01" * 100_000)
    def __buffer__(self, flags): return memoryview(self.memory)
    def __release_buffer__(self, view):
        t = getattr(self, "second", None)
        if t is not None: saved.append({keep})
def make():
    b = B()
    b.first, b.second = tenon.asdlpack(b), tenon.asdlpack(b)
make()
gc.collect()
for kept in saved:
    assert tenon.asdlpack(kept).tolist() == [1] * 100_000
""")


# --- mmap and shared memory -------------------------------------------------------------------------


def test_mmap():
    m = mmap.mmap(-1, 4096)
    m[:4] = b"abcd"
    t = tenon.asdlpack(m, readonly=False)
    expect(t, address=address_of(m), shape=(4096,), dtype="uint8", itemsize=1, readonly=False)
    poke(t, 1, b"!")
    assert m[:4] == b"a!cd"
    m[0] = ord("z")
    assert raw(t)[:4] == b"z!cd"
    with pytest.raises(BufferError):
        m.close()
    assert m[:4] == b"z!cd"
    del t
    gc.collect()
    m.close()
    with pytest.raises(ValueError, match="mmap"):
        tenon.asdlpack(m)


@pytest.mark.skipif(sys.platform == "darwin", reason="mremap is not there")
def test_mmap_cannot_be_resized_while_held():
    m = mmap.mmap(-1, 4096)
    t = tenon.asdlpack(m)
    with pytest.raises((BufferError, SystemError, ValueError)):
        m.resize(8192)
    assert t.nbytes == 4096
    del t
    gc.collect()
    m.close()


@pytest.mark.parametrize(
    ("access", "readonly"), [(mmap.ACCESS_READ, True), (mmap.ACCESS_WRITE, False), (mmap.ACCESS_COPY, False)]
)
def test_mmap_of_a_file(tmp_path, access, readonly):
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    with path.open("r+b") as f:
        m = mmap.mmap(f.fileno(), 0, access=access)
    t = tenon.asdlpack(m)
    expect(t, address=None, shape=(6,), dtype="uint8", itemsize=1, readonly=readonly)
    assert raw(t) == b"abcdef"
    if readonly:
        with pytest.raises(BufferError, match="read-only"):
            tenon.asdlpack(m, readonly=False)
    else:
        poke(t, 0, b"Z")
        assert m[:] == b"Zbcdef"
        assert path.read_bytes() == (b"Zbcdef" if access == mmap.ACCESS_WRITE else b"abcdef")
    gc.collect()
    with pytest.raises(BufferError):
        m.close()
    del t
    gc.collect()
    m.close()


def test_shared_memory():
    s = shared_memory.SharedMemory(create=True, size=64)
    try:
        with pytest.raises(TypeError, match="protocol"):
            tenon.asdlpack(s)  # it has a buffer, it is none
        t = tenon.asdlpack(s.buf, readonly=False)
        expect(t, address=None, shape=t.shape, dtype="uint8", itemsize=1, readonly=False)
        assert t.nbytes >= 64
        poke(t, 5, b"\x2a")
        other = shared_memory.SharedMemory(name=s.name)
        try:
            assert other.buf[5] == 42
            other.buf[6] = 43
        finally:
            other.close()
        assert raw(t)[:8] == bytes([0, 0, 0, 0, 0, 42, 43, 0])
        with pytest.raises(BufferError):
            s.close()
        del t
        gc.collect()
    finally:
        s.close()
        s.unlink()


# --- ctypes -----------------------------------------------------------------------------------------

SIZE = 8 * ctypes.sizeof(ctypes.c_size_t)
CTYPES = {
    "c_bool": "bool", "c_byte": "int8", "c_ubyte": "uint8", "c_short": "int16", "c_ushort": "uint16",
    "c_int": "int32", "c_uint": "uint32", "c_long": f"int{LONG}", "c_ulong": f"uint{LONG}",
    "c_longlong": "int64", "c_ulonglong": "uint64", "c_size_t": f"uint{SIZE}", "c_ssize_t": f"int{SIZE}",
    "c_int8": "int8", "c_int16": "int16", "c_int32": "int32", "c_int64": "int64",
    "c_uint8": "uint8", "c_uint16": "uint16", "c_uint32": "uint32", "c_uint64": "uint64",
    "c_float": "float32", "c_double": "float64", "c_char": "uint8",
}  # fmt: skip


@pytest.mark.parametrize("name", CTYPES)
def test_ctypes(name):
    kind = getattr(ctypes, name)
    one = b"\x01" if name == "c_char" else 1
    for make, shape in [
        (kind, ()),
        (kind * 3, (3,)),
        (kind * 3 * 2, (2, 3)),
        (kind * 1 * 2 * 3, (3, 2, 1)),
        (kind * 0, (0,)),
    ]:
        c = make()
        t = tenon.asdlpack(c, readonly=False)
        expect(
            t,
            address=ctypes.addressof(c) if 0 not in shape else None,
            shape=shape,
            dtype=CTYPES[name],
            itemsize=ctypes.sizeof(kind),
            readonly=False,
        )
        if len(shape) == 1 and shape[0]:
            c[2] = one
            assert raw(t)[-t.itemsize :] == bytes(kind(one))
            poke(t, 0, bytes(kind(one)))
            assert c[0] == one


def test_ctypes_array_lives_as_long_as_the_tensor():
    keeps_alive(lambda: (ctypes.c_int * 1000)(*range(1000)), weakref.ref)


def test_ctypes_byte_orders():
    own, other = ("le", "be") if sys.byteorder == "little" else ("be", "le")
    right = (getattr(ctypes.c_int32, f"__ctype_{own}__") * 3)(1, 2, 3)
    assert tenon.asdlpack(right).dtype == "int32"
    assert raw(tenon.asdlpack(right)) == struct.pack("3i", 1, 2, 3)
    for kind in (ctypes.c_int16, ctypes.c_uint32, ctypes.c_int64, ctypes.c_float, ctypes.c_double):
        swapped = (getattr(kind, f"__ctype_{other}__") * 3)()
        with pytest.raises(BufferError, match="byte order"):
            tenon.asdlpack(swapped)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_float))


class Either(ctypes.Union):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_float))


REFUSED = {
    "structure": Pair(),
    "structures": (Pair * 3)(),
    "union": Either(),
    "unions": (Either * 3)(),
    "pointer": ctypes.pointer(ctypes.c_int(3)),
    "null pointer": ctypes.POINTER(ctypes.c_int)(),
    "pointers": (ctypes.POINTER(ctypes.c_int) * 3)(),
    "void pointers": (ctypes.c_void_p * 3)(),
    "char pointers": (ctypes.c_char_p * 3)(),
    "objects": (ctypes.py_object * 3)(),
    "wide characters": (ctypes.c_wchar * 3)(),
    "function": ctypes.CFUNCTYPE(None)(),
    "long doubles": (ctypes.c_longdouble * 3)(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ctypes_refused(name):
    if name == "long doubles" and ctypes.sizeof(ctypes.c_longdouble) == 8:
        pytest.skip("long double is double here")
    c = REFUSED[name]
    with nothing_kept(c), pytest.raises(BufferError, match="format"):
        tenon.asdlpack(c)


def test_ctypes_read_through_torch():
    torch = need("torch")
    c = (ctypes.c_double * 3)(1, 2, 3)
    back = torch.from_dlpack(tenon.asdlpack(c))
    assert back.data_ptr() == ctypes.addressof(c)
    back[1] = 20
    assert list(c) == [1, 20, 3]


# --- the rest ---------------------------------------------------------------------------------------


def test_bytesio_cannot_grow_while_held():
    f = io.BytesIO(b"abcd")
    t = tenon.asdlpack(f.getbuffer(), readonly=False)
    assert raw(t) == b"abcd"
    with pytest.raises(BufferError):
        f.truncate(0)
    poke(t, 0, b"z")
    assert f.getvalue() == b"zbcd"
    del t
    gc.collect()
    f.truncate(0)


def test_pickle_buffer():
    t = tenon.asdlpack(pickle.PickleBuffer(b"abcd"))
    expect(t, address=None, shape=(4,), dtype="uint8", itemsize=1, readonly=True)
    assert raw(t) == b"abcd"


NOT_ARRAYS = [None, 3, 2.5, True, "text", [1, 2], (1, 2), {"a": 1}, {1}, object(), print, len, range(3), Ellipsis]


@pytest.mark.parametrize("obj", NOT_ARRAYS, ids=lambda o: type(o).__name__)
def test_what_is_no_array_is_a_type_error_that_says_what_was_tried(obj):
    with pytest.raises(TypeError, match="protocol") as e:
        tenon.asdlpack(obj)
    for rung in ("__dlpack__", "buffer protocol", "__array_interface__", "__arrow_c_array__"):
        assert rung in str(e.value)


@pytest.mark.parametrize("cls", [bytes, bytearray, memoryview, mmap.mmap, ctypes.c_int * 3], ids=lambda c: c.__name__)
def test_a_class_is_a_type_error(cls):
    with pytest.raises(TypeError, match="instance"):
        tenon.asdlpack(cls)


@pytest.mark.skipif(not has("numpy"), reason="numpy is not installed")
@pytest.mark.parametrize(
    "make",
    [lambda: bytearray(8), lambda: array.array("d", [1, 2]), lambda: (ctypes.c_int * 3)(), lambda: mmap.mmap(-1, 64)],
    ids=["bytearray", "array", "ctypes", "mmap"],
)
def test_no_reference_is_lost_over_many_imports(make):
    np = need("numpy")
    obj = make()
    with nothing_kept(obj):
        for _ in range(300):
            t = tenon.asdlpack(obj)
            np.from_dlpack(t)
            tenon.asdlpack(obj, copy=True)
            del t
