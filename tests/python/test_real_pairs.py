# tests/python/test_real_pairs.py: every producer that is installed, read by every other library through a Tensor and brought back, alone and from many threads.
from __future__ import annotations

import array
import ctypes
import gc
import importlib.metadata
import mmap
import threading

import pytest
from real_consumers import COLUMNS, CONSUMERS, LAYOUTS, try_out
from real_support import has, need, nothing_kept, raw

import tenon

np = need("numpy")
HOST = np.arange(6, dtype=np.float32)


# Each returns an object that holds HOST, and where its first element is.


def from_numpy():
    x = HOST.copy()
    return x, x.ctypes.data


def from_numpy_read_only():
    x = HOST.copy()
    x.flags.writeable = False
    return x, x.ctypes.data


def from_numpy_slice():
    x = np.repeat(HOST, 2)[::2]
    return x, x.ctypes.data


def from_bytes():
    x = memoryview(HOST.tobytes()).cast("f")
    return x, np.frombuffer(x, np.uint8).ctypes.data


def from_bytearray():
    store = bytearray(HOST.tobytes())
    return memoryview(store).cast("f"), ctypes.addressof(ctypes.c_char.from_buffer(store))


def from_array():
    x = array.array("f", HOST.tolist())
    return x, x.buffer_info()[0]


def from_ctypes():
    x = (ctypes.c_float * 6)(*HOST)
    return x, ctypes.addressof(x)


def from_mmap():
    x = mmap.mmap(-1, HOST.nbytes)
    x[:] = HOST.tobytes()
    return memoryview(x).cast("f"), ctypes.addressof(ctypes.c_char.from_buffer(x))


def from_torch():
    x = need("torch").from_numpy(HOST.copy())
    return x, x.data_ptr()


def from_torch_view():
    x = need("torch").from_numpy(np.repeat(HOST, 2))[::2]
    return x, x.data_ptr()


def from_torch_leaf():
    x = need("torch").from_numpy(HOST.copy()).requires_grad_()
    return x, x.data_ptr()


def from_jax():
    jax = need("jax")
    x = jax.device_put(HOST.copy(), jax.devices("cpu")[0])
    return x, x.unsafe_buffer_pointer()


def from_tensorflow():
    tf = need("tensorflow")
    with tf.device("/CPU:0"):
        x = tf.constant(HOST)
    return x, np.asarray(memoryview(x)).ctypes.data


def from_pyarrow():
    x = need("pyarrow").array(np.concatenate([HOST[:2], HOST]))[2:]
    return x, x.buffers()[1].address + 8


def from_pyarrow_tensor():
    host = HOST.copy()
    return need("pyarrow").Tensor.from_numpy(host), host.ctypes.data


def from_tvm_ffi():
    host = HOST.copy()
    return need("tvm_ffi").from_dlpack(host), host.ctypes.data


def from_tenon():
    host = HOST.copy()
    return tenon.asdlpack(host), host.ctypes.data


def from_capsule():
    host = HOST.copy()
    return host.__dlpack__(max_version=(1, 0)), host.ctypes.data


PRODUCERS = {
    f.__name__.removeprefix("from_"): f
    for f in (
        from_numpy, from_numpy_read_only, from_numpy_slice, from_bytes, from_bytearray, from_array, from_ctypes,
        from_mmap, from_torch, from_torch_view, from_torch_leaf, from_jax, from_tensorflow, from_pyarrow,
        from_pyarrow_tensor, from_tvm_ffi, from_tenon, from_capsule,
    )
}  # fmt: skip
READ_ONLY = {"numpy_read_only", "bytes", "torch_leaf", "jax", "tensorflow", "pyarrow"}
if has("pyarrow") and int(importlib.metadata.version("pyarrow").split(".")[0]) < 26:
    READ_ONLY.add("pyarrow_tensor")  # legacy capsules only: they cannot say that they may be written to


#: What its own library hands out as a legacy struct, read-only or not.
LEGACY = {"jax", "tensorflow", "pyarrow", "pyarrow_tensor"}


def read_by_numpy(t):
    a = np.from_dlpack(t)
    assert a.flags.writeable is not t.readonly
    return a.ctypes.data, a.shape, a.tobytes()


