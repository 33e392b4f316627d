# examples/three_arrays/run.py: takes a table apart into three arrays.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import three_arrays  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main():
    table = np.array([[1, 8], [2, 5], [6, 2]], np.float64)
    least, mean, greatest = three_arrays.summary(table)
    assert (least.tolist(), mean.tolist(), greatest.tolist()) == ([1, 2], [3, 5], [6, 8])
    print(f"NumPy    {least}, {mean}, {greatest}")

    rows = three_arrays.summary(table.T)  # the same memory, read across
    assert rows[1].tolist() == [4.5, 3.5, 4]
    print(f"rows     {rows[0]}, {rows[1]}, {rows[2]}")

    if torch := installed("torch"):
        parts = three_arrays.summary(torch.from_numpy(table))
        assert all(isinstance(part, torch.Tensor) for part in parts) and parts[2].tolist() == [6, 8]
        print(f"PyTorch  {', '.join(map(str, parts))}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        jax.config.update("jax_enable_x64", True)  # JAX has no float64 without
        parts = three_arrays.summary(jax.numpy.asarray(table))
        assert all(isinstance(part, jax.Array) for part in parts) and parts[2].tolist() == [6, 8]
        print(f"JAX      {', '.join(map(str, parts))}")


main()
