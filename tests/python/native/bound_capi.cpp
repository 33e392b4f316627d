// tests/python/native/bound_capi.cpp: the shared functions in a module written by hand.
#include <unordered_map>

#include <tenon/bind/function.hpp>

#include "bound_functions.hpp"

namespace {

/// A type of the author's own: a length as "2 m" says it.
struct metres {
    double value;
};

}  // namespace

template <>
class tenon::bind::value_slot<metres> {
public:
    loading load(PyObject* obj, bool) {
        std::string_view text;
        if (const loading answer = load_text(obj, text); answer != loading::done) return answer;
        if (!text.ends_with(" m")) return loading::refused;
        value_.value = std::stod(std::string(text));
        return loading::done;
    }
    metres& value() noexcept { return value_; }
    static std::string annotation() { return "Metres"; }

private:
    metres value_{};
};

namespace {

double sum_of_metres(metres first, const std::vector<metres>& others) {
    for (const metres& each : others) first.value += each.value;
    return first.value;
}

std::unordered_map<std::string, double> unordered(
    const std::unordered_map<std::string, tenon::array<const double, 1>>& xs) {
    std::unordered_map<std::string, double> out;
    for (const auto& [name, x] : xs) out.emplace(name, bound::total(x));
    return out;
}

using tenon::py::function;

std::string greeting(const char* whom, std::optional<double> times) {
    return std::string("hello ") + whom + (times ? " again" : "");
}
/// Its default, and the name of its parameter, are gone as soon as it is defined.
PyMethodDef greeting_definition() {
    const std::string parameter = "whom", whom = "all of you who have come here today";
    const char* const nothing = nullptr;
    return function<&greeting>("greeting", {{parameter.c_str(), whom.c_str()}, {"times", nothing}});
}

PyMethodDef methods[] = {
    function<&bound::total>("total", {"x"}),
    function<&bound::total_2d>("total_2d", {"x"}),
    function<&bound::threes>("threes", {"x"}),
    function<&bound::exactly>("exactly", {"x"}),
    function<&bound::scalar>("scalar", {"x"}),
    function<&bound::last_c>("last_c", {"x"}),
    function<&bound::last_f>("last_f", {"x"}),
    function<&bound::length_aligned>("length_aligned", {"x"}),
    function<&bound::fill>("fill", {"x", "value"}),
    function<&bound::fill_2d>("fill_2d", {"x", "value"}),
    function<&bound::total_any>("total_any", {"x"}),
    function<&bound::count_true>("count_true", {"x"}),
    function<&bound::length<std::int8_t>>("length_int8", {"x"}),
    function<&bound::length<std::uint16_t>>("length_uint16", {"x"}),
    function<&bound::length<std::int64_t>>("length_int64", {"x"}),
    function<&bound::length<std::complex<float>>>("length_complex64", {"x"}),
    function<&bound::length<std::complex<double>>>("length_complex128", {"x"}),
    function<&bound::on_cpu>("on_cpu", {"x"}),
    function<&bound::on_cuda>("on_cuda", {"x"}),
    function<&bound::fresh_on_cuda>("fresh_on_cuda", {"x"}),
    function<&bound::copy_on_cuda>("copy_on_cuda", {"x", "out"}),
    function<&bound::copied_on_cuda>("copied_on_cuda", {"x"}),
    function<&bound::on_rocm>("on_rocm", {"x"}),
    function<&bound::anywhere>("anywhere", {"x"}),
    function<&bound::maybe>("maybe", {{"x", nullptr}}),
    function<&bound::either>("either", {"x"}),
    function<&bound::sizes_times>("sizes_times", {"x", "y", "z", "kept", "n"}),
    function<&bound::add>("add", {"x", "y", "out"}),
    function<&bound::total_of>("total_of", {"xs"}),
    function<&bound::totals>("totals", {"xs"}),
    function<&bound::mixed>("mixed", {"xs"}),
    function<&bound::total_of_when_told>("total_of_when_told", {"xs"}),
    function<&bound::is_waiting>("is_waiting"),
    function<&bound::tell>("tell"),
    function<&bound::first_converted>("first_converted", {"x"}),
    function<&bound::strides_c>("strides_c", {"x"}),
    function<&bound::strides_f>("strides_f", {"x"}),
    function<&bound::last_in_memory>("last_in_memory", {"x"}),
    function<&bound::on_trn>("on_trn", {"x"}),
    function<&bound::on_ascend>("on_ascend", {"x"}),
    function<&bound::on_metal>("on_metal", {"x"}),
    function<&bound::strides_any>("strides_any", {"x"}),
    function<&bound::strides_untyped>("strides_untyped", {"x"}),
    function<&bound::strides_untyped_f>("strides_untyped_f", {"x"}),
    function<&bound::total_either>("total_either", {"x"}),
    function<&bound::twice>("twice", {"x"}),
    function<&bound::halves>("halves", {"x"}),
    function<&bound::empty_either>("empty_either", {"x"}),
    function<&bound::length_of_float>("length_of_float", {"x"}),
    function<&bound::converted_either>("converted_either", {"x"}),
    function<&bound::narrowed_either>("narrowed_either", {"x"}),
    function<&bound::strides_either>("strides_either", {"x"}),
    function<&bound::either_or_int>("either_or_int", {"x"}),
    function<&bound::device_of_either>("device_of_either", {"x"}),
    function<&bound::total_on<tenon::cuda_host>>("total_cuda_host", {"x"}),
    function<&bound::total_on<tenon::cuda_managed>>("total_cuda_managed", {"x"}),
    function<&bound::total_on<tenon::rocm_host>>("total_rocm_host", {"x"}),
    function<&bound::fill_either>("fill_either", {"x", "value"}),
    function<&bound::dot_either>("dot_either", {"x", "y"}),
    function<&bound::add_either>("add_either", {"x", "y", "out"}),
    function<&bound::total_of_either>("total_of_either", {"xs"}),
    function<&bound::total_of_converted>("total_of_converted", {"xs"}),
    function<&bound::dot>("dot", {"x", "y"}),
    function<&bound::dot_converted>("dot_converted", {"x", "y"}),
    function<&bound::matmul>("matmul", {"a", "b", {"out", nullptr}}),
    function<&bound::trace>("trace", {"x"}),
    function<&bound::rows_of>("rows_of", {"x", "y"}),
    function<&bound::total_of_second>("total_of_second", {"x", "y"}),
    function<&bound::first_of_second>("first_of_second", {"x", "y"}),
    function<&bound::first_of_none>("first_of_none", {"x", "y"}),
    function<&bound::report_conversions>("report_conversions", {"how"}),
    function<&bound::reported_conversions>("reported_conversions"),
    function<&bound::scale>("scale", {"x", {"s", 2.0}}, "Multiplies every element."),
    function<&bound::widened>("widened", {"x"}),
    function<&bound::counted>("counted", {"x", "rows", "columns"}),
    function<&bound::zeros_like>("zeros_like", {"x"}),
    function<&bound::same>("same", {"x"}),
    function<&bound::pair_of>("pair_of", {"x"}),
    function<&bound::both>("both", {"x"}),
    function<&bound::named>("named", {"x"}),
    function<&bound::keep>("keep", {"t"}),
    function<&bound::kept_dtype>("kept_dtype", {"t"}),
    function<&bound::numbers>("numbers", {"count", "said"}),
    function<&bound::fail>("fail", {"x", "kind"}),
    function<&sum_of_metres>("sum_of_metres", {"first", "others"}),
    function<&unordered>("unordered", {"xs"}),
    greeting_definition(),
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bound_capi", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_bound_capi() { return PyModule_Create(&definition); }
