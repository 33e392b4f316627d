# tests/python/test_buffers_out.py: host memory that leaves through the buffer protocol: every request, every layout, every release.
from __future__ import annotations

import ctypes
import gc
import itertools
import struct
import weakref

import pytest
import tenon
import tenon_exports
from producers import CUDA, CUDA_HOST, NOWHERE, exactly_once, refuse
from tenon_exports import Counter, Matrix

np = pytest.importorskip("numpy")

SIMPLE, WRITABLE, FORMAT, ND, STRIDES, INDIRECT = 0x0, 0x1, 0x4, 0x8, 0x10 | 0x8, 0x100 | 0x10 | 0x8
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS = 0x20 | STRIDES, 0x40 | STRIDES, 0x80 | STRIDES
LAYOUT_REQUESTS = (SIMPLE, ND, STRIDES, INDIRECT, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS)
REQUESTS = [layout | extra for layout in LAYOUT_REQUESTS for extra in (0, WRITABLE, FORMAT, WRITABLE | FORMAT)]


class Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p),
                ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_ssize_t)), ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


get_buffer = ctypes.pythonapi.PyObject_GetBuffer
get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int]
release_buffer = ctypes.pythonapi.PyBuffer_Release
release_buffer.argtypes = [ctypes.POINTER(Buffer)]


