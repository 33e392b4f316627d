# tests/python/test_real_jax.py: JAX arrays: read in place, never writable, and neither deletion nor donation takes memory away that is held.
from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import pytest
from real_support import COPIED, READ_ONLY, expect, need, nothing_kept, poke, raw, script

import tenon

jax = need("jax")
np = need("numpy")
ml_dtypes = need("ml_dtypes")
import jax.numpy as jnp  # noqa: E402

CPU = jax.devices("cpu")[0]
DTYPES = [
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32", "complex64",
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
WIDE = ["int64", "uint64", "float64", "complex128"]
SUB_BYTE = ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"]
IN_NUMPY = [n for n in DTYPES if hasattr(np, n)]


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.default_device(CPU):
        yield


def numpy_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def numbers(name, shape=(2, 3)):
    return (np.arange(int(np.prod(shape))) % 2 + 1).astype(numpy_dtype(name)).reshape(shape)


def array(host):
    x = jax.device_put(host, CPU)
    x.block_until_ready()
    return x


# --- dtypes and layouts -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
def test_dtype(name):
    host = numbers(name)
    try:
        x = array(host)
    except (TypeError, ValueError) as e:
        pytest.skip(f"jax {jax.__version__} has no {name}: {e}")
    t = tenon.asdlpack(x)
    expect(
        t, address=x.unsafe_buffer_pointer(), shape=(2, 3), dtype=name, itemsize=host.itemsize, readonly=True
    )
    assert raw(t) == host.tobytes()


@pytest.mark.parametrize("name", IN_NUMPY)
def test_dtype_read_through_numpy(name):
    x = array(numbers(name))
    back = np.from_dlpack(tenon.asdlpack(x))
    assert back.ctypes.data == x.unsafe_buffer_pointer()
    assert not back.flags.writeable
    np.testing.assert_array_equal(back, numbers(name))


@pytest.mark.parametrize("name", SUB_BYTE)
def test_sub_byte_dtype_is_packed_or_refused(name):
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"this ml_dtypes has no {name}")
    host = numbers(name, (5,))
    try:
        x = array(host)
    except (TypeError, ValueError) as e:
        pytest.skip(f"jax {jax.__version__} has no {name}: {e}")
    try:
        t = tenon.asdlpack(x)
    except (RuntimeError, BufferError) as e:
        assert name[:2] in ("in", "ui"), e  # JAX exports the floats
        return
    bits = 2 if name.endswith("2") else 4
    assert (t.dtype, t.shape, t.flags, t.nbytes) == (name, (5,), READ_ONLY, -(-5 * bits // 8))
    held = int.from_bytes(ctypes.string_at(t.data_ptr, t.nbytes), "little")
    mask = (1 << bits) - 1
    assert bytes((held >> (i * bits)) & mask for i in range(5)) == bytes(b & mask for b in host.tobytes())


LAYOUTS = {
    "0-d": (lambda: np.float32(3)),
    "one axis": (lambda: np.arange(5, dtype=np.float32)),
    "empty": (lambda: np.zeros((0,), np.float32)),
    "empty, other extents": (lambda: np.zeros((3, 0, 2), np.float32)),
    "extent 1": (lambda: np.zeros((1, 4, 1), np.float32)),
    "six axes": (lambda: np.arange(64, dtype=np.float32).reshape((2,) * 6)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name):
    host = LAYOUTS[name]()
    x = array(host)
    t = tenon.asdlpack(x)
    assert (t.shape, t.dtype, t.readonly, t.is_contiguous) == (host.shape, "float32", True, True)
    assert raw(t) == host.tobytes()
    if host.size:
        assert t.data_ptr == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.from_dlpack(t), host)


def test_result_of_a_computation():
    x = jax.jit(lambda a: (a * 2).T)(jnp.arange(6.0).reshape(2, 3))
    t = tenon.asdlpack(x)
    assert t.shape == (3, 2)
    np.testing.assert_array_equal(np.from_dlpack(t), np.asarray(x))
    assert t.data_ptr == x.unsafe_buffer_pointer()


def test_work_under_way_is_waited_for():
    f = jax.jit(lambda a: jax.lax.fori_loop(0, 60, lambda _, v: jnp.tanh(v @ v) + 1, a))
    x = f(jnp.full((200, 200), 0.001))
    t = tenon.asdlpack(x)  # before anybody waited for it
    np.testing.assert_array_equal(np.from_dlpack(t), np.asarray(x))


# --- never writable ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("keywords", [{}, {"trust_legacy": True}, {"device": "cpu"}, {"copy": False}], ids=repr)
def test_never_writable(name, keywords):
    x = array(numbers(name))
    assert tenon.asdlpack(x, **keywords).flags == READ_ONLY
    with nothing_kept(x), pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(x, readonly=False, **keywords)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool"])
def test_copy_is_writable_and_apart(name):
    host = numbers(name)
    x = array(host)
    t = tenon.asdlpack(x, copy=True, readonly=False)
    assert (t.flags, t.shape, raw(t)) == (COPIED, (2, 3), host.tobytes())
    assert t.data_ptr != x.unsafe_buffer_pointer()
    poke(t, 0, bytes(t.itemsize))
    assert np.asarray(x).tobytes() == host.tobytes()


def test_capsule_of_jax_is_read_only_unless_it_says_otherwise():
    x = array(numbers("float32"))
    assert tenon.asdlpack(x.__dlpack__()).readonly
    assert raw(tenon.asdlpack(x.__dlpack__())) == numbers("float32").tobytes()


# --- deletion, donation, lifetime -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_deleted_array_is_an_exception(name):
    x = array(numbers(name))
    x.delete()
    with nothing_kept(x):
        for _ in range(3):
            with pytest.raises((RuntimeError, ValueError, BufferError, TypeError)):
                tenon.asdlpack(x)
    after = array(numbers(name))
    assert tenon.asdlpack(after).data_ptr == after.unsafe_buffer_pointer()


def test_deleted_array_is_named_as_such():
    """JAX's buffer says so and its `__dlpack_device__` does not; a new thread still asks for the buffer first."""
    x = array(numbers("float32"))
    x.delete()
    met = []

    def look():
        try:
            met.append(tenon.asdlpack(x))
        except Exception as e:
            met.append(e)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert isinstance(met[0], (BufferError, RuntimeError, ValueError))
    assert "deleted" in str(met[0]) or "null" in str(met[0])


donating = jax.jit(lambda a: a + a, donate_argnums=0)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_donated_array_is_an_exception(name):
    x = array(numbers(name))
    donating(x)
    if not x.is_deleted():
        pytest.skip(f"jax {jax.__version__} did not take the donation")
    with pytest.raises((RuntimeError, ValueError, BufferError, TypeError)):
        tenon.asdlpack(x)


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_donation_does_not_overwrite_what_is_held(name):
    host = numbers(name, (64, 64))
    x = array(host)
    t = tenon.asdlpack(x)
    donating(x).block_until_ready()
    assert raw(t) == host.tobytes()
    del t, x
    gc.collect()
    y = array(host)
    t = tenon.asdlpack(y)
    del t
    gc.collect()
    donating(y)
    assert y.is_deleted(), "a Tensor that is gone still holds the array"


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_deletion_does_not_free_what_is_held(name):
    host = numbers(name, (100, 100))
    x = array(host)
    t = tenon.asdlpack(x)
    x.delete()
    junk = [array(np.full((100, 100), 7, numpy_dtype(name))) for _ in range(8)]
    assert raw(t) == host.tobytes()
    del junk


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_memory_lives_as_long_as_the_tensor(name):
    host = numbers(name, (100, 100))
    x = array(host)
    t = tenon.asdlpack(x)
    back = np.from_dlpack(t) if name == "float32" else tenon.asdlpack(t)
    del x, t
    gc.collect()
    junk = [array(np.full((100, 100), 7, numpy_dtype(name))) for _ in range(8)]
    held = tenon.asdlpack(back)
    assert raw(held) == host.tobytes()
    del junk


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("keywords", [{}, {"copy": True}, {"device": "cpu"}], ids=repr)
def test_no_reference_is_lost_over_many_imports(name, keywords):
    x = array(numbers(name))
    with nothing_kept(x):
        for _ in range(200):
            tenon.asdlpack(x, **keywords)
    watch = weakref.ref(x)
    del x
    gc.collect()
    assert watch() is None


# --- what is no array yet ---------------------------------------------------------------------------

TRANSFORMS = {
    "jit": lambda f: jax.jit(f)(jnp.ones(3)),
    "grad": lambda f: jax.grad(lambda a: f(a).sum())(jnp.ones(3)),
    "vmap": lambda f: jax.vmap(f)(jnp.ones((3, 2))),
    "jvp": lambda f: jax.jvp(f, (jnp.ones(3),), (jnp.ones(3),)),
    "eval_shape": lambda f: jax.eval_shape(f, jnp.ones(3)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_tracer_is_an_exception(name):
    met = []

    def look(a):
        try:
            met.append(tenon.asdlpack(a))
        except Exception as e:
            met.append(e)
        return a

    TRANSFORMS[name](look)
    assert met
    assert all(isinstance(m, Exception) for m in met), met


def test_shapes_and_keys_are_an_exception():
    for obj in (jax.ShapeDtypeStruct((3,), jnp.float32), jax.random.key(0)):
        with pytest.raises(TypeError):
            tenon.asdlpack(obj)


def test_other_device_is_an_exception():
    x = array(numbers("float32"))
    for device in [(1, 1), (2, 7)]:
        with pytest.raises((RuntimeError, BufferError, ValueError)):
            tenon.asdlpack(x, device=device)


# --- other settings, in another process -------------------------------------------------------------


def test_64_bit_dtypes():
    printed = script(f"""
import jax
jax.config.update("jax_enable_x64", True)
import ctypes, numpy as np, tenon
cpu = jax.devices("cpu")[0]
for name in {WIDE!r}:
    host = (np.arange(6) - 1).astype(name).reshape(2, 3)
    x = jax.device_put(host, cpu)
    t = tenon.asdlpack(x)
    assert (t.dtype, t.shape, t.readonly) == (name, (2, 3), True), (name, t)
    assert t.data_ptr == x.unsafe_buffer_pointer()
    assert ctypes.string_at(t.data_ptr, t.nbytes) == host.tobytes()
    np.testing.assert_array_equal(np.from_dlpack(t), host)
    print(name)
""")
    assert printed.split() == WIDE


def test_array_over_two_devices():
    printed = script(
        """
import jax, numpy as np, tenon
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
cpus = jax.devices("cpu")
assert len(cpus) == 2, cpus
mesh = Mesh(np.array(cpus), ("i",))
host = np.arange(8, dtype=np.float32)
for spec in (P("i"), P()):
    x = jax.device_put(host, NamedSharding(mesh, spec))
    assert len(x.devices()) == 2
    try:
        t = tenon.asdlpack(x)
    except Exception as e:
        assert not isinstance(e, SystemError)
        print("refused")
    else:
        np.testing.assert_array_equal(np.from_dlpack(t), host)
        print("right")
    part = x.addressable_shards[1].data
    t = tenon.asdlpack(part)
    np.testing.assert_array_equal(np.from_dlpack(t), np.asarray(part))
    assert t.data_ptr == part.unsafe_buffer_pointer()
    print("shard")
y = jax.device_put(host, cpus[1])
t = tenon.asdlpack(y)
np.testing.assert_array_equal(np.from_dlpack(t), host)
print("second", t.device.split(":")[0])
""",
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_NUM_CPU_DEVICES": "2"},
    ).split("\n")
    assert printed[0] in ("refused", "right")
    assert printed[1] == "shard"
    assert printed[2] in ("refused", "right")
    assert printed[3:5] == ["shard", "second cpu"]
