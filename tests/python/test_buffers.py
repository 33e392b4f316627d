# tests/python/test_buffers.py: the buffer protocol: held while the tensor lives, every field of it doubted.
from __future__ import annotations

import array
import mmap
import struct as packing
import sys

import pytest
import tenon
import tenon_probe
from fake_buffer import Buffer
from isolation import isolated, table
from producers import exactly_once, refuse, take

BIG = 2**63 - 1
LOW = -(2**63)
MALFORMED = tenon.MalformedError


def borrow(obj, **options):
    return tenon_probe.borrow(obj, read=False, **options)


def both_ways(fields, check):
    fake = Buffer(**fields)
    with exactly_once(fake):
        check(fake, tenon.asdlpack)
    with exactly_once(fake, exports=2):
        check(fake, borrow)


def is_refused(fields, exception=MALFORMED, match=None):
    both_ways(fields, lambda obj, importer: refuse(obj, exception, match, importer))


def is_taken(fields, **wanted):
    fake = Buffer(**fields)
    with exactly_once(fake):
        seen = take(fake)
        for name, value in wanted.items():
            assert getattr(seen, name) == value, (name, getattr(seen, name), value)


table(globals(), {
    "test_F67_negative_ndim": dict(fields=dict(shape=(2,), ndim=-1), match="ndim"),
    "test_F67_ndim_65": dict(fields=dict(shape=(1,) * 65), exception=BufferError, match="ndim"),
    "test_F67_huge_ndim_with_null_shape": dict(fields=dict(shape=None, ndim=2**31 - 1), exception=BufferError),
    "test_F67_null_shape": dict(fields=dict(shape=None, ndim=2, len=24), match="shape"),
    "test_F67_shape_is_a_small_integer": dict(fields=dict(shape=16, ndim=1, len=8), match="shape"),
    "test_F67_strides_are_a_small_integer": dict(fields=dict(shape=(2,), strides=16), match="strides"),
    "test_F67_suboffsets_are_a_small_integer": dict(fields=dict(shape=(2,), suboffsets=16), match="suboffsets"),
    "test_F67_negative_extent": dict(fields=dict(shape=(-2,), len=8), match="shape"),
    "test_F67_extents_that_wrap": dict(fields=dict(shape=(2**32, 2**32, 16), len=0), match="len|shape"),
    "test_F67_len_too_small": dict(fields=dict(shape=(4,), len=8), match="len"),
    "test_F67_len_too_large": dict(fields=dict(shape=(4,), len=1024), match="len"),
    "test_F67_negative_len": dict(fields=dict(shape=(4,), len=-16), match="len"),
    "test_F67_itemsize_zero": dict(fields=dict(shape=(4,), itemsize=0, len=16), match="itemsize"),
    "test_F67_itemsize_negative": dict(fields=dict(shape=(4,), itemsize=-4, len=16), match="itemsize"),
    "test_F67_itemsize_lowest": dict(fields=dict(shape=(4,), itemsize=LOW, len=16), match="itemsize"),
    "test_F67_null_memory": dict(fields=dict(shape=(4,), data=None), match="data"),
    "test_F67_stride_that_wraps": dict(fields=dict(shape=(3,), strides=(2**62,)), match="strides"),
    "test_F67_lowest_stride": dict(fields=dict(shape=(2,), strides=(LOW,)), match="strides"),
    "test_F54_stride_not_a_multiple": dict(fields=dict(shape=(2,), strides=(6,)), exception=BufferError,
                                           match=r"strides\[0\]"),
    "test_F64_suboffsets": dict(fields=dict(shape=(2,), strides=(8,), suboffsets=(0,)), exception=BufferError,
                                match="suboffsets"),
}, is_refused)

