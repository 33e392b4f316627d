// tests/python/native/bound_kept_binders.hpp: arrays that are kept, bound by the binder that is included; and
// a class that keeps them.
#pragma once

#include "bound_kept.hpp"

namespace kept {

/// `class_` is the binder's, with what it needs to be collected.
template <class Class>
void bind_class(Class&& keeper_class) {
    using namespace binder::literals;
    keeper_class.def(binder::init<>())
        .def(binder::init<vector>(), "x"_a)
        .def("set", &keeper::set, "x"_a)
        .def("add", &keeper::add, "x"_a)
        .def("get", &keeper::get)
        .def("size_of", &keeper::size_of, "x"_a)
        .def("clear", &keeper::clear);
}

inline void bind_all(binder::module_& m) {
    using namespace binder::literals;
    m.def("keep", &keep, "x"_a);
    m.def("keep_moved", &keep_moved, "x"_a);
    m.def("keep_assigned", &keep_assigned, "x"_a);
    m.def("keep_fixed", &keep_fixed, "x"_a);
    m.def("keep_released", &keep_released, "x"_a);
    m.def("keep_on_threads", &keep_on_threads, "x"_a, "count"_a);
    m.def("keep_items", &keep_items, "xs"_a);
    m.def("keep_optional", &keep_optional, "x"_a = binder::none());
    m.def("keep_variant", &keep_variant, "x"_a);
    m.def("keep_converted", &keep_converted, "x"_a);
    m.def("keep_written", &keep_written, "x"_a);
    m.def("keep_empty_like", &keep_empty_like, "x"_a);
    m.def(
        "keep_then", [](open x, const binder::object& callback) { return keep_then(x, callback.ptr()); },
        "x"_a, "callback"_a);
    m.def("count", &count);
    m.def("total_of_all", &total_of_all);
    m.def("total_on_thread", &total_on_thread);
    m.def("last", &last);
    m.def("same", &same, "x"_a);
    m.def("nothing", &nothing);
    m.def("shared", &shared, "x"_a);
    m.def("made", &made);
    m.def("drop", &drop);
    m.def("drop_released", &drop_released);
    m.def("drop_on_thread", &drop_on_thread);
    m.def("drop_later", &drop_later, "x"_a, "microseconds"_a);
}

}  // namespace kept
