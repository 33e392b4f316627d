# examples/nearest/run.py: looks for neighbours in arrays of every library that is installed.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import nearest  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main():
    generator = np.random.default_rng(7)
    points = generator.random((1000, 3), np.float32)
    queries = points[:5] + np.float32(1e-4)

    indices, distances = nearest.nearest(points, queries, k=3)
    assert indices[:, 0].tolist() == [0, 1, 2, 3, 4], "each query lies beside the point it was made of"
    exact = np.linalg.norm(points - queries[:, None], axis=2)
    assert np.array_equal(np.argsort(exact)[:, :3], indices)
    assert np.allclose(np.sort(exact)[:, :3], distances)
    print(f"NumPy    {type(indices).__name__} {indices.dtype} {indices.shape}, {distances.dtype}: {indices[0]}")

    if torch := installed("torch"):
        found, away = nearest.nearest(torch.from_numpy(points), torch.from_numpy(queries), k=3)
        assert isinstance(found, torch.Tensor) and found.tolist() == indices.tolist()
        print(f"PyTorch  {type(found).__name__} {found.dtype} {tuple(found.shape)}, {away.dtype}: {found[0].tolist()}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        found, away = nearest.nearest(jax.numpy.asarray(points), jax.numpy.asarray(queries), k=3)
        assert isinstance(found, jax.Array) and found.tolist() == indices.tolist()
        print(f"JAX      {type(found).__name__} {found.dtype} {found.shape}, {away.dtype}: {found[0].tolist()}")

    for wrong in (points[:, :2], points[:, ::-1]):
        try:
            nearest.nearest(wrong, queries)
        except TypeError as refusal:
            print(f"refused  {refusal}")
        else:
            raise AssertionError("two columns, or columns in reverse, are not what the function takes")


main()
