// tests/python/native/bound_binders.hpp: how both binders bind the shared functions: the same words, but for
// the namespace. `binder` is the one that is included.
#pragma once

#include "bound_functions.hpp"
#include "bound_overloads.hpp"

namespace bound {

inline void bind_all(binder::module_& m) {
    using namespace binder::literals;
    m.def("total", &total, "x"_a);
    m.def("total_2d", &total_2d, "x"_a);
    m.def("threes", &threes, "x"_a);
    m.def("exactly", &exactly, "x"_a);
    m.def("scalar", &scalar, "x"_a);
    m.def("last_c", &last_c, "x"_a);
    m.def("last_f", &last_f, "x"_a);
    m.def("length_aligned", &length_aligned, "x"_a);
    m.def("fill", &fill, "x"_a, "value"_a);
    m.def("fill_2d", &fill_2d, "x"_a, "value"_a);
    m.def("total_any", &total_any, "x"_a);
    m.def("count_true", &count_true, "x"_a);
    m.def("length_int8", &length<std::int8_t>, "x"_a);
    m.def("length_uint16", &length<std::uint16_t>, "x"_a);
    m.def("length_int64", &length<std::int64_t>, "x"_a);
    m.def("length_complex64", &length<std::complex<float>>, "x"_a);
    m.def("length_complex128", &length<std::complex<double>>, "x"_a);
    m.def("on_cpu", &on_cpu, "x"_a);
    m.def("on_cuda", &on_cuda, "x"_a);
    m.def("fresh_on_cuda", &fresh_on_cuda, "x"_a);
    m.def("copy_on_cuda", &copy_on_cuda, "x"_a, "out"_a);
    m.def("copied_on_cuda", &copied_on_cuda, "x"_a);
    m.def("on_rocm", &on_rocm, "x"_a);
    m.def("anywhere", &anywhere, "x"_a);
    m.def("maybe", &maybe, "x"_a = binder::none());
    m.def("either", &either, "x"_a);
    m.def("sizes_times", &sizes_times, "x"_a, "y"_a, "z"_a, "kept"_a, "n"_a);
    m.def("add", &add, "x"_a, "y"_a, "out"_a);
    m.def("total_of", &total_of, "xs"_a);
    m.def("totals", &totals, "xs"_a);
    m.def("mixed", &mixed, "xs"_a);
    m.def("total_of_when_told", &total_of_when_told, "xs"_a);
    m.def("is_waiting", &is_waiting);
    m.def("tell", &tell);
    m.def("first_converted", &first_converted, "x"_a);
    m.def("strides_c", &strides_c, "x"_a);
    m.def("strides_f", &strides_f, "x"_a);
    m.def("last_in_memory", &last_in_memory, "x"_a);
    m.def("on_trn", &on_trn, "x"_a);
    m.def("on_ascend", &on_ascend, "x"_a);
    m.def("on_metal", &on_metal, "x"_a);
    m.def("strides_any", &strides_any, "x"_a);
    m.def("strides_untyped", &strides_untyped, "x"_a);
    m.def("strides_untyped_f", &strides_untyped_f, "x"_a);
    m.def("total_either", &total_either, "x"_a);
    m.def("twice", &twice, "x"_a);
    m.def("halves", &halves, "x"_a);
    m.def("empty_either", &empty_either, "x"_a);
    m.def("length_of_float", &length_of_float, "x"_a);
    m.def("converted_either", &converted_either, "x"_a);
    m.def("narrowed_either", &narrowed_either, "x"_a);
    m.def("strides_either", &strides_either, "x"_a);
    m.def("either_or_int", &either_or_int, "x"_a);
    m.def("device_of_either", &device_of_either, "x"_a);
    m.def("total_cuda_host", &total_on<tenon::cuda_host>, "x"_a);
    m.def("total_cuda_managed", &total_on<tenon::cuda_managed>, "x"_a);
    m.def("total_rocm_host", &total_on<tenon::rocm_host>, "x"_a);
    m.def("fill_either", &fill_either, "x"_a, "value"_a);
    m.def("dot_either", &dot_either, "x"_a, "y"_a);
    m.def("add_either", &add_either, "x"_a, "y"_a, "out"_a);
    m.def("total_of_either", &total_of_either, "xs"_a);
    m.def("total_of_converted", &total_of_converted, "xs"_a);
    m.def("dot", &dot, "x"_a, "y"_a);
    m.def("dot_converted", &dot_converted, "x"_a, "y"_a);
    m.def("matmul", &matmul, "a"_a, "b"_a, "out"_a = binder::none());
    m.def("trace", &trace, "x"_a);
    m.def("rows_of", &rows_of, "x"_a, "y"_a);
    m.def("total_of_second", &total_of_second, "x"_a, "y"_a);
    m.def("first_of_second", &first_of_second, "x"_a, "y"_a);
    m.def("first_of_none", &first_of_none, "x"_a, "y"_a);
    m.def("report_conversions", &report_conversions, "how"_a);
    m.def("reported_conversions", &reported_conversions);
    m.def("scale", &scale, "x"_a, "s"_a = 2.0F, "Multiplies every element.");
    m.def("widened", &widened, "x"_a);
    m.def("counted", &counted, "x"_a, "rows"_a, "columns"_a);
    m.def("zeros_like", &zeros_like, "x"_a);
    m.def("same", &same, "x"_a);
    m.def("pair_of", &pair_of, "x"_a);
    m.def("both", &both, "x"_a);
    m.def("named", &named, "x"_a);
    m.def("keep", &keep, "t"_a);
    m.def("kept_dtype", &kept_dtype, "t"_a);
    m.def("numbers", &numbers, "count"_a, "said"_a);
    m.def("fail", &fail, "x"_a, "kind"_a);
    bind_overloads(m);
}

}  // namespace bound
