# bench/gpu_out.py: the contenders, rows and promises of handing CUDA memory to Python as the caller's own type.

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpu_libraries import Library
from gpu_timing import GpuCase, reason
from report import Promise, Ratio, Table
from timing import Case

EXCLUDED = (
    "Included: the Python call, taking the argument (foreign memory: being told the library by it), making the result, "
    "and dropping it. New memory is that of the library's allocator, which has such a block at hand after the first "
    "call; CuPy's floor is a call of `cupy.empty` from C with shape and type made before. Foreign memory comes from "
    "`cudaMalloc`, once for all calls; its release counts. Excluded: the first call; failures; threads."
)

#: column -> (module, row -> function)
COLUMNS: dict[str, tuple[str, dict[str, str]]] = {
    "floor": ("bench_gpu_floor", {row: row for row in ("like_torch", "like_cupy", "wrap_torch")}),
    "Tenon": ("bench_gpu_tenon", {"like_torch": "like", "like_cupy": "like", "wrap_torch": "wrap"}),
    "nanobind + Tenon": ("bench_gpu_nanobind", {"like_torch": "like", "like_cupy": "like"}),
    "pybind11 + Tenon": ("bench_gpu_pybind11", {"like_torch": "like", "like_cupy": "like"}),
    "nanobind ndarray": ("bench_gpu_nanobind", {"wrap_torch": "wrap_own"}),
    "torch extension": ("bench_gpu_torch", {"like_torch": "like", "wrap_torch": "wrap"}),
}
TITLES = {"like": "{}, new memory of its library", "wrap": "{}, foreign memory"}

OVER_FLOOR = Ratio("Tenon / floor", "Tenon", "floor")
NANOBIND = Ratio("nanobind ndarray / Tenon", "nanobind ndarray", "Tenon")
TORCH = Ratio("torch extension / Tenon", "torch extension", "Tenon")

#: Both allocate by torch's table and have it make the object; Tenon also looks at what it was given.
MOST_OVER_FLOOR_NEW = 1.6
#: As for host memory (way_out.py): one allocation and one call of torch's table.
MOST_OVER_FLOOR_FOREIGN = 1.4

PROMISES = (
    Promise("like_torch", OVER_FLOOR, "at most", MOST_OVER_FLOOR_NEW),
    Promise("wrap_torch", OVER_FLOOR, "at most", MOST_OVER_FLOOR_FOREIGN),
    Promise("wrap_torch", NANOBIND, "at least", 1),
)


@dataclass(frozen=True)
class Row:
    """What kind of memory becomes an array of which library."""

    key: str
    title: str
    kind: str
    library: Library


def make_rows(libraries: list[Library]) -> Iterator[Row]:
    for kind in TITLES:
        for library in libraries:
            key = f"{kind}_{library.key}"
            if key in COLUMNS["floor"][1]:
                yield Row(key, TITLES[kind].format(library.title), kind, library)


def verify_new(row: Row, where: str, function: Callable[[Any], Any]) -> None:
    """New memory: an array like the sample, which its library's allocator knows of."""
    library = row.library
    before = library.allocated()
    made = function(library.sample)
    for name in ("shape", "dtype", "device"):
        if getattr(made, name) != getattr(library.sample, name):
            raise SystemExit(f"{where} gave another {name}: {getattr(made, name)}")
    if type(made) is not type(library.sample):
        raise SystemExit(f"{where} gave a {type(made)}")
    if library.allocated() <= before:
        raise SystemExit(f"{where} gave memory that its library did not allocate")
    del made
    if library.allocated() != before:
        raise SystemExit(f"{where} did not give its memory back")


def verify_foreign(row: Row, where: str, function: Callable[[Any], Any], module: Any) -> None:
    """Foreign memory: the very address, released once, when the array has gone."""
    before = module.releases()
    made = function(row.library.sample)
    if type(made) is not type(row.library.sample) or made.device != row.library.sample.device:
        raise SystemExit(f"{where} gave a {type(made)} on {made.device}")
    if made.data_ptr() != module.address() or made.shape != row.library.sample.shape:
        raise SystemExit(f"{where} gave other memory than it was to give")
    if module.releases() != before:
        raise SystemExit(f"{where} released the memory while it was in use")
    del made
    if module.releases() != before + 1:
        raise SystemExit(f"{where} released the memory {module.releases() - before} times")


def make_cases(rows: list[Row], modules: dict[str, Any], refused: list[str]) -> Iterator[Case]:
    floor = modules["bench_gpu_floor"]
    for row in rows:
        sample = row.library.sample
        yield GpuCase(row.key, "empty call", "empty", sample, floor.empty, wait=floor.synchronize)
        for column, (module_name, names) in COLUMNS.items():
            module, name = modules.get(module_name), names.get(row.key)
            if module is None or name is None:
                continue
            function = getattr(module, name)
            try:
                if row.kind == "wrap":
                    verify_foreign(row, f"{column}: {row.title}", function, module)
                else:
                    verify_new(row, f"{column}: {row.title}", function)
                floor.synchronize()
            except Exception as fault:  # Each refuses in its own way.
                refused.append(f"{column}: {row.title} ({reason(fault)})")
                continue
            yield GpuCase(row.key, column, name, sample, function, wait=floor.synchronize)


def make_table(modules: dict[str, Any], libraries: list[Library]) -> Table:
    rows = list(make_rows(libraries))
    refused: list[str] = []
    cases = list(make_cases(rows, modules, refused))
    return Table(
        "gpu-out",
        "Handing CUDA memory to Python",
        {row.key: row.title for row in rows},
        ["empty call", *COLUMNS],
        (OVER_FLOOR, NANOBIND, TORCH),
        PROMISES,
        cases,
        [EXCLUDED, *(["Refused: " + "; ".join(refused) + "."] if refused else [])],
    )
