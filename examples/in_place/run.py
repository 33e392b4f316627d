# examples/in_place/run.py: has C++ write into arrays of every library that lets it.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import in_place  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def refused(rows):
    try:
        in_place.normalise(rows)
    except TypeError as refusal:
        return str(refusal)
    raise AssertionError("this array must not be written to")


def main():
    rows = np.array([[3, 4], [0, 0], [5, 12]], np.float32)
    in_place.normalise(rows)
    assert np.allclose(rows, [[0.6, 0.8], [0, 0], [5 / 13, 12 / 13]])
    print(f"NumPy      {rows[0].tolist()}")

    wide = np.ones((2, 4), np.float32)
    in_place.normalise(wide[:, ::2])  # every other column, where it is
    assert np.allclose(wide[0], [0.5**0.5, 1, 0.5**0.5, 1])
    print(f"strided    {wide[0].tolist()}")

    in_place.add_scaled(rows[0], rows[2], a=13)
    assert np.allclose(rows[0], [5.6, 12.8])

    if torch := installed("torch"):
        tensor = torch.tensor([[3.0, 4.0]])
        in_place.normalise(tensor)
        assert torch.allclose(tensor, torch.tensor([[0.6, 0.8]]))
        print(f"PyTorch    {tensor[0].tolist()}")

    rows.flags.writeable = False
    assert "argument 'rows' is read-only" in refused(rows)
    print(f"read-only  {refused(rows)}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        constant = jax.numpy.ones((1, 2), "float32")
        assert "argument 'rows' is read-only" in refused(constant)
        print(f"JAX        {refused(constant)}")


main()
