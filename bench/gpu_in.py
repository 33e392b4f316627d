# bench/gpu_in.py: the contenders, rows and promises of taking a CUDA array together with its stream.

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gpu_cuda_core
from gpu_libraries import Library
from gpu_timing import Context, GpuCase, is_default_stream, reason
from report import Promise, Ratio, Table
from timing import Case

EXCLUDED = (
    "The parameter wants float32, one axis, CUDA memory, any strides, for reading: `tenon::array<const float, 1, "
    "tenon::cuda>`, `nb::ndarray<const float, nb::ndim<1>, nb::device::cuda>`, `torch::Tensor` and checks. Included: "
    "the Python call itself (see the empty call), address, shape, strides, dtype, device, and the stream to launch on, "
    "except from nanobind's ndarray and cuda.core's view, which tell none. cuda.core is called from Python, all others "
    "are C or C++; only the view is made, unordered (`stream_ptr=-1`), for JAX ordered on the default stream; its "
    "shape and dtype are not read. Excluded: the first call for each type; refusals; threads; devices "
    "other than the current one."
)

#: column -> (module, function); the floor has a function for each library.
COLUMNS = {
    "floor": ("bench_gpu_floor", "take_{library}"),
    "Tenon": ("bench_gpu_tenon", "take"),
    "nanobind + Tenon": ("bench_gpu_nanobind", "take"),
    "pybind11 + Tenon": ("bench_gpu_pybind11", "take"),
    "nanobind ndarray": ("bench_gpu_nanobind", "take_own"),
    "torch extension": ("bench_gpu_torch", "take"),
}
#: Those who cannot tell a stream.
STREAMLESS = {"nanobind ndarray", "cuda.core view"}

OVER_FLOOR = Ratio("Tenon / floor", "Tenon", "floor")
NANOBIND = Ratio("nanobind ndarray / Tenon", "nanobind ndarray", "Tenon")

#: A tensor with its stream costs two calls of torch's table. The floor makes them too, so the rest is Tenon's checks.
MOST_OVER_FLOOR = 1.6
#: Both call `__dlpack__` with the stream alone; what lies above the floor is checks, and letting go of the capsule. JAX
#: names no stream, so that the device is asked whether it is done, which the floor does not care for.
MOST_OVER_FLOOR_CUPY = 1.8
MOST_OVER_FLOOR_JAX = 1.9
#: nanobind goes through torch's Python method `__dlpack__`.
LEAST_FOR_NANOBIND = 10

PROMISES = (
    Promise("torch", OVER_FLOOR, "at most", MOST_OVER_FLOOR),
    Promise("torch_side", OVER_FLOOR, "at most", MOST_OVER_FLOOR),
    Promise("cupy", OVER_FLOOR, "at most", MOST_OVER_FLOOR_CUPY),
    Promise("jax", OVER_FLOOR, "at most", MOST_OVER_FLOOR_JAX),
    Promise("torch", NANOBIND, "at least", LEAST_FOR_NANOBIND),
)


@dataclass(frozen=True)
class Row:
    """A library that works on its default stream, or on a side stream."""

    key: str
    title: str
    library: Library
    context: Context
    stream: int


def make_rows(libraries: list[Library]) -> Iterator[Row]:
    for library in libraries:
        yield Row(library.key, library.title, library, contextlib.nullcontext, 0)
        if library.side_stream:
            title = f"{library.title}, side stream"
            yield Row(f"{library.key}_side", title, library, library.on_side_stream, library.side_stream)


class Stage:
    """Lets contenders try a row before they are timed, and remembers what has to be said of them."""

    def __init__(self, wait: Callable[[], object]) -> None:
        self._wait = wait
        self.refused: list[str] = []
        self.on_default: list[str] = []

    def admit(self, row: Row, column: str, variant: str, function: Callable[[Any], Any], module: Any) -> Iterator[Case]:
        """The case of a contender, unless it refuses the object; one that saw another stream is not worth timing."""
        library = row.library
        try:
            with row.context():
                made = function(library.sample)
            self._wait()
        except Exception as fault:  # Each refuses in its own way.
            self.refused.append(f"{column}: {library.title} ({reason(fault)})")
            return
        address = made.ptr if module is None else module.last_address()
        if column not in STREAMLESS:
            self._look_at_stream(row, column, module.last_stream())
        yield GpuCase(
            row.key,
            column,
            variant,
            library.sample,
            function,
            address != library.address,
            context=row.context,
            wait=self._wait,
        )

    def _look_at_stream(self, row: Row, column: str, seen: int) -> None:
        if seen == row.stream or (is_default_stream(seen) and is_default_stream(row.stream)):
            return
        # A library that orders its work on the default stream is right too; torch tells its stream to everybody.
        if not is_default_stream(seen) or row.library.key == "torch":
            raise SystemExit(f"{column}: {row.title}: saw stream {seen:#x} instead of {row.stream:#x}")
        self.on_default.append(f"{column} ({row.title})")


def make_cases(rows: list[Row], modules: dict[str, Any], stage: Stage, skipped: list[str]) -> Iterator[Case]:
    floor = modules["bench_gpu_floor"]
    views = {}
    try:
        views = gpu_cuda_core.make_views()
    except Exception as fault:  # Not installed, or without a device it knows.
        skipped.append(f"cuda.core view ({reason(fault)})")
    for row in rows:
        sample = row.library.sample
        yield GpuCase(row.key, "empty call", "empty", sample, floor.empty, context=row.context, wait=floor.synchronize)
        for column, (module_name, name) in COLUMNS.items():
            if module := modules.get(module_name):
                name = name.format(library=row.library.key)
                yield from stage.admit(row, column, name, getattr(module, name), module)
        if view := views.get(row.library.key):
            yield from stage.admit(row, "cuda.core view", "from_any_interface", view, None)


def make_table(modules: dict[str, Any], libraries: list[Library], skipped: list[str]) -> Table:
    rows = list(make_rows(libraries))
    stage = Stage(modules["bench_gpu_floor"].synchronize)
    cases = list(make_cases(rows, modules, stage, skipped))
    remarks = [EXCLUDED]
    if stage.on_default:
        remarks.append(
            "Told the default stream, on which `__dlpack__(stream=1)` orders the work of the side stream: "
            + ", ".join(stage.on_default)
            + "."
        )
    if stage.refused:
        remarks.append("Refused: " + "; ".join(dict.fromkeys(stage.refused)) + ".")
    return Table(
        "gpu-in",
        "Taking a CUDA array with its stream",
        {row.key: row.title for row in rows},
        ["empty call", *COLUMNS, "cuda.core view"],
        (OVER_FLOOR, NANOBIND),
        PROMISES,
        cases,
        remarks,
    )
