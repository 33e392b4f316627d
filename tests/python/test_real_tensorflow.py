# tests/python/test_real_tensorflow.py: TensorFlow's eager tensors: read in place, never writable; what has no plain memory is an exception, never an abort.
from __future__ import annotations

import gc
import os

import pytest
from real_support import COPIED, READ_ONLY, elsewhere, expect, need, nothing_kept, poke, raw

import tenon

tf = need("tensorflow")
np = need("numpy")
ml_dtypes = need("ml_dtypes")

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.fixture(autouse=True)
def on_the_cpu():
    with tf.device("/CPU:0"):
        yield


def numbers(name, shape=(2, 3)):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return (np.arange(int(np.prod(shape))) % 2).astype(dtype).reshape(shape)


def tensor(host):
    return tf.constant(host)


def address(x):
    """Where TensorFlow keeps the elements, by its own buffer export."""
    return np.asarray(memoryview(x)).ctypes.data


@pytest.mark.parametrize("name", DTYPES)
def test_dtype(name):
    host = numbers(name)
    x = tensor(host)
    t = tenon.asdlpack(x)
    where = address(x) if name != "bfloat16" else tenon.asdlpack(x.__dlpack__()).data_ptr
    expect(t, address=where, shape=(2, 3), dtype=name, itemsize=host.itemsize, readonly=True)
    assert raw(t) == host.tobytes()
    if name != "bfloat16":
        back = np.from_dlpack(t)
        assert back.ctypes.data == where
        np.testing.assert_array_equal(back, host)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (1, 4, 1), (2,) * 6])
def test_shape(shape):
    host = numbers("float32", shape)
    x = tensor(host)
    t = tenon.asdlpack(x)
    assert (t.shape, t.dtype, t.readonly, t.is_contiguous) == (shape, "float32", True, True)
    assert raw(t) == host.tobytes()
    np.testing.assert_array_equal(np.from_dlpack(t), host)


def test_result_of_a_computation():
    x = tf.transpose(tf.reshape(tf.range(6.0), (2, 3))) * 2
    np.testing.assert_array_equal(np.from_dlpack(tenon.asdlpack(x)), x.numpy())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the ast module, in TensorFlow's tracer
def test_result_of_a_function():
    x = tf.function(lambda a: a + 1)(tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(np.from_dlpack(tenon.asdlpack(x)), [2, 3])


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool"])
@pytest.mark.parametrize("keywords", [{}, {"trust_legacy": True}, {"copy": False}, {"device": "cpu"}], ids=repr)
def test_never_writable(name, keywords):
    x = tensor(numbers(name))
    assert tenon.asdlpack(x, **keywords).flags == READ_ONLY
    with nothing_kept(x), pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(x, readonly=False, **keywords)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool"])
def test_copy_is_writable_and_apart(name):
    host = numbers(name)
    x = tensor(host)
    t = tenon.asdlpack(x, copy=True, readonly=False)
    assert (t.flags, t.shape, raw(t)) == (COPIED, (2, 3), host.tobytes())
    poke(t, 0, b"\x01" * t.itemsize)
    assert x.numpy().tobytes() == host.tobytes()


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_memory_lives_as_long_as_the_tensor(name):
    host = numbers(name, (100, 100))
    x = tensor(host)
    t = tenon.asdlpack(tenon.asdlpack(x))
    del x
    gc.collect()
    junk = [tf.fill((100, 100), tf.cast(7, name)) for _ in range(8)]
    assert raw(t) == host.tobytes()
    del junk


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_no_reference_is_lost_over_many_imports(name):
    x = tensor(numbers(name))
    with nothing_kept(x):
        for _ in range(200):
            tenon.asdlpack(x)


def resident():
    """Megabytes of this process that are in memory."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc to read the memory in use from")
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("keywords", [{}, {"copy": True}], ids=repr)
def test_memory_is_given_back(name, keywords):
    """TensorFlow's tensors have no weak reference to their memory: twenty of 32 MB must not stay."""
    before = resident()
    for i in range(20):
        x = tf.fill((2**25 // tf.as_dtype(name).size,), tf.cast(i, name))
        t = tenon.asdlpack(x, **keywords)
        assert t.nbytes == 2**25
        del x, t
    assert resident() - before < 10 * 32


def test_read_through_torch():
    torch = need("torch")
    x = tensor(numbers("float32"))
    t = tenon.asdlpack(x)
    back = torch.from_dlpack(t)
    assert back.data_ptr() == address(x)
    assert back.tolist() == x.numpy().tolist()


# --- what has no plain memory: in another process, for TensorFlow aborts where others raise ---------

SETUP = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf, tenon
A = tenon.asdlpack

def inside(f):
    said = []
    @tf.function
    def g(v):
        try:
            A(v)
        except Exception as e:
            said.append(e)
        return v
    g(tf.constant([1.0]))
    raise said[0]
"""
KINDS = {
    "string": "A(tf.constant(['a', 'b']))",
    "string, 0-d": "A(tf.constant('a'))",
    "string, empty": "A(tf.constant([], tf.string))",
    "string, copy": "A(tf.constant('a'), copy=True)",
    "string, device asked": "A(tf.constant('a'), device='cpu')",
    "resource": "A(tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2]))",
    "variant": "A(tf.raw_ops.TensorListReserve(element_shape=[2], num_elements=2, element_dtype=tf.float32))",
    "ragged": "A(tf.ragged.constant([[1], [2, 3]]))",
    "sparse": "A(tf.sparse.from_dense([[1.0, 0.0]]))",
    "variable": "A(tf.Variable([1.0, 2.0]))",
    "symbolic": "inside(A)",
    "dtype": "A(tf.float32)",
    "shape": "A(tf.TensorShape([1, 2]))",
    "dataset": "A(tf.data.Dataset.range(3))",
    "class": "A(tf.Tensor)",
}
# TensorFlow's buffer shows the integers behind a quantized tensor as such; its DLPack export refuses them.
QUANTIZED = "A(tf.zeros(3, tf.qint8)).dtype"
GOOD_AFTERWARDS = "A(tf.constant([1.0, 2.0])).shape"


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    cases = {**KINDS, "quantized": QUANTIZED, "good": GOOD_AFTERWARDS}
    return elsewhere(SETUP, cases, tmp_path_factory.mktemp("kinds") / "answers")


@pytest.mark.parametrize("name", KINDS)
def test_kind_is_an_exception(kinds, name):
    kinds[name].refused("Exception")
    assert "SystemError" not in kinds[name].raised
    assert kinds[name].message


@pytest.mark.parametrize("name", [n for n in KINDS if n.startswith(("string", "resource", "variant"))])
def test_dtype_without_a_dlpack_word_is_a_buffer_error(kinds, name):
    kinds[name].refused("BufferError")


def test_quantized_is_its_integers_or_an_exception(kinds):
    outcome = kinds["quantized"]
    if outcome.returned is None:
        outcome.refused("Exception")
    else:
        assert outcome.accepted() == "tenon.dtype('int8')"


def test_good_tensor_after_the_refused_ones(kinds):
    assert kinds["good"].accepted() == "(2,)"
