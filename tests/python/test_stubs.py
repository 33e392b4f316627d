# tests/python/test_stubs.py: the stubs that nanobind and pybind11-stubgen write pass strict checkers, which then know what fits.
from __future__ import annotations

import importlib
import re
import sys
import typing
from pathlib import Path

import checkers
import pytest
from building import ROOT, attempt, need_installed_package, python_path
from real_support import has, need

import tenon.typing
from tenon import _paths

np = need("numpy")

PATTERNS = ROOT / "cmake" / "nanobind_stubs.txt"

#: What a program has that calls the functions of `m`; the values have the types that their libraries' stubs give them.
VALUES = """
import array
import ctypes
import mmap
from typing import Any
import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type
import tenon
import {module} as m

class Producer:
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
class Comparable(Producer):
    def __eq__(self, other: object) -> bool: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> object: ...
class Described:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
class Picture:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def size(self) -> tuple[int, int]: ...
    def __eq__(self, other: object) -> bool: ...
class OnCuda:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __eq__(self, other: object) -> bool: ...
class Column:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __eq__(self, other: object) -> bool: ...

f4 = np.ones(3, np.float32)
f8 = np.ones((3, 4))
i4 = np.ones(3, np.int32)
i8 = np.arange(3)
c8 = np.ones(3, np.complex64)
c16 = np.ones(3, np.complex128)
b1 = np.ones(3, np.bool_)
unknown: NDArray[Any] = f4
made = tenon.asdlpack(f4)
"""

#: Each is right: a line of a program that nothing is found in.
TAKEN = [
    # The element type decides which overload it is, where a library's types say it.
    "assert_type(m.by_dtype(f4), float)",
    "assert_type(m.by_dtype(f8), str)",
    "assert_type(m.by_dtype(i8), list[int])",
    "assert_type(m.by_rank(f4), int)",
    "assert_type(m.by_rank(i4), list[int])",
    "assert_type(m.converting(i4), float)",
    "assert_type(m.anything(i4), int)",
    # Whatever is an array, of any library.
    *(f"assert_type(m.{f}({x}), {r})" for f, r in (("by_dtype", "float"), ("either", "int"), ("anything", "int"))
      for x in ("Producer()", "Comparable()", "Described()", "Picture()", "OnCuda()", "Column()", "made", "m.Image()",
                "b'1234'", "bytearray(4)", "memoryview(b'1234')", "array.array('f', [1])", "(ctypes.c_float * 3)()",
                "mmap.mmap(-1, 4)")),
    "m.by_dtype(unknown)",
    "m.truth(b1)",
    "m.whole(i8)",
    "m.waves(c8)",
    "m.fill(f4, 2)",
    "m.maybe()",
    "m.maybe(None)",
    "m.maybe(f4)",
    "m.either(f8)",
    "m.several([f4, f4])",
    "m.several((f4, made))",
    "m.named({'x': f4})",
    "m.two((f4, f8))",
    # Results can be used, and arrays be passed on.
    "m.by_dtype(m.doubled(f4))",
    "print(m.doubled(f4).sum(), len(m.doubled_twice(f4)), m.doubled_list(f4)[0].shape)",
    "assert_type(m.numbers(), tenon.Tensor)",
    "assert_type(m.numbers().shape, tuple[int, ...])",
    # Classes.
    "kept = m.Model(f8)",
    "kept.weights = f4",
    "kept.weights = m.numbers()",
    "assert_type(m.Model(m.Image()).weights, tenon.Tensor)",
    "assert_type(kept @ f4, int)",
    "np.asarray(m.Image())",
    "np.from_dlpack(m.Image())",
    "tenon.from_dlpack(m.Image())",
    "assert_type(m.Image().__dlpack_device__(), tuple[int, int])",
    "assert_type(float(m.Image()) + int(m.Image()), float)",
]  # fmt: skip

#: Each is refused by the function, and by both checkers.
REFUSED = [
    "m.by_dtype([1.0, 2.0])",
    "m.by_dtype((1.0, 2.0))",
    "m.by_dtype(1.0)",
    "m.by_dtype('12')",
    "m.by_dtype(None)",
    "m.by_dtype([f4])",
    "m.by_dtype(i4)",
    "m.by_dtype({'x': f4})",
    "m.anything([1.0, 2.0])",
    "m.anything('12')",
    "m.anything(3)",
    "m.converting([1.0, 2.0])",
    "m.whole(i4)",
    "m.truth(i4)",
    "m.waves(c16)",
    "m.fill(f8, 2)",
    "m.fill(f4, 'much')",
    "m.maybe([1.0, 2.0])",
    "m.either(i4)",
    "m.either([1.0, 2.0])",
    "m.several(1.0)",
    "m.several([f8])",
    "m.several([[1.0, 2.0]])",
    "m.named({'x': [1.0]})",
    "m.two((f4, f4))",
    "m.two((f4, f8, f8))",
    "m.Model([1.0, 2.0])",
    "m.Model(f4).weights = [1.0, 2.0]",
    "m.Model(f4) @ [1.0, 2.0]",
    "m.numbers().no_such_thing()",
    "m.Image().no_such_thing()",
]

