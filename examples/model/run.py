# examples/model/run.py: gives a model weights of each library, which it reads where they are.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import model  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main():
    weights = np.array([[1, 0, 0], [0, 2, 0]], np.float32)
    layer = model.Linear(weights)
    x = np.array([[1, 2, 3]], np.float32)
    assert layer(x).tolist() == [[1, 4]]
    print(f"NumPy    {x[0].tolist()} becomes {layer(x)[0].tolist()}")

    weights[1, 2] = 1  # the model reads the caller's memory: no copy was made
    assert layer(x).tolist() == [[1, 7]]
    print(f"changed  {x[0].tolist()} becomes {layer(x)[0].tolist()}")

    assert np.shares_memory(np.asarray(layer.weights), weights)
    del weights
    kept = np.asarray(layer.weights)
    del layer  # the memory stays for as long as anybody looks at it
    assert kept.tolist() == [[1, 0, 0], [0, 2, 1]]
    print(f"weights  {kept.tolist()} outlive the model")

    if torch := installed("torch"):
        layer = model.Linear(torch.eye(3))
        y = layer(torch.tensor([[4.0, 5.0, 6.0]]))
        assert isinstance(y, torch.Tensor) and y.tolist() == [[4, 5, 6]]
        print(f"PyTorch  {y}, weights {tuple(torch.from_dlpack(layer.weights).shape)}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        y = model.Linear(jax.numpy.eye(3, dtype="float32"))(x)
        assert isinstance(y, np.ndarray) and y.tolist() == [[1, 2, 3]], "the result is like x, not like the weights"
        print(f"JAX      weights, NumPy in and out: {y.tolist()}")

    try:
        model.Linear(np.eye(3))
    except BufferError as refusal:
        print(f"refused  {refusal}")
    else:
        raise AssertionError("float64 is not float32")


main()
