// tests/python/native/bound_hazards_capi.cpp: what can go wrong around arguments, in a module written by
// hand; and views into containers, which the binders' own casters have no part in.
#include <tenon/bind/function.hpp>

#include "bound_hazards.hpp"

namespace {

using tenon::py::function;

/// What `probe` returns while the function runs, and the text it was given, read after that.
using probed = std::tuple<std::int64_t, std::string>;

std::int64_t ask(PyObject* probe) {
    const auto answer = tenon::py::ref::take(PyObject_CallNoArgs(probe));
    if (!answer) throw tenon::py::python_error();
    return PyLong_AsLongLong(answer.get());
}
std::string text_of(PyObject* obj) {
    const auto text = tenon::py::ref::take(PyObject_Str(obj));
    const char* const utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (utf8 == nullptr) throw tenon::py::python_error();
    return utf8;
}

probed views(const std::vector<std::string_view>& xs, PyObject* probe) {
    const std::int64_t answer = ask(probe);
    std::string out;
    for (const auto x : xs) out += x;
    return {answer, out};
}
probed pointers(const std::vector<const char*>& xs, PyObject* probe) {
    const std::int64_t answer = ask(probe);
    std::string out;
    for (const auto* x : xs) out += x;
    return {answer, out};
}
probed objects(const std::vector<PyObject*>& xs, PyObject* probe) {
    const std::int64_t answer = ask(probe);
    std::string out;
    for (auto* x : xs) out += text_of(x);
    return {answer, out};
}
probed nested(const std::vector<std::vector<std::string_view>>& xs, PyObject* probe) {
    const std::int64_t answer = ask(probe);
    std::string out;
    for (const auto& row : xs)
        for (const auto x : row) out += x;
    return {answer, out};
}
probed in_tuple(const std::tuple<std::string_view, const char*, PyObject*>& xs, PyObject* probe) {
    const std::int64_t answer = ask(probe);
    return {answer, std::string(std::get<0>(xs)) + std::get<1>(xs) + text_of(std::get<2>(xs))};
}
probed in_dict(const std::map<std::string, std::vector<const char*>>& xs, PyObject* probe) {
    const std::int64_t answer = ask(probe);
    std::string out;
    for (const auto& [key, values] : xs)
        for (const auto* value : values) out += value;
    return {answer, out};
}
probed maybe(const std::optional<std::vector<PyObject*>>& xs, PyObject* probe) {
    const std::int64_t answer = ask(probe);
    std::string out;
    for (auto* x : *xs) out += text_of(x);
    return {answer, out};
}
probed deep(const std::vector<std::optional<std::tuple<std::vector<std::string_view>>>>& xs,
            PyObject* probe) {
    const std::int64_t answer = ask(probe);
    std::string out;
    for (const auto& x : xs)
        for (const auto text : std::get<0>(*x)) out += text;
    return {answer, out};
}

/// A result by reference stays in C++: it is returned again and again.
// NOLINTNEXTLINE(performance-unnecessary-value-param): as parameters are written
std::vector<tenon::array<double, 1>>& made_once(tenon::array<const double, 1> x) {
    static auto& all = *new std::vector<tenon::array<double, 1>>;
    if (all.empty()) all.emplace_back(tenon::empty_like(x));
    return all;
}

/// An item of a list, which is the only one left that keeps the memory.
tenon::array<const double, 1> last_of(std::vector<tenon::array<const double, 1>> xs) { return xs.back(); }

PyMethodDef methods[] = {
    function<&hazards::alone>("alone", {"x"}),
    function<&hazards::then_index>("then_index", {"x", "n"}),
    function<&hazards::then_float>("then_float", {"x", "s"}),
    function<&hazards::then_array>("then_array", {"x", "y"}),
    function<&hazards::three>("three", {"x", "y", "n"}),
    function<&hazards::then_list>("then_list", {"x", "ys"}),
    function<&hazards::then_tensor>("then_tensor", {"x", "y"}),
    function<&hazards::index_then>("index_then", {"n", "x"}),
    function<&hazards::maybe_then>("maybe_then", {"x", "n"}),
    function<&hazards::either_then>("either_then", {"x", "n"}),
    function<&hazards::converted_then>("converted_then", {"x", "n"}),
    function<&hazards::written_then>("written_then", {"x", "n"}),
    function<&hazards::defaulted>("defaulted", {"x", {"n", 2}, {"s", 1.0}}),
    function<&hazards::as_float64>("as_float64", {"x"}),
    function<&hazards::as_float32>("as_float32", {"x"}),
    function<&hazards::narrowed_float32>("narrowed_float32", {"x"}),
    function<&hazards::lossy_float32>("lossy_float32", {"x"}),
    function<&hazards::lossy_uint8>("lossy_uint8", {"x"}),
    function<&hazards::lossy_either>("lossy_either", {"x"}),
    function<&hazards::narrowed_int16>("narrowed_int16", {"x"}),
    function<&hazards::as_int32>("as_int32", {"x"}),
    function<&hazards::as_uint8>("as_uint8", {"x"}),
    function<&hazards::as_complex>("as_complex", {"x"}),
    function<&hazards::listed_float64>("listed_float64", {"xs"}),
    function<&hazards::either_converted>("either_converted", {"x"}),
    function<&hazards::fresh>("fresh", {"x"}),
    function<&hazards::fresh_released>("fresh_released", {"x"}),
    function<&hazards::fresh_of_released>("fresh_of_released", {"x"}),
    function<&hazards::asked_released>("asked_released", {"x", "what"}),
    function<&views>("views", {"xs", "probe"}),
    function<&pointers>("pointers", {"xs", "probe"}),
    function<&objects>("objects", {"xs", "probe"}),
    function<&nested>("nested", {"xs", "probe"}),
    function<&in_tuple>("in_tuple", {"xs", "probe"}),
    function<&in_dict>("in_dict", {"xs", "probe"}),
    function<&maybe>("maybe", {"xs", "probe"}),
    function<&deep>("deep", {"xs", "probe"}),
    function<&made_once>("made_once", {"x"}),
    function<&last_of>("last_of", {"xs"}),
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bound_hazards_capi", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_bound_hazards_capi() { return PyModule_Create(&definition); }
