// tests/python/native/bound_stubs_pybind11.cpp: what stubs are written of, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tenon/bind/pybind11.hpp>

namespace binder = pybind11;
#define BIND_PROPERTY def_property
#define BIND_ERROR pybind11::error_already_set

#include "bound_stubs_binders.hpp"

PYBIND11_MODULE(bound_stubs_pybind11, m) { stubs::bind_all(m); }
