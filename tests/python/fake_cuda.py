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
    name = "libamdhip64.so" if "HIP" in definitions else "libcuda.so.1"
    made = Path(folder) / name
    # By this name of its own, whoever asks the loader for the driver is given this one once it is loaded.
    flags = ["-shared", "-fPIC", f"-Wl,-soname,{name}", *(f"-D{define}" for define in definitions)]
    subprocess.run([compiler, *flags, "-o", made, SOURCE], check=True)
    return made


class Driver:
    """The driver, loaded into this process before anybody looks for another: only for processes of their own."""

    def __init__(self, *definitions: str):
        self.loaded = ctypes.CDLL(str(library(*definitions)))
        self.loaded.fake_log.restype = ctypes.c_char_p
        self.loaded.fake_copied_from.restype = ctypes.c_size_t
        self.fail("", 0)
        self.place()
        self.inactive()
        self.capturing()
        self.busy()
        self.watch_gil(False)

    def fail(self, name: str, code: int = 700) -> None:
        """From now on, with an empty log, the function of this name returns this error."""
        self.loaded.fake_reset(name.encode(), code)

    def place(self, ordinal: int = 0, *, pinned: bool = False, managed: bool = False, known: bool = True) -> None:
        """Where the driver says that every address is."""
        self.loaded.fake_place(ordinal, 1 if pinned else 2, int(managed), int(not known))

    def inactive(self, *ordinals: int) -> None:
        """These devices have no context; all others have."""
        self.loaded.fake_inactive(sum(1 << ordinal for ordinal in ordinals))

    def capturing(self, stream: int = 0) -> None:
        """This stream is being captured."""
        self.loaded.fake_capturing(ctypes.c_size_t(stream))

    def busy(self, times: int = 0) -> None:
        """So often an event that is asked for is still pending."""
        self.loaded.fake_busy(times)

    def watch_gil(self, watch: bool = True) -> None:
        """From now on a call that is made by a thread with the GIL ends in "with the GIL"."""
        self.loaded.fake_gil(ctypes.pythonapi.PyGILState_Check if watch else None)

    @property
    def copied_from(self) -> int:
        """The address in the host's memory that was last copied from."""
        return self.loaded.fake_copied_from()

    @property
    def allocations(self) -> int:
        return self.loaded.fake_allocations()

    def calls(self) -> list[str]:
        """What was called since the last look, in order, less starting the driver, which happens once."""
        seen = [call for call in self.loaded.fake_log().decode().splitlines() if call != "cuInit 0"]
        self.loaded.fake_reset(b"", 0)
        return seen

    def all_closed(self) -> bool:
        """No context or event is left over."""
        return self.loaded.fake_open() == 0


def within(*calls: str, number: int = 0) -> list[str]:
    """These calls, with the device's context current."""
    device = 100 + number
    return [f"cuDeviceGet {number}", f"cuDevicePrimaryCtxGetState {device}", f"cuDevicePrimaryCtxRetain {device}",
            "cuCtxPushCurrent context", *calls, "cuCtxPopCurrent", f"cuDevicePrimaryCtxRelease {device}"]


def waits(later: int, earlier: int = 1, number: int = 0) -> list[str]:
    """`later` is made to wait for all that is queued on `earlier`, by an event."""
    return within("cuEventCreate 3", f"cuEventRecord event {earlier}", f"cuStreamWaitEvent {later} event 0",
                  "cuEventDestroy event", number=number)


def remembers(stream: int) -> list[str]:
    """What is queued on the stream is remembered by an event."""
    return within("cuEventCreate 3", f"cuEventRecord event {stream}")


#: What is let go of finds the device idle.
RECORDS_ALL = within("cuEventCreate 3", "cuCtxRecordEvent context event", "cuEventQuery event", "cuEventDestroy event")

#: An address is asked for: its device, its kind, whether it is managed.
ASKED = ["cuPointerGetAttribute 9", "cuPointerGetAttribute 2", "cuPointerGetAttribute 8"]

# Handles a driver could be given: memory that can be read, which is all that can be told of them.
_handles = (ctypes.c_char * 4096)()


def stream_handle(number: int) -> int:
    assert 0 <= number < 64
    base = ctypes.addressof(_handles)
    return base - base % 64 + 64 * (number + 1)