table(globals(), {
    "test_F67_negative_suboffsets_mean_none": dict(fields=dict(shape=(2,), suboffsets=(-1,)), shape=(2,)),
    "test_F67_null_shape_of_one_axis": dict(fields=dict(shape=None, ndim=1, len=20), shape=(5,)),
    "test_F67_scalar": dict(fields=dict(shape=(), strides=None), shape=(), size=1),
    "test_F67_scalar_with_junk_arrays": dict(fields=dict(shape=16, strides=16, ndim=0, len=4), shape=(), size=1),
    "test_F67_empty_with_null_memory": dict(fields=dict(shape=(0, 4), data=None, len=0), size=0),
    "test_F67_empty_with_any_strides": dict(fields=dict(shape=(0, 4), strides=(3, LOW), len=0), size=0),
    "test_F54_odd_stride_of_a_size_one_axis": dict(fields=dict(shape=(1, 2), strides=(7, 4)), shape=(1, 2)),
    "test_F49_negative_strides": dict(fields=dict(shape=(4,), strides=(-4,)), strides=(-1,)),
    "test_F70_readonly_flag": dict(fields=dict(shape=(4,), readonly=True), readonly=True),
    "test_F70_writable_flag": dict(fields=dict(shape=(4,), readonly=False), readonly=False),
}, is_taken)

FORMATS = {  # format, item size: dtype, or the exception
    ("b", 1): "int8", ("B", 1): "uint8", (None, 1): "uint8", ("c", 1): "uint8", ("?", 1): "bool", ("h", 2): "int16",
    ("H", 2): "uint16", ("i", 4): "int32", ("I", 4): "uint32", ("l", 8): "int64", ("l", 4): "int32",
    ("L", 8): "uint64", ("L", 4): "uint32", ("q", 8): "int64", ("Q", 8): "uint64", ("n", 8): "int64",
    ("N", 8): "uint64", ("e", 2): "float16", ("f", 4): "float32", ("d", 8): "float64", ("Zf", 8): "complex64",
    ("Zd", 16): "complex128", ("@i", 4): "int32", ("=i", 4): "int32", ("=q", 8): "int64", ("=l", 4): "int32",
    ("F", 8): "complex64", ("D", 16): "complex128", ("@F", 8): "complex64",  # Python 3.14's struct and ctypes
    ("<D" if sys.byteorder == "little" else ">D", 16): "complex128",
    (">F" if sys.byteorder == "little" else "<F", 8): BufferError, ("F", 4): MALFORMED, ("D", 8): MALFORMED,
    ("G", 32): BufferError, ("ZD", 16): BufferError,
    ("<d" if sys.byteorder == "little" else ">d", 8): "float64", ("<b", 1): "int8", (">B", 1): "uint8",
    (">i" if sys.byteorder == "little" else "<i", 4): BufferError,
    ("!d" if sys.byteorder == "little" else "<d", 8): BufferError,
    ("T{i:x:}", 4): BufferError, ("3f", 12): BufferError, ("ff", 8): BufferError, ("", 4): BufferError,
    ("x", 1): BufferError, ("4s", 4): BufferError, ("5p", 5): BufferError, ("P", 8): BufferError,
    ("O", 8): BufferError, ("g", 16): BufferError, ("w", 4): BufferError, ("u", 2): BufferError, ("&i", 8): BufferError,
    ("(2,3)f", 24): BufferError, ("f ", 4): BufferError, (" f", 4): BufferError, ("f\n", 4): BufferError,
    ("i", 8): MALFORMED, ("d", 4): MALFORMED, ("f", 1): MALFORMED, (None, 4): MALFORMED, ("?", 2): MALFORMED,
    ("\x7f", 1): BufferError, ("é", 2): BufferError, ("Z", 8): BufferError, ("i" * 5000, 4): BufferError,
}


@isolated
def test_F65_F66_formats():
    for (text, itemsize), wanted in FORMATS.items():
        fake = Buffer(shape=(2,), format=text, itemsize=itemsize)
        with exactly_once(fake):
            if isinstance(wanted, str):
                assert take(fake).dtype == wanted, text
            else:
                refuse(fake, wanted)


