# tests/python/test_gpu_order.py: work that is queued on a real GPU comes in the right order, a hundred times of a hundred, whatever the way in and out.
"""Each probe has the producer's stream spin before it writes, so that a reader that does not wait reads the old values
every time, and each has a control that leaves the waiting out and must see them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest
import tenon
from isolation import run_isolated, unchecked, wait_until

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

# Under a checker that slows everything down a few rounds must do.
ROUNDS = int(os.environ.get("TENON_GPU_ROUNDS", "100"))
timed = pytest.mark.skipif("TENON_GPU_CHECKED" in os.environ, reason="a checker changes what takes how long, and where memory is")
COUNT = 1 << 18
OLD, NEW = 0.0, 7.0


def spin(milliseconds: float) -> None:
    """Keeps the current stream busy for about this long."""
    torch.cuda._sleep(int(milliseconds * 1_800_000))


def need(library):
    module = pytest.importorskip(library)
    if library == "jax" and module.default_backend() != "gpu":
        pytest.skip("this JAX has no GPU")
    return module


@pytest.fixture(scope="module")
def streams():
    return torch.cuda.Stream(), torch.cuda.Stream()


@pytest.fixture(autouse=True)
def without_collector():
    """A collection in the middle takes longer than the spin lasts."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    torch.cuda.synchronize()


# --- the rungs: how the memory comes in -----------------------------------------------------------


class Interface:
    """Only a CUDA array interface, of this version."""

    def __init__(self, tensor, version, stream):
        self.tensor, self.version, self.stream = tensor, version, stream

    @property
    def __cuda_array_interface__(self):
        said = {**self.tensor.__cuda_array_interface__, "version": self.version}
        return said | {"stream": self.stream.cuda_stream} if self.version == 3 else said


class Protocol:
    """Only `__dlpack__`."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **keywords):
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Arrow:
    """Only Arrow's device interface, with an event."""

    def __init__(self, tensor):
        self.given = tenon.asdlpack(tensor)

    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        return self.given.__arrow_c_device_array__(requested_schema, **keywords)


RUNGS = {
    "exchange table": lambda tensor, stream: tensor,
    "__dlpack__": lambda tensor, stream: Protocol(tensor),
    "CUDA interface 2": lambda tensor, stream: Interface(tensor, 2, stream),
    "CUDA interface 3": lambda tensor, stream: Interface(tensor, 3, stream),
    "Arrow": lambda tensor, stream: Arrow(tensor),
    "Tensor": lambda tensor, stream: tenon.asdlpack(tensor),
}


# --- the consumers: what reads on another stream ----------------------------------------------------


def read_by_torch(t, stream, take=torch.from_dlpack):
    with torch.cuda.stream(stream):
        seen = take(t).clone()
    stream.synchronize()
    return bool((seen == NEW).all())


def read_by_cupy(t, stream, take="from_dlpack"):
    cupy = need("cupy")
    with cupy.cuda.Stream(non_blocking=True) as own:
        seen = getattr(cupy, take)(t).copy()
        own.synchronize()
    return bool((seen == NEW).all())


def read_by_numba(t, stream):
    cuda = need("numba.cuda")
    return bool((cuda.as_cuda_array(t).copy_to_host(stream=cuda.stream()) == NEW).all())


def read_by_jax(t, stream):
    jax = need("jax")
    return bool((np.asarray(jax.dlpack.from_dlpack(t) + 0) == NEW).all())


def read_by_view(t, stream):
    utils = need("cuda.core.utils")
    view = utils.StridedMemoryView.from_dlpack(t, stream_ptr=stream.cuda_stream)
    with torch.cuda.stream(stream):
        seen = torch.as_tensor(Interface3(view, t), device="cuda").clone()
    stream.synchronize()
    return bool((seen == NEW).all())