#: What else is an array, where its library is installed: how one is imported and made.
LIBRARIES = {
    "torch": "import torch\nx = torch.ones(3)",
    "jax": "import jax\ndef given() -> jax.Array: ...\nx = given()",
    "polars": "import polars\nx = polars.Series([1.0])",
    "PIL": "from PIL import Image\nx = Image.new('F', (3, 1))",
    "array_api_strict": "import array_api_strict\nx = array_api_strict.ones(3)",
}


@pytest.fixture(scope="module", params=["nanobind", "pybind11"])
def module(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    need_installed_package()  # the checkers read it there
    return f"bound_stubs_{request.param}"


@pytest.fixture(scope="module")
def stub(module: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stub of the module, as the generator of its binder writes it."""
    folder = tmp_path_factory.mktemp(module)
    out = folder / f"{module}.pyi"
    native = Path(str(importlib.import_module(module).__file__)).parent
    if module.endswith("pybind11"):
        checkers.installed("pybind11_stubgen")
        command = ["pybind11_stubgen", "--exit-code", "-o", folder, module]
    else:
        command = ["nanobind.stubgen", "-q", "-m", module, "-o", out, "-p", PATTERNS]
    done = attempt(sys.executable, "-m", *command, PYTHONPATH=python_path(native))
    assert done.returncode == 0 and out.exists(), done.stdout
    return out


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def mypy(cache: Path, *files: Path) -> list[str]:
    done = checkers.mypy(cache, *files, path=files[0].parent)
    found = [line.rpartition("/")[2] for line in done.stdout.splitlines() if ": note: " not in line]
    assert bool(found) == (done.returncode != 0), done.stdout + done.stderr
    return found


def pyright(_: Path, *files: Path) -> list[str]:
    found = checkers.pyright(files[0].parent, *files, reportMissingModuleSource=False)  # a stub is all that there is
    # A program does not use all that it imports, and what an array of unknown elements gives is unknown, too.
    return [told for told in found if files[0].suffix == ".pyi" or not re.search(r"\(reportUn(known|used)\w+\)$", told)]


# mypy reads the large libraries that are installed.
both = pytest.mark.parametrize("check", [pyright, pytest.param(mypy, marks=pytest.mark.slow)])


def program(stub: Path, *lines: str) -> tuple[Path, int]:
    """A file beside the stub with the values and these lines, and the number of the first of them."""
    file = stub.with_name("program.py")
    head = re.sub(r"\.\.\.$", "raise NotImplementedError", VALUES.format(module=stub.stem), flags=re.M)
    file.write_text(head + "\n".join(lines) + "\n")
    return file, head.count("\n") + 1


def lines_found(told: list[str], file: Path, lines: list[str], first: int) -> set[str]:
    """The lines that a checker finds something in; everything that it tells is about them."""
    numbers = [re.match(rf"{file.name}:(\d+)", line) for line in told]
    assert all(numbers), told
    return {lines[int(number[1]) - first] for number in numbers if number}


@both
def test_the_stub_passes(check, stub, cache):
    assert check(cache, stub) == []


@both
def test_what_fits_is_taken(check, stub, cache):
    file, _ = program(stub, *TAKEN)
    assert check(cache, file, stub) == []


@both
def test_what_does_not_fit_is_refused(check, stub, cache):
    file, first = program(stub, *REFUSED)
    assert lines_found(check(cache, file, stub), file, REFUSED, first) == set(REFUSED)


@both
@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_of(library, check, stub, cache):
    if not has(library):
        pytest.skip(f"{library} is not installed")
    file, _ = program(stub, LIBRARIES[library].replace("...", "raise NotImplementedError"), "print(m.by_dtype(x), m.anything(x))",
                      "print(m.Model(x).weights, m.several([x]), m.either(x))")  # fmt: skip
    assert check(cache, file, stub) == []


def test_the_function_refuses_what_checkers_refuse(module):
    """Lists and numbers, which the types did not refuse once."""
    m = importlib.import_module(module)
    for refused in ([1.0, 2.0], (1.0, 2.0), 1.0, "12", None, {"x": 1.0}):
        for function in (m.by_dtype, m.anything, m.either, m.converting):
            with pytest.raises(TypeError):
                function(refused)


def test_the_patterns_for_nanobind_are_installed():
    need_installed_package()
    assert Path(_paths.cmake_dir(), PATTERNS.name).read_text() == PATTERNS.read_text()


def test_the_type_is_there_when_the_program_runs():
    """An annotation that is written by hand is evaluated."""
    assert typing.get_args(tenon.typing.Array[np.float32, typing.Literal["float32[*]"]])
    assert typing.get_args(tenon.typing.Array[typing.Any, typing.Literal["any[...]"]] | None)