@isolated
def test_F65_formats_of_the_standard_library():
    for code in "bBhHiIlLqQfd":
        values = array.array(code, [1, 2, 3])
        seen = take(values)
        assert (seen.shape, seen.itemsize, seen.data_ptr) == ((3,), values.itemsize, values.buffer_info()[0])
        assert tenon_probe.borrow(values)["size"] == 3
    assert take(b"abc").readonly and not take(bytearray(b"abc")).readonly


@isolated
def test_F67_exporter_that_refuses():
    fake = Buffer(shape=(2,), answer="raise")
    with exactly_once(fake, exports=0):
        refuse(fake, BufferError, "own words")
        refuse(fake, BufferError, "own words", borrow)


@isolated
def test_F67_exporter_that_fails_without_an_exception():
    fake = Buffer(shape=(2,), answer="silent")
    with exactly_once(fake, exports=0):
        refuse(fake, (BufferError, SystemError))
        refuse(fake, (BufferError, SystemError), None, borrow)


@isolated
def test_F67_exporter_that_succeeds_with_an_exception():
    fake = Buffer(shape=(2,), answer="ok_raised")
    with exactly_once(fake, exports=None):
        refuse(fake, (BufferError, SystemError))
        refuse(fake, (BufferError, SystemError), None, borrow)


@isolated
def test_F67_exporter_that_names_no_owner():
    fake = Buffer(shape=(2,), answer="no_owner")
    assert take(fake).shape == (2,)
    assert borrow(fake)["shape"] == (2,)
    assert fake.releases == 0


@isolated
def test_F67_F64_stdlib_test_exporter():
    _testbuffer = pytest.importorskip("_testbuffer")
    make = _testbuffer.ndarray
    flags = _testbuffer
    source = list(range(12))
    plain = make(source, shape=[3, 4], format="i")
    assert take(plain).shape == (3, 4)
    refuse(make(source, shape=[3, 4], format="i", flags=flags.ND_PIL), BufferError, "suboffsets")
    backwards = make(source, shape=[12], strides=[-4], offset=44, format="i")
    assert take(backwards).strides == (-1,)
    fails = make(source, shape=[12], format="i", flags=flags.ND_GETBUF_FAIL)
    refuse(fails, BufferError)
    # Fails and leaves junk where the owner should be: it must not be released.
    refuse(make(source, shape=[12], format="i", flags=flags.ND_GETBUF_FAIL | flags.ND_GETBUF_UNDEFINED), BufferError)


@isolated
def test_F56_bytearray_cannot_be_resized_while_held():
    memory = bytearray(16)
    tensor = tenon.asdlpack(memory)
    for change in (lambda: memory.append(1), memory.clear, lambda: memory.extend(b"x" * 100)):
        with pytest.raises(BufferError):
            change()
    memory[0] = 7
    assert tenon_probe.borrow(tensor)["sum"] == 7
    del tensor
    memory.append(1)
    assert len(memory) == 17


@isolated
def test_F56_held_only_for_the_call_when_borrowed():
    memory = bytearray(16)

    def grow():
        with pytest.raises(BufferError):
            memory.append(1)

    assert borrow(memory, during=grow)["size"] == 16
    memory.append(1)
    assert borrow(memory)["size"] == 17


@isolated
def test_F56_copy_does_not_hold_the_buffer():
    memory = bytearray(b"abcd")
    copied = tenon.asdlpack(memory, copy=True)
    memory.extend(b"e" * 1000)
    assert tenon_probe.borrow(copied)["sum"] == sum(b"abcd")


@isolated
def test_F58_mmap_cannot_be_closed_while_held():
    memory = mmap.mmap(-1, 4096)
    memory[0] = 9
    tensor = tenon.asdlpack(memory)
    with pytest.raises(BufferError):
        memory.close()
    assert tenon_probe.borrow(tensor)["sum"] == 9
    del tensor
    memory.close()
    refuse(memory, ValueError)


