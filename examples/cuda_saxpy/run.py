# examples/cuda_saxpy/run.py: calls the one function with arrays of every library that is installed, on CPU and CUDA.
"""python run.py [FOLDER]: FOLDER is where the modules were built, `build` if not given."""

import importlib
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the GPU's memory


def installed(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def jax_devices(jax, platform):
    try:
        return jax.devices(platform)
    except RuntimeError:  # there is none
        return []


def places(cuda):
    """What is shown: a name, a function that makes a vector, and whether that may be written to."""
    yield "NumPy", lambda values: np.array(values, np.float32), True
    if torch := installed("torch"):
        yield "PyTorch", lambda values: torch.tensor(values, dtype=torch.float32), True
        if cuda and torch.cuda.is_available():
            yield "PyTorch, CUDA", lambda values: torch.tensor(values, dtype=torch.float32, device="cuda"), True
    if cuda and (cupy := installed("cupy")) and cupy.cuda.is_available():
        yield "CuPy", lambda values: cupy.array(values, np.float32), True
    if jax := installed("jax"):
        for name, platform in (("JAX", "cpu"), ("JAX, CUDA", "cuda")):
            for device in jax_devices(jax, platform)[:1] if cuda or platform == "cpu" else ():
                yield name, lambda values, on=device: jax.device_put(np.array(values, np.float32), on), False


def refused(call, *args):
    try:
        call(*args)
    except (TypeError, ValueError, BufferError) as refusal:
        return str(refusal)
    raise AssertionError(f"{args} must be refused")


def show(module):
    made = {}
    for name, make, writable in places(module.has_cuda):
        x, y = make([1, 2, 3]), make([10, 20, 30])
        out = module.saxpy(2, x, y)
        assert type(out) is type(x) and out.device == x.device, "the caller's own type, where the caller's is"
        assert out.tolist() == [12, 24, 36] and y.tolist() == [10, 20, 30]
        print(f"    {name:<14} {type(out).__module__}.{type(out).__name__} on {out.device}: {out.tolist()}")
        if writable:
            module.saxpy_into(2, x, y)
            assert y.tolist() == [12, 24, 36]
        else:
            assert "argument 'y' is read-only" in refused(module.saxpy_into, 2, x, y)
        made[name] = x
    if not module.has_cuda:
        print("    CUDA           built without nvcc: on the CPU alone")

    numpy = made["NumPy"]
    assert "x has 3 elements and y has 2" in refused(module.saxpy, 2, numpy, numpy[:2])
    if "PyTorch, CUDA" in made:
        refusal = refused(module.saxpy, 2, made["PyTorch, CUDA"], numpy)
        assert "argument 'y': device: not where the others are (got cpu, expected cuda:0)" in refusal
        print(f"    refused        {refusal}")


def main():
    binders = [name for name in ("pybind11", "nanobind") if installed(f"saxpy_{name}")]
    if not binders:
        sys.exit(f"no module in {sys.path[0]}: build the example first, see README.md")
    for binder in binders:
        print(f"saxpy, bound by {binder}:")
        show(installed(f"saxpy_{binder}"))


main()
