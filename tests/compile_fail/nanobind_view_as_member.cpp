// tests/compile_fail/nanobind_view_as_member.cpp: a bound class shows a view.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

struct model {
    tenon::view<const float, 1> weights;
    tenon::result<tenon::tensor> shared();
};

NB_MODULE(demo, m) {
#ifdef CORRECT
    nanobind::class_<model>(m, "Model").def("weights", &model::shared);
#else
    nanobind::class_<model>(m, "Model").def_rw("weights", &model::weights);
#endif
}
