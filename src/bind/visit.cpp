// src/bind/visit.cpp: what `visit` raises for arrays that the function does not take.
#include <tenon/bind/visit.hpp>
#include "../py/export/all.hpp"

namespace tenon::bind {

TENON_INLINE void raise_not_taken(const error& e) {
    py::raise(e, "tenon: ");
    throw py::python_error(e);
}

TENON_INLINE void raise_not_together(const dtype* got, std::size_t count) {
    std::string text = "tenon: dtype: this function does not take such element types together, got ";
    for (std::size_t i = 0; i < count; ++i) text.append(i == 0 ? "" : ", ").append(name(got[i]));
    py::raise(errc::not_taken, text);
    throw py::python_error();
}

}  // namespace tenon::bind
