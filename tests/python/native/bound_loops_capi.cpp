// tests/python/native/bound_loops_capi.cpp: the element loops, in a module written by hand.
#include <tenon/bind/function.hpp>

#include "bound_loops.hpp"

namespace {

using namespace loops;
using tenon::vectorized;
using tenon::py::function;

PyMethodDef methods[] = {
    function<&added>("added", {"x", "y"}),
    function<&add_to>("add_to", {"x", "y"}),
    function<&listed>("listed", {"x"}),
    function<&taken<double>>("taken_float64", {"x"}),
    function<&taken<float>>("taken_float32", {"x"}),
    function<&taken<std::int8_t>>("taken_int8", {"x"}),
    function<&taken<std::uint8_t>>("taken_uint8", {"x"}),
    function<&taken<std::int64_t>>("taken_int64", {"x"}),
    function<&taken<std::uint64_t>>("taken_uint64", {"x"}),
    function<&taken<tenon::bool8>>("taken_bool", {"x"}),
    function<&taken<std::complex<float>>>("taken_complex64", {"x"}),
    function<float16_bits>("float16_bits", {"x"}),
    function<bfloat16_bits>("bfloat16_bits", {"x"}),
    function<&given_back>("given_back", {"x"}),
    function<&of_shape>("of_shape", {"x", "has_axes"}),
    function<&remember>("remember", {"x"}),
    function<&sums>("sums", {"xs"}),
    function<vectorized<&hypot3>>("hypot3", {"x", "y", "z"}),
    function<vectorized<&scaled>>("scaled", {"x", {"twice", true}}),
    function<vectorized<&turned>>("turned", {"z"}),
    function<vectorized<&is_even>>("is_even", {"x"}),
    function<vectorized<&shifted>>("shifted", {"x", "by"}),
    function<vectorized<&root>>("root", {"x"}),
    function<vectorized<halved>>("halved", {"x"}),
    function<vectorized<[](double x) { return 3.0 * x; }>>("times", {"x"}),
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bound_loops_capi", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_bound_loops_capi() { return PyModule_Create(&definition); }
