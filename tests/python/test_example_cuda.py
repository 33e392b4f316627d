# tests/python/test_example_cuda.py: examples/cuda_saxpy: without nvcc it works on the CPU, with it on a GPU as well.
from __future__ import annotations

import array
import importlib
import os
import re
import shutil
import sys
import types
from pathlib import Path

import pytest
import tenon
from bound import EXAMPLES
from building import ROOT, WARNINGS, assert_clean, configure, copy_of, install_to, python_path, run
from isolation import unchecked
from test_examples import BINDERS, is_installed

pytestmark = pytest.mark.slow  # one project after the other is compiled

SOURCE = EXAMPLES / "cuda_saxpy"
NVCC = os.environ.get("CUDACXX") or shutil.which("nvcc")
COUNT = 100_003


class Modules:
    """The example's modules, in the folder they were built in."""

    def __init__(self, build: Path):
        self.build = build

    def module(self, binder: str) -> types.ModuleType:
        sys.path.insert(0, str(self.build))
        try:
            return importlib.import_module(f"saxpy_{binder}")
        finally:
            sys.path.remove(str(self.build))


class Project(Modules):
    """The example, copied and built outside this tree."""

    def __init__(self, folder: Path, *options: str):
        if not BINDERS:
            pytest.skip("neither pybind11 nor nanobind is installed")
        prefix = install_to(folder / "prefix", folder / "tenon")
        self.source = copy_of(SOURCE, folder)
        super().__init__(folder / "build")
        self.configured = configure(
            self.source,
            self.build,
            f"-Dtenon_ROOT={prefix}",
            f"-DCMAKE_CXX_FLAGS={WARNINGS} -O0",
            "-DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON",  # or there would be no warnings from headers
            # In half the time: the sources of nanobind at once, and without the optimization pybind11 asks for.
            "-DCMAKE_UNITY_BUILD=ON",
            "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
            "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF",
            *options,
        )
        self.output = run("cmake", "--build", self.build, "--verbose")

    def show(self, **environment: str) -> str:
        return run(sys.executable, self.source / "run.py", self.build, **environment)


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Project:
    """Without CUDA, whether there is nvcc or not; run in processes of its own."""
    return Project(tmp_path_factory.mktemp("plain"), "-DCMAKE_CUDA_COMPILER=")


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> Modules:
    if NVCC is None:
        pytest.skip("needs nvcc")
    if "TENON_GPU_CHECKED" in os.environ:  # which no compiler must run under
        return Modules(Path(os.environ["TENON_GPU_EXAMPLE"]))
    return Project(tmp_path_factory.mktemp("full"))


@pytest.fixture(params=BINDERS)
def either(request) -> types.ModuleType:
    """The one module of its name that this process has."""
    return request.getfixturevalue("plain" if NVCC is None else "full").module(request.param)


def on(device: str, *values: float) -> tenon.Tensor:
    """A vector that claims to be there: what is refused is not looked into."""
    kept = tenon.asdlpack(array.array("f", values))
    return tenon.from_pointer(kept.data_ptr, (len(values),), "float32", device=device, owner=kept)


# --- on the CPU ---------------------------------------------------------------------------------------------------


@unchecked
def test_without_nvcc_it_is_plain_cpp_and_says_so(plain):
    assert "there is no nvcc: the modules work on the CPU alone" in plain.configured
    assert_clean(plain.output, *plain.source.glob("*.[ch]pp"))


