// tests/python/native/bound_pybind11.cpp: the shared functions and overloads, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tenon/bind/pybind11.hpp>

namespace binder = pybind11;

#include "bound_overloads.hpp"

namespace py = pybind11;
using namespace py::literals;

PYBIND11_MODULE(bound_pybind11, m) {
    m.def("total", &bound::total, "x"_a);
    m.def("total_2d", &bound::total_2d, "x"_a);
    m.def("threes", &bound::threes, "x"_a);
    m.def("exactly", &bound::exactly, "x"_a);
    m.def("scalar", &bound::scalar, "x"_a);
    m.def("last_c", &bound::last_c, "x"_a);
    m.def("last_f", &bound::last_f, "x"_a);
    m.def("length_aligned", &bound::length_aligned, "x"_a);
    m.def("fill", &bound::fill, "x"_a, "value"_a);
    m.def("fill_2d", &bound::fill_2d, "x"_a, "value"_a);
    m.def("total_any", &bound::total_any, "x"_a);
    m.def("count_true", &bound::count_true, "x"_a);
    m.def("length_int8", &bound::length<std::int8_t>, "x"_a);
    m.def("length_uint16", &bound::length<std::uint16_t>, "x"_a);
    m.def("length_int64", &bound::length<std::int64_t>, "x"_a);
    m.def("length_complex64", &bound::length<std::complex<float>>, "x"_a);
    m.def("length_complex128", &bound::length<std::complex<double>>, "x"_a);
    m.def("on_cpu", &bound::on_cpu, "x"_a);
    m.def("on_cuda", &bound::on_cuda, "x"_a);
    m.def("fresh_on_cuda", &bound::fresh_on_cuda, "x"_a);
    m.def("on_rocm", &bound::on_rocm, "x"_a);
    m.def("anywhere", &bound::anywhere, "x"_a);
    m.def("maybe", &bound::maybe, "x"_a = py::none());
    m.def("either", &bound::either, "x"_a);
    m.def("sizes_times", &bound::sizes_times, "x"_a, "y"_a, "z"_a, "kept"_a, "n"_a);
    m.def("add", &bound::add, "x"_a, "y"_a, "out"_a);
    m.def("total_of", &bound::total_of, "xs"_a);
    m.def("totals", &bound::totals, "xs"_a);
    m.def("mixed", &bound::mixed, "xs"_a);
    m.def("total_of_when_told", &bound::total_of_when_told, "xs"_a);
    m.def("is_waiting", &bound::is_waiting);
    m.def("tell", &bound::tell);
    m.def("first_converted", &bound::first_converted, "x"_a);
    m.def("strides_c", &bound::strides_c, "x"_a);
    m.def("strides_f", &bound::strides_f, "x"_a);
    m.def("total_of_converted", &bound::total_of_converted, "xs"_a);
    m.def("report_conversions", &bound::report_conversions, "how"_a);
    m.def("reported_conversions", &bound::reported_conversions);
    m.def("scale", &bound::scale, "x"_a, "s"_a = 2.0F, "Multiplies every element.");
    m.def("widened", &bound::widened, "x"_a);
    m.def("counted", &bound::counted, "x"_a, "rows"_a, "columns"_a);
    m.def("zeros_like", &bound::zeros_like, "x"_a);
    m.def("same", &bound::same, "x"_a);
    m.def("pair_of", &bound::pair_of, "x"_a);
    m.def("both", &bound::both, "x"_a);
    m.def("named", &bound::named, "x"_a);
    m.def("keep", &bound::keep, "t"_a);
    m.def("kept_dtype", &bound::kept_dtype, "t"_a);
    m.def("numbers", &bound::numbers, "count"_a, "said"_a);
    m.def("fail", &bound::fail, "x"_a, "kind"_a);

    bound::bind_overloads(m);
    auto explained = m.def_submodule("explained", "The same overloads, explained from the first call on.");
    explained.def("by_dtype", [](const tenon::array<const float, 1>&) { return "float32"; }, "x"_a);
    explained.def("by_dtype", [](const tenon::array<const double, 1>&) { return "float64"; }, "x"_a);
    tenon::explain_overloads(explained);
}
