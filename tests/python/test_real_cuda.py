# tests/python/test_real_cuda.py: what leaves from real CUDA memory: streams, copies to the host, the interface, the caller's own library.
from __future__ import annotations

import gc

import pytest
import tenon
import tenon_exports

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

CPU, CUDA = (1, 0), (2, 0)


@pytest.fixture
def x():
    return torch.arange(24.0, device="cuda").reshape(2, 3, 4)


def on_stream(producer, stream, **keywords):
    return tenon.asdlpack(producer.__dlpack__(max_version=(1, 3), stream=stream, **keywords))


def spin(milliseconds: float) -> None:
    """Keeps the current stream busy for about this long."""
    torch.cuda._sleep(int(milliseconds * 1_500_000))


def test_P41_the_device_is_the_one_the_capsule_says(x):
    t = tenon.asdlpack(x)
    assert t.__dlpack_device__() == CUDA and t.device == "cuda:0" and t.data_ptr == x.data_ptr()
    assert torch.from_dlpack(t).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("layout", ["compact", "strided", "transposed", "offset", "scalar", "empty"])
def test_P29_a_copy_on_the_host_is_complete_when_it_is_handed_out(x, layout):
    part = {"compact": x, "strided": x[:, ::2, 1::2], "transposed": x.transpose(0, 2), "offset": x[1, 1:],
            "scalar": x[1, 2, 3], "empty": x[:, :0]}[layout]
    t = tenon.asdlpack(part)
    spin(50)
    x.add_(1)  # queued behind the spin: a copy that does not wait misses it
    host = tenon.asdlpack(t.__dlpack__(max_version=(1, 3), dl_device=CPU))
    assert host.device == "cpu" and host.flags & 2 and host.is_contiguous
    assert torch.equal(torch.from_dlpack(host), part.cpu())
    with pytest.raises(BufferError, match="copy=False"):
        t.__dlpack__(max_version=(1, 3), dl_device=CPU, copy=False)
    with pytest.raises(ValueError, match="stream"):
        t.__dlpack__(dl_device=CPU, stream=1)


@pytest.mark.parametrize("kind", ["none", "legacy", "per-thread", "handle"])
def test_P32_the_consumers_stream_waits_for_the_default_one(x, kind):
    side = torch.cuda.Stream()
    number = {"none": None, "legacy": 1, "per-thread": 2, "handle": side.cuda_stream}[kind]
    t = tenon.asdlpack(x)
    for _ in range(20):
        x.zero_()
        torch.cuda.synchronize()
        spin(10)
        x.add_(7)  # on the default stream, behind the spin
        on_stream(t, number)
        if kind == "handle":
            with torch.cuda.stream(side):
                seen = x.clone()
            side.synchronize()
            assert torch.all(seen == 7)
    torch.cuda.synchronize()


def test_P33_zero_is_no_stream(x):
    with pytest.raises(ValueError, match="stream=0"):
        tenon.asdlpack(x).__dlpack__(stream=0)


def test_P34_minus_one_makes_no_call_and_works_during_capture(x):
    t = tenon.asdlpack(x)
    graph = torch.cuda.CUDAGraph()
    y = torch.zeros_like(x)
    with torch.cuda.graph(graph):
        # A bare capsule: an object would be asked again, with the stream that is being captured.
        seen = torch.from_dlpack(t.__dlpack__(max_version=(1, 3), stream=-1))
        torch.mul(seen, 2, out=y)
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.all(y == 6)


@pytest.mark.parametrize("layout", ["compact", "strided", "transposed", "offset", "flipped", "scalar", "empty"])
def test_a_copy_on_the_device(x, layout):
    cupy = pytest.importorskip("cupy")
    y = cupy.asarray(x)
    part = {"compact": y, "strided": y[:, ::2, 1::2], "transposed": y.T, "offset": y[1, 1:], "flipped": y[:, ::-1],
            "scalar": y[1, 2, 3], "empty": y[:, :0]}[layout]
    copied = tenon.asdlpack(tenon.asdlpack(part).__dlpack__(max_version=(1, 3), copy=True, stream=1))
    assert (copied.device, copied.flags, copied.is_contiguous) == ("cuda:0", 2, True)
    assert not copied.size or copied.data_ptr != part.data.ptr
    seen = cupy.from_dlpack(copied)
    assert seen.shape == part.shape and bool((seen == part).all())
    assert tenon.asdlpack(part, copy=True).device == "cuda:0", "CuPy's own refuses to copy"


def test_host_protocols_are_not_there(x):
    t = tenon.asdlpack(x)
    assert not hasattr(t, "__array_interface__")
    with pytest.raises(BufferError, match="host"):
        memoryview(t)


def test_the_cuda_interface_says_where_and_how(x):
    t = tenon.asdlpack(x[:, ::2])
    interface = t.__cuda_array_interface__
    assert interface["data"] == (x.data_ptr(), False) and interface["version"] == 3
    assert interface["strides"] == (48, 32, 4) and interface["stream"] == 1
    cupy = pytest.importorskip("cupy")
    seen = cupy.asarray(t)
    assert seen.data.ptr == x.data_ptr() and seen.strides == (48, 32, 4)
    seen[0, 0, 0] = 99
    cupy.cuda.Device().synchronize()
    assert x[0, 0, 0].item() == 99


