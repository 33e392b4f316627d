// tests/python/native/bound_kept_capi.cpp: arrays that are kept, in a module written by hand.
#include <tenon/bind/function.hpp>

#include "bound_kept.hpp"

namespace {

using tenon::py::function;

PyMethodDef methods[] = {
    function<&kept::keep>("keep", {"x"}),
    function<&kept::keep_moved>("keep_moved", {"x"}),
    function<&kept::keep_assigned>("keep_assigned", {"x"}),
    function<&kept::keep_fixed>("keep_fixed", {"x"}),
    function<&kept::keep_released>("keep_released", {"x"}),
    function<&kept::keep_on_threads>("keep_on_threads", {"x", "count"}),
    function<&kept::keep_items>("keep_items", {"xs"}),
    function<&kept::keep_optional>("keep_optional", {{"x", nullptr}}),
    function<&kept::keep_variant>("keep_variant", {"x"}),
    function<&kept::keep_converted>("keep_converted", {"x"}),
    function<&kept::keep_written>("keep_written", {"x"}),
    function<&kept::keep_empty_like>("keep_empty_like", {"x"}),
    function<&kept::keep_then>("keep_then", {"x", "callback"}),
    function<&kept::count>("count"),
    function<&kept::total_of_all>("total_of_all"),
    function<&kept::total_on_thread>("total_on_thread"),
    function<&kept::last>("last"),
    function<&kept::same>("same", {"x"}),
    function<&kept::nothing>("nothing"),
    function<&kept::shared>("shared", {"x"}),
    function<&kept::made>("made"),
    function<&kept::drop>("drop"),
    function<&kept::drop_released>("drop_released"),
    function<&kept::drop_on_thread>("drop_on_thread"),
    function<&kept::drop_later>("drop_later", {"x", "microseconds"}),
    {},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bound_kept_capi", {}, 0, methods, {}, {}, {}, {}};

}  // namespace

PyMODINIT_FUNC PyInit_bound_kept_capi() { return PyModuleDef_Init(&definition); }
