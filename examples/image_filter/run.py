# examples/image_filter/run.py: finds the edges of a picture, and shows that a strided one is not copied.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys
import tracemalloc

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import image_filter  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main():
    picture = np.zeros((256, 512), np.float32)
    picture[64:192, 128:384] = 1  # a bright rectangle

    edges = image_filter.sobel(picture)
    assert edges[128, 128] == 4 and edges[128, 256] == 0
    print(f"NumPy    {type(edges).__name__} {edges.shape}: {np.count_nonzero(edges)} pixels at an edge")

    half = picture[:, ::2]  # every other column: nothing is copied, here or in C++
    tracemalloc.start()
    edges = image_filter.sobel(half)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(edges, image_filter.sobel(half.copy()))
    assert peak < 1.5 * edges.nbytes, "the image was copied"
    print(f"strided  strides {half.strides} read in place: {edges.nbytes} bytes of result, {peak} allocated in all")

    if torch := installed("torch"):
        tensor = image_filter.sobel(torch.from_numpy(half))
        assert isinstance(tensor, torch.Tensor) and np.array_equal(tensor.numpy(), edges)
        print(f"PyTorch  {type(tensor).__name__} {tuple(tensor.shape)}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        array = image_filter.sobel(jax.numpy.asarray(picture))
        assert isinstance(array, jax.Array) and array[128, 128] == 4
        print(f"JAX      {type(array).__name__} {array.shape}")

    try:
        image_filter.sobel(picture.astype(np.float64))
    except TypeError as refusal:
        print(f"refused  {refusal}")
    else:
        raise AssertionError("float64 is not float32")


main()
