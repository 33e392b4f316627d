# examples/own_class/run.py: reads the C++ class from every array library that is installed, without a copy.
"""python run.py [FOLDER]: FOLDER is where the modules were built, `build` if not given."""

import importlib
import pathlib
import sys

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parent / "build"))


def installed(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def show(image):
    """One image, seen by everybody at once: what one of them writes, the others read."""
    pixels = memoryview(image)
    print(f"    memoryview  {pixels.shape}, format {pixels.format!r}, writable: {not pixels.readonly}")
    image.fill(0.5)
    assert pixels[1, 2] == 0.5, "what C++ writes, Python reads"

    if numpy := installed("numpy"):
        array = numpy.asarray(image)  # numpy.from_dlpack(image) does as well
        array[1, 2] = 7
        assert pixels[1, 2] == 7
        print(f"    NumPy       {array.shape}, {array.dtype}: wrote 7, and the memoryview reads {pixels[1, 2]}")
    if torch := installed("torch"):
        tensor = torch.from_dlpack(image)
        tensor[1, 2] = 8
        assert pixels[1, 2] == 8
        print(f"    PyTorch     {tuple(tensor.shape)}, {tensor.dtype}: wrote 8, and the memoryview reads {pixels[1, 2]}")
    if jax := installed("jax"):
        pixels[1, 2] = 9
        constant = jax.numpy.from_dlpack(image)
        assert constant[1, 2] == 9
        same = constant.unsafe_buffer_pointer() == image.__array_interface__["data"][0]
        assert same, "JAX made a copy"
        print(f"    JAX         {constant.shape}, {constant.dtype}: the same memory: {same}")

    del image  # the memory stays for as long as anybody looks at it
    return pixels


def main():
    binders = [name for name in ("pybind11", "nanobind") if installed(f"image_{name}")]
    if not binders:
        sys.exit(f"no module in {sys.path[0]}: build the example first, see README.md")
    for binder in binders:
        print(f"Image, bound by {binder}:")
        pixels = show(installed(f"image_{binder}").Image(3, 4))
        print(f"    the image is gone, its memory is not: {pixels.tolist()[1]}")


main()
