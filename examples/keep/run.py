# examples/keep/run.py: has each module keep arrays, give them back, and let them go.
"""python run.py [FOLDER]: FOLDER is where the modules were built, `build` if not given."""

import gc
import importlib
import pathlib
import sys
import weakref

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


class Named(np.ndarray):
    """An array that can have attributes, and so be in a cycle."""


def show(module, binder):
    table, x = module.Table(), np.arange(4.0)
    before = sys.getrefcount(x)
    table.index = x
    table.notes = x
    table.add(x)
    assert table.index is x and table.notes is x and table.columns[0] is x, "the very object that came"
    table.add(np.ones(3))  # nobody else has a name for this one
    gc.collect()
    assert table.total() == 9.0  # on another thread, without the GIL
    print(f"NumPy    the columns add up to {table.total()}, by {binder}")

    table.clear()
    assert sys.getrefcount(x) == before and table.columns == []
    print("cleared  every reference is given back")

    try:
        _ = table.index
    except RuntimeError as refusal:
        print(f"empty    {refusal}")
    else:
        raise AssertionError("there is nothing to give")

    cycle = np.ones(3).view(Named)
    cycle.table = table  # the table keeps the array, which knows the table
    table.index = cycle
    table.notes = np.ones(2)
    seen = weakref.ref(cycle)
    del table, cycle
    gc.collect()
    assert seen() is None
    print("cycle    collected")

    if torch := installed("torch"):
        table = module.Table()
        table.notes = torch.zeros(2, 3, dtype=torch.bfloat16)
        table.add(torch.full((3,), 2.0, dtype=torch.float64))
        assert table.total() == 6.0
        print(f"PyTorch  {table.columns[0]}, notes of {table.notes.dtype}")
    if jax := installed("jax"):
        jax.config.update("jax_platforms", "cpu")  # the columns are read in host memory
        table = module.Table()
        table.notes = y = jax.numpy.ones(3)
        assert table.notes is y
        print(f"JAX      {table.notes.tolist()}")


def main():
    modules = {binder: installed(f"keep_{binder}") for binder in ("nanobind", "pybind11")}
    assert any(modules.values()), "no module was built"
    for binder, module in modules.items():
        if module is not None:
            show(module, binder)


main()
