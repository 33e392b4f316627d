# tests/python/test_bound_cuda.py: bound functions with arrays on a real GPU: device, stream, refusals and results.
from __future__ import annotations

import importlib

import pytest

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture(params=["capi", "nanobind", "pybind11"])
def bound(request):
    return pytest.importorskip(f"bound_{request.param}")


@pytest.fixture
def x():
    return torch.arange(6.0, device="cuda")


def test_the_address_and_the_device_are_the_callers(bound, x):
    name, shape, strides, device, address, _ = bound.on_cuda(x[1::2])
    assert (name, shape, strides) == ("float32", [3], [2])
    assert device == f"cuda:{x.get_device()}" and address == x.data_ptr() + 4


def test_the_stream_is_the_one_the_caller_works_on(bound, x):
    assert torch.cuda.current_stream().cuda_stream == 0 and bound.on_cuda(x)[-1] == 1, "by the handle that means it"
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert bound.on_cuda(x)[-1] == side.cuda_stream


def test_the_stream_of_a_library_without_a_table(bound):
    cupy = pytest.importorskip("cupy")
    array = cupy.arange(6, dtype="float32")
    *_, address, stream = bound.on_cuda(array)
    assert address == array.data.ptr and stream == 1
    with cupy.cuda.Stream(non_blocking=True) as side:
        assert bound.on_cuda(array)[-1] == side.ptr


def test_the_stream_that_an_interface_names(bound):
    cuda = pytest.importorskip("numba.cuda")
    side = cuda.stream()
    array = cuda.device_array(6, dtype="float32", stream=side)
    assert bound.on_cuda(array)[-1] == int(side) != 0
    assert bound.on_cuda(cuda.device_array(6, dtype="float32"))[-1] == 1


def test_a_library_that_names_no_stream_has_waited_for_the_default_one(bound):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no GPU")
    array = jax.numpy.arange(6, dtype="float32")
    *_, address, stream = bound.on_cuda(array)
    assert address == array.unsafe_buffer_pointer() and stream == 1


def test_managed_memory_is_the_devices_and_the_hosts(bound):
    cupy = pytest.importorskip("cupy")
    array = cupy.ndarray((6,), "float32", cupy.cuda.malloc_managed(24))
    array[:] = cupy.arange(6)
    _, _, _, device, address, stream = bound.on_cuda(array)
    assert (device, address, stream) == ("cuda_managed:0", array.data.ptr, 1)
    cupy.cuda.Device().synchronize()
    bound.fill(array, 3)  # by the host
    assert array.tolist() == [3] * 6


def test_taking_an_argument_does_not_end_a_graph_capture(bound, x):
    bound.on_cuda(x)  # the type is known from here on
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inside = bound.on_cuda(x)
        x.add_(1)
    assert inside[-1] != 0
    before = x.clone()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(x, before + 1)


def test_what_is_elsewhere_is_refused_with_the_way_there(bound, x):
    with pytest.raises(TypeError) as caught:
        bound.on_cuda(x.cpu())
    assert str(caught.value) == (
        "on_cuda(): argument 'x' is on the wrong device: expected float32[*] on cuda, got float32[6] with strides (1,), "
        "writable, on cpu (torch.Tensor); try x.cuda()"
    )
    with pytest.raises(TypeError) as caught:
        bound.scale(x)
    assert str(caught.value) == (
        "scale(): argument 'x' is on the wrong device: expected float32[*] in host memory, got float32[6] with strides (1,), "
        f"writable, on {x.device} (torch.Tensor); try x.cpu()"
    )


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_a_new_array_is_the_callers_own_on_the_same_device(bound, library):
    module = importlib.import_module(library) if library == "torch" else pytest.importorskip(library)
    like = module.arange(6, dtype=module.float32, **({"device": "cuda"} if library == "torch" else {}))
    made = bound.fresh_on_cuda(like)
    assert type(made) is type(like) and made.shape == like.shape and made.dtype == like.dtype
    assert made.device == like.device
    made[:] = 7
    assert float(made.sum()) == 42 and float(like.sum()) == 15


def test_pinned_memory_is_for_the_host(bound):
    pinned = torch.arange(6.0).pin_memory()
    assert list(bound.scale(pinned)) == [0, 2, 4, 6, 8, 10]