class Interface3:
    """What a view of cuda.core's shows, for a library that reads it on its current stream."""

    def __init__(self, view, t):
        self.view, self.t = view, t
        self.__cuda_array_interface__ = {"version": 2, "shape": t.shape, "typestr": "<f4", "data": (view.ptr, False)}


def read_on_host(t, stream):
    return bool((tenon.asdlpack(t, device="cpu").numpy() == NEW).all())


def copy_on_device(t, stream):
    keywords = dict(max_version=(1, 3), stream=stream.cuda_stream, copy=True)
    return read_by_torch(t, stream, lambda t: torch.from_dlpack(t.__dlpack__(**keywords)))


CONSUMERS = {
    "torch": read_by_torch,
    "cupy": read_by_cupy,
    "cupy by its interface": lambda t, stream: read_by_cupy(t, stream, "asarray"),
    "numba": read_by_numba,
    "jax": read_by_jax,
    "cuda.core": read_by_view,
    "host": read_on_host,
    "copy": copy_on_device,
}


def probe(rung, consumer, streams, rounds, **options) -> int:
    """How often the consumer saw what the producer had queued."""
    producing, reading = streams
    right = 0
    x = torch.empty(COUNT, device="cuda")
    for _ in range(rounds):
        x.fill_(OLD)
        torch.cuda.synchronize()
        with torch.cuda.stream(producing):
            spin(2)
            x.fill_(NEW)
            t = tenon.asdlpack(rung(x, producing), **options)
        right += consumer(t, reading)
        torch.cuda.synchronize()
    return right


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("rung", RUNGS)
def test_the_reader_comes_after_the_writer(rung, consumer, streams):
    if (rung, consumer) == ("Arrow", "jax"):
        pytest.skip("Arrow's arrays are read-only, and JAX takes no read-only memory by its own from_dlpack")
    assert probe(RUNGS[rung], CONSUMERS[consumer], streams, ROUNDS) == ROUNDS


@pytest.mark.parametrize("rung", RUNGS)
def test_the_readers_stream_named_on_import(rung, streams):
    """What is read then needs no stream of its own: `stream=-1`."""
    reading = streams[1]

    def read(t, stream):
        assert t.stream == reading.cuda_stream
        return read_by_torch(t, stream, lambda t: torch.from_dlpack(t.__dlpack__(max_version=(1, 3), stream=-1)))

    if rung == "Arrow":
        pytest.skip("Arrow's consumers are handed what is complete")
    assert probe(RUNGS[rung], read, streams, ROUNDS, stream=reading.cuda_stream) == ROUNDS


@timed
@pytest.mark.parametrize("rung", ["exchange table", "__dlpack__", "CUDA interface 3"])
def test_a_reader_that_does_not_wait_is_seen(rung, streams):
    """Without this the probes above would prove nothing."""
    def read_at_once(t, stream):
        return read_by_torch(t, stream, lambda t: torch.from_dlpack(t.__dlpack__(max_version=(1, 3), stream=-1)))

    assert probe(RUNGS[rung], read_at_once, streams, 5, stream=-1) == 0


def test_cupy_on_a_side_stream(streams):
    cupy, right = need("cupy"), 0
    side = cupy.cuda.ExternalStream(streams[0].cuda_stream)
    x = cupy.empty(COUNT, dtype="float32")
    for _ in range(ROUNDS):
        x.fill(OLD)
        torch.cuda.synchronize()
        with torch.cuda.stream(streams[0]), side:
            spin(2)
            x.fill(NEW)
            t = tenon.asdlpack(x)
        assert t.stream == streams[0].cuda_stream
        right += read_by_torch(t, streams[1])
    assert right == ROUNDS


@pytest.mark.parametrize("module", ["bound_capi", "bound_nanobind", "bound_pybind11"])
def test_work_launched_on_the_stream_of_an_argument(module, streams):
    """It comes after what the argument's library has queued, and before what that queues next."""
    bound, right = pytest.importorskip(module), 0
    x = torch.empty(COUNT, device="cuda")
    for _ in range(ROUNDS):
        x.fill_(OLD)
        torch.cuda.synchronize()
        with torch.cuda.stream(streams[0]):
            spin(1)
            x.fill_(NEW - 1)
            seen = bound.copied_on_cuda(x) + 1
        streams[0].synchronize()
        right += bool((seen == NEW).all())
    assert right == ROUNDS


