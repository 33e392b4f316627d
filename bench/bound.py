# bench/bound.py: the contenders and promises of taking a constrained argument through a binder.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import way_in
from report import Promise, Ratio, Table
from timing import Case

EXCLUDED = (
    "The parameter wants float32, two axes, host memory, any strides, for reading: `tenon::array<const float, 2>`, "
    "`nb::ndarray<const float, nb::ndim<2>>`; pybind11's `array_t<float>` (without conversion) says nothing of "
    "the axes. Included: the Python call and the binder's own work (see the ignored argument). Excluded: "
    "overloads, keywords, refusals, and what the function would do with the data."
)

#: column -> (module, function)
COLUMNS = {
    "no binder + Tenon": ("bench_bound_capi", "tenon"),
    "nanobind + Tenon": ("bench_bound_nanobind", "tenon"),
    "nanobind ndarray": ("bench_bound_nanobind", "own"),
    "pybind11 + Tenon": ("bench_bound_pybind11", "tenon"),
    "pybind11 array_t": ("bench_bound_pybind11", "own"),
}
MODULES = ("bench_bound_capi", "bench_bound_nanobind", "bench_bound_pybind11")

NANOBIND = Ratio("nanobind ndarray / + Tenon", "nanobind ndarray", "nanobind + Tenon")
PYBIND11 = Ratio("pybind11 array_t / + Tenon", "pybind11 array_t", "pybind11 + Tenon")

PROMISES = (
    Promise("torch", NANOBIND, "at least", 10),
    Promise("numpy", NANOBIND, "at least", 1.5),
    Promise("numpy", PYBIND11, "at least", 1.5),
)


def make_cases(rows: list[way_in.Row], modules: dict[str, Any]) -> Iterator[Case]:
    for column, (module_name, name) in COLUMNS.items():
        module = modules.get(module_name)
        if not module:
            continue
        for row in rows:
            function = getattr(module, name)
            try:
                function(row.sample)
            except TypeError:  # not every contender takes every object
                continue
            yield Case(row.key, column, name, row.sample, function, module.last_address() != row.address)
        yield Case("empty", column, "empty", object(), module.empty)


def make_table(modules: dict[str, Any]) -> Table:
    rows = [row for row in way_in.make_rows([]) if row.key != "bytes"]
    titles = {row.key: row.title for row in rows} | {"empty": "(ignored argument)"}
    cases = list(make_cases(rows, modules))
    return Table(
        "bound",
        "Taking one constrained argument through a binder",
        titles,
        list(COLUMNS),
        (NANOBIND, PYBIND11),
        PROMISES,
        cases,
        [EXCLUDED],
    )
