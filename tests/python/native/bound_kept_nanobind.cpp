// tests/python/native/bound_kept_nanobind.cpp: arrays that are kept, bound by nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <tenon/bind/nanobind.hpp>

namespace binder = nanobind;

#include "bound_kept_binders.hpp"

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nanobind::inst_ready(self)) return 0;
    const auto& all = *nanobind::inst_ptr<kept::keeper>(self);
    if (const int stop = tenon::py::traverse(all.fixed, visit, arg)) return stop;
    if (const int stop = tenon::py::traverse(all.any_rank, visit, arg)) return stop;
    if (const int stop = tenon::py::traverse(all.shared, visit, arg)) return stop;
    return tenon::py::traverse(all.owned, visit, arg);
}
int clear(PyObject* self) {
    if (nanobind::inst_ready(self)) nanobind::inst_ptr<kept::keeper>(self)->clear();
    return 0;
}
PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                       {0, nullptr}};

}  // namespace

NB_MODULE(bound_kept_nanobind, m) {
    kept::bind_all(m);
    nanobind::class_<kept::keeper> keeper(m, "Keeper", nanobind::type_slots(slots), nanobind::dynamic_attr());
    kept::bind_class(keeper);
    keeper.def_rw("fixed", &kept::keeper::fixed)
        .def_rw("any_rank", &kept::keeper::any_rank)
        .def_rw("shared", &kept::keeper::shared)
        .def_rw("owned", &kept::keeper::owned)
        .def_rw("maybe", &kept::keeper::maybe, nanobind::arg().none())
        .def_ro("many", &kept::keeper::many);
}