# --- releases ---------------------------------------------------------------------------------------


def cupy_full(value):
    a = need("cupy").full(COUNT, value, dtype="float32")
    return a, a.data.ptr


def jax_full(value):
    """Complete, by a library that names no stream."""
    jax = need("jax")
    a = jax.block_until_ready(jax.numpy.full(COUNT, value, "float32"))
    return a, a.unsafe_buffer_pointer()


def release_early(full, read, streams, rounds) -> tuple[int, int]:
    """How often a read that was queued saw its memory, and how often that memory was used again meanwhile."""
    right = reused = 0
    for _ in range(rounds):
        a, address = full(NEW)
        torch.cuda.synchronize()
        with torch.cuda.stream(streams[1]):
            seen = read(a)
        del a  # the read is still behind a spin
        b, again = full(-1)
        reused += again == address
        streams[1].synchronize()
        right += bool((seen == NEW).all())
        del b
        torch.cuda.synchronize()
    return right, reused


def read_behind_a_spin(y):
    spin(5)
    return y.clone()


@pytest.mark.parametrize("full", [cupy_full, jax_full])
@pytest.mark.parametrize("way", ["__dlpack__", "as torch's own"])
def test_F79_memory_is_not_used_again_before_the_queued_read(streams, way, full):
    if way == "__dlpack__":
        read = lambda a: read_behind_a_spin(torch.from_dlpack(tenon.asdlpack(a)))
    else:
        exports = pytest.importorskip("tenon_exports")
        like = torch.empty(1, device="cuda")
        read = lambda a: read_behind_a_spin(exports.there_and_back(a, like))
    right, _ = release_early(full, read, streams, ROUNDS)
    assert right == ROUNDS


@pytest.mark.parametrize("module", ["bound_capi", "bound_nanobind", "bound_pybind11"])
def test_F79_what_a_function_was_lent_is_not_used_again_before_its_work(streams, module):
    bound = pytest.importorskip(module)

    def read(a):
        out = torch.empty(COUNT, device="cuda")
        spin(5)
        bound.copy_on_cuda(a, out)  # queued on PyTorch's stream
        return out

    right, _ = release_early(jax_full, read, streams, ROUNDS)
    assert right == ROUNDS


@timed
@pytest.mark.parametrize("full", [cupy_full, jax_full])
def test_F79_memory_that_is_used_again_is_seen(streams, full):
    """The libraries' own capsules say nothing of the consumer's work: without this the probes above would prove nothing."""
    right, reused = release_early(full, lambda a: read_behind_a_spin(torch.from_dlpack(a)), streams, 5)
    assert reused == 5 and right == 0


@timed
def test_F79_memory_comes_back_when_the_read_is_done(streams):
    cupy = need("cupy")
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    a = cupy.full(COUNT, NEW, dtype="float32")
    with torch.cuda.stream(streams[1]):
        y = torch.from_dlpack(tenon.asdlpack(a))
        spin(100)
        y.clone()
    del y, a
    assert pool.used_bytes() > before, "the read is still queued"
    streams[1].synchronize()
    assert wait_until(lambda: pool.used_bytes() == before), "a thread of its own lets go"


@timed
@unchecked
def test_a_stream_that_is_gone_is_not_touched():
    run_isolated("""
import gc, cupy, torch, tenon
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    a = cupy.arange(8, dtype="float32")
    t = tenon.asdlpack(a)
    seen = cupy.from_dlpack(t)
assert t.stream == stream.ptr
del stream
gc.collect()
assert torch.from_dlpack(t).sum().item() == 28
assert cupy.asarray(t).sum() == 28
del seen, t
gc.collect()
torch.cuda.synchronize()
""")


