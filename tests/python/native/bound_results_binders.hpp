// tests/python/native/bound_results_binders.hpp: how both binders bind the results that name their library,
// in the words that they share. `binder` is the namespace of the one that is included.
#pragma once

#include "bound_results.hpp"

namespace results {

/// A class that gives what it keeps as an array of NumPy's, and lends its memory as itself.
struct keeper {
    explicit keeper(tensor t) noexcept : kept(std::move(t)) {}
    tensor kept;
    tenon::numpy_array<float, 1> numbers() { return kept.share(); }
};

inline void bind_all(binder::module_& m) {
    using namespace binder::literals;
    m.def("numpy_2d", &numpy_2d, "rows"_a, "columns"_a);
    m.def("numpy_any", &numpy_any, "n"_a);
    m.def("numpy_const", &numpy_const, "n"_a);
    m.def("numpy_threes", &numpy_threes, "rows"_a, "columns"_a);
    m.def("numpy_of", &numpy_of, "t"_a);
    m.def("torch_of", &torch_of, "t"_a);
    m.def("memory_of", &memory_of, "t"_a);
    m.def("numpy_float64", &numpy_float64, "t"_a);
    m.def("torch_1d", &torch_1d, "n"_a);
    m.def("jax_1d", &jax_1d, "n"_a);
    m.def("cupy_1d", &cupy_1d, "n"_a);
    m.def("tensorflow_1d", &tensorflow_1d, "n"_a);
    m.def("paddle_1d", &paddle_1d, "n"_a);
    m.def("memory_1d", &memory_1d, "n"_a);
    m.def("memory_2d", &memory_2d, "rows"_a, "columns"_a);
    m.def("impossible", &impossible, "n"_a);
    m.def("numpy_moved", &numpy_moved);
    m.def("maybe_numpy", &maybe_numpy, "n"_a);
    m.def("list_of_torch", &list_of_torch, "n"_a);
    m.def("two_libraries", &two_libraries, "n"_a);
    m.def("numpy_and_number", &numpy_and_number, "n"_a);
    m.def("dict_of_numpy", &dict_of_numpy, "n"_a);
    m.def("list_of_wrong", &list_of_wrong, "n"_a);

    m.def("scale", &scale, "x"_a, "out"_a = binder::none());
    m.def("outer", &outer, "x"_a, "out"_a = binder::none());
    m.def("like_any", &like_any, "x"_a, "out"_a = binder::none());

    m.def(
        "owned",
        [](const binder::handle& owner, const std::string& where) { return owned(owner.ptr(), where); },
        "owner"_a, "where"_a);
    m.def(
        "owned_and_dropped",
        [](const binder::object& owner, const std::string& made_where, const std::string& dropped_where) {
            binder::object given = owner;
            tenon::result<tensor> made = tenon::error{};
            run_there(made_where, [&] { made = tenon::py::own(std::move(given), four()); });
            tensor kept = tenon::py::or_raise(std::move(made));
            run_there(dropped_where, [&] { kept.reset(); });
        },
        "owner"_a, "made"_a, "dropped"_a);
    m.def("owned_for_ever", [](const binder::handle& owner) { owned_for_ever(owner.ptr()); }, "owner"_a);
    m.def(
        "owned_in_vain",
        [](const binder::object& owner) {
            auto made =
                tenon::py::own(owner, tenon::tensor_info::contiguous(static_cast<float*>(nullptr), {4}));
            if (!made) throw std::runtime_error(made.error().message());
        },
        "owner"_a);
    m.def("is_array", [](const binder::handle& obj) { return tenon::py::is_array(obj); }, "obj"_a.none());
    m.def(
        "is_array_twice",
        [](const binder::object& obj) {
            const auto held = tenon::py::ref::borrow(obj.ptr());
            return std::pair(tenon::py::is_array(obj), tenon::py::is_array(held));
        },
        "obj"_a);

    m.def("or_raise_elsewhere", &or_raise_elsewhere, "x"_a, "where"_a);
    m.def("throw_for_nothing", &throw_for_nothing, "x"_a);
    m.def("raise_without_arrays", &raise_without_arrays);
    m.def("like_set", &like_set, "x"_a, "out"_a = binder::none());
    m.def("catch_and", &catch_and, "what"_a);

    binder::class_<keeper>(m, "Keeper").def(binder::init<tensor>(), "t"_a).def("numbers", &keeper::numbers);
}

}  // namespace results