def test_numba_reads_the_interface(x):
    cuda = pytest.importorskip("numba.cuda")
    seen = cuda.as_cuda_array(tenon.asdlpack(x))
    assert seen.shape == (2, 3, 4) and seen.device_ctypes_pointer.value == x.data_ptr()


def test_cupy_and_jax_take_the_object(x):
    t = tenon.asdlpack(x)
    cupy = pytest.importorskip("cupy")
    assert cupy.from_dlpack(t).data.ptr == x.data_ptr()
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no GPU")
    assert jax.dlpack.from_dlpack(t).unsafe_buffer_pointer() == x.data_ptr()


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_the_callers_own_library_and_allocator(x, library):
    model = x if library == "torch" else pytest.importorskip("cupy").asarray(x)
    made = tenon_exports.empty_like(model, (5, 3), "float32")
    assert type(made) is type(model) and tuple(made.shape) == (5, 3)
    assert tenon.asdlpack(made).device == "cuda:0"
    back = tenon_exports.there_and_back(model)
    assert type(back) is type(model)
    assert tenon.asdlpack(back).data_ptr == x.data_ptr()


def test_pinned_memory_is_the_hosts():
    pinned = torch.arange(6.0).pin_memory()
    t = tenon.asdlpack(pinned)
    assert memoryview(t).tolist() == [0, 1, 2, 3, 4, 5]
    assert tenon.asdlpack(t.__dlpack__(max_version=(1, 3), dl_device=CPU)).data_ptr == pinned.data_ptr()


def test_memory_lives_as_long_as_what_leaves(x):
    address = x.data_ptr()
    t = tenon.asdlpack(x)
    seen = torch.from_dlpack(t)
    del t, x
    gc.collect()
    others = [torch.full((2, 3, 4), -1.0, device="cuda") for _ in range(8)]
    assert seen.data_ptr() == address and seen[1, 2, 3].item() == 23
    assert all(o.data_ptr() != address for o in others)


# --- the package ------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["torch", "cupy", "jax", "numba"])
def test_to_a_library_on_the_device_is_what_explain_says(x, library):
    pytest.importorskip(library)
    t = tenon.asdlpack(x)
    answer = tenon.explain(x, library)
    if answer.outcome == "refused":
        with pytest.raises(BufferError, match="GPU|no element type"):
            t.to(library)
        pytest.skip(f"{answer.reason}")
    assert answer.outcome == "shared", answer
    made = t.to(library, copy=False)
    assert tenon.asdlpack(made).data_ptr == x.data_ptr() and tenon.asdlpack(made).device == "cuda:0"


@pytest.mark.parametrize("library", ["numpy", "pyarrow", "tensorflow"])
def test_device_memory_is_refused_by_libraries_of_the_host(x, library):
    t = tenon.asdlpack(x)
    pytest.importorskip(library)
    if tenon.explain(t, library).outcome == "shared":
        pytest.skip(f"this {library} is one for the GPU")
    with pytest.raises(BufferError, match='device="cpu"'):
        t.to(library)
    assert t.to("numpy", device="cpu").tolist() == x.cpu().numpy().tolist()


def test_host_memory_goes_to_cupy_by_a_copy():
    pytest.importorskip("cupy")
    answer = tenon.explain(bytearray(8), "cupy")
    assert (answer.outcome, answer.fix) == ("refused", 'tenon.asdlpack(obj, device="cuda:0")')
    obj = tenon.asdlpack(bytearray(b"abc"))
    with pytest.raises(BufferError, match='GPU; pass device="cuda:0"'):
        obj.to("cupy")
    assert obj.to("cupy", device="cuda:0").tolist() == [97, 98, 99]


def test_values_are_read_on_the_host_alone(x):
    t = tenon.asdlpack(x)
    for read in (t.tolist, lambda: t.__reduce_ex__(5), lambda: tenon.asdlpack(x[0, 0, 0]).item()):
        with pytest.raises(BufferError, match='device="cpu"'):
            read()
    assert tenon.asdlpack(t, device="cpu").tolist() == x.tolist()
    assert "cuda:0" in t._repr_html_() and tenon.inspect(x).device == "cuda:0"


def test_arrow_on_the_device_there_and_back():
    x = torch.arange(1000, dtype=torch.int32, device="cuda")
    t = tenon.asdlpack(x)
    with pytest.raises(BufferError, match="__arrow_c_device_array__"):
        t.__arrow_c_array__()

    class Arrow:
        def __arrow_c_device_array__(self, requested_schema=None, **keywords):
            return t.__arrow_c_device_array__(requested_schema, **keywords)

    spin(20)
    x.add_(1)  # complete when the array is handed out: Arrow's consumers know of no stream
    back = tenon.asdlpack(Arrow())
    assert (back.device, back.data_ptr, back.shape, back.readonly) == ("cuda:0", x.data_ptr(), (1000,), True)
    with torch.cuda.stream(torch.cuda.Stream()):
        with pytest.warns(tenon.ReadOnlyWarning):
            seen = back.torch().sum().item()
    assert seen == 1000 * 1001 // 2


def test_from_pointer_over_device_memory(x):
    t = tenon.from_pointer(x.data_ptr(), (24,), "float32", device=x.device, owner=x)
    assert t.torch().data_ptr() == x.data_ptr() and t.torch().sum().item() == x.sum().item()
