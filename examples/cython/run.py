# examples/cython/run.py: calls the Cython module with arrays of every library that is installed.
import array
import importlib

import matrices


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main():
    print("scale(matrix, 10), in place:")
    buffer = memoryview(array.array("d", [1, 2, 3, 4, 5, 6])).cast("B").cast("d", (2, 3))
    matrices.scale(buffer, 10)
    assert buffer.tolist() == [[10, 20, 30], [40, 50, 60]]
    print(f"    memoryview  {buffer.tolist()}")
    if numpy := installed("numpy"):
        x = numpy.arange(6.0).reshape(3, 2)
        matrices.scale(x.T, 10)
        assert x.tolist() == [[0, 10], [20, 30], [40, 50]]
        print(f"    NumPy       {x.T.tolist()}, a transposed view")
    if torch := installed("torch"):
        t = torch.ones(2, 3, dtype=torch.float64)
        matrices.scale(t, 10)
        assert t.tolist() == [[10] * 3] * 2
        print(f"    PyTorch     {t.tolist()}")
    for wrong in (b"bytes", array.array("d", [1]), [[1.0]]):
        try:
            matrices.scale(wrong, 10)
        except (BufferError, TypeError) as error:
            print(f"    {type(error).__name__:11} {str(error).splitlines()[0]}")
        else:
            raise AssertionError(f"{wrong!r} was scaled")

    print("multiplication_table(2, 3, like=...), as the caller has arrays:")
    made = matrices.multiplication_table(2, 3)
    print(f"    None        {made!r}")
    assert memoryview(made).tolist() == [[1, 2, 3], [2, 4, 6]]
    for library in ("numpy", "torch", "jax.numpy"):
        if module := installed(library):
            like = module.zeros(1)
            made = matrices.multiplication_table(2, 3, like)
            assert type(made) is type(like)
            assert made.tolist() == [[1, 2, 3], [2, 4, 6]]
            print(f"    {library:11} {type(made).__module__}.{type(made).__qualname__} of {made.tolist()}")


main()
