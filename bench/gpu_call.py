# bench/gpu_call.py: the contenders, rows and promises of a whole call: torch tensors in, a launch, a torch tensor out.

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import gpu_cuda_core
from gpu_libraries import Library
from gpu_timing import MOST_LAUNCHES, Context, GpuCase, reason
from report import Promise, Ratio, Table
from timing import Case

EXCLUDED = (
    "`out = a * x + y`, float32 vectors of {extent}: host time of a call `f(a, x, y)`, which returns while the "
    "device may still be at work. All have the same kernel and launch; cuda.core compiles the same source and "
    "launches by itself. Included: the Python call, both arguments, the stream, the memory of the result from "
    "torch, the launch (see the launch alone), and dropping the result. *nanobind alone* is a Python function "
    "that makes the result by `torch.empty_like` and passes it with `torch.cuda.current_stream().cuda_stream`, "
    "because an ndarray knows neither; *raw stream* the same with torch's private `_cuda_getCurrentRawStream`. "
    "cuda.core is a Python function too, and asks torch for the stream in the same way. `torch.add(y, x, "
    "alpha=a)` is torch's own function and kernel. Excluded: the kernel's time; the first call; device guards, "
    "which none of our functions has; threads."
)

COLUMNS = (
    "launch alone",
    "floor",
    "Tenon",
    "nanobind + Tenon",
    "pybind11 + Tenon",
    "nanobind alone",
    "nanobind alone, raw stream",
    "torch extension",
    "cuda.core",
    "torch.add",
)

OVER_FLOOR = Ratio("Tenon / floor", "Tenon", "floor")
NANOBIND = Ratio("nanobind alone / Tenon", "nanobind alone", "Tenon")
TORCH = Ratio("torch extension / Tenon", "torch extension", "Tenon")

#: The launch is in both and weighs the most.
MOST_OVER_FLOOR = 1.3
#: torch's own binding allocates and wraps without its exchange table, which even the floor has to go through.
LEAST_FOR_TORCH = 0.8

PROMISES = (
    Promise("default", OVER_FLOOR, "at most", MOST_OVER_FLOOR),
    Promise("default", NANOBIND, "at least", 1),
    Promise("default", TORCH, "at least", LEAST_FOR_TORCH),
    Promise("side", NANOBIND, "at least", 1),
    Promise("side", TORCH, "at least", LEAST_FOR_TORCH),
)

Saxpy = Callable[[float, Any, Any], Any]

FACTOR = 2.5
#: Some ten milliseconds: far longer than any call takes.
SLEEP_CYCLES = 30_000_000


def make_contenders(torch: Any, modules: dict[str, Any], skipped: list[str]) -> Iterator[tuple[str, str, Saxpy]]:
    """Column, variant and function of everybody who can be had; the others are named in ``skipped``."""
    floor = modules["bench_gpu_floor"]
    yield "floor", "saxpy", floor.saxpy
    for column, name in (
        ("Tenon", "bench_gpu_tenon"),
        ("nanobind + Tenon", "bench_gpu_nanobind"),
        ("pybind11 + Tenon", "bench_gpu_pybind11"),
        ("torch extension", "bench_gpu_torch"),
    ):
        if module := modules.get(name):
            yield column, "saxpy", module.saxpy
    if module := modules.get("bench_gpu_nanobind"):
        saxpy_own = module.saxpy_own

        def nanobind_alone(a: float, x: Any, y: Any) -> Any:
            out = torch.empty_like(x)
            saxpy_own(a, x, y, out, torch.cuda.current_stream().cuda_stream)
            return out

        yield "nanobind alone", "current_stream", nanobind_alone

        if raw_stream := getattr(torch._C, "_cuda_getCurrentRawStream", None):

            def nanobind_raw(a: float, x: Any, y: Any) -> Any:
                out = torch.empty_like(x)
                saxpy_own(a, x, y, out, raw_stream(x.get_device()))
                return out

            yield "nanobind alone, raw stream", "raw_stream", nanobind_raw
        else:
            skipped.append("nanobind alone, raw stream (this torch has no _cuda_getCurrentRawStream)")
    try:
        for variant, function in gpu_cuda_core.make_saxpy(torch, floor.extent, floor.block).items():
            yield "cuda.core", variant, function
    except Exception as fault:  # Not installed, or without a compiler of its own.
        skipped.append(f"cuda.core ({reason(fault)})")
    yield "torch.add", "add", lambda a, x, y: torch.add(y, x, alpha=a)


def verify(torch: Any, where: str, function: Saxpy, arguments: tuple[float, Any, Any], library: Library) -> bool:
    """The values, and that the launch waits for the work on its caller's stream. True if the host waits as well."""
    a, x, y = arguments
    expected = a * x + y
    late = torch.empty_like(x)

    def call_behind(cycles: int) -> tuple[Any, bool]:
        late.zero_()
        torch.cuda.synchronize()
        with library.on_side_stream():
            torch.cuda._sleep(cycles)
            late.copy_(x)
            made = function(a, late, y)
            is_idle = torch.cuda.current_stream().query()
        torch.cuda.synchronize()
        return made, is_idle

    made = function(a, x, y)
    torch.cuda.synchronize()
    if type(made) is not torch.Tensor or not torch.equal(made, expected):
        raise SystemExit(f"{where} gave another result: {made}")
    call_behind(1)  # The first calls on a stream load kernels and allocate, which makes the host wait.
    made, has_waited = call_behind(SLEEP_CYCLES)
    if not torch.equal(made, expected):
        raise SystemExit(f"{where} launched on another stream than its caller's")
    return has_waited


def make_cases(
    torch: Any,
    library: Library,
    modules: dict[str, Any],
    rows: dict[str, Context],
    waiting: list[str],
    skipped: list[str],
) -> Iterator[Case]:
    floor = modules["bench_gpu_floor"]
    values = (FACTOR, library.sample, torch.ones_like(library.sample))

    def case(row: str, column: str, variant: str, function: Saxpy, context: Context) -> Case:
        return GpuCase(
            row,
            column,
            variant,
            values,
            function,
            arguments="a, x, y",
            context=context,
            wait=floor.synchronize,
            in_a_row=MOST_LAUNCHES,
        )

    yield case("default", "launch alone", "launch", floor.launch, contextlib.nullcontext)
    for column, variant, function in make_contenders(torch, modules, skipped):
        try:
            has_waited = verify(torch, f"{column} ({variant})", function, values, library)
        except Exception as fault:  # Each fails in its own way.
            skipped.append(f"{column} {variant} ({reason(fault)})")
            continue
        if has_waited:
            waiting.append(f"{column} ({variant})")
        for row, context in rows.items():
            yield case(row, column, variant, function, context)


def make_table(modules: dict[str, Any], libraries: list[Library], skipped: list[str]) -> Table | None:
    library = next((library for library in libraries if library.key == "torch"), None)
    if library is None:
        return None
    import torch

    rows: dict[str, Context] = {"default": contextlib.nullcontext, "side": library.on_side_stream}
    waiting: list[str] = []
    cases = list(make_cases(torch, library, modules, rows, waiting, skipped))
    remarks = [EXCLUDED.format(extent=modules["bench_gpu_floor"].extent)]
    if waiting:
        remarks.append("The host waited for the device in a call of: " + ", ".join(waiting) + ".")
    return Table(
        "gpu-call",
        "A whole call: torch tensors in, a kernel launched, a torch tensor out",
        {"default": "saxpy, default stream", "side": "saxpy, side stream"},
        COLUMNS,
        (OVER_FLOOR, NANOBIND, TORCH),
        PROMISES,
        cases,
        remarks,
    )
