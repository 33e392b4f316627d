// tests/python/native/bound_results_capi.cpp: the results that name their library, in a module written by
// hand.
#include <tenon/bind/function.hpp>

#include "bound_results.hpp"

namespace {

using tenon::py::function;

PyMethodDef methods[] = {
    function<&results::numpy_2d>("numpy_2d", {"rows", "columns"}),
    function<&results::numpy_any>("numpy_any", {"n"}),
    function<&results::numpy_const>("numpy_const", {"n"}),
    function<&results::numpy_threes>("numpy_threes", {"rows", "columns"}),
    function<&results::numpy_of>("numpy_of", {"t"}),
    function<&results::torch_of>("torch_of", {"t"}),
    function<&results::memory_of>("memory_of", {"t"}),
    function<&results::numpy_float64>("numpy_float64", {"t"}),
    function<&results::torch_1d>("torch_1d", {"n"}),
    function<&results::jax_1d>("jax_1d", {"n"}),
    function<&results::cupy_1d>("cupy_1d", {"n"}),
    function<&results::tensorflow_1d>("tensorflow_1d", {"n"}),
    function<&results::paddle_1d>("paddle_1d", {"n"}),
    function<&results::memory_1d>("memory_1d", {"n"}),
    function<&results::memory_2d>("memory_2d", {"rows", "columns"}),
    function<&results::impossible>("impossible", {"n"}),
    function<&results::numpy_moved>("numpy_moved"),
    function<&results::maybe_numpy>("maybe_numpy", {"n"}),
    function<&results::list_of_torch>("list_of_torch", {"n"}),
    function<&results::two_libraries>("two_libraries", {"n"}),
    function<&results::numpy_and_number>("numpy_and_number", {"n"}),
    function<&results::dict_of_numpy>("dict_of_numpy", {"n"}),
    function<&results::list_of_wrong>("list_of_wrong", {"n"}),
    function<&results::scale>("scale", {"x", {"out", nullptr}}),
    function<&results::outer>("outer", {"x", {"out", nullptr}}),
    function<&results::like_any>("like_any", {"x", {"out", nullptr}}),
    function<&results::owned>("owned", {"owner", "where"}),
    function<&results::owned_and_dropped>("owned_and_dropped", {"owner", "made", "dropped"}),
    function<&results::owned_for_ever>("owned_for_ever", {"owner"}),
    function<&results::owned_in_vain>("owned_in_vain", {"owner"}),
    function<&results::is_array>("is_array", {"obj"}),
    function<&results::call_there>("call_there", {"obj", "what", "where"}),
    function<&results::or_raise_there>("or_raise_there", {"where"}),
    function<&results::or_raise_elsewhere>("or_raise_elsewhere", {"x", "where"}),
    function<&results::throw_for_nothing>("throw_for_nothing", {"x"}),
    function<&results::raise_without_arrays>("raise_without_arrays"),
    function<&results::like_set>("like_set", {"x", {"out", nullptr}}),
    function<&results::catch_and>("catch_and", {"what"}),
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bound_results_capi", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_bound_results_capi() { return PyModule_Create(&definition); }
