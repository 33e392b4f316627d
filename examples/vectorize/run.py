# examples/vectorize/run.py: distances between places, for numbers and for arrays of each library.
"""python run.py [FOLDER]: FOLDER is where the module was built, `build` if not given."""

import importlib
import pathlib
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))

import vectorize  # from that folder


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main():
    names = ["Berlin", "Lagos", "Lima"]
    lat, lon = np.array([52.5, 6.5, -12.0]), np.array([13.4, 3.4, -77.0])
    table = vectorize.distance(lat[:, None], lon[:, None], lat, lon)  # broadcast: from each to each
    assert table.shape == (3, 3) and np.allclose(table, table.T) and not table.diagonal().any()
    print(f"NumPy    {names[0]} to {names[1]}: {table[0, 1]:.0f} km")

    one = vectorize.distance(52.5, 13.4, 6.5, 3.4)
    assert isinstance(one, float) and one == table[0, 1]
    print(f"numbers  {one:.0f} km")

    places = np.zeros((3, 4))
    vectorize.approach(places[:, ::2], np.full((2, 3), 8.0).T, 0.5)  # neither is contiguous
    assert places.tolist() == [[4, 0, 4, 0]] * 3
    print(f"in place {places[0].tolist()}")

    if torch := installed("torch"):
        far = vectorize.distance(torch.from_numpy(lat), torch.from_numpy(lon), 0, 0)
        assert isinstance(far, torch.Tensor) and far.shape == (3,)
        print(f"PyTorch  {[round(km) for km in far.tolist()]} km to 0, 0")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the function works in host memory
        jax.config.update("jax_enable_x64", True)  # and takes float64, which JAX has not otherwise
        far = vectorize.distance(jax.numpy.asarray(lat), jax.numpy.asarray(lon), 0, 0)
        jax.config.update("jax_enable_x64", False)
        assert isinstance(far, jax.Array) and far.shape == (3,)
        print(f"JAX      {[round(km) for km in far.tolist()]} km to 0, 0")

    try:
        vectorize.distance(lat, lon, lat[:2], lon)
    except ValueError as refusal:
        print(f"refused  {refusal}")
    else:
        raise AssertionError("3 places and 2 do not broadcast")


main()
