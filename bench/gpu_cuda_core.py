# bench/gpu_cuda_core.py: cuda.core, a contender without C++: views of arrays, and launches, called from Python.

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

KERNEL = Path(__file__).with_name("gpu") / "saxpy.h"


def make_views() -> dict[str, Callable[[Any], Any]]:
    """How a view of an array of each library is made.

    Unordered, as by one who launches on the stream that the library works on. JAX does not tell that stream: its
    array is ordered on the default one."""
    from cuda.core import Device
    from cuda.core.utils import StridedMemoryView

    Device(0).set_current()
    unordered = functools.partial(StridedMemoryView.from_any_interface, stream_ptr=-1)
    on_default = functools.partial(StridedMemoryView.from_any_interface, stream_ptr=1)
    return {"torch": unordered, "cupy": unordered, "jax": on_default}


def make_saxpy(torch: Any, extent: int, block: int) -> dict[str, Callable[[float, Any, Any], Any]]:
    """Two ways to write saxpy: with a view of each argument, and with torch's own word for its address."""
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch

    device = Device(0)
    device.set_current()
    options = ProgramOptions(arch=f"sm_{device.arch}")
    code = Program(KERNEL.read_text(encoding="utf-8"), "c++", options=options).compile("cubin")
    kernel = code.get_kernel("saxpy")
    config = LaunchConfig(grid=(extent + block - 1) // block, block=block)
    view = make_views()["torch"]

    # torch calls the default stream 0, cuda.core 1.
    def by_views(a: float, x: Any, y: Any) -> Any:
        out = torch.empty_like(x)
        stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream or 1)
        seen = view(x)
        launch(stream, config, kernel, ctypes.c_float(a), seen.ptr, view(y).ptr, view(out).ptr, seen.shape[0])
        return out

    def by_data_ptr(a: float, x: Any, y: Any) -> Any:
        out = torch.empty_like(x)
        stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream or 1)
        launch(stream, config, kernel, ctypes.c_float(a), x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out

    return {"by_views": by_views, "by_data_ptr": by_data_ptr}
