// tests/compile_fail/pybind11_view_as_member.cpp: a bound class shows a view.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

struct model {
    tenon::view<const float, 1> weights;
    tenon::result<tenon::tensor> shared();
};

PYBIND11_MODULE(demo, m) {
#ifdef CORRECT
    pybind11::class_<model>(m, "Model").def("weights", &model::shared);
#else
    pybind11::class_<model>(m, "Model").def_readwrite("weights", &model::weights);
#endif
}
