// tests/python/native/bound_hazards_binders.hpp: how both binders bind what can go wrong, in the words that
// they share. `binder` is the namespace of the one that is included.
#pragma once

#include "bound_hazards.hpp"

namespace hazards {

/// Made of any object, whose `__index__` is asked: an argument that is converted on the way.
struct gauge {
    explicit gauge(const binder::object& from) : value(PyNumber_AsSsize_t(from.ptr(), nullptr)) {}
    std::int64_t value;
};

inline void bind_all(binder::module_& m) {
    using namespace binder::literals;
    m.def("alone", &alone, "x"_a);
    m.def("then_index", &then_index, "x"_a, "n"_a);
    m.def("then_float", &then_float, "x"_a, "s"_a);
    m.def("then_array", &then_array, "x"_a, "y"_a);
    m.def("three", &three, "x"_a, "y"_a, "n"_a);
    m.def("then_list", &then_list, "x"_a, "ys"_a);
    m.def("then_tensor", &then_tensor, "x"_a, "y"_a);
    m.def("index_then", &index_then, "n"_a, "x"_a);
    m.def("maybe_then", &maybe_then, "x"_a, "n"_a);
    m.def("either_then", &either_then, "x"_a, "n"_a);
    m.def("converted_then", &converted_then, "x"_a, "n"_a);
    m.def("written_then", &written_then, "x"_a, "n"_a);
    m.def("defaulted", &defaulted, "x"_a, "n"_a = 2, "s"_a = 1.0);
    m.def("then_index_unlocked", &then_index, "x"_a, "n"_a, binder::call_guard<binder::gil_scoped_release>());

    binder::class_<gauge>(m, "Gauge").def(binder::init<binder::object>());
    binder::implicitly_convertible<binder::object, gauge>();
    m.def("then_gauge", [](vector x, const gauge&) { return total(x); }, "x"_a, "g"_a);
    m.def("gauge_then", [](const gauge&, vector x) { return total(x); }, "g"_a, "x"_a);
    m.def("then_object", [](vector x, const binder::object&) { return total(x); }, "x"_a, "o"_a);
    m.def("then_rest", [](vector x, const binder::args&, const binder::kwargs&) { return total(x); });

    m.def("as_float64", &as_float64, "x"_a);
    m.def("as_float32", &as_float32, "x"_a);
    m.def("narrowed_float32", &narrowed_float32, "x"_a);
    m.def("lossy_float32", &lossy_float32, "x"_a);
    m.def("lossy_uint8", &lossy_uint8, "x"_a);
    m.def("lossy_either", &lossy_either, "x"_a);
    m.def("narrowed_int16", &narrowed_int16, "x"_a);
    m.def("as_int32", &as_int32, "x"_a);
    m.def("as_uint8", &as_uint8, "x"_a);
    m.def("as_complex", &as_complex, "x"_a);
    m.def("listed_float64", &listed_float64, "xs"_a);
    m.def("either_converted", &either_converted, "x"_a);
    m.def(
        "overloaded_lossy", [](array<const std::complex<double>, 1, tenon::convert>) { return "complex128"; },
        "x"_a);
    m.def(
        "overloaded_lossy", [](array<const float, 1, tenon::convert, tenon::lossy>) { return "float32"; },
        "x"_a);
    m.def("overloaded", [](array<const float, 1, tenon::convert>) { return "float32"; }, "x"_a);
    m.def("overloaded", [](array<const double, 1, tenon::convert>) { return "float64"; }, "x"_a);
    m.def(
        "overloaded", [](array<const std::complex<double>, 1, tenon::convert>) { return "complex128"; },
        "x"_a);

    m.def("fresh", &fresh, "x"_a);
    m.def("fresh_released", &fresh_released, "x"_a);
    m.def("fresh_of_released", &fresh_of_released, "x"_a);
    m.def("fresh_guarded", &fresh, "x"_a, binder::call_guard<binder::gil_scoped_release>());
    m.def("asked_released", &asked_released, "x"_a, "what"_a);

    m.def("items", [](const std::vector<vector>& xs) { return xs.size(); }, "xs"_a);
    m.def("items_or_any", [](const std::vector<vector>&) { return "arrays"; }, "xs"_a);
    m.def("items_or_any", [](const binder::object&) { return "anything"; }, "xs"_a);
    m.def("any_or_items", [](const binder::dict&) { return "a dict"; }, "xs"_a);
    m.def("any_or_items", [](vector) { return "an array"; }, "xs"_a);
    m.def("any_or_items", [](const std::vector<vector>&) { return "arrays"; }, "xs"_a);
    m.def("any_or_items", [](const binder::list&) { return "a list"; }, "xs"_a);
    m.def(
        "items_and_call",
        [](const std::vector<vector>& xs, const binder::object& call) {
            call();
            return xs.size();
        },
        "xs"_a, "call"_a);
    m.attr("bare") = binder::cpp_function([](const std::vector<vector>& xs) { return xs.size(); });
}

}  // namespace hazards