def fields(array, readonly=False):
    """Of a tensor that looks like this array, over memory of its own."""
    base = array
    while base.base is not None:
        base = base.base
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return dict(shape=array.shape, dtype=str(array.dtype), data=base.tobytes(), byte_offset=offset, readonly=readonly,
                strides=[stride // array.itemsize for stride in array.strides])


BASE = np.arange(24, dtype=np.int32).reshape(4, 6)
LAYOUTS = {
    "row-major": BASE, "column-major": BASE.T, "strided": BASE[::2, ::3], "negative": BASE[::-1, ::-1],
    "offset": BASE[1:3],
    "one axis": BASE[1], "one axis, stepped": BASE[:, 1], "scalar": np.array(7, np.int32), "empty": BASE[:0],
    "empty, strided": BASE[::2, :0], "one element": BASE[2:3, 3:4], "broadcast": np.broadcast_to(BASE[0], (3, 6)),
}


@pytest.mark.parametrize("readonly", [False, True], ids=["writable", "read-only"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_request_is_met_as_it_was_made_or_refused(layout, readonly):
    array, counter = LAYOUTS[layout], Counter()
    is_c, is_f = array.flags.c_contiguous, array.flags.f_contiguous
    with exactly_once(counter):
        obj = tenon_exports.produce(counter, **fields(array, readonly))
        for request in REQUESTS:
            asks = lambda what: request & what == what
            fits = (is_c if asks(C_CONTIGUOUS) else is_f if asks(F_CONTIGUOUS) else is_c or is_f if asks(ANY_CONTIGUOUS)
                    else is_c or asks(STRIDES)) and not (readonly and asks(WRITABLE))
            view = Buffer()
            try:
                get_buffer(obj, view, request)
            except BufferError:
                assert not fits, f"{layout}: request {request:#x} is refused"
                assert not view.obj
                continue
            assert fits, f"{layout}: request {request:#x} is met"
            assert (view.len, view.itemsize, view.readonly, view.suboffsets) == (array.nbytes, 4, readonly, None)
            assert view.ndim == (array.ndim if asks(ND) else 1) and view.obj == id(obj)
            assert view.format == (b"i" if asks(FORMAT) else None) and view.buf
            if asks(ND):
                assert tuple(view.shape[i] for i in range(array.ndim)) == array.shape
            else:
                assert not view.shape
            if asks(STRIDES) and array.size:
                assert all(array.shape[i] == 1 or view.strides[i] == array.strides[i] for i in range(array.ndim))
            assert asks(STRIDES) or not view.strides
            release_buffer(view)
        del obj, view


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_by_every_way_python_reads_a_buffer(layout):
    array = LAYOUTS[layout]
    obj = tenon_exports.produce(Counter(), **fields(array))
    view = memoryview(obj)
    assert view.tolist() == array.tolist() and view.tobytes() == array.tobytes() and bytes(obj) == array.tobytes()
    assert (view.c_contiguous, view.f_contiguous) == (array.flags.c_contiguous, array.flags.f_contiguous)
    assert np.array_equal(np.asarray(view), array) and np.asarray(view).dtype == array.dtype


@pytest.mark.parametrize(("dtype", "format"), [
    ("bool", "?"), ("int8", "b"), ("uint8", "B"), ("int16", "h"), ("uint16", "H"), ("int32", "i"), ("uint32", "I"),
    ("int64", "q"), ("uint64", "Q"), ("float16", "e"), ("float32", "f"), ("float64", "d"),
])
def test_formats_are_those_of_the_struct_module(dtype, format):
    obj = tenon_exports.produce(Counter(), dtype=dtype, shape=(3,), data=bytes(range(24)))
    view = memoryview(obj)
    assert (view.format, view.itemsize) == (format, struct.calcsize(format))
    if format not in "?e":
        assert view.tolist() == list(struct.unpack_from("3" + format, bytes(range(24))))
    assert np.asarray(obj).dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_formats_of_complex_types_are_numpys(dtype):
    obj = tenon_exports.produce(Counter(), dtype=dtype, shape=(2,), data=np.array([1 + 2j, 3 + 4j], dtype).tobytes())
    assert np.array_equal(np.asarray(memoryview(obj)), [1 + 2j, 3 + 4j])


@pytest.mark.parametrize("refusal", [
    dict(dtype="bfloat16"), dict(dtype="float8_e4m3fn"), dict(dtype="float4_e2m1fn"), dict(dtype=(2, 32, 4)),
    dict(device=CUDA, address=NOWHERE), dict(device=(8, 0), address=NOWHERE), dict(device=(10, 0), address=NOWHERE),
], ids=str)
def test_what_has_no_buffer_is_a_buffer_error(refusal):
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter, **refusal)
        for request in REQUESTS:
            refuse(obj, BufferError, "tenon", lambda o: get_buffer(o, Buffer(), request))
        refuse(obj, BufferError, None, memoryview)
        del obj


@pytest.mark.parametrize("device", [CUDA_HOST, (11, 0), (13, 0)], ids=str)
def test_host_memory_of_any_kind_has_a_buffer(device):
    assert memoryview(tenon_exports.produce(Counter(), device=device)).shape == (2, 3)


def test_what_is_written_is_seen_by_all():
    obj = tenon_exports.produce(Counter(), shape=(3,), dtype="uint8")
    memoryview(obj)[1] = 99
    assert bytes(obj) == b"\x00\x63\x02" and tenon.asdlpack(obj).data_ptr == obj.data_ptr
    matrix = Matrix(2, 3)
    memoryview(matrix)[1, 2] = 7.5
    assert np.asarray(matrix)[1, 2] == 7.5


def test_read_only_memory_is_read_only():
    view = memoryview(tenon_exports.produce(Counter(), readonly=True, shape=(3,), dtype="uint8"))
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1


def test_buffers_keep_the_memory_alive():
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        first, second = memoryview(obj), memoryview(obj)
        sliced = first[1:]
        del obj, first
        second.release()
        gc.collect()
        assert counter.releases == 0 and sliced.shape == (1, 3)
        del sliced
        assert counter.releases == 1


def test_buffer_of_a_users_object_keeps_the_object():
    class Sub(Matrix):
        pass

    matrix = Sub(2, 3)
    seen, view = weakref.ref(matrix), memoryview(matrix)
    del matrix
    gc.collect()
    assert seen() is not None and view[1, 2] == 5
    del view
    assert seen() is None


class Node(bytearray):
    """Something with a buffer that can be part of a cycle."""


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_cycle_through_a_buffer_is_collected(order):
    """owner -> memoryview -> Tensor -> owner, whichever the collector comes to first."""
    made = [None] * 3
    owner = Node(8)
    tensor = tenon.asdlpack(owner)
    view = memoryview(tensor)
    for place, part in zip(order, (owner, tensor, view), strict=True):
        made[place] = part
    owner.held = (view, made)  # a cycle of all three, and of the list that says in which order
    seen = weakref.ref(tensor)
    del owner, tensor, view, made, part
    gc.collect()
    gc.collect()
    assert seen() is None


def test_cycle_over_cpp_memory_is_collected():
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter)
        holder = [memoryview(obj), obj]
        holder.append(holder)
        del obj, holder


def test_buffer_that_outlives_the_collection_of_its_tensor():
    """The collector clears a Tensor only when nobody looks at its memory."""
    owner = Node(b"abcdefgh")
    owner.tensor = tenon.asdlpack(owner)
    view = memoryview(owner.tensor)
    del owner
    gc.collect()
    assert bytes(view) == b"abcdefgh"


def test_collector_never_empties_a_tensor():
    """Code that runs while a cycle is taken apart may still export a tensor of it: the memory is whole."""
    saved = []
    owner, byte = Node(b"abcdefgh"), bytearray(1)
    looked_at = tenon.asdlpack(owner)

    def deleter(_, looked_at=looked_at):
        saved.append(looked_at.__dlpack__(max_version=(1, 0)))

    owner.tensor = tenon.from_pointer(tenon.asdlpack(byte).data_ptr, 1, "uint8", deleter=deleter)
    del owner, looked_at, deleter
    gc.collect()
    gc.collect()
    assert bytes(tenon.asdlpack(saved.pop())) == b"abcdefgh"


def test_nothing_is_contiguous():
    """NumPy's own empty arrays may have a step of 0, by which Python takes a buffer for one with gaps."""
    for a in (np.zeros(0), BASE.reshape(-1)[::2][:0], np.zeros((0, 3)), np.lib.stride_tricks.as_strided(BASE, (0,), (0,))):
        t = tenon.asdlpack(a)
        view = memoryview(t)
        assert view.c_contiguous and view.f_contiguous and view.shape == a.shape
        assert np.frombuffer(t, a.dtype).size == 0
        if a.ndim == 1:  # Python casts no more axes than that
            assert view.cast("B").nbytes == 0