def read_by_torch(t):
    x = need("torch").from_dlpack(t)
    return x.data_ptr(), tuple(x.shape), x.numpy().tobytes()


def read_by_jax(t):
    """JAX reads in place or copies, as it likes; the values must be right."""
    jax = need("jax")
    return None, t.shape, np.asarray(jax.numpy.from_dlpack(t)).tobytes()


READERS = {"numpy": read_by_numpy, "torch": read_by_torch}


@pytest.mark.parametrize("consumer", READERS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_pair(producer, consumer):
    obj, address = PRODUCERS[producer]()
    t = tenon.asdlpack(obj)
    assert (t.data_ptr, t.shape, t.dtype) == (address, (6,), "float32")
    assert t.readonly is (producer in READ_ONLY)
    assert raw(t) == HOST.tobytes()
    del obj
    gc.collect()
    assert READERS[consumer](t) == (address, (6,), HOST.tobytes())


@pytest.mark.parametrize("producer", [p for p in PRODUCERS if p not in READ_ONLY])
def test_writes_of_one_library_are_seen_by_the_other(producer):
    torch = need("torch")
    obj, _ = PRODUCERS[producer]()
    t = tenon.asdlpack(obj, readonly=False)
    one, other = np.from_dlpack(t), torch.from_dlpack(t)
    other[1] = 11
    one[2] = 12
    assert one.tolist() == other.tolist() == [0, 11, 12, 3, 4, 5]
    if producer != "capsule":  # consumed
        assert np.from_dlpack(tenon.asdlpack(obj)).tolist() == one.tolist()


@pytest.mark.parametrize("producer", [p for p in PRODUCERS if p in READ_ONLY])
def test_what_is_read_only_is_not_given_for_writing(producer):
    obj, _ = PRODUCERS[producer]()
    with pytest.raises(BufferError):
        tenon.asdlpack(obj, readonly=False)
    if producer in LEGACY:
        tenon.asdlpack(obj).__dlpack__()
    else:
        with pytest.raises(BufferError):
            tenon.asdlpack(obj).__dlpack__()  # a legacy capsule cannot say it
    assert not np.from_dlpack(tenon.asdlpack(obj)).flags.writeable


@pytest.mark.parametrize("producer", PRODUCERS)
def test_through_four_hands(producer):
    obj, address = PRODUCERS[producer]()
    t = tenon.asdlpack(obj)
    del obj
    for _ in range(2):
        t = tenon.asdlpack(tenon.asdlpack(np.from_dlpack(t)))
    gc.collect()
    assert t.data_ptr == address
    assert t.readonly is (producer in READ_ONLY)
    assert raw(t) == HOST.tobytes()


@pytest.mark.parametrize("producer", PRODUCERS)
def test_read_by_jax(producer):
    need("jax")
    obj, _ = PRODUCERS[producer]()
    t = tenon.asdlpack(obj)
    try:
        answer = read_by_jax(t)
    except BufferError:
        assert t.readonly and producer not in LEGACY  # a JAX that asks for a legacy capsule gets none
        return
    except (RuntimeError, ValueError, TypeError) as e:
        assert not t.is_contiguous or t.data_ptr % 64, e  # JAX's own rules on layout and alignment
        return
    assert answer == (None, (6,), HOST.tobytes())


# --- there and back by way of another library -------------------------------------------------------

# Whatever gives back an array of the type that came; a pyarrow.Buffer is bytes, whatever it was.
WAYS = [name for name in COLUMNS if name != "pa.py_buffer"]
HOME = {
    "numpy": "np.from_dlpack", "numpy_read_only": "np.asarray", "numpy_slice": "np.from_dlpack", "bytes": "memoryview",
    "bytearray": "memoryview", "array": "memoryview", "ctypes": "memoryview", "mmap": "memoryview", "torch": "torch",
    "torch_view": "torch", "torch_leaf": "torch", "jax": "jax", "tensorflow": "tensorflow", "pyarrow": "pa.Array",
    "pyarrow_tensor": "pa.Tensor", "tvm_ffi": "tvm_ffi", "tenon": "tvm_ffi call", "capsule": "np.from_dlpack",
}  # fmt: skip


def goes_on(t, way, producer):
    """A Tensor by way of a library to the next Tensor, or None when the library rightly refuses it."""
    kept_back = t.readonly and producer not in LEGACY
    layout = ["1-d", "sliced", "read-only", "read-only, sliced"][2 * kept_back + (not t.is_contiguous)]
    view, look = try_out(CONSUMERS[way], t, t, LAYOUTS[layout][way], "float32")
    if view is None:
        return None
    assert look.data == HOST.tobytes()
    u = tenon.asdlpack(view)
    assert (u.data_ptr, u.shape, u.dtype, u.strides) == (look.address, t.shape, t.dtype, look.strides or u.strides)
    if way in ("jax", "tensorflow", "pa.Array"):  # never to be written to
        assert u.readonly
    elif way in ("torch", "tvm_ffi", "tvm_ffi call"):  # have no read-only arrays
        assert not u.readonly
    else:
        assert u.readonly is t.readonly
    return u


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_there_and_back(producer, way):
    """A, tenon, B, tenon, A, tenon: one memory, one description."""
    for name in (way, HOME[producer]):
        CONSUMERS[name].need()
    obj, address = PRODUCERS[producer]()
    first = tenon.asdlpack(obj)
    del obj
    second = goes_on(first, way, producer)
    if second is None:
        return
    third = goes_on(second, HOME[producer], {"pa.Array": "pyarrow"}.get(way, way))
    last = second if third is None else third
    if "jax" not in (way, HOME[producer]):  # which copies what is not aligned
        assert (last.data_ptr, last.strides) == (address, first.strides)
    del first, second, third
    gc.collect()
    assert raw(last) == HOST.tobytes()


def test_every_producer_has_a_way_home():
    assert list(HOME) == list(PRODUCERS)
    assert (len(PRODUCERS), len(WAYS)) == (18, 10)


# --- threads ----------------------------------------------------------------------------------------

THREADS, ROUNDS = 8, 500


def hammer(work):
    """Runs `work(thread, round)` on every thread at once; the first failure is raised."""
    failures = []
    start = threading.Barrier(THREADS)

    def run(number):
        start.wait()
        try:
            for i in range(ROUNDS):
                work(number, i)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


THREADED = ["numpy", "torch", "jax", "ctypes", "array", "pyarrow", "tvm_ffi"]


@pytest.mark.parametrize("producer", THREADED)
def test_one_object_from_many_threads(producer):
    obj, address = PRODUCERS[producer]()

    def work(_, __):
        t = tenon.asdlpack(obj)
        assert (t.data_ptr, t.shape) == (address, (6,))

    before = np.from_dlpack(tenon.asdlpack(obj)).tobytes()
    hammer(work)
    assert np.from_dlpack(tenon.asdlpack(obj)).tobytes() == before


def test_many_kinds_from_many_threads():
    """NumPy, PyTorch and JAX by turns, so that the threads' memories of the types are used and replaced."""
    made = []
    for name in ("numpy", "torch", "jax", "numpy_slice", "torch_view", "torch_leaf"):
        try:
            made.append(PRODUCERS[name]())
        except pytest.skip.Exception:
            continue
    assert made

    def work(number, i):
        obj, address = made[(number + i) % len(made)]
        t = tenon.asdlpack(obj)
        assert t.data_ptr == address
        if i % 10 == 0:
            assert np.from_dlpack(t).tobytes() == HOST.tobytes()

    hammer(work)


def test_tensors_die_on_other_threads():
    handed = [[] for _ in range(THREADS)]
    lock = threading.Lock()
    host = HOST.copy()
    makers = [lambda: host]
    try:
        shared = PRODUCERS["torch"]()[0]
        makers.append(lambda: shared)
    except pytest.skip.Exception:
        pass

    def work(number, i):
        t = tenon.asdlpack(makers[i % len(makers)]())
        with lock:
            handed[(number + 1) % THREADS].append(t)
            gone = handed[number].pop() if handed[number] else None
        del t
        if gone is not None:
            assert raw(gone) == HOST.tobytes()
            del gone

    with nothing_kept(host):
        hammer(work)
        handed.clear()
