// tests/python/native/bound_kept_pybind11.cpp: arrays that are kept, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tenon/bind/pybind11.hpp>

namespace binder = pybind11;

#include "bound_kept_binders.hpp"

namespace {

/// Its constructor has run.
bool is_made(PyObject* self) {
    return reinterpret_cast<pybind11::detail::instance*>(self)->get_value_and_holder().holder_constructed();
}
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!is_made(self)) return 0;
    const auto& all = *pybind11::handle(self).cast<kept::keeper*>();
    if (const int stop = tenon::py::traverse(all.fixed, visit, arg)) return stop;
    if (const int stop = tenon::py::traverse(all.any_rank, visit, arg)) return stop;
    return tenon::py::traverse(all.shared, visit, arg);
}
int clear(PyObject* self) {
    if (is_made(self)) pybind11::handle(self).cast<kept::keeper*>()->clear();
    return 0;
}

}  // namespace

PYBIND11_MODULE(bound_kept_pybind11, m) {
    kept::bind_all(m);
    const auto collected = [](PyHeapTypeObject* type) {
        type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
        type->ht_type.tp_traverse = &traverse;
        type->ht_type.tp_clear = &clear;
    };
    pybind11::class_<kept::keeper> keeper(m, "Keeper", pybind11::custom_type_setup(collected));
    kept::bind_class(keeper);
    keeper.def_readwrite("fixed", &kept::keeper::fixed)
        .def_readwrite("any_rank", &kept::keeper::any_rank)
        .def_readwrite("shared", &kept::keeper::shared)
        .def_readwrite("maybe", &kept::keeper::maybe)
        .def_readonly("owned", &kept::keeper::owned)
        .def_readonly("many", &kept::keeper::many);
}
