# examples/out/run.py: has each module fill arrays of the caller's, and make new ones.
"""python run.py [FOLDER]: FOLDER is where the modules were built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def show(clip, binder):
    x = np.array([[-1, 0.5, 3]], np.float32)
    fresh = clip(x, 0, 1)
    assert type(fresh) is np.ndarray and fresh.tolist() == [[0, 0.5, 1]]
    out = np.empty_like(x)
    assert clip(x, 0, 1, out=out) is out
    assert out.tolist() == fresh.tolist()
    print(f"NumPy    {x[0].tolist()} becomes {out[0].tolist()}, by {binder}")

    assert clip(x, 0, 1, out=x) is x and x.tolist() == fresh.tolist()
    print(f"in place {x[0].tolist()}")

    if torch := installed("torch"):
        y = torch.tensor([[-1, 0.5, 3]])
        filled = torch.zeros(1, 3)
        assert clip(y, 0, 1, out=filled) is filled and filled.tolist() == fresh.tolist()
        assert isinstance(clip(y, 0, 1), torch.Tensor)
        print(f"PyTorch  {filled}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        z = clip(jax.numpy.array([[-1, 0.5, 3]], "float32"), 0, 1)
        assert isinstance(z, jax.Array) and z.tolist() == fresh.tolist()
        print(f"JAX      {z.tolist()}, always new: its arrays are never written to")

    try:
        clip(x, 0, 1, out=np.zeros((2, 3), np.float32))
    except ValueError as refusal:
        print(f"refused  {refusal}")
    else:
        raise AssertionError("out has another shape")


def main():
    modules = {binder: installed(f"out_{binder}") for binder in ("nanobind", "pybind11")}
    assert any(modules.values()), "no module was built"
    for binder, module in modules.items():
        if module is not None:
            show(module.clip, binder)


main()
