# examples/mdspan/run.py: smooths a grid by an algorithm that takes mdspans.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import smooth  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def expected(grid):
    out = grid.copy()
    out[1:-1, 1:-1] = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4
    return out


def main():
    grid = np.zeros((5, 5))
    grid[2, 2] = 1
    print(f"NumPy    {smooth.smoothed(grid)[1].tolist()}")

    noise = np.random.default_rng(7).random((9, 12))
    for part in (grid, noise, noise[::2, 1::3], noise.T):  # strides of every kind
        assert np.array_equal(smooth.smoothed(part), expected(part))
    print(f"strided  {smooth.smoothed(grid[:, ::2])[2].tolist()}")

    if torch := installed("torch"):
        tensor = smooth.smoothed(torch.from_numpy(grid))
        assert isinstance(tensor, torch.Tensor) and np.array_equal(tensor.numpy(), expected(grid))
        print(f"PyTorch  {tensor[1].tolist()}")

    try:
        smooth.smoothed(grid[::-1])
    except BufferError as refusal:  # an mdspan's strides are positive
        print(f"refused  {refusal}")
    else:
        raise AssertionError("no mdspan goes backwards")


main()
