# bench/gpu_libraries.py: the array libraries of the GPU page, each with a sample and a side stream.

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpu_timing import Context, reason


@dataclass(frozen=True)
class Library:
    """One producer: a vector it made, where that really lies, and how to have it work on another stream."""

    key: str
    title: str
    sample: Any
    address: int
    #: A stream that does not wait for the default one, and how to work on it; 0 where the library hides its streams.
    side_stream: int = 0
    on_side_stream: Context = contextlib.nullcontext
    #: The bytes its allocator has given out.
    allocated: Callable[[], int] = lambda: 0


def load_torch(floor: Any) -> Library:
    import torch

    floor.setup_torch(torch.Tensor)
    side = torch.cuda.Stream()
    sample = torch.arange(floor.extent, dtype=torch.float32, device="cuda")
    return Library(
        "torch",
        "torch CUDA tensor",
        sample,
        sample.data_ptr(),
        side.cuda_stream,
        lambda: torch.cuda.stream(side),
        torch.cuda.memory_allocated,
    )


def load_cupy(floor: Any) -> Library:
    import cupy
    from cupy_backends.cuda import stream as backend

    floor.setup_cupy(cupy.ndarray, backend.__pyx_capi__["get_current_stream_ptr"], cupy.empty)
    side = cupy.cuda.Stream(non_blocking=True)
    sample = cupy.arange(floor.extent, dtype="f4")
    return Library(
        "cupy",
        "CuPy array",
        sample,
        sample.data.ptr,
        side.ptr,
        lambda: side,
        cupy.get_default_memory_pool().used_bytes,
    )


def load_jax(floor: Any) -> Library:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # it would take most of the device's memory
    import jax

    device = jax.devices("cuda")[0]
    sample = jax.block_until_ready(jax.device_put(jax.numpy.arange(floor.extent, dtype="float32"), device))
    return Library("jax", "JAX CUDA array", sample, sample.unsafe_buffer_pointer())


LOADERS: dict[str, Callable[[Any], Library]] = {"torch": load_torch, "cupy": load_cupy, "jax": load_jax}


def load_libraries(floor: Any, skipped: list[str]) -> Iterator[Library]:
    """Every library that is installed and can use the device; the others are named in ``skipped``."""
    for name, load in LOADERS.items():
        try:
            yield load(floor)
        except Exception as fault:  # Each fails in its own way where it lacks a driver, or something else.
            skipped.append(f"{name} ({reason(fault)})")
