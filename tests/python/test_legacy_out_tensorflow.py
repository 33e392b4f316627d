# tests/python/test_legacy_out_tensorflow.py: TensorFlow's memory leaves as it hands it out itself, and it is given read-only memory, to
# which it never writes.
import pytest
from real_support import need

import tenon

tf = need("tensorflow")
need("numpy")

from test_legacy_out import frozen  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_cpu():
    with tf.device("/CPU:0"):
        yield


def test_tensorflow_gets_its_own_memory_back():
    for name in ("bool", "int8", "int64", "uint16", "float16", "float32", "float64", "bfloat16", "complex64"):
        x = tf.cast(tf.reshape(tf.range(12), (3, 4)), name)
        t = tenon.asdlpack(x)
        for take in (lambda t: tf.experimental.dlpack.from_dlpack(t.__dlpack__()), lambda t: t.to("tensorflow"),
                     lambda t: t.to("tensorflow", copy=False), lambda t: tenon._core.as_like(t, x)):
            y = take(t)
            assert tenon.asdlpack(y).data_ptr == t.data_ptr and y.numpy().tobytes() == x.numpy().tobytes(), name


def test_tensorflow_never_writes_to_frozen_memory():
    a = frozen(1024)
    before = a.tobytes()
    x = tenon.asdlpack(a).to("tensorflow", copy=False)
    variable = tf.Variable(x)
    del x
    variable.assign_add(tf.ones(1024))
    variable.scatter_nd_update([[0]], [99.0])
    step = lambda v: tf.nn.relu(v * 2 + 1)
    for run in (step, tf.function(step)):
        run(tenon.asdlpack(a).to("tensorflow"))
    assert a.tobytes() == before


def test_jax_and_tensorflow_give_each_other_theirs():
    jax = need("jax")
    x = tf.range(16, dtype=tf.float32)
    for take in (jax.dlpack.from_dlpack, lambda t: t.to("jax")):
        assert take(tenon.asdlpack(x)).unsafe_buffer_pointer() == tenon.asdlpack(x).data_ptr
    y = jax.numpy.arange(16.0)
    assert tenon.asdlpack(tenon.asdlpack(y).to("tensorflow")).data_ptr == y.unsafe_buffer_pointer()
    z = tf.experimental.dlpack.from_dlpack(tenon.asdlpack(y).__dlpack__())
    assert z.numpy().tolist() == list(range(16))