# --- graphs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["bound_capi", "bound_nanobind", "bound_pybind11"])
def test_a_captured_call_takes_and_returns_tensors(module):
    bound = pytest.importorskip(module)
    x = torch.arange(6.0, device="cuda")
    bound.copied_on_cuda(x)  # the types are known from here on
    torch.cuda.synchronize()
    # Memory that was written to before: initcheck looks at the graph's copies before its kernels have run.
    graph, earlier = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(earlier):
        written = [torch.full_like(x, 1) for _ in range(4)]
    earlier.replay()
    del written
    with torch.cuda.graph(graph, pool=earlier.pool()):
        y = bound.copied_on_cuda(x + 1)
        z = bound.copied_on_cuda(y * 2)
    for value in (3.0, 5.0, -2.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert z.tolist() == [(value + 1) * 2] * 6


def test_a_captured_import_and_export():
    x = torch.arange(6.0, device="cuda")
    outside = tenon.asdlpack(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.from_dlpack(tenon.asdlpack(x)) * 2
        z = torch.from_dlpack(outside) + y
        w = torch.from_dlpack(tenon.asdlpack(z))
    for value in (3.0, -4.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert w.tolist() == [value * 3] * 6


def test_cupy_is_captured_too(streams):
    cupy = need("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    x, y = cupy.zeros(6, dtype="float32"), cupy.zeros(6, dtype="float32")
    bound = pytest.importorskip("bound_capi")
    bound.copy_on_cuda(x, y)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        bound.copy_on_cuda(x, y)
        graph = stream.end_capture()
    x.fill(9)
    cupy.cuda.Device().synchronize()
    assert y.tolist() == [0] * 6
    graph.launch(stream)
    stream.synchronize()
    assert y.tolist() == [9] * 6


def test_a_release_in_the_middle_does_not_end_a_capture(streams):
    cupy = need("cupy")
    a = cupy.full(COUNT, NEW, dtype="float32")
    with torch.cuda.stream(streams[1]):
        y = torch.from_dlpack(tenon.asdlpack(a))
    x = torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
        del y, a
        x.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [2] * 4


# --- processes ----------------------------------------------------------------------------------------


@unchecked
def test_importing_and_host_work_make_no_context():
    """Asked of the driver itself, which does not count as use."""
    code = """
import ctypes, numpy as np, tenon
driver = ctypes.CDLL("libcuda.so.1")
t = tenon.asdlpack(np.arange(6.0))
t.to("numpy"), tenon.inspect(t), tenon.asdlpack(t, device="cpu", copy=True), memoryview(t)
active, flags = ctypes.c_int(-1), ctypes.c_uint()
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 3, "nobody has started it"
tenon.asdlpack(t, device="cuda:0")
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@unchecked
def test_F23_a_child_of_fork_lets_go_without_the_device():
    code = """
import os, numpy as np, tenon, torch
x = torch.arange(6.0, device="cuda")
with torch.cuda.stream(torch.cuda.Stream()):
    t = tenon.asdlpack(x)
    y = torch.from_dlpack(t)
own = tenon.asdlpack(np.arange(6.0), device="cuda:0")
child = os.fork()
if child == 0:
    try:
        tenon.asdlpack(np.arange(3.0), device="cuda:0")
    except BufferError as e:
        assert "forked" in str(e), e
        del own, t
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert torch.from_dlpack(own).sum().item() == 15 and y.sum().item() == 15
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@timed
def test_memory_of_the_driver_is_given_back():
    x = np.zeros(1 << 26, dtype=np.uint8)
    tenon.asdlpack(x, device="cuda:0")
    torch.cuda.synchronize()
    free, _ = torch.cuda.mem_get_info()
    for _ in range(20):
        tenon.asdlpack(x, device="cuda:0")
    assert abs(torch.cuda.mem_get_info()[0] - free) < 1 << 26