@isolated
def test_F56_memoryview_cannot_be_released_while_held():
    view = memoryview(bytearray(8))
    tensor = tenon.asdlpack(view)
    with pytest.raises(BufferError):
        view.release()
    del tensor
    view.release()
    refuse(view, ValueError, "released")


@isolated
def test_F62_exporter_is_kept_alive():
    import gc
    import weakref

    class Memory(array.array):
        pass

    memory = Memory("i", [1, 2, 3])
    seen = weakref.ref(memory)
    tensor = tenon.asdlpack(memory)
    del memory
    gc.collect()
    assert seen() is not None and tenon_probe.borrow(tensor)["sum"] == 6
    del tensor
    gc.collect()
    assert seen() is None


@isolated
def test_F59_cycle_through_a_buffer_is_collected():
    import gc
    import weakref

    class Memory(bytearray):
        pass

    memory = Memory(8)
    memory.tensor = tenon.asdlpack(memory)
    seen = weakref.ref(memory)
    del memory
    gc.collect()
    assert seen() is None


@isolated
def test_F68_release_with_an_exception_pending_and_off_thread():
    fake = Buffer(shape=(4,))
    with exactly_once(fake, exports=2):
        mine = ValueError("mine")
        assert tenon_probe.hold(fake).drop_with_error(mine) is mine
        tenon_probe.hold(fake).drop_on_thread()


@isolated
def test_F22_F68_release_that_imports_again():
    fake = Buffer(shape=(4,), on_release=lambda: take(bytearray(8)))
    with exactly_once(fake, exports=2):
        take(fake)
        borrow(fake)


@isolated
def test_F68_release_that_raises():
    def fail():
        raise ValueError("in a release")

    reported = []
    previous, sys.unraisablehook = sys.unraisablehook, reported.append
    try:
        fake = Buffer(shape=(4,), on_release=fail)
        with exactly_once(fake):
            take(fake)
    finally:
        sys.unraisablehook = previous


@isolated
def test_F68_python_level_release_buffer():
    if sys.version_info < (3, 12):
        pytest.skip("__buffer__ in Python is of 3.12")
    released = []

    class Memory:
        def __buffer__(self, flags):
            return memoryview(bytearray(8))

        def __release_buffer__(self, view):
            assert sys.exc_info()[0] is None
            released.append(view)

    take(Memory())
    assert len(released) == 1
    held = tenon_probe.hold(Memory())
    held.drop_on_thread()
    mine = ValueError("mine")
    assert tenon_probe.hold(Memory()).drop_with_error(mine) is mine
    assert len(released) == 3


@isolated
def test_F69_exporter_released_in_the_middle_of_the_import():
    view = memoryview(bytearray(8))

    class Releases:
        def __index__(self):
            view.release()
            return 0

    class Interface:
        __array_interface__ = dict(version=3, shape=(4,), typestr="|u1", data=view, offset=Releases())

    refuse(Interface(), ValueError, "released")


@isolated
def test_F70_exporter_that_ignores_what_was_asked():
    """Asked for the plain bytes behind an interface, it answers with strides, and the other way round."""
    fake = Buffer(shape=(4,), strides=(8,), format="d", itemsize=8, len=32)

    class Interface:
        __array_interface__ = dict(version=3, shape=(32,), typestr="|u1", data=fake)

    with exactly_once(fake):
        assert take(Interface()).size == 32


@isolated
def test_C13_values_through_strided_memoryview():
    values = array.array("i", range(10))
    view = memoryview(values)[::-2]
    assert tenon_probe.borrow(view)["sum"] == 9 + 7 + 5 + 3 + 1
    copied = tenon.asdlpack(view, copy=True)
    import ctypes
    assert packing.unpack("5i", ctypes.string_at(copied.data_ptr, copied.nbytes)) == (9, 7, 5, 3, 1)