@unchecked
def test_it_finds_the_checkout_it_lies_in(tmp_path):
    if not BINDERS:
        pytest.skip("neither pybind11 nor nanobind is installed")
    configure(SOURCE, tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_tenon=ON", "-DCMAKE_CUDA_COMPILER=")
    assert f"-isystem {ROOT / 'include'}" in (tmp_path / "build.ninja").read_text()


@unchecked
def test_what_it_shows_on_the_cpu(plain):
    if not is_installed("numpy"):
        pytest.skip("the example is about NumPy's arrays")
    said = plain.show()
    for binder in BINDERS:
        assert f"saxpy, bound by {binder}:\n" in said
    for library, name in (("numpy", "NumPy"), ("torch", "PyTorch"), ("jax", "JAX")):
        assert len(re.findall(rf"^    {name} .*\[12\.0, 24\.0, 36\.0\]$", said, re.M)) == is_installed(library) * len(BINDERS)
    assert said.count("built without nvcc") == len(BINDERS)
    assert "leaked" not in said  # nanobind's word


def test_strides_are_followed_on_the_cpu(either):
    np = pytest.importorskip("numpy")
    x, y = np.arange(6, dtype=np.float32), np.full(3, 100, np.float32)
    assert either.saxpy(2, x[::-2], y).tolist() == [110, 106, 102]
    into = np.zeros(6, np.float32)
    assert either.saxpy_into(10, y, into[1::2]) is None
    assert into.tolist() == [0, 1000, 0, 1000, 0, 1000]
    assert either.saxpy(1, x[:0], y[:0]).shape == (0,)


def test_different_lengths_are_refused(either):
    with pytest.raises(ValueError, match=r"^saxpy\(\): x has 3 elements and y has 2; pass two of the same length$"):
        either.saxpy(1, on("cpu", 1, 2, 3), on("cpu", 1, 2))


@pytest.mark.parametrize(
    "x, y, which, got, expected",
    [
        ("cpu", "cuda:0", "x", "cpu", "cuda:0"),
        ("cuda:0", "cpu", "y", "cpu", "cuda:0"),
        ("cuda:1", "cuda:0", "y", "cuda:0", "cuda:1"),
        ("rocm:0", "cuda:0", "y", "cuda:0", "rocm:0"),
    ],
)
def test_different_places_are_refused_by_name(either, x, y, which, got, expected):
    with pytest.raises(BufferError) as caught:
        either.saxpy_into(1, on(x, 1, 2), on(y, 1, 2))
    assert str(caught.value) == (
        f"saxpy_into(): argument '{which}': device: not where the others are (got {got}, expected {expected}); "
        "move all of them to one device, or all to the CPU (tenon.Tensor)"
    )


def test_a_device_without_a_kernel_is_refused(either):
    with pytest.raises(ValueError, match="there is no kernel for metal:0"):
        either.saxpy_into(1, on("metal:0", 1, 2), on("metal:0", 1, 2))


@unchecked
@pytest.mark.parametrize("binder", BINDERS)
def test_without_nvcc_cuda_is_refused_with_the_way_out(plain, binder):
    script = f"""
import array, tenon, saxpy_{binder}
x = tenon.asdlpack(array.array("f", [1, 2]))
x = tenon.from_pointer(x.data_ptr, (2,), "float32", device="cuda:0", owner=x)
try:
    saxpy_{binder}.saxpy_into(1, x, x)
except RuntimeError as refusal:
    print(refusal)
"""
    # The package may be one that needs what is preloaded for it.
    needed = {name: os.environ[name] for name in ("LD_PRELOAD", "PYTHONMALLOC") if name in os.environ}
    said = run(sys.executable, "-c", script, PYTHONPATH=python_path(plain.build), **needed)
    assert said == "saxpy(): built without CUDA: install nvcc and build again, or pass CPU arrays\n"


# --- with nvcc ----------------------------------------------------------------------------------------------------


@unchecked
def test_it_is_built_with_the_kernel(full):
    assert "there is no nvcc" not in full.configured
    assert_clean(full.output, *full.source.glob("*.[ch]pp"))
    assert not re.search(r"\.cu\(\d+\): (warning|error)", full.output), full.output  # nvcc's way to put it


@pytest.fixture(params=BINDERS)
def saxpy(request, full) -> types.ModuleType:
    module = full.module(request.param)
    assert module.has_cuda
    return module


def test_what_goes_wrong_with_the_launch_is_told_in_cudas_words(saxpy):
    with pytest.raises(RuntimeError, match=r"^saxpy\(\): (invalid device ordinal|.*driver|no CUDA-capable device)"):
        saxpy.saxpy_into(1, on("cuda:63", 1, 2), on("cuda:63", 1, 2))


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch


@pytest.fixture
def cupy(torch):
    return pytest.importorskip("cupy")


@pytest.fixture
def jax(torch):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no GPU")
    return jax


gpu = pytest.mark.gpu


def spin(torch, milliseconds: float = 50) -> None:
    """Keeps PyTorch's current stream busy for about this long."""
    torch.cuda._sleep(int(milliseconds * 1_500_000))


@gpu
@unchecked
def test_what_it_shows_on_a_gpu(full, torch):
    said = full.show(JAX_PLATFORMS="")
    assert said.count("    PyTorch, CUDA  torch.Tensor on cuda:0: [12.0, 24.0, 36.0]\n") == len(BINDERS)
    assert said.count("argument 'y': device: not where the others are (got cpu, expected cuda:0)") == len(BINDERS)
    assert said.count("    CuPy ") == is_installed("cupy") * len(BINDERS)


@gpu
def test_torch_in_torch_out(saxpy, torch):
    x, y = torch.arange(float(COUNT), device="cuda"), torch.full((COUNT,), 5.0, device="cuda")
    out = saxpy.saxpy(2, x, y)
    assert type(out) is torch.Tensor and out.device == x.device and out.data_ptr() not in (x.data_ptr(), y.data_ptr())
    assert torch.equal(out, 2 * x + y)
    assert torch.equal(saxpy.saxpy(2, x[1::2], y[: COUNT // 2]), 2 * x[1::2] + 5), "strides are followed"
    assert saxpy.saxpy(2, x[:0], y[:0]).shape == (0,)


@gpu
def test_cupy_in_cupy_out(saxpy, cupy):
    x, y = cupy.arange(COUNT, dtype="float32"), cupy.full(COUNT, 5, "float32")
    out = saxpy.saxpy(2, x, y)
    assert type(out) is cupy.ndarray and out.device == x.device
    assert bool((out == 2 * x + y).all())
    assert bool((saxpy.saxpy(2, x[::-1], y) == 2 * x[::-1] + y).all()), "strides may be negative"


@gpu
def test_jax_in_jax_out(saxpy, jax):
    x, y = jax.numpy.arange(COUNT, dtype="float32"), jax.numpy.full(COUNT, 5, "float32")
    out = saxpy.saxpy(2, x, y)
    assert isinstance(out, jax.Array) and out.device == x.device
    assert bool((out == 2 * x + y).all())
    with pytest.raises(TypeError, match="argument 'y' is read-only"):
        saxpy.saxpy_into(2, x, y)
    assert bool((y == 5).all())


@gpu
def test_numpy_in_numpy_out_with_the_kernel_beside(saxpy, torch):
    np = pytest.importorskip("numpy")
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    out = saxpy.saxpy(2, x, y)
    assert type(out) is np.ndarray and out.tolist() == [1, 3, 5, 7]


@gpu
def test_into_a_given_array(saxpy, torch, cupy):
    x = torch.arange(float(COUNT), device="cuda")
    wide = torch.ones(COUNT, 2, device="cuda")
    address = wide.data_ptr()
    saxpy.saxpy_into(3, x, wide[:, 1])
    assert wide.data_ptr() == address
    assert torch.equal(wide[:, 1], 3 * x + 1) and torch.equal(wide[:, 0], torch.ones_like(x))
    y = cupy.ones(COUNT, "float32")
    saxpy.saxpy_into(3, x, y)
    assert torch.equal(torch.from_dlpack(y), 3 * x + 1), "of two libraries"


@gpu
def test_it_runs_on_the_callers_stream_and_waits_for_nothing(saxpy, torch):
    x, y = torch.zeros(COUNT, device="cuda"), torch.ones(COUNT, device="cuda")
    saxpy.saxpy(2, x, y)  # what is loaded on first use is loaded
    has_waited = []
    for _ in range(5):
        x.zero_()
        y.fill_(1)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            spin(torch)
            x.fill_(7)  # behind the spin: on any other stream the kernel would read zeros
            out = saxpy.saxpy(2, x, y)
            saxpy.saxpy_into(2, x, y)
        has_waited.append(side.query())
        side.synchronize()
        assert torch.all(out == 15) and torch.all(y == 15)
    # A busy host may come too late to see that it has not; a checker runs things one after another.
    assert "TENON_GPU_CHECKED" in os.environ or not all(has_waited), "it has waited for the stream"


@gpu
def test_it_runs_on_cupys_current_stream(saxpy, torch, cupy):
    x, y = cupy.zeros(COUNT, "float32"), cupy.ones(COUNT, "float32")
    saxpy.saxpy(2, x, y)
    for _ in range(5):
        x.fill(0)
        cupy.cuda.Device().synchronize()
        side = cupy.cuda.Stream(non_blocking=True)
        with side:
            with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
                spin(torch)
            x.fill(7)
            out = saxpy.saxpy(2, x, y)
        side.synchronize()
        assert bool((out == 15).all())


@gpu
def test_two_libraries_on_two_streams(saxpy, torch, cupy):
    x, y = torch.ones(COUNT, device="cuda"), cupy.zeros(COUNT, "float32")
    for _ in range(5):
        y.fill(0)
        cupy.cuda.Device().synchronize()
        ours, theirs = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
        with torch.cuda.stream(ours), theirs:
            with torch.cuda.stream(torch.cuda.ExternalStream(theirs.ptr)):
                spin(torch)
            y.fill(7)  # on CuPy's stream; the kernel runs on PyTorch's
            out = saxpy.saxpy(2, x, y)
            y.fill(-1)  # behind the kernel, on CuPy's stream again
        ours.synchronize()
        assert torch.all(out == 9)
        theirs.synchronize()


@gpu
def test_it_is_captured_into_a_graph_and_replayed(saxpy, torch):
    x, y = torch.arange(float(COUNT), device="cuda"), torch.ones(COUNT, device="cuda")
    saxpy.saxpy(3, x, y)
    saxpy.saxpy_into(0, x, y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = saxpy.saxpy(3, x, y)
        saxpy.saxpy_into(2, out, y)
    for scale in (1.0, -2.0, 10.0):
        x.copy_(torch.arange(float(COUNT), device="cuda") * scale)
        y.fill_(5)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, 3 * x + 5)
        assert torch.equal(y, 2 * out + 5)


@gpu
def test_managed_memory_goes_with_the_device(saxpy, cupy):
    x = cupy.ones(8, "float32")
    managed = cupy.ndarray((8,), "float32", cupy.cuda.malloc_managed(32))
    managed.fill(5)
    assert saxpy.saxpy(2, x, managed).tolist() == [7] * 8
    saxpy.saxpy_into(2, x, managed)
    assert managed.tolist() == [7] * 8


@gpu
def test_what_does_not_fit_together_is_refused(saxpy, torch):
    np = pytest.importorskip("numpy")
    x = torch.ones(3, device="cuda")
    with pytest.raises(BufferError, match=r"argument 'y': device: .*\(got cpu, expected cuda:0\)"):
        saxpy.saxpy(1, x, np.ones(3, np.float32))
    with pytest.raises(BufferError, match=r"argument .x.: device: .*\(got cpu, expected cuda:0\)"):
        saxpy.saxpy_into(1, torch.ones(3), x)
    with pytest.raises(ValueError, match="x has 3 elements and y has 2"):
        saxpy.saxpy(1, x, x[:2])
    with pytest.raises(TypeError, match="argument 'x' has the wrong dtype"):
        saxpy.saxpy(1, x.double(), x)
    assert torch.equal(x, torch.ones_like(x)), "nothing was written"
    if torch.cuda.device_count() > 1:
        with pytest.raises(BufferError, match=r"\(got cuda:1, expected cuda:0\)"):
            saxpy.saxpy(1, x, x.to("cuda:1"))


@gpu
def test_each_device_runs_its_own(saxpy, torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    x = torch.ones(COUNT, device="cuda:1")
    out = saxpy.saxpy(2, x, x)  # while cuda:0 is the current one
    assert out.device == x.device and torch.all(out == 3) and torch.cuda.current_device() == 0
