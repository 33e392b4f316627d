# tests/python/fake_cuda.py: compiles the CUDA driver of native/fake_cuda and puts it where the real one would be found.
from __future__ import annotations

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "native" / "fake_cuda" / "libcuda.c"


@functools.cache
def library(*definitions: str) -> Path:
    """The path of a freshly compiled `libcuda.so.1`."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tempfile.mkdtemp(prefix="fake_cuda_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Path(folder) / "libcuda.so.1"
    # By this name of its own, whoever asks the loader for the driver is given this one once it is loaded.
    flags = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", *(f"-D{name}" for name in definitions)]
    subprocess.run([compiler, *flags, "-o", made, SOURCE], check=True)
    return made


class Driver:
    """The driver, loaded into this process before anybody looks for another: only for processes of their own."""

    def __init__(self):
        self.loaded = ctypes.CDLL(str(library()))
        self.loaded.fake_log.restype = ctypes.c_char_p
        self.fail("", 0)

    def fail(self, name: str, code: int = 700) -> None:
        """From now on, with an empty log, the function of this name returns this error."""
        self.loaded.fake_reset(name.encode(), code)

    def calls(self) -> list[str]:
        """What was called since the last look, in order."""
        seen = self.loaded.fake_log().decode().splitlines()
        self.loaded.fake_reset(b"", 0)
        assert self.loaded.fake_open() == 0, "a context or an event is left over"
        return seen
