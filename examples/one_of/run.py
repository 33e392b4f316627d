# examples/one_of/run.py: calls one function with arrays of two element types, and of each library.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import one_of  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main():
    for dtype in ("float32", "float64"):
        x = np.array([3, 4], dtype)
        y = one_of.unit(x)
        assert y.dtype == dtype and np.allclose(y, [0.6, 0.8])
        assert one_of.dot(x, x) == 25
        print(f"NumPy    {dtype}: the unit of {x.tolist()} is {y.round(1).tolist()}, of {y.dtype}")
    print(f"signed   {one_of.unit.__doc__.splitlines()[0]}")
    assert "'float32|float64[*]'" in one_of.unit.__doc__

    if torch := installed("torch"):
        y = one_of.unit(torch.tensor([0.0, 2.0], dtype=torch.float64))
        assert isinstance(y, torch.Tensor) and y.dtype == torch.float64 and y.tolist() == [0, 1]
        print(f"PyTorch  {y}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        y = one_of.unit(jax.numpy.array([0.0, 2.0], dtype="float32"))
        assert isinstance(y, jax.Array) and y.dtype == "float32" and y.tolist() == [0, 1]
        print(f"JAX      {y}")

    for call in (
        lambda: one_of.unit(np.array([3, 4])),
        lambda: one_of.dot(np.ones(2, "float32"), np.ones(2, "float64")),
    ):
        try:
            call()
        except TypeError as refusal:
            print(f"refused  {refusal}")
        else:
            raise AssertionError("these are not the element types of the function")


main()
